/* SPDX-License-Identifier: Apache-2.0
 *
 * Edits for passes. Subgraphs see values of the enclosing graph by id, so that renaming is never needed.
 */
#include "graph/graph_internal.h"

void graph_replace_uses(graph *g, value_id from, value_id to)
{
    for (size_t i = 0; i < g->n_nodes; i++) {
        node *n = &g->nodes[i];
        for (size_t k = 0; k < n->n_inputs; k++) {
            if (n->inputs[k] == from) n->inputs[k] = to;
        }
        for (size_t k = 0; k < n->n_attributes; k++) {
            if (n->attributes[k].type != ATTRIBUTE_GRAPH) continue;
            graph *sub = n->attributes[k].as.g;
            for (size_t v = 0; v < sub->n_values; v++) {
                if (sub->values[v].is_outer && sub->values[v].outer == from)
                    sub->values[v].outer = to;
            }
        }
    }
}

void graph_remove_node(graph *g, node_id id)
{
    node *n = &g->nodes[id];
    n->removed = true;
    for (size_t i = 0; i < n->n_outputs; i++) {
        if (n->outputs[i] != VALUE_NONE) g->values[n->outputs[i]].producer = NODE_NONE;
    }
}

clg_status graph_count_uses(const graph *g, uint32_t **out_counts)
{
    uint32_t *counts = memory_zalloc(g->n_values, sizeof *counts);
    *out_counts = counts;
    if (!counts) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; i < g->n_nodes; i++) {
        const node *n = &g->nodes[i];
        if (n->removed) continue;
        for (size_t k = 0; k < n->n_inputs; k++) {
            if (n->inputs[k] != VALUE_NONE) counts[n->inputs[k]]++;
        }
        for (size_t k = 0; k < n->n_attributes; k++) {
            if (n->attributes[k].type != ATTRIBUTE_GRAPH) continue;
            const graph *sub = n->attributes[k].as.g;
            for (size_t v = 0; v < sub->n_values; v++) {
                if (sub->values[v].is_outer) counts[sub->values[v].outer]++;
            }
        }
    }
    for (size_t i = 0; i < g->n_outputs; i++) counts[g->outputs[i]]++;
    return CLG_OK;
}
