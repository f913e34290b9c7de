/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds, in the optimised graph, which outputs may be computed in the memory of which inputs: those
 * that an operator computes from an input which no other node reads (op_row.in_place), such as the
 * present keys of an attention node from the past ones. See decision 80.
 */
#include "session/exec/exec.h"

typedef struct reader_marks {
    node_id *last;
    node_id reader;
} reader_marks;

static void mark(void *user, value_id v)
{
    const reader_marks *m = user;
    if (v != VALUE_NONE) m->last[v] = m->reader;
}

static void find_last_readers(const graph *g, node_id *last)
{
    reader_marks m = {.last = last};
    for (m.reader = 0; m.reader < g->n_nodes; m.reader++)
        node_visit_uses(&g->nodes[m.reader], mark, &m);
    for (size_t i = 0; i < g->n_outputs; i++) last[g->outputs[i]] = NODE_NONE;
}

/* By value: its index among the graph's inputs or outputs; of others undefined. */
typedef struct port_indices {
    uint32_t *input, *output;
} port_indices;

static void number_ports(const value_id *ports, size_t n, uint32_t *index)
{
    for (size_t i = n; i-- > 0;) index[ports[i]] = (uint32_t)i; /* the first of equal outputs */
}

static void find_pairs(session_exec *e, const node *n, const port_indices *at)
{
    const graph *g = e->graph;
    const op_row *row = n->op;
    if (!row || row->n_in_place == 0) return;
    if (row->accumulates && row->accumulates(n)) return;
    for (size_t k = 0; k < row->n_in_place; k++) {
        const op_in_place *pair = &row->in_place[k];
        if (pair->input >= n->n_inputs || pair->output >= n->n_outputs) continue;
        const value_id from = n->inputs[pair->input], to = n->outputs[pair->output];
        if (from == VALUE_NONE || to == VALUE_NONE || !g->values[from].is_input ||
            !g->values[to].is_output || e->n_readers[from] != 1)
            continue;
        e->in_place[at->input[from]] = at->output[to];
    }
}

clg_status exec_find_in_place(session_exec *e)
{
    const graph *g = e->graph;
    node_id *last = arena_alloc(&e->memory, g->n_values + 1, sizeof *last);
    e->in_place = arena_alloc(&e->memory, g->n_inputs + 1, sizeof *e->in_place);
    if (!last || !e->in_place) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; i < g->n_inputs; i++) e->in_place[i] = PLAN_APART;
    find_last_readers(g, last);
    e->planning.last_readers = last;
    const port_indices at = {memory_zalloc(g->n_values + 1, sizeof *at.input),
                             memory_zalloc(g->n_values + 1, sizeof *at.output)};
    const bool has_memory = at.input && at.output;
    if (has_memory) {
        number_ports(g->inputs, g->n_inputs, at.input);
        number_ports(g->outputs, g->n_outputs, at.output);
    }
    for (size_t i = 0; has_memory && i < g->n_nodes; i++)
        if (!e->node_is_init[i]) find_pairs(e, &g->nodes[i], &at);
    memory_free(at.input);
    memory_free(at.output);
    return has_memory ? CLG_OK : CLG_ERROR_OUT_OF_HOST_MEMORY;
}
