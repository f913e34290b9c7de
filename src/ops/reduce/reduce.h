/* SPDX-License-Identifier: Apache-2.0
 *
 * Appends sums to the candidates of operators.
 */
#ifndef CLG_OPS_REDUCE_H
#define CLG_OPS_REDUCE_H

#include "ops/core/op.h"

/* Appends to a candidate the sums of input 0 over some axes, into scratch memory: dense, in the
 * order of the kept axes. Their dtype is float32 or float64 for floats, int64 or uint64 for
 * integers, whose sums are exact. */
clg_status reduce_append_sum(lower_context *c, candidate *to, const bool reduced[CLG_MAX_RANK],
                             operand *out_sums, clg_dtype *out_dtype);
/* As reduce_append_sum, but sums x, described by `in`, into y: dense, of x's dtype. */
clg_status reduce_append_sum_to(lower_context *c, candidate *to, const lower_operand *in, operand x,
                                const bool reduced[CLG_MAX_RANK], operand y);

#endif
