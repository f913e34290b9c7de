/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans Scan and SequenceMap: loops whose iterations take successive slices of tensors or items of
 * sequences. Slices are views, without copies. After the last iteration, Scan concatenates the
 * results along a new axis, and SequenceMap puts them into sequences.
 */
#include "plan/state.h"

#include <inttypes.h>

static clg_status fault(const node *n, clg_status status, const char *what)
{
    char text[NODE_TEXT_BYTES];
    return error_set(status, "%s: %s", node_text(n, text), what);
}

/* Returns entry i of attribute `name`, a list of integers; `fallback` where the list is shorter. */
static int64_t entry(const node *n, const char *name, size_t i, int64_t fallback)
{
    size_t n_list;
    const int64_t *list = node_ints(n, name, &n_list);
    return i < n_list ? list[i] : fallback;
}

/* Stores the node's inputs from index `first` on. Tensors of which iterations take slices, from
 * index n_whole of these on, get device memory. */
static clg_status keep_inputs(plan_state *s, const node *n, size_t first, size_t n_whole,
                              plan_value **out_values)
{
    plan_value *values = arena_alloc(&s->segment->memory, n->n_inputs - first + 1, sizeof *values);
    if (!values) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; i < n->n_inputs - first; i++) {
        value_id v = n->inputs[first + i];
        if (v == VALUE_NONE) return fault(n, CLG_ERROR_INVALID_MODEL, "an input is left out");
        if (i >= n_whole && s->values[v].fact.kind == CLG_VALUE_TENSOR)
            CLG_TRY(state_materialise(s, v));
        CLG_TRY(control_settle(s, v, &values[i]));
    }
    *out_values = values;
    return CLG_OK;
}

static clg_status need_tensor(const node *n, const plan_value *v, int min_rank)
{
    if (v->fact.kind == CLG_VALUE_TENSOR && v->fact.dims.rank >= min_rank) return CLG_OK;
    return fault(n, CLG_ERROR_SHAPE, "what it iterates over has too few axes, or is not a tensor");
}

/* ---- Scan ------------------------------------------------------------------------------------ */

static int64_t scanned_axis(const node *n, size_t i) { return entry(n, "scan_input_axes", i, 0); }

static clg_status start_scan(plan_state *s)
{
    const plan_scope *scope = state_scope(s);
    const plan_loop *loop = scope->loop;
    for (size_t i = 0; i < loop->n_inputs; i++) {
        value_id to = scope->ids[scope->graph->inputs[i]];
        plan_value part;
        if (i < loop->n_carried) {
            CLG_TRY(control_copy_value(s, &loop->carried[i], to));
            continue;
        }
        const size_t k = i - loop->n_carried;
        const bool reverse = entry(scope->owner, "scan_input_directions", k, 0) != 0;
        int axis;
        CLG_TRY(shape_axis(scanned_axis(scope->owner, k), loop->inputs[i].fact.dims.rank, "axis",
                           &axis));
        sequence_part(&loop->inputs[i], axis,
                      reverse ? loop->length - 1 - loop->iteration : loop->iteration, &part);
        CLG_TRY(control_copy_value(s, &part, to));
    }
    return CLG_OK;
}

static clg_status scan_result(plan_state *s, const plan_scope *scope, size_t i, value_id to)
{
    const plan_loop *loop = scope->loop;
    if (i < loop->n_carried) return control_copy_value(s, &loop->carried[i], to);
    const size_t k = i - loop->n_carried;
    return control_stack(s, scope, k, entry(scope->owner, "scan_output_axes", k, 0),
                         entry(scope->owner, "scan_output_directions", k, 0) != 0, to);
}

static const plan_loop_kind kind_scan = {0, start_scan, scan_result};

/* ---- Scan of opset 8: every input has a batch axis first ------------------------------------- */

/* Stores the final states of the previous batch item, and sets the initial states of the next
 * one. */
static clg_status next_batch(plan_state *s, plan_loop *loop)
{
    arena *memory = &s->segment->memory;
    plan_value *starts = arena_alloc(memory, loop->n_carried + 1, sizeof *starts);
    plan_scan *final = arena_alloc(memory, 1, sizeof *final);
    const int64_t batch = loop->iteration / loop->length;
    if (!starts || !final) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    if (batch > 0) {
        *final = (plan_scan){.values = loop->carried, .previous = loop->finals};
        loop->finals = final;
    }
    for (size_t i = 0; i < loop->n_carried; i++)
        sequence_part(&loop->inputs[i], 0, batch, &starts[i]);
    loop->carried = starts;
    return CLG_OK;
}

static clg_status start_scan_8(plan_state *s)
{
    const plan_scope *scope = state_scope(s);
    plan_loop *loop = scope->loop;
    const int64_t batch = loop->iteration / loop->length, step = loop->iteration % loop->length;
    if (step == 0) CLG_TRY(next_batch(s, loop));
    for (size_t i = 0; i < loop->n_inputs; i++) {
        value_id to = scope->ids[scope->graph->inputs[i]];
        plan_value of_batch, part;
        if (i < loop->n_carried) {
            CLG_TRY(control_copy_value(s, &loop->carried[i], to));
            continue;
        }
        const bool reverse = entry(scope->owner, "directions", i - loop->n_carried, 0) != 0;
        sequence_part(&loop->inputs[i], 0, batch, &of_batch);
        sequence_part(&of_batch, 0, reverse ? loop->length - 1 - step : step, &part);
        CLG_TRY(control_copy_value(s, &part, to));
    }
    return CLG_OK;
}

/* Makes value v of shape [batches * length, ...] a view of shape [batches, length, ...]. */
static clg_status split_batches(plan_state *s, const plan_loop *loop, value_id v, const node *n)
{
    plan_value *value = &s->values[v];
    shape dims = value->fact.dims;
    if (dims.rank == CLG_MAX_RANK) return fault(n, CLG_ERROR_SHAPE, "the result has too many axes");
    for (int d = dims.rank; d > 1; d--) dims.dims[d] = dims.dims[d - 1];
    dims.rank++;
    dims.dims[0] = loop->trip / loop->length;
    dims.dims[1] = loop->length;
    if (value->fact.known) {
        tensor *t;
        CLG_TRY(fact_reshaped(value->fact.known, &dims, &t));
        CLG_TRY(state_hold(s, t));
        value->fact.known = t;
    }
    value->fact.dims = dims;
    shape_strides(&dims, value->strides);
    return CLG_OK;
}

static clg_status scan_8_result(plan_state *s, const plan_scope *scope, size_t i, value_id to)
{
    const plan_loop *loop = scope->loop;
    if (i >= loop->n_carried) {
        CLG_TRY(control_stack(s, scope, i - loop->n_carried, 0, false, to));
        return split_batches(s, loop, to, scope->owner);
    }
    const size_t n = (size_t)(loop->trip / loop->length);
    plan_value *items = arena_alloc(&s->segment->memory, n + 1, sizeof *items);
    if (!items) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    items[n - 1] = loop->carried[i];
    const plan_scan *final = loop->finals;
    for (size_t b = n - 1; b > 0; b--, final = final->previous) items[b - 1] = final->values[i];
    return sequence_join(s, items, n, 0, true, to, scope->owner);
}

static const plan_loop_kind kind_scan_8 = {0, start_scan_8, scan_8_result};

/* Sets loop->length, the iterations per batch item, and loop->trip, the iterations in all, from the
 * shapes of the scanned tensors. batched: Scan of opset 8. */
static clg_status scan_length(const node *n, plan_loop *loop, bool batched)
{
    int64_t length = DIM_UNKNOWN, batches = batched ? DIM_UNKNOWN : 1;
    for (size_t i = 0; i < loop->n_inputs; i++) {
        const shape *dims = &loop->inputs[i].fact.dims;
        int axis = 1;
        if (i < loop->n_carried && !batched) continue;
        CLG_TRY(need_tensor(n, &loop->inputs[i], batched && i >= loop->n_carried ? 2 : 1));
        if (!batched)
            CLG_TRY(shape_axis(scanned_axis(n, i - loop->n_carried), dims->rank, "axis", &axis));
        if (batched && batches == DIM_UNKNOWN) batches = dims->dims[0];
        if (batched && dims->dims[0] != batches)
            return fault(n, CLG_ERROR_SHAPE, "its inputs have batches of different sizes");
        if (i < loop->n_carried) continue;
        if (length == DIM_UNKNOWN) length = dims->dims[axis];
        if (dims->dims[axis] != length)
            return fault(n, CLG_ERROR_SHAPE, "the tensors it goes over differ in length");
    }
    if (batched && (length == 0 || batches == 0))
        return fault(n, CLG_ERROR_UNSUPPORTED_OPERATOR,
                     "going over nothing is not supported in opset 8");
    loop->length = length;
    loop->trip = length * batches;
    return CLG_OK;
}

static clg_status enter_scan(plan_state *s, const node *n, const graph *body, bool batched)
{
    const size_t first = batched ? 1 : 0, n_inputs = n->n_inputs - first;
    const int64_t n_scanned = node_int(n, "num_scan_inputs", 0);
    plan_loop *loop = arena_alloc(&s->segment->memory, 1, sizeof *loop);
    plan_value *inputs;
    if (!loop) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    if (n_scanned < 1 || (uint64_t)n_scanned > n_inputs || body->n_inputs != n_inputs)
        return fault(n, CLG_ERROR_INVALID_MODEL, "inputs of its body do not fit the node");
    const size_t n_carried = n_inputs - (size_t)n_scanned;
    if (body->n_outputs < n_carried || n->n_outputs > body->n_outputs)
        return fault(n, CLG_ERROR_INVALID_MODEL, "outputs of its body do not fit the node");
    if (batched && n->inputs[0] != VALUE_NONE)
        return fault(n, CLG_ERROR_UNSUPPORTED_OPERATOR, "sequence_lens are not supported");
    CLG_TRY(keep_inputs(s, n, first, batched ? 0 : n_carried, &inputs));
    *loop = (plan_loop){.kind = batched ? &kind_scan_8 : &kind_scan,
                        .n_carried = n_carried,
                        .n_scans = body->n_outputs - n_carried,
                        .carried = inputs,
                        .inputs = inputs,
                        .n_inputs = n_inputs};
    CLG_TRY(scan_length(n, loop, batched));
    return control_start_loop(s, body, n, loop, loop->trip > 0);
}

/* ---- SequenceMap ----------------------------------------------------------------------------- */

static clg_status start_map(plan_state *s)
{
    const plan_scope *scope = state_scope(s);
    const plan_loop *loop = scope->loop;
    for (size_t i = 0; i < loop->n_inputs; i++) {
        const plan_value *from = &loop->inputs[i];
        if (from->fact.kind == CLG_VALUE_SEQUENCE) from = &from->items[loop->iteration];
        CLG_TRY(control_copy_value(s, from, scope->ids[scope->graph->inputs[i]]));
    }
    return CLG_OK;
}

static clg_status map_result(plan_state *s, const plan_scope *scope, size_t i, value_id to)
{
    const plan_loop *loop = scope->loop;
    const size_t n = (size_t)loop->iteration;
    plan_value *items = arena_alloc(&s->segment->memory, n + 1, sizeof *items);
    if (!items) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    const plan_scan *rows = loop->scans;
    for (size_t k = n; k > 0; k--, rows = rows->previous) items[k - 1] = rows->values[i];
    sequence_set(s, to,
                 n ? items[0].fact.dtype : scope->graph->values[scope->graph->outputs[i]].dtype,
                 items, n);
    return CLG_OK;
}

static const plan_loop_kind kind_map = {0, start_map, map_result};

static clg_status enter_map(plan_state *s, const node *n, const graph *body)
{
    plan_loop *loop = arena_alloc(&s->segment->memory, 1, sizeof *loop);
    plan_value *inputs;
    if (!loop) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    if (body->n_inputs != n->n_inputs || n->n_outputs > body->n_outputs)
        return fault(n, CLG_ERROR_INVALID_MODEL,
                     "inputs and outputs of its body do not fit the node");
    CLG_TRY(keep_inputs(s, n, 0, n->n_inputs, &inputs));
    if (inputs[0].fact.kind != CLG_VALUE_SEQUENCE)
        return fault(n, CLG_ERROR_INVALID_MODEL, "input 0 is not a sequence");
    for (size_t i = 1; i < n->n_inputs; i++)
        if (inputs[i].fact.kind == CLG_VALUE_SEQUENCE && inputs[i].n_items != inputs[0].n_items)
            return fault(n, CLG_ERROR_DATA, "its sequences differ in length");
    *loop = (plan_loop){.kind = &kind_map,
                        .trip = (int64_t)inputs[0].n_items,
                        .n_scans = body->n_outputs,
                        .inputs = inputs,
                        .n_inputs = n->n_inputs};
    return control_start_loop(s, body, n, loop, loop->trip > 0);
}

clg_status scan_enter(plan_state *s, const node *n, op_control_kind kind, bool *out_entered)
{
    const graph *body = control_graph(n, "body");
    if (!body) return fault(n, CLG_ERROR_INVALID_MODEL, "it has no body");
    *out_entered = true;
    if (kind == CONTROL_SEQUENCE_MAP) return enter_map(s, n, body);
    return enter_scan(s, n, body, kind == CONTROL_SCAN_8);
}
