/* SPDX-License-Identifier: Apache-2.0
 *
 * Infers the facts of a loop body's values before an iteration is planned: to tell the shapes of
 * outputs of a loop that runs no iteration, and whether all iterations have the same steps.
 */
#include "plan/state.h"

/* Copies a fact, with a reference of its own to the tensor that the host knows. */
static void share(const value_fact *from, value_fact *to)
{
    *to = *from;
    if (from->known) to->known = fact_share(from->known);
}

static void forget(value_fact *f)
{
    tensor_free((tensor *)(uintptr_t)f->known);
    f->known = NULL;
}

/* Sets the facts that hold at the start of any iteration: of constants, of values of the enclosing
 * graphs, of the body's inputs. A carried value is known if the last iteration did not change
 * it. */
static void start_facts(const plan_state *s, const plan_scope *scope, value_fact *facts)
{
    const graph *g = scope->graph;
    const plan_loop *loop = scope->loop;
    const shape scalar = shape_scalar(), unknown = shape_unknown();
    const size_t first = loop->n_inputs > 0 ? 0 : 2; /* a Scan's body begins with what is carried */
    for (size_t v = 0; v < g->n_values; v++) {
        fact_set(&facts[v], CLG_DTYPE_NONE, &unknown);
        if (g->values[v].is_outer || g->values[v].constant)
            share(&s->values[scope->ids[v]].fact, &facts[v]);
    }
    if (first == 2) {
        fact_set(&facts[g->inputs[0]], CLG_INT64, &scalar);
        fact_set(&facts[g->inputs[1]], CLG_BOOL, &scalar);
        if (loop->iteration > 0)
            share(&s->values[scope->ids[g->inputs[1]]].fact, &facts[g->inputs[1]]);
    }
    for (size_t i = 0; i < loop->n_carried; i++) {
        const value_id in = g->inputs[first + i];
        share(&loop->carried[i].fact, &facts[in]);
        const tensor *before = s->values[scope->ids[in]].fact.known, *after = facts[in].known;
        if (after && (!before || !tensor_equal(before, after))) forget(&facts[in]);
    }
}

/* Returns whether planning a node with a body, or one on sequences, may depend on a content that
 * was known in the iteration planned last, and that is not known in all iterations. */
static bool control_needs(const plan_state *s, const plan_scope *scope, const node *n,
                          const value_fact *facts)
{
    for (size_t i = 0; i < n->n_inputs; i++) {
        const value_id v = n->inputs[i];
        if (v != VALUE_NONE && s->values[scope->ids[v]].fact.known && !facts[v].known) return true;
    }
    for (size_t a = 0; a < n->n_attributes; a++) {
        const graph *inner =
            n->attributes[a].type == ATTRIBUTE_GRAPH ? n->attributes[a].as.graph : NULL;
        for (size_t x = 0; inner && x < inner->n_values; x++) {
            if (!inner->values[x].is_outer) continue;
            const value_id v = inner->values[x].outer;
            if (s->values[scope->ids[v]].fact.known && !facts[v].known) return true;
        }
    }
    return false;
}

/* Takes the facts of a control node's outputs from the iteration that was planned last; after none,
 * what the graph declares. */
static void take_planned(const plan_state *s, const plan_scope *scope, const node *n,
                         value_fact *facts)
{
    for (size_t i = 0; i < n->n_outputs; i++) {
        const value_id v = n->outputs[i];
        if (v == VALUE_NONE) continue;
        const value_fact *planned = &s->values[scope->ids[v]].fact;
        const value *declared = &scope->graph->values[v];
        if (scope->loop->iteration > 0) {
            facts[v] = *planned;
            facts[v].known = NULL;
        } else {
            fact_set(&facts[v], declared->dtype, &declared->dims);
            facts[v].kind = declared->kind;
        }
    }
}

static clg_status infer(const node *n, value_fact *facts, value_fact *around, uint32_t *out_needs)
{
    const shape unknown = shape_unknown();
    value_fact *outputs = around + n->n_inputs;
    for (size_t i = 0; i < n->n_inputs; i++) {
        if (n->inputs[i] == VALUE_NONE)
            fact_set(&around[i], CLG_DTYPE_NONE, &unknown);
        else
            around[i] = facts[n->inputs[i]];
    }
    CLG_TRY(ops_infer_node(n, around, outputs, out_needs));
    for (size_t i = 0; i < n->n_outputs; i++) {
        if (n->outputs[i] == VALUE_NONE)
            forget(&outputs[i]);
        else
            facts[n->outputs[i]] = outputs[i];
    }
    return CLG_OK;
}

clg_status body_facts(const plan_state *s, const plan_scope *scope, value_fact **out_facts,
                      bool *out_needs)
{
    const graph *g = scope->graph;
    size_t n_around = 0;
    *out_facts = NULL;
    *out_needs = false;
    for (size_t i = 0; i < g->n_nodes; i++) {
        const size_t n = g->nodes[i].n_inputs + g->nodes[i].n_outputs;
        if (n > n_around) n_around = n;
    }
    value_fact *facts = memory_zalloc(g->n_values + 1, sizeof *facts);
    value_fact *around = memory_zalloc(n_around + 1, sizeof *around);
    clg_status status = facts && around ? CLG_OK : CLG_ERROR_OUT_OF_HOST_MEMORY;
    if (status == CLG_OK) start_facts(s, scope, facts);
    for (size_t i = 0; i < g->n_nodes && status == CLG_OK; i++) {
        const node *n = &g->nodes[i];
        const op_row *row = n->op;
        uint32_t needs = 0;
        if (row->flags & OP_CONTROL) {
            if (control_needs(s, scope, n, facts)) *out_needs = true;
            take_planned(s, scope, n, facts);
            continue;
        }
        status = infer(n, facts, around, &needs);
        if (needs) *out_needs = true;
    }
    memory_free(around);
    if (status == CLG_OK)
        *out_facts = facts;
    else
        ops_facts_free(facts, g->n_values);
    return status;
}
