/* SPDX-License-Identifier: Apache-2.0
 *
 * Computes the index spaces of element-wise kernels: merges adjacent dimensions that are contiguous
 * for all operands, and sets NDRanges within the limits of the device.
 */
#ifndef CLG_OPS_GRID_H
#define CLG_OPS_GRID_H

#include "ops/core/op.h"

/* The operator Tile splits each dimension in two, and lowering may add one. */
#define GRID_MAX_RANK (2 * CLG_MAX_RANK + 2)

/* An index space: its dimensions, and each operand's strides along them, in elements. */
typedef struct grid_dims {
    int rank;
    int64_t dims[GRID_MAX_RANK];
    size_t n_operands;
    int64_t (*strides)[GRID_MAX_RANK]; /* [n_operands] */
} grid_dims;

/* Returns a grid with the dimensions of `over` and all strides 0, in the arena. NULL when memory
 * runs out. */
grid_dims *grid_create(arena *memory, const shape *over, size_t n_operands);
/* Sets the strides of an operand that is broadcast to the grid as in numpy: its dimensions are
 * right-aligned, with stride 0 where a dimension is 1 or absent. */
void grid_set_operand(grid_dims *g, size_t which, const lower_operand *what);
/* Sets the strides of an operand, one per dimension of the grid. */
void grid_set_strides(grid_dims *g, size_t which, const int64_t *strides);
/* Drops dimensions of 1 and merges adjacent ones that are contiguous for every operand. The result
 * may have rank 0. */
void grid_collapse(grid_dims *g);
/* Returns the number of elements of the index space. */
int64_t grid_n_elements(const grid_dims *g);
/* Returns whether this operand is stored contiguously in row-major order of the grid. */
bool grid_is_dense(const grid_dims *g, size_t which);
/* Returns whether an element index or an offset exceeds half of the range of int32, so that kernels
 * need 64-bit indices. */
bool grid_needs_64_bits(const grid_dims *g);

/* Returns the work-group size for element-wise kernels: 1 in the SIMD class, else 128, or as many
 * as the device allows. */
uint64_t grid_local(const lower_context *c);
/* Sets a one-dimensional NDRange for n pieces of work, in work-groups of grid_local. */
void grid_range_1d(lower_context *c, step *s, int64_t n);
/* Sets the NDRange for n_rows rows of `inner` elements, each processed in n_inner pieces. A
 * work-group covers at most one row's length and the rest of its work-items cover adjacent rows. */
void grid_range_rows(lower_context *c, step *s, int64_t inner, int64_t n_inner, int64_t n_rows);
/* Adds an index argument: long if wide_index (P_INDEX=64), else int. */
void grid_arg(lower_context *c, step *s, bool wide_index, int64_t number);

#endif
