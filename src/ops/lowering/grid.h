/* SPDX-License-Identifier: Apache-2.0
 *
 * Index spaces of kernels that process tensors element by element: dimensions that are contiguous
 * for all operands are merged, and NDRanges are limited to what the device accepts.
 */
#ifndef CLG_OPS_GRID_H
#define CLG_OPS_GRID_H

#include "ops/core/op.h"

/* Tile splits each dimension in two, and lowering may add one. */
#define GRID_MAX_RANK (2 * CLG_MAX_RANK + 2)

/* Dimensions and, in elements, each operand's strides along them. */
typedef struct grid_dims {
    int rank;
    int64_t dims[GRID_MAX_RANK];
    size_t n_operands;
    int64_t (*strides)[GRID_MAX_RANK]; /* [n_operands] */
} grid_dims;

/* Returns a grid in the arena over the dims of `over`, all strides 0. NULL when memory runs out. */
grid_dims *grid_create(arena *memory, const shape *over, size_t n_operands);
/* Sets the strides of an operand that is broadcast to the grid: right-aligned, 0 where its
 * dimension is 1. */
void grid_set_operand(grid_dims *g, size_t which, const lower_operand *what);
void grid_set_strides(grid_dims *g, size_t which, const int64_t *strides);
/* Drops dimensions of 1 and merges adjacent ones that are contiguous for every operand. The result
 * may have rank 0. */
void grid_collapse(grid_dims *g);
int64_t grid_n_elements(const grid_dims *g);
/* Returns whether this operand has the row-major strides. */
bool grid_is_dense(const grid_dims *g, size_t which);
/* Returns whether some element index or offset does not fit 31 bits. */
bool grid_needs_64_bits(const grid_dims *g);

/* Sets the NDRange of a step: pieces[i] of work in groups of local[i] (NULL: 1), limited to what
 * the device accepts in one dimension; kernels stride over the rest. */
void grid_range(lower_context *c, step *s, uint32_t n_dims, const int64_t *pieces,
                const uint64_t *local);
/* Returns the work-items of a group: 1 in the SIMD class, else 128, or as many as the device
 * allows. */
uint64_t grid_local(const lower_context *c);
/* Sets the NDRange of n pieces in such groups. */
void grid_range_1d(lower_context *c, step *s, int64_t n);
/* Sets the NDRange of n_rows rows of `inner` elements, in n_inner pieces each: groups are at most
 * as long as rows. */
void grid_range_rows(lower_context *c, step *s, int64_t inner, int64_t n_inner, int64_t n_rows);
/* Adds an index argument of the width that P_INDEX says. */
void grid_arg(lower_context *c, step *s, bool wide_index, int64_t number);

#endif
