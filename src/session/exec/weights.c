/* SPDX-License-Identifier: Apache-2.0
 *
 * Manages the device buffers of weights: uploads constants when they are first needed, keeps
 * results of the init plan, and uploads the literals (small tensors known to the planner) of a
 * segment. packing.c packs weights.
 */
#include "session/exec/weights.h"

#include <stdio.h>

#define UPLOAD_BYTES ((size_t)8 << 20) /* bytes per write */

clg_status weights_upload(session_exec *e, ocl_buffer *b, const tensor *t, size_t offset_bytes,
                          size_t size_bytes)
{
    for (size_t at = 0; at < size_bytes; at += UPLOAD_BYTES) {
        const size_t rest = size_bytes - at, n = rest < UPLOAD_BYTES ? rest : UPLOAD_BYTES;
        CLG_TRY(context_upload(e->context, b, at, (const char *)t->data + offset_bytes + at, n));
        tensor_unload(t, offset_bytes + at, n);
    }
    return CLG_OK;
}

clg_status weights_content(const session_exec *e, value_id v, const tensor **out_content)
{
    char name[VALUE_TEXT_BYTES];
    const tensor *t = e->weights[v].known;
    *out_content = t;
    if (!t)
        return error_set(CLG_ERROR_INTERNAL, "weight %s has no content",
                         value_text(e->graph, v, name));
    if (t->dtype == CLG_STRING)
        return error_set(CLG_ERROR_UNSUPPORTED_DTYPE,
                         "constant %s: strings cannot be placed on a device",
                         value_text(e->graph, v, name));
    return CLG_OK;
}

static clg_status upload_constant(session_exec *e, value_id v, ocl_buffer **out_buffer)
{
    const tensor *t;
    ocl_buffer *b;
    char name[VALUE_TEXT_BYTES];
    *out_buffer = NULL;
    CLG_TRY(weights_content(e, v, &t));
    clg_status status = ocl_buffer_create(e->context->ocl, t->size_bytes, OCL_BUFFER_DEVICE, &b);
    if (status != CLG_OK) return error_prefix(status, "weight %s", value_text(e->graph, v, name));
    status = weights_upload(e, b, t, 0, t->size_bytes);
    if (status != CLG_OK) {
        ocl_buffer_free(b);
        return error_prefix(status, "weight %s", value_text(e->graph, v, name));
    }
    *out_buffer = b;
    return CLG_OK;
}

/* Uploads weight v unless it has a buffer. Call with weights_lock held. */
static clg_status find_or_upload(session_exec *e, value_id v)
{
    if (e->weight_buffers[v]) return CLG_OK;
    CLG_TRY(upload_constant(e, v, &e->weight_buffers[v]));
    e->weight_bytes += ocl_buffer_size(e->weight_buffers[v]);
    return CLG_OK;
}

clg_status weights_packing_key(value_id weight, const packing *p, char key[PACKING_KEY_BYTES])
{
    const int length = snprintf(key, PACKING_KEY_BYTES, "%u|%s", weight, p->recipe);
    return length >= 0 && (size_t)length < PACKING_KEY_BYTES
               ? CLG_OK
               : error_set(CLG_ERROR_INTERNAL, "the packing recipe '%s' is too long", p->recipe);
}

void weights_drop(session_exec *e, value_id v)
{
    if (!e->weight_buffers[v]) return;
    e->weight_bytes -= ocl_buffer_size(e->weight_buffers[v]);
    ocl_buffer_free(e->weight_buffers[v]);
    e->weight_buffers[v] = NULL;
}

bool weights_is_computed(const session_exec *e, value_id v)
{
    return !e->weights[v].known && e->weights[v].dtype != CLG_DTYPE_NONE;
}

bool exec_is_gone(session_exec *e, value_id v)
{
    mutex_lock(&e->weights_lock);
    const bool is_gone = !e->weight_buffers[v] && weights_is_computed(e, v);
    mutex_unlock(&e->weights_lock);
    return is_gone;
}

clg_status exec_init_buffer(session_exec *e, value_id v, ocl_buffer **out_buffer)
{
    mutex_lock(&e->weights_lock);
    clg_status status = find_or_upload(e, v);
    *out_buffer = e->weight_buffers[v];
    mutex_unlock(&e->weights_lock);
    return status;
}

clg_status weights_bind(session_exec *e, value_id v, ocl_buffer **out_buffer)
{
    mutex_lock(&e->weights_lock);
    clg_status status = find_or_upload(e, v);
    if (status == CLG_OK) e->weight_is_bound[v] = true;
    *out_buffer = e->weight_buffers[v];
    mutex_unlock(&e->weights_lock);
    return status;
}

void exec_keep_weight(session_exec *e, value_id v, ocl_buffer *b)
{
    mutex_lock(&e->weights_lock);
    weights_drop(e, v);
    e->weight_buffers[v] = ocl_buffer_retain(b);
    e->weight_bytes += ocl_buffer_size(b);
    mutex_unlock(&e->weights_lock);
}

void exec_drop_constants(session_exec *e)
{
    mutex_lock(&e->weights_lock);
    for (size_t v = 0; v < e->graph->n_values; v++)
        if (e->graph->values[v].constant && !e->weight_is_bound[v]) weights_drop(e, (value_id)v);
    mutex_unlock(&e->weights_lock);
}

clg_status exec_packed_buffer(session_exec *e, uint32_t index, ocl_buffer **out_buffer)
{
    mutex_lock(&e->weights_lock);
    *out_buffer = index < e->n_packed ? e->packed[index].buffer : NULL;
    mutex_unlock(&e->weights_lock);
    return *out_buffer ? CLG_OK
                       : error_set(CLG_ERROR_INTERNAL, "packed weight %u does not exist", index);
}

static void release_literals(void *bound) { ocl_buffer_free(bound); }

clg_status exec_literals(session_exec *e, plan_segment *segment, ocl_buffer **out_buffer)
{
    clg_status status = CLG_OK;
    mutex_lock(&e->weights_lock);
    if (!segment->bound) {
        ocl_buffer *b = NULL;
        status = ocl_buffer_create(e->context->ocl, segment->literal_bytes, OCL_BUFFER_DEVICE, &b);
        if (status == CLG_OK)
            status = context_upload(e->context, b, 0, segment->literals, segment->literal_bytes);
        if (status == CLG_OK) {
            segment->bound = b;
            segment->release_bound = release_literals;
        } else {
            ocl_buffer_free(b);
        }
    }
    *out_buffer = segment->bound;
    mutex_unlock(&e->weights_lock);
    return status;
}

uint64_t exec_weight_bytes(session_exec *e)
{
    mutex_lock(&e->weights_lock);
    uint64_t bytes = e->weight_bytes;
    mutex_unlock(&e->weights_lock);
    return bytes;
}

void exec_release_lost(session_exec *e)
{
    if (!ocl_context_is_lost(e->context->ocl) || atomic_load(&e->n_frames) > 0) return;
    mutex_lock(&e->plan_lock);
    mutex_lock(&e->weights_lock);
    for (size_t v = 0; v < e->graph->n_values; v++) weights_drop(e, (value_id)v);
    for (size_t i = 0; i < e->n_packed; i++) {
        ocl_buffer_free(e->packed[i].buffer);
        e->packed[i].buffer = NULL;
    }
    e->weight_bytes = 0;
    mutex_unlock(&e->weights_lock);
    mutex_unlock(&e->plan_lock);
}

void exec_free_weights(session_exec *e)
{
    for (size_t v = 0; e->graph && e->weight_buffers && v < e->graph->n_values; v++)
        ocl_buffer_free(e->weight_buffers[v]);
    for (size_t i = 0; i < e->n_packed; i++) ocl_buffer_free(e->packed[i].buffer);
    for (size_t i = 0; i < e->n_held; i++) tensor_free(e->held[i]);
    ocl_buffer_free(e->staging);
    memory_free(e->packed);
    memory_free(e->held);
    hash_map_deinit(&e->packed_keys);
}
