/* SPDX-License-Identifier: Apache-2.0
 *
 * Closes a segment of a plan: gives outputs and values that the host must read dense memory,
 * determines which roots (blocks of memory) stay alive, places them in slabs (device buffers shared
 * by several roots), and writes the segment's steps, outputs and literals.
 */
#include "base/cancel.h"
#include "plan/aggregate.h"
#include "plan/state.h"

#include <string.h>

/* Extends the lifetimes of a value's roots to the segment's end. */
static void keep_value(plan_state *s, const plan_value *v)
{
    for (size_t i = 0; i < v->n_items; i++) keep_value(s, &v->items[i]);
    if (v->root == ROOT_NONE) return;
    plan_root *home = &s->roots[state_home(s, v->root, NULL)];
    s->roots[v->root].live = true;
    home->live = true;
    home->last_step = STEP_END;
}

static void keep_alive(plan_state *s, value_id v)
{
    if (v != VALUE_NONE) keep_value(s, &s->values[v]);
}

/* Keeps alive the values of the scope that nested graph `inner` uses. */
static void keep_captures(plan_state *s, const plan_scope *scope, const graph *inner)
{
    for (size_t v = 0; v < inner->n_values; v++) {
        if (!inner->values[v].is_outer) continue;
        value_id outer = inner->values[v].outer;
        keep_alive(s, scope->ids ? scope->ids[outer] : outer);
    }
}

/* Keeps alive the values that the rest of a scope uses; for the body of a loop those that any of
 * its nodes uses, since it runs again. */
static void keep_scope(plan_state *s, const plan_scope *scope)
{
    for (size_t n = scope->loop ? 0 : scope->next; n < scope->n_nodes; n++) {
        const node *d = &scope->nodes[n];
        for (size_t i = 0; i < d->n_inputs; i++) keep_alive(s, d->inputs[i]);
        for (size_t a = 0; a < d->n_attributes; a++)
            if (d->attributes[a].type == ATTRIBUTE_GRAPH)
                keep_captures(s, scope, d->attributes[a].as.graph);
    }
    for (size_t i = 0; scope->ids && i < scope->graph->n_outputs; i++)
        keep_alive(s, scope->ids[scope->graph->outputs[i]]);
    if (!scope->loop) return;
    for (size_t i = 0; i < scope->loop->n_carried; i++) keep_value(s, &scope->loop->carried[i]);
    for (const plan_scan *scan = scope->loop->scans; scan; scan = scan->previous)
        for (size_t i = 0; i < scope->loop->n_scans; i++) keep_value(s, &scan->values[i]);
    for (const plan_scan *scan = scope->loop->finals; scan; scan = scan->previous)
        for (size_t i = 0; i < scope->loop->n_carried; i++) keep_value(s, &scan->values[i]);
    for (size_t i = 0; i < scope->loop->n_inputs; i++) keep_value(s, &scope->loop->inputs[i]);
}

/* Keeps alive the values that were alive before the first iteration of an iterated loop: later
 * iterations read them where they were then, even if this one has replaced them by dense copies. */
static void keep_pinned(plan_state *s, const plan_loop *loop)
{
    for (size_t r = 0; loop && r < loop->n_pinned; r++) {
        plan_root *root = &s->roots[r];
        if (root->kind != PLACE_SLAB || !root->placed) continue;
        root->live = true;
        root->last_step = STEP_END;
    }
}

/* Extends to the segment's end the lifetimes of roots that the rest of the graph, the plan's
 * outputs or the host's reads use. */
static void mark_live(plan_state *s, const value_id *reads, size_t n_reads)
{
    const plan_context *context = s->context;
    for (size_t r = 0; r < s->n_roots; r++) s->roots[r].live = false;
    for (size_t i = 0; i < n_reads; i++) keep_alive(s, reads[i]);
    for (size_t i = 0; i < context->n_outputs; i++) keep_alive(s, context->outputs[i]);
    for (size_t i = 0; i < s->n_scopes; i++) keep_scope(s, &s->scopes[i]);
    for (size_t i = 0; i < s->n_scopes; i++) keep_pinned(s, s->scopes[i].loop);
    for (size_t i = 0; i < s->n_appends; i++) keep_value(s, &s->appends[i].slice);
    for (size_t i = 0; s->staged && i < s->staged->n_inputs; i++)
        keep_alive(s, s->staged->inputs[i]);
}

/* Extends a root's lifetime over those of the roots that are parts of it. */
static void gather_lifetimes(plan_state *s)
{
    for (uint32_t r = 0; r < s->n_roots; r++) {
        const plan_root *part = &s->roots[r];
        if (part->home == ROOT_NONE || part->kind != PLACE_SLAB) continue;
        plan_root *home = &s->roots[state_home(s, r, NULL)];
        if (part->first_step < home->first_step) home->first_step = part->first_step;
        if (part->last_step > home->last_step) home->last_step = part->last_step;
        home->used = home->used || part->used;
    }
}

static clg_status place_slabs(plan_state *s)
{
    clg_status status = CLG_OK;
    plan_segment *segment = s->segment;
    plan_block *blocks = memory_zalloc(s->n_roots + 1, sizeof *blocks);
    uint32_t *roots = memory_zalloc(s->n_roots + 1, sizeof *roots);
    size_t n = 0;
    if (!blocks || !roots) {
        status = CLG_ERROR_OUT_OF_HOST_MEMORY;
        goto done;
    }
    for (uint32_t r = 0; r < s->n_roots; r++) {
        const plan_root *root = &s->roots[r];
        if (root->kind != PLACE_SLAB || root->home != ROOT_NONE) continue;
        if (root->size_bytes == 0 && !root->used) continue;
        /* a tensor without elements still needs a buffer for the step's argument */
        blocks[n] = (plan_block){.size_bytes = root->size_bytes ? root->size_bytes : 1,
                                 .first_step = root->placed ? 0 : root->first_step,
                                 .last_step = root->last_step,
                                 .fixed = root->placed,
                                 .slab = root->placed ? root->index : 0,
                                 .offset_bytes = root->placed ? (size_t)root->offset_bytes : 0};
        roots[n++] = r;
    }
    CLG_TRY_GOTO(memo_place_blocks(s, blocks, n,
                                   s->context->caps->buffer_align_bytes
                                       ? s->context->caps->buffer_align_bytes
                                       : 128),
                 done);
    for (size_t i = 0; i < n; i++) {
        s->roots[roots[i]].index = blocks[i].slab;
        s->roots[roots[i]].offset_bytes = (int64_t)blocks[i].offset_bytes;
    }
    segment->slab_bytes = arena_alloc(&segment->memory, s->n_slabs + 1, sizeof(size_t));
    if (!segment->slab_bytes) {
        status = CLG_ERROR_OUT_OF_HOST_MEMORY;
        goto done;
    }
    if (s->n_slabs) memcpy(segment->slab_bytes, s->slab_bytes, s->n_slabs * sizeof(size_t));
    segment->n_slabs = s->n_slabs;
done:
    memory_free(blocks);
    memory_free(roots);
    return status;
}

static clg_status write_steps(plan_state *s)
{
    plan_segment *segment = s->segment;
    segment->steps = arena_alloc(&segment->memory, s->n_pending + 1, sizeof *segment->steps);
    if (!segment->steps) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; i < s->n_pending; i++) {
        const pending_step *p = &s->pending[i];
        CLG_TRY(cancel_check("planning"));
        plan_placement *places = arena_alloc(&segment->memory, p->n_buffers + 1u, sizeof *places);
        if (!places) return CLG_ERROR_OUT_OF_HOST_MEMORY;
        for (uint32_t b = 0; b < p->n_buffers; b++) places[b] = state_place(s, p->buffers[b]);
        segment->steps[i] = (plan_step){.what = p->what,
                                        .buffers = places,
                                        .n_buffers = p->n_buffers,
                                        .node = p->node,
                                        .inner = p->inner,
                                        .variant = p->variant,
                                        .problem = p->problem,
                                        .impls = p->impls};
        for (uint32_t a = 0; p->what->kind == STEP_KERNEL && a < p->what->n_args; a++)
            if (p->what->args[a].kind == ARG_FAULT) segment->has_fault_args = true;
    }
    segment->n_steps = s->n_pending;
    return CLG_OK;
}

/* Returns whether an output is omitted: it is not a tensor, and the model does not have it as an
 * output (clg_session_keep_values requested it). */
static bool is_left_out(const plan_state *s, const plan_value *v, size_t output)
{
    return s->segment->last && output >= s->context->n_required && v->fact.kind != CLG_VALUE_TENSOR;
}

static clg_status write_items(plan_state *s, const plan_value *v, plan_port *port);

static clg_status write_port(plan_state *s, const plan_value *v, plan_port *port)
{
    port->kind = v->fact.kind;
    port->dtype = v->fact.dtype;
    port->dims = v->fact.dims;
    if (v->fact.kind != CLG_VALUE_TENSOR) return write_items(s, v, port);
    if (v->root == ROOT_NONE)
        port->known = v->fact.known;
    else
        port->place = state_place(
            s, (root_ref){v->root, v->offset_elems * (int64_t)dtype_size(v->fact.dtype)});
    return CLG_OK;
}

static clg_status write_items(plan_state *s, const plan_value *v, plan_port *port)
{
    plan_port *items = arena_alloc(&s->segment->memory, v->n_items + 1, sizeof *items);
    if (!items) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; i < v->n_items; i++) CLG_TRY(write_port(s, &v->items[i], &items[i]));
    port->items = items;
    port->n_items = v->n_items;
    return CLG_OK;
}

static clg_status write_ports(plan_state *s, const value_id *values, size_t n,
                              plan_port **out_ports)
{
    plan_port *ports = arena_alloc(&s->segment->memory, n + 1, sizeof *ports);
    *out_ports = ports;
    if (!ports) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; i < n; i++) {
        const plan_value *v = &s->values[values[i]];
        ports[i].value = values[i];
        if (is_left_out(s, v, i)) continue;
        CLG_TRY(write_port(s, v, &ports[i]));
        if (s->segment->last && ports[i].place.kind != PLACE_NONE && !in_place_is_output(s, v, i))
            ports[i].place = (plan_placement){PLACE_OUTPUT, (uint32_t)i, 0};
    }
    return CLG_OK;
}

static clg_status write_output_bytes(plan_state *s)
{
    size_t n = s->context->n_outputs;
    size_t *bytes = arena_alloc(&s->segment->memory, n + 1, sizeof *bytes);
    if (!bytes) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; i < n; i++) bytes[i] = PLAN_NO_OUTPUT;
    for (size_t r = 0; r < s->n_roots; r++)
        if (s->roots[r].kind == PLACE_OUTPUT) bytes[s->roots[r].index] = s->roots[r].size_bytes;
    s->segment->output_bytes = bytes;
    return CLG_OK;
}

/* Makes a value dense and gives it device memory, so that the host can read it. */
static clg_status settle_read(plan_state *s, value_id id) { return emit_dense(s, id, NULL); }

/* Gives an output its own buffer: turns its root into an output buffer where possible, else
 * copies. */
static clg_status settle_output(plan_state *s, size_t index)
{
    value_id id = s->context->outputs[index];
    plan_value *v = &s->values[id];
    if (is_left_out(s, v, index)) return CLG_OK;
    if (v->fact.kind != CLG_VALUE_TENSOR) return aggregate_settle(s, id, settle_read);
    if (v->fact.dtype == CLG_DTYPE_NONE)
        return error_set(CLG_ERROR_INTERNAL, "output %s was never computed",
                         state_value_text(s, id, (char[VALUE_TEXT_BYTES]){0}));
    if (v->root == ROOT_NONE && v->fact.known) return CLG_OK;
    if (v->root == ROOT_NONE) CLG_TRY(state_materialise(s, id));
    plan_root *root = &s->roots[v->root];
    size_t size_bytes;
    CLG_TRY(state_value_bytes(v, &size_bytes));
    if (in_place_is_output(s, v, index)) return CLG_OK;
    if (root->kind == PLACE_OUTPUT && root->index == index && v->dense && v->offset_elems == 0)
        return CLG_OK;
    if (root->kind == PLACE_SLAB && !root->placed && root->home == ROOT_NONE && v->dense &&
        v->offset_elems == 0 && root->size_bytes == size_bytes) {
        root->kind = PLACE_OUTPUT;
        root->index = (uint32_t)index;
        return CLG_OK;
    }
    uint32_t copy;
    CLG_TRY(state_add_root(s, PLACE_OUTPUT, (uint32_t)index, size_bytes, &copy));
    return size_bytes ? emit_copy(s, id, copy, NULL) : CLG_OK;
}

static clg_status write_literals(plan_state *s)
{
    plan_segment *segment = s->segment;
    if (!s->literal_bytes) return CLG_OK;
    uint8_t *literals = arena_alloc(&segment->memory, s->literal_bytes, 1);
    if (!literals) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    memcpy(literals, s->literals, s->literal_bytes);
    segment->literals = literals;
    segment->literal_bytes = s->literal_bytes;
    return CLG_OK;
}

static clg_status write_appends(plan_state *s)
{
    plan_segment *segment = s->segment;
    segment->appends = arena_alloc(&segment->memory, s->n_appends + 1, sizeof *segment->appends);
    if (!segment->appends) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; i < s->n_appends; i++) {
        const pending_append *a = &s->appends[i];
        const int64_t offset = a->slice.offset_elems * (int64_t)dtype_size(a->slice.fact.dtype);
        plan_append *out = &segment->appends[i];
        *out = (plan_append){.index = a->index, .is_first = a->is_first};
        CLG_TRY(state_value_bytes(&a->slice, &out->size_bytes));
        out->from = state_place(s, (root_ref){a->slice.root, offset});
    }
    segment->n_appends = s->n_appends;
    return CLG_OK;
}

static size_t count_known(const plan_port *ports, size_t n)
{
    size_t known = 0;
    for (size_t i = 0; i < n; i++)
        known += (ports[i].known != NULL) + count_known(ports[i].items, ports[i].n_items);
    return known;
}

static void hold_known(plan_segment *segment, const plan_port *ports, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (ports[i].known)
            segment->held[segment->n_held++] = tensor_retain((tensor *)ports[i].known);
        hold_known(segment, ports[i].items, ports[i].n_items);
    }
}

/* Keeps references to the tensors known on the host that outlive planning: all of them where child
 * segments continue from here, else those for which the segment was planned and those of
 * outputs. */
static clg_status keep_held(plan_state *s)
{
    plan_segment *segment = s->segment;
    if (!segment->last) {
        segment->held = s->held; /* moved */
        segment->n_held = s->n_held;
        s->held = NULL;
        s->n_held = s->held_capacity = 0;
        return CLG_OK;
    }
    const size_t n = segment->n_arrived + count_known(segment->outputs, segment->n_outputs);
    segment->held = memory_zalloc(n + 1, sizeof *segment->held);
    if (!segment->held) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; i < segment->n_arrived; i++)
        segment->held[segment->n_held++] = tensor_retain(segment->arrived[i]);
    hold_known(segment, segment->outputs, segment->n_outputs);
    return CLG_OK;
}

clg_status finish_segment(plan_state *s, const value_id *reads, size_t n_reads)
{
    plan_segment *segment = s->segment;
    const plan_context *context = s->context;
    segment->last = n_reads == 0 && !segment->next.base;
    if (segment->last)
        for (size_t i = 0; i < context->n_outputs; i++) CLG_TRY(settle_output(s, i));
    else
        for (size_t i = 0; i < n_reads; i++) CLG_TRY(settle_read(s, reads[i]));
    mark_live(s, reads, n_reads);
    gather_lifetimes(s);
    CLG_TRY(place_slabs(s));
    CLG_TRY(write_steps(s));
    CLG_TRY(order_steps(s));
    CLG_TRY(short_run_settle(context, segment));
    CLG_TRY(write_output_bytes(s));
    CLG_TRY(write_ports(s, reads, n_reads, &segment->reads));
    segment->n_reads = n_reads;
    if (segment->last) {
        CLG_TRY(write_ports(s, context->outputs, context->n_outputs, &segment->outputs));
        segment->n_outputs = context->n_outputs;
    }
    CLG_TRY(write_appends(s));
    CLG_TRY(write_literals(s));
    return keep_held(s);
}
