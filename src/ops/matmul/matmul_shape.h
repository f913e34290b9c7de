/* SPDX-License-Identifier: Apache-2.0
 *
 * Shapes of numpy's matrix product, as MatMul and its relatives of 8-bit integers have them.
 */
#ifndef CLG_OPS_MATMUL_SHAPE_H
#define CLG_OPS_MATMUL_SHAPE_H

#include "ops/core/op.h"

/* A vector as the row or column that it stands for; other shapes as they are. */
shape matmul_as_matrix(const shape *x, bool is_left);
/* The dimensions but the last two. */
shape matmul_leading(const shape *x);
/* Computes the shape of the product of operands of shapes x and w, which the matrix product reads
 * as a and b (matmul_as_matrix, perhaps transposed). */
clg_status matmul_shape(const op_context *c, const shape *x, const shape *a, const shape *w,
                        const shape *b, shape *out);

#endif
