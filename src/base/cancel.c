/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements cancel.h.
 */
#include "base/cancel.h"

#include "base/clock.h"

#include <inttypes.h>

#define NS_PER_MS UINT64_C(1000000)

static uint64_t (*_Atomic read_clock)(void) = time_now_ns;
static _Thread_local const cancel_scope *current;
static _Thread_local limit_watch *watched; /* by limits_watch; NULL: nobody watches */

void cancel_init(clg_cancel *c)
{
    refcount_init(&c->refs);
    atomic_init(&c->is_triggered, false);
    atomic_init(&c->checks_left, 0);
}

clg_status cancel_create(clg_cancel **out_cancel)
{
    clg_cancel *c = memory_zalloc(1, sizeof *c);
    *out_cancel = c;
    if (!c) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    cancel_init(c);
    return CLG_OK;
}

clg_cancel *cancel_retain(clg_cancel *c)
{
    if (c) refcount_retain(&c->refs);
    return c;
}

void cancel_free(clg_cancel *c)
{
    if (c && refcount_release(&c->refs)) memory_free(c);
}

void cancel_enter(cancel_scope *scope, clg_cancel *token)
{
    *scope = (cancel_scope){.token = token, .outer = current};
    current = scope;
}

void cancel_leave(const cancel_scope *scope) { current = scope->outer; }

const cancel_scope *cancel_current(void) { return current; }

void cancel_adopt(const cancel_scope *scope) { current = scope; }

/* Counts a check of a token that a test has armed. */
static void count_check(clg_cancel *c)
{
    if (atomic_load_explicit(&c->checks_left, memory_order_relaxed) > 0 &&
        atomic_fetch_sub(&c->checks_left, 1) == 1)
        cancel_trigger(c);
}

/* Returns whether a clock's current phase has taken longer than it may. */
static bool has_expired(limit_clock *c)
{
    const limit_phase phase = c->phase;
    if (c->max_ns[phase] == UINT64_MAX) return false;
    const uint64_t spent = c->spent_ns[phase] + (atomic_load(&read_clock)() - c->since_ns);
    if (spent > c->max_ns[phase]) atomic_store(&c->expired_in, (int)phase);
    return spent > c->max_ns[phase];
}

bool cancel_is_requested(void)
{
    for (const cancel_scope *s = current; s; s = s->outer) {
        if (s->watch) (void)atomic_fetch_add_explicit(&s->watch->n_checks, 1, memory_order_relaxed);
        if (s->clock && has_expired(s->clock)) return true;
        if (!s->token) continue;
        count_check(s->token);
        if (cancel_is_triggered(s->token)) return true;
    }
    return false;
}

clg_status cancel_check(const char *what)
{
    if (!cancel_is_requested()) return CLG_OK;
    return error_set(CLG_ERROR_CANCELLED, "%s was cancelled", what);
}

/* ---- limits ---------------------------------------------------------------------------------- */

static uint64_t limit_ns(uint64_t ms)
{
    return ms == 0 || ms > UINT64_MAX / NS_PER_MS ? UINT64_MAX : ms * NS_PER_MS;
}

/* Tells the phase to who watches this thread; returns the one before, or `phase` if none does. */
static limit_phase tell_phase(limit_phase phase)
{
    return watched ? (limit_phase)atomic_exchange(&watched->phase, (int)phase) : phase;
}

void limits_enter(limits_scope *s, const clg_limits *limits, memory_budget *budget,
                  limit_phase phase)
{
    limit_clock *c = &s->clock;
    *c = (limit_clock){.phase = phase};
    atomic_init(&c->expired_in, N_LIMIT_PHASES);
    c->max_ns[LIMIT_COMPILE] = limit_ns(limits ? limits->max_compile_ms : 0);
    c->max_ns[LIMIT_RUN] = limit_ns(limits ? limits->max_run_ms : 0);
    cancel_enter(&s->scope, NULL);
    s->scope.watch = watched;
    if (c->max_ns[LIMIT_COMPILE] != UINT64_MAX || c->max_ns[LIMIT_RUN] != UINT64_MAX) {
        s->scope.clock = c;
        c->since_ns = atomic_load(&read_clock)();
    }
    s->outer_phase = tell_phase(phase);
    s->outer_budget = memory_budget_set(budget ? budget : memory_budget_current());
    memory_budget_forget_refusal();
}

static clg_status expired(const limit_clock *c)
{
    const int phase = atomic_load(&c->expired_in);
    const bool is_run = phase == LIMIT_RUN;
    const char *name = is_run ? "max_run_ms" : "max_compile_ms";
    (void)error_prefix(CLG_ERROR_LIMIT, "%s took longer than the %" PRIu64 " ms of %s",
                       is_run ? "the run" : "the preparation", c->max_ns[phase] / NS_PER_MS, name);
    error_hint("clg_limits.%s sets another limit", name);
    return CLG_ERROR_LIMIT;
}

clg_status limits_leave(const limits_scope *s, clg_status status)
{
    cancel_leave(&s->scope);
    (void)tell_phase(s->outer_phase);
    (void)memory_budget_set(s->outer_budget);
    if (status == CLG_ERROR_CANCELLED && atomic_load(&s->clock.expired_in) != N_LIMIT_PHASES)
        return expired(&s->clock);
    return status == CLG_ERROR_OUT_OF_HOST_MEMORY && memory_budget_was_refused() ? CLG_ERROR_LIMIT
                                                                                 : status;
}

void limits_watch(limit_watch *w) { watched = w; }

limit_phase limits_set_phase(limit_phase phase)
{
    const limit_phase told = tell_phase(phase);
    const cancel_scope *s = current;
    while (s && !s->clock) s = s->outer;
    if (!s || s->clock->phase == phase) return told;
    limit_clock *c = s->clock;
    const limit_phase before = c->phase;
    const uint64_t now = atomic_load(&read_clock)();
    c->spent_ns[before] += now - c->since_ns;
    c->since_ns = now;
    c->phase = phase;
    return before;
}

void limits_set_clock(uint64_t (*now_ns)(void))
{
    atomic_store(&read_clock, now_ns ? now_ns : time_now_ns);
}
