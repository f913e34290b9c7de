/* SPDX-License-Identifier: Apache-2.0
 *
 * The implementations of a convolution: each function adds one candidate or several for the node,
 * or none if it cannot compute the convolution; and helpers that they share.
 */
#ifndef CLG_OPS_CONV_IMPLS_H
#define CLG_OPS_CONV_IMPLS_H

#include "ops/conv/conv_desc.h"

/* Returns whether each group has one input channel and few output channels. With more output
 * channels per input channel the tiled kernels share what they load. */
bool conv_is_depthwise(const conv_job *j);
/* Adds the arguments x, weights and y, each with the number of elements of an image. */
void conv_image_args(step_builder *b, step *s, const conv_job *j, operand weight);

/* float32 and float16. */
void conv_add_simd(lower_context *c, const conv_job *j);
void conv_add_depthwise_simd(lower_context *c, const conv_job *j);
void conv_add_simt(lower_context *c, const conv_job *j);
/* Adds the direct implementation: any dtype, used as the last resort. */
void conv_add_direct(lower_context *c, const conv_job *j);

#endif
