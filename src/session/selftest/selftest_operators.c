/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of references by operator. Operators that are not in it are tested against their own
 * evaluation on the host, where they have one.
 */
#include "session/selftest/references/selftest_math.h"
#include "session/selftest/selftest.h"

#include "ops/pointwise/pointwise.h"

#include <math.h>
#include <string.h>

#define MS "com.microsoft"

/* An operator with a reference; one whose inputs need special elements; and one with a range of
 * elements and a factor on the error bound as well. */
#define ROW(in_domain, op, by)                                                                     \
    {                                                                                              \
        .domain = in_domain, .op_type = op, .reference = by                                        \
    }
#define WITH(in_domain, op, by, elements)                                                          \
    {                                                                                              \
        .domain = in_domain, .op_type = op, .reference = by, .contents = elements                  \
    }
#define RANGE(in_domain, op, by, elements, from, to, factor)                                       \
    {                                                                                              \
        .domain = in_domain, .op_type = op, .reference = by, .contents = elements, .low = from,    \
        .high = to, .tolerance = factor                                                            \
    }
/* A GEMM or convolution of 8-bit integers. */
#define QUANTIZED(op)                                                                              \
    RANGE("", op, selftest_quantized, selftest_quantized_contents, SELFTEST_SCALE, SELFTEST_SCALE, \
          1)

static const selftest_op operators[] = {
    ROW("", "Conv", selftest_gemm),
    ROW("", "Gemm", selftest_gemm),
    ROW("", "MatMul", selftest_gemm),
    RANGE("clgraph", "AttentionCore", selftest_attention, selftest_attention_contents, -2, 2, 1),
    WITH("clgraph", "CacheAppend", selftest_append, selftest_append_contents),
    ROW("clgraph", "BlockedConv", selftest_gemm),
    ROW("clgraph", "ConvDataGrad", selftest_conv_grad),
    ROW("clgraph", "ConvFilterGrad", selftest_conv_grad),
    ROW("clgraph", "ConvTransposeDataGrad", selftest_conv_grad),
    ROW("clgraph", "ConvTransposeFilterGrad", selftest_conv_grad),
    ROW("clgraph", "FusedConv", selftest_gemm),
    ROW("clgraph", "FusedGemm", selftest_gemm),
    ROW("clgraph", "FusedMatMul", selftest_gemm),
    ROW(MS, "FusedConv", selftest_gemm),
    ROW(MS, "FusedGemm", selftest_gemm),
    ROW(MS, "FusedMatMul", selftest_gemm),
    QUANTIZED("ConvInteger"),
    QUANTIZED("QLinearConv"),
    QUANTIZED("MatMulInteger"),
    QUANTIZED("QLinearMatMul"),
    RANGE(MS, "MatMulIntegerToFloat", selftest_quantized, selftest_quantized_contents,
          SELFTEST_SCALE, SELFTEST_SCALE, 1),
    RANGE("", "Softmax", selftest_softmax, NULL, -4, 4, 1),
    RANGE("", "LogSoftmax", selftest_softmax, NULL, -4, 4, 1),
    RANGE("", "Hardmax", selftest_softmax, NULL, -4, 4, 1),
    RANGE("", "NegativeLogLikelihoodLoss", selftest_loss, selftest_loss_contents, -4, 4, 1),
    RANGE("", "SoftmaxCrossEntropyLoss", selftest_loss, selftest_loss_contents, -4, 4, 1),
    ROW("", "ReduceL1", selftest_reduce),
    ROW("", "ReduceL2", selftest_reduce),
    ROW("", "ReduceLogSumExp", selftest_reduce),
    ROW("", "ReduceMax", selftest_reduce),
    ROW("", "ReduceMean", selftest_reduce),
    ROW("", "ReduceMin", selftest_reduce),
    RANGE("", "ReduceProd", selftest_reduce, NULL, 0.75, 1.25, 1),
    ROW("", "ReduceSum", selftest_reduce),
    ROW("", "ReduceSumSquare", selftest_reduce),
    ROW("", "GlobalAveragePool", selftest_reduce),
    ROW("", "GlobalMaxPool", selftest_reduce),
    RANGE("", "ReduceLogSum", selftest_reduce, NULL, 0.25, 2, 1),
    ROW("", "ArgMax", selftest_arg),
    ROW("", "ArgMin", selftest_arg),
    ROW("", "CumSum", selftest_cumulative),
    RANGE("", "CumProd", selftest_cumulative, NULL, 0.75, 1.25, 1),
    RANGE("clgraph", "LinearScan", selftest_linear_scan, NULL, -1, 1, 1),
    WITH("", "TopK", selftest_topk, selftest_topk_contents),
    ROW("", "AveragePool", selftest_pool),
    ROW("", "MaxPool", selftest_pool),
    ROW("", "LpPool", selftest_lp_pool),
    ROW("", "GlobalLpPool", selftest_lp_pool),
    WITH("clgraph", "MaxPoolGrad", selftest_pool_grad, selftest_pool_contents),
    ROW("clgraph", "AveragePoolGrad", selftest_pool_grad),
    ROW("clgraph", "SumPoolGrad", selftest_pool_grad),
    RANGE("", "LayerNormalization", selftest_norm, NULL, -1, 1, 2),
    RANGE("", "RMSNormalization", selftest_norm, NULL, -1, 1, 2),
    RANGE("", "SimplifiedLayerNormalization", selftest_norm, NULL, -1, 1, 2),
    RANGE("", "InstanceNormalization", selftest_norm, NULL, -1, 1, 2),
    RANGE("", "GroupNormalization", selftest_norm, NULL, -1, 1, 2),
    RANGE("", "LpNormalization", selftest_norm, NULL, -1, 1, 2),
    RANGE("", "MeanVarianceNormalization", selftest_norm, NULL, -1, 1, 2),
    RANGE("", "LRN", selftest_norm, NULL, -16, 16, 1),
    RANGE(MS, "SimplifiedLayerNormalization", selftest_norm, NULL, -1, 1, 2),
    RANGE("", "BatchNormalization", selftest_norm, NULL, 0.5, 2, 1),
    RANGE(MS, "SkipLayerNormalization", selftest_skip_norm, NULL, -1, 1, 2),
    RANGE(MS, "SkipSimplifiedLayerNormalization", selftest_skip_norm, NULL, -1, 1, 2),
    RANGE(MS, "EmbedLayerNormalization", selftest_embed_norm, selftest_embed_contents, -1, 1, 2),
    WITH("", "RotaryEmbedding", selftest_rotary, selftest_rotary_contents),
    WITH("", "QuantizeLinear", selftest_quantize, selftest_quantize_contents),
    WITH("", "DequantizeLinear", selftest_dequantize, selftest_quantize_contents),
    WITH(MS, "RotaryEmbedding", selftest_rotary, selftest_rotary_contents),
    WITH(MS, "QuantizeLinear", selftest_quantize, selftest_quantize_contents),
    WITH(MS, "DequantizeLinear", selftest_dequantize, selftest_quantize_contents),
    WITH("", "DynamicQuantizeLinear", selftest_dynamic_quantize, selftest_quantize_contents),
    WITH("clgraph", "Quantized", selftest_quantize, selftest_quantize_contents),
    WITH("clgraph", "Dequantized", selftest_dequantize, selftest_quantize_contents),
    WITH(MS, "QLinearAdd", selftest_qlinear, selftest_quantize_contents),
    WITH(MS, "QLinearMul", selftest_qlinear, selftest_quantize_contents),
    WITH(MS, "QLinearSigmoid", selftest_qlinear, selftest_quantize_contents),
    WITH(MS, "QLinearLeakyRelu", selftest_qlinear, selftest_quantize_contents),
    WITH(MS, "QLinearGlobalAveragePool", selftest_qlinear, selftest_quantize_contents),
    WITH(MS, "QLinearAveragePool", selftest_qlinear, selftest_quantize_contents),
    WITH(MS, "QLinearConcat", selftest_qlinear, selftest_quantize_contents),
    WITH("", "GRU", selftest_recurrent, selftest_length_contents),
    WITH("", "LSTM", selftest_recurrent, selftest_length_contents),
    WITH("", "RNN", selftest_recurrent, selftest_length_contents),
    ROW("", "Resize", selftest_resample),
    ROW("", "Upsample", selftest_resample),
    ROW("", "Pad", selftest_pad),
    ROW("", "CenterCropPad", selftest_pad),
    ROW("", "ConvTranspose", selftest_conv_transposed),
    ROW("clgraph", "BlockedConvTranspose", selftest_blocked_transposed),
    WITH("", "GatherND", selftest_gather_nd, selftest_index_contents),
    WITH("", "GatherElements", selftest_gather_elements, selftest_index_contents),
    WITH("", "Scatter", selftest_scatter_elements, selftest_index_contents),
    WITH("", "ScatterElements", selftest_scatter_elements, selftest_index_contents),
    WITH("", "ScatterND", selftest_scatter_elements, selftest_index_contents),
    WITH("", "TensorScatter", selftest_tensor_scatter, selftest_index_contents),
    ROW("", "DepthToSpace", selftest_depth_to_space),
    ROW("", "SpaceToDepth", selftest_space_to_depth),
    WITH("", "OneHot", selftest_onehot, selftest_onehot_contents),
    ROW("", "Trilu", selftest_trilu),
    WITH("", "ReverseSequence", selftest_reverse_sequence, selftest_index_contents),
};

/* ---- the host's evaluation ------------------------------------------------------------------- */

/* Returns a tensor of input i: the known one, or a new one of its elements. */
static clg_status input_tensor(const lower_context *lc, const double *const *in, size_t i,
                               tensor **out_tensor)
{
    const lower_operand *o = &lc->inputs[i];
    if (o->known) {
        *out_tensor = tensor_retain((tensor *)(uintptr_t)o->known);
        return CLG_OK;
    }
    CLG_TRY(tensor_create(o->dtype, &o->dims, out_tensor));
    for (int64_t at = 0; at < (*out_tensor)->n_elements; at++)
        tensor_set_float(*out_tensor, at, in[i][at]);
    return CLG_OK;
}

/* Copies elements of the evaluated outputs. They are relative to their own magnitudes: most such
 * operators only move elements. */
static clg_status take_results(const lower_context *lc, tensor *const *results,
                               const selftest_expected *out)
{
    for (size_t k = 0; k < lc->n_outputs; k++) {
        const tensor *t = results[k];
        if (!out[k].y) continue;
        if (!t)
            return error_set(CLG_ERROR_NOT_FOUND, "%s is not evaluated on the host",
                             lc->node->op_type);
        for (int64_t at = 0; at < t->n_elements; at++) {
            out[k].y[at] = tensor_get_float(t, at);
            out[k].scale[at] = fabs(out[k].y[at]);
        }
    }
    return CLG_OK;
}

static clg_status evaluate(const lower_context *lc, const double *const *in,
                           const selftest_expected *out)
{
    value_fact inputs[SELFTEST_MAX_INPUTS] = {0}, outputs[SELFTEST_MAX_OUTPUTS] = {0};
    tensor *given[SELFTEST_MAX_INPUTS] = {NULL}, *results[SELFTEST_MAX_OUTPUTS] = {NULL};
    op_context c = {.node = lc->node,
                    .row = lc->node->op,
                    .inputs = inputs,
                    .n_inputs = lc->n_inputs,
                    .outputs = outputs,
                    .n_outputs = lc->n_outputs};
    clg_status status = CLG_OK;
    for (size_t i = 0; i < lc->n_inputs && status == CLG_OK; i++) {
        const lower_operand *o = &lc->inputs[i];
        if (o->dtype != CLG_DTYPE_NONE) status = input_tensor(lc, in, i, &given[i]);
        inputs[i] = (value_fact){.dtype = o->dtype, .dims = o->dims, .known = given[i]};
    }
    for (size_t k = 0; k < lc->n_outputs; k++)
        outputs[k] = (value_fact){.dtype = lc->outputs[k].dtype, .dims = lc->outputs[k].dims};
    if (status == CLG_OK) status = c.row->eval(&c, results);
    if (status == CLG_OK) status = take_results(lc, results, out);
    for (size_t i = 0; i < SELFTEST_MAX_INPUTS; i++) tensor_free(given[i]);
    for (size_t k = 0; k < SELFTEST_MAX_OUTPUTS; k++) tensor_free(results[k]);
    return status;
}

/* The internal operator Copy has no evaluation. */
static clg_status copy(const lower_context *lc, const double *const *in,
                       const selftest_expected *out)
{
    const int64_t n = selftest_count(&lc->outputs[0].dims);
    memcpy(out[0].y, in[0], (size_t)n * sizeof **in);
    return CLG_OK;
}

/* ---- looking up ------------------------------------------------------------------------------ */

const selftest_op *selftest_find(const node *n)
{
    static const selftest_op pointwise = {.reference = selftest_pointwise,
                                          .low = -2,
                                          .high = 2,
                                          .positive_too = true},
                             evaluated = {.reference = evaluate,
                                          .contents = selftest_index_contents},
                             copied = {.reference = copy};
    if (!n) return &copied;
    const char *domain = n->domain ? n->domain : "";
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
        if (strcmp(operators[i].op_type, n->op_type) == 0 &&
            strcmp(operators[i].domain, domain) == 0)
            return &operators[i];
    const op_row *row = n->op;
    if (!row) return NULL;
    if (row->lower == ops_lower_copy) return &copied;
    if (row->infer == pointwise_infer_node) return &pointwise;
    return row->eval && !(row->flags & (OP_HOST | OP_EVAL_ONLY)) ? &evaluated : NULL;
}

bool selftest_moves(const selftest_op *op)
{
    return op->reference == evaluate || op->reference == copy;
}
