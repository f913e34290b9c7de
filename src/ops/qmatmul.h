/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of 8-bit matrices for operators of which one is a part.
 */
#ifndef CLG_OPS_QMATMUL_H
#define CLG_OPS_QMATMUL_H

#include "ops/op.h"

typedef enum qmatmul_result { TO_SUMS, TO_BYTES, TO_FLOAT } qmatmul_result;

/* Where the inputs of an operator stand. */
typedef struct qmatmul_inputs {
    uint32_t a, b, a_zero, b_zero, a_scale, b_scale, y_scale, y_zero, bias;
    qmatmul_result result;
} qmatmul_inputs;

/* Scales and zero points of A [m, k] and B [k, n], and the bias, are one number or as many as there are rows or columns;
 * unknown dimensions fit. */
clg_status qmatmul_check_lists(op_context *c, const qmatmul_inputs *at, int64_t m, int64_t n);
/* Appends y = (a - a_zero) x (b - b_zero) * (a_scale * b_scale) + bias in float32; y is dense, of these dims. */
clg_status qmatmul_append_float(lower_context *c, candidate *way, const qmatmul_inputs *at,
                                operand y, const shape *dims);

#endif
