/* SPDX-License-Identifier: Apache-2.0
 *
 * Declares the job of an 8-bit convolution (ConvInteger, QLinearConv), and the functions that its
 * implementations have in common.
 */
#ifndef CLG_OPS_QCONV_H
#define CLG_OPS_QCONV_H

#include "ops/lowering/window.h"

/* Indices of an operator's inputs; 0 for those that it does not have. */
typedef struct qconv_inputs {
    uint32_t x, w, x_zero, w_zero, x_scale, w_scale, y_scale, y_zero, bias;
} qconv_inputs;

/* A convolution of `batch` images over one to three axes, in `groups` groups. */
typedef struct qconv_job {
    const qconv_inputs *at;
    clg_dtype x_dtype, w_dtype, y_dtype;
    int64_t batch, groups, ic, oc; /* ic and oc: channels of one group */
    window_axis axes[WINDOW_MAX_AXES];
} qconv_job;

/* Adds the first arguments of all kernels except the depthwise one: batch, groups, ic, oc, and
 * those of window_args. */
void qconv_size_args(step_builder *b, step *s, const qconv_job *j);
/* Adds the last arguments of all kernels: QCONV_ARGS_LAST of cl/quant/qconv.clh. */
void qconv_last_args(lower_context *c, step *s, const qconv_job *j);
/* Returns the number of integer operations of a direct convolution: 2 per multiply-add. */
double qconv_flops(const qconv_job *j);

/* Adds candidates for CPUs (cl/quant/qconv_simd.cl), one per kind of dot product (lowering/dot.h):
 * the kinds that are fast on this device if `fast`, else the other kinds. Results are
 * bit-identical. */
void qconv_simd_add(lower_context *c, const qconv_job *j, bool fast);
/* Adds candidates for GPUs (cl/quant/qconv_simt.cl). */
void qconv_simt_add(lower_context *c, const qconv_job *j);

#endif
