/* SPDX-License-Identifier: Apache-2.0
 *
 * Shape inference of numpy's matrix product, for MatMul, MatMulInteger and QLinearMatMul.
 */
#ifndef CLG_OPS_MATMUL_SHAPE_H
#define CLG_OPS_MATMUL_SHAPE_H

#include "ops/core/op.h"

/* Returns the shape of the matrix that an operand stands for: a vector of length k is [1, k] on the
 * left and [k, 1] on the right; other shapes are returned unchanged. */
shape matmul_as_matrix(const shape *x, bool is_left);
/* Returns all dimensions except the last two. */
shape matmul_leading(const shape *x);
/* Infers the shape of the product. x and w: the operands' shapes; a and b: the same as matrices,
 * from matmul_as_matrix, perhaps transposed. Errors (SHAPE) name the node. */
clg_status matmul_shape(const op_context *c, const shape *x, const shape *a, const shape *w,
                        const shape *b, shape *out);

#endif
