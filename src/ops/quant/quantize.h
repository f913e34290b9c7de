/* SPDX-License-Identifier: Apache-2.0
 *
 * Quantising for operators of which it is one part.
 */
#ifndef CLG_OPS_QUANTIZE_H
#define CLG_OPS_QUANTIZE_H

#include "ops/core/op.h"

/* Appends to a candidate what DynamicQuantizeLinear does: x [n] of float32 to y [n] of uint8,
 * with the scale (float32) and the zero point (uint8) that it finds. */
void quantize_append_dynamic(lower_context *c, candidate *impl, operand x, int64_t n, operand y,
                             operand scale, operand zero);

#endif
