/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies between strided places, on the device and, for shape arithmetic, on the host: what operators that move
 * data are made of.
 */
#ifndef CLG_OPS_STRIDED_H
#define CLG_OPS_STRIDED_H

#include "ops/grid.h"

/* Operands of the grid. */
#define STRIDED_FROM 0
#define STRIDED_TO 1

/* A grid of two operands over dims given one by one; strides start at 0. NULL when memory is short. */
grid *strided_grid(arena *memory, int rank, const int64_t *dims);
/* Appends the step that copies along the grid, which it collapses. Places along which the destination's stride is
 * 0 are written once. offset_elems of the operands count elements of `dtype`. */
void strided_copy(lower_context *c, candidate *to, grid *g, operand source, operand destination, clg_dtype dtype);
/* The same on the host. Elements are of element_bytes. */
void strided_copy_host(const grid *g, size_t element_bytes, const void *source, void *destination);

/* eval of an operator whose output 0 is input 0 rearranged: `place` gives the grid over the output and where in the
 * input it starts. */
clg_status strided_eval(const tensor *from, const grid *g, int64_t offset_elems, clg_dtype dtype, const shape *dims,
                        tensor **out_tensor);

#endif
