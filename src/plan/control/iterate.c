/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans loops that are not unrolled. The segment before the loop, its base, copies the values that
 * the loop carries to memories of their own. An iteration is a child segment of the base, planned
 * for the facts of these values: it reads one set of memories and writes the other one, so that two
 * iterations after one another are two segments, which then run in turn. Slices of stacked outputs
 * are appended to memories that grow. So host memory does not depend on the number of iterations,
 * and device memory only by stacked outputs. See decision 49.
 */
#include "plan/state.h"

#include <string.h>

/* A loop whose number of iterations and condition the host knows is unrolled up to this number of
 * steps: a plan of more takes long to make, and kernel objects take kilobytes each. */
#define MAX_UNROLLED_STEPS 4096

static uint32_t memory_of(const plan_loop *loop, uint32_t parity, size_t slot)
{
    return loop->first_memory + parity * (uint32_t)loop->n_slots + (uint32_t)slot;
}

static uint32_t memory_of_stack(const plan_loop *loop, size_t scan)
{
    return loop->first_memory + 2 * (uint32_t)loop->n_slots + (uint32_t)scan;
}

/* Returns whether a value can be in device memory whose size is whole bytes. */
static bool is_movable(const plan_value *v)
{
    size_t size_bytes;
    return v->fact.kind == CLG_VALUE_TENSOR && v->fact.dtype != CLG_STRING &&
           dtype_size(v->fact.dtype) > 0 && state_value_bytes(v, &size_bytes) == CLG_OK;
}

/* Returns whether the node has stacked output `scan`. */
static bool is_stacked(const plan_scope *scope, size_t scan)
{
    const size_t i = scope->loop->n_carried + scan;
    return i < scope->owner->n_outputs && scope->owner->outputs[i] != VALUE_NONE;
}

bool iterate_is_possible(const plan_state *s)
{
    const plan_scope *scope = &s->scopes[s->n_scopes - 1];
    const plan_loop *loop = scope->loop;
    if (loop->n_inputs > 0) return false; /* Scan and SequenceMap */
    for (size_t i = 0; i < loop->n_carried; i++) {
        const plan_value *v = &loop->carried[i];
        if (!is_movable(v) && !(v->fact.dtype == CLG_STRING && v->fact.kind == CLG_VALUE_TENSOR))
            return false;
    }
    for (size_t i = 0; i < loop->n_scans; i++)
        if (!is_movable(&loop->scans->values[i])) return false;
    return true;
}

static bool is_same_type(const value_fact *a, const value_fact *b)
{
    return a->dtype == b->dtype && shape_equal(&a->dims, &b->dims);
}

bool iterate_pays(plan_state *s, const plan_value *before)
{
    const plan_scope *scope = state_scope(s);
    const plan_loop *loop = scope->loop;
    value_fact *facts;
    bool needs = true;
    if (loop->iteration != 1 || loop->trip < 0) return false;
    const size_t n_steps = loop->first_segment == s->segment ? s->n_pending - loop->first_step : 0;
    if (loop->trip <= MAX_UNROLLED_STEPS / (int64_t)(n_steps ? n_steps : 1)) return false;
    for (size_t i = 0; i < loop->n_carried; i++)
        if (!is_same_type(&before[i].fact, &loop->carried[i].fact)) return false;
    if (body_facts(s, scope, &facts, &needs) != CLG_OK) return false;
    if (loop->has_condition && !facts[scope->graph->outputs[0]].known) needs = true;
    ops_facts_free(facts, scope->graph->n_values);
    return !needs;
}

/* Returns whether graph g uses value v, also in a graph nested in it. */
static bool uses_value(const graph *g, value_id v)
{
    for (size_t i = 0; i < g->n_outputs; i++)
        if (g->outputs[i] == v) return true;
    for (size_t i = 0; i < g->n_nodes; i++) {
        const node *n = &g->nodes[i];
        for (size_t k = 0; k < n->n_inputs; k++)
            if (n->inputs[k] == v) return true;
        for (size_t a = 0; a < n->n_attributes; a++) {
            const graph *inner =
                n->attributes[a].type == ATTRIBUTE_GRAPH ? n->attributes[a].as.graph : NULL;
            for (size_t x = 0; inner && x < inner->n_values; x++)
                if (inner->values[x].is_outer && inner->values[x].outer == v) return true;
        }
    }
    return false;
}

/* ---- memories -------------------------------------------------------------------------------- */

static clg_status add_temporary(plan_state *s, const plan_value *v, value_id *out_id)
{
    CLG_TRY(state_add_values(s, 1, out_id));
    s->values[*out_id] = *v;
    return CLG_OK;
}

/* Makes *v the value in a memory of PLACE_STATE, of which nothing else is known. */
static clg_status set_state(plan_state *s, const value_fact *fact, uint32_t memory, plan_value *v)
{
    size_t size_bytes;
    *v = (plan_value){.fact = *fact, .dense = true};
    v->fact.known = NULL;
    shape_strides(&v->fact.dims, v->strides);
    CLG_TRY(state_value_bytes(v, &size_bytes));
    return state_add_root(s, PLACE_STATE, memory, size_bytes, &v->root);
}

/* Moves a value to a memory of PLACE_STATE, and notes that the segment writes it. may_join: the
 * step that computes it may write there. */
static clg_status store_state(plan_state *s, const plan_value *v, uint32_t memory, bool may_join,
                              plan_value *out_state)
{
    plan_segment *segment = s->segment;
    value_id from;
    CLG_TRY(add_temporary(s, v, &from));
    CLG_TRY(state_materialise(s, from));
    CLG_TRY(set_state(s, &v->fact, memory, out_state));
    const size_t size_bytes = s->roots[out_state->root].size_bytes;
    segment->states[segment->n_states++] = (plan_state_memory){memory, size_bytes ? size_bytes : 1};
    if (size_bytes == 0) return CLG_OK;
    if (may_join && state_join(s, from, out_state->root, 0)) return CLG_OK;
    clg_status status = emit_copy(s, from, out_state->root, state_scope(s)->owner);
    arena_clear(&s->lowering);
    return status;
}

/* Appends a slice of stacked output `scan` at the end of the segment. */
static clg_status append_slice(plan_state *s, const plan_loop *loop, size_t scan,
                               const plan_value *slice, bool is_first)
{
    const plan_scope *scope = state_scope(s);
    char text[NODE_TEXT_BYTES], want[SHAPE_TEXT_BYTES], got[SHAPE_TEXT_BYTES];
    value_id id;
    if (!is_same_type(&slice->fact, &loop->slices[scan]))
        return error_set(CLG_ERROR_SHAPE,
                         "%s: stacked output %zu is %s%s in one iteration and %s%s in another one",
                         node_text(scope->owner, text), loop->n_carried + scan,
                         dtype_name(loop->slices[scan].dtype),
                         shape_text(&loop->slices[scan].dims, want), dtype_name(slice->fact.dtype),
                         shape_text(&slice->fact.dims, got));
    CLG_TRY(add_temporary(s, slice, &id));
    CLG_TRY(emit_dense(s, id, scope->owner));
    arena_clear(&s->lowering);
    s->appends[s->n_appends++] =
        (pending_append){.slice = s->values[id], .index = memory_of_stack(loop, scan), is_first};
    return CLG_OK;
}

/* Allocates the segment's lists, for one iteration's loop-carried values and n_slices slices. */
static clg_status allocate_lists(plan_state *s, const plan_loop *loop, size_t n_slices)
{
    arena *memory = &s->segment->memory;
    s->segment->states = arena_alloc(memory, loop->n_slots + 1, sizeof *s->segment->states);
    s->appends = arena_alloc(memory, n_slices + 1, sizeof *s->appends);
    return s->segment->states && s->appends ? CLG_OK : CLG_ERROR_OUT_OF_HOST_MEMORY;
}

/* Copies the facts of loop->carried to the segment: what the next iteration is planned for. */
static clg_status note_next(plan_state *s, const plan_loop *loop, plan_iteration *next)
{
    value_fact *facts = arena_alloc(&s->segment->memory, loop->n_slots + 1, sizeof *facts);
    if (!facts) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; i < loop->n_slots; i++) facts[i] = loop->carried[i].fact;
    next->base = loop->base;
    next->number = loop->number;
    next->trip = loop->trip;
    next->carried = (plan_carried){facts, loop->n_slots, loop->parity};
    next->node = state_main_node(s);
    for (size_t i = 0; i < loop->n_scans; i++)
        if (is_stacked(state_scope(s), i)) next->wants_count = true;
    s->segment->next = *next;
    return CLG_OK;
}

/* ---- the base -------------------------------------------------------------------------------- */

/* Appends the slices of the iterations that were unrolled, and sets loop->slices. */
static clg_status append_first(plan_state *s, plan_loop *loop)
{
    const plan_scan *rows = loop->scans;
    const size_t n = (size_t)loop->iteration;
    value_fact *slices = arena_alloc(&s->segment->memory, loop->n_scans + 1, sizeof *slices);
    const plan_scan **order = arena_alloc(&s->segment->memory, n + 1, sizeof(plan_scan *));
    if (!slices || !order) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    loop->slices = slices;
    for (size_t i = 0; i < loop->n_scans; i++) {
        slices[i] = rows->values[i].fact;
        slices[i].known = NULL;
    }
    for (size_t i = n; loop->n_scans && i > 0; i--, rows = rows->previous) order[i - 1] = rows;
    for (size_t scan = 0; scan < loop->n_scans; scan++)
        for (size_t i = 0; is_stacked(state_scope(s), scan) && i < n; i++)
            CLG_TRY(append_slice(s, loop, scan, &order[i]->values[scan], i == 0));
    loop->scans = NULL;
    return CLG_OK;
}

/* Moves the values that the loop carries to their memories. Those that the host knows stay known
 * until an iteration changes them. */
static clg_status store_first(plan_state *s, plan_loop *loop)
{
    plan_value *carried = arena_alloc(&s->segment->memory, loop->n_slots + 1, sizeof *carried);
    if (!carried) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; i < loop->n_carried; i++) {
        carried[i] = (plan_value){.fact = loop->carried[i].fact, .root = ROOT_NONE, .dense = true};
        if (!carried[i].fact.known)
            CLG_TRY(store_state(s, &loop->carried[i], memory_of(loop, 0, i), false, &carried[i]));
    }
    if (loop->n_slots > loop->n_carried) {
        value_id number;
        CLG_TRY(state_add_values(s, 1, &number));
        CLG_TRY(control_set_known(s, number, CLG_INT64, loop->iteration));
        const plan_value known = s->values[number];
        CLG_TRY(store_state(s, &known, memory_of(loop, 0, loop->n_carried), false,
                            &carried[loop->n_carried]));
    }
    loop->carried = carried;
    return CLG_OK;
}

clg_status iterate_begin(plan_state *s)
{
    plan_scope *scope = state_scope(s);
    plan_loop *loop = arena_alloc(&s->segment->memory, 1, sizeof *loop);
    if (!loop) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    *loop = *scope->loop;
    loop->base = s->segment;
    loop->number = s->n_loops++;
    loop->first_memory = s->n_memories;
    loop->n_slots = loop->n_carried + (uses_value(scope->graph, scope->graph->inputs[0]) ? 1 : 0);
    if (2 * loop->n_slots + loop->n_scans > UINT32_MAX - s->n_memories)
        return error_no_memory(SIZE_MAX);
    s->n_memories += (uint32_t)(2 * loop->n_slots + loop->n_scans);
    CLG_TRY(allocate_lists(s, loop, (size_t)loop->iteration * loop->n_scans));
    CLG_TRY(append_first(s, loop));
    CLG_TRY(store_first(s, loop));
    scope->loop = loop;
    plan_iteration next = {.n_done = loop->iteration};
    return note_next(s, loop, &next);
}

/* ---- an iteration ---------------------------------------------------------------------------- */

clg_status iterate_start(plan_state *s, const plan_carried *carried)
{
    plan_scope *scope = state_scope(s);
    arena *memory = &s->segment->memory;
    const size_t n = carried->n_facts;
    plan_loop *loop = arena_alloc(memory, 1, sizeof *loop);
    plan_value *values = arena_alloc(memory, n + 1, sizeof *values);
    value_fact *facts = arena_alloc(memory, n + 1, sizeof *facts);
    if (!loop || !values || !facts) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    *loop = *scope->loop;
    loop->n_pinned = s->n_roots;
    loop->parity = carried->parity;
    loop->carried = values;
    scope->loop = loop;
    for (size_t i = 0; i < n; i++) {
        facts[i] = carried->facts[i];
        values[i] = (plan_value){.fact = facts[i], .root = ROOT_NONE, .dense = true};
        if (facts[i].known)
            CLG_TRY(state_hold(s, tensor_retain((tensor *)facts[i].known)));
        else
            CLG_TRY(set_state(s, &facts[i], memory_of(loop, loop->parity, i), &values[i]));
    }
    s->segment->carried = (plan_carried){facts, n, carried->parity};
    return CLG_OK;
}

/* Stores loop-carried value i for the next iteration. It stays known to the host if this iteration
 * did not change it; strings always are. */
static clg_status store_next(plan_state *s, const plan_loop *loop, size_t i,
                             const plan_value *result, plan_value *out_state)
{
    const tensor *before = loop->carried[i].fact.known, *after = result->fact.known;
    char text[NODE_TEXT_BYTES];
    *out_state = (plan_value){.fact = result->fact, .root = ROOT_NONE, .dense = true};
    if (after && (result->fact.dtype == CLG_STRING || (before && tensor_equal(before, after))))
        return CLG_OK;
    if (!is_movable(result))
        return error_set(CLG_ERROR_UNSUPPORTED_OPERATOR,
                         "%s: what it carries is a tensor first, and no tensor later",
                         node_text(state_scope(s)->owner, text));
    return store_state(s, result, memory_of(loop, 1 - loop->parity, i), true, out_state);
}

/* Computes the number of the next iteration. */
static clg_status count_on(plan_state *s, const plan_loop *loop, plan_value *out_state)
{
    const node *owner = state_scope(s)->owner;
    node *add = arena_alloc(&s->segment->memory, 1, sizeof *add);
    value_id *ids = arena_alloc(&s->segment->memory, 3, sizeof *ids), first;
    if (!add || !ids) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    CLG_TRY(state_add_values(s, 3, &first));
    for (uint32_t i = 0; i < 3; i++) ids[i] = first + i;
    s->values[ids[0]] = loop->carried[loop->n_carried];
    CLG_TRY(control_set_known(s, ids[1], CLG_INT64, 1));
    *add = (node){.name = owner->name,
                  .label = owner->label,
                  .domain = "",
                  .op_type = "Add",
                  .opset = 14,
                  .inputs = ids,
                  .outputs = ids + 2,
                  .n_inputs = 2,
                  .n_outputs = 1,
                  .op = ops_find("", "Add", 14)};
    if (!add->op) return error_set(CLG_ERROR_INTERNAL, "there is no Add");
    CLG_TRY(plan_made_node(s, add));
    const plan_value sum = s->values[ids[2]];
    return store_state(s, &sum, memory_of(loop, 1 - loop->parity, loop->n_carried), true,
                       out_state);
}

clg_status iterate_end(plan_state *s, bool is_open, bool stops)
{
    plan_scope *scope = state_scope(s);
    const plan_loop *old = scope->loop;
    arena *memory = &s->segment->memory;
    const value_id *outputs = scope->graph->outputs + old->kind->first_output;
    plan_loop *loop = arena_alloc(memory, 1, sizeof *loop);
    plan_value *carried = arena_alloc(memory, old->n_slots + 1, sizeof *carried);
    plan_value *results = arena_alloc(memory, old->n_carried + old->n_scans + 1, sizeof *results);
    if (!loop || !carried || !results) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    *loop = *old;
    CLG_TRY(allocate_lists(s, loop, loop->n_scans));
    for (size_t i = 0; i < loop->n_carried + loop->n_scans; i++)
        CLG_TRY(control_settle(s, scope->ids[outputs[i]], &results[i]));
    for (size_t i = 0; i < loop->n_scans; i++)
        if (is_stacked(scope, i))
            CLG_TRY(append_slice(s, loop, i, &results[loop->n_carried + i], false));
    for (size_t i = 0; i < loop->n_carried; i++)
        CLG_TRY(store_next(s, old, i, &results[i], &carried[i]));
    if (loop->n_slots > loop->n_carried) CLG_TRY(count_on(s, old, &carried[loop->n_carried]));
    loop->carried = carried;
    loop->parity = 1 - old->parity;
    scope->loop = loop;
    plan_iteration next = {.has_condition = is_open, .stops = stops};
    return note_next(s, loop, &next);
}

/* ---- after the loop -------------------------------------------------------------------------- */

clg_status iterate_stack(plan_state *s, const plan_scope *scope, size_t scan, value_id to)
{
    const plan_loop *loop = scope->loop;
    const value_fact *slice = &loop->slices[scan];
    char text[NODE_TEXT_BYTES];
    value_fact whole = {.dtype = slice->dtype, .dims = {.rank = slice->dims.rank + 1}};
    if (slice->dims.rank == CLG_MAX_RANK)
        return error_set(CLG_ERROR_SHAPE, "%s: the result has too many axes",
                         node_text(scope->owner, text));
    whole.dims.dims[0] = loop->iteration;
    for (int i = 0; i < slice->dims.rank; i++) whole.dims.dims[i + 1] = slice->dims.dims[i];
    return set_state(s, &whole, memory_of_stack(loop, scan), &s->values[to]);
}
