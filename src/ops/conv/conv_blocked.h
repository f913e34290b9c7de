/* SPDX-License-Identifier: Apache-2.0
 *
 * Adds the candidates of convolutions over channel-blocked feature maps, [N, ceil(C / lanes), H, W,
 * lanes], where `lanes` is the number of elements of the device's vectors. Kernels:
 * cl/conv/conv_blocked.cl, cl/conv/conv_depthwise_blocked.cl, cl/conv/conv_expand_blocked.cl and,
 * where a driver's compiler fails on these, cl/conv/conv_blocked_direct.cl.
 */
#ifndef CLG_OPS_CONV_BLOCKED_H
#define CLG_OPS_CONV_BLOCKED_H

#include "ops/conv/conv_desc.h"

/* Limits of these kernels: the extent of a window in each direction, (kernel - 1) * dilation + 1
 * input pixels, and the stride. */
#define BLOCKED_MAX_SIDE 16
#define BLOCKED_MAX_STRIDE 4
#define BLOCKED_NRV 2 /* P_NRV: blocks of output channels in a register tile */

/* Indices of the inputs of a BlockedConv for a fused preceding 1x1 convolution. */
enum { BLOCKED_EXPAND_WEIGHT = 4, BLOCKED_EXPAND_BIAS = 5 };
/* Indices of the inputs of a BlockedConv for a fused preceding scale and shift. */
enum { BLOCKED_SCALE = 6, BLOCKED_SHIFT = 7 };
/* Values of its attribute `activated`: the convolutions after which the activation is applied. */
enum {
    BLOCKED_FIRST_ACTIVATED = 1,
    BLOCKED_LAST_ACTIVATED = 2,
    BLOCKED_BOTH_ACTIVATED = BLOCKED_FIRST_ACTIVATED | BLOCKED_LAST_ACTIVATED
};

/* Converts the shape of a channel-blocked feature map, [N, blocks, H, W, lanes], to [N, blocks *
 * lanes, H, W]; returns other shapes unchanged. */
shape conv_blocked_flat(const shape *x);
/* Converts a shape [N, C, H, W] to [N, ceil(C / lanes), H, W, lanes]. */
shape conv_blocked_shape(const shape *flat, int64_t lanes);

/* ---- one convolution ----------------------------------------------------------------------------
 * j: one group, float32, two spatial axes. input_is_blocked: x is channel-blocked; otherwise x is
 * in NCHW order. */

/* Adds the candidate conv_blocked with its estimated cost. Returns SHAPE, with the node's name, if
 * a feature map is too large. */
clg_status conv_blocked_add(lower_context *c, const conv_job *j, bool input_is_blocked);
/* Appends the steps of the convolution to a candidate and adds its estimated cost. Errors as for
 * conv_blocked_add. */
clg_status conv_blocked_append(lower_context *c, candidate *impl, const conv_job *j,
                               bool input_is_blocked);
/* Appends the packing of the weights and returns the packed operand. */
operand conv_blocked_weights(lower_context *c, candidate *impl, const conv_job *j,
                             bool input_is_blocked);

/* ---- transposed ------------------------------------------------------------------------------ */

/* Returns whether a transposed convolution is one convolution for each phase
 * (op_convtranspose_blocked.c): two axes, dilations of 1, padding of at most the kernel less the
 * stride. Sizes of the kernel, strides and padding are known. */
bool conv_blocked_has_phases(const window_desc *w);

/* ---- depthwise ----------------------------------------------------------------------------------
 * j: as many groups as channels, ic = oc = 1, channel-blocked input. */

/* Appends the steps of the convolution to a candidate. */
void conv_depthwise_blocked_append(lower_context *c, candidate *impl, const conv_job *j);
/* Appends the packing of the weights and returns the packed operand. */
operand conv_depthwise_blocked_weights(lower_context *c, candidate *impl, const conv_job *j);

/* ---- a 1x1 convolution followed by a depthwise convolution --------------------------------------
 * Adds three candidates: one fused kernel, two kernels, and the last resort. point: the 1x1
 * convolution, channel-blocked input, no residual; depthwise: reads the output of point, no
 * residual. The epilogues have the same activation, or at most one of them has an activation. */
clg_status conv_expand_blocked_add(lower_context *c, const conv_job *point,
                                   const conv_job *depthwise);

/* ---- the last resort ----------------------------------------------------------------------------
 * Any of these convolutions, without tiles: conv_blocked_direct. */

/* Adds the candidate, without steps. */
candidate *conv_blocked_direct_start(lower_context *c);
/* Appends the steps of a convolution, of one group or depthwise, to a candidate. */
void conv_blocked_direct_append(lower_context *c, candidate *impl, const conv_job *j,
                                bool input_is_blocked);

/* ---- helpers of the channel-blocked implementations ------------------------------------------ */

/* Returns where the results and weights of j are: those of its phase, else of a whole convolution.
 */
conv_phase conv_blocked_places(const conv_job *j);
/* Adds the buffers of the prologue's scale and shift; y in their place if there is none. */
void conv_blocked_prologue_args(step_builder *b, step *s, const conv_job *j);

/* Adds the kernels' size arguments, ih, iw, ... ph, pw. */
void conv_blocked_size_args(step_builder *b, step *s, const window_axis *h, const window_axis *w);
/* Adds the size arguments, then the buffers of x, the packed weights and y. */
void conv_blocked_map_args(step_builder *b, step *s, const conv_job *j, const window_axis *h,
                           const window_axis *w, operand weights);

#endif
