/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements what graph passes share: the analysis of a graph (uses, consumers, constants, inferred
 * facts) and small edits that add or replace nodes. See rewrite.h.
 */
#include "passes/rewrite.h"

#include <string.h>

static void find_readers(graph_info *s)
{
    const graph *g = s->graph;
    for (size_t v = 0; v < g->n_values; v++) s->reader[v] = NODE_NONE;
    for (node_id n = 0; n < g->n_nodes; n++)
        for (size_t i = 0; !g->nodes[n].removed && i < g->nodes[n].n_inputs; i++)
            if (g->nodes[n].inputs[i] != VALUE_NONE) s->reader[g->nodes[n].inputs[i]] = n;
}

/* Marks the values that depend on constants only. Nodes are in topological order, so one sweep
 * suffices. */
static void find_constants(graph_info *s)
{
    const graph *g = s->graph;
    for (size_t v = 0; v < g->n_values; v++) s->constant[v] = g->values[v].constant != NULL;
    for (node_id n = 0; n < g->n_nodes; n++) {
        const node *d = &g->nodes[n];
        bool constant = !d->removed && d->op && op_folds(d);
        for (size_t i = 0; constant && i < d->n_inputs; i++)
            constant = d->inputs[i] == VALUE_NONE || s->constant[d->inputs[i]];
        for (size_t i = 0; i < d->n_outputs; i++)
            if (d->outputs[i] != VALUE_NONE) s->constant[d->outputs[i]] = constant;
    }
}

clg_status graph_info_make(graph *g, graph_info *out_info)
{
    graph_info *s = out_info;
    *s = (graph_info){.graph = g, .n_values = g->n_values};
    clg_status status = graph_count_uses(g, &s->uses);
    if (status == CLG_OK) status = ops_infer_graph(g, NULL, &s->facts);
    s->constant = memory_zalloc(g->n_values + 1, sizeof *s->constant);
    s->reader = memory_zalloc(g->n_values + 1, sizeof *s->reader);
    if (status == CLG_OK && (!s->constant || !s->reader)) status = CLG_ERROR_OUT_OF_HOST_MEMORY;
    if (status != CLG_OK) {
        graph_info_deinit(s);
        return status;
    }
    find_readers(s);
    find_constants(s);
    return CLG_OK;
}

void graph_info_deinit(graph_info *s)
{
    if (s->facts) ops_facts_free(s->facts, s->n_values);
    memory_free(s->uses);
    memory_free(s->constant);
    memory_free(s->reader);
    *s = (graph_info){0};
}

bool graph_has(const graph *g, node_filter filter)
{
    for (size_t i = 0; i < g->n_nodes; i++)
        if (filter(&g->nodes[i])) return true;
    return false;
}

clg_status rewrite_each(graph *g, node_filter filter,
                        clg_status (*rewrite)(const graph_info *s, node_id n))
{
    graph_info s;
    const size_t n_nodes = g->n_nodes;
    if (!graph_has(g, filter)) return CLG_OK;
    CLG_TRY(graph_info_make(g, &s));
    clg_status status = CLG_OK;
    for (node_id i = 0; i < n_nodes && status == CLG_OK; i++)
        if (filter(&g->nodes[i])) status = rewrite(&s, i);
    graph_info_deinit(&s);
    return status;
}

bool node_is(const node *n, const char *op_type)
{
    return !n->removed && n->domain[0] == '\0' && strcmp(n->op_type, op_type) == 0;
}

bool node_is_conv(const node *n)
{
    return node_is(n, "Conv") || (!n->removed && strcmp(n->domain, DOMAIN_INTERNAL) == 0 &&
                                  strcmp(n->op_type, "FusedConv") == 0);
}

node_id graph_info_only_reader(const graph_info *s, node_id n)
{
    value_id v = s->graph->nodes[n].outputs[0];
    if (v == VALUE_NONE || v >= s->n_values || s->uses[v] != 1 || s->graph->values[v].is_output)
        return NODE_NONE;
    node_id reader = s->reader[v];
    return reader == NODE_NONE || s->graph->nodes[reader].removed ? NODE_NONE : reader;
}

const tensor *graph_info_constant(const graph_info *s, value_id v)
{
    if (v >= s->n_values || !s->constant[v]) return NULL;
    return s->graph->values[v].constant ? s->graph->values[v].constant : s->facts[v].known;
}

bool graph_info_number(const graph_info *s, value_id v, double *out)
{
    const tensor *t = graph_info_constant(s, v);
    if (!t || t->n_elements != 1 || !dtype_is_float(t->dtype)) return false;
    *out = tensor_get_float(t, 0);
    return true;
}

value_id other_input(const node *n, value_id v)
{
    if (n->n_inputs != 2) return VALUE_NONE;
    return n->inputs[0] == v ? n->inputs[1] : n->inputs[0];
}

clg_status rewrite_add(graph *g, const char *op_type, size_t n_inputs, const value_id *inputs,
                       value_id *out_value)
{
    const int64_t opset = graph_opset(g, "");
    return graph_add_result(g, "", op_type, opset < GRAPH_ADDED_OPSET ? GRAPH_ADDED_OPSET : opset,
                            n_inputs, inputs, out_value);
}

clg_status rewrite_part(graph *g, node_id whole, const char *domain, const char *op_type,
                        int64_t opset, size_t n_inputs, const value_id *inputs, value_id *out_value)
{
    CLG_TRY(graph_add_result(g, domain, op_type, opset, n_inputs, inputs, out_value));
    g->nodes[g->values[*out_value].producer].label = g->nodes[whole].label;
    return CLG_OK;
}

clg_status rewrite_inputs(graph *g, node_id n, size_t n_inputs, const value_id *inputs)
{
    value_id *copy = arena_alloc(&g->memory, n_inputs + 1, sizeof *copy);
    if (!copy) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    if (n_inputs) memcpy(copy, inputs, n_inputs * sizeof *copy);
    g->nodes[n].inputs = copy;
    g->nodes[n].n_inputs = n_inputs;
    graph_note_node(g, n);
    return CLG_OK;
}

clg_status rewrite_attributes(graph *g, node_id from, node_id to)
{
    for (size_t i = 0; i < g->nodes[from].n_attributes; i++)
        CLG_TRY(node_add_attribute(g, to, &g->nodes[from].attributes[i]));
    return CLG_OK;
}

clg_status rewrite_become(graph *g, node_id n, const char *domain, const char *op_type,
                          int64_t opset, size_t n_inputs, const value_id *inputs)
{
    node *what = &g->nodes[n];
    CLG_TRY(rewrite_inputs(g, n, n_inputs, inputs));
    for (size_t i = 0; i < what->n_attributes; i++)
        if (what->attributes[i].type == ATTRIBUTE_TENSOR)
            tensor_free(what->attributes[i].as.tensor);
    what->domain = domain;
    what->op_type = op_type;
    what->opset = opset;
    what->n_attributes = 0;
    what->op = NULL;
    return CLG_OK;
}

void rewrite_take_output(graph *g, node_id n, node_id last)
{
    value_id old = g->nodes[n].outputs[0], taken = g->nodes[last].outputs[0];
    graph_remove_node(g, last);
    g->nodes[n].outputs[0] = taken;
    g->values[taken].producer = n;
    g->values[old].producer = NODE_NONE;
}
