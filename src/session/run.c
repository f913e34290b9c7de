/* SPDX-License-Identifier: Apache-2.0
 *
 * A run: facts of the inputs -> the plan -> uploads, steps, downloads in one queue, and one wait at the end. Only where
 * the host must learn content in between (plan segments) it waits more often.
 */
#include "session/session.h"

#include <string.h>

typedef enum run_mode { RUN_FOR_REAL, RUN_ON_ZEROS } run_mode;

typedef struct run {
    clg_session *s;
    run_mode mode;
    value_fact *facts; /* one an input */
    plan *p;
    int32_t fault[FAULT_WORDS];
    tensor **pending; /* host tensors being read into, one an output; NULL: none */
} run;

/* ---- inputs ------------------------------------------------------------------------------------------ */

/* The shape an input has in this run: carried, mapped, given, hinted, or (on zeros) declared with free dimensions 1. */
static clg_status input_dims(const run *r, size_t i, shape *out_dims)
{
    const session_input *in = &r->s->inputs[i];
    const value *port = session_input_port(r->s, i);
    if (in->carried)
        *out_dims = in->carried_dims;
    else if (in->filled)
        *out_dims = in->mapped_dims;
    else if (in->value)
        *out_dims = in->value->dims;
    else if (r->mode == RUN_FOR_REAL)
        return error_set(CLG_ERROR_NOT_FOUND, "input '%s' is not set", port->name);
    else if (in->hint.rank != RANK_UNKNOWN)
        *out_dims = in->hint;
    else {
        *out_dims = port->dims;
        if (out_dims->rank == RANK_UNKNOWN) out_dims->rank = 0;
        for (int d = 0; d < out_dims->rank; d++)
            if (out_dims->dims[d] == DIM_UNKNOWN) out_dims->dims[d] = 1;
    }
    return CLG_OK;
}

static clg_dtype input_dtype(const run *r, size_t i)
{
    const session_input *in = &r->s->inputs[i];
    return in->value ? in->value->dtype : session_input_port(r->s, i)->dtype;
}

/* The content of an input whose content decides shapes. */
static clg_status input_content(run *r, size_t i)
{
    session_input *in = &r->s->inputs[i];
    tensor *t;
    CLG_TRY(tensor_create(r->facts[i].dtype, &r->facts[i].dims, &t));
    clg_status status = CLG_OK;
    frame_memory *m = &r->s->f->inputs[i];
    if (in->carried || (in->filled && !in->mapped))
        status = t->size_bytes ? ocl_queue_read(r->s->f->queue, m->buffer, m->offset_bytes, t->data,
                                                t->size_bytes, true)
                               : CLG_OK;
    else if (in->mapped)
        memcpy(t->data, in->mapped, t->size_bytes);
    else if (in->value)
        status = value_read(in->value, t->data, t->size_bytes);
    if (status != CLG_OK) {
        tensor_free(t);
        return status;
    }
    tensor_free(in->content);
    in->content = t;
    r->facts[i].known = t;
    return CLG_OK;
}

static clg_status find_plan(run *r)
{
    clg_session *s = r->s;
    for (size_t i = 0; i < s->n_inputs; i++) {
        r->facts[i].dtype = input_dtype(r, i);
        CLG_TRY(input_dims(r, i, &r->facts[i].dims));
    }
    for (size_t tries = 0; tries <= s->n_inputs && !r->p; tries++) {
        for (size_t i = 0; i < s->n_inputs; i++)
            if (!r->facts[i].known && exec_needs_content(s->e, i)) CLG_TRY(input_content(r, i));
        CLG_TRY(exec_plan(s->e, r->facts, &r->p));
    }
    return r->p ? CLG_OK : error_set(CLG_ERROR_INTERNAL, "planning asks for contents without end");
}

static clg_status fact_bytes(clg_dtype dtype, const shape *dims, size_t *out_bytes)
{
    int64_t n;
    *out_bytes = 0;
    CLG_TRY(shape_n_elements(dims, &n));
    if (n < 0 || !dtype_bytes(dtype, n, out_bytes))
        return error_set(CLG_ERROR_SHAPE, "a tensor is larger than memory can be");
    return CLG_OK;
}

/* Copies a value of another device through the host. */
static clg_status bind_foreign_context(run *r, size_t i, clg_value *v, size_t size_bytes)
{
    clg_value *host;
    frame_memory *m = &r->s->f->inputs[i];
    CLG_TRY(value_to_host(v, &host));
    clg_status status = frame_reserve(r->s->f, m, size_bytes, OCL_BUFFER_HOST_VISIBLE);
    if (status == CLG_OK && size_bytes)
        status =
            ocl_queue_write(r->s->f->queue, m->buffer, 0, value_host_data(host), size_bytes, true);
    value_free(host);
    return status;
}

static clg_status bind_zeros(run *r, size_t i, size_t size_bytes)
{
    static const uint8_t zero[4] = {0};
    frame_memory *m = &r->s->f->inputs[i];
    CLG_TRY(frame_reserve(r->s->f, m, size_bytes, OCL_BUFFER_HOST_VISIBLE));
    size_t padded = size_bytes / 4 * 4;
    if (padded) CLG_TRY(ocl_queue_fill(r->s->f->queue, m->buffer, 0, padded, zero, 4));
    return size_bytes > padded
               ? ocl_queue_fill(r->s->f->queue, m->buffer, padded, size_bytes - padded, zero, 1)
               : CLG_OK;
}

static clg_status bind_input(run *r, size_t i)
{
    clg_session *s = r->s;
    session_input *in = &s->inputs[i];
    frame_memory *m = &s->f->inputs[i];
    size_t size_bytes;
    if (in->mapped) {
        void *data = in->mapped;
        in->mapped = NULL;
        return ocl_queue_unmap(s->f->queue, m->buffer, data);
    }
    if (in->carried || in->filled) return CLG_OK;
    CLG_TRY(fact_bytes(r->facts[i].dtype, &r->facts[i].dims, &size_bytes));
    if (!in->value) return bind_zeros(r, i, size_bytes);
    ocl_buffer *b = context_value_buffer(s->e->context, in->value);
    if (b) {
        frame_set_foreign(s->f, m, b, in->value->offset_bytes);
        return CLG_OK;
    }
    if (!value_host_data(in->value)) return bind_foreign_context(r, i, in->value, size_bytes);
    CLG_TRY(frame_reserve(s->f, m, size_bytes, OCL_BUFFER_HOST_VISIBLE));
    return size_bytes ? ocl_queue_write(s->f->queue, m->buffer, 0, value_host_data(in->value),
                                        size_bytes, false)
                      : CLG_OK;
}

/* ---- outputs ----------------------------------------------------------------------------------------------- */

/* Memory for the outputs that this segment writes. */
static clg_status bind_outputs(run *r, const plan_segment *segment)
{
    clg_session *s = r->s;
    for (size_t i = 0; i < s->n_outputs; i++) {
        clg_value *bound = r->mode == RUN_FOR_REAL ? s->outputs[i].bound : NULL;
        size_t size_bytes = segment->output_bytes[i];
        if (size_bytes == PLAN_NO_OUTPUT) continue;
        if (bound && bound->size_bytes != size_bytes)
            return error_set(
                CLG_ERROR_SHAPE, "output '%s' has %zu bytes; the value bound to it has %zu",
                s->e->g->values[s->e->g->outputs[i]].name, size_bytes, bound->size_bytes);
        ocl_buffer *b = bound ? context_value_buffer(s->e->context, bound) : NULL;
        if (b)
            frame_set_foreign(s->f, &s->f->outputs[i], b, bound->offset_bytes);
        else
            CLG_TRY(frame_reserve(s->f, &s->f->outputs[i], size_bytes, OCL_BUFFER_HOST_VISIBLE));
    }
    return CLG_OK;
}

/* A host tensor for output i: the last one again when nobody else holds it. */
static clg_status host_tensor(clg_session *s, size_t i, const plan_port *port, tensor **out_tensor)
{
    session_output *out = &s->outputs[i];
    if (out->host && value_is_unshared(out->host) && out->host->dtype == port->dtype &&
        shape_equal(&out->host->host->dims, &port->dims)) {
        *out_tensor = tensor_retain(out->host->host);
        return CLG_OK;
    }
    value_free(out->host);
    out->host = NULL;
    return tensor_create(port->dtype, &port->dims, out_tensor);
}

/* Known contents go where the caller wants them; the rest is read from the device. */
static clg_status fetch_output(run *r, const plan_segment *last, size_t i)
{
    clg_session *s = r->s;
    session_output *out = &s->outputs[i];
    const plan_port *port = &last->outputs[i];
    frame_memory *m = &s->f->outputs[i];
    const uint8_t *known = port->place.kind == PLACE_NONE && port->known ? port->known->data : NULL;
    size_t size_bytes;
    CLG_TRY(fact_bytes(port->dtype, &port->dims, &size_bytes));
    if (size_bytes == 0) return CLG_OK;
    if (known && (out->link != SIZE_MAX || (out->bound && !value_host_data(out->bound)))) {
        if (!out->bound) CLG_TRY(frame_reserve(s->f, m, size_bytes, OCL_BUFFER_HOST_VISIBLE));
        return ocl_queue_write(s->f->queue, m->buffer, m->offset_bytes, known, size_bytes, false);
    }
    if (out->link != SIZE_MAX || (out->bound && !value_host_data(out->bound))) return CLG_OK;
    void *to = out->bound ? value_host_data(out->bound) : NULL;
    if (!to) {
        CLG_TRY(host_tensor(s, i, port, &r->pending[i]));
        to = r->pending[i]->data;
    }
    if (known) {
        memcpy(to, known, size_bytes);
        return CLG_OK;
    }
    return ocl_queue_read(s->f->queue, m->buffer, m->offset_bytes, to, size_bytes, false);
}

static clg_status publish_output(run *r, const plan_segment *last, size_t i)
{
    clg_session *s = r->s;
    session_output *out = &s->outputs[i];
    const plan_port *port = &last->outputs[i];
    tensor *t = r->pending[i];
    r->pending[i] = NULL;
    out->dtype = port->dtype;
    out->dims = port->dims;
    out->known = port->place.kind == PLACE_NONE ? port->known : NULL;
    if (out->host && t && out->host->host == t) {
        tensor_free(t);
    } else {
        value_free(out->host);
        out->host = NULL;
        clg_status status = t ? value_create_host(t, &out->host) : CLG_OK;
        tensor_free(t);
        if (status != CLG_OK) return status;
    }
    out->valid = true;
    if (out->link == SIZE_MAX) return CLG_OK;
    session_input *in = &s->inputs[out->link];
    frame_swap(s->f, &s->f->outputs[i], &s->f->inputs[out->link]);
    in->carried = true;
    in->filled = false;
    in->carried_dims = port->dims;
    value_free(in->value);
    in->value = NULL;
    return CLG_OK;
}

/* ---- segments ------------------------------------------------------------------------------------------------ */

static clg_status read_content(run *r, const plan_segment *segment, const plan_port *port,
                               tensor **out_content)
{
    bound_buffer where;
    if (port->known) {
        *out_content = tensor_retain((tensor *)port->known);
        return CLG_OK;
    }
    CLG_TRY(tensor_create(port->dtype, &port->dims, out_content));
    if ((*out_content)->size_bytes == 0) return CLG_OK;
    CLG_TRY(frame_resolve(r->s->f, segment, &port->place, &where));
    return ocl_queue_read(r->s->f->queue, where.buffer, (size_t)where.offset_bytes,
                          (*out_content)->data, (*out_content)->size_bytes, false);
}

static clg_status check_fault(run *r)
{
    if (r->mode == RUN_FOR_REAL) return frame_check_fault(r->s->f, r->fault);
    static const int32_t zeros[FAULT_WORDS] = {
        0}; /* zeros may well be no valid data: only the kernels mattered */
    return r->fault[0]
               ? ocl_queue_write(r->s->f->queue, r->s->f->fault, 0, zeros, sizeof zeros, true)
               : CLG_OK;
}

static clg_status read_fault(run *r, const plan_segment *segment)
{
    if (!segment->has_fault_args) return CLG_OK;
    return ocl_queue_read(r->s->f->queue, r->s->f->fault, 0, r->fault, sizeof r->fault, false);
}

/* Waits for a segment that is not the last, learns the contents and finds the child. */
static clg_status next_segment(run *r, plan_segment **segment)
{
    tensor *contents[OP_MAX_INTS] = {NULL};
    plan_segment *child = NULL;
    clg_status status = CLG_OK;
    for (size_t i = 0; status == CLG_OK && i < (*segment)->n_reads; i++)
        status = read_content(r, *segment, &(*segment)->reads[i], &contents[i]);
    if (status == CLG_OK) status = read_fault(r, *segment);
    clg_status finished = ocl_queue_finish(r->s->f->queue);
    if (status == CLG_OK) status = finished;
    if (status == CLG_OK) status = check_fault(r);
    if (status == CLG_OK) status = exec_continue(r->s->e, *segment, contents, &child);
    for (size_t i = 0; i < OP_MAX_INTS; i++) tensor_free(contents[i]);
    *segment = child;
    return status;
}

static clg_status run_segments(run *r, const plan_segment **out_last)
{
    clg_session *s = r->s;
    plan_segment *segment = r->p->root;
    for (;;) {
        frame_segment *prepared;
        CLG_TRY(bind_outputs(r, segment));
        CLG_TRY(frame_prepare(s->f, r->p, segment, &prepared));
        CLG_TRY(frame_enqueue(s->f, prepared, &s->cancel));
        if (segment->last) break;
        CLG_TRY(next_segment(r, &segment));
        if (atomic_load(&s->cancel)) return error_set(CLG_ERROR_CANCELLED, "the run was cancelled");
    }
    *out_last = segment;
    return CLG_OK;
}

/* ---- profile --------------------------------------------------------------------------------------------------- */

static void fill_profile(const clg_session *s, const plan_step *what, clg_step_profile *out)
{
    const node *n = what->node < s->e->g->n_nodes ? &s->e->g->nodes[what->node] : NULL;
    static const char *const kinds[] = {"", "clblast", "copy", "fill"};
    out->node = n ? n->name : "";
    out->op_type = n ? n->op_type : "";
    out->kernel =
        what->what->kind == STEP_KERNEL ? what->what->kernel.entry : kinds[what->what->kind];
    out->flops += what->what->flops;
    out->bytes += what->what->bytes;
}

/* Samples of one step (CLBlast launches several kernels) are added up. */
static clg_status keep_profile(clg_session *s)
{
    ocl_sample *samples;
    size_t n;
    CLG_TRY(ocl_queue_take_samples(s->f->queue, &samples, &n));
    memory_free(s->profile);
    s->n_profile = 0;
    s->profile = memory_zalloc(s->f->n_ran + 1, sizeof *s->profile);
    if (!s->profile) {
        memory_free(samples);
        return CLG_ERROR_OUT_OF_HOST_MEMORY;
    }
    uint64_t first = UINT64_MAX;
    for (size_t i = 0; i < n; i++)
        if (samples[i].tag < s->f->n_ran && samples[i].start_ns < first)
            first = samples[i].start_ns;
    for (size_t i = 0; i < n; i++) {
        const ocl_sample *x = &samples[i];
        if (x->tag >= s->f->n_ran) continue;
        clg_step_profile *out = &s->profile[x->tag];
        if (out->duration_us == 0) {
            fill_profile(s, s->f->ran[x->tag].what, out);
            out->start_us = (double)(x->start_ns - first) * 1e-3;
        }
        out->duration_us += (double)(x->end_ns - x->start_ns) * 1e-3;
        out->queued_us +=
            x->start_ns > x->queued_ns ? (double)(x->start_ns - x->queued_ns) * 1e-3 : 0;
    }
    s->n_profile = s->f->n_ran;
    memory_free(samples);
    return CLG_OK;
}

/* ---- whole runs -------------------------------------------------------------------------------------------------- */

static clg_status run_all(run *r)
{
    clg_session *s = r->s;
    const plan_segment *last = NULL;
    clg_status status = find_plan(r);
    s->f->n_ran = 0;
    for (size_t i = 0; i < s->n_inputs && status == CLG_OK; i++) status = bind_input(r, i);
    if (status == CLG_OK) status = run_segments(r, &last);
    ocl_queue_set_tag(s->f->queue, UINT32_MAX);
    if (r->mode == RUN_FOR_REAL)
        for (size_t i = 0; i < s->n_outputs && status == CLG_OK; i++)
            status = fetch_output(r, last, i);
    if (status == CLG_OK) status = read_fault(r, last);
    /* Whatever happened, nothing may be under way when this returns: host memory is being read and written. */
    clg_status finished = ocl_queue_finish(s->f->queue);
    if (status == CLG_OK) status = finished;
    if (status == CLG_OK) status = check_fault(r);
    if (status == CLG_OK && s->e->context->profiling) status = keep_profile(s);
    if (status != CLG_OK || r->mode == RUN_ON_ZEROS) return status;
    for (size_t i = 0; i < s->n_outputs && status == CLG_OK; i++)
        status = publish_output(r, last, i);
    plan_free(s->ran);
    s->ran = plan_retain(r->p);
    return status;
}

static clg_status run_begin(clg_session *s, run_mode mode, run *out_run)
{
    *out_run = (run){.s = s, .mode = mode};
    out_run->facts = memory_zalloc(s->n_inputs + 1, sizeof *out_run->facts);
    out_run->pending = memory_zalloc(s->n_outputs + 1, sizeof *out_run->pending);
    return out_run->facts && out_run->pending ? CLG_OK : CLG_ERROR_OUT_OF_HOST_MEMORY;
}

static void run_end(run *r)
{
    for (size_t i = 0; i < r->s->n_inputs; i++) {
        tensor_free(r->s->inputs[i].content);
        r->s->inputs[i].content = NULL;
    }
    for (size_t i = 0; r->pending && i < r->s->n_outputs; i++) tensor_free(r->pending[i]);
    plan_free(r->p);
    memory_free(r->facts);
    memory_free(r->pending);
}

static clg_status run_in_mode(clg_session *s, run_mode mode)
{
    run r;
    clg_status status = run_begin(s, mode, &r);
    if (status == CLG_OK) {
        if (mode == RUN_FOR_REAL)
            for (size_t i = 0; i < s->n_outputs; i++) s->outputs[i].valid = false;
        status = run_all(&r);
    }
    run_end(&r);
    ocl_programs_store(s->e->context->ocl);
    return status;
}

clg_status session_run(clg_session *s) { return run_in_mode(s, RUN_FOR_REAL); }

clg_status session_plan(clg_session *s, plan **out_plan)
{
    run r;
    *out_plan = NULL;
    clg_status status = run_begin(s, RUN_ON_ZEROS, &r);
    if (status == CLG_OK) status = find_plan(&r);
    if (status == CLG_OK) *out_plan = plan_retain(r.p);
    run_end(&r);
    return status;
}

/* ---- preparing -------------------------------------------------------------------------------------------------- */

static clg_status build_programs(clg_session *s, const plan *p, clg_progress_callback progress,
                                 void *user)
{
    const plan_segment *root = p->root;
    size_t n = 0;
    const kernel_ref **refs = memory_zalloc(root->n_steps + 1, sizeof *refs);
    if (!refs) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; i < root->n_steps; i++)
        if (root->steps[i].what->kind == STEP_KERNEL) refs[n++] = &root->steps[i].what->kernel;
    clg_status status = ocl_programs_build(s->e->context->ocl, refs, n, progress, user);
    memory_free(refs);
    return status;
}

clg_status session_prepare(clg_session *s, clg_progress_callback progress, void *user)
{
    plan *p;
    CLG_TRY(session_plan(s, &p));
    clg_status status = build_programs(s, p, progress, user);
    plan_free(p);
    if (status != CLG_OK) return status;
    if (progress && !progress(user, "first run", 0, 1))
        return error_set(CLG_ERROR_CANCELLED, "the preparation was cancelled");
    return run_in_mode(s, RUN_ON_ZEROS);
}
