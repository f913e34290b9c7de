/* SPDX-License-Identifier: Apache-2.0
 *
 * Convolutions of 8-bit integers: declarations that their implementations share.
 */
#ifndef CLG_OPS_QCONV_H
#define CLG_OPS_QCONV_H

#include "ops/lowering/window.h"

/* Indices of an operator's inputs; 0 for those that it does not have. */
typedef struct qconv_inputs {
    uint32_t x, w, x_zero, w_zero, x_scale, w_scale, y_scale, y_zero, bias;
} qconv_inputs;

typedef struct qconv_job {
    const qconv_inputs *at;
    clg_dtype x_dtype, w_dtype, y_dtype;
    int64_t batch, groups, ic, oc; /* ic and oc: channels of one group */
    window_axis axes[WINDOW_MAX_AXES];
} qconv_job;

/* Adds batch, groups, ic, oc and the arguments of window_args, with which all kernels begin; the
 * depthwise ones have no ic. */
void qconv_size_args(step_builder *b, step *s, const qconv_job *j);
/* Adds QCONV_ARGS_LAST of cl/quant/qconv.clh, which all kernels end with. */
void qconv_last_args(lower_context *c, step *s, const qconv_job *j);
/* Returns the operations of the definition. */
double qconv_flops(const qconv_job *j);

/* Adds candidates of the SIMD class (cl/quant/qconv_simd.cl): with `fast` those that are fast on
 * this device, else the others, which compute the same. */
void qconv_simd_add(lower_context *c, const qconv_job *j, bool fast);
/* Adds candidates for GPUs (cl/quant/qconv_simt.cl). */
void qconv_simt_add(lower_context *c, const qconv_job *j);

#endif
