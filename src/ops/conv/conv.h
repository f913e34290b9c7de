/* SPDX-License-Identifier: Apache-2.0
 *
 * Adds the candidates of a convolution: every implementation that can compute it on this device.
 */
#ifndef CLG_OPS_CONV_H
#define CLG_OPS_CONV_H

#include "ops/conv/conv_desc.h"

clg_status conv_add(lower_context *c, const conv_job *j);

#endif
