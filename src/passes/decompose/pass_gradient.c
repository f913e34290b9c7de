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
    value_id *copies; /* by value of the graph: its copy; VALUE_NONE: none */
    size_t n_values;
} gradient;

static clg_status find_named(const gradient *w, const char *name, value_id *out)
{
    char text[NODE_TEXT_BYTES], shown[NAME_TEXT_BYTES];
    *out = graph_find_value(w->graph, name);
    if (*out != VALUE_NONE) return CLG_OK;
    return error_set(CLG_ERROR_INVALID_MODEL, "%s: the graph has no value '%s'",
                     node_text(&w->node, text), name_text(name, shown));
}

/* Gives each named value a copy that is an input of the node. The copy is a value of its own, since
 * an input may be given twice, or be used in other ways. */
static clg_status copy_named(gradient *w, const char *const *names, size_t n, size_t first)
{
    for (size_t i = 0; i < n; i++) {
        value_id v;
        CLG_TRY(find_named(w, names[i], &v));
        if (w->node.inputs[first + i] == VALUE_NONE)
            return error_set(CLG_ERROR_INVALID_MODEL, "a Gradient omits input %zu", first + i);
        CLG_TRY(rewrite_part(w->graph, w->id, "", "Identity", 13, 1, &w->node.inputs[first + i],
                             &w->copies[v]));
    }
    return CLG_OK;
}

static bool reads_copied(const gradient *w, const node *n)
{
    for (size_t i = 0; i < n->n_inputs; i++)
        if (n->inputs[i] != VALUE_NONE && w->copies[n->inputs[i]] != VALUE_NONE) return true;
    return false;
}

/* Copies a node, with copies in place of what has one. */
static clg_status copy_node(gradient *w, node_id id)
{
    const node n = w->graph->nodes[id];
    char text[NODE_TEXT_BYTES];
    value_id *ids = memory_zalloc(n.n_inputs + n.n_outputs + 1, sizeof *ids);
    value_id *outputs = ids ? ids + n.n_inputs : NULL;
    node_id made = NODE_NONE;
    clg_status status = ids ? CLG_OK : CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; i < n.n_attributes && status == CLG_OK; i++)
        if (n.attributes[i].type == ATTRIBUTE_GRAPH)
            status = error_set(CLG_ERROR_UNSUPPORTED_OPERATOR,
                               "a Gradient passes through %s: gradients do not pass through "
                               "control flow",
                               node_text(&n, text));
    for (size_t i = 0; i < n.n_inputs && status == CLG_OK; i++) {
        const value_id v = n.inputs[i];
        ids[i] = v != VALUE_NONE && w->copies[v] != VALUE_NONE ? w->copies[v] : v;
    }
    for (size_t k = 0; k < n.n_outputs && status == CLG_OK; k++) {
        outputs[k] = VALUE_NONE;
        if (n.outputs[k] != VALUE_NONE) status = graph_add_value(w->graph, "", &outputs[k]);
    }
    if (status == CLG_OK)
        status = graph_add_node(w->graph, n.domain, n.op_type, "", n.n_inputs, ids, n.n_outputs,
                                outputs, &made);
    if (status == CLG_OK) status = rewrite_attributes(w->graph, id, made);
    for (size_t k = 0; k < n.n_outputs && status == CLG_OK; k++)
        if (n.outputs[k] != VALUE_NONE && w->copies[n.outputs[k]] == VALUE_NONE)
            w->copies[n.outputs[k]] = outputs[k];
    if (status == CLG_OK) {
        w->graph->nodes[made].opset = n.opset;
        w->graph->nodes[made].op = n.op;
        w->graph->nodes[made].label = n.label;
    }
    memory_free(ids);
    return status;
}

/* Copies what lies between the named values and y; nodes are in topological order. */
static clg_status copy_path(gradient *w)
{
    const size_t n_nodes = w->graph->n_nodes;
    bool *needed = memory_zalloc(n_nodes + 1, sizeof *needed);
    clg_status status = needed ? CLG_OK : CLG_ERROR_OUT_OF_HOST_MEMORY;
    if (needed && w->graph->values[w->y].producer != NODE_NONE)
        needed[w->graph->values[w->y].producer] = true;
    for (size_t i = n_nodes; needed && i-- > 0;) {
        const node *n = &w->graph->nodes[i];
        for (size_t k = 0; needed[i] && k < n->n_inputs; k++)
            if (n->inputs[k] != VALUE_NONE && w->copies[n->inputs[k]] == VALUE_NONE &&
                w->graph->values[n->inputs[k]].producer != NODE_NONE)
                needed[w->graph->values[n->inputs[k]].producer] = true;
    }
    for (size_t i = 0; i < n_nodes && status == CLG_OK; i++)
        if (needed[i] && reads_copied(w, &w->graph->nodes[i])) status = copy_node(w, (node_id)i);
    memory_free(needed);
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
    const value_id y = w->copies[w->y] == VALUE_NONE ? w->y : w->copies[w->y];
    for (size_t i = 0; i < w->n_xs; i++) {
        value_id v;
        CLG_TRY(find_named(w, w->xs[i], &v));
        xs[i] = w->copies[v];
    }
    CLG_TRY(graph_compact(w->graph));
    CLG_TRY(ops_resolve(w->graph));
    CLG_TRY(grad_build(w->graph, y, VALUE_NONE, xs, w->n_xs, gradients));
    return give_outputs(w, gradients);
}

static clg_status replace(graph *g, node_id id)
{
    gradient w = {.graph = g, .id = id, .node = g->nodes[id], .n_values = g->n_values};
    const graph_attribute *xs = node_attribute(&w.node, "xs"), *zs = node_attribute(&w.node, "zs");
    w.xs = xs->as.strings;
    w.n_xs = xs->count;
    w.zs = zs ? zs->as.strings : NULL;
    w.n_zs = zs ? zs->count : 0;
    w.copies = memory_alloc((g->n_values + 1) * sizeof *w.copies);
    value_id *values = memory_zalloc(2 * w.n_xs + 1, sizeof *values);
    clg_status status = w.copies && values ? CLG_OK : CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t v = 0; v < g->n_values && w.copies; v++) w.copies[v] = VALUE_NONE;
    if (status == CLG_OK) status = find_named(&w, node_string(&w.node, "y", ""), &w.y);
    if (status == CLG_OK) status = copy_named(&w, w.xs, w.n_xs, 0);
    if (status == CLG_OK) status = copy_named(&w, w.zs, w.n_zs, w.n_xs);
    if (status == CLG_OK) status = copy_path(&w);
    if (status == CLG_OK) status = differentiate(&w, values);
    memory_free(w.copies);
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
