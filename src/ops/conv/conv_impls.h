/* SPDX-License-Identifier: Apache-2.0
 *
 * What the implementations of a convolution share, and each of them: a function that offers the
 * node a candidate, or several, or none where it cannot compute the convolution.
 */
#ifndef CLG_OPS_CONV_IMPLS_H
#define CLG_OPS_CONV_IMPLS_H

#include "ops/conv/conv_desc.h"

/* True where each group has one input channel and few output channels. With more output channels
 * for each input channel the tiled kernels share what they load. */
bool conv_is_depthwise(const conv_job *j);
/* Adds x, the weights and y, with the numbers of elements from one image to the next. */
void conv_image_args(step_builder *b, step *s, const conv_job *j, operand weight);

/* float32 and float16. */
void conv_add_simd(lower_context *c, const conv_job *j);
void conv_add_depthwise_simd(lower_context *c, const conv_job *j);
void conv_add_simt(lower_context *c, const conv_job *j);
/* Any dtype; the last resort. */
void conv_add_direct(lower_context *c, const conv_job *j);

#endif
