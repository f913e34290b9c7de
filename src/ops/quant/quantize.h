/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks scales and zero points, and appends dynamic quantization to other operators' candidates.
 */
#ifndef CLG_OPS_QUANTIZE_H
#define CLG_OPS_QUANTIZE_H

#include "ops/core/op.h"

/* Checks that an input, such as a scale or a zero point, is a scalar or has n entries, as far as
 * its shape and n are known. input 0 stands for an input that the operator does not have. `what`
 * names it in the error message. */
clg_status quantize_check_list(const op_context *c, uint32_t input, int64_t n, const char *what);
/* Appends DynamicQuantizeLinear to a candidate: quantizes x, n float32, to y, n uint8, and writes
 * the scale (float32) and the zero point (uint8) that it computes from the range of x. */
void quantize_append_dynamic(lower_context *c, candidate *impl, operand x, int64_t n, operand y,
                             operand scale, operand zero);

#endif
