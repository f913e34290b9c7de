/* SPDX-License-Identifier: Apache-2.0
 *
 * Declares the implementations of a convolution. Each conv_add_* function adds one or more
 * candidates for the node, or none if the implementation cannot compute the convolution.
 */
#ifndef CLG_OPS_CONV_IMPLS_H
#define CLG_OPS_CONV_IMPLS_H

#include "ops/conv/conv_desc.h"

/* Returns whether each group has one input channel and at most four output channels. With more
 * output channels per input channel the tiled kernels are used, which load each input pixel once
 * for all of them. */
bool conv_is_depthwise(const conv_job *j);
/* Adds the arguments x, its elements per image, the weights, y, its elements per image. */
void conv_image_args(step_builder *b, step *s, const conv_job *j, operand weight);
/* Where weights that are to be packed are: the first one, and the strides, in elements, of groups,
 * output channels, input channels and taps. */
typedef struct conv_weight_strides {
    operand first;
    int64_t by_group, by_output, by_input, by_tap;
} conv_weight_strides;

conv_weight_strides conv_weight_strides_of(const conv_job *j);

/* Tiled implementations, for float32 and float16: *_simd for CPUs, *_simt for GPUs. */
void conv_add_simd(lower_context *c, const conv_job *j);
void conv_add_depthwise_simd(lower_context *c, const conv_job *j);
void conv_add_simt(lower_context *c, const conv_job *j);
/* Adds the direct implementation: any dtype, used as the last resort. */
void conv_add_direct(lower_context *c, const conv_job *j);

#endif
