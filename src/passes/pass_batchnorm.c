/* SPDX-License-Identifier: Apache-2.0
 *
 * Folds BatchNormalization into the Conv, ConvTranspose of one group, or Gemm before it. With s =
 * scale / sqrt(var + epsilon) (ONNX BatchNormalization, versions 7 to 15, inference) the new
 * weights are W * s along the output channel and the new bias is (B - mean) * s + bias. Both are
 * nodes over constants, computed once with the other constants. A BatchNormalization that cannot be
 * folded becomes a product and a sum.
 */
#include "passes/rewrite.h"

typedef struct fold {
    graph *graph;
    node_id target, norm;
    int64_t channels;
} fold;

static bool norm_is_foldable(const graph_info *s, const node *norm)
{
    if (!node_is(norm, "BatchNormalization") || norm->n_inputs != 5) return false;
    if (node_int(norm, "training_mode", 0) != 0) return false;
    for (size_t i = 1; i < norm->n_outputs; i++)
        if (norm->outputs[i] != VALUE_NONE) return false;
    for (size_t i = 1; i < 5; i++) {
        value_id v = norm->inputs[i];
        if (v == VALUE_NONE || !s->constant[v] || s->facts[v].dtype != CLG_FLOAT32 ||
            s->facts[v].dims.rank != 1)
            return false;
    }
    return true;
}

/* Returns the number of output channels of a Conv, ConvTranspose or Gemm with constant weights and
 * bias; 0 if BatchNormalization cannot be folded into the node. */
static int64_t channels_of(const graph_info *s, const node *n)
{
    if (n->n_inputs < 2 || n->inputs[1] == VALUE_NONE || !s->constant[n->inputs[1]]) return 0;
    if (n->n_inputs > 2 && n->inputs[2] != VALUE_NONE && !s->constant[n->inputs[2]]) return 0;
    const value_fact *w = &s->facts[n->inputs[1]];
    if (w->dtype != CLG_FLOAT32 || !shape_is_known(&w->dims)) return 0;
    if (node_is(n, "Conv")) return w->dims.rank >= 3 ? w->dims.dims[0] : 0;
    if (node_is(n, "ConvTranspose") && node_int(n, "group", 1) == 1)
        return w->dims.rank >= 3 ? w->dims.dims[1] : 0;
    if (!node_is(n, "Gemm") || w->dims.rank != 2) return 0;
    return w->dims.dims[node_int(n, "transB", 0) ? 0 : 1];
}

/* Adds s = scale / sqrt(var + epsilon), [channels]. */
static clg_status add_factor(const fold *f, value_id *out_factor)
{
    value_id epsilon, sum, root, scale = f->graph->nodes[f->norm].inputs[1],
                                 var = f->graph->nodes[f->norm].inputs[4];
    CLG_TRY(graph_add_number(f->graph, CLG_FLOAT32,
                             (double)node_float(&f->graph->nodes[f->norm], "epsilon", 1e-5f),
                             &epsilon));
    CLG_TRY(rewrite_add(f->graph, "Add", 2, (value_id[]){var, epsilon}, &sum));
    CLG_TRY(rewrite_add(f->graph, "Sqrt", 1, &sum, &root));
    return rewrite_add(f->graph, "Div", 2, (value_id[]){scale, root}, out_factor);
}

/* Adds W times the factor along its output channel. */
static clg_status add_weights(const fold *f, const graph_info *s, value_id factor,
                              value_id *out_weights)
{
    const node *n = &f->graph->nodes[f->target];
    value_id w = n->inputs[1], dims, shaped = factor;
    int rank = s->facts[w].dims.rank;
    bool last = node_is(n, "Gemm") && !node_int(n, "transB", 0);
    if (!last) {
        int64_t shaped_dims[CLG_MAX_RANK] = {1, 1, 1, 1, 1, 1, 1, 1};
        shaped_dims[node_is(n, "ConvTranspose") ? 1 : 0] = f->channels;
        CLG_TRY(graph_add_ints(f->graph, (size_t)rank, shaped_dims, &dims));
        CLG_TRY(rewrite_add(f->graph, "Reshape", 2, (value_id[]){factor, dims}, &shaped));
    }
    return rewrite_add(f->graph, "Mul", 2, (value_id[]){w, shaped}, out_weights);
}

/* Adds (B - mean) * factor + bias; a Gemm's B is first multiplied by its beta. */
static clg_status add_bias(const fold *f, value_id factor, value_id *out_bias)
{
    const node *n = &f->graph->nodes[f->target], *norm = &f->graph->nodes[f->norm];
    value_id bias = norm->inputs[2], mean = norm->inputs[3], centred, scaled;
    value_id old = n->n_inputs > 2 ? n->inputs[2] : VALUE_NONE;
    float beta = node_is(n, "Gemm") ? node_float(n, "beta", 1.0f) : 1.0f;
    if (old == VALUE_NONE) {
        CLG_TRY(rewrite_add(f->graph, "Neg", 1, &mean, &centred));
    } else {
        if (beta != 1.0f) {
            value_id factor_beta;
            CLG_TRY(graph_add_number(f->graph, CLG_FLOAT32, (double)beta, &factor_beta));
            CLG_TRY(rewrite_add(f->graph, "Mul", 2, (value_id[]){old, factor_beta}, &old));
        }
        CLG_TRY(rewrite_add(f->graph, "Sub", 2, (value_id[]){old, mean}, &centred));
    }
    CLG_TRY(rewrite_add(f->graph, "Mul", 2, (value_id[]){centred, factor}, &scaled));
    return rewrite_add(f->graph, "Add", 2, (value_id[]){scaled, bias}, out_bias);
}

static clg_status fold_norm(const fold *f, const graph_info *s)
{
    value_id factor, weights, bias;
    CLG_TRY(add_factor(f, &factor));
    CLG_TRY(add_weights(f, s, factor, &weights));
    CLG_TRY(add_bias(f, factor, &bias));
    if (node_is(&f->graph->nodes[f->target], "Gemm"))
        CLG_TRY(node_set_float(f->graph, f->target, "beta", 1.0f));
    CLG_TRY(rewrite_inputs(f->graph, f->target, 3,
                           (value_id[]){f->graph->nodes[f->target].inputs[0], weights, bias}));
    rewrite_take_output(f->graph, f->target, f->norm);
    return CLG_OK;
}

/* Reshapes v, one value per channel, so that it broadcasts over the feature map. */
static clg_status shape_by_channel(graph *g, int rank, int64_t channels, value_id v,
                                   value_id *out_shaped)
{
    int64_t dims[CLG_MAX_RANK];
    value_id shape_value;
    dims[0] = channels;
    for (int i = 1; i < rank - 1; i++) dims[i] = 1;
    CLG_TRY(graph_add_ints(g, (size_t)rank - 1, dims, &shape_value));
    return rewrite_add(g, "Reshape", 2, (value_id[]){v, shape_value}, out_shaped);
}

/* Replaces a BatchNormalization that could not be folded by x * factor + shift, which later passes
 * may fuse. */
static clg_status decompose_norm(graph *g, const graph_info *s, node_id n)
{
    const node *norm = &g->nodes[n];
    const shape *x = &s->facts[norm->inputs[0]].dims, *scale = &s->facts[norm->inputs[1]].dims;
    fold f = {.graph = g, .target = NODE_NONE, .norm = n};
    value_id factor, shift, product, bias = norm->inputs[2], mean = norm->inputs[3];
    if (x->rank < 3 || !shape_is_known(scale) || s->facts[norm->inputs[0]].dtype != CLG_FLOAT32)
        return CLG_OK;
    CLG_TRY(add_factor(&f, &factor));
    CLG_TRY(rewrite_add(g, "Mul", 2, (value_id[]){mean, factor}, &shift));
    CLG_TRY(rewrite_add(g, "Sub", 2, (value_id[]){bias, shift}, &shift));
    CLG_TRY(shape_by_channel(g, x->rank, scale->dims[0], factor, &factor));
    CLG_TRY(shape_by_channel(g, x->rank, scale->dims[0], shift, &shift));
    CLG_TRY(rewrite_add(g, "Mul", 2, (value_id[]){g->nodes[n].inputs[0], factor}, &product));
    g->nodes[n].n_outputs = 1;
    return rewrite_become(g, n, "", "Add", 13, 2, (value_id[]){product, shift});
}

clg_status pass_batchnorm(graph *g, const pass_options *options)
{
    (void)options;
    graph_info s;
    CLG_TRY(graph_info_make(g, &s));
    clg_status status = CLG_OK;
    size_t n_nodes = g->n_nodes;
    for (node_id i = 0; i < n_nodes && status == CLG_OK; i++) {
        fold f = {.graph = g, .target = i};
        f.channels = channels_of(&s, &g->nodes[i]);
        if (f.channels <= 0) continue;
        f.norm = graph_info_only_reader(&s, i);
        if (f.norm == NODE_NONE || !norm_is_foldable(&s, &g->nodes[f.norm])) continue;
        if (g->nodes[f.norm].inputs[0] != g->nodes[i].outputs[0]) continue;
        status = fold_norm(&f, &s);
    }
    for (node_id i = 0; i < n_nodes && status == CLG_OK; i++)
        if (norm_is_foldable(&s, &g->nodes[i])) status = decompose_norm(g, &s, i);
    graph_info_deinit(&s);
    return status;
}
