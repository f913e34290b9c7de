/* SPDX-License-Identifier: Apache-2.0
 *
 * Binds the inputs of a run: determines their shapes and, where shapes depend on them, their
 * elements; finds the plan for these; then places the inputs in device memory.
 */
#include "session/run/run_state.h"

#include <string.h>

/* Returns whether this is a preparation and input i has a shape set by clg_session_set_input_shape,
 * which then replaces its value. */
static bool stands_for_shape(const run_state *r, size_t i)
{
    const session_input *in = &r->session->inputs[i];
    return r->mode == RUN_ON_ZEROS && in->hint.rank != RANK_UNKNOWN && !in->carried && !in->filled;
}

/* Sets *out_dims to the shape of input i in this run, the first that applies: that of the linked
 * output; of the mapped memory; in a preparation, the one set for it; of its value; in a
 * preparation, the declared one with unknown dimensions as 1. */
static clg_status input_dims(const run_state *r, size_t i, shape *out_dims)
{
    const session_input *in = &r->session->inputs[i];
    const value *port = session_input_port(r->session, i);
    if (in->carried) {
        *out_dims = in->carried_dims;
        return session_check_shape(r->session, i, out_dims);
    }
    if (in->filled)
        *out_dims = in->mapped_dims;
    else if (stands_for_shape(r, i))
        *out_dims = in->hint;
    else if (in->value)
        *out_dims = in->value->dims;
    else if (r->mode == RUN_FOR_REAL)
        return error_set(CLG_ERROR_NOT_FOUND, "input '%s' is not set", port->name);
    else {
        *out_dims = port->dims;
        if (out_dims->rank == RANK_UNKNOWN) out_dims->rank = 0;
        for (int d = 0; d < out_dims->rank; d++)
            if (out_dims->dims[d] == DIM_UNKNOWN) out_dims->dims[d] = 1;
    }
    return CLG_OK;
}

static clg_dtype input_dtype(const run_state *r, size_t i)
{
    const session_input *in = &r->session->inputs[i];
    return in->value ? in->value->dtype : session_input_port(r->session, i)->dtype;
}

/* Copies the elements of input i to `to`, which holds zeros; they stay if the input has no
 * value. */
static clg_status read_content(run_state *r, size_t i, void *to, size_t size_bytes)
{
    const session_input *in = &r->session->inputs[i];
    const frame_memory *m = &r->session->frame->inputs[i];
    if (in->mapped) {
        memcpy(to, in->mapped, size_bytes);
        return CLG_OK;
    }
    if (in->carried || in->filled)
        return ocl_queue_read(r->session->frame->queue, m->buffer, m->offset_bytes, to, size_bytes,
                              true);
    return in->value && !stands_for_shape(r, i) ? value_read(in->value, to, size_bytes) : CLG_OK;
}

/* Fetches the elements of an input on which shapes depend, or of strings, to the host, and adds
 * them to the input's fact. */
static clg_status know_content(run_state *r, size_t i)
{
    session_input *in = &r->session->inputs[i];
    tensor *t;
    if (in->value && r->facts[i].dtype == CLG_STRING && !stands_for_shape(r, i)) {
        in->content = tensor_retain(in->value->host);
        r->facts[i].known = in->content;
        return CLG_OK;
    }
    CLG_TRY(tensor_create(r->facts[i].dtype, &r->facts[i].dims, &t));
    const bool reads = t->size_bytes > 0 && t->dtype != CLG_STRING;
    clg_status status = reads ? read_content(r, i, t->data, t->size_bytes) : CLG_OK;
    if (status != CLG_OK) {
        tensor_free(t);
        return status;
    }
    tensor_free(in->content);
    in->content = t;
    r->facts[i].known = t;
    return CLG_OK;
}

/* Sets *out to the fact of a value. Strings, and keys and values of maps, are on the host, and so
 * are known to the planner. in_map: v is the keys or values of a map. */
static clg_status fact_of(run_state *r, const clg_value *v, bool in_map, value_fact *out)
{
    const size_t n = value_length(v);
    const bool is_map = v->kind == CLG_VALUE_MAP;
    const bool is_known = in_map || (v->kind == CLG_VALUE_TENSOR && v->dtype == CLG_STRING);
    *out = (value_fact){.kind = v->kind,
                        .dtype = v->dtype,
                        .dims = v->dims,
                        .known = is_known ? v->host : NULL,
                        .key_dtype = is_map ? value_get(v, VALUE_KEYS)->dtype : CLG_DTYPE_NONE};
    if (v->kind == CLG_VALUE_TENSOR || n == 0) return CLG_OK;
    value_fact *items = arena_alloc(&r->memory, n, sizeof *items);
    if (!items) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; i < n; i++) CLG_TRY(fact_of(r, value_get(v, i), is_map, &items[i]));
    out->items = items;
    out->n_items = n;
    return CLG_OK;
}

/* Sets the fact of input i, a sequence, optional or map; an empty one in a preparation without a
 * value. */
static clg_status aggregate_fact(run_state *r, size_t i)
{
    const value *port = session_input_port(r->session, i);
    const clg_value *v = r->session->inputs[i].value;
    if (!v && r->mode == RUN_FOR_REAL)
        return error_set(CLG_ERROR_NOT_FOUND, "input '%s' is not set", port->name);
    r->facts[i] = (value_fact){.kind = port->kind, .dtype = port->dtype};
    return v ? fact_of(r, v, false, &r->facts[i]) : CLG_OK;
}

/* Returns whether input k reads memory that overlaps that of v, a value in device memory: by its
 * own value, or as state that a run left. */
static bool reads_memory_of(const run_state *r, size_t k, const clg_value *v)
{
    const clg_session *s = r->session;
    const device_context *context = s->exec->context;
    const session_input *in = &s->inputs[k];
    const frame_memory *m = in->carried || in->filled ? &s->frame->inputs[k] : NULL;
    const ocl_buffer *b = m           ? m->buffer
                          : in->value ? context_value_buffer(context, in->value)
                                      : NULL;
    if (!b || ocl_buffer_handle(b) != ocl_buffer_handle(context_value_buffer(context, v)))
        return false;
    const size_t start = m ? m->offset_bytes : in->value->offset_bytes,
                 end = m ? ocl_buffer_size(b) : start + in->value->size_bytes;
    return start < v->offset_bytes + v->size_bytes && v->offset_bytes < end;
}

/* Returns whether the caller bound output `output` to the very memory of input i, its value in
 * device memory, which no other input uses. */
static bool is_bound_onto(const run_state *r, size_t i, uint32_t output)
{
    const clg_session *s = r->session;
    const device_context *context = s->exec->context;
    const clg_value *v = s->inputs[i].value, *bound = s->outputs[output].bound;
    const ocl_buffer *b = v && bound ? context_value_buffer(context, bound) : NULL;
    const ocl_buffer *own = b ? context_value_buffer(context, v) : NULL;
    if (!own || ocl_buffer_handle(own) != ocl_buffer_handle(b) ||
        v->offset_bytes != bound->offset_bytes || v->size_bytes != bound->size_bytes)
        return false;
    for (size_t k = 0; k < s->n_inputs; k++)
        if (k != i && reads_memory_of(r, k, v)) return false;
    return true;
}

/* Requests the outputs that may be computed in the memory of inputs: linked ones, whose memory the
 * input's is afterwards anyway, and those that the caller bound there. */
static void request_in_place(run_state *r)
{
    const clg_session *s = r->session;
    for (size_t i = 0; i < s->n_inputs; i++) {
        const uint32_t output = s->exec->in_place[i];
        const bool wanted =
            output != PLAN_APART && (s->inputs[i].link == output || is_bound_onto(r, i, output));
        r->in_place[i] = wanted ? output : PLAN_APART;
    }
}

clg_status run_find_plan(run_state *r)
{
    clg_session *s = r->session;
    request_in_place(r);
    for (size_t i = 0; i < s->n_inputs; i++) {
        if (session_input_port(s, i)->kind != CLG_VALUE_TENSOR) {
            CLG_TRY(aggregate_fact(r, i));
            continue;
        }
        r->facts[i].dtype = input_dtype(r, i);
        CLG_TRY(input_dims(r, i, &r->facts[i].dims));
    }
    for (size_t tries = 0; tries <= s->n_inputs && !r->plan; tries++) {
        for (size_t i = 0; i < s->n_inputs; i++)
            if (!r->facts[i].known &&
                (r->facts[i].dtype == CLG_STRING || exec_needs_content(s->exec, i)))
                CLG_TRY(know_content(r, i));
        const exec_request wanted = {r->facts, r->in_place, r->mode == RUN_ON_ZEROS};
        CLG_TRY((r->is_dry ? exec_plan_dry : exec_plan)(s->exec, wanted, &r->plan));
    }
    return r->plan ? CLG_OK
                   : error_set(CLG_ERROR_INTERNAL, "planning requests contents without end");
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* Copies a device value of another context to the input's memory through the host. */
static clg_status bind_foreign_context(run_state *r, size_t i, clg_value *v, size_t size_bytes)
{
    clg_value *host;
    frame_memory *m = &r->session->frame->inputs[i];
    CLG_TRY(value_to_host(v, &host));
    clg_status status = frame_reserve(r->session->frame, m, size_bytes, OCL_BUFFER_HOST_VISIBLE);
    if (status == CLG_OK && size_bytes)
        status = ocl_queue_write(r->session->frame->queue, m->buffer, 0, value_host_data(host),
                                 size_bytes, true);
    value_free(host);
    return status;
}

/* Gives input i memory filled with zeros. */
static clg_status bind_zeros(run_state *r, size_t i, size_t size_bytes)
{
    static const uint8_t zero[4] = {0};
    frame_memory *m = &r->session->frame->inputs[i];
    CLG_TRY(frame_reserve(r->session->frame, m, size_bytes, OCL_BUFFER_HOST_VISIBLE));
    size_t padded = size_bytes / 4 * 4;
    if (padded) CLG_TRY(ocl_queue_fill(r->session->frame->queue, m->buffer, 0, padded, zero, 4));
    return size_bytes > padded ? ocl_queue_fill(r->session->frame->queue, m->buffer, padded,
                                                size_bytes - padded, zero, 1)
                               : CLG_OK;
}

/* Uploads the tensors of a host value one after another, at the offsets that aggregate_offset
 * gives. */
static clg_status write_items(run_state *r, size_t i, const clg_value *v, const value_fact *f,
                              size_t *end_bytes)
{
    size_t offset;
    if (f->known) return CLG_OK;
    if (f->kind != CLG_VALUE_TENSOR) {
        for (size_t k = 0; k < f->n_items; k++)
            CLG_TRY(write_items(r, i, value_get(v, k), &f->items[k], end_bytes));
        return CLG_OK;
    }
    CLG_TRY(aggregate_offset(f, end_bytes, &offset));
    return v->size_bytes && f->dtype != CLG_STRING
               ? ocl_queue_write(r->session->frame->queue, r->session->frame->inputs[i].buffer,
                                 offset, value_host_data(v), v->size_bytes, true)
               : CLG_OK;
}

static clg_status bind_aggregate(run_state *r, size_t i)
{
    clg_value *host;
    size_t size_bytes, end_bytes = 0;
    CLG_TRY(aggregate_bytes(&r->facts[i], &size_bytes));
    CLG_TRY(frame_reserve(r->session->frame, &r->session->frame->inputs[i], size_bytes,
                          OCL_BUFFER_HOST_VISIBLE));
    if (!r->session->inputs[i].value) return CLG_OK;
    CLG_TRY(value_to_host(r->session->inputs[i].value, &host));
    clg_status status = write_items(r, i, host, &r->facts[i], &end_bytes);
    value_free(host);
    return status;
}

/* Smaller inputs are copied. From this size on, a buffer over the caller's memory takes less time
 * than a command in the queue (decision 90). */
#define ZERO_COPY_BYTES ((size_t)64)

/* The smallest page: memory before an address, down to a multiple of this, can be read if the byte
 * at the address can. */
#define PAGE_BYTES 4096

/* Kernels of the SIMD class begin at any element, and read 4 bytes at a time of smaller ones;
 * others, and CLBlast, may read whole vectors from the start of a tensor on. See decision 57. */
bool run_reads_in_place(const session_exec *e, clg_dtype dtype, const void *data, size_t size_bytes,
                        size_t *out_before)
{
    const device_caps *caps = ocl_context_caps(e->context->ocl);
    const size_t device = caps->zero_copy_align_bytes, element = dtype_size(dtype);
    if (size_bytes < ZERO_COPY_BYTES || device == 0 || device > PAGE_BYTES) return false;
    size_t needed = element > 4 ? element : 4;
    if (e->options.kernel_class != CLG_KERNELS_SIMD) needed = caps->buffer_align_bytes;
    *out_before = (uintptr_t)data % device;
    return (uintptr_t)data % needed == 0;
}

/* Makes the memory of a value the memory of input i. */
static clg_status zero_copy_input(run_state *r, size_t i, const void *data, size_t size_bytes,
                                  size_t before)
{
    frame *f = r->session->frame;
    ocl_buffer *b;
    CLG_TRY(ocl_buffer_zero_copy(r->session->exec->context->ocl, (const char *)data - before,
                                 before + size_bytes, &b));
    frame_set_foreign(f, &f->inputs[i], b, before);
    f->inputs[i].is_zero_copy = true;
    ocl_buffer_free(b);
    return CLG_OK;
}

void run_return_inputs(run_state *r)
{
    frame *f = r->session->frame;
    for (size_t i = 0; i < r->session->n_inputs; i++)
        if (f->inputs[i].is_zero_copy) frame_drop(f, &f->inputs[i]);
}

static clg_status bind_input(run_state *r, size_t i)
{
    if (r->facts[i].kind != CLG_VALUE_TENSOR) return bind_aggregate(r, i);
    clg_session *s = r->session;
    session_input *in = &s->inputs[i];
    frame_memory *m = &s->frame->inputs[i];
    size_t size_bytes, before;
    if (in->mapped) return session_unmap(s, i);
    if (in->carried || in->filled || r->facts[i].dtype == CLG_STRING) return CLG_OK;
    CLG_TRY(tensor_bytes_of(r->facts[i].dtype, &r->facts[i].dims, &size_bytes));
    if (!in->value || stands_for_shape(r, i)) return bind_zeros(r, i, size_bytes);
    ocl_buffer *b = context_value_buffer(s->exec->context, in->value);
    if (b) {
        frame_set_foreign(s->frame, m, b, in->value->offset_bytes);
        return CLG_OK;
    }
    const void *data = value_host_data(in->value);
    if (!data) return bind_foreign_context(r, i, in->value, size_bytes);
    if (r->in_place[i] == PLAN_APART &&
        run_reads_in_place(s->exec, r->facts[i].dtype, data, size_bytes, &before))
        return zero_copy_input(r, i, data, size_bytes, before);
    CLG_TRY(frame_reserve(s->frame, m, size_bytes, OCL_BUFFER_HOST_VISIBLE));
    return ocl_queue_write(s->frame->queue, m->buffer, 0, data, size_bytes, false);
}

clg_status run_remap_inputs(run_state *r)
{
    clg_session *s = r->session;
    for (size_t i = 0; i < s->n_inputs; i++) {
        session_input *in = &s->inputs[i];
        ocl_buffer *b = s->frame->inputs[i].buffer;
        if (in->remaps && b)
            CLG_TRY(
                ocl_queue_map(s->frame->queue, b, 0, ocl_buffer_size(b), true, false, &in->mapped));
    }
    return CLG_OK;
}

/* Replaces the memory of input i, in which the run may compute an output, by a copy if anything
 * else has it: the caller, through a value, or a later run, in a preparation. */
static clg_status make_private(run_state *r, size_t i)
{
    frame *f = r->session->frame;
    const session_input *in = &r->session->inputs[i];
    frame_memory *m = &f->inputs[i];
    const bool is_real = r->mode == RUN_FOR_REAL, is_kept = !is_real && (in->carried || in->filled);
    size_t size_bytes;
    ocl_buffer *copy;
    if ((is_real && r->session->outputs[r->in_place[i]].bound) || !m->buffer ||
        (!is_kept && !m->foreign && !ocl_buffer_is_shared(m->buffer)))
        return CLG_OK;
    CLG_TRY(tensor_bytes_of(r->facts[i].dtype, &r->facts[i].dims, &size_bytes));
    if (is_kept && !r->kept) {
        r->kept = memory_zalloc(r->session->n_inputs + 1, sizeof *r->kept);
        if (!r->kept) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    }
    CLG_TRY(frame_create_buffer(f, size_bytes, size_bytes, OCL_BUFFER_HOST_VISIBLE, &copy));
    const clg_status status =
        size_bytes ? ocl_queue_copy(f->queue, m->buffer, m->offset_bytes, copy, 0, size_bytes)
                   : CLG_OK;
    if (status != CLG_OK) {
        ocl_buffer_free(copy);
        return status;
    }
    if (is_kept) {
        r->kept[i] = *m;
        *m = (frame_memory){0};
    }
    frame_drop(f, m);
    m->buffer = copy;
    return CLG_OK;
}

clg_status run_bind_inputs(run_state *r)
{
    for (size_t i = 0; i < r->session->n_inputs; i++) {
        CLG_TRY(bind_input(r, i));
        if (r->in_place[i] != PLAN_APART) CLG_TRY(make_private(r, i));
    }
    return CLG_OK;
}
