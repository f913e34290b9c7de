/* SPDX-License-Identifier: Apache-2.0
 *
 * Packs weights: reorders them on the device into the layout that a kernel needs, once for each
 * weight and packing recipe (layout and parameters as text). Releases results of the init plan
 * after packing, and has them recomputed when they are needed again.
 */
#include "base/cancel.h"
#include "session/exec/weights.h"
#include "session/run/launch.h"

/* Recomputes result v of the init plan if it was released. Call with plan_lock held. */
static clg_status restore_if_gone(session_exec *e, value_id v)
{
    return exec_is_gone(e, v) ? exec_restore(e, v) : CLG_OK;
}

clg_status exec_weight_buffer(session_exec *e, value_id v, ocl_buffer **out_buffer)
{
    *out_buffer = NULL;
    if (!weights_is_computed(e, v)) return weights_bind(e, v, out_buffer);
    mutex_lock(&e->plan_lock); /* so that no other thread packs and releases it in between */
    clg_status status = restore_if_gone(e, v);
    if (status == CLG_OK) status = weights_bind(e, v, out_buffer);
    mutex_unlock(&e->plan_lock);
    return status;
}

/* The operands of a packing in progress. */
typedef struct pack_work {
    const packing *packing;
    const candidate *candidate;
    ocl_buffer *packed;
    ocl_buffer *raw;                    /* borrowed */
    const tensor *content;              /* if not NULL, raw holds only a window of this constant */
    size_t window_offset, window_bytes; /* of the window */
} pack_work;

/* Reserves the staging memory that all packings of a plan share. */
static clg_status reserve_staging(session_exec *e, size_t size_bytes)
{
    if (e->staging && ocl_buffer_size(e->staging) >= size_bytes) return CLG_OK;
    ocl_buffer_free(e->staging);
    e->staging = NULL;
    return ocl_buffer_create(e->context->ocl, size_bytes, OCL_BUFFER_DEVICE, &e->staging);
}

/* Releases results that were recomputed as a side effect and not needed. */
static void drop_spare(session_exec *e)
{
    for (size_t i = 0; i < e->n_init_outputs; i++) {
        const value_id v = e->init_outputs[i];
        if (e->weight_may_go[v] && !e->weight_is_bound[v]) weights_drop(e, v);
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

/* Uploads the part of the weight that step s reads, its window, unless it is in raw. Earlier steps
 * cannot be disturbed, since the queue executes in order. */
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
    return weights_upload(e, w->raw, w->content, offset, n);
}

/* Implements launch_operand. */
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

/* Runs the steps of a packing into a new buffer, and waits. */
static clg_status run_packing(session_exec *e, pack_work *w)
{
    CLG_TRY(
        ocl_buffer_create(e->context->ocl, w->packing->size_bytes, OCL_BUFFER_DEVICE, &w->packed));
    clg_status status = CLG_OK;
    for (const step *s = w->packing->steps; s && status == CLG_OK; s = s->next) {
        status = cancel_check("packing weights");
        if (status == CLG_OK) status = bring_window(e, s, w);
        if (status == CLG_OK) status = launch_once(e->context, s, bind_pack_operand, w, NULL);
    }
    mutex_lock(&e->context->utility_lock);
    clg_status finished = ocl_queue_finish(e->context->utility);
    mutex_unlock(&e->context->utility_lock);
    return status == CLG_OK ? finished : status;
}

/* Releases the unpacked buffer of v if it is a result of the init plan with a single consumer, the
 * node for which it was packed, and no session's frame uses it. */
static void release(session_exec *e, value_id v)
{
    if (!weights_is_computed(e, v) || e->n_readers[v] != 1 || e->weight_is_bound[v]) return;
    e->weight_may_go[v] = true;
    weights_drop(e, v);
}

static clg_status add_packed(session_exec *e, const char *key, value_id weight, const candidate *c,
                             const packing *p)
{
    pack_work w = {.packing = p, .candidate = c, .raw = e->weight_buffers[weight]};
    CLG_TRY(MEMORY_RESERVE(e->packed, e->packed_capacity, e->n_packed + 1));
    if (!w.raw) CLG_TRY(weights_content(e, weight, &w.content));
    clg_status status = run_packing(e, &w);
    if (status == CLG_OK) status = hash_map_set_string(&e->packed_keys, key, e->n_packed);
    if (status != CLG_OK) {
        ocl_buffer_free(w.packed);
        char name[VALUE_TEXT_BYTES];
        return error_prefix(status, "weight %s", value_text(e->graph, weight, name));
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
    char key[PACKING_KEY_BYTES];
    clg_status status = CLG_OK;
    (void)fact;
    CLG_TRY(weights_packing_key(weight, p, key));
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
    /* A failure leaves the index alone: planning may have it in what it remembers of the node. */
    if (status == CLG_OK) *out_index = (uint32_t)index;
    return status;
}
