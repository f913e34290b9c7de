/* SPDX-License-Identifier: Apache-2.0
 *
 * Strided copies on the device and, for the evaluation of shape arithmetic, on the host; operators
 * that only move elements are implemented by them.
 */
#ifndef CLG_OPS_STRIDED_H
#define CLG_OPS_STRIDED_H

#include "ops/lowering/grid.h"
#include "tensor/tensor.h"

/* Indices of the grid's two operands (grid_dims.strides). */
#define STRIDED_FROM 0
#define STRIDED_TO 1

/* Returns a grid with these dimensions and two operands, whose strides the caller sets. NULL when
 * memory runs out. */
grid_dims *strided_grid(arena *memory, int rank, const int64_t *dims);
/* Appends the step that copies along the grid, which is collapsed by the call; appends nothing for
 * an empty grid. Different positions of the grid must have different destinations. offset_elems of
 * the operands is in elements of `dtype`. */
void strided_copy(lower_context *c, candidate *to, grid_dims *g, operand source,
                  operand destination, clg_dtype dtype);
/* The same on the host, for elements of element_bytes bytes. */
void strided_copy_host(const grid_dims *g, size_t element_bytes, const void *source,
                       void *destination);

/* ---- operators that rearrange input 0 -------------------------------------------------------- */

/* Input and result of a walk function, which describes how output positions map to input elements:
 * a grid over all positions of the output in any order, and the input offset of its origin. An
 * output dimension may be several dimensions of the grid (Tile, DepthToSpace). */
typedef struct strided_walk {
    const node *node;
    const shape *in, *out;
    const int64_t *in_strides;
    const tensor *const *known; /* values of the node's inputs, NULL where not known */
    size_t n_known;
    grid_dims *grid;
    int64_t offset_elems;
} strided_walk;

/* op_row.param of an operator whose eval and lower functions are strided_eval and strided_lower. */
typedef struct strided_op {
    const char *variant;
    clg_status (*walk)(strided_walk *w);
} strided_op;

/* Appends a dimension of n positions to the grid, with input stride `from` and output stride
 * `to`. */
void strided_add_dim(strided_walk *w, int64_t n, int64_t from, int64_t to);
/* Sets out_values to the values of input i and returns their number; 0 if they are unknown or the
 * input is absent. */
size_t strided_known_ints(const strided_walk *w, size_t i, int64_t out_values[OP_MAX_INTS]);

clg_status strided_eval(op_context *c, tensor **out_tensors);
/* Lowers to a view if the grid's dimensions are those of the output and the input's elements can be
 * read in place as fast as a copy of them; else to a copy. */
clg_status strided_lower(lower_context *c);

#endif
