/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans nodes whose outputs have a data-dependent size, such as NonZero (op_row.stages). Such a
 * node is planned as two. The first computes the size and other intermediate results on the device;
 * the second has these as further inputs. The second requires the size as any operator requires an
 * input on whose elements its shape depends, so that the segment ends between the two. See decision
 * 17.
 */
#include "plan/state.h"

#include <string.h>

/* Infers node n if the host can compute its operator and all its inputs are known and small.
 * *out_knows: all outputs are then known, so that the device has nothing to compute. */
static clg_status host_knows(plan_state *s, const node *n, bool *out_knows)
{
    const op_row *row = n->op;
    uint32_t needs = 0;
    *out_knows = false;
    if (!row->eval) return CLG_OK;
    for (size_t i = 0; i < n->n_inputs; i++) {
        if (n->inputs[i] == VALUE_NONE) continue;
        const tensor *known = s->values[n->inputs[i]].fact.known;
        if (!known || known->n_elements > OP_MAX_KNOWN_ELEMENTS) return CLG_OK;
    }
    return plan_infer(s, n, &needs, out_knows);
}

/* Creates the node for one stage of n, with uninitialised outputs. Further inputs are
 * VALUE_NONE. */
static node *stage_of(plan_state *s, const node *n, size_t stage, size_t n_inputs, size_t n_outputs)
{
    const op_row *row = n->op;
    arena *memory = &s->segment->memory;
    node *made = arena_alloc(memory, 1, sizeof *made);
    value_id *ids = arena_alloc(memory, n_inputs + n_outputs + 1, sizeof *ids);
    if (!made || !ids) return NULL;
    *made = *n;
    made->op = &row->stages[stage];
    made->inputs = ids;
    made->outputs = ids + n_inputs;
    made->n_inputs = n_inputs;
    made->n_outputs = n_outputs;
    for (size_t i = 0; i < n_inputs; i++) ids[i] = i < n->n_inputs ? n->inputs[i] : VALUE_NONE;
    return made;
}

/* Plans the first stage of n; *out_node is the second. */
static clg_status measure(plan_state *s, const node *n, const node **out_node)
{
    const op_row *row = n->op;
    const size_t n_measured = row->stages[0].max_outputs, n_inputs = row->max_inputs;
    const size_t base = s->n_values;
    value_id first;
    node *before = stage_of(s, n, 0, n->n_inputs, n_measured),
         *after = stage_of(s, n, 1, n_inputs + n_measured, n->n_outputs);
    if (!before || !after) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    CLG_TRY(state_add_values(s, n_measured, &first));
    for (size_t i = 0; i < n_measured; i++)
        before->outputs[i] = after->inputs[n_inputs + i] = first + (value_id)i;
    memcpy(after->outputs, n->outputs, n->n_outputs * sizeof *after->outputs);
    CLG_TRY(plan_made_node(s, before));
    s->staged = after;
    s->staged_base = base;
    *out_node = after;
    return CLG_OK;
}

clg_status staged_begin(plan_state *s, const node *n, const node **out_node)
{
    const op_row *row = n->op;
    *out_node = n;
    if (!row->stages) return CLG_OK;
    if (s->staged) {
        *out_node = s->staged;
        return CLG_OK;
    }
    bool knows;
    CLG_TRY(host_knows(s, n, &knows));
    return knows ? CLG_OK : measure(s, n, out_node);
}

void staged_end(plan_state *s)
{
    if (!s->staged) return;
    s->n_values = s->staged_base;
    s->staged = NULL;
}
