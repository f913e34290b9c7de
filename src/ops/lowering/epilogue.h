/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads and lowers the epilogue that may be fused into a matrix product or convolution:
 *
 *     y = activation(alpha * gemm + beta * bias + residual)
 *
 * or, with a mask, residual > 0 ? alpha * gemm + beta * bias : 0, as in the gradient of Relu.
 *
 * The fused operators of domain "clgraph" (FusedGemm, FusedMatMul, FusedConv) have, in addition to
 * the attributes of the original operator,
 *   activation                          name of an ONNX operator, "" or absent for none; see
 *                                       epilogue_activations
 *   activation_alpha, activation_beta   its parameters, with ONNX's defaults
 *   residual_mask                       1: the residual is a mask, and there is no activation
 * and their inputs are those of the operator, the bias at 2, the residual (shape of the output) at
 * 3. They exist for float32 and float16. com.microsoft.FusedConv has the parameters as a list,
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

/* The activations that can be fused; the last entry has name NULL. alpha and beta are, for
 * LeakyRelu and Elu, the slope (beta unused); for HardSigmoid, slope and offset; for Clip, minimum
 * and maximum. The others use neither. */
extern const epilogue_activation epilogue_activations[];
/* Returns the entry of an activation; NULL when it cannot be fused. */
const epilogue_activation *epilogue_find(const char *name);

/* The attributes of an epilogue, for the attribute tables of the operator table. */
#define EPILOGUE_ATTRIBUTES                                                                        \
    {"activation", ATTRIBUTE_STRING, false, OP_ANY},                                               \
        {"activation_alpha", ATTRIBUTE_FLOAT, false, OP_ANY},                                      \
        {"activation_beta", ATTRIBUTE_FLOAT, false, OP_ANY},                                       \
        {"residual_mask", ATTRIBUTE_INT, false, OP_BETWEEN(0, 1)},

/* The kind of bias. */
typedef enum epilogue_bias {
    BIAS_NONE,
    BIAS_COLUMN, /* one element per column of the result */
    BIAS_ROW,    /* one element per row; for convolutions, per output channel */
    BIAS_MATRIX  /* an element for each result, or broadcast by strides of 0 */
} epilogue_bias; /* P_BIAS */

/* The epilogue of a node. Strides of the bias are in elements: of rows, columns, outer and inner
 * batch; 0 broadcasts. The residual has the layout of the output. act_a, act_b: alpha and beta of
 * the activation. */
typedef struct epilogue_ops {
    int activation; /* P_ACT; 0: none */
    float act_a, act_b, alpha, beta;
    epilogue_bias bias;
    operand bias_at;
    int64_t bias_rs, bias_cs, bias_b0, bias_b1;
    bool has_residual, is_mask; /* is_mask: where the residual is not positive, y is 0 */
    operand residual;
} epilogue_ops;

/* Checks that the node's activation can be fused. For the check functions of operators. */
clg_status epilogue_check(const node *n);
/* Checks that the residual, input i, has the shape of the result, if the node has one: kernels read
 * it like that. For the infer functions of operators. */
clg_status epilogue_check_residual(const op_context *c, size_t i, const shape *result);
/* Reads the activation and the residual (input 3) of a node; sets alpha = beta = 1 and no bias. */
void epilogue_read(const lower_context *c, epilogue_ops *out);
/* Returns whether there is no bias, residual or activation: a plain GEMM with alpha is enough. */
bool epilogue_is_empty(const epilogue_ops *e);
/* Returns the parameters of the epilogue for a prelude, such as "P_BIAS=1 P_RESIDUAL=0 P_ACT=1", in
 * the context's arena. */
const char *epilogue_prelude(lower_context *c, const epilogue_ops *e);
/* Adds the arguments for EPILOGUE_PARAMS of cl/common/epilogue.clh. `unused` is passed as the
 * buffer of an absent bias or residual. */
void epilogue_args(lower_context *c, step *s, const epilogue_ops *e, clg_dtype dtype,
                   operand unused);

#endif
