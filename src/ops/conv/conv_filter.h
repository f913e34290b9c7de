/* SPDX-License-Identifier: Apache-2.0
 *
 * Lowers gradients of convolutions with respect to their weights.
 */
#ifndef CLG_OPS_CONV_FILTER_H
#define CLG_OPS_CONV_FILTER_H

#include "ops/conv/conv_desc.h"

/* The gradient of a weight: with `small` [N, groups * m, windows], `large` [N, groups * c, pixels]
 *
 *     dw[m, c, tap] = sum over n and windows o of small[n, m, o] large[n, c, o * stride - pad +
 *                     tap * dilation]
 *
 * for each group. Conv: small is g, large is x; ConvTranspose: the other way round. */
typedef struct conv_filter_job {
    clg_dtype dtype;
    uint32_t small; /* index of the input: 0 or 1; `large` is the other */
    int64_t groups;
    int64_t together;                  /* images of one product at most; 0: no limit */
    window_axis axes[WINDOW_MAX_AXES]; /* in: pixels, out: windows */
} conv_filter_job;

/* Adds candidates that compute output 0 from inputs 0 and 1. */
clg_status conv_filter_add(lower_context *c, const conv_filter_job *j);

#endif
