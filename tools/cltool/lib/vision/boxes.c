/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements boxes.h.
 */
#include "boxes.h"

#include "failure.h"

#include <math.h>
#include <stdlib.h>

void boxes_add(box_list *list, box b)
{
    const double numbers[] = {b.left, b.top, b.right, b.bottom, b.score};
    for (size_t i = 0; i < 5; i++)
        if (!isfinite(numbers[i])) return;
    if (list->count == list->capacity) {
        list->capacity = list->capacity * 2 + 16;
        list->items = must_resize(list->items, list->capacity, sizeof *list->items);
    }
    list->items[list->count++] = b;
}

void boxes_free(box_list *list)
{
    free(list->items);
    *list = (box_list){0};
}

static double area(const box *b)
{
    return fmax(b->right - b->left, 0) * fmax(b->bottom - b->top, 0);
}

double boxes_overlap(const box *a, const box *b)
{
    const box both = {.left = fmax(a->left, b->left),
                      .top = fmax(a->top, b->top),
                      .right = fmin(a->right, b->right),
                      .bottom = fmin(a->bottom, b->bottom)};
    const double shared = area(&both), all = area(a) + area(b) - shared;
    return all > 0 ? shared / all : 0;
}

typedef struct place_in_list {
    box b;
    size_t at;
} place_in_list;

static int highest_first(const void *a, const void *b)
{
    const place_in_list *x = a, *y = b;
    if (x->b.score != y->b.score) return x->b.score < y->b.score ? 1 : -1;
    return (x->at > y->at) - (x->at < y->at);
}

size_t boxes_sort(box_list *list, size_t max)
{
    place_in_list *places = must_alloc(list->count, sizeof *places);
    const size_t before = list->count;
    for (size_t i = 0; i < before; i++) places[i] = (place_in_list){list->items[i], i};
    if (before > 0) qsort(places, before, sizeof *places, highest_first);
    if (list->count > max) list->count = max;
    for (size_t i = 0; i < list->count; i++) list->items[i] = places[i].b;
    free(places);
    return before - list->count;
}

void boxes_suppress(box_list *list, double iou)
{
    size_t n = 0;
    for (size_t i = 0; i < list->count; i++) {
        const box b = list->items[i];
        size_t k = 0;
        while (k < n && (list->items[k].class_index != b.class_index ||
                         boxes_overlap(&list->items[k], &b) <= iou))
            k++;
        if (k == n) list->items[n++] = b;
    }
    list->count = n;
}

void boxes_limit(box_list *list, double width, double height)
{
    size_t n = 0;
    for (size_t i = 0; i < list->count; i++) {
        box b = list->items[i];
        b.left = fmin(fmax(b.left, 0), width);
        b.right = fmin(fmax(b.right, 0), width);
        b.top = fmin(fmax(b.top, 0), height);
        b.bottom = fmin(fmax(b.bottom, 0), height);
        if (area(&b) > 0) list->items[n++] = b;
    }
    list->count = n;
}
