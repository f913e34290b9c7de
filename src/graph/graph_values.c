/* SPDX-License-Identifier: Apache-2.0
 *
 * Deletes the values of a graph that nothing defines or nobody uses, of which passes leave many;
 * lets equal constants share a tensor.
 */
#include "base/cancel.h"
#include "base/hash.h"
#include "graph/graph_internal.h"

/* Larger constants are weights, which are seldom equal; to compare them takes time. */
#define MAX_SHARED_BYTES ((size_t)1 << 16)

static void mark(void *user, value_id v) { ((bool *)user)[v] = true; }

/* Marks the values to keep: those that are used, inputs, outputs of the graph and of nodes. */
static void mark_kept(const graph *g, bool *kept)
{
    for (size_t i = 0; i < g->n_inputs; i++) kept[g->inputs[i]] = true;
    for (size_t i = 0; i < g->n_outputs; i++) kept[g->outputs[i]] = true;
    for (size_t i = 0; i < g->n_nodes; i++) {
        const node *n = &g->nodes[i];
        if (n->removed) continue;
        node_visit_uses(n, mark, kept);
        for (size_t k = 0; k < n->n_outputs; k++)
            if (n->outputs[k] != VALUE_NONE) kept[n->outputs[k]] = true;
    }
}

/* Adds the names of the values that stay to a new table. */
static clg_status name_kept(const graph *g, const bool *kept, const value_id *ids,
                            hash_map *out_names)
{
    for (value_id v = 0; v < g->n_values; v++) {
        CLG_TRY(cancel_check("optimising the graph"));
        if (kept[v] && g->values[v].name[0] && graph_find_value(g, g->values[v].name) == v)
            CLG_TRY(hash_map_set_string(out_names, g->values[v].name, ids[v]));
    }
    return CLG_OK;
}

static void renumber(value_id *list, size_t n, const value_id *ids)
{
    for (size_t i = 0; i < n; i++)
        if (list[i] != VALUE_NONE) list[i] = ids[list[i]];
}

/* Exchanges the ids in nodes, and in the captures of their subgraphs. */
static void renumber_nodes(const graph *g, const value_id *ids)
{
    for (size_t i = 0; i < g->n_nodes; i++) {
        node *n = &g->nodes[i];
        if (n->removed) continue;
        renumber(n->inputs, n->n_inputs, ids);
        renumber(n->outputs, n->n_outputs, ids);
        for (size_t k = 0; k < n->n_attributes; k++) {
            if (n->attributes[k].type != ATTRIBUTE_GRAPH) continue;
            graph *sub = n->attributes[k].as.graph;
            for (size_t v = 0; v < sub->n_values; v++)
                if (sub->values[v].is_outer) renumber(&sub->values[v].outer, 1, ids);
        }
    }
}

clg_status graph_drop_values(graph *g)
{
    hash_map names = {0};
    bool *kept = memory_zalloc(g->n_values + 1, sizeof *kept);
    value_id *ids = memory_zalloc(g->n_values + 1, sizeof *ids);
    clg_status status = kept && ids ? CLG_OK : CLG_ERROR_OUT_OF_HOST_MEMORY;
    if (status == CLG_OK) {
        value_id next = 0;
        mark_kept(g, kept);
        for (value_id v = 0; v < g->n_values; v++) ids[v] = kept[v] ? next++ : VALUE_NONE;
        status = name_kept(g, kept, ids, &names);
    }
    if (status == CLG_OK) {
        size_t n = 0;
        graph_drop_uses(g);
        renumber_nodes(g, ids);
        renumber(g->inputs, g->n_inputs, ids);
        renumber(g->outputs, g->n_outputs, ids);
        for (value_id v = 0; v < g->n_values; v++) {
            if (kept[v])
                g->values[n++] = g->values[v];
            else
                tensor_free(g->values[v].constant);
        }
        g->n_values = n;
        const hash_map before = g->names;
        g->names = names;
        names = before;
    }
    hash_map_deinit(&names);
    memory_free(kept);
    memory_free(ids);
    return status;
}

/* Lets v have the tensor of the first constant equal to it, or adds it to those seen: value ids by
 * the hash of the elements. */
static clg_status share_constant(graph *g, value_id v, hash_map *seen)
{
    tensor **own = &g->values[v].constant;
    const hash128 key = hash128_bytes((*own)->data, (*own)->size_bytes);
    const size_t first = hash_map_get(seen, &key, sizeof key);
    if (first == HASH_MAP_NONE) return hash_map_set(seen, &key, sizeof key, v);
    tensor *shared = g->values[first].constant;
    if (shared == *own || !tensor_equal(shared, *own)) return CLG_OK;
    tensor_free(*own);
    *own = tensor_retain(shared);
    return CLG_OK;
}

clg_status graph_share_constants(graph *g)
{
    hash_map seen = {0};
    clg_status status = CLG_OK;
    for (value_id v = 0; v < g->n_values && status == CLG_OK; v++) {
        const tensor *t = g->values[v].constant;
        status = cancel_check("optimising the graph");
        if (status == CLG_OK && t && t->dtype != CLG_STRING && t->size_bytes > 0 &&
            t->size_bytes <= MAX_SHARED_BYTES)
            status = share_constant(g, v, &seen);
    }
    hash_map_deinit(&seen);
    return status;
}
