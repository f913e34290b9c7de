/* SPDX-License-Identifier: Apache-2.0
 *
 * The dimensions of a graph's values, and the elements of those that are shape arithmetic, as terms
 * (size_terms.h): what is known of shapes before any input is.
 */
#ifndef CLG_PASSES_SHAPE_TERMS_H
#define CLG_PASSES_SHAPE_TERMS_H

#include "passes/rewrite.h"
#include "passes/shapes/size_terms.h"

#define SHAPE_MAX_ELEMENTS 16 /* values of more elements are not shape arithmetic */

typedef struct value_terms {
    const size_term *dims;     /* by axis of the value's rank; NULL: the rank is not known */
    const size_term *elements; /* of an int64 or int32 of rank 0 or 1; NULL: not known how many */
    size_t n_elements;
} value_terms;

typedef struct shape_terms {
    graph_info info; /* its facts are improved by what the terms say */
    size_terms terms;
    value_terms *values; /* by value of info */
    arena memory;
} shape_terms;

/* Analyses g. On failure *out_shapes needs no release. */
clg_status shape_terms_make(graph *g, shape_terms *out_shapes);
void shape_terms_deinit(shape_terms *s);

/* Return the term of a dimension or element, and whether it is a number. The axis or index must
 * exist. */
bool shape_terms_dim_is(const shape_terms *s, value_id v, int axis, int64_t *out_number);
bool shape_terms_element_is(const shape_terms *s, value_id v, size_t i, int64_t *out_number);

/* Returns whether x is known to have the dimensions of y in every run. */
bool shape_terms_same_dims(const shape_terms *s, value_id x, value_id y);

/* Set the dimensions of output o of a node, as many as its fact has, or the n elements of its
 * output, from those of its inputs, where the operator has a rule (dims_rules.c, elements_rules.c).
 * They come preset to SIZE_TERM_NONE, which stays where nothing is known. */
void shape_rules_dims(shape_terms *s, const node *n, size_t o, size_term *dims);
void shape_rules_elements(shape_terms *s, const node *n, size_t n_elements, size_term *elements);
/* Returns dimension `open` of a Reshape of v to these dimensions, which is what the others leave;
 * SIZE_TERM_NONE where that is not known. */
size_term shape_rules_left(shape_terms *s, value_id v, const size_term *to, int rank, int open);

#endif
