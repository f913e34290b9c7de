/* SPDX-License-Identifier: Apache-2.0
 *
 * The launches of baseline programs, which are built without optimisation, for which optimised
 * programs are to be compiled, and the programs that helpers have compiled so far (tiers.c).
 */
#ifndef CLG_OCL_TIER_QUEUE_H
#define CLG_OCL_TIER_QUEUE_H

#include "base/threads.h"
#include "ocl/helper/helper_message.h"

struct ocl_program;

/* A launch for which the optimised program is to be compiled. */
typedef struct tier_launch {
    uint64_t form; /* launch configuration (program.h) */
    char *message; /* the request with which a helper compiled the baseline program */
    size_t n_bytes;
} tier_launch;

/* A program that helpers have compiled, to be built in this process. */
typedef struct tier_build {
    struct ocl_program *program;
    char *entry; /* one of its kernels */
} tier_build;

typedef struct tier_queue {
    mutex lock; /* guards the fields below */
    tier_launch *launches;
    size_t n_launches, launches_capacity;
    size_t next; /* the first launch that is not taken */
    tier_build *builds;
    size_t n_builds, builds_capacity;
    /* of builds: the first ones are stored; are built or being built */
    size_t n_stored, n_taken;
    size_t n_building;
    bool has_worker; /* a thread was started and not joined */
    bool is_working; /* it has not ended */
    bool stops;
    thread worker;
    atomic_bool is_busy; /* launches were added since everything was built; read without the lock */
    atomic_uint_fast64_t epoch;
} tier_queue;

clg_status tier_queue_init(tier_queue *t);
void tier_queue_deinit(tier_queue *t);
/* Adds a launch that a helper has tried with a baseline program. */
clg_status tier_queue_add(tier_queue *t, uint64_t form, const helper_request *request);
/* Takes the next launch, whose message the caller frees; returns false where none is left. */
bool tier_queue_take(tier_queue *t, tier_launch *out_launch);
/* Returns whether the queue needs to be looked at, without taking the lock. */
static inline bool tier_queue_is_busy(tier_queue *t)
{
    return atomic_load_explicit(&t->is_busy, memory_order_relaxed);
}
/* Returns whether launches are to be tried, or the worker has not ended. */
bool tier_queue_is_pending(tier_queue *t);
/* Adds a compiled program, unless it is there. */
clg_status tier_queue_add_build(tier_queue *t, struct ocl_program *p, const char *entry);
/* Returns how many launches are waiting. If none is, the worker has ended by that. */
size_t tier_queue_next_batch(tier_queue *t);
/* Notes that all compiled programs are stored. */
void tier_queue_note_stored(tier_queue *t);
/* Takes the next program that is to be built and is stored: one that is being built would not be
 * stored. Returns false where there is none. Its entry lives until tier_queue_end_build. */
bool tier_queue_take_build(tier_queue *t, tier_build *out_build);
/* Ends a build. The last one of those that are stored counts the epoch up. */
void tier_queue_end_build(tier_queue *t);

#endif
