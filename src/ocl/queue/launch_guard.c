/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements the launch guard: admits queues in order of arrival, and keeps a table of the launches
 * for which the driver has compiled code in its own table. The driver's table has 128 entries, of
 * which it evicts the least recently used; so this table is cleared before that many can have been
 * added.
 */
#include "ocl/queue/launch_guard.h"

#include "base/hash.h"
#include "base/threads.h"
#include "ocl/queue/queue.h"

#include <string.h>

/* Fewer than the driver's 128, to leave room for kernels of the application. */
#define MAX_ENTRIES 96
#define N_SLOTS 256

/* A kernel and local size, with the largest global sizes launched. */
typedef struct guard_slot {
    bool used;
    launch_form form;
} guard_slot;

static struct {
    mutex lock; /* guards the whole struct */
    condition changed;
    uint64_t next_ticket, serving; /* tickets are issued and served in order */
    size_t n_inside;
    bool alone;       /* the queue inside was admitted alone: no other may enter */
    bool has_foreign; /* ... and has called launch_guard_learn(NULL) */
    bool is_stale;    /* the next queue enters alone, and clears the slots */
    /* Entries that launches may have added to the driver's table since this table was cleared. */
    size_t n_entries;
    size_t n_lost; /* Entries in the driver's table for no launch, perhaps never evicted. */
    guard_slot slots[N_SLOTS];
} guard = {.lock = MUTEX_INIT, .changed = CONDITION_INIT};

static atomic_uint_fast64_t epoch = 1;

static bool same_kernel(const launch_form *a, const launch_form *b)
{
    return memcmp(a->kernel, b->kernel, sizeof a->kernel) == 0 &&
           memcmp(a->local, b->local, sizeof a->local) == 0;
}

/* Returns the slot of a launch's kernel and local size, or the free slot for it; there is always
 * one. */
static guard_slot *find(const launch_form *form)
{
    uint64_t at = hash_bytes(form, offsetof(launch_form, extent), 0);
    for (;; at++) {
        guard_slot *s = &guard.slots[at % N_SLOTS];
        if (!s->used || same_kernel(&s->form, form)) return s;
    }
}

static bool knows(const launch_form *form)
{
    const guard_slot *s = find(form);
    return s->used && form->extent[0] <= s->form.extent[0] && form->extent[1] <= s->form.extent[1];
}

static void forget(void)
{
    memset(guard.slots, 0, sizeof guard.slots);
    guard.n_entries = 0;
    guard.is_stale = false;
    atomic_fetch_add(&epoch, 1);
}

/* Records a launch. Counts one more entry in the driver's table, and keeps, per kernel and local
 * size, the largest extent in each direction. */
static void note(const launch_form *form)
{
    guard_slot *s = find(form);
    if (!s->used) s->form = *form;
    s->used = true;
    for (int i = 0; i < 2; i++)
        if (s->form.extent[i] < form->extent[i]) s->form.extent[i] = form->extent[i];
    guard.n_entries++;
}

bool launch_guard_knows(const launch_form *form)
{
    mutex_lock(&guard.lock);
    const bool known = knows(form);
    mutex_unlock(&guard.lock);
    return known;
}

uint64_t launch_guard_epoch(void) { return atomic_load_explicit(&epoch, memory_order_relaxed); }

void launch_guard_learn(const launch_form *form)
{
    mutex_lock(&guard.lock);
    if (!form) {
        guard.has_foreign = true;
    } else if (!knows(form)) {
        if (guard.n_entries + guard.n_lost >= MAX_ENTRIES) forget();
        if (guard.n_lost < MAX_ENTRIES) note(form);
    }
    mutex_unlock(&guard.lock);
}

void launch_guard_reduce_capacity(size_t n)
{
    mutex_lock(&guard.lock);
    guard.n_lost += n;
    if (guard.n_entries + guard.n_lost > MAX_ENTRIES) guard.is_stale = true;
    mutex_unlock(&guard.lock);
}

guard_place launch_guard_enter(const launch_form *form)
{
    mutex_lock(&guard.lock);
    const uint64_t ticket = guard.next_ticket++;
    while (ticket != guard.serving || guard.alone) condition_wait(&guard.changed, &guard.lock);
    const bool alone = !form || guard.is_stale || !knows(form);
    while (alone && guard.n_inside > 0) condition_wait(&guard.changed, &guard.lock);
    if (guard.is_stale) forget();
    guard.n_inside++;
    guard.alone = alone;
    guard.serving++;
    if (guard.serving != guard.next_ticket) condition_broadcast(&guard.changed);
    mutex_unlock(&guard.lock);
    if (alone) {
        spin_end_all(); /* enqueued by queues that were inside */
        running_list_wait();
    }
    return alone ? GUARD_ALONE : GUARD_SHARED;
}

void launch_guard_leave(guard_place place, bool finished)
{
    if (place == GUARD_OUTSIDE) return;
    mutex_lock(&guard.lock);
    if (place == GUARD_ALONE && (guard.has_foreign || !finished)) forget();
    guard.has_foreign = guard.alone = false;
    guard.n_inside--;
    if (guard.serving != guard.next_ticket) condition_broadcast(&guard.changed);
    mutex_unlock(&guard.lock);
}
