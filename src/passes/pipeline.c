/* SPDX-License-Identifier: Apache-2.0
 *
 * Defines the table of graph passes in their order, and runs them.
 */
#include "base/cancel.h"
#include "passes/rewrite.h"

#include <string.h>

const pass passes[] = {
    {"identity", "readers of Identity, Dropout and a Cast to the same dtype read their input",
     pass_identity},
    {"shapes", "arithmetic on shapes with open dimensions, as 0 of Reshape or only once",
     pass_shapes},
    {"common", "of nodes that compute the same, one does", pass_common},
    {"split", "weights that exceed the device's largest buffer, in parts", pass_split},
    {"transpose", "Transposes that undo each other, also around pointwise operators",
     pass_transpose},
    {"pad", "Pad of zeros into the Conv or AveragePool after it", pass_pad},
    {"qdq", "operators between DequantizeLinear and QuantizeLinear compute with bytes", pass_qdq},
    {"nbits", "weights after DequantizeLinear stay packed for MatMul and Gemm", pass_nbits},
    {"batchnorm", "BatchNormalization into the Conv, ConvTranspose or Gemm before it",
     pass_batchnorm},
    {"one_pixel", "a ConvTranspose of a single pixel as Gemm", pass_one_pixel},
    {"activation", "Gelu, Swish, HardSwish, Mish composed of several nodes", pass_activation},
    {"norm", "LayerNormalization and RMSNormalization composed of several nodes", pass_norm},
    {"attention", "softmax(q k^T) v composed of several nodes", pass_attention},
    {"epilogue", "bias, residual and activation into Conv, Gemm and MatMul", pass_epilogue},
    {"projections", "MatMuls of one input before attention are one", pass_projections},
    {"fp16", "with precision fp16: values between nodes are float16", pass_fp16},
    {"winograd", "3x3 Conv may be computed with fewer multiplications", pass_winograd},
    {"concat", "a Concat begins with an earlier one of its first inputs", pass_concat},
    {"blocked", "channel-blocked layout (nChw16c) between Convs", pass_blocked},
    {"expand", "a 1x1 Conv and the depthwise one after it, in channel-blocked layout", pass_expand},
    {"prologue", "scale, shift and Relu before a 1x1 Conv into it, in channel-blocked layout",
     pass_prologue},
    {"qdq_chains", "DequantizeLinear and QuantizeLinear are pointwise operators", pass_qdq_chains},
    {"pointwise", "chains of pointwise operators become one kernel", pass_pointwise},
    {"dead", "nodes that nobody reads", pass_dead},
};
const size_t n_passes = sizeof passes / sizeof passes[0];

/* Passes that always run, before those above: the nodes that they decompose have no kernels. */
static const pass decompositions[] = {
    {"gradient", "Gradient in terms of other operators", pass_gradient},
    {"ml", "ai.onnx.ml in terms of other operators", pass_ml},
    {"flex", "FlexAttention in terms of other operators", pass_flex},
    {"multi_head", "queries, keys and values of MultiHeadAttention, with their bias",
     pass_multi_head},
    {"stash", "GroupNormalization with a narrower first stage, as conversions around it",
     pass_stash},
    {"quantized", "quantised operators of com.microsoft in terms of others", pass_quantized},
};

static bool is_disabled(const pass *p, const pass_options *o)
{
    for (size_t i = 0; i < o->disabled.count; i++)
        if (strcmp(o->disabled.names[i], p->name) == 0) return true;
    return false;
}

static clg_status check_names(const pass_options *o)
{
    for (size_t i = 0; i < o->disabled.count; i++) {
        bool found = false;
        for (size_t k = 0; k < n_passes; k++)
            found |= strcmp(o->disabled.names[i], passes[k].name) == 0;
        if (found) continue;
        strbuf names;
        strbuf_init(&names, 1024);
        for (size_t k = 0; k < n_passes; k++)
            strbuf_printf(&names, "%s%s", k ? ", " : "", passes[k].name);
        clg_status status =
            error_set(CLG_ERROR_INVALID_ARGUMENT, "there is no pass '%s'; there are: %s",
                      o->disabled.names[i], strbuf_data(&names));
        strbuf_deinit(&names);
        return status;
    }
    return CLG_OK;
}

static clg_status run_one(graph *g, const pass *p, const pass_options *options)
{
    clg_status status = cancel_check("optimising the graph");
    if (status == CLG_OK) status = p->run(g, options);
    if (status == CLG_OK) status = graph_compact(g);
    if (status == CLG_OK) status = ops_resolve(g);
    return status == CLG_OK ? CLG_OK : error_prefix(status, "graph pass '%s'", p->name);
}

clg_status passes_run(const graph *model, const pass_options *options, graph **out_graph)
{
    graph *g;
    *out_graph = NULL;
    CLG_TRY(check_names(options));
    CLG_TRY(graph_clone(model, &g));
    clg_status status = graph_compact(g);
    if (status == CLG_OK) status = ops_resolve(g);
    for (size_t i = 0; i < sizeof decompositions / sizeof *decompositions && status == CLG_OK; i++)
        status = run_one(g, &decompositions[i], options);
    for (size_t i = 0; i < n_passes && status == CLG_OK; i++)
        if (!is_disabled(&passes[i], options)) status = run_one(g, &passes[i], options);
    if (status == CLG_OK) status = graph_drop_values(g);
    if (status == CLG_OK) status = graph_share_constants(g);
    if (status != CLG_OK) {
        graph_free(g);
        return status;
    }
    *out_graph = g;
    return CLG_OK;
}
