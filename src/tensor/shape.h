/* SPDX-License-Identifier: Apache-2.0
 *
 * Shapes: a rank and dimensions, either of which may be unknown while a graph is only inspected.
 */
#ifndef CLG_TENSOR_SHAPE_H
#define CLG_TENSOR_SHAPE_H

#include "base/error.h"

#define DIM_UNKNOWN ((int64_t)-1)
#define RANK_UNKNOWN (-1)

typedef struct shape {
    int rank;                   /* RANK_UNKNOWN: nothing is known */
    int64_t dims[CLG_MAX_RANK]; /* DIM_UNKNOWN or >= 0 */
} shape;

shape shape_unknown(void);
shape shape_scalar(void);
/* Makes a shape. INVALID_ARGUMENT for rank > CLG_MAX_RANK, dims below -1, and more elements than
 * int64 can count. */
clg_status shape_make(size_t rank, const int64_t *dims, shape *out_shape);
bool shape_is_known(const shape *s); /* rank and all dimensions */
bool shape_equal(const shape *a, const shape *b);
/* Counts the elements; DIM_UNKNOWN when unknown; an error when the product does not fit an int64,
 * with dimensions of 0 counted as 1, so that strides fit too. */
clg_status shape_n_elements(const shape *s, int64_t *out_n);
/* Returns the product of dims[from..to-1], which must be known; 1 for an empty range. Does not
 * check for overflow: the elements of the whole shape must fit an int64. */
int64_t shape_product(const shape *s, int from, int to);
/* Returns true where both are known and not equal. */
static inline bool dims_differ(int64_t a, int64_t b)
{
    return a != DIM_UNKNOWN && b != DIM_UNKNOWN && a != b;
}
/* Computes row-major strides in elements; s must be known. */
void shape_strides(const shape *s, int64_t out_strides[CLG_MAX_RANK]);
/* Broadcasts as ONNX does, multidirectionally; an unknown dimension stays unknown unless the other
 * shape determines it. */
clg_status shape_broadcast(const shape *a, const shape *b, shape *out_shape);
/* Maps -rank..rank-1 to 0..rank-1. Errors name `what`. If the end is valid too (Unsqueeze), pass
 * rank + 1. */
clg_status shape_axis(int64_t axis, int rank, const char *what, int *out_axis);
/* Writes "[2,?,8]", "[...]" for an unknown rank, into buffer; returns buffer. */
#define SHAPE_TEXT_BYTES 200
const char *shape_text(const shape *s, char buffer[SHAPE_TEXT_BYTES]);

#endif
