/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks scales and zero points, and appends DynamicQuantizeLinear to other operators' candidates.
 */
#ifndef CLG_OPS_QUANTIZE_H
#define CLG_OPS_QUANTIZE_H

#include "ops/core/op.h"

/* Checks that an input, such as a scale or a zero point, is a scalar or has n values, as far as its
 * shape and n are known. `what` names it in the error message. Accepts input 0, which stands for an
 * input that the operator does not have. */
clg_status quantize_check_list(const op_context *c, uint32_t input, int64_t n, const char *what);
/* Appends DynamicQuantizeLinear to a candidate: quantizes n float32 elements of x to uint8 in y,
 * and writes scale (float32) and zero point (uint8), which it computes from the range of x. */
void quantize_append_dynamic(lower_context *c, candidate *impl, operand x, int64_t n, operand y,
                             operand scale, operand zero);

#endif
