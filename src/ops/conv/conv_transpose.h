/* SPDX-License-Identifier: Apache-2.0
 *
 * What ConvTranspose shares with the gradients of convolutions. Padding, strides and dilations of a
 * window_axis are as in a convolution, but `in` is the number of windows, which are summed to `out`
 * pixels.
 */
#ifndef CLG_OPS_CONV_TRANSPOSE_H
#define CLG_OPS_CONV_TRANSPOSE_H

#include "ops/conv/conv_desc.h"

/* The attributes of ConvTranspose, for the attribute tables of the operator table. */
#define CONV_TRANSPOSE_ATTRIBUTES                                                                  \
    CONV_ATTRIBUTES{"output_padding", ATTRIBUTE_INTS, false, OP_PADDING},                          \
        {"output_shape", ATTRIBUTE_INTS, false, OP_PADDING},

/* Reads the axes of a ConvTranspose of x [N, C, axes...] with weight w [C, M/group, axes...].
 * Errors, which name the node: SHAPE. */
clg_status conv_transpose_read(const node *n, const shape *x, const shape *w, window_desc *out);
/* Sets the shape of its output, and checks that channels match. */
clg_status conv_transpose_shape(const op_context *c, const shape *x, const shape *w, shape *out);
/* Adds candidates that compute output 0 from inputs 0 and 1, the windows and the weight. a: from
 * window_fill. bias: index of the input; 0 for none. together: the images whose windows are in
 * memory at once; 0 for all. */
clg_status conv_transpose_add(lower_context *c, const window_axis *a, uint32_t bias,
                              int64_t together);

#endif
