/* SPDX-License-Identifier: Apache-2.0
 *
 * Lowering of a convolution: adds all candidates for a node.
 */
#ifndef CLG_OPS_CONV_H
#define CLG_OPS_CONV_H

#include "ops/conv/conv_desc.h"

clg_status conv_add(lower_context *c, const conv_job *j);

#endif
