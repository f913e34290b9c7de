/* SPDX-License-Identifier: Apache-2.0
 *
 * Convolutions over maps in blocks of channels: cl/conv_blocked.cl.
 */
#ifndef CLG_OPS_CONV_BLOCKED_H
#define CLG_OPS_CONV_BLOCKED_H

#include "ops/conv.h"

/* The largest window that these kernels take, in input pixels in each direction, and the largest stride. */
#define BLOCKED_MOST_SIDE 16
#define BLOCKED_MOST_STRIDE 4

/* The shape of a map in blocks of channels, [N, ceil(C / lanes), H, W, lanes], in NCHW order, with all lanes of its last block;
 * others as they are. And back, from NCHW order. */
shape conv_blocked_flat(const shape *x);
shape conv_blocked_shape(const shape *flat, int64_t lanes);
/* Adds the candidate with its cost. j: of one group, dtype float32, two axes; input_is_blocked: or it is in NCHW order. Its maps may
 * be too large: an error of the node. */
clg_status conv_blocked_add(lower_context *c, const conv_job *j, bool input_is_blocked);
/* The same for as many groups as channels, ic = oc = 1, of an input in blocks: cl/conv_depthwise_blocked.cl. */
clg_status conv_blocked_add_depthwise(lower_context *c, const conv_job *j);

#endif
