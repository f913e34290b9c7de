/* SPDX-License-Identifier: Apache-2.0
 *
 * Replaces the output of Identity, of Dropout in inference, and of a Cast to the dtype that its
 * input has, by its input in all consumers. Then pass_dead.c removes the node, unless its output is
 * an output of the graph.
 */
#include "passes/rewrite.h"

static bool is_identity(const graph *g, const node *n)
{
    if (node_is(n, "Identity")) return true;
    if (!node_is(n, "Dropout")) return false;
    if (n->opset < 7) return node_int(n, "is_test", 0) != 0;
    if (!node_has_input(n, 2)) return true;
    const tensor *training = g->values[n->inputs[2]].constant;
    return training && training->n_elements == 1 && tensor_get_int(training, 0) == 0;
}

static bool is_cast(const node *n) { return node_is(n, "Cast"); }

/* Returns whether the dtype of a value is what the model says, unchecked: results of control flow
 * and items of sequences. */
static bool is_only_declared(const graph *g, value_id v)
{
    const node_id producer = g->values[v].producer;
    const op_row *row = producer == NODE_NONE ? NULL : g->nodes[producer].op;
    return row && (row->flags & OP_CONTROL);
}

static clg_status skip_cast(const graph_info *s, node_id id)
{
    const node *n = &s->graph->nodes[id];
    const value_id x = n->inputs[0], y = n->outputs[0];
    if (x != VALUE_NONE && is_only_declared(s->graph, x)) return CLG_OK;
    if (x == VALUE_NONE || y == VALUE_NONE || s->facts[x].kind != CLG_VALUE_TENSOR ||
        s->facts[x].dtype == CLG_DTYPE_NONE || s->facts[x].dtype != s->facts[y].dtype)
        return CLG_OK;
    return graph_replace_uses(s->graph, y, x);
}

clg_status pass_identity(graph *g, const pass_options *options)
{
    (void)options;
    CLG_TRY(rewrite_each(g, is_cast, skip_cast));
    for (node_id i = 0; i < g->n_nodes; i++) {
        const node *n = &g->nodes[i];
        if (is_identity(g, n) && n->inputs[0] != VALUE_NONE && n->outputs[0] != VALUE_NONE)
            CLG_TRY(graph_replace_uses(g, n->outputs[0], n->inputs[0]));
    }
    return CLG_OK;
}
