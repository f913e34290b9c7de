/* SPDX-License-Identifier: Apache-2.0
 *
 * Removes dead nodes: those whose outputs are neither used by remaining nodes nor outputs of the
 * graph.
 */
#include "passes/rewrite.h"

static bool is_dead(const graph *g, const node *n, const uint32_t *uses)
{
    for (size_t i = 0; i < n->n_outputs; i++)
        if (n->outputs[i] != VALUE_NONE &&
            (uses[n->outputs[i]] || g->values[n->outputs[i]].is_output))
            return false;
    return true;
}

clg_status pass_dead(graph *g, const pass_options *options)
{
    (void)options;
    uint32_t *uses;
    CLG_TRY(graph_count_uses(g, &uses));
    for (size_t left = g->n_nodes; left > 0; left--) { /* consumers first */
        node *n = &g->nodes[left - 1];
        if (n->removed || !is_dead(g, n, uses)) continue;
        for (size_t i = 0; i < n->n_inputs; i++)
            if (n->inputs[i] != VALUE_NONE) uses[n->inputs[i]]--;
        graph_remove_node(g, (node_id)(left - 1));
    }
    memory_free(uses);
    return CLG_OK;
}
