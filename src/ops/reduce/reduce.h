/* SPDX-License-Identifier: Apache-2.0
 *
 * Appends sums over some axes to the candidates of operators.
 */
#ifndef CLG_OPS_REDUCE_H
#define CLG_OPS_REDUCE_H

#include "ops/core/op.h"

/* Appends the sums of input 0 over the axes in `reduced` to a candidate, which writes them to
 * scratch memory: dense, with the kept axes in order. Their dtype is float32, float64 (for
 * float64), int64 or uint64; integer sums are exact up to overflow of 64 bits. */
clg_status reduce_append_sum(lower_context *c, candidate *to, const bool reduced[CLG_MAX_RANK],
                             operand *out_sums, clg_dtype *out_dtype);
/* The same for x, described by `in`, with sums of x's dtype, which are written densely to y. */
clg_status reduce_append_sum_to(lower_context *c, candidate *to, const lower_operand *in, operand x,
                                const bool reduced[CLG_MAX_RANK], operand y);

#endif
