/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements cancel.h.
 */
#include "base/cancel.h"

#include "base/memory.h"

static _Thread_local const cancel_scope *current;

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
    *scope = (cancel_scope){token, current};
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

bool cancel_is_requested(void)
{
    for (const cancel_scope *s = current; s; s = s->outer) {
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
