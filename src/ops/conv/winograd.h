/* SPDX-License-Identifier: Apache-2.0
 *
 * Adds the candidates of 3x3 convolutions by Winograd's minimal filtering, for CPUs. Kernel:
 * cl/conv/winograd_simd.cl.
 */
#ifndef CLG_OPS_WINOGRAD_H
#define CLG_OPS_WINOGRAD_H

#include "ops/conv/conv_desc.h"

/* Adds candidates for F(2x2, 3x3) and F(4x4, 3x3), each with its estimated cost, where the
 * convolution and the device allow them. */
void winograd_add(lower_context *c, const conv_job *j);

#endif
