/* SPDX-License-Identifier: Apache-2.0
 *
 * Sizes as terms: numbers, dimensions and elements of values that are known only when a graph runs,
 * and sums, differences, products and quotients of such terms. Each term is stored once, so that
 * equal ids mean numbers that are equal in every run.
 */
#ifndef CLG_PASSES_SIZE_TERMS_H
#define CLG_PASSES_SIZE_TERMS_H

#include "graph/graph.h"

/* An index into the table of terms; SIZE_TERM_NONE is none. */
typedef uint32_t size_term;
#define SIZE_TERM_NONE UINT32_MAX

typedef enum size_term_kind {
    TERM_NUMBER,  /* a */
    TERM_DIM,     /* dimension b of value a */
    TERM_ELEMENT, /* element b of value a */
    TERM_ADD,     /* of the terms a and b, in int64, as the following ones */
    TERM_SUB,
    TERM_MUL,
    TERM_DIV
} size_term_kind;

typedef struct size_terms {
    struct term_entry *entries;
    size_t n, capacity;
    hash_map ids;      /* entry -> index */
    clg_status status; /* of the first failure, which is out of memory; terms are wrong after it */
} size_terms;          /* all zeros is valid and empty */

void size_terms_deinit(size_terms *t);

size_term size_terms_number(size_terms *t, int64_t number);
size_term size_terms_dim(size_terms *t, value_id v, int axis);
size_term size_terms_element(size_terms *t, value_id v, size_t i);
/* kind: TERM_ADD to TERM_DIV. Computes with numbers, drops neutral operands, and reduces a
 * difference by what was added before. */
size_term size_terms_apply(size_terms *t, size_term_kind kind, size_term a, size_term b);

/* Returns whether the term is a number, which *out_number is set to. */
bool size_terms_is_number(const size_terms *t, size_term a, int64_t *out_number);
/* Returns whether the term is a product, and its operands. */
bool size_terms_is_product(const size_terms *t, size_term a, size_term *out_x, size_term *out_y);
/* Returns whether the term is at least 0: a number, a dimension, or a sum or product of such. */
bool size_terms_is_size(const size_terms *t, size_term a);

#endif
