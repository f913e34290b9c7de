/* SPDX-License-Identifier: Apache-2.0
 *
 * Weights on the device: raw on demand, packed once per (weight, recipe), literals of a segment.
 */
#include "session/exec/exec.h"
#include "session/run/launch.h"

#include <stdio.h>
#include <string.h>

#define UPLOAD_BYTES ((size_t)8 << 20)

/* Bytes of a constant to the start of b. In pieces, so that of a mapped file little is in memory
 * twice. */
static clg_status upload_content(session_exec *e, ocl_buffer *b, const tensor *t,
                                 size_t offset_bytes, size_t size_bytes)
{
    for (size_t at = 0; at < size_bytes; at += UPLOAD_BYTES) {
        const size_t rest = size_bytes - at, n = rest < UPLOAD_BYTES ? rest : UPLOAD_BYTES;
        CLG_TRY(context_upload(e->context, b, at, (const char *)t->data + offset_bytes + at, n));
        tensor_unload(t, offset_bytes + at, n);
    }
    return CLG_OK;
}

static clg_status find_content(const session_exec *e, value_id v, const tensor **out_content)
{
    const tensor *t = e->weights[v].known;
    *out_content = t;
    if (!t)
        return error_set(CLG_ERROR_INTERNAL, "weight '%s' has no content",
                         e->graph->values[v].name);
    if (t->dtype == CLG_STRING)
        return error_set(CLG_ERROR_UNSUPPORTED_DTYPE,
                         "constant '%s': strings cannot be placed on a device",
                         e->graph->values[v].name);
    return CLG_OK;
}

static clg_status upload_constant(session_exec *e, value_id v, ocl_buffer **out_buffer)
{
    const tensor *t;
    ocl_buffer *b;
    *out_buffer = NULL;
    CLG_TRY(find_content(e, v, &t));
    clg_status status = ocl_buffer_create(e->context->ocl, t->size_bytes, OCL_BUFFER_DEVICE, &b);
    if (status != CLG_OK) return error_prefix(status, "weight '%s'", e->graph->values[v].name);
    status = upload_content(e, b, t, 0, t->size_bytes);
    if (status != CLG_OK) {
        ocl_buffer_free(b);
        return error_prefix(status, "weight '%s'", e->graph->values[v].name);
    }
    *out_buffer = b;
    return CLG_OK;
}

/* With weights_lock held. */
static clg_status find_or_upload(session_exec *e, value_id v)
{
    if (e->weight_buffers[v]) return CLG_OK;
    CLG_TRY(upload_constant(e, v, &e->weight_buffers[v]));
    e->weight_bytes += ocl_buffer_size(e->weight_buffers[v]);
    return CLG_OK;
}

/* With weights_lock held. */
static void drop_weight(session_exec *e, value_id v)
{
    if (!e->weight_buffers[v]) return;
    e->weight_bytes -= ocl_buffer_size(e->weight_buffers[v]);
    ocl_buffer_free(e->weight_buffers[v]);
    e->weight_buffers[v] = NULL;
}

/* A result of the init plan that is on the device only. */
static bool is_computed(const session_exec *e, value_id v)
{
    return !e->weights[v].known && e->weights[v].dtype != CLG_DTYPE_NONE;
}

bool exec_is_gone(session_exec *e, value_id v)
{
    mutex_lock(&e->weights_lock);
    const bool is_gone = !e->weight_buffers[v] && is_computed(e, v);
    mutex_unlock(&e->weights_lock);
    return is_gone;
}

/* With plan_lock held. */
static clg_status restore_if_gone(session_exec *e, value_id v)
{
    return exec_is_gone(e, v) ? exec_restore(e, v) : CLG_OK;
}

clg_status exec_init_buffer(session_exec *e, value_id v, ocl_buffer **out_buffer)
{
    mutex_lock(&e->weights_lock);
    clg_status status = find_or_upload(e, v);
    *out_buffer = e->weight_buffers[v];
    mutex_unlock(&e->weights_lock);
    return status;
}

static clg_status bind_weight(session_exec *e, value_id v, ocl_buffer **out_buffer)
{
    mutex_lock(&e->weights_lock);
    clg_status status = find_or_upload(e, v);
    if (status == CLG_OK) e->weight_is_bound[v] = true;
    *out_buffer = e->weight_buffers[v];
    mutex_unlock(&e->weights_lock);
    return status;
}

clg_status exec_weight_buffer(session_exec *e, value_id v, ocl_buffer **out_buffer)
{
    *out_buffer = NULL;
    if (!is_computed(e, v)) return bind_weight(e, v, out_buffer);
    mutex_lock(&e->plan_lock); /* between the two nobody packs it and releases it */
    clg_status status = restore_if_gone(e, v);
    if (status == CLG_OK) status = bind_weight(e, v, out_buffer);
    mutex_unlock(&e->plan_lock);
    return status;
}

void exec_keep_weight(session_exec *e, value_id v, ocl_buffer *b)
{
    mutex_lock(&e->weights_lock);
    drop_weight(e, v);
    e->weight_buffers[v] = ocl_buffer_retain(b);
    e->weight_bytes += ocl_buffer_size(b);
    mutex_unlock(&e->weights_lock);
}

void exec_drop_constants(session_exec *e)
{
    mutex_lock(&e->weights_lock);
    for (size_t v = 0; v < e->graph->n_values; v++)
        if (e->graph->values[v].constant && !e->weight_is_bound[v]) drop_weight(e, (value_id)v);
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

/* ---- packing --------------------------------------------------------------------------------- */

/* What a packing reads and writes. */
typedef struct pack_work {
    const packing *packing;
    const candidate *candidate;
    ocl_buffer *packed;
    ocl_buffer *raw;       /* borrowed */
    const tensor *content; /* of which a window is in raw; NULL: raw has it all */
    size_t window_offset, window_bytes;
} pack_work;

/* Has memory for so many bytes that all packings of a plan share. */
static clg_status reserve_staging(session_exec *e, size_t size_bytes)
{
    if (e->staging && ocl_buffer_size(e->staging) >= size_bytes) return CLG_OK;
    ocl_buffer_free(e->staging);
    e->staging = NULL;
    return ocl_buffer_create(e->context->ocl, size_bytes, OCL_BUFFER_DEVICE, &e->staging);
}

/* Results that came back together with one that was packed, for nothing. */
static void drop_spare(session_exec *e)
{
    for (size_t i = 0; i < e->n_init_outputs; i++) {
        const value_id v = e->init_outputs[i];
        if (e->weight_may_go[v] && !e->weight_is_bound[v]) drop_weight(e, v);
    }
}

void exec_end_planning(session_exec *e)
{
    mutex_lock(&e->weights_lock);
    ocl_buffer_free(e->staging);
    e->staging = NULL;
    drop_spare(e);
    mutex_unlock(&e->weights_lock);
}

/* Brings what the step reads to the device. Steps before it are through with the memory: the
 * queue is in order. */
static clg_status bring_window(session_exec *e, const step *s, pack_work *w)
{
    if (!w->content) return CLG_OK;
    const size_t offset = s->window_bytes ? s->window_offset : 0;
    const size_t n = s->window_bytes ? s->window_bytes : w->content->size_bytes;
    if (offset > w->content->size_bytes || n > w->content->size_bytes - offset)
        return error_set(CLG_ERROR_INTERNAL, "packing '%s' reads beyond its weight",
                         w->packing->recipe);
    if (w->raw && offset == w->window_offset && n == w->window_bytes) return CLG_OK;
    CLG_TRY(reserve_staging(e, n));
    w->raw = e->staging;
    w->window_offset = offset;
    w->window_bytes = n;
    return upload_content(e, w->raw, w->content, offset, n);
}

static clg_status bind_pack_operand(void *self, const operand *o, bound_buffer *to)
{
    const pack_work *w = self;
    if (o->space == OPERAND_INPUT && o->index == w->packing->input) {
        to->buffer = w->raw;
        to->offset_bytes -= (int64_t)w->window_offset;
    } else if (o->space == OPERAND_PACKED && o->index < w->candidate->n_packings &&
               &w->candidate->packings[o->index] == w->packing) {
        to->buffer = w->packed;
    } else {
        return error_set(CLG_ERROR_INTERNAL, "packing '%s' names an operand that is not its own",
                         w->packing->recipe);
    }
    return CLG_OK;
}

static clg_status run_packing(session_exec *e, pack_work *w)
{
    CLG_TRY(
        ocl_buffer_create(e->context->ocl, w->packing->size_bytes, OCL_BUFFER_DEVICE, &w->packed));
    clg_status status = CLG_OK;
    for (const step *s = w->packing->steps; s && status == CLG_OK; s = s->next) {
        status = bring_window(e, s, w);
        if (status == CLG_OK) status = launch_once(e->context, s, bind_pack_operand, w, NULL);
    }
    mutex_lock(&e->context->utility_lock);
    clg_status finished = ocl_queue_finish(e->context->utility);
    mutex_unlock(&e->context->utility_lock);
    return status == CLG_OK ? finished : status;
}

/* A result that only the node reads for which it was packed. */
static void release(session_exec *e, value_id v)
{
    if (!is_computed(e, v) || e->n_readers[v] != 1 || e->weight_is_bound[v]) return;
    e->weight_may_go[v] = true;
    drop_weight(e, v);
}

static clg_status add_packed(session_exec *e, const char *key, value_id weight, const candidate *c,
                             const packing *p)
{
    pack_work w = {.packing = p, .candidate = c, .raw = e->weight_buffers[weight]};
    CLG_TRY(MEMORY_RESERVE(e->packed, e->packed_capacity, e->n_packed + 1));
    if (!w.raw) CLG_TRY(find_content(e, weight, &w.content));
    clg_status status = run_packing(e, &w);
    if (status == CLG_OK) status = hash_map_set_string(&e->packed_keys, key, e->n_packed);
    if (status != CLG_OK) {
        ocl_buffer_free(w.packed);
        return error_prefix(status, "weight '%s'", e->graph->values[weight].name);
    }
    e->packed[e->n_packed++].buffer = w.packed;
    e->weight_bytes += ocl_buffer_size(w.packed);
    atomic_fetch_add(&e->context->weights_packed, 1);
    release(e, weight);
    return CLG_OK;
}

clg_status exec_pack(void *self, value_id weight, const value_fact *fact, const candidate *c,
                     const packing *p, uint32_t *out_index)
{
    session_exec *e = self;
    char key[256];
    clg_status status = CLG_OK;
    (void)fact;
    int length = snprintf(key, sizeof key, "%u|%s", weight, p->recipe);
    if (length < 0 || (size_t)length >= sizeof key)
        return error_set(CLG_ERROR_INTERNAL, "the packing recipe '%s' is too long", p->recipe);
    mutex_lock(&e->weights_lock);
    size_t index = hash_map_get_string(&e->packed_keys, key);
    mutex_unlock(&e->weights_lock);
    if (index == HASH_MAP_NONE) CLG_TRY(restore_if_gone(e, weight));
    mutex_lock(&e->weights_lock);
    if (index == HASH_MAP_NONE) {
        status = add_packed(e, key, weight, c, p);
        index = e->n_packed - 1;
    }
    mutex_unlock(&e->weights_lock);
    *out_index = (uint32_t)index;
    return status;
}

uint64_t exec_weight_bytes(session_exec *e)
{
    mutex_lock(&e->weights_lock);
    uint64_t bytes = e->weight_bytes;
    mutex_unlock(&e->weights_lock);
    return bytes;
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
