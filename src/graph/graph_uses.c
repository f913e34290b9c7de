/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements the index of a graph's uses: for each value, the inputs of nodes and the captures of
 * their subgraphs that are that value. It exists from the first graph_replace_uses to the next
 * graph_compact; without it a pass that replaces every value would visit every node each time.
 *
 * Each use is in the list of its value; a list may also contain entries that are no longer uses,
 * since an input that changes is only added to its new list. Functions that change inputs or add
 * subgraphs while the index exists keep it up to date, or drop it.
 */
#include "base/cancel.h"
#include "base/work_count.h"
#include "graph/graph_internal.h"

#define NO_ENTRY UINT32_MAX
#define NO_ATTRIBUTE UINT32_MAX

/* A use: input `slot` of a node or, with an attribute, value `slot` of the graph in it. */
typedef struct use_entry {
    node_id node;
    uint32_t attribute, slot, next;
} use_entry;

struct graph_uses {
    uint32_t *heads; /* by value_id: index of the first entry */
    size_t n_heads, heads_capacity;
    use_entry *entries;
    size_t n_entries, entries_capacity;
};

void graph_drop_uses(graph *g)
{
    if (!g->uses) return;
    memory_free(g->uses->heads);
    memory_free(g->uses->entries);
    memory_free(g->uses);
    g->uses = NULL;
}

static clg_status add_entry(graph *g, value_id v, use_entry entry)
{
    graph_uses *u = g->uses;
    if (v == VALUE_NONE) return CLG_OK;
    if (u->n_entries >= NO_ENTRY) return error_no_memory(SIZE_MAX);
    CLG_TRY(MEMORY_RESERVE(u->heads, u->heads_capacity, g->n_values));
    while (u->n_heads < g->n_values) u->heads[u->n_heads++] = NO_ENTRY;
    CLG_TRY(MEMORY_RESERVE(u->entries, u->entries_capacity, u->n_entries + 1));
    entry.next = u->heads[v];
    u->heads[v] = (uint32_t)u->n_entries;
    u->entries[u->n_entries++] = entry;
    return CLG_OK;
}

static clg_status add_node(graph *g, node_id id)
{
    const node *n = &g->nodes[id];
    for (uint32_t i = 0; i < n->n_inputs; i++)
        CLG_TRY(add_entry(g, n->inputs[i], (use_entry){id, NO_ATTRIBUTE, i, NO_ENTRY}));
    for (uint32_t k = 0; k < n->n_attributes; k++) {
        if (n->attributes[k].type != ATTRIBUTE_GRAPH) continue;
        const graph *sub = n->attributes[k].as.graph;
        for (uint32_t v = 0; v < sub->n_values; v++)
            if (sub->values[v].is_outer)
                CLG_TRY(add_entry(g, sub->values[v].outer, (use_entry){id, k, v, NO_ENTRY}));
    }
    return CLG_OK;
}

void graph_note_node(graph *g, node_id id)
{
    if (g->uses && add_node(g, id) != CLG_OK) graph_drop_uses(g); /* made again when needed */
}

void graph_set_input(graph *g, node_id id, size_t i, value_id v)
{
    const use_entry entry = {id, NO_ATTRIBUTE, (uint32_t)i, NO_ENTRY};
    g->nodes[id].inputs[i] = v;
    if (g->uses && add_entry(g, v, entry) != CLG_OK) graph_drop_uses(g);
}

static clg_status make_uses(graph *g)
{
    g->uses = memory_zalloc(1, sizeof *g->uses);
    clg_status status = g->uses ? CLG_OK : CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (node_id i = 0; i < g->n_nodes && status == CLG_OK; i++) {
        status = cancel_check("optimising the graph");
        if (status == CLG_OK && !g->nodes[i].removed) status = add_node(g, i);
    }
    if (status != CLG_OK) graph_drop_uses(g);
    return status;
}

/* Returns where a use is stored; NULL if the node has no such input any more. */
static value_id *find_use(graph *g, const use_entry *e)
{
    node *n = &g->nodes[e->node];
    if (e->attribute == NO_ATTRIBUTE) return e->slot < n->n_inputs ? &n->inputs[e->slot] : NULL;
    if (e->attribute >= n->n_attributes || n->attributes[e->attribute].type != ATTRIBUTE_GRAPH)
        return NULL;
    graph *sub = n->attributes[e->attribute].as.graph;
    return e->slot < sub->n_values ? &sub->values[e->slot].outer : NULL;
}

clg_status graph_replace_uses(graph *g, value_id from, value_id to)
{
    if (from == to) return CLG_OK;
    if (!g->uses) CLG_TRY(make_uses(g));
    graph_uses *u = g->uses;
    CLG_TRY(MEMORY_RESERVE(u->heads, u->heads_capacity, g->n_values));
    while (u->n_heads < g->n_values) u->heads[u->n_heads++] = NO_ENTRY;
    for (uint32_t i = u->heads[from]; i != NO_ENTRY;) {
        use_entry *e = &u->entries[i];
        const uint32_t next = e->next;
        work_count_add(1);
        value_id *use = find_use(g, e);
        if (use && *use == from) {
            *use = to;
            e->next = u->heads[to];
            u->heads[to] = i;
        }
        i = next;
    }
    u->heads[from] = NO_ENTRY;
    return CLG_OK;
}
