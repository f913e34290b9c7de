/* SPDX-License-Identifier: Apache-2.0
 *
 * The gradients of Conv and ConvTranspose (op_conv_grad.c), for lowering and self-tests.
 */
#ifndef CLG_OPS_CONV_GRAD_H
#define CLG_OPS_CONV_GRAD_H

#include "ops/lowering/window.h"

/* op_row.param: which gradient it is, and of what. */
typedef struct conv_grad_op {
    bool is_transposed, is_filter;
} conv_grad_op;

/* The shapes of the forward convolution, g being that of its output: those of two inputs and of the
 * result. */
typedef struct conv_grad_roles {
    const shape *x, *w, *g;
} conv_grad_roles;

conv_grad_roles conv_grad_roles_of(const op_row *row, const shape *in0, const shape *in1,
                                   const shape *result);
/* Reads the axes of the forward convolution. `in` is the length of the larger map, whose pixels the
 * windows cover, and `out` the number of windows: of a ConvTranspose, the lengths of y and x. */
clg_status conv_grad_axes(const lower_context *c, window_axis a[WINDOW_MAX_AXES]);

#endif
