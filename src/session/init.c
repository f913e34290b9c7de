/* SPDX-License-Identifier: Apache-2.0
 *
 * The init plan: nodes that depend on constants only run once, on the device, when a session is made. Their results
 * are weights like any other; small ones are read back, since shapes may depend on them.
 */
#include "session/exec.h"
#include "session/frame.h"

#define MAX_READ_BACK_FLOATS 64 /* scales of Resize and the like */

static bool is_weight(const exec *e, const bool *from_init, value_id v)
{
    return v == VALUE_NONE || e->g->values[v].constant || from_init[v];
}

/* What a node reads, captures of the graphs inside it included. */
static void want_inputs(const node *n, bool *wanted)
{
    for (size_t i = 0; i < n->n_inputs; i++)
        if (n->inputs[i] != VALUE_NONE) wanted[n->inputs[i]] = true;
    for (size_t a = 0; a < n->n_attributes; a++) {
        const graph *inner =
            n->attributes[a].type == ATTRIBUTE_GRAPH ? n->attributes[a].as.g : NULL;
        for (size_t v = 0; inner && v < inner->n_values; v++)
            if (inner->values[v].is_outer) wanted[inner->values[v].outer] = true;
    }
}

clg_status exec_find_init(exec *e)
{
    const graph *g = e->g;
    bool *from_init = memory_zalloc(g->n_values + 1, sizeof *from_init);
    bool *wanted = memory_zalloc(g->n_values + 1, sizeof *wanted);
    e->init_outputs = arena_alloc(&e->memory, g->n_values + 1, sizeof *e->init_outputs);
    clg_status status =
        from_init && wanted && e->init_outputs ? CLG_OK : CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (node_id n = 0; status == CLG_OK && n < g->n_nodes; n++) {
        const node *d = &g->nodes[n];
        bool init = op_folds(d);
        for (size_t i = 0; i < d->n_inputs && init; i++)
            init = is_weight(e, from_init, d->inputs[i]);
        e->node_is_init[n] = init;
        for (size_t i = 0; i < d->n_outputs; i++)
            if (d->outputs[i] != VALUE_NONE) from_init[d->outputs[i]] = init;
    }
    for (node_id n = 0; status == CLG_OK && n < g->n_nodes; n++)
        if (!e->node_is_init[n]) want_inputs(&g->nodes[n], wanted);
    for (size_t i = 0; status == CLG_OK && i < g->n_outputs; i++) wanted[g->outputs[i]] = true;
    for (value_id v = 0; status == CLG_OK && v < g->n_values; v++)
        if (wanted[v] && from_init[v]) e->init_outputs[e->n_init_outputs++] = v;
    memory_free(from_init);
    memory_free(wanted);
    return status;
}

/* ---- running it ------------------------------------------------------------------------------------------ */

static clg_status hold(exec *e, tensor *t)
{
    clg_status status = MEMORY_RESERVE(e->held, e->held_capacity, e->n_held + 1);
    if (status != CLG_OK) {
        tensor_free(t);
        return status;
    }
    e->held[e->n_held++] = t;
    return CLG_OK;
}

static clg_status read_port(frame *f, const plan_segment *segment, const plan_port *port,
                            tensor **out_tensor)
{
    tensor *t;
    bound_buffer where;
    CLG_TRY(tensor_create(port->dtype, &port->dims, &t));
    clg_status status = CLG_OK;
    if (t->size_bytes) status = frame_resolve(f, segment, &port->place, &where);
    if (t->size_bytes && status == CLG_OK)
        status = ocl_queue_read(f->queue, where.buffer, (size_t)where.offset_bytes, t->data,
                                t->size_bytes, true);
    if (status != CLG_OK) {
        tensor_free(t);
        return status;
    }
    *out_tensor = t;
    return CLG_OK;
}

/* The contents a segment's reads ask for; *out_contents is freed by the caller with its tensors. */
static clg_status read_contents(frame *f, const plan_segment *segment, tensor **contents)
{
    for (size_t i = 0; i < segment->n_reads; i++) {
        if (segment->reads[i].known)
            contents[i] = tensor_retain((tensor *)segment->reads[i].known);
        else
            CLG_TRY(read_port(f, segment, &segment->reads[i], &contents[i]));
    }
    return CLG_OK;
}

static clg_status reserve_outputs(frame *f, const plan_segment *segment)
{
    for (size_t i = 0; i < f->n_outputs; i++)
        if (segment->output_bytes[i] != PLAN_NO_OUTPUT)
            CLG_TRY(frame_reserve(f, &f->outputs[i], segment->output_bytes[i], OCL_BUFFER_DEVICE));
    return CLG_OK;
}

/* Runs one segment and waits for it. */
static clg_status run_segment(frame *f, plan *p, plan_segment *segment)
{
    frame_segment *prepared;
    int32_t fault[FAULT_WORDS] = {0};
    CLG_TRY(reserve_outputs(f, segment));
    CLG_TRY(frame_prepare(f, p, segment, &prepared));
    CLG_TRY(frame_enqueue(f, prepared, NULL));
    if (segment->has_fault_args)
        CLG_TRY(ocl_queue_read(f->queue, f->fault, 0, fault, sizeof fault, true));
    CLG_TRY(ocl_queue_finish(f->queue));
    return frame_check_fault(f, fault);
}

static clg_status next_segment(exec *e, frame *f, plan_segment *segment, plan_segment **out_next)
{
    tensor *contents[OP_MAX_INTS] = {NULL};
    clg_status status = read_contents(f, segment, contents);
    if (status == CLG_OK) status = plan_continue(&e->planning, segment, contents, out_next);
    for (size_t i = 0; i < OP_MAX_INTS; i++) tensor_free(contents[i]);
    return status;
}

/* *out_last is a reference, also on failure. */
static clg_status run_segments(exec *e, frame *f, plan *p, plan_segment **out_last)
{
    *out_last = plan_segment_retain(p->root);
    for (;;) {
        plan_segment *next = NULL;
        CLG_TRY(run_segment(f, p, *out_last));
        if ((*out_last)->last) return CLG_OK;
        CLG_TRY(next_segment(e, f, *out_last, &next));
        plan_segment_free(*out_last);
        *out_last = next;
    }
}

static bool worth_reading(const plan_port *port)
{
    int64_t n;
    if (shape_n_elements(&port->dims, &n) != CLG_OK) return false;
    return n <= (dtype_is_float(port->dtype) ? MAX_READ_BACK_FLOATS : OP_MAX_KNOWN_ELEMENTS);
}

static clg_status keep_result(exec *e, frame *f, const plan_segment *last, size_t index)
{
    const plan_port *port = &last->outputs[index];
    value_fact *fact = &e->weights[port->value];
    *fact = (value_fact){.dtype = port->dtype, .dims = port->dims};
    if (port->known) {
        fact->known = port->known;
        return hold(e, tensor_retain((tensor *)port->known));
    }
    e->weight_buffers[port->value] = ocl_buffer_retain(f->outputs[index].buffer);
    e->weight_bytes += ocl_buffer_size(f->outputs[index].buffer);
    if (!worth_reading(port)) return CLG_OK;
    tensor *t;
    CLG_TRY(read_port(f, last, port, &t));
    fact->known = t;
    return hold(e, t);
}

clg_status exec_run_init(exec *e)
{
    plan_context main_planning = e->planning;
    plan *p = NULL;
    plan_segment *last = NULL;
    frame *f = NULL;
    if (e->n_init_outputs == 0) return CLG_OK;
    e->planning.is_init_plan = true;
    e->planning.outputs = e->init_outputs;
    e->planning.n_outputs = e->planning.n_required = e->n_init_outputs;
    clg_status status = plan_create(&e->planning, NULL, NULL, &p);
    if (status == CLG_OK) status = frame_create(e, 0, e->n_init_outputs, false, &f);
    if (status == CLG_OK) status = run_segments(e, f, p, &last);
    for (size_t i = 0; status == CLG_OK && i < e->n_init_outputs; i++)
        status = keep_result(e, f, last, i);
    plan_segment_free(last);
    frame_free(f);
    plan_free(p);
    exec_release_staging(e);
    e->planning = main_planning;
    return status;
}
