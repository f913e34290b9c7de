/* SPDX-License-Identifier: Apache-2.0
 *
 * The sliding window of convolutions and pools: kernel, strides, dilations and padding along one to
 * three axes.
 */
#ifndef CLG_OPS_WINDOW_H
#define CLG_OPS_WINDOW_H

#include "ops/core/op.h"

#define WINDOW_MAX_AXES 3

typedef struct window_axis {
    int64_t in, out; /* sizes; DIM_UNKNOWN while a graph is only looked at */
    int64_t kernel, stride, dilation;
    int64_t pad_begin, pad_end; /* with SAME paddings worked out, where `in` is known */
} window_axis;

typedef struct window_desc {
    int n_axes;
    window_axis axes[WINDOW_MAX_AXES];
} window_desc;

/* Checks attributes independently of shapes: values in range, auto_pad a known word, not too many
 * axes. */
clg_status window_check(const node *n);
/* The same, and the number of groups of a convolution. */
clg_status window_check_conv(const node *n);
/* Reads the attributes for an input of shape `in` ([N, C, axes...], rank known). `kernel`: [M,
 * C/group, axes...] of a weight that gives the kernel's size where the attribute does not; NULL:
 * the attribute must. Errors name the node: SHAPE, INVALID_MODEL or UNSUPPORTED_ATTRIBUTE. */
clg_status window_read(const node *n, const shape *in, const shape *kernel,
                       window_desc *out_window);
/* The same for a convolution of x with w: equal ranks, and channels that fit attribute group. */
clg_status window_read_conv(const op_context *c, const shape *x, const shape *w,
                            window_desc *out_window);
/* Checks that the bias in this input, if there is one, has a number for each output channel, as
 * far as both are known. */
clg_status window_check_bias(const op_context *c, size_t input, int64_t channels);
/* [N, channels, outputs...]. */
void window_shape(const window_desc *w, int64_t batch, int64_t channels, shape *out_shape);
/* Returns the pixels of the input, padding included, that `outputs` adjacent outputs read. */
int64_t window_seen(const window_axis *a, int64_t outputs);
/* Convert the dims of a channels-last tensor to [N, C, axes...], and back. */
shape window_channels_first(const shape *dims);
shape window_channels_last(const shape *dims);
/* Sets the axes as three, W last, with leading ones. Only for known sizes. */
void window_fill(const window_desc *w, window_axis out_axes[WINDOW_MAX_AXES]);
/* Return the pixels of the input and of the output, and the elements of the kernel, over three axes
 * as set by window_fill. */
int64_t window_count_in(const window_axis *axes);
int64_t window_count_out(const window_axis *axes);
int64_t window_count_taps(const window_axis *axes);
/* Adds the 18 arguments of CONV_SIZES in cl/common/conv.clh. */
void window_args(step_builder *b, step *s, const window_axis *axes);

#endif
