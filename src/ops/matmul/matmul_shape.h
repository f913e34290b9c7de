/* SPDX-License-Identifier: Apache-2.0
 *
 * Infers the shapes of numpy's matmul, which MatMul, MatMulInteger and QLinearMatMul follow.
 */
#ifndef CLG_OPS_MATMUL_SHAPE_H
#define CLG_OPS_MATMUL_SHAPE_H

#include "ops/core/op.h"

/* Returns the shape of the matrix that an operand stands for: a vector of length k is [1, k] on the
 * left and [k, 1] on the right; other shapes are returned unchanged. */
shape matmul_as_matrix(const shape *x, bool is_left);
/* Returns the batch dimensions: all but the last two. */
shape matmul_leading(const shape *x);
/* Sets the shape of the product. x and w: the shapes of the operands; a and b: the same as
 * matrices, from matmul_as_matrix, and transposed where the operator transposes. SHAPE, with a
 * message that names the node, if the operands do not fit. */
clg_status matmul_shape(const op_context *c, const shape *x, const shape *a, const shape *w,
                        const shape *b, shape *out);

#endif
