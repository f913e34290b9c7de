/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans If and Loop, and the iterations that all loops share. If the host knows a condition's
 * value, it selects a branch, whose nodes are planned next; a condition that only the device knows
 * ends the segment first, so that the host can read it. Short loops are unrolled: the steps of each
 * iteration follow those of the previous one, and loop-carried values are ordinary values (decision
 * 14). Long ones, and those whose condition the device decides, have one iteration planned, which
 * runs repeatedly (iterate.c).
 */
#include "plan/state.h"

#include <string.h>

#define MAX_LOOP_STEPS 1000000 /* limit of the steps of a segment and of all iterations */

/* ---- scopes ---------------------------------------------------------------------------------- */

/* Copies the nodes of the scope's graph, with inputs and outputs renumbered to the state's value
 * ids. */
static clg_status copy_nodes(plan_state *s, plan_scope *scope)
{
    const graph *g = scope->graph;
    arena *memory = &s->segment->memory;
    node *nodes = arena_alloc(memory, g->n_nodes + 1, sizeof *nodes);
    if (!nodes) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; i < g->n_nodes; i++) {
        node *n = &nodes[i];
        *n = g->nodes[i];
        n->inputs = arena_alloc(memory, n->n_inputs + n->n_outputs + 1, sizeof *n->inputs);
        if (!n->inputs) return CLG_ERROR_OUT_OF_HOST_MEMORY;
        n->outputs = n->inputs + n->n_inputs;
        for (size_t k = 0; k < n->n_inputs; k++) {
            value_id v = g->nodes[i].inputs[k];
            n->inputs[k] = v == VALUE_NONE ? VALUE_NONE : scope->ids[v];
        }
        for (size_t k = 0; k < n->n_outputs; k++) {
            value_id v = g->nodes[i].outputs[k];
            n->outputs[k] = v == VALUE_NONE ? VALUE_NONE : scope->ids[v];
        }
    }
    scope->nodes = nodes;
    scope->n_nodes = g->n_nodes;
    return CLG_OK;
}

/* Resets the values of a scope: its constants are set, all others become "not computed". */
static void reset_values(plan_state *s, const plan_scope *scope)
{
    for (size_t v = 0; v < scope->graph->n_values; v++) {
        if (scope->graph->values[v].is_outer) continue;
        const tensor *t = scope->graph->values[v].constant;
        plan_value *value = &s->values[scope->ids[v]];
        *value = (plan_value){.root = ROOT_NONE, .dense = true};
        if (!t) continue;
        value->fact = (value_fact){.dtype = t->dtype, .dims = t->dims, .known = t};
        shape_strides(&t->dims, value->strides);
    }
}

/* Begins planning graph g, a branch or body of node `owner`: assigns ids to its values. */
static clg_status push_scope(plan_state *s, const graph *g, const node *owner)
{
    const plan_scope *outside = state_scope(s);
    value_id first;
    if (s->n_scopes == PLAN_MAX_SCOPES)
        return error_set(CLG_ERROR_INVALID_MODEL, "branches and loops are nested too deeply");
    size_t base = s->n_values;
    value_id *ids = arena_alloc(&s->segment->memory, g->n_values + 1, sizeof *ids);
    if (!ids) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    CLG_TRY(state_add_values(s, g->n_values, &first));
    for (size_t v = 0; v < g->n_values; v++) {
        value_id outer = g->values[v].outer;
        ids[v] = !g->values[v].is_outer ? first + (value_id)v
                 : outside->ids         ? outside->ids[outer]
                                        : outer;
    }
    plan_scope scope = {.graph = g, .base = base, .ids = ids, .owner = owner};
    CLG_TRY(copy_nodes(s, &scope));
    reset_values(s, &scope);
    s->scopes[s->n_scopes++] = scope;
    return CLG_OK;
}

/* Removes the innermost scope and its values; its control node is complete then. */
static void pop_scope(plan_state *s)
{
    s->n_values = state_scope(s)->base;
    s->n_scopes--;
    state_scope(s)->next++;
}

const graph *control_graph(const node *n, const char *name)
{
    const graph_attribute *a = node_attribute(n, name);
    return a && a->type == ATTRIBUTE_GRAPH ? a->as.graph : NULL;
}

/* ---- If -------------------------------------------------------------------------------------- */

static clg_status enter_if(plan_state *s, const node *n, uint32_t *out_needs, bool *out_entered)
{
    const tensor *condition = control_content(s, n, 0, out_needs);
    if (!condition) return CLG_OK;
    char text[NODE_TEXT_BYTES];
    if (condition->n_elements != 1)
        return error_set(CLG_ERROR_SHAPE, "%s: the condition must be one bool", node_text(n, text));
    const graph *branch =
        control_graph(n, tensor_get_int(condition, 0) ? "then_branch" : "else_branch");
    if (!branch || branch->n_outputs < n->n_outputs)
        return error_set(CLG_ERROR_INVALID_MODEL, "%s: its branch does not give %zu outputs",
                         node_text(n, text), n->n_outputs);
    CLG_TRY(push_scope(s, branch, n));
    *out_entered = true;
    return CLG_OK;
}

static clg_status leave_if(plan_state *s)
{
    const plan_scope *scope = state_scope(s);
    for (size_t i = 0; i < scope->owner->n_outputs; i++) {
        plan_value result;
        if (scope->owner->outputs[i] == VALUE_NONE) continue;
        CLG_TRY(control_settle(s, scope->ids[scope->graph->outputs[i]], &result));
        CLG_TRY(control_copy_value(s, &result, scope->owner->outputs[i]));
    }
    pop_scope(s);
    return CLG_OK;
}

/* ---- iterations ------------------------------------------------------------------------------ */

static clg_status start_iteration(plan_state *s)
{
    plan_scope *scope = state_scope(s);
    scope->next = 0;
    scope->was_read = false;
    s->n_values = scope->base + scope->graph->n_values;
    reset_values(s, scope);
    return scope->loop->kind->start(s);
}

static clg_status finish_loop(plan_state *s)
{
    const plan_scope scope = *state_scope(s);
    s->n_values = scope.base + scope.graph->n_values;
    for (size_t i = 0; i < scope.owner->n_outputs; i++) {
        value_id to = scope.owner->outputs[i];
        if (to != VALUE_NONE) CLG_TRY(scope.loop->kind->result(s, &scope, i, to));
    }
    pop_scope(s);
    return CLG_OK;
}

clg_status control_start_loop(plan_state *s, const graph *body, const node *n, plan_loop *loop,
                              bool runs)
{
    CLG_TRY(push_scope(s, body, n));
    state_scope(s)->loop = loop;
    loop->first_segment = s->segment;
    loop->first_step = s->n_pending;
    return runs ? start_iteration(s) : finish_loop(s);
}

/* Determines dtype and shape of the slices of a stacked output of a loop without iterations: those
 * that the body declares, or else those that are inferred for its first iteration. A shape that
 * cannot be told is that of a scalar, as ONNX Runtime has it. */
static clg_status slice_fact(plan_state *s, const plan_scope *scope, value_id out,
                             clg_dtype *out_dtype, shape *out_dims)
{
    const value *declared = &scope->graph->values[out];
    value_fact *facts;
    bool needs;
    *out_dtype = declared->dtype;
    *out_dims = declared->dims;
    if (declared->dtype != CLG_DTYPE_NONE && shape_is_known(&declared->dims)) return CLG_OK;
    CLG_TRY(body_facts(s, scope, &facts, &needs));
    if (facts[out].dtype != CLG_DTYPE_NONE) *out_dtype = facts[out].dtype;
    if (facts[out].dims.rank >= 0) *out_dims = facts[out].dims;
    if (out_dims->rank < 0) *out_dims = shape_scalar();
    ops_facts_free(facts, scope->graph->n_values);
    return CLG_OK;
}

/* Makes a stacked output of a loop without iterations: a tensor with length 0 along the stacking
 * axis (unknown dimensions become 0). */
static clg_status empty_scan(plan_state *s, const plan_scope *scope, size_t scan, int64_t axis,
                             value_id to)
{
    const plan_loop *loop = scope->loop;
    const value_id out = scope->graph->outputs[loop->kind->first_output + loop->n_carried + scan];
    char text[NODE_TEXT_BYTES];
    clg_dtype dtype;
    shape dims;
    int at;
    CLG_TRY(slice_fact(s, scope, out, &dtype, &dims));
    if (dtype == CLG_DTYPE_NONE || dims.rank == CLG_MAX_RANK)
        return error_set(CLG_ERROR_SHAPE,
                         "%s: it ran no iteration, and the dtype of its stacked output is not "
                         "declared, or the result has too many axes",
                         node_text(scope->owner, text));
    dims.rank++;
    CLG_TRY(shape_axis(axis, dims.rank, "axis", &at));
    for (int i = dims.rank - 1; i > at; i--) dims.dims[i] = dims.dims[i - 1];
    dims.dims[at] = 0;
    for (int i = 0; i < dims.rank; i++)
        if (dims.dims[i] == DIM_UNKNOWN) dims.dims[i] = 0;
    s->values[to] =
        (plan_value){.fact = {.dtype = dtype, .dims = dims}, .root = ROOT_NONE, .dense = true};
    if (dtype != CLG_STRING) return state_place_value(s, to);
    tensor *nothing;
    CLG_TRY(tensor_create(CLG_STRING, &dims, &nothing));
    s->values[to].fact.known = nothing;
    return state_hold(s, nothing);
}

clg_status control_stack(plan_state *s, const plan_scope *scope, size_t scan, int64_t axis,
                         bool reverse, value_id to)
{
    const plan_loop *loop = scope->loop;
    size_t n = (size_t)loop->iteration;
    if (n == 0) return empty_scan(s, scope, scan, axis, to);
    if (loop->base) return iterate_stack(s, scope, scan, to);
    plan_value *items = arena_alloc(&s->segment->memory, n, sizeof *items);
    if (!items) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    const plan_scan *rows = loop->scans;
    for (size_t i = n; i > 0; i--, rows = rows->previous)
        items[reverse ? n - i : i - 1] = rows->values[scan];
    return sequence_join(s, items, n, axis, true, to, scope->owner);
}

/* Stores the results of an iteration: the carried values for the next one, and its slices of the
 * stacked outputs. */
static clg_status keep_iteration(plan_state *s, plan_scope *scope)
{
    const plan_loop *old = scope->loop;
    arena *memory = &s->segment->memory;
    plan_loop *loop = arena_alloc(memory, 1, sizeof *loop);
    plan_value *results = arena_alloc(memory, old->n_carried + old->n_scans + 1, sizeof *results);
    plan_scan *scan = arena_alloc(memory, 1, sizeof *scan);
    if (!loop || !results || !scan) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; i < old->n_carried + old->n_scans; i++)
        CLG_TRY(control_settle(s, scope->ids[scope->graph->outputs[old->kind->first_output + i]],
                               &results[i]));
    *loop = *old; /* an older segment may still continue from the old one */
    loop->iteration++;
    loop->carried = results;
    if (old->n_scans) {
        *scan = (plan_scan){.values = results + old->n_carried, .previous = old->scans};
        loop->scans = scan;
    }
    scope->loop = loop;
    return CLG_OK;
}

/* Ends an iteration, and starts the next one or finishes the loop. Outputs as of control_leave. */
static clg_status leave_loop(plan_state *s, value_id *out_read, bool *out_ends)
{
    plan_scope *scope = state_scope(s);
    const plan_loop *loop = scope->loop;
    const plan_value *before = loop->carried;
    const value_id condition = scope->ids[scope->graph->outputs[0]];
    const tensor *go_on = loop->has_condition ? s->values[condition].fact.known : NULL;
    const bool is_open = loop->has_condition && !go_on;
    bool again = !go_on || (go_on->n_elements == 1 && tensor_get_int(go_on, 0));
    char text[NODE_TEXT_BYTES];
    *out_ends = is_open || loop->base;
    if (is_open) *out_read = condition;
    if (loop->base) return iterate_end(s, is_open, !again);
    if (is_open) {
        scope->was_read = true;
        return CLG_OK;
    }
    CLG_TRY(keep_iteration(s, scope));
    loop = scope->loop;
    if (loop->trip >= 0 && loop->iteration >= loop->trip) again = false;
    if (!again) return finish_loop(s);
    if (iterate_is_possible(s) && (scope->was_read || iterate_pays(s, before))) {
        *out_ends = true;
        return iterate_begin(s);
    }
    if (s->n_pending > MAX_LOOP_STEPS || ++s->n_iterations > MAX_LOOP_STEPS)
        return error_set(CLG_ERROR_UNSUPPORTED_OPERATOR,
                         "%s: it runs longer than a plan can be (%d steps)",
                         node_text(scope->owner, text), MAX_LOOP_STEPS);
    return start_iteration(s);
}

clg_status control_iterate(plan_state *s, const plan_carried *carried)
{
    CLG_TRY(iterate_start(s, carried));
    return start_iteration(s);
}

clg_status control_end_loop(plan_state *s, int64_t count)
{
    plan_scope *scope = state_scope(s);
    plan_loop *loop = arena_alloc(&s->segment->memory, 1, sizeof *loop);
    if (!loop) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    *loop = *scope->loop;
    loop->iteration = count;
    scope->loop = loop;
    return finish_loop(s);
}

/* ---- Loop ------------------------------------------------------------------------------------ */

/* Sets the inputs of a Loop's body: iteration number, condition and carried values. */
static clg_status start_body(plan_state *s)
{
    const plan_scope *scope = state_scope(s);
    const plan_loop *loop = scope->loop;
    const value_id *ids = scope->ids, *inputs = scope->graph->inputs;
    if (loop->n_slots > loop->n_carried)
        CLG_TRY(control_copy_value(s, &loop->carried[loop->n_carried], ids[inputs[0]]));
    else /* where iterations are planned once, the body does not use it */
        CLG_TRY(control_set_known(s, ids[inputs[0]], CLG_INT64, loop->iteration));
    CLG_TRY(control_set_known(s, ids[inputs[1]], CLG_BOOL, 1));
    for (size_t i = 0; i < loop->n_carried; i++)
        CLG_TRY(control_copy_value(s, &loop->carried[i], ids[inputs[2 + i]]));
    return CLG_OK;
}

static clg_status loop_result(plan_state *s, const plan_scope *scope, size_t i, value_id to)
{
    const plan_loop *loop = scope->loop;
    if (i < loop->n_carried) return control_copy_value(s, &loop->carried[i], to);
    return control_stack(s, scope, i - loop->n_carried, 0, false, to);
}

static const plan_loop_kind kind_loop = {1, start_body, loop_result};

static clg_status check_body(const node *n, const graph *body)
{
    char text[NODE_TEXT_BYTES];
    size_t n_carried = n->n_inputs > 2 ? n->n_inputs - 2 : 0;
    if (body && body->n_inputs == n_carried + 2 && body->n_outputs >= n_carried + 1 &&
        n->n_outputs <= body->n_outputs - 1)
        return CLG_OK;
    return error_set(CLG_ERROR_INVALID_MODEL,
                     "%s: inputs and outputs of its body do not fit the node", node_text(n, text));
}

static clg_status make_loop(plan_state *s, const node *n, const graph *body, plan_loop **out_loop)
{
    arena *memory = &s->segment->memory;
    size_t n_carried = body->n_inputs - 2;
    plan_loop *loop = arena_alloc(memory, 1, sizeof *loop);
    plan_value *carried = arena_alloc(memory, n_carried + 1, sizeof *carried);
    if (!loop || !carried) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; i < n_carried; i++) {
        if (n->inputs[2 + i] == VALUE_NONE) {
            char text[NODE_TEXT_BYTES];
            return error_set(CLG_ERROR_INVALID_MODEL, "%s: a carried value has no start",
                             node_text(n, text));
        }
        CLG_TRY(control_settle(s, n->inputs[2 + i], &carried[i]));
    }
    *loop = (plan_loop){.kind = &kind_loop,
                        .n_carried = n_carried,
                        .n_scans = body->n_outputs - 1 - n_carried,
                        .carried = carried};
    *out_loop = loop;
    return CLG_OK;
}

static clg_status enter_loop(plan_state *s, const node *n, uint32_t *out_needs, bool *out_entered)
{
    const graph *body = control_graph(n, "body");
    plan_loop *loop;
    CLG_TRY(check_body(n, body));
    const tensor *trip = control_content(s, n, 0, out_needs),
                 *condition = control_content(s, n, 1, out_needs);
    if (*out_needs) return CLG_OK;
    CLG_TRY(make_loop(s, n, body, &loop));
    loop->trip = trip && trip->n_elements == 1 ? tensor_get_int(trip, 0) : -1;
    if (trip && loop->trip < 0) loop->trip = 0;
    loop->has_condition = condition != NULL;
    bool runs = loop->trip != 0 &&
                (!condition || (condition->n_elements == 1 && tensor_get_int(condition, 0)));
    *out_entered = true;
    return control_start_loop(s, body, n, loop, runs);
}

/* ---- control flow ---------------------------------------------------------------------------- */

clg_status control_enter(plan_state *s, const node *n, uint32_t *out_needs, bool *out_entered)
{
    const op_row *row = n->op;
    const op_control *control = row->param;
    if (control->kind == CONTROL_IF) return enter_if(s, n, out_needs, out_entered);
    if (control->kind == CONTROL_LOOP) return enter_loop(s, n, out_needs, out_entered);
    return scan_enter(s, n, control->kind, out_entered);
}

clg_status control_leave(plan_state *s, value_id *out_read, bool *out_ends)
{
    *out_read = VALUE_NONE;
    *out_ends = false;
    return state_scope(s)->loop ? leave_loop(s, out_read, out_ends) : leave_if(s);
}
