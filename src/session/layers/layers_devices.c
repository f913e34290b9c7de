/* SPDX-License-Identifier: Apache-2.0
 *
 * Which device computes what: makes the division again when a device is lost or comes back, a part
 * does not fit, or measured speeds promise a gain; makes the sessions of the parts; and lets runs
 * of clones use the devices in turn.
 */
#include "session/layers/layers.h"

#include "base/log.h"

#include <string.h>

#define SMALLER(bytes) ((bytes) / 8 * 7) /* of a limit, after what should fit did not */
#define WORTH_A_DIVISION 1.15            /* the time of the slowest device over that of the best */
#define LOOK_MS 100                      /* at cancellation, while waiting for a device */

/* ---- sessions of parts ----------------------------------------------------------------------- */

void layers_drop_stages(layers_session *l)
{
    for (size_t p = 0; l->division && p < l->division->n_parts; p++) {
        if (!l->stages) break;
        session_free(l->stages[p].session);
        memory_free(l->stages[p].inputs);
        memory_free(l->stages[p].outputs);
    }
    for (size_t i = 0; l->division && l->slots && i < l->division->n_slots; i++) {
        tensor_free(l->slots[i].memory);
        value_free(l->slots[i].value);
    }
    memory_free(l->stages);
    memory_free(l->slots);
    layers_division_free(l->division);
    l->stages = NULL;
    l->slots = NULL;
    l->division = NULL;
    l->has_run = false;
}

/* Makes d the division of l. Takes ownership of the reference. */
static clg_status take_division(layers_session *l, layers_division *d)
{
    l->division = d;
    l->stages = memory_zalloc(d->n_parts, sizeof *l->stages);
    l->slots = memory_zalloc(d->n_slots + 1, sizeof *l->slots);
    if (!l->stages || !l->slots) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t p = 0; p < d->n_parts; p++) {
        const layers_part *part = &d->parts[p];
        layers_stage *stage = &l->stages[p];
        stage->inputs = memory_zalloc(part->n_inputs + 1, sizeof *stage->inputs);
        stage->outputs = memory_zalloc(part->n_outputs + 1, sizeof *stage->outputs);
        if (!stage->inputs || !stage->outputs) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    }
    return CLG_OK;
}

static clg_status adopt(layers_session *l, layers_division *d)
{
    layers_drop_stages(l); /* first, so that devices need not hold both */
    const clg_status status = take_division(l, d);
    if (status != CLG_OK) layers_drop_stages(l);
    return status;
}

static clg_status open_stage(layers_session *l, size_t p, clg_progress_callback progress,
                             void *user)
{
    const layers_part *part = &l->division->parts[p];
    const layers_device *device = &l->shared->devices[part->device];
    if (l->stages[p].session) return CLG_OK;
    device_context *now = context_handle_current(device->context);
    clg_status status = ocl_context_require(now->ocl);
    if (status == CLG_OK)
        status = session_create(device->context, now, part->model, &device->options,
                                l->shared->token, progress, user, &l->stages[p].session);
    context_free(now);
    return status;
}

/* ---- the division ---------------------------------------------------------------------------- */

/* Cuts the model for the devices that are left. Call with the lock held. */
static clg_status find_cuts(const layers_shared *shared, size_t *out_first)
{
    layer_device *devices = memory_zalloc(shared->n_devices, sizeof *devices);
    const char *lost = NULL;
    size_t n_left = 0;
    if (!devices) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; i < shared->n_devices; i++) {
        const layers_device *d = &shared->devices[i];
        devices[i] = (layer_device){d->is_lost ? 0 : d->speed, d->limit_bytes};
        n_left += !d->is_lost;
        if (d->is_lost) lost = context_handle_info(d->context)->selector;
    }
    clg_status status = n_left ? layer_cut(&shared->costs, shared->model->graph, devices,
                                           shared->n_devices, out_first)
                               : session_refuse_lost();
    if (status == CLG_ERROR_OUT_OF_DEVICE_MEMORY && lost)
        status =
            error_prefix(status, "device %s is lost, and the model does not fit the others", lost);
    memory_free(devices);
    return status;
}

/* Makes the current division, unless it is there. Call with the lock held. */
static clg_status make_division(layers_shared *shared)
{
    if (shared->division) return CLG_OK;
    size_t *first = memory_zalloc(shared->n_devices + 1, sizeof *first);
    clg_status status = first ? find_cuts(shared, first) : CLG_ERROR_OUT_OF_HOST_MEMORY;
    if (status == CLG_OK)
        status = layers_divide(shared->model, &shared->costs, first, shared->n_devices,
                               &shared->division);
    memory_free(first);
    return status;
}

static void forget_division(layers_shared *shared)
{
    layers_division_free(shared->division);
    shared->division = NULL;
}

/* Notes which devices came back after a loss. Call with the lock held. */
static void find_devices(layers_shared *shared)
{
    for (size_t i = 0; i < shared->n_devices; i++) {
        layers_device *d = &shared->devices[i];
        if (!d->is_lost || context_handle_is_lost(d->context)) continue;
        d->is_lost = false;
        forget_division(shared);
    }
}

static clg_status current_division(layers_shared *shared, layers_division **out_division)
{
    mutex_lock(&shared->lock);
    find_devices(shared);
    const clg_status status = make_division(shared);
    *out_division = status == CLG_OK ? layers_division_retain(shared->division) : NULL;
    mutex_unlock(&shared->lock);
    return status;
}

static const char *device_of(const layers_session *l, size_t part)
{
    const size_t device = l->division->parts[part].device;
    return context_handle_info(l->shared->devices[device].context)->selector;
}

clg_status layers_refresh(clg_session *front, clg_progress_callback progress, void *user)
{
    layers_session *l = front->multi;
    CLG_TRY(session_renew_front(front));
    for (size_t attempt = 0;; attempt++) {
        layers_division *d;
        error_record failure;
        size_t p = 0;
        clg_status status;
        CLG_TRY(current_division(l->shared, &d));
        if (d == l->division)
            layers_division_free(d);
        else
            CLG_TRY(adopt(l, d));
        do status = open_stage(l, p, progress, user);
        while (status == CLG_OK && ++p < d->n_parts);
        if (status == CLG_OK) return CLG_OK;
        error_save(error_prefix(status, "device %s", device_of(l, p)), &failure);
        if (attempt >= MAX_DIVISIONS) return failure.status;
        CLG_TRY(layers_after_failure(l, p, &failure));
    }
}

/* ---- failures -------------------------------------------------------------------------------- */

/* Returns whether a part failed since its device, or max_memory_bytes, is too small for it. Other
 * limits have the same status; hints name the limit. */
static bool is_too_small(const error_record *failure)
{
    return failure->status == CLG_ERROR_OUT_OF_DEVICE_MEMORY ||
           (failure->status == CLG_ERROR_LIMIT && strstr(failure->hint, "max_memory_bytes"));
}

/* Returns whether clg_context_recover gave the device of part p another context since the part's
 * session was made. */
static bool is_replaced(const layers_session *l, size_t p)
{
    const clg_session *s = l->stages[p].session;
    return !s || session_is_stale(s);
}

/* Lowers the limit of a device, so that the next division gives it less. Call with the lock
 * held. */
static clg_status lower_limit(layers_shared *shared, const layers_part *part,
                              const error_record *failure)
{
    layers_device *d = &shared->devices[part->device];
    const uint64_t before = d->limit_bytes,
                   needs = shared->costs.part_bytes[layer_index(&shared->costs, part->first_block,
                                                                part->end_block)];
    d->limit_bytes = SMALLER(needs < before ? needs : before);
    forget_division(shared);
    if (shared->n_devices > 1 && make_division(shared) == CLG_OK) {
        log_write(CLG_LOG_INFO,
                  "device %s has too little memory for its part of the model, which "
                  "is divided again",
                  context_handle_info(d->context)->selector);
        return CLG_OK;
    }
    d->limit_bytes = before;
    return error_restore(failure);
}

clg_status layers_after_failure(layers_session *l, size_t p, const error_record *failure)
{
    layers_shared *shared = l->shared;
    const layers_part *part = &l->division->parts[p];
    layers_device *d = &shared->devices[part->device];
    clg_status status = error_restore(failure);
    mutex_lock(&shared->lock);
    if (status == CLG_ERROR_DEVICE_LOST && context_handle_is_lost(d->context)) {
        if (!d->is_lost)
            log_write(CLG_LOG_WARNING,
                      "device %s was lost in a run over several devices: the others compute its "
                      "part of the model",
                      context_handle_info(d->context)->selector);
        if (!d->is_lost) forget_division(shared);
        d->is_lost = true;
        status = CLG_OK;
    } else if (status == CLG_ERROR_DEVICE_LOST && is_replaced(l, p)) {
        status = CLG_OK; /* it works again already */
    } else if (shared->division && shared->division != l->division && is_too_small(failure)) {
        status = CLG_OK; /* another session has divided it again */
    } else if (is_too_small(failure)) {
        status = lower_limit(shared, part, failure);
    }
    mutex_unlock(&shared->lock);
    return status;
}

/* ---- speeds ---------------------------------------------------------------------------------- */

/* Returns the time of the slowest device, with these speeds. */
static double slowest_of(const layers_shared *shared, const layers_division *d)
{
    double slowest = 0;
    for (size_t p = 0; p < d->n_parts; p++) {
        const double s =
            layer_work(&shared->costs, d->parts[p].first_block, d->parts[p].end_block) /
            shared->devices[d->parts[p].device].speed;
        if (s > slowest) slowest = s;
    }
    return slowest;
}

/* Takes over the measured speeds, and scales those of devices without a part. */
static void measure(layers_session *l)
{
    layers_shared *shared = l->shared;
    double guessed = 0, measured = 0;
    for (size_t p = 0; p < l->division->n_parts; p++) {
        const layers_part *part = &l->division->parts[p];
        if (l->stages[p].busy_s <= 0) continue;
        guessed += shared->devices[part->device].speed;
        measured +=
            layer_work(&shared->costs, part->first_block, part->end_block) / l->stages[p].busy_s;
    }
    for (size_t i = 0; i < shared->n_devices && guessed > 0; i++)
        shared->devices[i].speed *= measured / guessed;
    for (size_t p = 0; p < l->division->n_parts; p++) {
        const layers_part *part = &l->division->parts[p];
        if (l->stages[p].busy_s > 0)
            shared->devices[part->device].speed =
                layer_work(&shared->costs, part->first_block, part->end_block) /
                l->stages[p].busy_s;
    }
}

/* Makes another division, and keeps it if it promises a gain. Call with the lock held. */
static bool divide_better(layers_shared *shared)
{
    layers_division *before = shared->division;
    shared->division = NULL;
    const bool is_made = make_division(shared) == CLG_OK && shared->division;
    const bool gains = is_made && slowest_of(shared, before) >
                                      WORTH_A_DIVISION * slowest_of(shared, shared->division);
    if (gains) {
        layers_division_free(before);
    } else {
        layers_division_free(shared->division);
        shared->division = before;
    }
    return gains;
}

bool layers_learn(layers_session *l)
{
    layers_shared *shared = l->shared;
    bool gains = false;
    mutex_lock(&shared->lock);
    if (l->has_run && shared->division && shared->division == l->division &&
        l->division->n_parts > 1) {
        measure(l);
        gains = divide_better(shared);
    }
    mutex_unlock(&shared->lock);
    return gains;
}

/* ---- devices in turn ------------------------------------------------------------------------- */

static void leave_queue(layers_device *d, layers_waiter *w)
{
    layers_waiter **at = &d->waiters;
    while (*at != w) at = &(*at)->next;
    *at = w->next;
}

clg_status layers_enter_device(layers_shared *shared, size_t device)
{
    layers_device *d = &shared->devices[device];
    layers_waiter self = {NULL}, **end = &d->waiters;
    clg_status status = CLG_OK;
    mutex_lock(&shared->lock);
    while (*end) end = &(*end)->next;
    *end = &self;
    while (status == CLG_OK && (d->waiters != &self || d->n_inside >= d->n_at_once)) {
        condition_wait_for(&shared->changed, &shared->lock, LOOK_MS);
        status = cancel_check("the run");
    }
    leave_queue(d, &self);
    if (status == CLG_OK) d->n_inside++;
    condition_broadcast(&shared->changed);
    mutex_unlock(&shared->lock);
    return status;
}

void layers_leave_device(layers_shared *shared, size_t device)
{
    mutex_lock(&shared->lock);
    shared->devices[device].n_inside--;
    condition_broadcast(&shared->changed);
    mutex_unlock(&shared->lock);
}
