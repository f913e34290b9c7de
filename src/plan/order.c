/* SPDX-License-Identifier: Apache-2.0
 *
 * Computes the dependencies between the steps of a segment, so that independent steps may run
 * concurrently. Two steps depend on each other if one writes memory that the other reads or writes.
 * Only steps of the same window (PLAN_WINDOW steps) are compared, which makes the time linear in
 * the number of steps; steps of different windows never run concurrently.
 */
#include "base/cancel.h"
#include "plan/state.h"

/* A range of memory that a step reads or writes. */
typedef struct access {
    plan_placement at;
    int64_t end_bytes;
    bool writes;
} access;

/* A step of the current window. */
typedef struct window_step {
    access list[STEP_MAX_ARGS];
    uint32_t n;
    uint32_t before; /* bits: all steps of the window that it depends on, also indirectly */
    bool alone;      /* depends on all earlier steps; all later ones depend on it */
    bool has_fault;  /* may report one: such steps are ordered, so that the first is reported */
} window_step;

/* Returns whether steps may write memory of this kind. Weights, packed weights and literals are
 * complete before the first step. */
static bool is_written_by_steps(place_kind kind)
{
    return kind == PLACE_SLAB || kind == PLACE_INPUT || kind == PLACE_OUTPUT || kind == PLACE_STATE;
}

static void add(window_step *w, const plan_state *s, const pending_step *p, uint32_t buffer,
                bool writes)
{
    const plan_placement at = state_place(s, (root_ref){p->buffers[buffer].root, 0});
    const int64_t size_bytes = (int64_t)s->roots[p->buffers[buffer].root].size_bytes;
    if (is_written_by_steps(at.kind))
        w->list[w->n++] = (access){at, at.offset_bytes + size_bytes, writes};
}

/* Lists the memory that a step reads and writes: copies and fills write their last buffer, kernels
 * all buffers that are not inputs of the node. */
static void list_accesses(const plan_state *s, const pending_step *p, window_step *w)
{
    const step *what = p->what;
    w->n = w->before = 0; /* not the list, of which most is never used */
    w->alone = what->kind == STEP_BLAS_GEMM;
    w->has_fault = false;
    if (what->kind != STEP_KERNEL) {
        for (uint32_t b = 0; b < p->n_buffers; b++) add(w, s, p, b, b + 1 == p->n_buffers);
        return;
    }
    for (uint32_t a = 0, b = 0; a < what->n_args; a++) {
        if (what->args[a].kind == ARG_FAULT) w->has_fault = true;
        if (what->args[a].kind != ARG_BUFFER) continue;
        add(w, s, p, b++, what->args[a].buffer.space != OPERAND_INPUT);
    }
}

/* Returns whether y must wait for x, an earlier step of the window. */
static bool is_ordered(const window_step *x, const window_step *y)
{
    if (x->alone || y->alone || (x->has_fault && y->has_fault)) return true;
    for (uint32_t i = 0; i < x->n; i++)
        for (uint32_t k = 0; k < y->n; k++) {
            const access *a = &x->list[i], *b = &y->list[k];
            if ((a->writes || b->writes) && a->at.kind == b->at.kind &&
                a->at.index == b->at.index && a->at.offset_bytes < b->end_bytes &&
                b->at.offset_bytes < a->end_bytes)
                return true;
        }
    return false;
}

/* Returns, as bits, the steps of the window that step i must wait for, without those that others of
 * these already wait for. Sets window[i].before. */
static uint32_t find_before(window_step *window, uint32_t i)
{
    uint32_t after = 0;
    for (uint32_t k = i; k-- > 0;) {
        if ((window[i].before >> k & 1u) || !is_ordered(&window[k], &window[i])) continue;
        after |= 1u << k;
        window[i].before |= 1u << k | window[k].before;
    }
    return after;
}

/* Returns the bits below bit i. */
static uint32_t bits_below(uint32_t i) { return (1u << i) - 1; }

/* Returns whether steps first to end - 1 of the window depend on no other one of these. */
static bool are_independent(const window_step *window, uint32_t first, uint32_t end)
{
    for (uint32_t i = first; i < end; i++)
        if (window[i].before & ~bits_below(first)) return false;
    return true;
}

/* Sets n_level of the n steps of a window, from the last to the first: a level ends where all later
 * steps depend on all earlier ones. */
static void find_levels(plan_step *steps, const window_step *window, uint32_t n)
{
    uint32_t common = UINT32_MAX, end = n; /* bits: steps on which all from i on depend */
    for (uint32_t i = n; i-- > 0;) {
        common &= window[i].before;
        if ((common & bits_below(i)) != bits_below(i)) continue;
        if (are_independent(window, i, end)) steps[i].n_level = end - i;
        end = i;
    }
}

clg_status order_steps(plan_state *s)
{
    plan_segment *segment = s->segment;
    window_step *window = memory_alloc(PLAN_WINDOW * sizeof *window);
    if (!window) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    clg_status status = CLG_OK;
    for (size_t i = 0; i < segment->n_steps && status == CLG_OK; i++) {
        const uint32_t at = (uint32_t)(i % PLAN_WINDOW);
        status = cancel_check("planning");
        list_accesses(s, &s->pending[i], &window[at]);
        if (i > at && at > 0) window[at].before = 1; /* always after the window's first step */
        segment->steps[i].after = find_before(window, at);
        if (window[at].before != bits_below(at)) segment->overlaps = true;
        if (at + 1 == PLAN_WINDOW || i + 1 == segment->n_steps)
            find_levels(&segment->steps[i - at], window, at + 1);
    }
    memory_free(window);
    return status;
}
