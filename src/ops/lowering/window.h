/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads and checks the sliding window of convolutions and pooling: kernel, strides, dilations and
 * padding along one to three axes; infers output shapes.
 */
#ifndef CLG_OPS_WINDOW_H
#define CLG_OPS_WINDOW_H

#include "ops/core/op.h"

#define WINDOW_MAX_AXES 3

/* The window along one axis. */
typedef struct window_axis {
    int64_t in, out; /* lengths; DIM_UNKNOWN in shape inference if unknown */
    int64_t kernel, stride, dilation;
    int64_t pad_begin, pad_end; /* explicit or computed from auto_pad, where `in` is known */
} window_axis;

/* A window of n_axes axes. */
typedef struct window_desc {
    int n_axes;
    window_axis axes[WINDOW_MAX_AXES];
} window_desc;

/* The words of auto_pad; ends with NULL. */
extern const char *const window_auto_pads[];
/* The attributes of a window, for the attribute tables of the operator table. */
#define WINDOW_ATTRIBUTES(needs_kernel)                                                            \
    {"auto_pad", ATTRIBUTE_STRING, false, OP_WORDS(window_auto_pads)},                             \
        {"dilations", ATTRIBUTE_INTS, false, OP_SIZE},                                             \
        {"kernel_shape", ATTRIBUTE_INTS, needs_kernel, OP_SIZE},                                   \
        {"pads", ATTRIBUTE_INTS, false, OP_PADDING}, {"strides", ATTRIBUTE_INTS, false, OP_SIZE},
/* Checks what domains do not: that kernel_shape has at most WINDOW_MAX_AXES axes. */
clg_status window_check(const node *n);
/* Reads the attributes for an input of shape `in`, [N, C, axes...], of known rank. kernel: shape of
 * the weight, [M, C/group, axes...], which has the kernel's size if the attribute kernel_shape is
 * absent; NULL: the attribute is required. Errors, which name the node: SHAPE, INVALID_MODEL,
 * UNSUPPORTED_ATTRIBUTE. */
clg_status window_read(const node *n, const shape *in, const shape *kernel,
                       window_desc *out_window);
/* Like window_read, for a convolution of x with weight w; checks also that their ranks are equal
 * and that their channels match the attribute group. */
clg_status window_read_conv(const op_context *c, const shape *x, const shape *w,
                            window_desc *out_window);
/* Checks that the bias in this input, if it is present, is [channels], as far as both are known. */
clg_status window_check_bias(const op_context *c, size_t input, int64_t channels);
/* Sets the shape of the output: [batch, channels, outputs...]. */
void window_shape(const window_desc *w, int64_t batch, int64_t channels, shape *out_shape);
/* Returns the extent along an axis, in input pixels including padding, that `outputs` adjacent
 * outputs read. */
int64_t window_seen(const window_axis *a, int64_t outputs);
/* Converts a shape [N, axes..., C] to [N, C, axes...]. */
shape window_channels_first(const shape *dims);
/* Converts a shape [N, C, axes...] to [N, axes..., C]. */
shape window_channels_last(const shape *dims);
/* Expands the axes to three, W last, with leading axes of length 1. Only for known sizes. */
void window_fill(const window_desc *w, window_axis out_axes[WINDOW_MAX_AXES]);
/* Return the number of input pixels, output pixels and kernel elements over three axes as set by
 * window_fill. */
int64_t window_count_in(const window_axis *axes);
int64_t window_count_out(const window_axis *axes);
int64_t window_count_taps(const window_axis *axes);
/* Adds the 18 arguments for CONV_SIZES_PARAMS in cl/common/conv.clh. */
void window_args(step_builder *b, step *s, const window_axis *axes);

#endif
