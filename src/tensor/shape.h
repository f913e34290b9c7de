/* SPDX-License-Identifier: Apache-2.0
 *
 * Shapes: a rank and dimensions, each of which may be unknown while a graph is only inspected.
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
/* Makes a shape. Returns INVALID_ARGUMENT for a rank above CLG_MAX_RANK, a dimension below -1, and
 * more elements than int64 can count. */
clg_status shape_make(size_t rank, const int64_t *dims, shape *out_shape);
/* As shape_make, with a dimension of -1 an error, too. */
clg_status shape_make_known(size_t rank, const int64_t *dims, shape *out_shape);
bool shape_is_known(const shape *s); /* rank and all dimensions are known */
bool shape_equal(const shape *a, const shape *b);
/* Counts the elements; *out_n is DIM_UNKNOWN if rank or a dimension is unknown. Returns an error if
 * the product of the dimensions, with 0 counted as 1, does not fit in int64; so strides fit too. */
clg_status shape_n_elements(const shape *s, int64_t *out_n);
/* Returns the product of dims[from..to-1], which must be known; 1 for an empty range. Not checked
 * for overflow: the number of elements of the whole shape must fit in int64. */
int64_t shape_product(const shape *s, int from, int to);
/* Returns whether both dimensions are known and not equal. */
static inline bool dims_differ(int64_t a, int64_t b)
{
    return a != DIM_UNKNOWN && b != DIM_UNKNOWN && a != b;
}
/* Computes row-major strides in elements; s must be known. */
void shape_strides(const shape *s, int64_t out_strides[CLG_MAX_RANK]);
/* Computes the shape to which a and b broadcast (ONNX's multidirectional broadcasting). An unknown
 * dimension stays unknown unless the other shape determines it; an unknown rank makes the result's
 * unknown. */
clg_status shape_broadcast(const shape *a, const shape *b, shape *out_shape);
/* Converts an axis in -rank..rank-1 to 0..rank-1. The error message names `what`. If the position
 * after the last axis is valid too (Unsqueeze), pass rank + 1. */
clg_status shape_axis(int64_t axis, int rank, const char *what, int *out_axis);
/* Writes the shape into buffer, as "[2,?,8]", or "[...]" for an unknown rank; returns buffer. */
#define SHAPE_TEXT_BYTES 200
const char *shape_text(const shape *s, char buffer[SHAPE_TEXT_BYTES]);

#endif
