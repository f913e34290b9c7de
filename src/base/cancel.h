/* SPDX-License-Identifier: Apache-2.0
 *
 * Cancels work that takes long. A thread that enters a scope with a token checks the token wherever
 * it calls cancel_check: in loops over nodes, steps and kernels, and where it waits for another
 * process. The scope belongs to the thread, so that no function needs a parameter for it; threads
 * that work for another one adopt its scope. See decision 51.
 */
#ifndef CLG_BASE_CANCEL_H
#define CLG_BASE_CANCEL_H

#include "base/memory.h"
#include "base/threads.h"

/* A token, public (clg_cancel_create) or a part of another object. All zeros: not triggered. */
struct clg_cancel {
    refcount refs; /* of public tokens */
    atomic_bool is_triggered;
    /* For tests: the number of checks up to the one that triggers the token; 0: none does. */
    atomic_size_t checks_left;
};

void cancel_init(clg_cancel *c);
clg_status cancel_create(clg_cancel **out_cancel);
clg_cancel *cancel_retain(clg_cancel *c); /* accepts NULL, as cancel_free does */
void cancel_free(clg_cancel *c);
/* Triggers a token. Any thread, and signal handlers: only a lock-free atomic store. */
static inline void cancel_trigger(clg_cancel *c) { atomic_store(&c->is_triggered, true); }
static inline void cancel_reset(clg_cancel *c) { atomic_store(&c->is_triggered, false); }
static inline bool cancel_is_triggered(const clg_cancel *c)
{
    return atomic_load_explicit(&c->is_triggered, memory_order_relaxed);
}

/* What the time of work counts as. */
typedef enum limit_phase {
    LIMIT_COMPILE, /* loading, planning, compiling, computing constants */
    LIMIT_RUN,
    N_LIMIT_PHASES
} limit_phase;

/* The time that work has taken, and may take. */
typedef struct limit_clock {
    uint64_t max_ns[N_LIMIT_PHASES];   /* UINT64_MAX: no limit */
    uint64_t spent_ns[N_LIMIT_PHASES]; /* before since_ns */
    uint64_t since_ns;                 /* when the current phase began */
    limit_phase phase;
    atomic_int expired_in; /* the phase in which a check found too much time; else N_LIMIT_PHASES */
} limit_clock;

/* What a thread does, for another one that watches it (limits_watch). */
typedef struct limit_watch {
    atomic_int phase;     /* limit_phase */
    atomic_uint n_checks; /* of cancellation: its work goes on while they increase */
} limit_watch;

/* The tokens that a thread's current work obeys: one of this scope, and those around it. In the
 * memory of the caller. */
typedef struct cancel_scope {
    clg_cancel *token;  /* NULL, as clock and watch: only the scopes around it count */
    limit_clock *clock; /* of a limits_scope */
    limit_watch *watch; /* of a limits_scope */
    const struct cancel_scope *outer;
} cancel_scope;

/* Enter and leave a scope; nested ones are left first. */
void cancel_enter(cancel_scope *scope, clg_cancel *token);
void cancel_leave(const cancel_scope *scope);
/* Returns the innermost scope of this thread, NULL for none, for cancel_adopt. */
const cancel_scope *cancel_current(void);
/* Makes a scope that another thread has entered, and does not leave meanwhile, this thread's. */
void cancel_adopt(const cancel_scope *scope);
/* Returns whether a token of this thread's scopes is triggered, or a clock has expired. */
bool cancel_is_requested(void);
/* Returns CANCELLED, with "`what` was cancelled" as the message, if a token of this thread's scopes
 * is triggered or a clock has expired. Costs a few loads, with clocks a reading of each. */
clg_status cancel_check(const char *what);
/* As cancel_check, for step i of a loop whose steps take nanoseconds, such as the inputs of a node,
 * which may have a million: checks each 4096th. */
static inline clg_status cancel_check_step(size_t i, const char *what)
{
    return i % 4096 == 4095 ? cancel_check(what) : CLG_OK;
}
/* Calls a function that returns a status in a scope with these tokens (each may be NULL). */
#define CANCEL_WITHIN(status, first, second, call)                                                 \
    do {                                                                                           \
        cancel_scope outer_scope_, inner_scope_;                                                   \
        cancel_enter(&outer_scope_, first);                                                        \
        cancel_enter(&inner_scope_, second);                                                       \
        (status) = (call);                                                                         \
        cancel_leave(&inner_scope_);                                                               \
        cancel_leave(&outer_scope_);                                                               \
    } while (0)

/* A scope with limits: a clock, and the memory budget in which the thread's allocations count. */
typedef struct limits_scope {
    cancel_scope scope;
    limit_clock clock;
    memory_budget *outer_budget;
    limit_phase outer_phase; /* as it was told (limits_watch) */
} limits_scope;
/* Enters a scope with the times of `limits` (NULL: none), starting in a phase, and with a budget;
 * NULL: the thread's current one stays. */
void limits_enter(limits_scope *s, const clg_limits *limits, memory_budget *budget,
                  limit_phase phase);
/* Leaves the scope. Returns the status of the work; LIMIT if it ended since the clock had expired,
 * or since the budget refused an allocation. */
clg_status limits_leave(const limits_scope *s, clg_status status);
/* Sets the phase of the innermost clock; returns the one before. Call while no other thread has
 * adopted the scope. */
limit_phase limits_set_phase(limit_phase phase);
/* Reports what this thread does in limits_scopes that it enters from now on: its phases are stored
 * to w->phase, which the caller has set; checks by threads that adopt these scopes count in
 * w->n_checks, too. NULL ends that. */
void limits_watch(limit_watch *w);
/* For tests: sets the function that clocks read; NULL: time_now_ns. */
void limits_set_clock(uint64_t (*now_ns)(void));

#endif
