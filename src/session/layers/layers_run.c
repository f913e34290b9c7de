/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs the parts one after the other. What crosses is in host memory: a part writes into memory
 * that the slot keeps from run to run, and the next one reads it there, in place where its device
 * shares memory with the host.
 */
#include "session/layers/layers.h"

#include "base/clock.h"

#include <string.h>

#define N_TRIALS 3 /* divisions that a preparation measures */

/* ---- inputs of a part ------------------------------------------------------------------------ */

static void fill_input(const clg_session *front, const layers_session *l, size_t slot,
                       clg_call_input *in)
{
    const layers_slot *from = &l->slots[slot];
    if (slot < front->n_inputs) {
        in->value = front->inputs[slot].value;
        return;
    }
    in->value = from->value;
    if (from->value) return;
    in->dtype = from->result.dtype;
    in->rank = from->result.rank;
    in->dims = from->result.dims;
    in->data = from->result.data;
    in->size_bytes = from->result.size_bytes;
}

/* Fills in the inputs that are set; returns their number. The part's run names one that is not. */
static size_t fill_inputs(const clg_session *front, layers_session *l, size_t p)
{
    const layers_part *part = &l->division->parts[p];
    size_t n = 0;
    for (size_t i = 0; i < part->n_inputs; i++) {
        const size_t slot = part->inputs[i];
        if (slot < front->n_inputs && !front->inputs[slot].value) continue;
        clg_call_input *in = &l->stages[p].inputs[n++];
        *in = (clg_call_input){.name = part->model->inputs[i].name};
        fill_input(front, l, slot, in);
    }
    return n;
}

/* ---- outputs of a part ----------------------------------------------------------------------- */

/* Returns the output of the front that has this slot, or NULL. */
static session_output *front_output(clg_session *front, const layers_session *l, size_t slot)
{
    for (size_t i = 0; i < front->n_outputs; i++)
        if (l->division->outputs[i] == slot) return &front->outputs[i];
    return NULL;
}

/* Finds the memory into which a part writes an output. */
static void place_output(clg_session *front, layers_session *l, size_t slot, clg_call_output *out)
{
    layers_slot *to = &l->slots[slot];
    const session_output *whole = front_output(front, l, slot);
    if (whole && whole->bound) {
        out->data = whole->bound->host ? whole->bound->host->data : NULL;
        out->capacity_bytes = out->data ? whole->bound->size_bytes : 0;
    } else if (whole && whole->call) {
        out->data = whole->call->data;
        out->capacity_bytes = whole->call->capacity_bytes;
    } else if (to->memory) { /* what crosses and is no output of the model */
        out->data = to->memory->data;
        out->capacity_bytes = to->memory->size_bytes;
    }
}

/* Makes memory for the slot's next value, which is as large as this one. */
static clg_status make_memory(layers_slot *slot)
{
    const clg_call_output *r = &slot->result;
    shape dims;
    if (!slot->value || r->kind != CLG_VALUE_TENSOR || r->dtype == CLG_STRING) return CLG_OK;
    tensor_free(slot->memory);
    slot->memory = NULL;
    CLG_TRY(shape_make(r->rank, r->dims, &dims));
    return tensor_create(r->dtype, &dims, &slot->memory);
}

static clg_status keep_outputs(clg_session *front, layers_session *l, size_t p)
{
    const layers_part *part = &l->division->parts[p];
    clg_status status = CLG_OK;
    for (size_t i = 0; i < part->n_outputs; i++) {
        clg_call_output *out = &l->stages[p].outputs[i];
        layers_slot *slot = &l->slots[part->outputs[i]];
        slot->result = *out;
        slot->value = out->value; /* its reference */
        out->value = NULL;
        if (status == CLG_OK && !front_output(front, l, part->outputs[i]))
            status = make_memory(slot);
    }
    return status;
}

/* ---- a part ---------------------------------------------------------------------------------- */

static clg_status call_part(clg_session *front, layers_session *l, size_t p)
{
    const layers_part *part = &l->division->parts[p];
    layers_stage *stage = &l->stages[p];
    clg_session *s = stage->session;
    const size_t n_inputs = fill_inputs(front, l, p);
    for (size_t i = 0; i < part->n_outputs; i++) {
        clg_call_output *out = &stage->outputs[i];
        *out = (clg_call_output){.name = part->model->outputs[i].name};
        place_output(front, l, part->outputs[i], out);
    }
    CLG_TRY(session_enter(s));
    const uint64_t start_ns = time_now_ns();
    const clg_status status =
        session_call(s, stage->inputs, n_inputs, stage->outputs, part->n_outputs);
    stage->busy_s = (double)(time_now_ns() - start_ns) * 1e-9;
    session_leave(s);
    return status == CLG_OK ? keep_outputs(front, l, p) : status;
}

static clg_status run_part(clg_session *front, size_t p)
{
    layers_session *l = front->multi;
    const size_t device = l->division->parts[p].device;
    CLG_TRY(cancel_check("the run"));
    CLG_TRY(layers_enter_device(l->shared, device));
    const clg_status status = call_part(front, l, p);
    layers_leave_device(l->shared, device);
    if (status == CLG_OK) return CLG_OK;
    return error_prefix(status, "device %s",
                        context_handle_info(l->shared->devices[device].context)->selector);
}

/* ---- outputs of the front -------------------------------------------------------------------- */

static clg_status copy_tensor(const void *data, clg_dtype dtype, const shape *dims,
                              clg_value **out_value)
{
    tensor *t;
    CLG_TRY(tensor_create(dtype, dims, &t));
    if (t->size_bytes) memcpy(t->data, data, t->size_bytes);
    const clg_status status = value_create_host(t, out_value);
    tensor_free(t);
    return status;
}

/* An output that is an input: a copy, since the application may change its value. */
static clg_status return_input(session_output *out, clg_value *v)
{
    if (!v) return error_set(CLG_ERROR_NOT_FOUND, "an input that is also an output is not set");
    out->dtype = v->kind == CLG_VALUE_TENSOR ? v->dtype : CLG_DTYPE_NONE;
    out->dims = v->dims;
    if (v->kind == CLG_VALUE_TENSOR && v->dtype != CLG_STRING)
        return copy_tensor(v->host->data, v->dtype, &v->dims, &out->host);
    out->host = value_retain(v);
    return CLG_OK;
}

static clg_status check_bound(const clg_session *front, size_t i)
{
    const session_output *out = &front->outputs[i];
    const clg_value *v = out->bound;
    if (v->dtype == out->dtype && shape_equal(&v->dims, &out->dims)) return CLG_OK;
    return error_set(CLG_ERROR_SHAPE,
                     "output '%s' has another dtype or shape than the value bound to it",
                     front->exec->model->outputs[i].name);
}

/* Sets output i of the front to what its part gave. */
static clg_status return_output(clg_session *front, layers_session *l, size_t i)
{
    session_output *out = &front->outputs[i];
    const size_t slot = l->division->outputs[i];
    const layers_slot *from = &l->slots[slot];
    const clg_call_output *r = &from->result;
    if (slot < front->n_inputs) {
        CLG_TRY(return_input(out, front->inputs[slot].value));
    } else {
        out->dtype = r->kind == CLG_VALUE_TENSOR ? r->dtype : CLG_DTYPE_NONE;
        CLG_TRY(shape_make(r->rank, r->dims, &out->dims));
        out->host = value_retain(from->value);
        out->in_call_data = out->call && !from->value && r->size_bytes > 0;
    }
    if (out->bound) {
        CLG_TRY(check_bound(front, i));
        if (out->host && out->host->size_bytes)
            memcpy(out->bound->host->data, out->host->host->data, out->host->size_bytes);
    }
    out->valid = true;
    return CLG_OK;
}

/* ---- runs ------------------------------------------------------------------------------------ */

/* Forgets the last run's results, so that sessions of parts write into the same memory again unless
 * the application has references to it. */
static void forget_outputs(clg_session *front)
{
    for (size_t i = 0; i < front->n_outputs; i++) {
        session_output *out = &front->outputs[i];
        value_free(out->host);
        tensor_free(out->known);
        out->host = NULL;
        out->known = NULL;
        out->valid = out->in_call_data = false;
    }
}

static void forget_values(layers_session *l)
{
    for (size_t i = 0; l->slots && i < l->division->n_slots; i++) {
        value_free(l->slots[i].value);
        l->slots[i].value = NULL;
    }
}

static clg_status run_parts(clg_session *front, size_t *out_part)
{
    layers_session *l = front->multi;
    const uint64_t start_ns = time_now_ns();
    l->has_run = false;
    for (*out_part = 0; *out_part < l->division->n_parts; ++*out_part)
        CLG_TRY(run_part(front, *out_part));
    l->whole_s = (double)(time_now_ns() - start_ns) * 1e-9;
    l->has_run = true;
    return CLG_OK;
}

static clg_status run_all(clg_session *front)
{
    layers_session *l = front->multi;
    for (size_t attempt = 0;; attempt++) {
        error_record failure;
        size_t p;
        CLG_TRY(layers_refresh(front, NULL, NULL));
        const clg_status status = run_parts(front, &p);
        if (status == CLG_OK) break;
        forget_values(l);
        if (attempt >= MAX_DIVISIONS) return status;
        error_save(status, &failure);
        CLG_TRY(layers_after_failure(l, p, &failure));
    }
    for (size_t i = 0; i < front->n_outputs; i++) CLG_TRY(return_output(front, l, i));
    return CLG_OK;
}

static clg_status run(clg_session *front)
{
    forget_outputs(front);
    CLG_TRY(session_check_bound(front));
    const clg_status status = run_all(front);
    forget_values(front->multi);
    if (status == CLG_OK) return CLG_OK;
    error_record failure;
    error_save(status, &failure);
    forget_outputs(front);
    return error_restore(&failure);
}

clg_status layers_run(clg_session *s)
{
    clg_status status;
    CANCEL_WITHIN(status, s->token, &s->cancel, run(s));
    return status;
}

/* ---- preparing ------------------------------------------------------------------------------- */

/* Sets input i to zeros of the shape that is set or declared, free dimensions 1. *out_made: whether
 * it was not set. */
static clg_status set_zeros(clg_session *s, size_t i, bool *out_made)
{
    session_input *in = &s->inputs[i];
    const value *port = session_input_port(s, i);
    shape dims = in->hint.rank != RANK_UNKNOWN ? in->hint : port->dims;
    tensor *t;
    *out_made = false;
    if (in->value || port->kind != CLG_VALUE_TENSOR || port->dtype == CLG_DTYPE_NONE) return CLG_OK;
    if (dims.rank == RANK_UNKNOWN)
        return error_set(CLG_ERROR_SHAPE, "input '%s' has no known shape", port->name);
    for (int d = 0; d < dims.rank; d++)
        if (dims.dims[d] < 0) dims.dims[d] = 1;
    CLG_TRY(tensor_create(port->dtype, &dims, &t));
    if (t->size_bytes && port->dtype != CLG_STRING) memset(t->data, 0, t->size_bytes);
    const clg_status status = value_create_host(t, &in->value);
    tensor_free(t);
    *out_made = status == CLG_OK;
    return status;
}

/* Runs, learns the speeds and divides the model again, where that promises a gain. Zeros may be
 * invalid data, which is no error here; later nodes are not prepared then. */
static clg_status try_runs(clg_session *s, clg_progress_callback progress, void *user)
{
    for (size_t i = 0; i < N_TRIALS; i++) {
        if (progress && !progress(user, "first runs", i, N_TRIALS))
            return error_set(CLG_ERROR_CANCELLED, "the preparation was cancelled");
        for (int k = 0; k < 2; k++) { /* the first one compiles */
            const clg_status status = layers_run(s);
            if (status == CLG_ERROR_DATA) return CLG_OK;
            CLG_TRY(status);
        }
        if (i + 1 == N_TRIALS || !layers_learn(s->multi)) return CLG_OK;
    }
    return CLG_OK;
}

clg_status layers_prepare(clg_session *s, clg_progress_callback progress, void *user)
{
    bool *made = memory_zalloc(s->n_inputs + 1, sizeof *made);
    clg_status status = made ? CLG_OK : CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; i < s->n_inputs && status == CLG_OK; i++) status = set_zeros(s, i, &made[i]);
    if (status == CLG_OK) status = try_runs(s, progress, user);
    for (size_t i = 0; made && i < s->n_inputs; i++) {
        if (!made[i]) continue;
        value_free(s->inputs[i].value);
        s->inputs[i].value = NULL;
    }
    error_record result;
    error_save(status, &result);
    forget_outputs(s);
    memory_free(made);
    return error_restore(&result);
}
