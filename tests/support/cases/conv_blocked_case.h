/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares convolutions of channel-blocked feature maps (clgraph.BlockedConv) with direct
 * convolution in double in NCHW order. Cases count channels in blocks, so that they suit devices
 * with any block size; data are converted to blocks here. Kernels of the SIMT class must reject a
 * case; software devices then run small cases with the SIMD class.
 *
 * Tolerance, relative to the larger of the result and sqrt(number of terms): direct convolution and
 * Winograd tiles of 2x2 2e-6, of 3x3 and 4x4 8e-6, as in test_winograd.c. Long sums, whose rounding
 * would exceed it, have integer terms, which float adds exactly.
 */
#ifndef CLG_TESTS_CONV_BLOCKED_CASE_H
#define CLG_TESTS_CONV_BLOCKED_CASE_H

#include "support/cases/run_node.h"

#include "tensor/shape.h"

typedef struct conv_case {
    /* Number of images; blocks of input and of output channels. */
    int64_t n, c_blocks, m_blocks;
    /* Channels by which the last block of input, and of output, is smaller than a block. */
    int64_t c_less, m_less;
    /* Each channel is a group; the output has the channels of the input. */
    bool depthwise;
    int64_t x_blocks, /* channel blocks of x, the input of a preceding 1x1 convolution; 0: none */
        x_less;       /* channels by which the last of these blocks is smaller */
    /* The 1x1 convolution has a bias. */
    bool points_bias;
    /* Bit set of the convolutions with an activation: 1 the 1x1, 2 the other; 0: both. */
    int activated;
    /* The two convolutions must be computed by separate kernels. */
    bool apart;
    /* A prologue scales and shifts the channels of x; perhaps Relu follows. */
    bool scaled, prologue_relu;
    /* Number of channels, if x is in NCHW order; 0: x is in blocks. */
    int64_t image;
    int64_t h, w, kernel[2];
    /* As in ONNX. Strides or dilations of 0 stand for 1. */
    int64_t pads[4], strides[2], dilations[2];
    /* If not NULL, passed to the node in place of `pads`, which must be equivalent. */
    const char *auto_pad;
    bool bias, residual;
    const char *activation;
    float alpha; /* of LeakyRelu */
    /* Side of the Winograd tiles to use; 0: direct convolution. */
    int64_t side;
    /* Runs com.microsoft's FusedConv, with all feature maps in NCHW order. */
    bool plain;
} conv_case;

/* Holds a case with its sizes on a device, and its data in NCHW order. */
typedef struct conv_run {
    conv_case t;
    /* lanes: channels of a block; depth: input channels that an output element depends on. */
    int64_t lanes, x_c, c, depth, m, oh, /* x_c, c, m: channels of x, of the convolution's */
        ow;                              /* input and output; oh, ow: size of the output */
    shape x_dims, y_dims;
    /* scale, shift: of each channel of x, with more elements than fill its last block */
    const double *x, *scale, *shift, *points, *points_bias, *weight, *bias, *residual;
    double *y;
} conv_run;

/* Runs each of n cases on every device with each class of kernels. */
void conv_case_check(const conv_case *cases, size_t n);
/* Returns the case with its sizes for the context's device, and without data, which
 * conv_case_numbers draws. */
conv_run conv_case_on(const conv_case *t, clg_context *context);
void conv_case_numbers(conv_run *r);
/* Checks that the case is rejected with this status and a message that contains `words`. */
void conv_case_refused(clg_context *context, const clg_session_options *options, const conv_run *r,
                       clg_status status, const char *words);

#endif
