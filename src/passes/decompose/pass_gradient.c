/* SPDX-License-Identifier: Apache-2.0
 *
 * Replaces ai.onnx.preview.training.Gradient by nodes that compute the derivatives (ops/grad). The
 * nodes between the values that it names and y are copied, with the node's inputs in place of these
 * values: they may be others than those of the graph. Where they are the same, the pass "common"
 * makes one of the two again. Always runs: the operator has no kernel.
 */
#include "base/cancel.h"
#include "ops/grad/grad.h"
#include "passes/rewrite.h"

#include <string.h>

/* Each derivative of a derivative copies the one before, and each Gradient costs a pass over the
 * graph: a small file could ask for any amount of either. */
enum { MAX_GRADIENTS = 256, MAX_NODES = 1 << 20 };

typedef struct gradient {
    graph *graph;
    node_id id;
    node node; /* a copy from before */
    const char *const *xs, *const *zs;
    size_t n_xs, n_zs;
    value_id y;
    value_id *given; /* by value of the graph: the input of the node in its place, or VALUE_NONE */
    value_id *ids;   /* by value of the graph: its copy, or itself */
    bool *is_copied; /* by value of the graph: it has a copy */
} gradient;

static clg_status find_named(const gradient *w, const char *name, value_id *out)
{
    char text[NODE_TEXT_BYTES], shown[NAME_TEXT_BYTES];
    *out = graph_find_value(w->graph, name);
    if (*out != VALUE_NONE) return CLG_OK;
    return error_set(CLG_ERROR_INVALID_MODEL, "%s: the graph has no value '%s'",
                     node_text(&w->node, text), name_text(name, shown));
}

/* Gives each named value a copy that is an input of the node. The copy is a new value, since
 * an input may be given twice, or be used in other ways. */
static clg_status copy_named(gradient *w, const char *const *names, size_t n, size_t first)
{
    for (size_t i = 0; i < n; i++) {
        value_id v;
        CLG_TRY(find_named(w, names[i], &v));
        if (w->node.inputs[first + i] == VALUE_NONE)
            return error_set(CLG_ERROR_INVALID_MODEL, "a Gradient omits input %zu", first + i);
        CLG_TRY(rewrite_part(w->graph, w->id, "", "Identity", 13, 1, &w->node.inputs[first + i],
                             &w->given[v]));
        w->ids[v] = w->given[v];
        w->is_copied[v] = true;
    }
    return CLG_OK;
}

/* Copies a node, with copies in place of what has one. */
static clg_status copy_node(gradient *w, node_id id)
{
    const node n = w->graph->nodes[id];
    for (size_t k = 0; k < n.n_outputs; k++)
        if (n.outputs[k] != VALUE_NONE)
            CLG_TRY(graph_add_value(w->graph, "", &w->ids[n.outputs[k]]));
    CLG_TRY(graph_copy_node(w->graph, &n, w->ids));
    w->graph->nodes[w->graph->n_nodes - 1].label = n.label;
    for (size_t k = 0; k < n.n_outputs; k++) {
        const value_id v = n.outputs[k];
        if (v == VALUE_NONE) continue;
        if (w->given[v] != VALUE_NONE) w->ids[v] = w->given[v]; /* a named one beside others */
        w->is_copied[v] = true;
    }
    return CLG_OK;
}

/* Marks the producer of a value, unless the value has a copy already. */
typedef struct producers {
    const gradient *w;
    bool *needed;
} producers;

static void need_producer(void *user, value_id v)
{
    const producers *p = user;
    const node_id n = p->w->graph->values[v].producer;
    if (n != NODE_NONE && !p->w->is_copied[v]) p->needed[n] = true;
}

/* Copies what lies between the named values and y; nodes are in topological order. */
static clg_status copy_path(gradient *w)
{
    const size_t n_nodes = w->graph->n_nodes;
    producers p = {w, memory_zalloc(n_nodes + 1, sizeof *p.needed)};
    clg_status status = CLG_OK;
    if (!p.needed) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    need_producer(&p, w->y);
    for (size_t i = n_nodes; i-- > 0;)
        if (p.needed[i]) node_visit_uses(&w->graph->nodes[i], need_producer, &p);
    for (size_t i = 0; i < n_nodes && status == CLG_OK; i++)
        if (p.needed[i] && node_uses_marked(&w->graph->nodes[i], w->is_copied))
            status = copy_node(w, (node_id)i);
    memory_free(p.needed);
    return status;
}

/* Makes the gradients the node's outputs, under their names. */
static clg_status give_outputs(gradient *w, const value_id *gradients)
{
    for (size_t k = 0; k < w->node.n_outputs; k++) {
        const value_id out = w->node.outputs[k];
        node_id made;
        if (out == VALUE_NONE) continue;
        if (w->graph->values[out].producer != NODE_NONE) /* the node, renumbered by the sort */
            graph_remove_node(w->graph, w->graph->values[out].producer);
        CLG_TRY(graph_add_node(w->graph, "", "Identity", "", 1, &gradients[k], 1,
                               &w->node.outputs[k], &made));
    }
    return CLG_OK;
}

/* Adds the derivatives. Copies are new nodes: the graph is sorted and resolved before. */
static clg_status differentiate(gradient *w, value_id *values)
{
    value_id *xs = values, *gradients = values + w->n_xs;
    const value_id y = w->ids[w->y];
    for (size_t i = 0; i < w->n_xs; i++) {
        value_id v;
        CLG_TRY(find_named(w, w->xs[i], &v));
        xs[i] = w->given[v];
    }
    CLG_TRY(graph_compact(w->graph));
    CLG_TRY(ops_resolve(w->graph));
    CLG_TRY(grad_build(w->graph, y, VALUE_NONE, xs, w->n_xs, gradients));
    return give_outputs(w, gradients);
}

static clg_status replace(graph *g, node_id id)
{
    gradient w = {.graph = g, .id = id, .node = g->nodes[id]};
    const graph_attribute *xs = node_attribute(&w.node, "xs"), *zs = node_attribute(&w.node, "zs");
    w.xs = xs->as.strings;
    w.n_xs = xs->count;
    w.zs = zs ? zs->as.strings : NULL;
    w.n_zs = zs ? zs->count : 0;
    w.given = memory_zalloc(2 * g->n_values + 1, sizeof *w.given);
    w.is_copied = memory_zalloc(g->n_values + 1, sizeof *w.is_copied);
    w.ids = w.given ? w.given + g->n_values : NULL;
    value_id *values = memory_zalloc(2 * w.n_xs + 1, sizeof *values);
    clg_status status = w.given && w.is_copied && values ? CLG_OK : CLG_ERROR_OUT_OF_HOST_MEMORY;
    const size_t n_values = g->n_values; /* the graph grows */
    for (size_t v = 0; v < n_values && status == CLG_OK; v++) {
        w.given[v] = VALUE_NONE;
        w.ids[v] = (value_id)v;
    }
    if (status == CLG_OK) status = find_named(&w, node_string(&w.node, "y", ""), &w.y);
    if (status == CLG_OK) status = copy_named(&w, w.xs, w.n_xs, 0);
    if (status == CLG_OK) status = copy_named(&w, w.zs, w.n_zs, w.n_xs);
    if (status == CLG_OK) status = copy_path(&w);
    if (status == CLG_OK) status = differentiate(&w, values);
    memory_free(w.given);
    memory_free(w.is_copied);
    memory_free(values);
    return status;
}

static node_id find_gradient(const graph *g)
{
    for (node_id i = 0; i < g->n_nodes; i++)
        if (!g->nodes[i].removed && strcmp(g->nodes[i].op_type, "Gradient") == 0 &&
            strcmp(g->nodes[i].domain, "ai.onnx.preview.training") == 0)
            return i;
    return NODE_NONE;
}

clg_status pass_gradient(graph *g, const pass_options *options)
{
    (void)options;
    for (int n_replaced = 0;; n_replaced++) {
        const node_id id = find_gradient(g);
        if (id == NODE_NONE) return CLG_OK;
        if (n_replaced == MAX_GRADIENTS || g->n_nodes > MAX_NODES)
            return error_set(CLG_ERROR_UNSUPPORTED_OPERATOR,
                             "the model has more than %d Gradients, or they need more than %d "
                             "nodes",
                             MAX_GRADIENTS, MAX_NODES);
        CLG_TRY(cancel_check("differentiating the graph"));
        CLG_TRY(replace(g, id));
        CLG_TRY(graph_compact(g));
        CLG_TRY(ops_resolve(g));
    }
}
