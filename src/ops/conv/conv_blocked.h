/* SPDX-License-Identifier: Apache-2.0
 *
 * Candidates for convolutions over channel-blocked feature maps ([N, C / lanes, H, W, lanes], where
 * lanes are the elements of a vector of the device): cl/conv/conv_blocked.cl,
 * cl/conv/conv_depthwise_blocked.cl and cl/conv/conv_expand_blocked.cl.
 */
#ifndef CLG_OPS_CONV_BLOCKED_H
#define CLG_OPS_CONV_BLOCKED_H

#include "ops/conv/conv_desc.h"

/* Limits of these kernels: the extent of a window in each direction, (kernel - 1) * dilation + 1
 * input pixels, and the stride. */
#define BLOCKED_MAX_SIDE 16
#define BLOCKED_MAX_STRIDE 4
#define BLOCKED_NRV 2 /* P_NRV: blocks of output channels in a register tile */

/* Inputs of a BlockedConv that includes a preceding 1x1 convolution, and the values of its
 * attribute `activated`, which says whose result the activation applies to. */
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
 * j: one group, float32, two spatial axes. input_is_blocked: x is channel-blocked; otherwise x is
 * in NCHW order. */

/* Adds the candidate conv_blocked with its estimated cost. Feature maps that are too large are an
 * error (SHAPE) that names the node.
 */
clg_status conv_blocked_add(lower_context *c, const conv_job *j, bool input_is_blocked);
/* Appends the steps of the convolution to a candidate and adds its estimated cost. Errors as for
 * conv_blocked_add. */
clg_status conv_blocked_append(lower_context *c, candidate *impl, const conv_job *j,
                               bool input_is_blocked);
/* Appends the packing of the weights and returns the packed operand. */
operand conv_blocked_weights(lower_context *c, candidate *impl, const conv_job *j,
                             bool input_is_blocked);

/* ---- depthwise ----------------------------------------------------------------------------------
 * j: as many groups as channels, ic = oc = 1, channel-blocked input. conv_depthwise_blocked_weights
 * appends the packing of the weights and returns the packed operand. */

void conv_depthwise_blocked_append(lower_context *c, candidate *impl, const conv_job *j);
operand conv_depthwise_blocked_weights(lower_context *c, candidate *impl, const conv_job *j);

/* ---- a 1x1 convolution followed by a depthwise convolution --------------------------------------
 * Adds two candidates: one fused kernel, and two kernels. point: the 1x1 convolution,
 * channel-blocked input, no residual; depthwise: reads the output of point, no residual. The
 * epilogues have the same activation, or at most one of them has an activation. */
clg_status conv_expand_blocked_add(lower_context *c, const conv_job *point,
                                   const conv_job *depthwise);

/* ---- helpers of the channel-blocked implementations ------------------------------------------ */

/* conv_blocked_size_args adds the kernels' arguments ih, iw, ... ph, pw; conv_blocked_map_args adds
 * these and then the buffers of x, the packed weights and y. */
void conv_blocked_size_args(step_builder *b, step *s, const window_axis *h, const window_axis *w);
void conv_blocked_map_args(step_builder *b, step *s, const conv_job *j, const window_axis *h,
                           const window_axis *w, operand weights);

#endif
