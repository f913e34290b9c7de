/* SPDX-License-Identifier: Apache-2.0
 *
 * Creates plans: visits the graph's nodes in order, with concrete input shapes. For each node,
 * shapes are inferred; if the host thereby computed the outputs (shape arithmetic), the node is
 * done, else it is lowered to kernels and its steps are appended. Where a shape depends on elements
 * that only the device has, the segment ends, and the host reads them in the run. See decision 7.
 */
#include "base/cancel.h"
#include "plan/aggregate.h"
#include "plan/state.h"

#include <string.h>

/* Limits of the search for inputs on whose elements shapes depend; they bound the time of
 * planning. */
#define TRACE_MAX_VISITS 4096
#define TRACE_MAX_ELEMENTS 64 /* elements of an input that is likely a shape */

/* Why the visit of the nodes stopped: the graph ended, the segment ends (mostly since the host must
 * read values of the device), or elements of graph inputs are needed. */
typedef enum walk_end { WALK_DONE, WALK_READS, WALK_NEEDS_INPUTS } walk_end;

/* One visit of the nodes of a segment. */
typedef struct walk {
    plan_state *state;
    bool *needed_inputs; /* by input; NULL for child segments, which cannot request inputs */
    value_id reads[OP_MAX_INTS];
    size_t n_reads;
} walk;

/* ---- contents that planning needs ------------------------------------------------------------ */

/* Returns whether planning should request the elements of a graph input: only of small inputs,
 * which must be integers or bools (probably shapes), or be consumed directly by the node in
 * question, such as scales. Requesting data would create a plan for each run; instead the device
 * computes with it and the host reads the result. */
static bool may_decide(const plan_value *input, bool direct)
{
    int64_t n;
    bool is_number = dtype_is_integer(input->fact.dtype) || input->fact.dtype == CLG_BOOL;
    return (is_number || direct) && shape_n_elements(&input->fact.dims, &n) == CLG_OK &&
           n <= TRACE_MAX_ELEMENTS;
}

/* Returns whether the host could compute v if the graph inputs that it depends on were known; marks
 * those inputs as needed. direct: v is an input of the node in question. */
static bool trace_inputs(walk *w, value_id v, bool direct, size_t *visits)
{
    const graph *g = w->state->context->graph;
    const plan_value *value = &w->state->values[v];
    if (++*visits > TRACE_MAX_VISITS) return false;
    if (value->fact.known) return true;
    if (v >= g->n_values) return false; /* inside a branch or loop */
    if (value->fact.kind != CLG_VALUE_TENSOR) return false;
    if (g->values[v].is_input) {
        for (size_t i = 0; i < g->n_inputs; i++)
            if (g->inputs[i] == v) w->needed_inputs[i] = true;
        return may_decide(value, direct);
    }
    if (value->weight || g->values[v].producer == NODE_NONE) return false;
    const node *n = &g->nodes[g->values[v].producer];
    const op_row *row = n->op;
    if (!row->eval) return false;
    if (row->flags & OP_EVAL_ONLY) return true;
    for (size_t i = 0; i < n->n_inputs; i++)
        if (n->inputs[i] != VALUE_NONE && !trace_inputs(w, n->inputs[i], false, visits))
            return false;
    return true;
}

/* Handles node n, which cannot be inferred without the elements of its inputs in `needs` (bits):
 * requests graph inputs, or ends the segment to read values. */
static clg_status settle_needs(walk *w, const node *n, uint32_t needs, walk_end *out_end)
{
    size_t n_inputs = w->state->context->graph->n_inputs;
    bool from_inputs = w->needed_inputs != NULL, any = false;
    w->n_reads = 0;
    for (size_t i = 0; i < n->n_inputs && i < 32; i++) {
        value_id v = n->inputs[i];
        if (!(needs & (1u << i)) || v == VALUE_NONE || w->state->values[v].fact.known) continue;
        size_t visits = 0;
        if (from_inputs && !trace_inputs(w, v, true, &visits)) from_inputs = false;
        if (w->n_reads < OP_MAX_INTS) w->reads[w->n_reads++] = v;
    }
    for (size_t i = 0; from_inputs && i < n_inputs; i++) any |= w->needed_inputs[i];
    for (size_t i = 0; w->needed_inputs && !from_inputs && i < n_inputs; i++)
        w->needed_inputs[i] = false;
    *out_end = any ? WALK_NEEDS_INPUTS : WALK_READS;
    if (any || w->n_reads) return CLG_OK;
    char text[NODE_TEXT_BYTES];
    return error_set(CLG_ERROR_INTERNAL, "%s: its shapes need contents that it was given",
                     node_text(n, text));
}

/* ---- nodes ----------------------------------------------------------------------------------- */

/* Returns whether an input or output of a node is of strings, which have no device memory: the host
 * computes it. */
static bool has_strings(const plan_state *s, const node *n)
{
    for (size_t i = 0; i < n->n_inputs + n->n_outputs; i++) {
        const value_id v = i < n->n_inputs ? n->inputs[i] : n->outputs[i - n->n_inputs];
        if (v != VALUE_NONE && s->values[v].fact.dtype == CLG_STRING) return true;
    }
    return false;
}

/* Checks the option `strict`: returns an error for an operator that the library computes on the
 * host (OP_HOST), unless its inputs or outputs are strings. */
static clg_status check_strict(const plan_state *s, const node *n)
{
    char text[NODE_TEXT_BYTES];
    const op_row *row = n->op;
    if (!s->context->strict || !(row->flags & OP_HOST) || has_strings(s, n)) return CLG_OK;
    return error_set(CLG_ERROR_UNSUPPORTED_OPERATOR,
                     "%s is computed on the host, which the option `strict` does not allow",
                     node_text(n, text));
}

/* Records where the current node of the model's graph runs; does nothing inside branches and loops.
 */
static void note_place(plan_state *s, clg_place place)
{
    if (s->n_scopes == 1) s->segment->node_places[s->scopes[0].next] = (uint8_t)place;
}

/* Returns whether the node forwards a sequence or optional unchanged. */
static bool is_of_any_kind(const plan_state *s, const node *n)
{
    const op_row *row = n->op;
    return (row->flags & OP_ANY_KIND) && n->inputs[0] != VALUE_NONE &&
           n->outputs[0] != VALUE_NONE && s->values[n->inputs[0]].fact.kind != CLG_VALUE_TENSOR;
}

static clg_status plan_node(walk *w, const node *n, walk_end *out_end)
{
    plan_state *s = w->state;
    uint32_t needs = 0;
    uint8_t place;
    bool all_known = false;
    *out_end = WALK_DONE;
    if (is_of_any_kind(s, n)) {
        note_place(s, CLG_PLACE_HOST);
        s->has_control = true;
        return control_copy_value(s, &s->values[n->inputs[0]], n->outputs[0]);
    }
    CLG_TRY(staged_begin(s, n, &n));
    CLG_TRY(plan_infer(s, n, &needs, &all_known));
    if (needs) return settle_needs(w, n, needs, out_end);
    const op_row *row = n->op;
    CLG_TRY(check_strict(s, n));
    if (all_known) {
        note_place(s,
                   (row->flags & OP_HOST) || has_strings(s, n) ? CLG_PLACE_HOST : CLG_PLACE_SHAPE);
        staged_end(s);
        return CLG_OK;
    }
    if (!row->lower) {
        char text[NODE_TEXT_BYTES];
        return error_set(CLG_ERROR_UNSUPPORTED_OPERATOR,
                         "%s: it exists in shape arithmetic only, and its inputs are not known",
                         node_text(n, text));
    }
    CLG_TRY(emit_node(s, n, &place));
    note_place(s, place);
    staged_end(s);
    return CLG_OK;
}

/* ---- the walk -------------------------------------------------------------------------------- */

/* Plans a control-flow operator, or one on sequences, optionals or maps. *out_entered: planning
 * continues with the nodes of its body. */
static clg_status plan_control(walk *w, const node *n, walk_end *out_end, bool *out_entered)
{
    plan_state *s = w->state;
    const op_row *row = n->op;
    const op_control *control = row->param;
    uint32_t needs = 0;
    *out_end = WALK_DONE;
    *out_entered = false;
    s->has_control = true;
    note_place(s, CLG_PLACE_HOST);
    if (control->kind <= CONTROL_LAST_WITH_BODY)
        CLG_TRY(control_enter(s, n, &needs, out_entered));
    else if (control->kind >= CONTROL_OPTIONAL && control->kind <= CONTROL_OPTIONAL_GET)
        CLG_TRY(optional_node(s, n, control->kind));
    else if (control->kind >= CONTROL_ZIP_MAP)
        CLG_TRY(maps_node(s, n, control->kind));
    else
        CLG_TRY(sequence_node(s, n, control->kind, &needs));
    return needs ? settle_needs(w, n, needs, out_end) : CLG_OK;
}

/* Leaves a branch or body at its end, which may end the segment. */
static clg_status leave_scope(walk *w, walk_end *out_end)
{
    value_id read;
    bool ends;
    *out_end = WALK_DONE;
    CLG_TRY(control_leave(w->state, &read, &ends));
    if (!ends) return CLG_OK;
    w->reads[0] = read;
    w->n_reads = read == VALUE_NONE ? 0 : 1;
    *out_end = WALK_READS;
    return CLG_OK;
}

static clg_status walk_nodes(walk *w, walk_end *out_end)
{
    plan_state *s = w->state;
    *out_end = WALK_DONE;
    while (*out_end == WALK_DONE) {
        plan_scope *scope = state_scope(s);
        CLG_TRY(cancel_check("planning"));
        if (scope->next == scope->n_nodes) {
            if (s->n_scopes == 1) return CLG_OK;
            CLG_TRY(leave_scope(w, out_end));
            continue;
        }
        const node *n = &scope->nodes[scope->next];
        const op_row *row = n->op;
        bool entered = false;
        if (s->n_scopes == 1 && s->context->node_is_init[scope->next] != s->context->is_init_plan) {
            scope->next++;
            continue;
        }
        if (row->flags & OP_CONTROL)
            CLG_TRY(plan_control(w, n, out_end, &entered));
        else
            CLG_TRY(plan_node(w, n, out_end));
        if (*out_end == WALK_DONE && !entered) state_scope(s)->next++;
    }
    return CLG_OK;
}

/* Plans the nodes to the end of a segment and closes it. Takes ownership of the state: frees it,
 * and keeps a copy in the segment if children continue from it. */
static clg_status run_walk(plan_state *s, plan_segment *segment, bool *needed_inputs,
                           walk_end *out_end)
{
    walk w = {.state = s};
    w.needed_inputs = needed_inputs;
    clg_status status = walk_nodes(&w, out_end);
    if (status == CLG_OK && *out_end != WALK_NEEDS_INPUTS)
        status = finish_segment(s, w.reads, *out_end == WALK_READS ? w.n_reads : 0);
    if (status == CLG_OK && *out_end == WALK_READS) {
        plan_state *kept = NULL;
        status = state_copy(s, &kept);
        segment->state = kept;
    }
    segment->size_bytes = sizeof *segment + segment->memory.size_bytes +
                          state_size_bytes(segment->state) + memo_block_size_bytes(s->block);
    for (size_t i = 0; i < segment->n_held; i++)
        segment->size_bytes += sizeof(tensor) + segment->held[i]->size_bytes;
    state_free(s);
    return status;
}

/* ---- plans ----------------------------------------------------------------------------------- */

static clg_status plan_alloc(const plan_context *context, const value_fact *inputs, plan **out_plan)
{
    plan *p = memory_zalloc(1, sizeof *p);
    *out_plan = p;
    if (!p) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    refcount_init(&p->refs);
    size_t n_inputs = context->is_init_plan ? 0 : context->graph->n_inputs;
    p->inputs = memory_zalloc(n_inputs + 1, sizeof *p->inputs);
    if (!p->inputs) {
        memory_free(p);
        *out_plan = NULL;
        return CLG_ERROR_OUT_OF_HOST_MEMORY;
    }
    p->n_inputs = n_inputs;
    for (size_t i = 0; i < n_inputs; i++) {
        clg_status status = aggregate_copy(&p->memory, &inputs[i], &p->inputs[i]);
        if (status != CLG_OK) {
            plan_free(p);
            *out_plan = NULL;
            return status;
        }
    }
    return CLG_OK;
}

static clg_status set_aggregate(plan_state *s, plan_value *v, const value_fact *f, size_t input)
{
    size_t size_bytes;
    uint32_t root;
    CLG_TRY(aggregate_bytes(f, &size_bytes));
    CLG_TRY(state_check_fit(s, s->context->graph->inputs[input], size_bytes));
    CLG_TRY(state_add_root(s, PLACE_INPUT, (uint32_t)input, size_bytes, &root));
    return aggregate_input(s, f, root, v);
}

static clg_status set_inputs(plan_state *s, const plan *p)
{
    for (size_t i = 0; i < p->n_inputs; i++) {
        plan_value *v = &s->values[s->context->graph->inputs[i]];
        size_t size_bytes;
        if (p->inputs[i].kind != CLG_VALUE_TENSOR) {
            CLG_TRY(set_aggregate(s, v, &p->inputs[i], i));
            continue;
        }
        v->fact = p->inputs[i];
        shape_strides(&v->fact.dims, v->strides);
        if (v->fact.dtype == CLG_STRING) continue; /* strings stay on the host */
        CLG_TRY(state_value_bytes(v, &size_bytes));
        CLG_TRY(state_check_fit(s, s->context->graph->inputs[i], size_bytes));
        CLG_TRY(state_add_root(s, PLACE_INPUT, (uint32_t)i, size_bytes, &v->root));
    }
    return CLG_OK;
}

/* Copies the requests for outputs in the memory of inputs. */
static clg_status set_in_place(plan_state *s, plan *p, const uint32_t *in_place)
{
    if (!in_place) return CLG_OK;
    uint32_t *copy = arena_alloc(&p->root->memory, p->n_inputs + 1, sizeof *copy);
    if (!copy) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    if (p->n_inputs) memcpy(copy, in_place, p->n_inputs * sizeof *copy);
    p->in_place = s->in_place = copy;
    return CLG_OK;
}

clg_status plan_create(const plan_context *context, const value_fact *inputs,
                       const uint32_t *in_place, bool *out_needed_inputs, plan **out_plan)
{
    plan *p;
    plan_state *s = NULL;
    walk_end end = WALK_DONE;
    *out_plan = NULL;
    for (size_t i = 0; i < context->graph->n_inputs && out_needed_inputs; i++)
        out_needed_inputs[i] = false;
    CLG_TRY(plan_alloc(context, inputs, &p));
    clg_status status = state_create(context, &s);
    if (status == CLG_OK) status = segment_create(NULL, context->graph->n_nodes, &p->root);
    if (status == CLG_OK) {
        s->segment = p->root;
        status = set_in_place(s, p, in_place);
    }
    if (status == CLG_OK) {
        status = set_inputs(s, p);
    }
    if (status == CLG_OK) {
        status = run_walk(s, p->root, out_needed_inputs, &end);
    } else {
        state_free(s);
    }
    if (status != CLG_OK || end == WALK_NEEDS_INPUTS) {
        plan_free(p);
        return status;
    }
    *out_plan = p;
    return CLG_OK;
}

/* ---- children -------------------------------------------------------------------------------- */

static clg_status set_arrived(plan_state *s, plan_segment *child, const plan_segment *segment,
                              tensor *const *contents)
{
    child->arrived = arena_alloc(&child->memory, segment->n_reads + 1, sizeof *child->arrived);
    if (!child->arrived) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; i < segment->n_reads; i++) {
        CLG_TRY(state_hold(s, tensor_retain(contents[i])));
        child->arrived[i] = contents[i];
        s->values[segment->reads[i].value].fact.known = contents[i];
    }
    child->n_arrived = segment->n_reads;
    return CLG_OK;
}

/* Records the number of iterations of a loop for which the segment after it is planned. */
static clg_status set_count(plan_state *s, plan_segment *child, tensor *const *count)
{
    child->arrived = arena_alloc(&child->memory, 1, sizeof *child->arrived);
    if (!child->arrived) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    CLG_TRY(state_hold(s, tensor_retain(*count)));
    child->arrived[0] = *count;
    child->n_arrived = 1;
    return CLG_OK;
}

/* What a child segment is planned for: tensors of its parent's reads, an iteration of a loop with
 * these carried values, or what follows a loop of `count` iterations. */
typedef struct child_key {
    tensor *const *contents;
    const plan_carried *carried;
    int64_t count;
} child_key;

static clg_status start_child(plan_state *s, plan_segment *child, const plan_segment *segment,
                              const child_key *key)
{
    s->segment = child;
    if (key->carried) return control_iterate(s, key->carried);
    if (!segment->next.base) return set_arrived(s, child, segment, key->contents);
    CLG_TRY(set_count(s, child, key->contents));
    return control_end_loop(s, key->count);
}

/* Plans a child segment. Takes ownership of the state. */
static clg_status walk_child(plan_state *s, plan_segment *child, const plan_segment *segment,
                             const child_key *key)
{
    walk_end end;
    clg_status status = start_child(s, child, segment, key);
    if (status == CLG_OK) return run_walk(s, child, NULL, &end);
    state_free(s);
    return status;
}

static clg_status make_child(const plan_context *context, plan_segment *segment,
                             const child_key *key, plan_segment **out_child)
{
    plan_state *s;
    plan_segment *child;
    CLG_TRY(segment_create(segment, context->graph->n_nodes, &child));
    clg_status status = state_copy(segment->state, &s);
    if (status == CLG_OK) status = walk_child(s, child, segment, key);
    if (status != CLG_OK) {
        plan_segment_free(child);
        return status;
    }
    segment_add_child(segment, child);
    *out_child = child;
    return CLG_OK;
}

clg_status plan_continue(const plan_context *context, plan_segment *segment,
                         tensor *const *contents, plan_segment **out_child)
{
    *out_child = segment_find_child(segment, contents);
    if (*out_child) return CLG_OK;
    return make_child(context, segment, &(child_key){.contents = contents}, out_child);
}

/* Finds or plans what follows a loop of `count` iterations. */
static clg_status end_loop(const plan_context *context, plan_segment *segment, int64_t count,
                           plan_segment **out_child)
{
    const shape scalar = shape_scalar();
    tensor *key;
    CLG_TRY(tensor_create(CLG_INT64, &scalar, &key));
    tensor_set_int(key, 0, segment->next.wants_count ? count : 0);
    clg_status status = CLG_OK;
    *out_child = segment_find_child(segment, &key);
    if (!*out_child)
        status =
            make_child(context, segment, &(child_key){.contents = &key, .count = count}, out_child);
    tensor_free(key);
    return status;
}

clg_status plan_next_iteration(const plan_context *context, plan_segment *segment, bool again,
                               int64_t count, plan_segment **out_child)
{
    plan_segment *base = segment->next.base;
    const plan_carried *carried = &segment->next.carried;
    *out_child = NULL;
    if (!again) return end_loop(context, segment, count, out_child);
    *out_child = segment_find_iteration(base, carried);
    if (*out_child) return CLG_OK;
    return make_child(context, base, &(child_key){.carried = carried}, out_child);
}

size_t plan_size_bytes(const plan *p)
{
    return p->memory.size_bytes + p->root->size_bytes + p->root->children_bytes;
}

plan *plan_retain(plan *p)
{
    refcount_retain(&p->refs);
    return p;
}

void plan_free(plan *p)
{
    if (!p || !refcount_release(&p->refs)) return;
    if (p->root) segment_detach(p->root);
    plan_segment_free(p->root);
    for (size_t i = 0; i < p->n_inputs; i++) aggregate_release(&p->inputs[i]);
    memory_free(p->inputs);
    arena_deinit(&p->memory);
    memory_free(p);
}
