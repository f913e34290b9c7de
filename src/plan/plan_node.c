/* SPDX-License-Identifier: Apache-2.0
 *
 * Infers dtypes and shapes of a node's outputs from the facts of its inputs, and plans nodes that
 * the planner itself creates.
 */
#include "base/cancel.h"
#include "plan/state.h"

/* Transfers ownership of the tensors that inference computed to the planning state, also if this
 * fails half-way. */
static clg_status take_known(plan_state *s, const node *n, const value_fact *outputs)
{
    clg_status status = CLG_OK;
    for (size_t i = 0; i < n->n_outputs; i++) {
        clg_status held = outputs[i].known ? state_hold(s, (tensor *)outputs[i].known) : CLG_OK;
        if (status == CLG_OK) status = held;
    }
    return status;
}

clg_status plan_infer(plan_state *s, const node *n, uint32_t *out_needs, bool *out_all_known)
{
    clg_status status = CLG_OK;
    bool is_known;
    *out_needs = 0;
    CLG_TRY(memo_recall(s, n, &is_known, out_all_known));
    if (is_known) return CLG_OK;
    value_fact *facts = memory_zalloc(n->n_inputs + n->n_outputs + 1, sizeof *facts);
    if (!facts) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    value_fact *outputs = facts + n->n_inputs;
    *out_all_known = true;
    for (size_t i = 0; i < n->n_inputs && status == CLG_OK; i++) {
        status = cancel_check_step(i, "planning");
        if (n->inputs[i] != VALUE_NONE) facts[i] = s->values[n->inputs[i]].fact;
    }
    if (status == CLG_OK) status = ops_infer_node(n, facts, outputs, out_needs);
    if (status != CLG_OK || *out_needs) goto done;
    status = take_known(s, n, outputs);
    for (size_t i = 0; i < n->n_outputs && status == CLG_OK; i++) {
        if (n->outputs[i] == VALUE_NONE) continue;
        plan_value *v = &s->values[n->outputs[i]];
        if (!outputs[i].known) *out_all_known = false;
        v->fact = outputs[i];
        if (shape_is_known(&v->fact.dims)) {
            shape_strides(&v->fact.dims, v->strides);
        } else {
            char text[NODE_TEXT_BYTES];
            status =
                error_set(CLG_ERROR_INTERNAL, "%s: the shape of output %zu could not be determined",
                          node_text(n, text), i);
        }
    }
    if (status == CLG_OK) status = memo_keep_facts(s, n);
done:
    memory_free(facts);
    return status;
}

clg_status plan_made_node(plan_state *s, const node *n)
{
    uint32_t needs = 0;
    uint8_t place;
    bool all_known = false;
    CLG_TRY(plan_infer(s, n, &needs, &all_known));
    if (needs) return error_set(CLG_ERROR_INTERNAL, "a node of the planner's own needs contents");
    return all_known ? CLG_OK : emit_node(s, n, &place);
}
