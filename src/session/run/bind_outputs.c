/* SPDX-License-Identifier: Apache-2.0
 *
 * Binds the outputs of a run: gives them memory before the steps, enqueues their downloads to the
 * host after the steps, and then creates the values that the session returns.
 */
#include "session/run/run_state.h"

#include <string.h>

static const char *output_name(const clg_session *s, size_t i)
{
    return s->exec->graph->values[s->exec->graph->outputs[i]].name;
}

/* Returns the device buffer that the caller bound to output i; NULL if there is none. */
static ocl_buffer *bound_device_memory(const clg_session *s, size_t i)
{
    const clg_value *bound = s->outputs[i].bound;
    return bound ? context_value_buffer(s->exec->context, bound) : NULL;
}

/* ---- before a segment ------------------------------------------------------------------------ */

static clg_status check_bound(const clg_session *s, size_t i, const plan_port *port)
{
    char want[SHAPE_TEXT_BYTES], got[SHAPE_TEXT_BYTES];
    const clg_value *bound = s->outputs[i].bound;
    if (bound && port->kind != CLG_VALUE_TENSOR)
        return error_set(CLG_ERROR_SHAPE,
                         "output '%s' is not a tensor; no value can be bound to it",
                         output_name(s, i));
    if (!bound || (bound->dtype == port->dtype && shape_equal(&bound->dims, &port->dims)))
        return CLG_OK;
    return error_set(CLG_ERROR_SHAPE, "output '%s' is %s%s; the value bound to it is %s%s",
                     output_name(s, i), dtype_name(port->dtype), shape_text(&port->dims, want),
                     dtype_name(bound->dtype), shape_text(&bound->dims, got));
}

static bool overlap(const ocl_buffer *a, size_t a_offset, size_t a_bytes, const ocl_buffer *b,
                    size_t b_offset, size_t b_bytes)
{
    return ocl_buffer_handle(a) == ocl_buffer_handle(b) && a_offset < b_offset + b_bytes &&
           b_offset < a_offset + a_bytes;
}

/* Returns the index, at least `first`, of an input whose memory overlaps this memory, or
 * SIZE_MAX. */
static size_t input_within(const run_state *r, size_t first, const ocl_buffer *b,
                           size_t offset_bytes, size_t size_bytes)
{
    for (size_t k = first; k < r->session->n_inputs; k++) {
        const frame_memory *m = &r->session->frame->inputs[k];
        size_t bytes;
        if (m->buffer && tensor_bytes_of(r->facts[k].dtype, &r->facts[k].dims, &bytes) == CLG_OK &&
            overlap(b, offset_bytes, size_bytes, m->buffer, m->offset_bytes, bytes))
            return k;
    }
    return SIZE_MAX;
}

/* Returns whether step p accesses the memory of the input or output `index`. */
static bool step_uses(const plan_step *p, place_kind kind, size_t index)
{
    for (uint32_t k = 0; k < p->n_buffers; k++)
        if (p->buffers[k].kind == kind && p->buffers[k].index == index) return true;
    return false;
}

/* Returns whether output i may lie on an input: the plan is one segment, in which one elementwise
 * step writes the output, no other reads the input, and no other output is in its memory. */
static bool may_share(const run_state *r, const plan_segment *segment, size_t i, size_t input)
{
    const clg_value *bound = r->session->outputs[i].bound;
    const frame_memory *m = &r->session->frame->inputs[input];
    const plan_port *port = &segment->outputs[i];
    if (!segment->last || segment->depth > 0 || bound->offset_bytes != m->offset_bytes ||
        port->place.kind != PLACE_OUTPUT || bound->dtype != r->facts[input].dtype ||
        !shape_equal(&bound->dims, &r->facts[input].dims))
        return false;
    for (size_t k = 0; k < segment->n_outputs; k++)
        if (segment->outputs[k].place.kind == PLACE_INPUT &&
            segment->outputs[k].place.index == input)
            return false;
    for (size_t k = 0; k < segment->n_steps; k++) {
        const plan_step *p = &segment->steps[k];
        const bool writes = step_uses(p, PLACE_OUTPUT, i), reads = step_uses(p, PLACE_INPUT, input);
        if ((writes || reads) && !(writes && p->what->elementwise)) return false;
    }
    return true;
}

/* Rejects memory b for output i if it overlaps an input, other than may_share allows, or an earlier
 * output: kernels may read inputs after the first outputs are written. */
static clg_status check_overlaps(const run_state *r, const plan_segment *segment, size_t i,
                                 const ocl_buffer *b)
{
    const clg_session *s = r->session;
    const clg_value *bound = s->outputs[i].bound;
    size_t input = input_within(r, 0, b, bound->offset_bytes, bound->size_bytes);
    while (input != SIZE_MAX && may_share(r, segment, i, input))
        input = input_within(r, input + 1, b, bound->offset_bytes, bound->size_bytes);
    const char *with = input == SIZE_MAX ? NULL : session_input_port(s, input)->name;
    for (size_t k = 0; k < i && !with; k++) {
        const ocl_buffer *other = bound_device_memory(s, k);
        const clg_value *v = s->outputs[k].bound;
        if (other && overlap(b, bound->offset_bytes, bound->size_bytes, other, v->offset_bytes,
                             v->size_bytes))
            with = output_name(s, k);
    }
    if (!with) return CLG_OK;
    clg_status status =
        error_set(CLG_ERROR_INVALID_ARGUMENT, "output '%s' is bound to memory that '%s' uses",
                  output_name(s, i), with);
    error_hint("state that one run hands to the next is linked: clg_session_link");
    return status;
}

/* Reserves the frame's own memory for an output; allocates anew if the current memory is that of an
 * input of this run. */
static clg_status reserve_output(run_state *r, size_t i, size_t size_bytes)
{
    frame *f = r->session->frame;
    frame_memory *m = &f->outputs[i];
    if (m->buffer && !m->foreign &&
        input_within(r, 0, m->buffer, 0, ocl_buffer_size(m->buffer)) != SIZE_MAX)
        frame_drop(f, m);
    return frame_reserve(f, m, size_bytes,
                         r->session->outputs[i].impl == OUTPUT_LEFT ? OCL_BUFFER_DEVICE
                                                                    : OCL_BUFFER_HOST_VISIBLE);
}

/* Releases memory that runs used which were not in place. */
static void drop_unused(frame *f, frame_memory *m)
{
    if (m->buffer) frame_drop(f, m);
}

clg_status run_bind_outputs(run_state *r, const plan_segment *segment)
{
    clg_session *s = r->session;
    for (size_t i = 0; i < s->n_outputs; i++) {
        const clg_value *bound = r->mode == RUN_FOR_REAL ? s->outputs[i].bound : NULL;
        size_t size_bytes = segment->output_bytes[i];
        if (bound && segment->last) CLG_TRY(check_bound(s, i, &segment->outputs[i]));
        if (segment->last && segment->outputs[i].place.kind == PLACE_INPUT)
            drop_unused(s->frame, &s->frame->outputs[i]);
        if (size_bytes == PLAN_NO_OUTPUT) continue;
        if (bound && bound->size_bytes != size_bytes)
            return error_set(CLG_ERROR_SHAPE,
                             "output '%s' has %zu bytes; the value bound to it has %zu",
                             output_name(s, i), size_bytes, bound->size_bytes);
        ocl_buffer *b = bound ? bound_device_memory(s, i) : NULL;
        if (b) {
            CLG_TRY(check_overlaps(r, segment, i, b));
            frame_set_foreign(s->frame, &s->frame->outputs[i], b, bound->offset_bytes);
        } else {
            CLG_TRY(reserve_output(r, i, size_bytes));
        }
    }
    return CLG_OK;
}

/* ---- after the last segment ------------------------------------------------------------------ */

/* Sets *out_tensor to a host tensor for output i: that of the last run if dtype and shape are equal
 * and the caller has no reference to it, else a new one. */
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

/* Uploads an output that the host computed: to the caller's buffer, or to the memory that becomes
 * the linked input's. */
static clg_status upload_known(run_state *r, size_t i, const tensor *known)
{
    const clg_session *s = r->session;
    const clg_value *bound = s->outputs[i].bound;
    frame_memory *m = &s->frame->outputs[i];
    if (bound)
        return ocl_queue_write(s->frame->queue, bound_device_memory(s, i), bound->offset_bytes,
                               known->data, known->size_bytes, false);
    CLG_TRY(frame_reserve(s->frame, m, known->size_bytes, OCL_BUFFER_HOST_VISIBLE));
    return ocl_queue_write(s->frame->queue, m->buffer, m->offset_bytes, known->data,
                           known->size_bytes, false);
}

/* ---- sequences, optionals, maps -------------------------------------------------------------- */

/* Creates a host value for a tensor port. A tensor that the planner computed is copied, since
 * callers may write to it; strings are shared. */
static clg_status make_tensor(const plan_port *port, clg_value **out_value)
{
    tensor *t;
    if (port->known && port->dtype == CLG_STRING)
        return value_create_host((tensor *)port->known, out_value);
    CLG_TRY(tensor_create(port->dtype, &port->dims, &t));
    if (port->known && t->size_bytes) memcpy(t->data, port->known->data, t->size_bytes);
    clg_status status = value_create_host(t, out_value);
    tensor_free(t);
    return status;
}

static void release_rows(void *rows) { tensor_free(rows); }

/* Creates a value that views row i of a [N,C] tensor and keeps the tensor alive. */
static clg_status make_row(tensor *rows, int64_t i, clg_value **out_value)
{
    const shape dims = {.rank = 1, .dims = {rows->dims.dims[1]}};
    const size_t row_bytes = (size_t)dims.dims[0] * dtype_size(rows->dtype);
    tensor *t;
    CLG_TRY(tensor_wrap(rows->dtype, &dims, (char *)rows->data + (size_t)i * row_bytes,
                        release_rows, rows, &t));
    tensor_retain(rows);
    clg_status status = value_create_host(t, out_value);
    tensor_free(t);
    return status;
}

/* Appends the map of keys and row i to a sequence. */
static clg_status append_map(clg_value *whole, clg_value *keys, tensor *rows, int64_t i)
{
    clg_value *values, *map = NULL;
    CLG_TRY(make_row(rows, i, &values));
    clg_status status = value_create_map(keys, values, &map);
    if (status == CLG_OK) status = value_append(whole, map);
    value_free(map);
    value_free(values);
    return status;
}

/* Creates a sequence of maps with shared keys, one for each row of a [N,C] tensor of values; or a
 * single map if the values have shape [C]. */
static clg_status make_maps(const plan_port *port, clg_value **out_value)
{
    clg_value *keys = NULL, *values = NULL, *whole = NULL;
    clg_status status = make_tensor(&port->items[VALUE_KEYS], &keys);
    if (status == CLG_OK) status = make_tensor(&port->items[VALUE_VALUES], &values);
    const bool is_one = port->items[VALUE_VALUES].dims.rank == 1;
    if (status == CLG_OK)
        status = is_one ? value_create_map(keys, values, &whole)
                        : value_create_sequence(port->dtype, &whole);
    for (int64_t i = 0; status == CLG_OK && !is_one && i < values->dims.dims[0]; i++)
        status = append_map(whole, keys, values->host, i);
    value_free(keys);
    value_free(values);
    if (status == CLG_OK)
        *out_value = whole;
    else
        value_free(whole);
    return status;
}

/* Creates the host value of a port; its tensors are uninitialised unless the planner knows them. */
static clg_status make_whole(const plan_port *port, clg_value **out_value)
{
    *out_value = NULL;
    if (port->kind == CLG_VALUE_TENSOR) return make_tensor(port, out_value);
    if (port->kind == CLG_VALUE_MAP) return make_maps(port, out_value);
    clg_value *whole = NULL, *item = NULL;
    clg_status status = CLG_OK;
    if (port->kind == CLG_VALUE_OPTIONAL) {
        if (port->n_items) status = make_whole(&port->items[0], &item);
        if (status == CLG_OK) status = value_create_optional(port->dtype, item, out_value);
        value_free(item);
        return status;
    }
    CLG_TRY(value_create_sequence(port->dtype, &whole));
    for (size_t i = 0; i < port->n_items && status == CLG_OK; i++) {
        status = make_whole(&port->items[i], &item);
        if (status == CLG_OK) status = value_append(whole, item);
        value_free(item);
        item = NULL;
    }
    if (status == CLG_OK)
        *out_value = whole;
    else
        value_free(whole);
    return status;
}

static clg_status read_tensor(run_state *r, const plan_port *port, void *to, size_t size_bytes)
{
    bound_buffer where;
    if (port->known || size_bytes == 0) return CLG_OK;
    CLG_TRY(frame_resolve(r->session->frame, r->segment, &port->place, &where));
    return ocl_queue_read(r->session->frame->queue, where.buffer, (size_t)where.offset_bytes, to,
                          size_bytes, false);
}

/* Reads the values of all maps in one transfer: they are rows of one tensor. */
static clg_status read_maps(run_state *r, const plan_port *port, const clg_value *v)
{
    if (value_length(v) == 0 || port->items[VALUE_VALUES].known) return CLG_OK;
    const clg_value *first = value_get(value_get(v, 0), VALUE_VALUES);
    return read_tensor(r, &port->items[VALUE_VALUES], value_host_data(first),
                       first->size_bytes * value_length(v));
}

/* Enqueues the reads of all tensors in v, a value made by make_whole. */
static clg_status read_whole(run_state *r, const plan_port *port, clg_value *v)
{
    if (port->kind == CLG_VALUE_MAP) return read_maps(r, port, v);
    for (size_t i = 0; i < port->n_items; i++)
        CLG_TRY(read_whole(r, &port->items[i], value_get(v, i)));
    return port->kind == CLG_VALUE_TENSOR ? read_tensor(r, port, value_host_data(v), v->size_bytes)
                                          : CLG_OK;
}

static clg_status fetch_whole(run_state *r, size_t i, const plan_port *port)
{
    if (r->session->outputs[i].link != SIZE_MAX)
        return error_set(CLG_ERROR_INVALID_ARGUMENT,
                         "output '%s' is not a tensor and cannot feed an input",
                         output_name(r->session, i));
    if (r->session->outputs[i].impl != OUTPUT_FETCHED)
        return CLG_OK; /* a stream does not use such an output */
    CLG_TRY(make_whole(port, &r->wholes[i]));
    return read_whole(r, port, r->wholes[i]);
}

/* Returns the memory that the clg_session_call in progress gives for output i; NULL if there is
 * none, or it is too small. */
static void *call_memory(const session_output *out, size_t size_bytes)
{
    const bool fits = out->call && !out->bound && size_bytes <= out->call->capacity_bytes;
    return fits ? out->call->data : NULL;
}

/* Reads output i into that memory. */
static clg_status read_into_call(run_state *r, size_t i, const plan_port *port, size_t size_bytes)
{
    clg_session *s = r->session;
    session_output *out = &s->outputs[i];
    const frame_memory *m = port->place.kind == PLACE_INPUT ? &s->frame->inputs[port->place.index]
                                                            : &s->frame->outputs[i];
    out->in_call_data = true;
    if (port->known) {
        memcpy(out->call->data, port->known->data, size_bytes);
        return CLG_OK;
    }
    return ocl_queue_read(s->frame->queue, m->buffer, m->offset_bytes, out->call->data, size_bytes,
                          false);
}

/* Fetches output i. One that the host computed is copied, or uploaded if it belongs on the device;
 * one on the device is read, mapped or left there, as the caller wants it. */
static clg_status fetch_output(run_state *r, size_t i)
{
    clg_session *s = r->session;
    session_output *out = &s->outputs[i];
    const plan_port *port = &r->segment->outputs[i];
    const frame_memory *m = &s->frame->outputs[i];
    bool stays = out->link != SIZE_MAX || bound_device_memory(s, i);
    size_t size_bytes;
    if (port->kind != CLG_VALUE_TENSOR) return fetch_whole(r, i, port);
    if (port->dtype == CLG_DTYPE_NONE) return CLG_OK;
    CLG_TRY(tensor_bytes_of(port->dtype, &port->dims, &size_bytes));
    const bool is_called = port->dtype != CLG_STRING && call_memory(out, size_bytes);
    if (is_called && size_bytes) CLG_TRY(read_into_call(r, i, port, size_bytes));
    if (stays) return port->known ? upload_known(r, i, port->known) : CLG_OK;
    if (size_bytes == 0 || is_called) return CLG_OK;
    if (out->impl != OUTPUT_FETCHED) {
        if (port->known || out->impl == OUTPUT_LEFT) return CLG_OK;
        return ocl_queue_map(s->frame->queue, m->buffer, m->offset_bytes, size_bytes, false, false,
                             &out->mapped);
    }
    if (port->known && port->dtype == CLG_STRING) {
        r->pending[i] = tensor_retain((tensor *)port->known);
        return CLG_OK;
    }
    void *to = out->bound ? value_host_data(out->bound) : NULL;
    if (!to) {
        CLG_TRY(host_tensor(s, i, port, &r->pending[i]));
        to = r->pending[i]->data;
    }
    if (port->known) {
        memcpy(to, port->known->data, size_bytes);
        return CLG_OK;
    }
    return ocl_queue_read(s->frame->queue, m->buffer, m->offset_bytes, to, size_bytes, false);
}

clg_status run_fetch_outputs(run_state *r)
{
    for (size_t i = 0; i < r->session->n_outputs; i++) CLG_TRY(fetch_output(r, i));
    return CLG_OK;
}

/* ---- after the wait -------------------------------------------------------------------------- */

/* Creates the host value of output i. Separate from publish_output, since it can fail: all outputs
 * are published or none. */
static clg_status make_host_value(run_state *r, size_t i)
{
    session_output *out = &r->session->outputs[i];
    tensor *t = r->pending[i];
    if (out->host && t && out->host->host == t) return CLG_OK;
    value_free(out->host);
    out->host = r->wholes[i];
    r->wholes[i] = NULL;
    return t ? value_create_host(t, &out->host) : CLG_OK;
}

/* Makes output i of this run available, and hands its memory to the input that is linked to it,
 * unless it was computed there. */
static void publish_output(run_state *r, size_t i)
{
    clg_session *s = r->session;
    session_output *out = &s->outputs[i];
    const plan_port *port = &r->segment->outputs[i];
    out->dtype = port->kind == CLG_VALUE_TENSOR ? port->dtype : CLG_DTYPE_NONE;
    out->dims = port->dims;
    tensor_free(out->known);
    out->known = tensor_retain((tensor *)port->known);
    out->valid = port->kind != CLG_VALUE_TENSOR || port->dtype != CLG_DTYPE_NONE;
    if (out->link == SIZE_MAX) return;
    session_input *in = &s->inputs[out->link];
    if (port->place.kind != PLACE_INPUT) /* else it is in the input's memory */
        frame_swap(s->frame, &s->frame->outputs[i], &s->frame->inputs[out->link]);
    in->carried = true;
    in->filled = false;
    in->carried_dims = port->dims;
    value_free(in->value);
    in->value = NULL;
}

clg_status run_publish_outputs(run_state *r)
{
    for (size_t i = 0; i < r->session->n_outputs; i++) CLG_TRY(make_host_value(r, i));
    for (size_t i = 0; i < r->session->n_outputs; i++) publish_output(r, i);
    return CLG_OK;
}
