/* SPDX-License-Identifier: Apache-2.0
 *
 * Descriptor of a convolution, read from its node, from which all implementations are lowered.
 */
#ifndef CLG_OPS_CONV_DESC_H
#define CLG_OPS_CONV_DESC_H

#include "ops/lowering/epilogue.h"
#include "ops/lowering/window.h"

/* A phase of a transposed convolution: the output pixels that have the same remainders by its
 * strides are a convolution of x with every step_h-th line and step_w-th column of the kernel. */
typedef struct conv_phase {
    int64_t lines, columns; /* of the whole output */
    int64_t step_h, step_w; /* the strides */
    /* Elements of the weight: that of the phase's first tap, and the distances of output channels,
     * input channels, and the phase's lines and columns. */
    int64_t first, by_output, by_input, by_line, by_column;
} conv_phase;

/* What is done to a channel-blocked x before the convolution (outside of x there are zeros). Its
 * values are P_PROLOGUE of cl/conv/conv_blocked.cl. */
typedef enum conv_prologue {
    PROLOGUE_NONE,
    PROLOGUE_SCALE, /* x * scale[c] + shift[c] */
    PROLOGUE_SCALE_RELU
} conv_prologue;

/* A convolution: x [batch, groups * ic, D, H, W], weight [groups * oc, ic, KD, KH, KW].
 * Convolutions over fewer axes have leading axes of length 1. */
typedef struct conv_job {
    clg_dtype dtype;
    operand x, y;
    uint32_t weight;               /* index of the node's input that holds the weight */
    int64_t batch, groups, ic, oc; /* ic and oc: channels of one group */
    window_axis axes[WINDOW_MAX_AXES];
    /* The weight is that of the convolution whose data gradient this one is: [groups * ic, oc, KD,
     * KH, KW], its windows reversed along each axis. Implementations that pack weights take it. */
    bool is_rotated;
    bool weight_constant;
    /* NULL, or where its output pixels and weights are: y is that of the first output pixel.
     * Implementation conv_blocked takes it. */
    const conv_phase *phase;
    bool blocked;           /* BlockedConv: x, y and the residual are channel-blocked */
    conv_prologue prologue; /* Implementation conv_blocked takes one. */
    /* Winograd's algorithm: 0 never; 1 where its estimated time is lower; 2, 3 or 4 always, with
     * tiles of 2x2, 3x3 or 4x4 outputs */
    int64_t winograd;
    epilogue_ops epilogue; /* bias: BIAS_NONE, or BIAS_ROW with bias_b1 = oc */
} conv_job;

/* The attributes that all convolution operators have, for the attribute tables of the operator
 * table. */
#define CONV_ATTRIBUTES WINDOW_ATTRIBUTES(false){"group", ATTRIBUTE_INT, false, OP_COUNT},

/* Reads the descriptor from a node with the inputs of FusedConv (x, weight, bias, residual). `x` is
 * the shape of input 0 in NCHW order, even where the input is stored in another layout. */
clg_status conv_read(lower_context *c, const shape *x, conv_job *out);
/* Returns the multiply-adds of the direct algorithm; a double, since shapes may be of any size. */
double conv_count_macs(const conv_job *j);
/* Sets the floating-point operations and bytes of s, for profiles. The operations are those of the
 * direct algorithm, even if an implementation needs fewer. */
void conv_count_work(const conv_job *j, step *s);
/* Returns the parameters of the epilogue for a prelude, such as "P_BIAS=1 P_RESIDUAL=0 P_ACT=1".
 * P_BIAS is 0 or 1: in these kernels a bias has one value per channel. */
const char *conv_epilogue_prelude(lower_context *c, const conv_job *j);
/* Returns of how many images, at least 1, the windows are in memory at once, for algorithms that
 * copy them there. elements: those of an image's windows. max: more are not taken; 0: no limit. */
int64_t conv_images_together(const lower_context *c, int64_t elements, int64_t images, int64_t max);

#endif
