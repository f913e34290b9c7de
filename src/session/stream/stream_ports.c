/* SPDX-License-Identifier: Apache-2.0
 *
 * Determines, when a stream is created, which inputs are streamed and in which shapes, which
 * outputs are passed to the write callback, and the batch size, from the stream's sessions.
 */
#include "session/stream/stream.h"

#include <inttypes.h>
#include <string.h>

#define DEFAULT_BATCH 64 /* rows */

/* ---- one session ----------------------------------------------------------------------------- */

/* Inputs without a value are streamed; the others have their value in each batch. */
static bool is_streamed(const clg_session *s, size_t input) { return !s->inputs[input].value; }

/* Returns the shape of an input that the caller set (clg_session_set_input_shape), else that of the
 * model; possibly unknown in part. */
static shape shape_of(const clg_session *s, size_t input)
{
    const shape *hint = &s->inputs[input].hint;
    return hint->rank != RANK_UNKNOWN ? *hint : session_input_port(s, input)->dims;
}

static clg_status check_input(const value *port, const shape *dims)
{
    char text[SHAPE_TEXT_BYTES];
    clg_status status = CLG_OK;
    if (port->kind != CLG_VALUE_TENSOR)
        return error_set(CLG_ERROR_UNSUPPORTED_DTYPE,
                         "input '%s' is not a tensor and cannot be streamed", port->name);
    if (port->dtype == CLG_DTYPE_NONE || port->dtype == CLG_STRING)
        return error_set(CLG_ERROR_UNSUPPORTED_DTYPE, "input '%s' of %s cannot be streamed",
                         port->name, dtype_name(port->dtype));
    if (dims->rank == 0) {
        status = error_set(CLG_ERROR_SHAPE, "input '%s' has no rows to be streamed", port->name);
        error_hint("an input with a value, clg_session_set_input, keeps it in every batch");
        return status;
    }
    bool known = dims->rank != RANK_UNKNOWN;
    for (int d = 1; known && d < dims->rank; d++) known = dims->dims[d] != DIM_UNKNOWN;
    if (known) return CLG_OK;
    status = error_set(CLG_ERROR_SHAPE, "input '%s' is %s: its rows have no known shape",
                       port->name, shape_text(dims, text));
    error_hint("clg_session_set_input_shape says it");
    return status;
}

/* Chooses the batch size: the one that the model fixes, from which a requested one must not differ;
 * else the requested one, that of a shape set by the caller, or the default. */
static clg_status decide_batch(clg_stream *stream, const clg_session *s, size_t requested)
{
    int64_t fixed = 0, said = 0;
    const char *by = "";
    for (size_t i = 0; i < s->n_inputs; i++) {
        const value *port = session_input_port(s, i);
        if (!is_streamed(s, i)) continue;
        shape dims = shape_of(s, i);
        CLG_TRY(check_input(port, &dims));
        if (said == 0 && dims.dims[0] > 0) said = dims.dims[0];
        if (port->dims.rank == RANK_UNKNOWN || port->dims.dims[0] == DIM_UNKNOWN) continue;
        if (port->dims.dims[0] == 0)
            return error_set(CLG_ERROR_SHAPE, "input '%s' has no rows in the model", port->name);
        if (fixed && fixed != port->dims.dims[0])
            return error_set(CLG_ERROR_SHAPE,
                             "the model has no batch: inputs '%s' and '%s' have %" PRId64
                             " and %" PRId64 " rows",
                             by, port->name, fixed, port->dims.dims[0]);
        fixed = port->dims.dims[0];
        by = port->name;
    }
    if (fixed && requested && (uint64_t)fixed != requested)
        return error_set(CLG_ERROR_SHAPE,
                         "the model fixes the batch at %" PRId64 " (input '%s'), it cannot be %zu",
                         fixed, by, requested);
    stream->fixed = fixed > 0;
    stream->batch = fixed       ? (size_t)fixed
                    : requested ? requested
                    : said      ? (size_t)said
                                : DEFAULT_BATCH;
    return CLG_OK;
}

static clg_status fill_input(const clg_stream *stream, const clg_session *s, size_t input,
                             stream_port *out)
{
    const value *port = session_input_port(s, input);
    int64_t n;
    *out = (stream_port){input, port->name, port->dtype, shape_of(s, input), 0};
    if (stream->batch > INT64_MAX)
        return error_set(CLG_ERROR_SHAPE, "a batch of %zu rows is too large", stream->batch);
    out->dims.dims[0] = (int64_t)stream->batch;
    CLG_TRY(session_check_shape(s, input, &out->dims));
    CLG_TRY(shape_n_elements(&out->dims, &n));
    if (!dtype_bytes(out->dtype, n, &out->row_bytes))
        return error_set(CLG_ERROR_SHAPE, "a batch of input '%s' is larger than memory can be",
                         port->name);
    if (out->row_bytes % stream->batch)
        return error_set(CLG_ERROR_UNSUPPORTED_DTYPE,
                         "input '%s': a row of %s does not fill whole bytes", port->name,
                         dtype_name(out->dtype));
    out->row_bytes /= stream->batch;
    return CLG_OK;
}

static clg_status find_inputs(clg_stream *stream, const clg_session *s, size_t batch)
{
    CLG_TRY(decide_batch(stream, s, batch));
    stream->inputs = memory_zalloc(s->n_inputs + 1, sizeof *stream->inputs);
    if (!stream->inputs) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; i < s->n_inputs; i++)
        if (is_streamed(s, i))
            CLG_TRY(fill_input(stream, s, i, &stream->inputs[stream->n_inputs++]));
    if (stream->n_inputs > 0) return CLG_OK;
    clg_status status = error_set(CLG_ERROR_INVALID_ARGUMENT, "there is no input to stream: %s",
                                  s->n_inputs ? "all of them have a value" : "the model has none");
    if (s->n_inputs) error_hint("clg_session_set_input with NULL takes a value back");
    return status;
}

/* ---- outputs --------------------------------------------------------------------------------- */

static clg_status add_output(clg_stream *stream, const clg_session *s, size_t index)
{
    const value *v = &s->exec->graph->values[s->exec->graph->outputs[index]];
    if (v->kind != CLG_VALUE_TENSOR) {
        clg_status status =
            error_set(CLG_ERROR_UNSUPPORTED_DTYPE,
                      "output '%s' is not a tensor and cannot be streamed", v->name);
        if (v->key_dtype != CLG_DTYPE_NONE)
            error_hint("exported without ZipMap, the model gives the same numbers as a tensor");
        return status;
    }
    if (v->dtype == CLG_STRING)
        return error_set(CLG_ERROR_UNSUPPORTED_DTYPE, "output '%s': strings cannot be streamed",
                         v->name);
    stream->outputs[stream->n_outputs++] = (stream_port){.index = index, .name = v->name};
    return CLG_OK;
}

static bool is_requested(const stream_settings *o, const char *name)
{
    for (size_t i = 0; i < o->n_outputs; i++)
        if (strcmp(o->outputs[i], name) == 0) return true;
    return false;
}

static clg_status find_outputs(clg_stream *stream, const clg_session *s, const stream_settings *o)
{
    size_t index;
    stream->outputs = memory_zalloc(s->n_outputs + 1, sizeof *stream->outputs);
    if (!stream->outputs) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; o->outputs && i < o->n_outputs; i++)
        CLG_TRY(session_find_output(s, o->outputs[i], &index));
    /* Without names: the model's own outputs. The session's further outputs are kept values. */
    for (size_t i = 0; i < s->n_outputs; i++) {
        bool wanted = o->outputs
                          ? is_requested(o, s->exec->graph->values[s->exec->graph->outputs[i]].name)
                          : i < s->exec->model->graph->n_outputs;
        if (wanted) CLG_TRY(add_output(stream, s, i));
    }
    return CLG_OK;
}

/* ---- all sessions ---------------------------------------------------------------------------- */

/* Checks that a session has the model, streamed inputs and outputs of the first one. */
static clg_status check_alike(const clg_stream *stream, const clg_session *first,
                              const clg_session *s)
{
    if (s->exec->model != first->exec->model)
        return error_set(CLG_ERROR_INVALID_ARGUMENT, "the sessions are of several models");
    for (size_t i = 0; i < s->n_inputs; i++)
        if (is_streamed(s, i) != is_streamed(first, i))
            return error_set(CLG_ERROR_INVALID_ARGUMENT,
                             "input '%s' has a value in one session and none in another",
                             session_input_port(s, i)->name);
    for (size_t k = 0; k < stream->n_outputs; k++) {
        const stream_port *port = &stream->outputs[k];
        if (port->index >= s->n_outputs ||
            strcmp(s->exec->graph->values[s->exec->graph->outputs[port->index]].name, port->name) !=
                0)
            return error_set(CLG_ERROR_INVALID_ARGUMENT,
                             "the sessions keep different values: not all have output '%s'",
                             port->name);
    }
    return CLG_OK;
}

clg_status stream_find_ports(clg_stream *stream, const stream_settings *settings)
{
    const clg_session *first = stream->workers[0].session;
    CLG_TRY(find_inputs(stream, first, settings->batch));
    CLG_TRY(find_outputs(stream, first, settings));
    for (size_t i = 1; i < stream->n_workers; i++)
        CLG_TRY(check_alike(stream, first, stream->workers[i].session));
    return CLG_OK;
}
