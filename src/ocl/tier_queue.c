/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements the queue of launches and programs that are to be optimised.
 */
#include "ocl/tier_queue.h"

#include "base/memory.h"

clg_status tier_queue_init(tier_queue *t) { return mutex_init(&t->lock); }

void tier_queue_deinit(tier_queue *t)
{
    for (size_t i = 0; i < t->n_launches; i++) memory_free(t->launches[i].message);
    for (size_t i = 0; i < t->n_builds; i++) memory_free(t->builds[i].entry);
    memory_free(t->launches);
    memory_free(t->builds);
    mutex_deinit(&t->lock);
}

clg_status tier_queue_add(tier_queue *t, uint64_t form, const helper_request *request)
{
    tier_launch launch = {.form = form};
    strbuf message;
    strbuf_init(&message, 0);
    helper_write_request(&message, request);
    launch.n_bytes = message.size_bytes;
    clg_status status = strbuf_take(&message, &launch.message);
    strbuf_deinit(&message);
    CLG_TRY(status);
    mutex_lock(&t->lock);
    status = MEMORY_RESERVE(t->launches, t->launches_capacity, t->n_launches + 1);
    if (status == CLG_OK) t->launches[t->n_launches++] = launch;
    if (status == CLG_OK) atomic_store(&t->is_busy, true);
    mutex_unlock(&t->lock);
    if (status != CLG_OK) memory_free(launch.message);
    return status;
}

bool tier_queue_take(tier_queue *t, tier_launch *out_launch)
{
    mutex_lock(&t->lock);
    const bool takes = !t->stops && t->next < t->n_launches;
    if (takes) {
        *out_launch = t->launches[t->next];
        t->launches[t->next++].message = NULL;
    }
    mutex_unlock(&t->lock);
    return takes;
}

bool tier_queue_is_pending(tier_queue *t)
{
    mutex_lock(&t->lock);
    const bool is_pending = t->is_working || t->next < t->n_launches;
    mutex_unlock(&t->lock);
    return is_pending;
}

/* Call with the lock held. */
static clg_status add_build(tier_queue *t, struct ocl_program *p, const char *entry)
{
    for (size_t i = 0; i < t->n_builds; i++)
        if (t->builds[i].program == p) return CLG_OK;
    CLG_TRY(MEMORY_RESERVE(t->builds, t->builds_capacity, t->n_builds + 1));
    char *copy = memory_strdup(entry);
    if (!copy) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    t->builds[t->n_builds++] = (tier_build){p, copy};
    return CLG_OK;
}

clg_status tier_queue_add_build(tier_queue *t, struct ocl_program *p, const char *entry)
{
    mutex_lock(&t->lock);
    const clg_status status = add_build(t, p, entry);
    mutex_unlock(&t->lock);
    return status;
}

size_t tier_queue_next_batch(tier_queue *t)
{
    mutex_lock(&t->lock);
    const size_t n = t->stops ? 0 : t->n_launches - t->next;
    t->is_working = n > 0;
    mutex_unlock(&t->lock);
    return n;
}

void tier_queue_note_stored(tier_queue *t)
{
    mutex_lock(&t->lock);
    t->n_stored = t->n_builds;
    mutex_unlock(&t->lock);
}

/* Empties the queue if it is at its end. Call with the lock held. */
static void empty(tier_queue *t)
{
    if (t->is_working || t->n_building > 0) return;
    if (t->next < t->n_launches || t->n_taken < t->n_builds) return;
    for (size_t i = 0; i < t->n_builds; i++) memory_free(t->builds[i].entry);
    t->next = t->n_launches = t->n_stored = t->n_taken = t->n_builds = 0;
    atomic_store(&t->is_busy, false);
}

bool tier_queue_take_build(tier_queue *t, tier_build *out_build)
{
    mutex_lock(&t->lock);
    const bool takes = t->n_taken < t->n_stored;
    if (takes) {
        *out_build = t->builds[t->n_taken++];
        t->n_building++;
    } else {
        empty(t);
    }
    mutex_unlock(&t->lock);
    return takes;
}

void tier_queue_end_build(tier_queue *t)
{
    mutex_lock(&t->lock);
    t->n_building--;
    if (t->n_taken == t->n_stored && t->n_building == 0) {
        empty(t);
        atomic_fetch_add(&t->epoch, 1);
    }
    mutex_unlock(&t->lock);
}
