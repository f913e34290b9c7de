/* SPDX-License-Identifier: Apache-2.0
 *
 * Fuses a channel-blocked 1x1 convolution with a depthwise one that is the only consumer of its
 * result: the feature map between them, often several times as large as those around it, then stays
 * in the cache (BlockedConv with inputs 4 and 5, ops/conv/op_conv_blocked.c). Both must have the
 * same activation, or one of them none. See decision 34.
 */
#include "ops/conv/conv_blocked.h"
#include "passes/layout/blocked.h"

#include <string.h>

enum { BIAS = 2, RESIDUAL = 3 };

bool blocked_is_conv(const node *n)
{
    return !n->removed && n->domain && strcmp(n->domain, DOMAIN_INTERNAL) == 0 &&
           strcmp(n->op_type, "BlockedConv") == 0 && !node_has_input(n, BLOCKED_EXPAND_WEIGHT);
}

static bool all_are(const node *n, const char *name, int64_t value)
{
    size_t count;
    const int64_t *values = node_ints(n, name, &count);
    for (size_t i = 0; i < count; i++)
        if (values[i] != value) return false;
    return true;
}

bool blocked_is_point(const graph_info *s, const node *n)
{
    if (!blocked_is_conv(n) || node_int(n, "group", 1) != 1 ||
        s->facts[n->inputs[0]].dims.rank != 5)
        return false;
    const shape *w = &s->facts[n->inputs[1]].dims;
    return w->rank == 4 && w->dims[2] == 1 && w->dims[3] == 1 && all_are(n, "strides", 1) &&
           all_are(n, "pads", 0);
}

static bool is_depthwise(const node *n)
{
    return blocked_is_conv(n) && !node_has_input(n, RESIDUAL) && node_int(n, "group", 1) > 1;
}

static const char *activation_of(const node *n) { return node_string(n, "activation", ""); }

static bool same_number(const node *a, const node *b, const char *name)
{
    const graph_attribute *x = node_attribute(a, name), *y = node_attribute(b, name);
    if (!x || !y) return x == y;
    return node_float(a, name, 0) == node_float(b, name, 0);
}

static bool epilogues_agree(const node *point, const node *depthwise)
{
    const char *first = activation_of(point), *last = activation_of(depthwise);
    if (first[0] == '\0' || last[0] == '\0') return true;
    return strcmp(first, last) == 0 && same_number(point, depthwise, "activation_alpha") &&
           same_number(point, depthwise, "activation_beta");
}

static clg_status copy_activation(graph *g, node_id from, node_id to)
{
    static const char *const numbers[] = {"activation_alpha", "activation_beta"};
    const char *name = activation_of(&g->nodes[from]);
    CLG_TRY(node_set_string(g, to, "activation", name));
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (node_attribute(&g->nodes[from], numbers[i]))
            CLG_TRY(node_set_float(g, to, numbers[i], node_float(&g->nodes[from], numbers[i], 0)));
    return CLG_OK;
}

static clg_status join(graph *g, node_id point, node_id depthwise)
{
    const node *p = &g->nodes[point], *d = &g->nodes[depthwise];
    const bool first = activation_of(p)[0] != '\0', last = activation_of(d)[0] != '\0';
    const value_id inputs[] = {
        p->inputs[0], d->inputs[1], node_has_input(d, BIAS) ? d->inputs[BIAS] : VALUE_NONE,
        VALUE_NONE,   p->inputs[1], node_has_input(p, BIAS) ? p->inputs[BIAS] : VALUE_NONE};
    if (first && !last) CLG_TRY(copy_activation(g, point, depthwise));
    CLG_TRY(
        node_set_int(g, depthwise, "activated",
                     (first ? BLOCKED_FIRST_ACTIVATED : 0) | (last ? BLOCKED_LAST_ACTIVATED : 0)));
    return rewrite_inputs(g, depthwise, 6, inputs);
}

static clg_status rewrite(const graph_info *s, node_id depthwise)
{
    graph *g = s->graph;
    const value_id between = g->nodes[depthwise].inputs[0];
    const node_id from = g->values[between].producer;
    if (from == NODE_NONE || !blocked_is_point(s, &g->nodes[from]) ||
        node_has_input(&g->nodes[from], RESIDUAL) || s->uses[between] != 1 ||
        !epilogues_agree(&g->nodes[from], &g->nodes[depthwise]))
        return CLG_OK;
    CLG_TRY(join(g, from, depthwise));
    graph_remove_node(g, from);
    return CLG_OK;
}

clg_status pass_expand(graph *g, const pass_options *options)
{
    (void)options;
    return rewrite_each(g, is_depthwise, rewrite);
}
