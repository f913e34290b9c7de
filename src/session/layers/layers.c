/* SPDX-License-Identifier: Apache-2.0
 *
 * Creates, clones, describes and frees sessions whose nodes are divided among devices.
 */
#include "session/layers/layers.h"

#include "session/multi/multi.h"

#include <clgraph/multi.h>

#define USABLE(bytes) ((bytes) / 16 * 15) /* of a device's memory: drivers need some */

/* ---- what clones share ----------------------------------------------------------------------- */

static void release_shared(layers_shared *shared)
{
    if (!shared || !refcount_release(&shared->refs)) return;
    layers_division_free(shared->division);
    for (size_t i = 0; i < shared->n_devices; i++) context_handle_free(shared->devices[i].context);
    layer_costs_deinit(&shared->costs);
    model_free(shared->model);
    cancel_free(shared->token);
    condition_deinit(&shared->changed);
    mutex_deinit(&shared->lock);
    arena_deinit(&shared->memory);
    memory_free(shared);
}

/* Estimates the costs for the declared shapes, free dimensions 1. */
static clg_status estimate(layers_shared *shared)
{
    const graph *g = shared->model->graph;
    value_fact *inputs = memory_zalloc(g->n_inputs + 1, sizeof *inputs), *facts = NULL;
    clg_status status = inputs ? CLG_OK : CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; i < g->n_inputs && status == CLG_OK; i++) {
        const value *v = &g->values[g->inputs[i]];
        fact_set(&inputs[i], v->dtype, &v->dims);
        inputs[i].kind = v->kind;
        inputs[i].key_dtype = v->key_dtype;
        for (int d = 0; d < v->dims.rank; d++)
            if (v->dims.dims[d] == DIM_UNKNOWN) inputs[i].dims.dims[d] = 1;
    }
    if (status == CLG_OK) status = ops_infer_graph(g, inputs, &facts);
    if (status == CLG_ERROR_SHAPE) status = ops_infer_graph(g, NULL, &facts); /* 1 is too small */
    if (status == CLG_OK) {
        status = layer_costs_create(g, facts, &shared->costs);
        ops_facts_free(facts, g->n_values);
    }
    memory_free(inputs);
    return status;
}

static clg_status add_device(layers_shared *shared, clg_context *context,
                             const exec_options *options)
{
    layers_device *d = &shared->devices[shared->n_devices];
    CLG_TRY(exec_options_copy(&shared->memory, options, &d->options));
    device_context *now = context_handle_current(context);
    const device_caps *caps = ocl_context_caps(now->ocl);
    const uint64_t limit = options->limits.max_memory_bytes;
    d->speed = multi_guess_speed(now);
    d->limit_bytes = USABLE(caps->global_mem_bytes);
    if (limit > 0 && limit < d->limit_bytes) d->limit_bytes = limit;
    /* Where memory is not shared, transfers of one run overlap with work of another. */
    d->n_at_once = caps->unified_memory ? 1 : 2;
    context_free(now);
    d->context = context_handle_retain(context);
    shared->n_devices++;
    return CLG_OK;
}

static clg_status init_locks(layers_shared *shared)
{
    CLG_TRY(mutex_init(&shared->lock));
    const clg_status status = condition_init(&shared->changed);
    if (status != CLG_OK) mutex_deinit(&shared->lock);
    return status;
}

static clg_status make_shared(clg_context *const *contexts, size_t n, clg_model *model,
                              const exec_options *options, clg_cancel *token,
                              layers_shared **out_shared)
{
    layers_shared *shared = memory_zalloc(1, sizeof *shared);
    clg_status status = shared ? init_locks(shared) : CLG_ERROR_OUT_OF_HOST_MEMORY;
    if (status != CLG_OK) {
        memory_free(shared);
        return status;
    }
    refcount_init(&shared->refs);
    shared->model = model_retain(model);
    shared->token = cancel_retain(token);
    shared->devices = arena_alloc(&shared->memory, n, sizeof *shared->devices);
    status = shared->devices ? CLG_OK : CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; i < n && status == CLG_OK; i++)
        status = add_device(shared, contexts[i], &options[i]);
    if (status == CLG_OK) status = estimate(shared);
    if (status == CLG_OK)
        *out_shared = shared;
    else
        release_shared(shared);
    return status;
}

/* ---- sessions -------------------------------------------------------------------------------- */

/* The front's token, and the caller's, cancel all work on the calling thread. */
static void ignore(void *multi) { (void)multi; }

static void release_layers(void *multi)
{
    layers_session *l = multi;
    layers_drop_stages(l);
    release_shared(l->shared);
    memory_free(l);
}

static clg_status clone(clg_session *s, clg_session **out_session);

static size_t n_parts_of(const void *multi)
{
    return ((const layers_session *)multi)->shared->n_devices;
}

/* Returns the part of a device; SIZE_MAX if it has none. */
static size_t part_of(const layers_session *l, size_t device)
{
    for (size_t p = 0; l->division && p < l->division->n_parts; p++)
        if (l->division->parts[p].device == device) return p;
    return SIZE_MAX;
}

static void describe(const void *multi, size_t device, clg_session_part *out)
{
    const layers_session *l = multi;
    layers_device *d = &l->shared->devices[device];
    const size_t p = part_of(l, device);
    double busy_s = 0;
    mutex_lock(&l->shared->lock);
    *out = (clg_session_part){.device = context_handle_info(d->context),
                              .is_lost = d->is_lost,
                              .idle_share = l->has_run ? 1 : 0,
                              .first_node = "",
                              .last_node = ""};
    mutex_unlock(&l->shared->lock);
    if (p == SIZE_MAX) return;
    const layers_part *part = &l->division->parts[p];
    out->session = l->stages[p].session;
    out->n_nodes = part->n_nodes;
    out->first_node = part->first_node;
    out->last_node = part->last_node;
    out->weight_bytes = part->weight_bytes;
    out->crossing_bytes = part->crossing_bytes;
    if (!l->has_run) return;
    out->busy_s = l->stages[p].busy_s;
    for (size_t i = 0; i < l->division->n_parts; i++) busy_s += l->stages[i].busy_s;
    out->share = busy_s > 0 ? out->busy_s / busy_s : 0;
    out->idle_share = l->whole_s > out->busy_s ? 1 - out->busy_s / l->whole_s : 0;
}

static clg_session *ran(const void *multi, size_t device)
{
    const layers_session *l = multi;
    const size_t p = part_of(l, device);
    return p == SIZE_MAX || !l->has_run ? NULL : l->stages[p].session;
}

static const session_several several = {.run = layers_run,
                                        .prepare = layers_prepare,
                                        .clone = clone,
                                        .begin = ignore,
                                        .cancel = ignore,
                                        .release = release_layers,
                                        .n_parts = n_parts_of,
                                        .describe = describe,
                                        .ran = ran};

/* Makes `front` a session over the devices. */
static clg_status attach(clg_session *front, layers_shared *shared)
{
    layers_session *l = memory_zalloc(1, sizeof *l);
    if (!l) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    refcount_retain(&shared->refs);
    l->shared = shared;
    front->multi = l;
    front->several = &several;
    return CLG_OK;
}

/* Returns a device that is not lost, or the first one. */
static const layers_device *any_device(const layers_shared *shared)
{
    for (size_t i = 0; i < shared->n_devices; i++)
        if (!context_handle_is_lost(shared->devices[i].context)) return &shared->devices[i];
    return &shared->devices[0];
}

static clg_status open_front(layers_shared *shared, clg_session **out_session)
{
    const layers_device *first = any_device(shared);
    exec_options options = first->options;
    options.is_front = true;
    device_context *now = context_handle_current(first->context);
    clg_session *front = NULL;
    clg_status status = session_create(first->context, now, shared->model, &options, shared->token,
                                       NULL, NULL, &front);
    context_free(now);
    if (status == CLG_OK) status = attach(front, shared);
    if (status == CLG_OK)
        *out_session = front;
    else
        session_free(front);
    return status;
}

clg_status layers_create(clg_context *const *contexts, size_t n, clg_model *model,
                         const exec_options *options, clg_cancel *token,
                         clg_progress_callback progress, void *user, clg_session **out_session)
{
    layers_shared *shared;
    clg_session *front;
    *out_session = NULL;
    CLG_TRY(model_require_data(model));
    CLG_TRY(make_shared(contexts, n, model, options, token, &shared));
    clg_status status = open_front(shared, &front);
    release_shared(shared);
    CLG_TRY(status);
    CANCEL_WITHIN(status, token, NULL, layers_refresh(front, progress, user));
    if (status == CLG_OK)
        *out_session = front;
    else
        session_free(front);
    return status;
}

static clg_status clone(clg_session *s, clg_session **out_session)
{
    layers_session *l = s->multi;
    *out_session = NULL;
    CLG_TRY(open_front(l->shared, out_session));
    clg_status status;
    CANCEL_WITHIN(status, s->token, NULL, layers_refresh(*out_session, NULL, NULL));
    if (status == CLG_OK) return CLG_OK;
    session_free(*out_session);
    *out_session = NULL;
    return status;
}
