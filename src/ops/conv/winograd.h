/* SPDX-License-Identifier: Apache-2.0
 *
 * Adds the candidates of convolutions by Winograd's minimal filtering, for CPUs. Kernel:
 * cl/conv/winograd_simd.cl.
 */
#ifndef CLG_OPS_WINOGRAD_H
#define CLG_OPS_WINOGRAD_H

#include "ops/conv/conv_desc.h"

/* Adds candidates, each with its estimated cost, where the convolution and the device allow them:
 * for windows of 3x3 with stride 1, and for windows of 5x5 to 8x8 with stride 2 where x is in NCHW
 * order. input_is_blocked: x is channel-blocked. */
void winograd_add(lower_context *c, const conv_job *j, bool input_is_blocked);

#endif
