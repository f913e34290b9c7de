/* SPDX-License-Identifier: Apache-2.0
 *
 * Joins the outputs of pieces. Where the shape of an output is known from the last run, and its
 * batch is the first dimension, the pieces write their rows into the whole tensor, which is the
 * caller's where one is given; else they are copied into it.
 */
#include "session/multi/multi.h"

#include "base/checked.h"
#include "ops/batch/batch_axes.h"

#include <string.h>

static const char *output_name(const clg_session *s, size_t i)
{
    return s->exec->graph->values[s->exec->graph->outputs[i]].name;
}

/* ---- before a run ---------------------------------------------------------------------------- */

void multi_forget_places(multi_session *m)
{
    for (size_t i = 0; i < m->n_outputs; i++) {
        tensor_free(m->outputs[i].whole_host);
        m->outputs[i].whole = m->outputs[i].whole_host = NULL;
        m->outputs[i].is_calls = false;
    }
}

/* Returns the memory of a value bound to an output, if it has this dtype and shape. */
static void *bound_memory(const session_output *out, clg_dtype dtype, const shape *dims)
{
    const clg_value *v = out->bound;
    return v && v->host && v->dtype == dtype && shape_equal(&v->dims, dims) ? v->host->data : NULL;
}

/* Sets *out_tensor to the tensor of the last run's result, if the application has no reference to
 * it and its shape fits, else to a new one. */
static clg_status host_memory(session_output *out, clg_dtype dtype, const shape *dims,
                              tensor **out_tensor)
{
    if (out->host && value_is_unshared(out->host) && out->host->dtype == dtype && out->host->host &&
        shape_equal(&out->host->host->dims, dims)) {
        *out_tensor = tensor_retain(out->host->host);
        return CLG_OK;
    }
    value_free(out->host);
    out->host = NULL;
    return tensor_create(dtype, dims, out_tensor);
}

static clg_status place_output(clg_session *s, size_t i, int64_t n_rows)
{
    multi_session *m = s->multi;
    multi_output *o = &m->outputs[i];
    session_output *out = &s->outputs[i];
    shape dims = o->dims;
    size_t size_bytes;
    if (o->axis != 0 || !o->is_known || m->n_rows == 0 || dims.dims[0] % m->n_rows != 0)
        return CLG_OK;
    if (!checked_mul_i64(dims.dims[0] / m->n_rows, n_rows, &dims.dims[0]) ||
        tensor_bytes_of(o->dtype, &dims, &size_bytes) != CLG_OK || size_bytes % (size_t)n_rows)
        return CLG_OK;
    o->row_bytes = size_bytes / (size_t)n_rows;
    o->whole_dims = dims;
    if (out->bound) {
        o->whole = bound_memory(out, o->dtype, &dims);
        return CLG_OK;
    }
    o->is_calls = out->call && size_bytes <= out->call->capacity_bytes && size_bytes > 0;
    if (o->is_calls) {
        o->whole = out->call->data;
        return CLG_OK;
    }
    CLG_TRY(host_memory(out, o->dtype, &dims, &o->whole_host));
    o->whole = o->whole_host->data;
    return CLG_OK;
}

clg_status multi_place_outputs(clg_session *s, int64_t n_rows, bool is_alike)
{
    multi_forget_places(s->multi);
    if (!is_alike || n_rows == 0 || multi_of(s)->hang_ms)
        return CLG_OK; /* a late writer must not */
    for (size_t i = 0; i < s->n_outputs; i++) CLG_TRY(place_output(s, i, n_rows));
    return CLG_OK;
}

/* ---- after it -------------------------------------------------------------------------------- */

/* Returns the elements of a piece's output. */
static const void *piece_data(const clg_call_output *out)
{
    return out->value ? out->value->host->data : out->data;
}

/* Computes the shape of the whole. Returns SHAPE if the pieces do not fit together. */
static clg_status join_dims(const clg_session *s, size_t i, int axis, multi_piece *const *pieces,
                            size_t n_pieces, clg_dtype *out_dtype, shape *out_dims)
{
    const clg_call_output *first = &pieces[0]->outputs[i];
    *out_dtype = first->dtype;
    CLG_TRY(shape_make(first->rank, first->dims, out_dims));
    if (first->kind != CLG_VALUE_TENSOR || first->dtype == CLG_STRING)
        return session_refuse_several("join strings, sequences, optionals and maps");
    if (n_pieces > 1 && axis >= out_dims->rank)
        return error_set(CLG_ERROR_SHAPE, "output '%s' has no dimension %d", output_name(s, i),
                         axis);
    for (size_t k = 1; k < n_pieces; k++) {
        const clg_call_output *o = &pieces[k]->outputs[i];
        bool is_alike = o->dtype == first->dtype && o->rank == first->rank;
        for (int d = 0; is_alike && d < out_dims->rank; d++)
            is_alike = d == axis || o->dims[d] == first->dims[d];
        if (!is_alike ||
            !checked_add_i64(out_dims->dims[axis], o->dims[axis], &out_dims->dims[axis]))
            return error_set(CLG_ERROR_SHAPE,
                             "output '%s': the results of two devices do not fit together",
                             output_name(s, i));
    }
    return CLG_OK;
}

/* Returns whether the output is as it was predicted, and all pieces have written their rows where
 * they belong. */
static bool is_in_place(const multi_session *m, size_t i, clg_dtype dtype, const shape *dims,
                        multi_piece *const *pieces, size_t n_pieces)
{
    const multi_output *o = &m->outputs[i];
    if (!o->whole || dtype != o->dtype || !shape_equal(dims, &o->whole_dims)) return false;
    for (size_t k = 0; k < n_pieces; k++) {
        const clg_call_output *out = &pieces[k]->outputs[i];
        if (out->value || out->size_bytes != o->row_bytes * (size_t)pieces[k]->n_rows) return false;
    }
    return true;
}

/* Copies the pieces into `to`. Each is a block of whole bytes for each index of the dimensions in
 * front of the axis. */
static clg_status copy_pieces(const clg_session *s, size_t i, int axis, const shape *dims,
                              multi_piece *const *pieces, size_t n_pieces, char *to)
{
    size_t n_blocks = 1, stride = 0, at = 0;
    for (int d = 0; d < axis; d++) n_blocks *= (size_t)dims->dims[d];
    for (size_t k = 0; k < n_pieces; k++)
        stride += n_blocks ? pieces[k]->outputs[i].size_bytes / n_blocks : 0;
    for (size_t k = 0; k < n_pieces; k++) {
        const clg_call_output *o = &pieces[k]->outputs[i];
        const size_t block = n_blocks ? o->size_bytes / n_blocks : 0;
        if (block * n_blocks != o->size_bytes)
            return error_set(CLG_ERROR_UNSUPPORTED_DTYPE,
                             "output '%s': rows of %s that are not whole bytes cannot be joined",
                             output_name(s, i), dtype_name(o->dtype));
        const char *from = piece_data(o);
        for (size_t b = 0; block && b < n_blocks; b++)
            memcpy(to + b * stride + at, from + b * block, block);
        at += block;
    }
    return CLG_OK;
}

/* Gives the joined tensor to whom it belongs: a bound value, the call in progress, or the front. */
static clg_status deliver(clg_session *s, size_t i, tensor *t)
{
    session_output *out = &s->outputs[i];
    if (out->bound) {
        void *to = bound_memory(out, t->dtype, &t->dims);
        if (!to)
            return error_set(CLG_ERROR_SHAPE,
                             "output '%s' has another dtype or shape than the value bound to it",
                             output_name(s, i));
        if (t->size_bytes) memcpy(to, t->data, t->size_bytes);
        return CLG_OK;
    }
    if (out->call && t->size_bytes && t->size_bytes <= out->call->capacity_bytes) {
        memcpy(out->call->data, t->data, t->size_bytes);
        out->in_call_data = true;
        return CLG_OK;
    }
    value_free(out->host);
    out->host = NULL;
    return value_create_host(t, &out->host);
}

static clg_status join_by_copy(clg_session *s, size_t i, int axis, clg_dtype dtype,
                               const shape *dims, multi_piece *const *pieces, size_t n_pieces)
{
    tensor *t;
    CLG_TRY(tensor_create(dtype, dims, &t));
    clg_status status = copy_pieces(s, i, axis, dims, pieces, n_pieces, t->data);
    if (status == CLG_OK) status = deliver(s, i, t);
    tensor_free(t);
    return status;
}

/* Makes the tensor in which the pieces lie the result. */
static clg_status keep_place(clg_session *s, size_t i)
{
    const multi_output *o = &multi_of(s)->outputs[i];
    session_output *out = &s->outputs[i];
    out->in_call_data = o->is_calls;
    if (!o->whole_host || (out->host && out->host->host == o->whole_host)) return CLG_OK;
    value_free(out->host);
    out->host = NULL;
    return value_create_host(o->whole_host, &out->host);
}

static clg_status gather_output(clg_session *s, size_t i, multi_piece *const *pieces,
                                size_t n_pieces)
{
    multi_output *o = &multi_of(s)->outputs[i];
    session_output *out = &s->outputs[i];
    const bool is_common = o->axis == BATCH_NONE;
    const size_t n = is_common ? 1 : n_pieces;
    const int axis = is_common ? 0 : o->axis;
    clg_dtype dtype;
    shape dims;
    out->in_call_data = false;
    CLG_TRY(join_dims(s, i, axis, pieces, n, &dtype, &dims));
    CLG_TRY(!is_common && is_in_place(s->multi, i, dtype, &dims, pieces, n)
                ? keep_place(s, i)
                : join_by_copy(s, i, axis, dtype, &dims, pieces, n));
    out->dtype = o->dtype = dtype;
    out->dims = o->dims = dims;
    return CLG_OK;
}

clg_status multi_gather(clg_session *s, multi_piece *const *pieces, size_t n_pieces)
{
    for (size_t i = 0; i < s->n_outputs; i++) CLG_TRY(gather_output(s, i, pieces, n_pieces));
    for (size_t i = 0; i < s->n_outputs; i++) {
        session_output *out = &s->outputs[i];
        tensor_free(out->known);
        out->known = NULL;
        out->valid = multi_of(s)->outputs[i].is_known = true;
    }
    return CLG_OK;
}
