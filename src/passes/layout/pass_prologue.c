/* SPDX-License-Identifier: Apache-2.0
 *
 * Fuses a scale and a shift of each channel, perhaps followed by Relu, into the channel-blocked 1x1
 * convolution that alone reads the result: what is left of a BatchNormalization before a
 * convolution, as in DenseNet and in residual networks with pre-activation. The convolution applies
 * them to the pixels that it copies (BlockedConv with inputs 6 and 7, ops/conv/op_conv_blocked.c),
 * so that the feature map is neither written nor read once more. Larger kernels keep Winograd's
 * algorithm instead. See decision 97.
 */
#include "ops/conv/conv_blocked.h"
#include "passes/layout/blocked.h"
#include "passes/pattern.h"

#define N_INPUTS 8

/* A scale and shift of the channels of x, and the nodes that compute it. */
typedef struct scaled_map {
    value_id x, scale, shift;
    bool has_relu;
    pattern_match found;
} scaled_map;

/* Returns whether v is a constant with an element for each channel of the feature map x. */
static bool is_by_channel(const graph_info *s, value_id v, const shape *x)
{
    const value_fact *f = &s->facts[v];
    return s->constant[v] && f->dtype == CLG_FLOAT32 && f->dims.rank == 4 && x->rank == 5 &&
           f->dims.dims[0] == x->dims[1] && f->dims.dims[1] == 1 && f->dims.dims[2] == 1 &&
           f->dims.dims[3] == x->dims[4];
}

/* Returns whether value v is computed by scale, shift and perhaps Relu, and is, like the values
 * between them, read once. */
static bool find_scaled(const graph_info *s, value_id v, scaled_map *out)
{
    const node_id root = s->graph->values[v].producer;
    pattern_match *m = &out->found;
    if (root == NODE_NONE) return false;
    out->has_relu = pattern_find(s, "Relu(Add(Mul(x, f), b))", root, m);
    if (!out->has_relu && !pattern_find(s, "Add(Mul(x, f), b)", root, m)) return false;
    for (size_t i = 0; i < m->n_nodes; i++)
        if (s->uses[s->graph->nodes[m->nodes[i]].outputs[0]] != 1) return false;
    out->x = pattern_value(m, 'x');
    out->scale = pattern_value(m, 'f');
    out->shift = pattern_value(m, 'b');
    if (s->constant[out->x]) {
        const value_id x = out->scale;
        out->scale = out->x;
        out->x = x;
    }
    const shape *x = &s->facts[out->x].dims;
    return !s->constant[out->x] && is_by_channel(s, out->scale, x) &&
           is_by_channel(s, out->shift, x);
}

static clg_status join(graph *g, node_id conv, const scaled_map *m)
{
    value_id inputs[N_INPUTS];
    for (size_t i = 0; i < N_INPUTS; i++)
        inputs[i] = node_has_input(&g->nodes[conv], i) ? g->nodes[conv].inputs[i] : VALUE_NONE;
    inputs[0] = m->x;
    inputs[BLOCKED_SCALE] = m->scale;
    inputs[BLOCKED_SHIFT] = m->shift;
    if (m->has_relu) CLG_TRY(node_set_int(g, conv, "prologue_relu", 1));
    CLG_TRY(rewrite_inputs(g, conv, N_INPUTS, inputs));
    for (size_t i = 0; i < m->found.n_nodes; i++) graph_remove_node(g, m->found.nodes[i]);
    return CLG_OK;
}

static clg_status rewrite(const graph_info *s, node_id n)
{
    scaled_map m;
    const node *conv = &s->graph->nodes[n];
    return blocked_is_point(s, conv) && find_scaled(s, conv->inputs[0], &m) ? join(s->graph, n, &m)
                                                                            : CLG_OK;
}

clg_status pass_prologue(graph *g, const pass_options *options)
{
    (void)options;
    return rewrite_each(g, blocked_is_conv, rewrite);
}
