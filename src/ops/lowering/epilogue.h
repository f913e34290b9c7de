/* SPDX-License-Identifier: Apache-2.0
 *
 * The epilogue that may be fused into a matrix product or convolution:
 *
 *     y = activation(alpha * gemm + beta * bias + residual)
 *
 * The fused operators of domain "clgraph" (FusedGemm, FusedMatMul, FusedConv) have, in addition to
 * the attributes of the original operator,
 *   activation                          name of an ONNX operator, "" or absent for none; see
 *                                       epilogue_activations
 *   activation_alpha, activation_beta   its numbers, defaults as ONNX's
 * and their inputs are those of the operator, the bias at 2, the residual (shape of the output) at
 * 3. They exist for float32 and float16. com.microsoft.FusedConv has the numbers as a list,
 * activation_params, and com.microsoft.FusedGemm is FusedGemm without a residual.
 */
#ifndef CLG_OPS_EPILOGUE_H
#define CLG_OPS_EPILOGUE_H

#include "ops/core/op.h"

typedef struct epilogue_activation {
    const char *name;  /* "Relu" */
    int code;          /* P_ACT of cl/common/epilogue.clh */
    float alpha, beta; /* defaults */
} epilogue_activation;

/* The activations; the last row has name NULL. Alpha and beta are, for LeakyRelu and Elu the slope,
 * for HardSigmoid slope and offset, for Clip low and high; the others have none. */
extern const epilogue_activation epilogue_activations[];
/* Returns NULL when activations of that name cannot be fused. */
const epilogue_activation *epilogue_find(const char *name);

/* The attributes of an epilogue, for rows' tables. */
#define EPILOGUE_ATTRIBUTES                                                                        \
    {"activation", ATTRIBUTE_STRING, false}, {"activation_alpha", ATTRIBUTE_FLOAT, false},         \
        {"activation_beta", ATTRIBUTE_FLOAT, false},

typedef enum epilogue_bias {
    BIAS_NONE,
    BIAS_COLUMN,
    BIAS_ROW,
    BIAS_MATRIX
} epilogue_bias; /* P_BIAS */

typedef struct epilogue_ops {
    int activation; /* P_ACT */
    float act_a, act_b, alpha, beta;
    epilogue_bias bias;
    operand bias_at;
    int64_t bias_rs, bias_cs, bias_b0, bias_b1;
    bool has_residual;
    operand residual;
} epilogue_ops;

/* Checks, for a row's check, that the activation is known. */
clg_status epilogue_check(const node *n);
/* Reads activation and residual of a node; alpha = beta = 1, no bias. */
void epilogue_read(const lower_context *c, epilogue_ops *out);
/* Returns whether a plain GEMM needs no epilogue. */
bool epilogue_is_empty(const epilogue_ops *e);
/* Returns "P_BIAS=1 P_RESIDUAL=0 P_ACT=1" for a prelude, in the context's arena. */
const char *epilogue_prelude(lower_context *c, const epilogue_ops *e);
/* Adds EPILOGUE_ARGS. `unused` is passed for buffers that the parameters exclude. */
void epilogue_args(lower_context *c, step *s, const epilogue_ops *e, clg_dtype dtype,
                   operand unused);

#endif
