/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements the planner's working state (state.h): creates, copies and frees it; adds values,
 * roots (blocks of memory) and pending steps; gives values memory; looks up scopes.
 */
#include "plan/state.h"

#include "base/checked.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define LITERAL_ALIGN 64     /* bytes: a cache line; no dtype needs more */
#define NO_OUTPUT UINT32_MAX /* the value is not an output of the plan */

/* Sets output_of: the output index of each value of the graph (the lowest, if it is several
 * outputs), else NO_OUTPUT. */
static void number_outputs(plan_state *s)
{
    const plan_context *context = s->context;
    for (size_t v = 0; v < context->graph->n_values; v++) s->output_of[v] = NO_OUTPUT;
    for (size_t i = context->n_outputs; i-- > 0;) s->output_of[context->outputs[i]] = (uint32_t)i;
}

clg_status state_create(const plan_context *context, plan_state **out_state)
{
    *out_state = NULL;
    plan_state *s = memory_zalloc(1, sizeof *s);
    if (!s) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    s->context = context;
    s->n_values = s->values_capacity = context->graph->n_values;
    s->values = memory_zalloc(s->n_values ? s->n_values : 1, sizeof *s->values);
    s->output_of = memory_alloc((s->n_values + 1) * sizeof *s->output_of);
    s->scopes = memory_zalloc(PLAN_MAX_SCOPES, sizeof *s->scopes);
    if (!s->values || !s->output_of || !s->scopes) {
        state_free(s);
        return CLG_ERROR_OUT_OF_HOST_MEMORY;
    }
    number_outputs(s);
    s->scopes[0] = (plan_scope){.graph = context->graph,
                                .nodes = context->graph->nodes,
                                .n_nodes = context->graph->n_nodes};
    s->n_scopes = 1;
    for (size_t v = 0; v < s->n_values; v++) {
        s->values[v].root = ROOT_NONE;
        s->values[v].dense = true;
        if (context->weights[v].dtype == CLG_DTYPE_NONE) continue;
        s->values[v].fact = context->weights[v];
        s->values[v].weight = true;
        shape_strides(&context->weights[v].dims, s->values[v].strides);
    }
    *out_state = s;
    return CLG_OK;
}

static void *copy_array(const void *items, size_t n, size_t item_bytes)
{
    void *copy = memory_alloc(n * item_bytes);
    if (copy && n) memcpy(copy, items, n * item_bytes);
    return copy;
}

clg_status state_copy(const plan_state *s, plan_state **out_copy)
{
    *out_copy = NULL;
    plan_state *copy = memory_zalloc(1, sizeof *copy);
    if (!copy) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    copy->context = s->context;
    copy->n_values = copy->values_capacity = s->n_values;
    copy->n_scopes = s->n_scopes;
    copy->n_roots = copy->roots_capacity = s->n_roots;
    copy->n_slabs = s->n_slabs;
    copy->staged = s->staged;
    copy->staged_base = s->staged_base;
    copy->n_iterations = s->n_iterations;
    copy->n_loops = s->n_loops;
    copy->n_memories = s->n_memories;
    copy->in_place = s->in_place;
    copy->has_control = s->has_control;
    copy->values = copy_array(s->values, s->n_values, sizeof *s->values);
    copy->output_of = copy_array(s->output_of, s->context->graph->n_values, sizeof *s->output_of);
    copy->scopes = copy_array(s->scopes, PLAN_MAX_SCOPES, sizeof *s->scopes);
    copy->roots = copy_array(s->roots, s->n_roots, sizeof *s->roots);
    copy->slab_bytes = copy_array(s->slab_bytes, s->n_slabs, sizeof *s->slab_bytes);
    if (!copy->values || !copy->output_of || !copy->scopes || !copy->roots || !copy->slab_bytes) {
        state_free(copy);
        return CLG_ERROR_OUT_OF_HOST_MEMORY;
    }
    for (size_t r = 0; r < copy->n_roots; r++) {
        plan_root *root = &copy->roots[r];
        root->first_step = root->last_step = 0;
        root->used = false;
        if (root->kind == PLACE_SLAB && !root->live)
            root->kind = PLACE_NONE; /* dead: its memory may be reused */
        root->placed = root->kind == PLACE_SLAB;
    }
    *out_copy = copy;
    return CLG_OK;
}

void state_free(plan_state *s)
{
    if (!s) return;
    for (size_t i = 0; i < s->n_held; i++) tensor_free(s->held[i]);
    memory_free(s->held);
    memory_free(s->values);
    memory_free(s->output_of);
    memory_free(s->scopes);
    memory_free(s->roots);
    memory_free(s->slab_bytes);
    memory_free(s->pending);
    memory_free(s->literals);
    arena_deinit(&s->lowering);
    memory_free(s);
}

size_t state_size_bytes(const plan_state *s)
{
    if (!s) return 0;
    return sizeof *s + s->values_capacity * sizeof *s->values +
           s->context->graph->n_values * sizeof *s->output_of +
           s->roots_capacity * sizeof *s->roots + PLAN_MAX_SCOPES * sizeof *s->scopes;
}

clg_status state_add_root(plan_state *s, place_kind kind, uint32_t index, size_t size_bytes,
                          uint32_t *out_root)
{
    *out_root = ROOT_NONE;
    CLG_TRY(MEMORY_RESERVE(s->roots, s->roots_capacity, s->n_roots + 1));
    s->roots[s->n_roots] = (plan_root){.kind = kind,
                                       .index = index,
                                       .size_bytes = size_bytes,
                                       .home = ROOT_NONE,
                                       .last_read = NODE_NONE,
                                       .first_step = (uint32_t)s->n_pending,
                                       .last_step = (uint32_t)s->n_pending};
    *out_root = (uint32_t)s->n_roots++;
    return CLG_OK;
}

uint32_t state_home(const plan_state *s, uint32_t root, int64_t *out_offset_bytes)
{
    int64_t offset = 0;
    for (; s->roots[root].home != ROOT_NONE; root = s->roots[root].home)
        offset += s->roots[root].home_offset_bytes;
    if (out_offset_bytes) *out_offset_bytes = offset;
    return root;
}

bool state_join(plan_state *s, value_id v, uint32_t home, int64_t offset_bytes)
{
    const plan_value *value = &s->values[v];
    size_t size_bytes;
    if (value->root == ROOT_NONE || !value->dense || value->offset_elems != 0) return false;
    plan_root *root = &s->roots[value->root];
    if (root->kind != PLACE_SLAB || root->placed || !root->used || root->home != ROOT_NONE)
        return false;
    if (value->root == home || state_value_bytes(value, &size_bytes) != CLG_OK ||
        size_bytes != root->size_bytes || size_bytes == 0)
        return false;
    root->home = home;
    root->home_offset_bytes = offset_bytes;
    for (; home != ROOT_NONE; home = s->roots[home].home) /* readers of the part read it there */
        if (root->last_read > s->roots[home].last_read) s->roots[home].last_read = root->last_read;
    return true;
}

clg_status state_value_bytes(const plan_value *v, size_t *out_bytes)
{
    *out_bytes = 0;
    int64_t n;
    CLG_TRY(shape_n_elements(&v->fact.dims, &n));
    if (n == DIM_UNKNOWN || !dtype_bytes(v->fact.dtype, n, out_bytes))
        return error_set(CLG_ERROR_SHAPE,
                         "a tensor of %lld elements of %s is larger than memory can be",
                         (long long)n, dtype_name(v->fact.dtype));
    return CLG_OK;
}

clg_status state_check_fit(const plan_state *s, value_id v, size_t size_bytes)
{
    char name[VALUE_TEXT_BYTES];
    uint64_t largest = s->context->caps->max_alloc_bytes;
    if (largest == 0 || size_bytes <= largest) return CLG_OK;
    return error_set(CLG_ERROR_OUT_OF_DEVICE_MEMORY,
                     "a tensor of %zu bytes does not fit the device's largest buffer of %llu "
                     "bytes: %s",
                     size_bytes, (unsigned long long)largest, state_value_text(s, v, name));
}

/* Returns the last node of the main graph that reads v; NODE_NONE if it is not known, or if v is
 * used to the end. */
static node_id last_reader(const plan_state *s, value_id v)
{
    const node_id *readers = s->context->last_readers;
    return readers && s->n_scopes == 1 && v < s->context->graph->n_values ? readers[v] : NODE_NONE;
}

void state_share_root(plan_state *s, value_id v)
{
    uint32_t r = s->values[v].root;
    const node_id last = last_reader(s, v);
    for (; r != ROOT_NONE; r = s->roots[r].home) /* NODE_NONE is the largest */
        if (last > s->roots[r].last_read) s->roots[r].last_read = last;
}

static uint32_t output_index(const plan_state *s, value_id v)
{
    return v < s->context->graph->n_values ? s->output_of[v] : NO_OUTPUT;
}

clg_status state_place_value(plan_state *s, value_id v)
{
    plan_value *value = &s->values[v];
    size_t size_bytes;
    CLG_TRY(state_value_bytes(value, &size_bytes));
    CLG_TRY(state_check_fit(s, v, size_bytes));
    const uint32_t output = output_index(s, v);
    value->offset_elems = 0;
    value->dense = true;
    shape_strides(&value->fact.dims, value->strides);
    if (output != NO_OUTPUT)
        return state_add_root(s, PLACE_OUTPUT, output, size_bytes, &value->root);
    CLG_TRY(state_add_root(s, PLACE_SLAB, 0, size_bytes, &value->root));
    s->roots[value->root].last_read = last_reader(s, v);
    return CLG_OK;
}

/* Copies t to the segment's literals and adds a root for it. */
static clg_status add_literal(plan_state *s, const tensor *t, uint32_t *out_root)
{
    size_t start = (s->literal_bytes + LITERAL_ALIGN - 1) / LITERAL_ALIGN * LITERAL_ALIGN;
    CLG_TRY(
        MEMORY_RESERVE(s->literals, s->literals_capacity, start + t->size_bytes + LITERAL_ALIGN));
    memset(s->literals + s->literal_bytes, 0, start - s->literal_bytes);
    if (t->size_bytes) memcpy(s->literals + start, t->data, t->size_bytes);
    s->literal_bytes = start + t->size_bytes;
    CLG_TRY(state_add_root(s, PLACE_LITERAL, s->segment->depth, t->size_bytes, out_root));
    s->roots[*out_root].offset_bytes = (int64_t)start;
    return CLG_OK;
}

clg_status state_materialise(plan_state *s, value_id v)
{
    plan_value *value = &s->values[v];
    if (value->root != ROOT_NONE) return CLG_OK;
    value->offset_elems = 0;
    value->dense = true;
    shape_strides(&value->fact.dims, value->strides);
    if (value->weight) {
        size_t size_bytes;
        CLG_TRY(state_value_bytes(value, &size_bytes));
        return state_add_root(s, PLACE_WEIGHT, v, size_bytes, &value->root);
    }
    if (value->fact.known) {
        if (value->fact.dtype == CLG_STRING)
            return error_set(CLG_ERROR_UNSUPPORTED_DTYPE, "strings cannot be placed on a device");
        return add_literal(s, value->fact.known, &value->root);
    }
    char name[VALUE_TEXT_BYTES];
    return error_set(CLG_ERROR_INTERNAL, "value %s has neither memory nor content",
                     state_value_text(s, v, name));
}

clg_status state_hold(plan_state *s, tensor *t)
{
    clg_status status = MEMORY_RESERVE(s->held, s->held_capacity, s->n_held + 1);
    if (status != CLG_OK) {
        tensor_free(t);
        return status;
    }
    s->held[s->n_held++] = t;
    return CLG_OK;
}

/* Returns LIMIT if another step would be more than the plan may have. n: as in emit_copy. */
static clg_status check_steps(const plan_state *s, const node *n)
{
    char text[NODE_TEXT_BYTES];
    const uint64_t max = s->context->max_steps;
    if (max == 0 || s->segment->n_steps_before + s->n_pending < max) return CLG_OK;
    (void)error_set(CLG_ERROR_LIMIT,
                    "%s: the plan has more steps than the %" PRIu64 " of max_steps",
                    n ? node_text(n, text) : "copying a tensor", max);
    error_hint("clg_limits.max_steps sets another limit");
    return CLG_ERROR_LIMIT;
}

clg_status state_add_step(plan_state *s, const step *what, const root_ref *buffers,
                          uint32_t n_buffers, const node *n, const plan_choice *choice,
                          bool is_kept)
{
    step_texts *texts = s->context->texts;
    CLG_TRY(check_steps(s, n));
    CLG_TRY(MEMORY_RESERVE(s->pending, s->pending_capacity, s->n_pending + 1));
    root_ref *copy = arena_alloc(&s->segment->memory, n_buffers ? n_buffers : 1, sizeof *copy);
    if (!is_kept) what = step_clone(what, &s->segment->memory, texts);
    const char *variant =
        is_kept ? choice->impl->variant : step_texts_keep(texts, choice->impl->variant);
    if (!copy || !what || !variant) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    if (n_buffers) memcpy(copy, buffers, n_buffers * sizeof *copy);
    for (uint32_t i = 0; i < n_buffers; i++) {
        plan_root *root = &s->roots[buffers[i].root];
        root->last_step = (uint32_t)s->n_pending;
        root->used = true;
    }
    s->pending[s->n_pending++] = (pending_step){.what = what,
                                                .buffers = copy,
                                                .n_buffers = n_buffers,
                                                .node = state_main_node(s),
                                                .inner = s->n_scopes > 1 ? n : NULL,
                                                .variant = variant,
                                                .problem = choice->problem,
                                                .impls = choice->impls};
    return CLG_OK;
}

/* ---- scopes ---------------------------------------------------------------------------------- */

plan_scope *state_scope(plan_state *s) { return &s->scopes[s->n_scopes - 1]; }

node_id state_main_node(const plan_state *s) { return (node_id)s->scopes[0].next; }

const char *state_value_text(const plan_state *s, value_id v, char buffer[VALUE_TEXT_BYTES])
{
    const graph *g = s->context->graph;
    const node_id n = s->n_scopes > 0 ? state_main_node(s) : NODE_NONE;
    char text[NODE_TEXT_BYTES];
    if (v < g->n_values || n >= g->n_nodes) return value_text(g, v, buffer);
    (void)snprintf(buffer, VALUE_TEXT_BYTES, "a value of %s", node_text(&g->nodes[n], text));
    return buffer;
}

clg_status state_add_values(plan_state *s, size_t n, value_id *out_first)
{
    *out_first = VALUE_NONE;
    if (n >= UINT32_MAX - s->n_values) return error_no_memory(SIZE_MAX);
    CLG_TRY(MEMORY_RESERVE(s->values, s->values_capacity, s->n_values + n));
    for (size_t i = 0; i < n; i++)
        s->values[s->n_values + i] = (plan_value){.root = ROOT_NONE, .dense = true};
    *out_first = (value_id)s->n_values;
    s->n_values += n;
    return CLG_OK;
}

plan_placement state_place(const plan_state *s, root_ref ref)
{
    int64_t offset_bytes;
    const plan_root *root = &s->roots[state_home(s, ref.root, &offset_bytes)];
    bool has_base = root->kind == PLACE_SLAB || root->kind == PLACE_LITERAL;
    return (plan_placement){root->kind, root->index,
                            ref.offset_bytes + offset_bytes + (has_base ? root->offset_bytes : 0)};
}
