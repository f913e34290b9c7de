/* SPDX-License-Identifier: Apache-2.0
 *
 * Validates a graph's structure, independent of its operators: every value that is used is defined,
 * domains are imported, captures (uses of an enclosing graph's values) resolve, outputs are
 * distinct, the nesting depth is bounded, and the graph is acyclic. Duplicate names and values with
 * two producers are rejected earlier, when they are added.
 */
#include "base/cancel.h"
#include "graph/graph_internal.h"

static clg_status check_node(const graph *g, const node *n)
{
    char text[NODE_TEXT_BYTES], shown[NAME_TEXT_BYTES];
    if (!n->op_type[0]) {
        return error_set(CLG_ERROR_INVALID_MODEL, "%s has no operator type", node_text(n, text));
    }
    if (n->opset < 1) {
        return error_set(
            CLG_ERROR_INVALID_MODEL,
            "%s belongs to the operator set '%s', of which the model imports no version",
            node_text(n, text), n->domain[0] ? name_text(n->domain, shown) : "ai.onnx");
    }
    for (size_t i = 0; i < n->n_inputs; i++) {
        if (n->inputs[i] == VALUE_NONE) continue;
        const value *v = &g->values[n->inputs[i]];
        if (value_is_defined(v)) continue;
        return error_set(CLG_ERROR_INVALID_MODEL,
                         "%s reads '%s', which no node, input or initializer gives",
                         node_text(n, text), name_text(v->name, shown));
    }
    return CLG_OK;
}

static clg_status check_captures(const graph *g, const graph *parent)
{
    char shown[NAME_TEXT_BYTES];
    for (size_t i = 0; i < g->n_values; i++) {
        const value *v = &g->values[i];
        if (!v->is_outer) continue;
        bool is_there =
            parent && v->outer < parent->n_values && value_is_defined(&parent->values[v->outer]);
        if (!is_there) {
            return error_set(CLG_ERROR_INVALID_MODEL,
                             "a subgraph reads '%s', which nothing around it gives",
                             name_text(v->name, shown));
        }
    }
    return CLG_OK;
}

/* An output may be listed several times. */
static clg_status check_outputs(const graph *g, bool is_outermost)
{
    char shown[NAME_TEXT_BYTES];
    if (is_outermost && g->n_outputs == 0)
        return error_set(CLG_ERROR_INVALID_MODEL, "the graph has no outputs");
    for (size_t i = 0; i < g->n_outputs; i++) {
        const value *v = &g->values[g->outputs[i]];
        if (!value_is_defined(v))
            return error_set(CLG_ERROR_INVALID_MODEL, "the output '%s' is given by no node",
                             name_text(v->name, shown));
    }
    return CLG_OK;
}

static clg_status check_graph(graph *g, const graph *parent, int depth)
{
    if (depth > GRAPH_MAX_DEPTH) {
        return error_set(CLG_ERROR_INVALID_MODEL, "subgraphs are nested deeper than %d",
                         GRAPH_MAX_DEPTH);
    }
    CLG_TRY(check_captures(g, parent));
    for (size_t i = 0; i < g->n_nodes; i++) {
        CLG_TRY(cancel_check("loading the model"));
        if (!g->nodes[i].removed) CLG_TRY(check_node(g, &g->nodes[i]));
    }
    CLG_TRY(check_outputs(g, parent == NULL));
    for (size_t i = 0; i < g->n_nodes; i++) {
        const node *n = &g->nodes[i];
        for (size_t k = 0; k < n->n_attributes && !n->removed; k++) {
            if (n->attributes[k].type == ATTRIBUTE_GRAPH)
                CLG_TRY(check_graph(n->attributes[k].as.graph, g, depth + 1));
        }
    }
    return graph_compact(g);
}

clg_status graph_check(graph *g) { return check_graph(g, NULL, 0); }
