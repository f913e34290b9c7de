/* SPDX-License-Identifier: Apache-2.0
 *
 * Sets a session's inputs, links outputs to inputs, binds outputs to the caller's memory, and
 * returns results.
 */
#include "session/session.h"

#include "base/strbuf.h"

#include <string.h>

static const char *kind_words(clg_value_kind kind)
{
    static const char *const words[] = {"a tensor", "a sequence", "an optional", "a map"};
    return words[kind];
}

const value *session_input_port(const clg_session *s, size_t index)
{
    return &s->exec->graph->values[s->exec->graph->inputs[index]];
}

/* ---- names ----------------------------------------------------------------------------------- */

static clg_status not_found(const clg_session *s, const char *what, const char *name,
                            const value_id *ids, size_t n)
{
    strbuf list;
    strbuf_init(&list, 1024);
    for (size_t i = 0; i < n && i < 20; i++)
        strbuf_printf(&list, "%s'%s'", i ? ", " : "", s->exec->graph->values[ids[i]].name);
    clg_status status =
        error_set(CLG_ERROR_NOT_FOUND, "the model has no %s named '%s'; there %s: %s%s", what, name,
                  n == 1 ? "is" : "are", n ? strbuf_data(&list) : "none", n > 20 ? ", ..." : "");
    strbuf_deinit(&list);
    return status;
}

static bool find_name(const clg_session *s, const value_id *ids, size_t n, const char *name,
                      size_t *out_index)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(s->exec->graph->values[ids[i]].name, name) == 0) {
            *out_index = i;
            return true;
        }
    return false;
}

clg_status session_find_input(const clg_session *s, const char *name, size_t *out_index)
{
    const graph *g = s->exec->graph;
    return find_name(s, g->inputs, g->n_inputs, name, out_index)
               ? CLG_OK
               : not_found(s, "input", name, g->inputs, g->n_inputs);
}

clg_status session_find_output(const clg_session *s, const char *name, size_t *out_index)
{
    const graph *g = s->exec->graph;
    return find_name(s, g->outputs, g->n_outputs, name, out_index)
               ? CLG_OK
               : not_found(s, "output", name, g->outputs, g->n_outputs);
}

/* ---- inputs ---------------------------------------------------------------------------------- */

clg_status session_check_shape(const clg_session *s, size_t index, const shape *dims)
{
    const value *port = session_input_port(s, index);
    char want[SHAPE_TEXT_BYTES], got[SHAPE_TEXT_BYTES];
    if (port->dims.rank == RANK_UNKNOWN) return CLG_OK;
    if (port->dims.rank != dims->rank)
        return error_set(
            CLG_ERROR_SHAPE,
            "input '%s' has shape %s in the model, %s was given: the rank is %d, not %d",
            port->name, shape_text(&port->dims, want), shape_text(dims, got), dims->rank,
            port->dims.rank);
    int d = 0;
    while (d < dims->rank && !dims_differ(port->dims.dims[d], dims->dims[d])) d++;
    if (d == dims->rank) return CLG_OK;
    return error_set(CLG_ERROR_SHAPE,
                     "input '%s' has shape %s in the model, %s was given: dimension %d is %lld, "
                     "not %lld",
                     port->name, shape_text(&port->dims, want), shape_text(dims, got), d,
                     (long long)dims->dims[d], (long long)port->dims.dims[d]);
}

clg_status session_set_shape(clg_session *s, size_t index, const shape *dims)
{
    const value *port = session_input_port(s, index);
    if (port->kind != CLG_VALUE_TENSOR)
        return error_set(CLG_ERROR_INVALID_ARGUMENT, "input '%s' takes %s, which has no shape",
                         port->name, kind_words(port->kind));
    CLG_TRY(session_check_shape(s, index, dims));
    s->inputs[index].hint = *dims;
    return CLG_OK;
}

clg_status session_unmap(clg_session *s, size_t index)
{
    session_input *in = &s->inputs[index];
    if (!in->mapped) return CLG_OK;
    void *data = in->mapped;
    in->mapped = NULL;
    if (ocl_context_is_lost(s->exec->context->ocl)) {
        in->filled = false;
        return CLG_OK;
    }
    clg_status status = ocl_queue_unmap(s->frame->queue, s->frame->inputs[index].buffer, data);
    if (status != CLG_OK) in->filled = false; /* the memory is undefined now */
    return status;
}

/* Unsets an input; if it has the memory of a linked output, swaps it back. */
static void forget_input(clg_session *s, size_t index)
{
    session_input *in = &s->inputs[index];
    if (in->carried && in->link != SIZE_MAX)
        frame_swap(s->frame, &s->frame->inputs[index], &s->frame->outputs[in->link]);
    in->carried = in->filled = false;
    in->hint = shape_unknown();
    value_free(in->value);
    in->value = NULL;
}

/* Checks that all tensors in v have the dtype that the model declares, and keys of maps the
 * declared key dtype. */
static clg_status check_items(const value *port, const clg_value *v)
{
    const clg_value *keys = v->kind == CLG_VALUE_MAP ? value_get(v, VALUE_KEYS) : NULL;
    if (keys && port->key_dtype == CLG_DTYPE_NONE)
        return error_set(CLG_ERROR_UNSUPPORTED_DTYPE, "input '%s' is given a map", port->name);
    if (keys && keys->dtype != port->key_dtype)
        return error_set(CLG_ERROR_UNSUPPORTED_DTYPE,
                         "input '%s' has keys of %s in the model, %s was given", port->name,
                         dtype_name(port->key_dtype), dtype_name(keys->dtype));
    if (keys) return check_items(port, value_get(v, VALUE_VALUES));
    for (size_t i = 0; i < value_length(v); i++) CLG_TRY(check_items(port, value_get(v, i)));
    if (v->kind != CLG_VALUE_TENSOR || port->dtype == CLG_DTYPE_NONE || v->dtype == port->dtype)
        return CLG_OK;
    return error_set(CLG_ERROR_UNSUPPORTED_DTYPE, "input '%s' holds %s in the model, %s was given",
                     port->name, dtype_name(port->dtype), dtype_name(v->dtype));
}

static clg_status check_kind(const value *port, clg_value_kind kind)
{
    if (kind == port->kind) return CLG_OK;
    return error_set(CLG_ERROR_INVALID_ARGUMENT, "input '%s' takes %s, not %s", port->name,
                     kind_words(port->kind), kind_words(kind));
}

clg_status session_check_tensor(clg_session *s, size_t index, clg_dtype dtype, const shape *dims)
{
    const value *port = session_input_port(s, index);
    CLG_TRY(check_kind(port, CLG_VALUE_TENSOR));
    if (port->dtype != CLG_DTYPE_NONE && dtype != port->dtype)
        return error_set(CLG_ERROR_UNSUPPORTED_DTYPE, "input '%s' is %s in the model, %s was given",
                         port->name, dtype_name(port->dtype), dtype_name(dtype));
    return session_check_shape(s, index, dims);
}

clg_status session_check_value(clg_session *s, size_t index, const clg_value *v)
{
    const value *port = session_input_port(s, index);
    CLG_TRY(check_kind(port, v->kind));
    return v->kind == CLG_VALUE_TENSOR ? session_check_tensor(s, index, v->dtype, &v->dims)
                                       : check_items(port, v);
}

clg_status session_set_input(clg_session *s, size_t index, clg_value *v)
{
    const value *port = session_input_port(s, index);
    if (v) CLG_TRY(session_check_value(s, index, v));
    CLG_TRY(session_unmap(s, index));
    if (v && (port->key_dtype != CLG_DTYPE_NONE || s->multi))
        CLG_TRY(value_to_host(v, &v)); /* the planner needs maps on the host; parts need rows */
    else
        value_retain(v);
    forget_input(s, index);
    s->inputs[index].value = v;
    s->inputs[index].n_sets++;
    return CLG_OK;
}

clg_status session_give_input(clg_session *s, size_t index, const shape *dims, ocl_buffer *b)
{
    session_input *in = &s->inputs[index];
    CLG_TRY(session_check_tensor(s, index, session_input_port(s, index)->dtype, dims));
    CLG_TRY(session_unmap(s, index));
    forget_input(s, index);
    if (in->link != SIZE_MAX) {
        frame_drop(s->frame, &s->frame->outputs[in->link]);
        s->outputs[in->link].valid = false;
    }
    frame_drop(s->frame, &s->frame->inputs[index]);
    s->frame->inputs[index].buffer = b;
    in->filled = true;
    in->mapped_dims = *dims;
    in->n_sets++;
    return CLG_OK;
}

clg_status session_input_value(clg_session *s, size_t index, clg_value **out_value)
{
    const session_input *in = &s->inputs[index];
    frame_memory *m = &s->frame->inputs[index];
    if (in->carried || in->filled)
        return context_wrap_buffer(s->exec->context, ocl_buffer_retain(m->buffer), m->offset_bytes,
                                   session_input_port(s, index)->dtype,
                                   in->carried ? &in->carried_dims : &in->mapped_dims, out_value);
    *out_value = value_retain(in->value);
    return in->value ? CLG_OK
                     : error_set(CLG_ERROR_NOT_FOUND, "input '%s' is not set",
                                 session_input_port(s, index)->name);
}

/* As session_map_input, for a session over several devices: memory of the host. */
static clg_status lend_host_memory(clg_session *s, size_t index, const shape *dims, void **out_data)
{
    tensor *t;
    CLG_TRY(tensor_create(session_input_port(s, index)->dtype, dims, &t));
    const clg_status status = value_create_host(t, &s->inputs[index].value);
    if (status == CLG_OK) *out_data = t->data;
    s->inputs[index].n_sets++;
    tensor_free(t);
    return status;
}

clg_status session_map_input(clg_session *s, size_t index, const shape *dims, void **out_data)
{
    session_input *in = &s->inputs[index];
    const value *port = session_input_port(s, index);
    int64_t n;
    size_t size_bytes;
    if (port->kind != CLG_VALUE_TENSOR)
        return error_set(CLG_ERROR_INVALID_ARGUMENT, "input '%s' takes %s and cannot be mapped",
                         port->name, kind_words(port->kind));
    CLG_TRY(session_check_shape(s, index, dims));
    if (port->dtype == CLG_DTYPE_NONE || port->dtype == CLG_STRING)
        return error_set(CLG_ERROR_UNSUPPORTED_DTYPE, "input '%s' of %s cannot be mapped",
                         port->name, dtype_name(port->dtype));
    CLG_TRY(shape_n_elements(dims, &n));
    if (n < 0 || !dtype_bytes(port->dtype, n, &size_bytes))
        return error_set(CLG_ERROR_INVALID_ARGUMENT,
                         "input '%s' would be larger than memory can be", port->name);
    CLG_TRY(session_unmap(s, index));
    forget_input(s, index);
    if (s->multi) return lend_host_memory(s, index, dims, out_data);
    CLG_TRY(frame_reserve(s->frame, &s->frame->inputs[index], size_bytes, OCL_BUFFER_HOST_VISIBLE));
    CLG_TRY(ocl_queue_map(s->frame->queue, s->frame->inputs[index].buffer, 0,
                          size_bytes ? size_bytes : 1, true, true, &in->mapped));
    in->filled = true;
    in->mapped_dims = *dims;
    *out_data = in->mapped;
    return CLG_OK;
}

/* ---- links and bound outputs ----------------------------------------------------------------- */

clg_status session_unlink(clg_session *s, size_t input)
{
    session_input *in = &s->inputs[input];
    if (in->link == SIZE_MAX) return CLG_OK;
    if (in->carried) forget_input(s, input);
    s->outputs[in->link].link = SIZE_MAX;
    in->link = SIZE_MAX;
    return CLG_OK;
}

clg_status session_link(clg_session *s, size_t output, size_t input)
{
    if (s->multi) return session_refuse_several("link outputs to inputs");
    const value *from = &s->exec->graph->values[s->exec->graph->outputs[output]],
                *to = session_input_port(s, input);
    if (from->kind != CLG_VALUE_TENSOR || to->kind != CLG_VALUE_TENSOR)
        return error_set(CLG_ERROR_INVALID_ARGUMENT,
                         "output '%s' and input '%s' are not both tensors, and cannot be linked",
                         from->name, to->name);
    if (s->outputs[output].bound)
        return error_set(CLG_ERROR_INVALID_ARGUMENT,
                         "output '%s' is bound to a value and cannot be linked too", from->name);
    if (s->outputs[output].link != SIZE_MAX && s->outputs[output].link != input)
        return error_set(CLG_ERROR_INVALID_ARGUMENT, "output '%s' is linked to input '%s' already",
                         from->name, session_input_port(s, s->outputs[output].link)->name);
    if (from->dtype != CLG_DTYPE_NONE && to->dtype != CLG_DTYPE_NONE && from->dtype != to->dtype)
        return error_set(CLG_ERROR_UNSUPPORTED_DTYPE, "output '%s' is %s and input '%s' is %s",
                         from->name, dtype_name(from->dtype), to->name, dtype_name(to->dtype));
    if (from->dtype == CLG_STRING || to->dtype == CLG_STRING)
        return error_set(CLG_ERROR_UNSUPPORTED_DTYPE, "output '%s': strings cannot be linked",
                         from->name);
    if (s->inputs[input].link == output) return CLG_OK;
    CLG_TRY(session_unlink(s, input));
    s->inputs[input].link = output;
    s->outputs[output].link = input;
    return CLG_OK;
}

clg_status session_bind_output(clg_session *s, size_t index, clg_value *v)
{
    session_output *out = &s->outputs[index];
    const char *name = s->exec->graph->values[s->exec->graph->outputs[index]].name;
    if (v && out->link != SIZE_MAX)
        return error_set(CLG_ERROR_INVALID_ARGUMENT,
                         "output '%s' is linked to an input and cannot be bound too", name);
    if (v && v->kind != CLG_VALUE_TENSOR)
        return error_set(CLG_ERROR_INVALID_ARGUMENT, "output '%s' is a tensor", name);
    if (v && v->dtype == CLG_STRING)
        return error_set(CLG_ERROR_UNSUPPORTED_DTYPE,
                         "output '%s': strings cannot be written into a value", name);
    if (v && s->multi && !value_host_data(v))
        return session_refuse_several("write into device memory");
    if (v && !value_host_data(v)) CLG_TRY(session_renew(s)); /* the value may be newer */
    if (v && !value_host_data(v) && v->size_bytes && !context_value_buffer(s->exec->context, v))
        return error_set(CLG_ERROR_INVALID_ARGUMENT,
                         "the value for output '%s' is on the device of another context", name);
    value_retain(v);
    value_free(out->bound);
    out->bound = v;
    out->valid = false;
    return CLG_OK;
}

bool session_memory_overlaps(const void *a, size_t a_bytes, const void *b, size_t b_bytes)
{
    const uintptr_t x = (uintptr_t)a, y = (uintptr_t)b;
    return a_bytes > 0 && b_bytes > 0 && (x < y ? y - x < a_bytes : x - y < b_bytes);
}

/* Returns whether the value is in host memory that overlaps this memory. */
static bool is_within(const clg_value *v, const void *data, size_t size_bytes)
{
    return v && value_host_data(v) &&
           session_memory_overlaps(value_host_data(v), v->size_bytes, data, size_bytes);
}

/* Returns the name of the input or other output that uses the memory bound to output `index`; NULL
 * if none does. */
static const char *other_user(const clg_session *s, size_t index)
{
    const clg_value *bound = s->outputs[index].bound;
    const void *data = value_host_data(bound);
    const graph *g = s->exec->graph;
    for (size_t i = 0; i < s->n_inputs; i++)
        if (is_within(s->inputs[i].value, data, bound->size_bytes))
            return session_input_port(s, i)->name;
    for (size_t i = 0; i < s->n_outputs; i++) {
        const session_output *out = &s->outputs[i];
        const clg_call_output *call = out->bound ? NULL : out->call;
        if (i != index && (is_within(out->bound, data, bound->size_bytes) ||
                           (call && session_memory_overlaps(call->data, call->capacity_bytes, data,
                                                            bound->size_bytes))))
            return g->values[g->outputs[i]].name;
    }
    return NULL;
}

clg_status session_check_bound(const clg_session *s)
{
    const graph *g = s->exec->graph;
    for (size_t i = 0; i < s->n_outputs; i++) {
        const clg_value *v = s->outputs[i].bound;
        const char *other = v && value_host_data(v) ? other_user(s, i) : NULL;
        if (other)
            return error_set(CLG_ERROR_INVALID_ARGUMENT,
                             "output '%s' is bound to memory that '%s' uses",
                             g->values[g->outputs[i]].name, other);
    }
    return CLG_OK;
}

/* ---- results --------------------------------------------------------------------------------- */

static clg_status check_valid(const clg_session *s, size_t index)
{
    if (s->outputs[index].valid) return CLG_OK;
    return error_set(CLG_ERROR_NOT_FOUND,
                     "output '%s' has no content: nothing ran since it was set up",
                     s->exec->graph->values[s->exec->graph->outputs[index]].name);
}

/* Returns the memory of an output. A run swaps that of a linked output with the input's. */
static frame_memory *output_memory(const clg_session *s, size_t index)
{
    size_t link = s->outputs[index].link;
    return link != SIZE_MAX && s->inputs[link].carried ? &s->frame->inputs[link]
                                                       : &s->frame->outputs[index];
}

clg_status session_output_host(clg_session *s, size_t index, clg_value **out_value)
{
    session_output *out = &s->outputs[index];
    CLG_TRY(check_valid(s, index));
    if (out->bound) return value_to_host(out->bound, out_value);
    if (!out->host && out->known && out->dtype == CLG_STRING)
        CLG_TRY(value_create_host(out->known, &out->host));
    if (!out->host) {
        tensor *t;
        CLG_TRY(tensor_create(out->dtype, &out->dims, &t));
        frame_memory *m = output_memory(s, index);
        clg_status status = CLG_OK;
        if (out->known)
            memcpy(t->data, out->known->data, t->size_bytes);
        else if (t->size_bytes)
            status = ocl_queue_read(s->frame->queue, m->buffer, m->offset_bytes, t->data,
                                    t->size_bytes, true);
        if (status == CLG_OK) status = value_create_host(t, &out->host);
        tensor_free(t);
        CLG_TRY(status);
    }
    *out_value = value_retain(out->host);
    return CLG_OK;
}

clg_status session_output_device(clg_session *s, size_t index, clg_value **out_value)
{
    session_output *out = &s->outputs[index];
    if (s->multi) return session_refuse_several("have outputs in the memory of one");
    CLG_TRY(check_valid(s, index));
    if (out->bound && !value_host_data(out->bound)) {
        *out_value = value_retain(out->bound);
        return CLG_OK;
    }
    if (out->host && out->host->kind != CLG_VALUE_TENSOR)
        return error_set(CLG_ERROR_UNSUPPORTED_DTYPE,
                         "output '%s' is %s; only tensors can be given on a device",
                         s->exec->graph->values[s->exec->graph->outputs[index]].name,
                         kind_words(out->host->kind));
    if (out->dtype == CLG_STRING)
        return error_set(CLG_ERROR_UNSUPPORTED_DTYPE, "output '%s': strings cannot be on a device",
                         s->exec->graph->values[s->exec->graph->outputs[index]].name);
    frame_memory *m = output_memory(s, index);
    if (out->known) {
        CLG_TRY(frame_reserve(s->frame, m, out->known->size_bytes, OCL_BUFFER_HOST_VISIBLE));
        CLG_TRY(ocl_queue_write(s->frame->queue, m->buffer, 0, out->known->data,
                                out->known->size_bytes, false));
        CLG_TRY(ocl_queue_finish(s->frame->queue)); /* the application's queues may use it */
    }
    return context_wrap_buffer(s->exec->context, ocl_buffer_retain(m->buffer), m->offset_bytes,
                               out->dtype, &out->dims, out_value);
}
