/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans Optional, OptionalHasElement and OptionalGetElement. An optional is a list of at most one
 * value in the planner; none of these operators copies data.
 */
#include "plan/state.h"

static clg_status make_optional(plan_state *s, const node *n)
{
    const bool filled = node_has_input(n, 0);
    plan_value *item = arena_alloc(&s->segment->memory, 1, sizeof *item);
    if (!item) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    if (filled) CLG_TRY(control_settle(s, n->inputs[0], item));
    s->values[n->outputs[0]] = (plan_value){
        .fact = {.kind = CLG_VALUE_OPTIONAL, .dtype = item->fact.dtype, .dims = shape_scalar()},
        .root = ROOT_NONE,
        .dense = true,
        .items = item,
        .n_items = filled};
    return CLG_OK;
}

/* Plans OptionalHasElement. A tensor or sequence counts as an optional with an element (opset 18).
 */
static clg_status has_element(plan_state *s, const node *n)
{
    const value_id v = n->n_inputs > 0 ? n->inputs[0] : VALUE_NONE;
    const bool has = v != VALUE_NONE &&
                     (s->values[v].fact.kind != CLG_VALUE_OPTIONAL || s->values[v].n_items > 0);
    return control_set_known(s, n->outputs[0], CLG_BOOL, has);
}

static clg_status get_element(plan_state *s, const node *n)
{
    char text[NODE_TEXT_BYTES];
    plan_value item;
    CLG_TRY(control_settle(s, n->inputs[0], &item));
    if (item.fact.kind == CLG_VALUE_OPTIONAL) {
        if (item.n_items == 0)
            return error_set(CLG_ERROR_DATA, "%s: the optional is empty", node_text(n, text));
        item = item.items[0];
    }
    return control_copy_value(s, &item, n->outputs[0]);
}

clg_status optional_node(plan_state *s, const node *n, op_control_kind kind)
{
    switch (kind) {
    case CONTROL_OPTIONAL: return make_optional(s, n);
    case CONTROL_OPTIONAL_HAS: return has_element(s, n);
    default: return get_element(s, n);
    }
}
