/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares convolutions of channel-blocked feature maps (clgraph.BlockedConv), cases of a table,
 * with the formula in double in NCHW order. Channels are counted in blocks, so that cases fit any
 * device; data are converted to blocks here. Kernels of the SIMT class must reject a case; software
 * devices then run the SIMD class, where the case is small.
 *
 * Tolerance of the larger of the result and sqrt(terms): the formula and 2x2 tiles 2e-6, 4x4 tiles
 * 8e-6, as in test_winograd.c. Long sums, whose rounding would exceed it, are of whole numbers,
 * which float adds exactly.
 */
#ifndef CLG_TESTS_CONV_BLOCKED_CASE_H
#define CLG_TESTS_CONV_BLOCKED_CASE_H

#include "support/cases/run_node.h"

#include "tensor/shape.h"

typedef struct conv_case {
    int64_t n, c_blocks, m_blocks; /* images, blocks of channels in and out */
    int64_t c_less, m_less;        /* channels that the last block lacks */
    bool depthwise;                /* one group per channel; as many channels out as in */
    int64_t x_blocks,
        x_less;       /* channel blocks of x, from which a 1x1 convolution computes c channels; 0:
                       * none */
    bool points_bias; /* of the 1x1 convolution */
    int activated;    /* bits: 1 the 1x1 convolution, 2 the other one; 0: both */
    bool apart;       /* the two convolutions by separate kernels */
    int64_t image;    /* channels of an x in NCHW order; 0: x is in blocks */
    int64_t h, w, kernel[2];
    int64_t pads[4], strides[2], dilations[2]; /* as in ONNX; no strides or dilations: 1 */
    const char *auto_pad;                      /* for the node, in place of equivalent pads */
    bool bias, residual;
    const char *activation;
    float alpha;  /* of LeakyRelu */
    int64_t side; /* side of the Winograd tiles that are forced; 0: the formula */
    bool plain;   /* FusedConv, all in NCHW order */
} conv_case;

/* Holds a case on a device. Data are in NCHW order. */
typedef struct conv_run {
    conv_case t;
    int64_t lanes, x_c, c, depth, m, oh,
        ow; /* x_c: channels of x; depth: channels that an output element depends on */
    shape x_dims, y_dims;
    const double *x, *points, *points_bias, *weight, *bias, *residual;
    double *y;
} conv_run;

/* Runs each of n cases on every device with each class of kernels. */
void conv_case_check(const conv_case *cases, size_t n);
/* Returns the case with its sizes on the context's device; conv_case_numbers draws the data. */
conv_run conv_case_on(const conv_case *t, clg_context *context);
void conv_case_numbers(conv_run *r);
/* Checks that the case is rejected with this status and a message that contains `words`. */
void conv_case_refused(clg_context *context, const clg_session_options *options, const conv_run *r,
                       clg_status status, const char *words);

#endif
