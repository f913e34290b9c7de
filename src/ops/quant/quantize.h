/* SPDX-License-Identifier: Apache-2.0
 *
 * Quantisation, as a part of operators.
 */
#ifndef CLG_OPS_QUANTIZE_H
#define CLG_OPS_QUANTIZE_H

#include "ops/core/op.h"

/* Checks that an input, say a scale or a zero point, is one number or one for each of n, as far as
 * both are known. 0 stands for an input that the operator lacks. */
clg_status quantize_check_list(const op_context *c, uint32_t input, int64_t n, const char *what);
/* Appends to a candidate what DynamicQuantizeLinear does: x [n] of float32 to y [n] of uint8,
 * with the scale (float32) and the zero point (uint8) that it finds. */
void quantize_append_dynamic(lower_context *c, candidate *impl, operand x, int64_t n, operand y,
                             operand scale, operand zero);

#endif
