/* SPDX-License-Identifier: Apache-2.0
 *
 * Convolutions over channel-blocked feature maps: cl/conv/conv_blocked.cl,
 * cl/conv/conv_depthwise_blocked.cl and cl/conv/conv_expand_blocked.cl.
 */
#ifndef CLG_OPS_CONV_BLOCKED_H
#define CLG_OPS_CONV_BLOCKED_H

#include "ops/conv/conv_desc.h"

/* The largest window that these kernels take, in input pixels in each direction, and the largest
 * stride. */
#define BLOCKED_MAX_SIDE 16
#define BLOCKED_MAX_STRIDE 4
#define BLOCKED_NRV 2 /* P_NRV: blocks of output channels that a register tile has */

/* Inputs of a BlockedConv with a preceding 1x1 convolution, and the values of its attribute
 * `activated`. */
enum { BLOCKED_EXPAND_WEIGHT = 4, BLOCKED_EXPAND_BIAS = 5 };
enum {
    BLOCKED_FIRST_ACTIVATED = 1,
    BLOCKED_LAST_ACTIVATED = 2,
    BLOCKED_BOTH_ACTIVATED = BLOCKED_FIRST_ACTIVATED | BLOCKED_LAST_ACTIVATED
};

/* Convert the shape of a channel-blocked feature map, [N, ceil(C / lanes), H, W, lanes], to NCHW
 * order, counting all lanes of its last block; other shapes are unchanged. conv_blocked_shape
 * converts back. */
shape conv_blocked_flat(const shape *x);
shape conv_blocked_shape(const shape *flat, int64_t lanes);

/* ---- one convolution ----------------------------------------------------------------------------
 * j: of one group, dtype float32, two axes; input_is_blocked: or it is in NCHW order. */

/* Adds a candidate with its cost. Reports feature maps that are too large as an error of the node.
 */
clg_status conv_blocked_add(lower_context *c, const conv_job *j, bool input_is_blocked);
/* Appends the convolution to a candidate. */
clg_status conv_blocked_append(lower_context *c, candidate *impl, const conv_job *j,
                               bool input_is_blocked);
operand conv_blocked_weights(lower_context *c, candidate *impl, const conv_job *j,
                             bool input_is_blocked);

/* ---- depthwise ----------------------------------------------------------------------------------
 * j: of as many groups as channels, ic = oc = 1, and an input in blocks. */

void conv_depthwise_blocked_append(lower_context *c, candidate *impl, const conv_job *j);
operand conv_depthwise_blocked_weights(lower_context *c, candidate *impl, const conv_job *j);

/* ---- a 1x1 convolution and the depthwise one after it ------------------------------------------
 * Adds two candidates: one kernel for both, and one for each. point: without a residual, its
 * input in blocks; depthwise: of its output, without a residual. The epilogues have the same
 * activation, or one of them has none. */
clg_status conv_expand_blocked_add(lower_context *c, const conv_job *point,
                                   const conv_job *depthwise);

/* ---- for these files ------------------------------------------------------------------------- */

/* Add the kernels' arguments ih to pw, and these with the buffers after them. */
void conv_blocked_size_args(step_builder *b, step *s, const window_axis *h, const window_axis *w);
void conv_blocked_map_args(step_builder *b, step *s, const conv_job *j, const window_axis *h,
                           const window_axis *w, operand weights);

#endif
