/* SPDX-License-Identifier: Apache-2.0
 *
 * Fuses the nodes after a Conv, Gemm or MatMul into its epilogue: the addition of a constant bias,
 * the addition of a residual of the same shape, an activation; after a Gemm or MatMul the mask that
 * is the gradient of Relu. The node becomes clgraph.FusedConv,
 * FusedGemm or FusedMatMul (ops/lowering/epilogue.h). A MatMulNBits takes a bias as its input 5.
 */
#include "ops/lowering/epilogue.h"
#include "passes/shapes/shape_terms.h"

#include <string.h>

typedef struct fusion {
    const shape_terms *shapes;
    const graph_info *info; /* of shapes */
    graph *graph;
    node_id target;
    value_id inputs[4]; /* of the fused operator: x, w, bias, residual */
    const char *fused_type;
    const epilogue_activation *activation;
    float alpha, beta;
    bool has_mask; /* the residual is one */
    bool changed;
} fusion;

static const char *fused_name(const node *n)
{
    static const char *const names[][2] = {
        {"Conv", "FusedConv"}, {"Gemm", "FusedGemm"}, {"MatMul", "FusedMatMul"}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (node_is(n, names[i][0])) return names[i][1];
    return NULL;
}

/* ---- bias ------------------------------------------------------------------------------------ */

/* Returns whether the bias has one value per channel of a Conv, aligned by trailing dimensions of
 * 1, or one per column of a GEMM. */
static bool bias_fits(const fusion *f, value_id bias, const value_fact *product)
{
    const value_fact *b = &f->info->facts[bias];
    bool conv = strcmp(f->fused_type, "FusedConv") == 0;
    int from_end =
        conv ? product->dims.rank - 2 : 0; /* where the channel is, counted from the last axis */
    if (!f->info->constant[bias] || b->dtype != product->dtype || !shape_is_known(&b->dims))
        return false;
    if (b->dims.rank > product->dims.rank || from_end < 0 || b->dims.rank <= from_end) return false;
    for (int i = 0; i < b->dims.rank; i++) {
        bool channel = b->dims.rank - 1 - i == from_end;
        int64_t want = channel ? product->dims.dims[product->dims.rank - 1 - from_end] : 1;
        if (want == DIM_UNKNOWN || b->dims.dims[i] != want) return false;
    }
    return true;
}

static clg_status take_bias(fusion *f, node_id add, value_id bias)
{
    if (f->info->facts[bias].dims.rank != 1) {
        value_id dims;
        CLG_TRY(graph_add_ints(f->graph, 1, (int64_t[]){-1}, &dims));
        CLG_TRY(rewrite_add(f->graph, "Reshape", 2, (value_id[]){bias, dims}, &bias));
    }
    if (node_attribute(&f->graph->nodes[f->target], "beta"))
        CLG_TRY(node_set_float(f->graph, f->target, "beta", 1.0f));
    f->inputs[2] = bias;
    f->changed = true;
    rewrite_take_output(f->graph, f->target, add);
    return CLG_OK;
}

/* ---- residual -------------------------------------------------------------------------------- */

/* Returns whether the residual has the shape of the result, whatever its open dimensions are. */
static bool residual_fits(const fusion *f, value_id other, value_id product)
{
    const value_fact *r = &f->info->facts[other], *p = &f->info->facts[product];
    return !f->info->constant[other] && r->dtype == p->dtype && r->dims.rank >= 1 &&
           shape_terms_same_dims(f->shapes, other, product);
}

/* Fuses one Add into the epilogue if possible, and sets *out_taken to whether it did. */
static clg_status follow_add(fusion *f, bool *out_taken)
{
    *out_taken = false;
    value_id product = f->graph->nodes[f->target].outputs[0];
    node_id add = graph_info_only_reader(f->info, f->target);
    if (add == NODE_NONE || !node_is(&f->graph->nodes[add], "Add")) return CLG_OK;
    value_id other = other_input(&f->graph->nodes[add], product);
    if (other == VALUE_NONE || other == product || other >= f->info->n_values) return CLG_OK;
    const value_fact *fact = &f->info->facts[product];
    if (fact->dims.rank == RANK_UNKNOWN) return CLG_OK;
    if (f->inputs[2] == VALUE_NONE && bias_fits(f, other, fact)) {
        *out_taken = true;
        return take_bias(f, add, other);
    }
    if (f->inputs[3] == VALUE_NONE && residual_fits(f, other, product)) {
        *out_taken = true;
        f->inputs[3] = other;
        f->changed = true;
        rewrite_take_output(f->graph, f->target, add);
    }
    return CLG_OK;
}

/* ---- mask ------------------------------------------------------------------------------------ */

static bool is_zero(const fusion *f, value_id v)
{
    double number;
    return v != VALUE_NONE && v < f->info->n_values && graph_info_number(f->info, v, &number) &&
           number == 0;
}

/* Returns the y of a condition y > 0; VALUE_NONE for another one. */
static value_id positive_of(const fusion *f, value_id condition)
{
    if (condition == VALUE_NONE || condition >= f->info->n_values) return VALUE_NONE;
    const node_id producer = f->graph->values[condition].producer;
    if (producer == NODE_NONE) return VALUE_NONE;
    const node *n = &f->graph->nodes[producer];
    return node_is(n, "Greater") && is_zero(f, n->inputs[1]) ? n->inputs[0] : VALUE_NONE;
}

/* Fuses Where(y > 0, result, 0): the gradient of Relu, whose output is y. */
static void follow_mask(fusion *f)
{
    const value_id result = f->graph->nodes[f->target].outputs[0];
    const node_id next = graph_info_only_reader(f->info, f->target);
    if (next == NODE_NONE || f->inputs[3] != VALUE_NONE ||
        strcmp(f->fused_type, "FusedConv") == 0 || !node_is(&f->graph->nodes[next], "Where"))
        return;
    const node *n = &f->graph->nodes[next];
    const value_id y = positive_of(f, n->inputs[0]);
    if (n->inputs[1] != result || !is_zero(f, n->inputs[2]) || y == VALUE_NONE ||
        y >= f->info->n_values || f->info->facts[result].dims.rank == RANK_UNKNOWN ||
        !residual_fits(f, y, result))
        return;
    f->inputs[3] = y;
    f->has_mask = f->changed = true;
    rewrite_take_output(f->graph, f->target, next);
}

/* ---- activation ------------------------------------------------------------------------------ */

/* Reads a bound of Clip, an attribute before opset 11, an input since. Returns false if the input
 * is not constant. */
static bool clip_bound(const graph_info *s, const node *n, size_t input, const char *name,
                       float *bound)
{
    double number;
    if (node_attribute(n, name)) {
        *bound = node_float(n, name, *bound);
        return true;
    }
    if (!node_has_input(n, input)) return true;
    if (!graph_info_number(s, n->inputs[input], &number)) return false;
    *bound = (float)number;
    return true;
}

static bool activation_numbers(fusion *f, const node *n)
{
    f->alpha = node_float(n, "alpha", f->activation->alpha);
    f->beta = node_float(n, "beta", f->activation->beta);
    if (strcmp(n->op_type, "Gelu") == 0)
        return strcmp(node_string(n, "approximate", "none"), "none") == 0;
    if (strcmp(n->op_type, "Swish") == 0) return node_float(n, "alpha", 1.0f) == 1.0f;
    if (strcmp(n->op_type, "Clip") != 0) return true;
    f->alpha = f->activation->alpha;
    f->beta = f->activation->beta;
    return clip_bound(f->info, n, 1, "min", &f->alpha) &&
           clip_bound(f->info, n, 2, "max", &f->beta);
}

static void follow_activation(fusion *f)
{
    node_id next = graph_info_only_reader(f->info, f->target);
    if (next == NODE_NONE) return;
    const node *n = &f->graph->nodes[next];
    if (n->domain[0] != '\0' || n->inputs[0] != f->graph->nodes[f->target].outputs[0]) return;
    f->activation = epilogue_find(n->op_type);
    if (!f->activation || !activation_numbers(f, n)) {
        f->activation = NULL;
        return;
    }
    f->changed = true;
    rewrite_take_output(f->graph, f->target, next);
}

/* ---- the node -------------------------------------------------------------------------------- */

static clg_status write_fused(fusion *f)
{
    size_t n_inputs = f->inputs[3] != VALUE_NONE ? 4 : f->inputs[2] != VALUE_NONE ? 3 : 2;
    CLG_TRY(rewrite_inputs(f->graph, f->target, n_inputs, f->inputs));
    if (f->has_mask) CLG_TRY(node_set_int(f->graph, f->target, "residual_mask", 1));
    if (f->activation) {
        CLG_TRY(node_set_string(f->graph, f->target, "activation", f->activation->name));
        CLG_TRY(node_set_float(f->graph, f->target, "activation_alpha", f->alpha));
        CLG_TRY(node_set_float(f->graph, f->target, "activation_beta", f->beta));
    }
    node *n = &f->graph->nodes[f->target];
    n->domain = DOMAIN_INTERNAL;
    n->op_type = f->fused_type;
    n->opset = graph_opset(f->graph, DOMAIN_INTERNAL);
    return CLG_OK;
}

static bool is_nbits(const node *n)
{
    return !n->removed && strcmp(n->op_type, "MatMulNBits") == 0 &&
           (strcmp(n->domain, "com.microsoft") == 0 || strcmp(n->domain, DOMAIN_INTERNAL) == 0);
}

/* Makes a bias that is added to a MatMulNBits its input 5. */
static clg_status fuse_nbits(const shape_terms *shapes, node_id target)
{
    enum { BIAS = 5 };
    const graph_info *s = &shapes->info;
    graph *g = s->graph;
    fusion f = {
        .shapes = shapes, .info = s, .graph = g, .target = target, .fused_type = "MatMulNBits"};
    const node *n = &g->nodes[target];
    const value_id product = n->outputs[0];
    const node_id add = graph_info_only_reader(s, target);
    value_id inputs[BIAS + 1];
    if (node_has_input(n, BIAS) || add == NODE_NONE || !node_is(&g->nodes[add], "Add"))
        return CLG_OK;
    const value_id other = other_input(&g->nodes[add], product);
    if (other == VALUE_NONE || other == product || other >= s->n_values ||
        s->facts[product].dims.rank == RANK_UNKNOWN || !bias_fits(&f, other, &s->facts[product]))
        return CLG_OK;
    for (size_t i = 0; i < BIAS; i++) inputs[i] = i < n->n_inputs ? n->inputs[i] : VALUE_NONE;
    CLG_TRY(take_bias(&f, add, other));
    inputs[BIAS] = f.inputs[2];
    return rewrite_inputs(g, target, BIAS + 1, inputs);
}

static clg_status fuse(const shape_terms *shapes, node_id target)
{
    const graph_info *s = &shapes->info;
    graph *g = s->graph;
    const node *n = &g->nodes[target];
    if (is_nbits(n)) return fuse_nbits(shapes, target);
    fusion f = {
        .shapes = shapes, .info = s, .graph = g, .target = target, .fused_type = fused_name(n)};
    if (!f.fused_type || n->n_inputs < 2 || n->n_inputs > 3) return CLG_OK;
    clg_dtype dtype = s->facts[n->outputs[0]].dtype;
    if (dtype != CLG_FLOAT32 && dtype != CLG_FLOAT16 && dtype != CLG_BFLOAT16) return CLG_OK;
    for (size_t i = 0; i < 4; i++) f.inputs[i] = i < n->n_inputs ? n->inputs[i] : VALUE_NONE;
    for (bool taken = true; taken;) CLG_TRY(follow_add(&f, &taken));
    follow_mask(&f);
    if (!f.has_mask) follow_activation(&f);
    return f.changed ? write_fused(&f) : CLG_OK;
}

static bool may_be_target(const node *n) { return fused_name(n) || is_nbits(n); }

clg_status pass_epilogue(graph *g, const pass_options *options)
{
    (void)options;
    shape_terms s;
    const size_t n_nodes = g->n_nodes;
    if (!graph_has(g, may_be_target)) return CLG_OK;
    CLG_TRY(shape_terms_make(g, &s));
    clg_status status = CLG_OK;
    for (node_id i = 0; i < n_nodes && status == CLG_OK; i++) status = fuse(&s, i);
    shape_terms_deinit(&s);
    return status;
}
