/* SPDX-License-Identifier: Apache-2.0
 *
 * Cancels work that takes long. A thread that enters a scope with a token checks the token wherever
 * it calls cancel_check: in loops over nodes, steps and kernels, and where it waits for another
 * process. The scope belongs to the thread, so that no function needs a parameter for it; threads
 * that work for another one adopt its scope. See decision 51.
 */
#ifndef CLG_BASE_CANCEL_H
#define CLG_BASE_CANCEL_H

#include "base/error.h"
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

/* The tokens that a thread's current work obeys: one of this scope, and those around it. In the
 * memory of the caller. */
typedef struct cancel_scope {
    clg_cancel *token; /* NULL: only the scopes around it count */
    const struct cancel_scope *outer;
} cancel_scope;

/* Enter and leave a scope; nested ones are left first. */
void cancel_enter(cancel_scope *scope, clg_cancel *token);
void cancel_leave(const cancel_scope *scope);
/* Returns the innermost scope of this thread, NULL for none, for cancel_adopt. */
const cancel_scope *cancel_current(void);
/* Makes a scope that another thread has entered, and does not leave meanwhile, this thread's. */
void cancel_adopt(const cancel_scope *scope);
/* Returns whether a token of this thread's scopes is triggered. */
bool cancel_is_requested(void);
/* Returns CANCELLED, with "`what` was cancelled" as the message, if a token of this thread's scopes
 * is triggered. Costs a few loads. */
clg_status cancel_check(const char *what);
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

#endif
