/* SPDX-License-Identifier: Apache-2.0
 *
 * Sorts nodes topologically by depth-first search; nodes already in topological order keep their
 * order. The search has an explicit stack: recursion would overflow on a chain of a million nodes.
 */
#include "base/cancel.h"
#include "base/strbuf.h"
#include "graph/graph_internal.h"

#include <string.h>

/* For each node n, the producers of its inputs and captures: producers[start[n]] up to, but not
 * including, producers[start[n + 1]]. */
typedef struct dependencies {
    size_t *start;
    node_id *producers;
} dependencies;

typedef struct producer_list {
    const graph *g;
    node_id *producers; /* NULL: only counts */
    size_t n;
} producer_list;

static void list_producer(void *user, value_id v)
{
    producer_list *list = user;
    const node_id producer = list->g->values[v].producer;
    if (producer == NODE_NONE) return;
    if (list->producers) list->producers[list->n] = producer;
    list->n++;
}

/* Lists the producers of the inputs and captures of all nodes, one node after the other. */
static clg_status list_all(producer_list *list, size_t *start)
{
    for (size_t i = 0; i < list->g->n_nodes; i++) {
        const node *n = &list->g->nodes[i];
        CLG_TRY(cancel_check("sorting the graph"));
        if (!n->removed) node_visit_uses(n, list_producer, list);
        start[i + 1] = list->n;
    }
    return CLG_OK;
}

static clg_status dependencies_init(const graph *g, dependencies *d)
{
    producer_list list = {g, NULL, 0};
    d->start = memory_zalloc(g->n_nodes + 1, sizeof *d->start);
    if (!d->start) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    CLG_TRY(list_all(&list, d->start));
    d->producers = memory_zalloc(list.n, sizeof *d->producers);
    if (!d->producers) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    list = (producer_list){g, d->producers, 0};
    return list_all(&list, d->start);
}

typedef struct sorting {
    dependencies deps;
    uint8_t *state; /* of each node: NOT_SEEN, ON_PATH or DONE */
    node_id *stack; /* the path from a node to what it depends on */
    size_t *next;   /* per stack entry: index in deps.producers of the next to visit */
    node_id *order; /* the result: old ids */
    size_t n_order;
} sorting;

enum { NOT_SEEN, ON_PATH, DONE };

static void sorting_deinit(sorting *s)
{
    memory_free(s->order);
    memory_free(s->next);
    memory_free(s->stack);
    memory_free(s->state);
    memory_free(s->deps.producers);
    memory_free(s->deps.start);
}

#define MAX_NAMES_OF_CYCLE 6

/* Returns an error that names the nodes of a cycle, producers before consumers. The cycle consists
 * of the stack entries from `again` to the top; the top node uses an output of `again`. */
static clg_status report_cycle(const graph *g, const sorting *s, size_t depth, node_id again)
{
    size_t first = depth;
    while (s->stack[first - 1] != again) first--;
    size_t n = depth - first + 1, n_named = n < MAX_NAMES_OF_CYCLE ? n : MAX_NAMES_OF_CYCLE;
    strbuf names;
    strbuf_init(&names, 0);
    char shown[NODE_TEXT_BYTES];
    for (size_t i = 0; i < n_named; i++) {
        strbuf_printf(&names, "%s -> ", node_text(&g->nodes[s->stack[depth - 1 - i]], shown));
    }
    if (n > n_named) strbuf_printf(&names, "%zu more -> ", n - n_named);
    clg_status status = names.status;
    if (status == CLG_OK) {
        status = error_set(CLG_ERROR_INVALID_MODEL, "the graph has a cycle: %s%s",
                           strbuf_data(&names), node_text(&g->nodes[s->stack[depth - 1]], shown));
    }
    strbuf_deinit(&names);
    return status;
}

/* Appends to s->order the nodes that `root` depends on and that are not in it yet, then root. */
static clg_status visit(const graph *g, sorting *s, node_id root)
{
    size_t depth = 0;
    s->stack[depth] = root;
    s->next[depth++] = s->deps.start[root];
    s->state[root] = ON_PATH;
    while (depth > 0) {
        node_id at = s->stack[depth - 1];
        if (s->next[depth - 1] == s->deps.start[at + 1]) {
            s->state[at] = DONE;
            s->order[s->n_order++] = at;
            depth--;
            continue;
        }
        node_id producer = s->deps.producers[s->next[depth - 1]++];
        if (s->state[producer] == DONE) continue;
        if (s->state[producer] == ON_PATH) return report_cycle(g, s, depth, producer);
        s->state[producer] = ON_PATH;
        s->stack[depth] = producer;
        s->next[depth++] = s->deps.start[producer];
    }
    return CLG_OK;
}

static clg_status find_order(const graph *g, sorting *s)
{
    size_t n = g->n_nodes;
    CLG_TRY(dependencies_init(g, &s->deps));
    s->state = memory_zalloc(n, sizeof *s->state);
    s->stack = memory_zalloc(n, sizeof *s->stack);
    s->next = memory_zalloc(n, sizeof *s->next);
    s->order = memory_zalloc(n, sizeof *s->order);
    if (!s->state || !s->stack || !s->next || !s->order) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; i < n; i++) {
        CLG_TRY(cancel_check("sorting the graph"));
        if (!g->nodes[i].removed && s->state[i] == NOT_SEEN) CLG_TRY(visit(g, s, (node_id)i));
    }
    return CLG_OK;
}

/* Returns whether the order is that of the graph's nodes, none of which was removed. */
static bool is_in_order(const graph *g, const sorting *s)
{
    size_t i = 0;
    while (i < s->n_order && s->order[i] == i) i++;
    return i == g->n_nodes;
}

/* Puts the nodes in the order, without the removed ones. */
static clg_status reorder(graph *g, const sorting *s)
{
    node *sorted = memory_zalloc(s->n_order, sizeof *sorted);
    clg_status status = sorted ? CLG_OK : CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; i < s->n_order && status == CLG_OK; i++) {
        status = cancel_check("sorting the graph");
        sorted[i] = g->nodes[s->order[i]];
    }
    if (status != CLG_OK) {
        memory_free(sorted);
        return status;
    }
    for (size_t i = 0; i < g->n_nodes; i++)
        if (g->nodes[i].removed) node_release(&g->nodes[i]);
    memory_free(g->nodes);
    g->nodes = sorted;
    g->n_nodes = g->nodes_capacity = s->n_order;
    return CLG_OK;
}

static void set_producers(graph *g)
{
    for (size_t i = 0; i < g->n_nodes; i++) {
        const node *n = &g->nodes[i];
        for (size_t k = 0; k < n->n_outputs; k++)
            if (n->outputs[k] != VALUE_NONE) g->values[n->outputs[k]].producer = (node_id)i;
    }
}

clg_status graph_compact(graph *g)
{
    sorting s = {0};
    graph_drop_uses(g);
    clg_status status = find_order(g, &s);
    /* in order already after passes that found nothing, which is most of them */
    if (status == CLG_OK && !is_in_order(g, &s)) status = reorder(g, &s);
    if (status == CLG_OK) set_producers(g);
    sorting_deinit(&s);
    return status;
}
