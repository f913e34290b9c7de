/* SPDX-License-Identifier: Apache-2.0
 *
 * Eliminates common subexpressions: of several nodes with equal operator, version, attributes and
 * inputs, only the first one remains. Exporters write the same Shape, Transpose or Cast once for
 * each consumer. Nodes that draw random numbers, and nodes with subgraphs, are never merged.
 */
#include "base/cancel.h"
#include "base/strbuf.h"
#include "passes/rewrite.h"

static bool may_be_shared(const node *n)
{
    const op_row *row = n->op;
    return !n->removed && row && !(row->flags & (OP_RANDOM | OP_CONTROL)) && node_has_key(n);
}

/* Writes a node's operator, attributes and inputs as bytes, the key of the hash map in which equal
 * nodes are found. */
static void describe(const node *n, strbuf *t)
{
    node_append_key(n, t);
    strbuf_append_bytes(t, (const char *)n->inputs, n->n_inputs * sizeof *n->inputs);
}

/* Returns whether `first` can replace n: n produces no output of the graph, and `first` has all
 * outputs that n has. */
static bool may_replace(const graph *g, const node *first, const node *n)
{
    for (size_t i = 0; i < n->n_outputs; i++) {
        if (n->outputs[i] == VALUE_NONE) continue;
        if (g->values[n->outputs[i]].is_output) return false;
        if (i >= first->n_outputs || first->outputs[i] == VALUE_NONE) return false;
    }
    return true;
}

static clg_status share(graph *g, hash_map *seen, node_id i)
{
    strbuf t;
    strbuf_init(&t, 0);
    describe(&g->nodes[i], &t);
    clg_status status = t.status;
    const size_t at =
        status == CLG_OK ? hash_map_get(seen, strbuf_data(&t), t.size_bytes) : HASH_MAP_NONE;
    if (status == CLG_OK && at == HASH_MAP_NONE) {
        status = hash_map_set(seen, strbuf_data(&t), t.size_bytes, i);
    } else if (status == CLG_OK && may_replace(g, &g->nodes[at], &g->nodes[i])) {
        for (size_t k = 0; k < g->nodes[i].n_outputs && status == CLG_OK; k++)
            if (g->nodes[i].outputs[k] != VALUE_NONE)
                status = graph_replace_uses(g, g->nodes[i].outputs[k], g->nodes[at].outputs[k]);
        if (status == CLG_OK) graph_remove_node(g, i);
    }
    strbuf_deinit(&t);
    return status;
}

clg_status pass_common(graph *g, const pass_options *options)
{
    (void)options;
    hash_map seen = {0};
    clg_status status = CLG_OK;
    for (node_id i = 0; i < g->n_nodes && status == CLG_OK; i++) {
        status = cancel_check("optimising the graph");
        if (status == CLG_OK && may_be_shared(&g->nodes[i])) status = share(g, &seen, i);
    }
    hash_map_deinit(&seen);
    return status;
}
