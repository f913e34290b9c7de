/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads and sets values for control flow: contents that the host must know, scalars that it
 * computes, and values that are stored without their id.
 */
#include "plan/state.h"

const tensor *control_content(const plan_state *s, const node *n, size_t i, uint32_t *needs)
{
    if (!node_has_input(n, i)) return NULL;
    const tensor *known = s->values[n->inputs[i]].fact.known;
    if (!known) *needs |= 1u << i;
    return known;
}

clg_status control_set_known(plan_state *s, value_id v, clg_dtype dtype, int64_t number)
{
    shape scalar = shape_scalar();
    tensor *t;
    CLG_TRY(tensor_create(dtype, &scalar, &t));
    tensor_set_int(t, 0, number);
    CLG_TRY(state_hold(s, t));
    s->values[v] = (plan_value){
        .fact = {.dtype = dtype, .dims = scalar, .known = t}, .root = ROOT_NONE, .dense = true};
    return CLG_OK;
}

clg_status control_copy_value(plan_state *s, const plan_value *from, value_id to)
{
    plan_value copy = *from;
    copy.weight = false; /* a weight is identified by its id, which the copy loses */
    s->values[to] = copy;
    return CLG_OK;
}

clg_status control_settle(plan_state *s, value_id v, plan_value *out_value)
{
    if (s->values[v].weight && s->values[v].fact.dtype != CLG_STRING)
        CLG_TRY(state_materialise(s, v));
    *out_value = s->values[v];
    out_value->weight = false;
    return CLG_OK;
}
