/* SPDX-License-Identifier: Apache-2.0
 *
 * The descriptor of a convolution, read from its node: the input of all implementations.
 */
#ifndef CLG_OPS_CONV_DESC_H
#define CLG_OPS_CONV_DESC_H

#include "ops/lowering/epilogue.h"
#include "ops/lowering/window.h"

/* x [batch, groups * ic, D, H, W], weight [groups * oc, ic, KD, KH, KW]. */
typedef struct conv_job {
    clg_dtype dtype;
    operand x, y;
    uint32_t weight;               /* which input of the node */
    int64_t batch, groups, ic, oc; /* ic and oc: channels of one group */
    window_axis axes[WINDOW_MAX_AXES];
    bool weight_constant;
    bool blocked;     /* x, y and the residual are in blocks of channels (BlockedConv) */
    int64_t winograd; /* 0: not; 1: where it is estimated to be faster; 2, 4: tiles of that side */
    epilogue_ops epilogue; /* bias: BIAS_NONE, or BIAS_ROW with bias_b1 = oc */
} conv_job;

/* The attributes common to all convolutions, for rows' tables. */
#define CONV_ATTRIBUTES                                                                            \
    {"auto_pad", ATTRIBUTE_STRING, false}, {"dilations", ATTRIBUTE_INTS, false},                   \
        {"group", ATTRIBUTE_INT, false}, {"kernel_shape", ATTRIBUTE_INTS, false},                  \
        {"pads", ATTRIBUTE_INTS, false}, {"strides", ATTRIBUTE_INTS, false},

/* Reads the job of a node that has the inputs of FusedConv; `x` is the shape of input 0 in NCHW
 * order, which may be stored otherwise. */
clg_status conv_read(lower_context *c, const shape *x, conv_job *out);
/* Sets the operations (of the definition) and bytes of s. */
void conv_count_work(const conv_job *j, step *s);
/* Returns "P_BIAS=1 P_RESIDUAL=0 P_ACT=1". P_BIAS is 0 or 1: in these kernels a bias has one value
 * per channel. */
const char *conv_epilogue_prelude(lower_context *c, const conv_job *j);

#endif
