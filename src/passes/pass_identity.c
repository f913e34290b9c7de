/* SPDX-License-Identifier: Apache-2.0
 *
 * Replaces the output of Identity, and of Dropout in inference, by its input in all consumers. Then
 * pass_dead.c removes the node, unless its output is an output of the graph.
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

clg_status pass_identity(graph *g, const pass_options *options)
{
    (void)options;
    for (node_id i = 0; i < g->n_nodes; i++) {
        const node *n = &g->nodes[i];
        if (is_identity(g, n) && n->inputs[0] != VALUE_NONE && n->outputs[0] != VALUE_NONE)
            CLG_TRY(graph_replace_uses(g, n->outputs[0], n->inputs[0]));
    }
    return CLG_OK;
}
