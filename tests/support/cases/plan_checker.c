/* SPDX-License-Identifier: Apache-2.0
 *
 * Replays plans. See plan_checker.h. The expected order of the steps of a node is the contract of
 * emit.c: copies of inputs that must be dense; packing of inputs that are not weights; the steps of
 * the candidate; and at the end of a segment copies for reads by the host and for outputs.
 */
#include "support/cases/plan_checker.h"

#include "support/cases/checked_value.h"
#include "support/cases/step_operands.h"
#include "support/fakes/shadow_memory.h"
#include "support/unit.h"

#include <stdlib.h>
#include <string.h>

typedef struct checker {
    const plan_context *c;
    const plan *plan;
    const plan_segment *segment; /* being replayed */
    checked_value *values;
    shadow memory;
    arena lowered;
    plan_check_counts counts;
    /* Of the candidate being replayed. */
    const node *node;
    node_id id;
    plan_placement scratch[CANDIDATE_MAX_SCRATCH], packed[CANDIDATE_MAX_PACKINGS];
    uint32_t scratch_number[CANDIDATE_MAX_SCRATCH], packed_number[CANDIDATE_MAX_PACKINGS];
    bool has_scratch[CANDIDATE_MAX_SCRATCH], has_packed[CANDIDATE_MAX_PACKINGS];
} checker;

static void *zeros(size_t n, size_t size)
{
    void *memory = calloc(n + 1, size);
    assert_non_null(memory);
    return memory;
}

static const char *name_of(const checker *k, value_id v) { return k->c->graph->values[v].name; }

/* ---- values ---------------------------------------------------------------------------------- */

/* Adds a constant to the model of memory when a step first accesses it. */
static void discover(checker *k, value_id id, const plan_placement *p)
{
    checked_value *v = &k->values[id];
    v->at = *p;
    v->has_memory = true;
    if (v->weight) {
        assert_int_equal(p->kind, PLACE_WEIGHT);
        assert_int_equal(p->index, id);
        assert_int_equal(p->offset_bytes, 0);
        return;
    }
    assert_int_equal(p->kind, PLACE_LITERAL);
    assert_non_null(v->fact.known);
    assert_true(p->index <= k->segment->depth);
    const plan_segment *s = k->segment;
    while (s->depth > p->index) s = s->parent;
    size_t n_bytes = v->fact.known->size_bytes;
    assert_true(p->offset_bytes >= 0 && (size_t)p->offset_bytes + n_bytes <= s->literal_bytes);
    assert_memory_equal(s->literals + p->offset_bytes, v->fact.known->data, n_bytes);
}

static void check_input(checker *k, value_id id, const plan_placement *p)
{
    checked_value *v = &k->values[id];
    if (v->n == 0) {
        if (shadow_is_writable(p->kind))
            shadow_check(&k->memory, p, 0, 0); /* a value without elements needs a buffer as well */
        return;
    }
    if (!v->has_memory) discover(k, id, p);
    if (!placement_equal(&v->at, p))
        fail_msg("step %zu reads '%s' at %d.%u+%lld; it is at %d.%u+%lld", k->memory.step,
                 name_of(k, id), (int)p->kind, p->index, (long long)p->offset_bytes,
                 (int)v->at.kind, v->at.index, (long long)v->at.offset_bytes);
    checked_value_check(&k->values[id], &k->memory);
}

static void place_output(checker *k, value_id id, const plan_placement *p)
{
    checked_value *v = &k->values[id];
    if (!v->has_memory) {
        v->at = *p;
        v->has_memory = true;
        return;
    }
    if (!placement_equal(&v->at, p))
        fail_msg("step %zu writes '%s' elsewhere", k->memory.step, name_of(k, id));
}

/* ---- steps ----------------------------------------------------------------------------------- */

static const plan_step *take_step(checker *k, const step *expected)
{
    if (k->memory.step >= k->segment->n_steps)
        fail_msg("segment %u ends after %zu steps, before %s of %s", k->segment->depth,
                 k->memory.step, expected->kind == STEP_KERNEL ? expected->kernel.entry : "a copy",
                 k->node ? k->node->op_type : "an output");
    const plan_step *s = &k->segment->steps[k->memory.step];
    assert_int_equal(s->what->kind, expected->kind);
    if (expected->kind == STEP_KERNEL)
        assert_string_equal(s->what->kernel.entry, expected->kernel.entry);
    return s;
}

static value_id operand_value(const checker *k, const operand *o)
{
    return o->space == OPERAND_INPUT ? k->node->inputs[o->index] : k->node->outputs[o->index];
}

static void check_own_block(checker *k, bool scratch, uint32_t i, size_t n_bytes,
                            const plan_placement *p)
{
    plan_placement *at = scratch ? &k->scratch[i] : &k->packed[i];
    uint32_t *number = scratch ? &k->scratch_number[i] : &k->packed_number[i];
    bool *has = scratch ? &k->has_scratch[i] : &k->has_packed[i];
    if (!*has) {
        *at = *p;
        *number = ++k->memory.last_number;
        *has = true;
        if (shadow_is_writable(p->kind)) shadow_write(&k->memory, p, n_bytes, *number);
        return;
    }
    assert_true(placement_equal(at, p));
    if (shadow_is_writable(p->kind)) shadow_check(&k->memory, p, n_bytes, *number);
}

/* Checks one step of the candidate: its inputs must be valid before and after it. Writes its
 * outputs. */
static void check_step(checker *k, const candidate *impl, const step *expected)
{
    step_operands operands;
    if (step_is_skipped(expected)) return;
    const plan_step *s = take_step(k, expected);
    step_operands_of(expected, s, &operands);
    assert_int_equal(operands.n, s->n_buffers);
    assert_int_equal(s->node, k->id);
    for (int pass = 0; pass < 3; pass++)
        for (uint32_t i = 0; i < operands.n; i++) {
            const operand *o = &operands.list[i];
            const plan_placement p = operands.at[i];
            if (o->space == OPERAND_INPUT && pass != 1) check_input(k, operand_value(k, o), &p);
            if (o->space == OPERAND_SCRATCH && pass == 1)
                check_own_block(k, true, o->index, impl->scratch_bytes[o->index], &p);
            if (o->space == OPERAND_PACKED && pass == 1)
                check_own_block(k, false, o->index, impl->packings[o->index].size_bytes, &p);
            if (o->space != OPERAND_OUTPUT || pass != 1) continue;
            place_output(k, operand_value(k, o), &p);
            checked_value_write(&k->values[operand_value(k, o)], &k->memory);
        }
    k->memory.step++;
    k->counts.n_steps++;
}

/* ---- copies that the planner adds ------------------------------------------------------------ */

static lower_operand operand_of(const checked_value *v)
{
    lower_operand o = {.dtype = v->fact.dtype,
                       .dims = v->fact.dims,
                       .dense = checked_value_is_dense(v),
                       .constant = v->weight,
                       .known = v->fact.known};
    memcpy(o.strides, v->strides, sizeof o.strides);
    return o;
}

static void start_lowering(checker *k, lower_context *lc)
{
    lc->caps = k->c->caps;
    lc->kernel_class = k->c->kernel_class;
    lc->memory = &k->lowered;
    step_builder_init(&lc->build, lc->memory, NULL);
}

/* Checks a step that makes a dense copy of value v. Returns the copy's location. */
static plan_placement check_copy(checker *k, value_id id)
{
    checked_value *v = &k->values[id];
    lower_operand from = operand_of(v), to = from;
    plan_placement target = {PLACE_NONE, 0, 0};
    to.dense = true;
    to.constant = false;
    to.known = NULL;
    shape_strides(&to.dims, to.strides);
    lower_context lc = {.inputs = &from, .outputs = &to, .n_inputs = 1, .n_outputs = 1};
    start_lowering(k, &lc);
    assert_ok(ops_lower_copy(&lc));
    for (const step *e = lc.build.candidates->steps; e; e = e->next) {
        step_operands operands;
        if (step_is_skipped(e)) continue;
        step_operands_of(e, take_step(k, e), &operands);
        for (uint32_t i = 0; i < operands.n; i++) {
            if (operands.list[i].space == OPERAND_INPUT)
                check_input(k, id, &operands.at[i]);
            else
                target = operands.at[i];
        }
        checked_value_write_dense(&k->values[id], &k->memory, target);
        checked_value_check(&k->values[id], &k->memory);
        k->memory.step++;
        k->counts.n_steps++;
        k->counts.n_copies++;
    }
    return target;
}

static void make_dense(checker *k, value_id id)
{
    checked_value *v = &k->values[id];
    v->at = check_copy(k, id);
    shape_strides(&v->fact.dims, v->strides);
}

/* ---- nodes ----------------------------------------------------------------------------------- */

/* Infers the node's outputs. Returns the bit set of inputs whose needed elements are unknown. */
static uint32_t infer(checker *k, bool *out_all_known)
{
    value_fact facts[64] = {0};
    uint32_t needs;
    const node *n = k->node;
    assert_true(n->n_inputs + n->n_outputs <= 64);
    value_fact *outputs = facts + n->n_inputs;
    for (size_t i = 0; i < n->n_inputs; i++)
        if (n->inputs[i] != VALUE_NONE) facts[i] = k->values[n->inputs[i]].fact;
    assert_ok(ops_infer_node(n, facts, outputs, &needs));
    *out_all_known = true;
    for (size_t i = 0; i < n->n_outputs && !needs; i++) {
        if (n->outputs[i] == VALUE_NONE) continue;
        if (!outputs[i].known) *out_all_known = false;
        k->values[n->outputs[i]].fact = outputs[i];
        checked_value_number(&k->values[n->outputs[i]], &k->memory);
    }
    return needs;
}

/* Returns a tensor with, for each element of output `index`, the index of the element of input 0
 * that it equals, computed by the operator's host arithmetic on indices. */
static tensor *view_map(checker *k, size_t index)
{
    value_fact facts[64] = {0};
    const node *n = k->node;
    value_fact *outputs = facts + n->n_inputs;
    tensor *numbers;
    uint32_t needs;
    for (size_t i = 1; i < n->n_inputs; i++)
        if (n->inputs[i] != VALUE_NONE) facts[i] = k->values[n->inputs[i]].fact;
    assert_ok(tensor_create(CLG_INT64, &k->values[n->inputs[0]].fact.dims, &numbers));
    for (int64_t j = 0; j < numbers->n_elements; j++) tensor_set_int(numbers, j, j);
    facts[0] = (value_fact){.dtype = CLG_INT64, .dims = numbers->dims, .known = numbers};
    assert_ok(ops_infer_node(n, facts, outputs, &needs));
    tensor *map = (tensor *)outputs[index].known;
    assert_non_null(map);
    for (size_t i = 0; i < n->n_outputs; i++)
        if (i != index) tensor_free((tensor *)outputs[i].known);
    tensor_free(numbers);
    return map;
}

static void check_views(checker *k, const lower_context *lc)
{
    checked_value *from = &k->values[k->node->inputs[0]];
    if (from->weight && !from->has_memory)
        discover(k, k->node->inputs[0], &(plan_placement){PLACE_WEIGHT, k->node->inputs[0], 0});
    assert_true(from->has_memory);
    int64_t elem = (int64_t)dtype_size(from->fact.dtype);
    k->counts.n_views++;
    for (size_t i = 0; i < k->node->n_outputs; i++) {
        if (k->node->outputs[i] == VALUE_NONE) continue;
        checked_value *to = &k->values[k->node->outputs[i]];
        tensor *map = view_map(k, i);
        assert_int_equal(map->n_elements, to->n);
        to->at = placement_moved(from->at, lc->views[i].offset_elems * elem);
        to->has_memory = true;
        memcpy(to->strides, lc->views[i].strides, sizeof to->strides);
        for (int64_t j = 0; j < to->n; j++) {
            int64_t source = tensor_get_int(map, j);
            to->numbers[j] = from->numbers[source];
            assert_int_equal(lc->views[i].offset_elems + checked_value_offset(to, j),
                             checked_value_offset(from, source));
        }
        tensor_free(map);
    }
}

static const candidate *find_variant(const lower_context *lc, const char *variant)
{
    for (const candidate *impl = lc->build.candidates; impl; impl = impl->next)
        if (strcmp(impl->variant, variant) == 0) return impl;
    fail_msg("there is no candidate '%s'", variant);
    return NULL;
}

static bool packs_weight(const checker *k, const packing *p)
{
    const checked_value *v = &k->values[k->node->inputs[p->input]];
    return v->weight && checked_value_is_dense(v) && !k->c->is_init_plan;
}

/* ---- joined inputs --------------------------------------------------------------------------- */

/* Returns whether step `at` of the segment is `e`: whether it accesses the same input memory. */
static bool is_step(const checker *k, size_t at, const step *e)
{
    step_operands operands;
    if (at >= k->segment->n_steps || k->segment->steps[at].node != k->id) return false;
    step_operands_of(e, &k->segment->steps[at], &operands);
    for (uint32_t i = 0; i < operands.n; i++)
        if (operands.list[i].space == OPERAND_INPUT)
            return placement_equal(&operands.at[i],
                                   &k->values[k->node->inputs[operands.list[i].index]].at);
    return false;
}

/* Returns whether step `at`, which reads the memory of step `e`, is a later step of the candidate
 * that writes the output around input i; input i is then joined. */
static bool is_of_a_later_input(const checker *k, const lower_context *lc, size_t at, const step *e,
                                size_t i)
{
    const checked_value *in = &k->values[k->node->inputs[i]];
    const plan_placement output =
        placement_moved(in->at, -lc->joins[i] * (int64_t)dtype_size(in->fact.dtype));
    for (e = e->next; e; e = e->next) {
        step_operands operands;
        const size_t read = step_input_read(e);
        if (read >= k->node->n_inputs) continue;
        if (!placement_equal(&k->values[k->node->inputs[read]].at, &in->at)) continue;
        step_operands_of(e, &k->segment->steps[at], &operands);
        for (uint32_t o = 0; o < operands.n; o++)
            if (operands.list[o].space == OPERAND_OUTPUT &&
                placement_equal(&operands.at[o], &output))
                return true;
    }
    return false;
}

static bool may_join(const checked_value *v)
{
    return v->has_memory && checked_value_is_dense(v) && shadow_is_writable(v->at.kind);
}

/* Finds the joined inputs: those that were written directly into the output, so that the planner
 * omitted the steps that copy them. */
static void find_joined(checker *k, const lower_context *lc, const candidate *impl, bool *joined)
{
    size_t at = k->memory.step;
    for (const step *e = impl->steps; e; e = e->next) {
        size_t i = step_input_read(e);
        if (step_is_skipped(e)) continue;
        if (i < k->node->n_inputs && lc->joins[i] >= 0 &&
            may_join(&k->values[k->node->inputs[i]]) &&
            (!is_step(k, at, e) || is_of_a_later_input(k, lc, at, e, i)))
            joined[i] = true;
        else
            at++;
    }
    for (size_t i = 0; i < k->node->n_inputs; i++) {
        if (!joined[i]) continue;
        const checked_value *in = &k->values[k->node->inputs[i]];
        checked_value *out = &k->values[k->node->outputs[0]];
        memcpy(out->numbers + lc->joins[i], in->numbers, (size_t)in->n * sizeof *in->numbers);
        k->memory.is_untimed = true;
        checked_value_check(&k->values[k->node->inputs[i]], &k->memory);
        k->memory.is_untimed = false;
        k->counts.n_joined++;
    }
}

static void check_joined(checker *k, const lower_context *lc, const bool *joined)
{
    for (size_t i = 0; i < k->node->n_inputs; i++) {
        if (!joined[i]) continue;
        const checked_value *in = &k->values[k->node->inputs[i]];
        plan_placement p =
            placement_moved(in->at, -lc->joins[i] * (int64_t)dtype_size(in->fact.dtype));
        place_output(k, k->node->outputs[0], &p);
    }
}

static void check_candidate(checker *k, const lower_context *lc)
{
    bool joined[32] = {false};
    const size_t at = k->memory.step;
    const bool has_step = at < k->segment->n_steps && k->segment->steps[at].node == k->id;
    const candidate *impl =
        has_step ? find_variant(lc, k->segment->steps[at].variant) : lc->build.candidates;
    memset(k->has_scratch, 0, sizeof k->has_scratch);
    memset(k->has_packed, 0, sizeof k->has_packed);
    find_joined(k, lc, impl, joined);
    for (uint32_t i = 0; i < impl->n_packings; i++)
        for (const step *e = impl->packings[i].steps; e && !packs_weight(k, &impl->packings[i]);
             e = e->next)
            check_step(k, impl, e);
    for (const step *e = impl->steps; e; e = e->next)
        if (step_input_read(e) >= k->node->n_inputs || !joined[step_input_read(e)])
            check_step(k, impl, e);
    check_joined(k, lc, joined);
}

static bool all_empty(const checker *k)
{
    for (size_t i = 0; i < k->node->n_outputs; i++)
        if (k->node->outputs[i] != VALUE_NONE && k->values[k->node->outputs[i]].n > 0) return false;
    return true;
}

static void check_lowered(checker *k)
{
    lower_operand inputs[32] = {{0}}, outputs[32] = {{0}};
    const node *n = k->node;
    const op_row *row = n->op;
    if (all_empty(k)) return;
    for (size_t i = 0; i < n->n_outputs; i++)
        if (n->outputs[i] != VALUE_NONE) outputs[i] = operand_of(&k->values[n->outputs[i]]);
    for (size_t i = 0; i < n->n_inputs; i++) {
        if (n->inputs[i] == VALUE_NONE) continue;
        const lower_operand in = operand_of(&k->values[n->inputs[i]]);
        if (!lower_takes(row, i, &in, &outputs[0].dims)) make_dense(k, n->inputs[i]);
    }
    for (size_t i = 0; i < n->n_inputs; i++)
        if (n->inputs[i] != VALUE_NONE) inputs[i] = operand_of(&k->values[n->inputs[i]]);
    lower_context lc = {.node = n,
                        .row = row,
                        .inputs = inputs,
                        .outputs = outputs,
                        .n_inputs = n->n_inputs,
                        .n_outputs = n->n_outputs};
    start_lowering(k, &lc);
    assert_ok(ops_lower_node(&lc));
    uint8_t place = k->segment->node_places[k->id];
    assert_int_equal(place, lc.is_view ? CLG_PLACE_VIEW : CLG_PLACE_DEVICE);
    if (lc.is_view)
        check_views(k, &lc);
    else
        check_candidate(k, &lc);
}

/* ---- segments -------------------------------------------------------------------------------- */

static void check_requested(const checker *k, uint32_t needs)
{
    for (size_t i = 0; i < k->node->n_inputs && i < 32; i++) {
        bool requested = !(needs & (1u << i)) || k->values[k->node->inputs[i]].fact.known;
        for (size_t r = 0; r < k->segment->n_reads; r++)
            requested |= k->segment->reads[r].value == k->node->inputs[i];
        assert_true(requested);
    }
}

static void check_nodes(checker *k, node_id *next)
{
    const graph *g = k->c->graph;
    for (; *next < g->n_nodes; ++*next) {
        bool all_known;
        uint32_t needs;
        k->id = *next;
        k->node = &g->nodes[*next];
        if (k->c->node_is_init[*next] != k->c->is_init_plan) continue;
        needs = infer(k, &all_known);
        if (needs) {
            check_requested(k, needs);
            break;
        }
        if (all_known) {
            k->counts.n_known++;
            assert_int_equal(k->segment->node_places[*next], CLG_PLACE_SHAPE);
            continue;
        }
        check_lowered(k);
    }
    assert_int_equal(*next == g->n_nodes, k->segment->last);
    k->node = NULL;
}

/* Checks that the port's memory is dense and has the numbers of the value's elements. */
static void check_port(checker *k, const plan_port *port)
{
    const checked_value *v = &k->values[port->value];
    assert_int_equal(port->dtype, v->fact.dtype);
    assert_true(shape_equal(&port->dims, &v->fact.dims));
    if (port->place.kind == PLACE_NONE) {
        assert_non_null(port->known);
        assert_true(tensor_equal(port->known, v->fact.known));
        return;
    }
    if (shadow_is_writable(port->place.kind))
        checked_value_check_dense(&k->values[port->value], &k->memory, port->place);
}

static void settle_outputs(checker *k)
{
    const plan_segment *s = k->segment;
    while (k->memory.step < s->n_steps) {
        const plan_step *step = &s->steps[k->memory.step];
        uint32_t index = step->buffers[step->n_buffers - 1].index;
        assert_int_equal(step->buffers[step->n_buffers - 1].kind, PLACE_OUTPUT);
        assert_true(index < k->c->n_outputs);
        check_copy(k, k->c->outputs[index]);
    }
    assert_int_equal(s->n_outputs, k->c->n_outputs);
    for (size_t i = 0; i < s->n_outputs; i++) {
        assert_int_equal(s->outputs[i].value, k->c->outputs[i]);
        if (s->outputs[i].place.kind != PLACE_NONE) {
            assert_int_equal(s->outputs[i].place.kind, PLACE_OUTPUT);
            assert_int_equal(s->outputs[i].place.index, i);
        }
        check_port(k, &s->outputs[i]);
    }
}

static void settle_reads(checker *k)
{
    for (size_t i = 0; i < k->segment->n_reads; i++) {
        value_id v = k->segment->reads[i].value;
        if (!checked_value_is_dense(&k->values[v])) make_dense(k, v);
        check_port(k, &k->segment->reads[i]);
    }
    assert_int_equal(k->memory.step, k->segment->n_steps);
}

static void arrive(checker *k, const plan_segment *parent)
{
    for (size_t i = 0; i < parent->n_reads; i++) {
        checked_value *v = &k->values[parent->reads[i].value];
        tensor_free((tensor *)v->fact.known);
        v->fact.known = tensor_retain(k->segment->arrived[i]);
    }
}

/* ---- whole plans ----------------------------------------------------------------------------- */

static void start(checker *k, const plan_segment *last)
{
    const plan_context *context = k->c;
    k->values = zeros(context->graph->n_values, sizeof *k->values);
    for (value_id v = 0; v < context->graph->n_values; v++) {
        if (context->weights[v].dtype == CLG_DTYPE_NONE) continue;
        k->values[v].fact = context->weights[v];
        k->values[v].fact.known = tensor_retain((tensor *)context->weights[v].known);
        k->values[v].weight = true;
        checked_value_number(&k->values[v], &k->memory);
    }
    for (uint32_t i = 0; i < k->plan->n_inputs; i++) {
        checked_value *v = &k->values[context->graph->inputs[i]];
        v->fact = k->plan->inputs[i];
        v->fact.known = tensor_retain((tensor *)v->fact.known);
        checked_value_number(&k->values[context->graph->inputs[i]], &k->memory);
        v->at = (plan_placement){PLACE_INPUT, i, 0};
        v->has_memory = true;
        shadow_add(&k->memory, PLACE_INPUT, i, (size_t)v->n * dtype_size(v->fact.dtype));
        checked_value_write(&k->values[context->graph->inputs[i]], &k->memory);
    }
    for (uint32_t i = 0; i < last->n_slabs; i++)
        shadow_add(&k->memory, PLACE_SLAB, i, last->slab_bytes[i]);
    for (uint32_t i = 0; i < context->n_outputs; i++)
        if (last->output_bytes[i] != PLAN_NO_OUTPUT)
            shadow_add(&k->memory, PLACE_OUTPUT, i, last->output_bytes[i]);
}

static void finish(checker *k)
{
    for (value_id v = 0; v < k->c->graph->n_values; v++) {
        tensor_free((tensor *)k->values[v].fact.known);
        free(k->values[v].numbers);
    }
    shadow_free(&k->memory);
    free(k->values);
    arena_deinit(&k->lowered);
}

void plan_check(const plan_context *context, const plan *p, const plan_segment *const *path,
                size_t n_path, plan_check_counts *out_counts)
{
    checker k = {.c = context, .plan = p, .segment = path[0], .memory.segment = path[0]};
    node_id next = 0;
    assert_ptr_equal(path[0], p->root);
    assert_true(path[n_path - 1]->last);
    start(&k, path[n_path - 1]);
    for (size_t i = 0; i < n_path; i++) {
        k.segment = path[i];
        shadow_start_segment(&k.memory, path[i]);
        assert_int_equal(k.segment->depth, i);
        if (i > 0) {
            assert_ptr_equal(k.segment->parent, path[i - 1]);
            arrive(&k, path[i - 1]);
        }
        check_nodes(&k, &next);
        if (k.segment->last)
            settle_outputs(&k);
        else
            settle_reads(&k);
    }
    finish(&k);
    k.counts.n_bytes_read = k.memory.n_slab_bytes_read;
    if (out_counts) *out_counts = k.counts;
}
