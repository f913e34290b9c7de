/* SPDX-License-Identifier: Apache-2.0
 *
 * Adds the candidates of a convolution: the implementations that suit it and the device, in order
 * of preference (conv.c).
 */
#ifndef CLG_OPS_CONV_H
#define CLG_OPS_CONV_H

#include "ops/conv/conv_desc.h"

/* Adds the candidates of convolution j; which ones is described in conv.c. */
clg_status conv_add(lower_context *c, const conv_job *j);
/* Adds the candidates of the SIMD class that take a rotated weight; none for a convolution that is
 * a matrix product, depthwise or empty, or in float64. */
void conv_add_rotated(lower_context *c, const conv_job *j);

#endif
