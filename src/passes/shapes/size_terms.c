/* SPDX-License-Identifier: Apache-2.0
 *
 * Stores and simplifies the terms of size_terms.h.
 */
#include "passes/shapes/size_terms.h"
#include "base/checked.h"

#include <string.h>

typedef struct term_entry {
    int64_t kind, a, b;
} term_entry;

void size_terms_deinit(size_terms *t)
{
    hash_map_deinit(&t->ids);
    memory_free(t->entries);
    *t = (size_terms){0};
}

/* Finds a term, or adds it. */
static size_term find(size_terms *t, size_term_kind kind, int64_t a, int64_t b)
{
    const term_entry entry = {kind, a, b};
    const size_t found = hash_map_get(&t->ids, &entry, sizeof entry);
    if (found != HASH_MAP_NONE) return (size_term)found;
    clg_status status = t->status;
    if (status == CLG_OK) status = MEMORY_RESERVE(t->entries, t->capacity, t->n + 1);
    if (status == CLG_OK) status = hash_map_set(&t->ids, &entry, sizeof entry, t->n);
    t->status = status;
    if (status != CLG_OK) return 0;
    t->entries[t->n] = entry;
    return (size_term)t->n++;
}

size_term size_terms_number(size_terms *t, int64_t number)
{
    return find(t, TERM_NUMBER, number, 0);
}

size_term size_terms_dim(size_terms *t, value_id v, int axis) { return find(t, TERM_DIM, v, axis); }

size_term size_terms_element(size_terms *t, value_id v, size_t i)
{
    return find(t, TERM_ELEMENT, v, (int64_t)i);
}

bool size_terms_is_number(const size_terms *t, size_term a, int64_t *out_number)
{
    if (a >= t->n || t->entries[a].kind != TERM_NUMBER) return false;
    *out_number = t->entries[a].a;
    return true;
}

bool size_terms_is_product(const size_terms *t, size_term a, size_term *out_x, size_term *out_y)
{
    if (a >= t->n || t->entries[a].kind != TERM_MUL) return false;
    *out_x = (size_term)t->entries[a].a;
    *out_y = (size_term)t->entries[a].b;
    return true;
}

/* How deep size_terms_is_size looks. */
#define MAX_DEPTH 8

static bool is_size(const size_terms *t, size_term a, int depth)
{
    if (a >= t->n || depth == MAX_DEPTH) return false;
    const term_entry *e = &t->entries[a];
    switch (e->kind) {
    case TERM_NUMBER: return e->a >= 0;
    case TERM_DIM: return true;
    case TERM_ADD:
    case TERM_MUL:
        return is_size(t, (size_term)e->a, depth + 1) && is_size(t, (size_term)e->b, depth + 1);
    default: return false;
    }
}

bool size_terms_is_size(const size_terms *t, size_term a) { return is_size(t, a, 0); }

/* Computes with numbers. Returns false for a result that is not representable or not defined. */
static bool compute(size_term_kind kind, int64_t a, int64_t b, int64_t *out)
{
    switch (kind) {
    case TERM_ADD: return checked_add_i64(a, b, out);
    case TERM_SUB: return checked_sub_i64(a, b, out);
    case TERM_MUL: return checked_mul_i64(a, b, out);
    case TERM_DIV:
        if (b == 0 || (a == INT64_MIN && b == -1)) return false;
        *out = a / b;
        return true;
    default: return false;
    }
}

/* Returns a - b where one of them is a sum with the other, or both are equal; false for others. */
static bool reduce_difference(size_terms *t, size_term a, size_term b, size_term *out)
{
    const term_entry *e = &t->entries[a];
    if (a == b) {
        *out = size_terms_number(t, 0);
        return true;
    }
    if (e->kind == TERM_ADD && (e->a == b || e->b == b)) {
        *out = (size_term)(e->a == b ? e->b : e->a);
        return true;
    }
    if (e->kind == TERM_SUB) return false;
    e = &t->entries[b];
    if (e->kind == TERM_SUB && e->a == a) { /* a - (a - x) */
        *out = (size_term)e->b;
        return true;
    }
    return false;
}

size_term size_terms_apply(size_terms *t, size_term_kind kind, size_term a, size_term b)
{
    int64_t x = 0, y = 0, result;
    size_term reduced;
    if (t->status != CLG_OK) return 0;
    const bool is_x = size_terms_is_number(t, a, &x), is_y = size_terms_is_number(t, b, &y);
    const bool is_product = kind == TERM_MUL || kind == TERM_DIV;
    if (is_x && is_y && compute(kind, x, y, &result)) return size_terms_number(t, result);
    if (is_y && y == is_product) return a;
    if (is_x && x == (kind == TERM_MUL) && (kind == TERM_ADD || kind == TERM_MUL)) return b;
    if (kind == TERM_SUB && reduce_difference(t, a, b, &reduced)) return reduced;
    if ((kind == TERM_ADD || kind == TERM_MUL) && a > b) return find(t, kind, b, a);
    return find(t, kind, a, b);
}
