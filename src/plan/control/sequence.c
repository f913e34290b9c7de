/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans the operators on sequences. A sequence is a list of values in the planner: creating one,
 * reading an item or the length, and splitting a tensor into views copy no data on the device. Only
 * ConcatFromSequence copies. Strings have no device memory: the host holds them and copies them
 * when splitting.
 */
#include "plan/state.h"

#include <string.h>

static const char *describe(const node *n, char buffer[NODE_TEXT_BYTES])
{
    return node_text(n, buffer);
}

/* ---- items and positions --------------------------------------------------------------------- */

void sequence_set(plan_state *s, value_id v, clg_dtype dtype, const plan_value *items,
                  size_t n_items)
{
    s->values[v] =
        (plan_value){.fact = {.kind = CLG_VALUE_SEQUENCE, .dtype = dtype, .dims = shape_scalar()},
                     .root = ROOT_NONE,
                     .dense = true,
                     .items = items,
                     .n_items = n_items};
}

static void set_sequence(plan_state *s, value_id v, const plan_value *items, size_t n_items)
{
    sequence_set(s, v, n_items ? items[0].fact.dtype : CLG_DTYPE_NONE, items, n_items);
}

static clg_status new_items(plan_state *s, size_t n, plan_value **out_items)
{
    *out_items = arena_alloc(&s->segment->memory, n + 1, sizeof **out_items);
    return *out_items ? CLG_OK : CLG_ERROR_OUT_OF_HOST_MEMORY;
}

/* Sets *out_value to input i as an element of a sequence. An element has no value id, so a weight
 * gets its memory now. */
static clg_status element(plan_state *s, const node *n, size_t i, plan_value *out_value)
{
    value_id v = i < n->n_inputs ? n->inputs[i] : VALUE_NONE;
    char text[NODE_TEXT_BYTES];
    if (v == VALUE_NONE || s->values[v].fact.kind != CLG_VALUE_TENSOR)
        return error_set(CLG_ERROR_INVALID_MODEL, "%s: input %zu is not a tensor",
                         describe(n, text), i);
    return control_settle(s, v, out_value);
}

static clg_status sequence_input(const plan_state *s, const node *n,
                                 const plan_value **out_sequence)
{
    char text[NODE_TEXT_BYTES];
    *out_sequence = NULL;
    if (n->n_inputs && n->inputs[0] != VALUE_NONE &&
        s->values[n->inputs[0]].fact.kind == CLG_VALUE_SEQUENCE) {
        *out_sequence = &s->values[n->inputs[0]];
        return CLG_OK;
    }
    return error_set(CLG_ERROR_INVALID_MODEL, "%s: input 0 is not a sequence", describe(n, text));
}

/* Reads input i, a position that must be below `limit`; a negative one counts from the end of a
 * sequence of n_items. *out_position is `fallback` if the input is absent; if the host does not
 * know it, its bit in *needs is set. */
static clg_status position(const plan_state *s, const node *n, size_t i, size_t n_items,
                           size_t limit, size_t fallback, uint32_t *needs, size_t *out_position)
{
    char text[NODE_TEXT_BYTES];
    const tensor *t = control_content(s, n, i, needs);
    *out_position = fallback;
    if (!t) return CLG_OK;
    int64_t at = t->n_elements == 1 ? tensor_get_int(t, 0) : INT64_MAX;
    if (at < 0) at += (int64_t)n_items;
    if (at < 0 || at >= (int64_t)limit)
        return error_set(CLG_ERROR_DATA, "%s: its position is outside of the sequence",
                         describe(n, text));
    *out_position = (size_t)at;
    return CLG_OK;
}

/* ---- the operators --------------------------------------------------------------------------- */

static clg_status construct(plan_state *s, const node *n)
{
    plan_value *items;
    CLG_TRY(new_items(s, n->n_inputs, &items));
    for (size_t i = 0; i < n->n_inputs; i++) CLG_TRY(element(s, n, i, &items[i]));
    set_sequence(s, n->outputs[0], items, n->n_inputs);
    return CLG_OK;
}

static clg_status insert(plan_state *s, const node *n, uint32_t *needs)
{
    const plan_value *from;
    plan_value *items, added;
    size_t at;
    CLG_TRY(sequence_input(s, n, &from));
    size_t n_items = from->n_items;
    const plan_value *old = from->items;
    CLG_TRY(position(s, n, 2, n_items, n_items + 1, n_items, needs, &at));
    if (*needs) return CLG_OK;
    CLG_TRY(element(s, n, 1, &added));
    CLG_TRY(new_items(s, n_items + 1, &items));
    if (at) memcpy(items, old, at * sizeof *items);
    items[at] = added;
    if (n_items > at) memcpy(items + at + 1, old + at, (n_items - at) * sizeof *items);
    set_sequence(s, n->outputs[0], items, n_items + 1);
    return CLG_OK;
}

static clg_status erase(plan_state *s, const node *n, uint32_t *needs)
{
    const plan_value *from;
    plan_value *items;
    size_t at;
    char text[NODE_TEXT_BYTES];
    CLG_TRY(sequence_input(s, n, &from));
    if (from->n_items == 0)
        return error_set(CLG_ERROR_DATA, "%s: the sequence is empty", describe(n, text));
    CLG_TRY(position(s, n, 1, from->n_items, from->n_items, from->n_items - 1, needs, &at));
    if (*needs) return CLG_OK;
    CLG_TRY(new_items(s, from->n_items - 1, &items));
    if (at) memcpy(items, from->items, at * sizeof *items);
    memcpy(items + at, from->items + at + 1, (from->n_items - at - 1) * sizeof *items);
    set_sequence(s, n->outputs[0], items, from->n_items - 1);
    return CLG_OK;
}

/* Plans SequenceAt. */
static clg_status take(plan_state *s, const node *n, uint32_t *needs)
{
    const plan_value *from;
    size_t at;
    char text[NODE_TEXT_BYTES];
    CLG_TRY(sequence_input(s, n, &from));
    if (from->n_items == 0)
        return error_set(CLG_ERROR_DATA, "%s: the sequence is empty", describe(n, text));
    CLG_TRY(position(s, n, 1, from->n_items, from->n_items, 0, needs, &at));
    return *needs ? CLG_OK : control_copy_value(s, &from->items[at], n->outputs[0]);
}

static clg_status length(plan_state *s, const node *n)
{
    const plan_value *from;
    CLG_TRY(sequence_input(s, n, &from));
    return control_set_known(s, n->outputs[0], CLG_INT64, (int64_t)from->n_items);
}

/* ---- splitting ------------------------------------------------------------------------------- */

/* Computes the lengths of the parts of SplitToSequence along an axis of length `total`.
 * *out_squeeze: each part has length one and loses the axis. */
static clg_status part_lengths(plan_state *s, const node *n, int64_t total, uint32_t *needs,
                               int64_t **out_lengths, size_t *out_n, bool *out_squeeze)
{
    char text[NODE_TEXT_BYTES];
    const tensor *split = control_content(s, n, 1, needs);
    if (*needs) return CLG_OK;
    *out_squeeze = !split && node_int(n, "keepdims", 1) == 0;
    int64_t chunk = !split ? 1 : split->dims.rank == 0 ? tensor_get_int(split, 0) : 0;
    bool listed = split && split->dims.rank == 1;
    if (!listed && chunk < 1)
        return error_set(CLG_ERROR_DATA, "%s: parts must be longer than nothing",
                         describe(n, text));
    size_t parts = listed ? (size_t)split->n_elements : (size_t)((total + chunk - 1) / chunk);
    int64_t *lengths = arena_alloc(&s->segment->memory, parts + 1, sizeof *lengths), sum = 0;
    if (!lengths) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; i < parts; i++) {
        lengths[i] = listed                ? tensor_get_int(split, (int64_t)i)
                     : total - sum < chunk ? total - sum
                                           : chunk;
        if (lengths[i] < 0 || lengths[i] > total - sum)
            return error_set(CLG_ERROR_SHAPE, "%s: its parts are longer than the tensor",
                             describe(n, text));
        sum += lengths[i];
    }
    if (sum != total)
        return error_set(CLG_ERROR_SHAPE, "%s: its parts do not add up to the tensor",
                         describe(n, text));
    *out_lengths = lengths;
    *out_n = parts;
    return CLG_OK;
}

static void squeeze_axis(plan_value *v, int axis)
{
    shape *d = &v->fact.dims;
    for (int i = axis; i + 1 < d->rank; i++) {
        d->dims[i] = d->dims[i + 1];
        v->strides[i] = v->strides[i + 1];
    }
    d->rank--;
}

static bool is_dense(const plan_value *v)
{
    int64_t expected = 1;
    for (int i = v->fact.dims.rank - 1; i >= 0; i--) {
        if (v->fact.dims.dims[i] != 1 && v->strides[i] != expected) return false;
        expected *= v->fact.dims.dims[i];
    }
    return true;
}

/* Sets *out_part to a view of `length` slices along an axis from `start`. squeeze: length is 1, and
 * the axis is removed. */
static void slice_tensor(const plan_value *whole, int axis, int64_t start, int64_t length,
                         bool squeeze, plan_value *out_part)
{
    *out_part = *whole;
    out_part->fact.known = NULL;
    out_part->fact.dims.dims[axis] = length;
    out_part->offset_elems += start * whole->strides[axis];
    if (squeeze) squeeze_axis(out_part, axis);
    out_part->dense = is_dense(out_part);
}

void sequence_part(const plan_value *whole, int axis, int64_t at, plan_value *out_part)
{
    slice_tensor(whole, axis, at, 1, true, out_part);
}

/* Copies the strings of `length` slices along an axis from `start` into a new tensor of `part`. */
static clg_status slice_strings(plan_state *s, const plan_value *whole, int axis, int64_t start,
                                int64_t length, plan_value *part)
{
    const shape *dims = &whole->fact.dims;
    int64_t outer = 1, inner = 1;
    tensor *t;
    for (int i = 0; i < dims->rank; i++)
        *(i < axis ? &outer : &inner) *= i == axis ? 1 : dims->dims[i];
    CLG_TRY(tensor_create(CLG_STRING, &part->fact.dims, &t));
    CLG_TRY(state_hold(s, t));
    for (int64_t i = 0; i < outer * length * inner; i++) {
        const int64_t place = i / inner % length + start;
        const char *word = tensor_get_string(
            whole->fact.known, (i / inner / length * dims->dims[axis] + place) * inner + i % inner);
        CLG_TRY(tensor_set_string(t, i, word, strlen(word)));
    }
    part->fact.known = t;
    return CLG_OK;
}

static clg_status split(plan_state *s, const node *n, uint32_t *needs)
{
    plan_value whole, *items;
    int axis;
    int64_t *lengths = NULL, start = 0;
    size_t parts = 0;
    bool squeeze = false;
    const bool strings = s->values[n->inputs[0]].fact.dtype == CLG_STRING;
    if (!strings) CLG_TRY(state_materialise(s, n->inputs[0]));
    CLG_TRY(element(s, n, 0, &whole));
    CLG_TRY(shape_axis(node_int(n, "axis", 0), whole.fact.dims.rank, "axis", &axis));
    CLG_TRY(part_lengths(s, n, whole.fact.dims.dims[axis], needs, &lengths, &parts, &squeeze));
    if (*needs) return CLG_OK;
    CLG_TRY(new_items(s, parts, &items));
    for (size_t i = 0; i < parts; i++) {
        slice_tensor(&whole, axis, start, lengths[i], squeeze, &items[i]);
        if (strings) CLG_TRY(slice_strings(s, &whole, axis, start, lengths[i], &items[i]));
        start += lengths[i];
    }
    set_sequence(s, n->outputs[0], items, parts);
    return CLG_OK;
}

/* ---- joining --------------------------------------------------------------------------------- */

static void unsqueeze_axis(plan_value *v, int axis)
{
    shape *d = &v->fact.dims;
    for (int i = d->rank; i > axis; i--) {
        d->dims[i] = d->dims[i - 1];
        v->strides[i] = v->strides[i - 1];
    }
    d->dims[axis] = 1;
    v->strides[axis] = 1;
    d->rank++;
}

/* Inserts an axis of length one into v, a tensor in memory or of strings known to the host. */
static clg_status add_axis(plan_state *s, value_id v, int axis)
{
    const tensor *known = s->values[v].fact.known;
    const bool strings = s->values[v].fact.dtype == CLG_STRING;
    tensor *t;
    if (known && !strings) CLG_TRY(state_materialise(s, v));
    s->values[v].fact.known = NULL;
    unsqueeze_axis(&s->values[v], axis);
    if (!strings) return CLG_OK;
    CLG_TRY(fact_reshaped(known, &s->values[v].fact.dims, &t));
    s->values[v].fact.known = t;
    return state_hold(s, t);
}

clg_status sequence_join(plan_state *s, const plan_value *items, size_t n_items, int64_t axis,
                         bool new_axis, value_id to, const node *n)
{
    char text[NODE_TEXT_BYTES];
    value_id first;
    int at, rank = n_items ? items[0].fact.dims.rank + (new_axis ? 1 : 0) : 0;
    size_t n_before = s->n_values;
    if (n_items == 0)
        return error_set(CLG_ERROR_DATA, "%s: there is nothing to join", describe(n, text));
    if (rank > CLG_MAX_RANK)
        return error_set(CLG_ERROR_SHAPE, "%s: the result has too many axes", describe(n, text));
    CLG_TRY(shape_axis(axis, rank, "axis", &at));
    const op_row *row = ops_find("", "Concat", 13);
    if (!row) return error_set(CLG_ERROR_INTERNAL, "there is no Concat");
    value_id *inputs = arena_alloc(&s->segment->memory, n_items + 1, sizeof *inputs);
    graph_attribute *attributes = arena_alloc(&s->segment->memory, 1, sizeof *attributes);
    node *join = arena_alloc(&s->segment->memory, 1, sizeof *join);
    if (!inputs || !attributes || !join) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    CLG_TRY(state_add_values(s, n_items, &first));
    for (size_t i = 0; i < n_items; i++) {
        plan_value *item = &s->values[first + i];
        *item = items[i];
        inputs[i] = first + (value_id)i;
        if (new_axis) CLG_TRY(add_axis(s, inputs[i], at));
    }
    *attributes = (graph_attribute){.name = "axis", .type = ATTRIBUTE_INT, .as.i = at};
    inputs[n_items] = to;
    *join = (node){.name = n->name,
                   .label = n->label,
                   .domain = "",
                   .op_type = "Concat",
                   .opset = 13,
                   .inputs = inputs,
                   .outputs = inputs + n_items,
                   .n_inputs = n_items,
                   .n_outputs = 1,
                   .attributes = attributes,
                   .n_attributes = 1,
                   .op = row};
    s->values[to] = (plan_value){.root = ROOT_NONE, .dense = true};
    CLG_TRY(plan_made_node(s, join));
    s->n_values = n_before;
    return CLG_OK;
}

static clg_status concat(plan_state *s, const node *n)
{
    const plan_value *from;
    CLG_TRY(sequence_input(s, n, &from));
    return sequence_join(s, from->items, from->n_items, node_int(n, "axis", 0),
                         node_int(n, "new_axis", 0) != 0, n->outputs[0], n);
}

clg_status sequence_node(plan_state *s, const node *n, op_control_kind kind, uint32_t *out_needs)
{
    switch (kind) {
    case CONTROL_SEQUENCE_EMPTY: set_sequence(s, n->outputs[0], NULL, 0); return CLG_OK;
    case CONTROL_SEQUENCE_CONSTRUCT: return construct(s, n);
    case CONTROL_SEQUENCE_INSERT: return insert(s, n, out_needs);
    case CONTROL_SEQUENCE_ERASE: return erase(s, n, out_needs);
    case CONTROL_SEQUENCE_AT: return take(s, n, out_needs);
    case CONTROL_SEQUENCE_LENGTH: return length(s, n);
    case CONTROL_SPLIT_TO_SEQUENCE: return split(s, n, out_needs);
    case CONTROL_CONCAT_FROM_SEQUENCE: return concat(s, n);
    default:
        return error_set(CLG_ERROR_INTERNAL, "control of kind %d is nothing about sequences",
                         (int)kind);
    }
}
