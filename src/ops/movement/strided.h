/* SPDX-License-Identifier: Apache-2.0
 *
 * Strided copies, on the device and, for shape arithmetic, on the host: the common mechanism of
 * operators that move elements.
 */
#ifndef CLG_OPS_STRIDED_H
#define CLG_OPS_STRIDED_H

#include "ops/lowering/grid.h"
#include "tensor/tensor.h"

/* Operands of the grid. */
#define STRIDED_FROM 0
#define STRIDED_TO 1

/* Returns a grid of two operands with these dimensions, and strides to be set by the caller. NULL
 * when memory runs out. */
grid_dims *strided_grid(arena *memory, int rank, const int64_t *dims);
/* Appends the step that copies along the grid, which it collapses; nothing for an empty grid. No
 * two positions may have the same destination. offset_elems of the operands count elements of
 * `dtype`. */
void strided_copy(lower_context *c, candidate *to, grid_dims *g, operand source,
                  operand destination, clg_dtype dtype);
/* As strided_copy, on the host, for elements of element_bytes. */
void strided_copy_host(const grid_dims *g, size_t element_bytes, const void *source,
                       void *destination);

/* ---- operators that rearrange input 0 -------------------------------------------------------- */

/* Input and result of a walk function: the grid over positions of the output in any order, and
 * where it starts in the input. Dims of the grid may be finer than those of the output (Tile,
 * DepthToSpace). */
typedef struct strided_walk {
    const node *node;
    const shape *in, *out;
    const int64_t *in_strides;
    const tensor *const *known; /* contents of the node's inputs, NULL where not known */
    size_t n_known;
    grid_dims *grid;
    int64_t offset_elems;
} strided_walk;

/* op_row.param of a row whose eval and lower are strided_eval and strided_lower. */
typedef struct strided_op {
    const char *variant;
    clg_status (*walk)(strided_walk *w);
} strided_op;

/* Appends a dimension of n positions to the grid, with input stride `from` and output stride
 * `to`. */
void strided_add_dim(strided_walk *w, int64_t n, int64_t from, int64_t to);
/* Sets the content of input i as integers and returns their number; 0 if it is unknown or
 * absent. */
size_t strided_known_ints(const strided_walk *w, size_t i, int64_t out_values[OP_MAX_INTS]);

clg_status strided_eval(op_context *c, tensor **out_tensors);
/* Makes a view where the grid is that of the output and reading it in place costs no more than a
 * copy; else a copy. */
clg_status strided_lower(lower_context *c);

#endif
