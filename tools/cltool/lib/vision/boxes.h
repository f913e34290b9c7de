/* SPDX-License-Identifier: Apache-2.0
 *
 * Boxes of detected objects: lists of them, and non-maximum suppression.
 */
#ifndef CLTOOL_BOXES_H
#define CLTOOL_BOXES_H

#include <stddef.h>
#include <stdint.h>

typedef struct box {
    double left, top, right, bottom; /* in pixels; right and bottom are outside */
    double score;
    int64_t class_index;
} box;

typedef struct box_list {
    box *items;
    size_t count, capacity;
} box_list; /* all zeros is valid and empty */

/* Appends a box, unless a number of it is not finite. */
void boxes_add(box_list *list, box b);
void boxes_free(box_list *list);
/* Returns the area that two boxes share over that which they cover; 0 if they cover none. */
double boxes_overlap(const box *a, const box *b);
/* Sorts boxes by descending score (equal ones stay in their order) and keeps at most `max` of them.
 * Returns how many were left out. */
size_t boxes_sort(box_list *list, size_t max);
/* Removes boxes of a sorted list that overlap with one before them of the same class by more than
 * iou. */
void boxes_suppress(box_list *list, double iou);
/* Limits boxes to an image of this size, and removes those outside of it. */
void boxes_limit(box_list *list, double width, double height);

#endif
