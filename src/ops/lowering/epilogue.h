/* SPDX-License-Identifier: Apache-2.0
 *
 * The epilogue that a matrix product or convolution may take with it:
 *
 *     y = activation(alpha * gemm + beta * bias + residual)
 *
 * The fused operators of domain "clgraph" (FusedGemm, FusedMatMul, FusedConv) have, on top of the
 * attributes of the operator they come from,
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

/* Ends with name NULL. Alpha and beta are, for LeakyRelu and Elu the slope, for HardSigmoid
 * slope and offset, for Clip low and high; the others take none. */
extern const epilogue_activation epilogue_activations[];
/* NULL when activations of that name cannot be fused. */
const epilogue_activation *epilogue_find(const char *name);

/* For the tables of attributes. */
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

/* For rows' check: the activation is known. */
clg_status epilogue_check(const node *n);
/* Activation and residual of a node, alpha = beta = 1, no bias. */
void epilogue_read(const lower_context *c, epilogue_ops *out);
/* True when there is nothing to do after a plain GEMM. */
bool epilogue_is_empty(const epilogue_ops *e);
/* "P_BIAS=1 P_RESIDUAL=0 P_ACT=1" for a prelude, in the context's arena. */
const char *epilogue_prelude(lower_context *c, const epilogue_ops *e);
/* EPILOGUE_ARGS. `unused` stands in for buffers that the parameters leave out. */
void epilogue_args(lower_context *c, step *s, const epilogue_ops *e, clg_dtype dtype,
                   operand unused);

#endif
