/* SPDX-License-Identifier: Apache-2.0
 *
 * Enqueues the steps of a run, each as one launch or in the parts that frame_split.c decides.
 */
#include "base/cancel.h"
#include "session/run/frame.h"

#include <math.h>

/* Limit of the estimated time of work in the queue, where launches have a limit or a token may
 * cancel the run: what a cancel waits for. */
#define MAX_QUEUED_NS 1e8
/* What a launch takes of that limit if its own estimate is less: drivers of CPUs take so long to
 * start one (PoCL 3.1: 5 to 25 us, measured 2026-11-28). */
#define MIN_LAUNCH_NS 2e4

/* Records a step for the profile, and tags the commands enqueued next with its number. */
static clg_status note_ran(frame *f, const plan_step *s, uint32_t n_parts)
{
    CLG_TRY(MEMORY_RESERVE(f->ran, f->ran_capacity, f->n_ran + 1));
    f->ran[f->n_ran] = (frame_ran){.what = s, .n_parts = n_parts};
    ocl_queue_set_tag(f->queue, (uint32_t)f->n_ran++);
    return CLG_OK;
}

/* Returns whether an output may share memory with another port, of which the dependencies of a
 * plan's steps know nothing: it is in a buffer of the application, which may be a sub-buffer. Of
 * others the ranges were compared when they were bound (bind_outputs.c). */
static bool ports_may_alias(const frame *f)
{
    for (size_t i = 0; i < f->n_outputs; i++)
        if (f->outputs[i].foreign && ocl_buffer_is_callers(f->outputs[i].buffer)) return true;
    return false;
}

/* Enqueues step i in its parts; flushes the queue after each, so that a display can be drawn
 * meanwhile, or waits for each and measures it. */
static clg_status enqueue_parts(frame *f, const frame_segment *prepared, size_t i,
                                const bound_buffer *bound)
{
    const step *s = prepared->segment->steps[i].what;
    const uint32_t n_parts = frame_count_parts(prepared, i);
    uint64_t longest_ns = 0;
    for (uint32_t part = 0; part < n_parts; part++) {
        if (part > 0) CLG_TRY(cancel_check("the run"));
        const uint64_t since_ns = prepared->is_watched ? f->limit.now_ns() : 0;
        CLG_TRY(
            launch_step(f->queue, s, prepared->kernels[i], bound, (launch_part){part, n_parts}));
        if (prepared->is_watched) {
            CLG_TRY(ocl_queue_finish(f->queue));
            const uint64_t time_ns = f->limit.now_ns() - since_ns;
            longest_ns = time_ns > longest_ns ? time_ns : longest_ns;
        } else if (prepared->parts && prepared->parts[i].flushes) {
            CLG_TRY(ocl_queue_flush(f->queue));
        }
    }
    return prepared->is_watched ? launch_limit_note(&f->limit, s, n_parts, longest_ns) : CLG_OK;
}

/* Waits for the queue if it would have more estimated work than MAX_QUEUED_NS with step s, so that
 * a run which is cancelled ends soon. *spread: see enqueue_steps. */
static clg_status limit_queued(frame *f, const plan_step *s, bool *spread)
{
    const double estimate_ns = launch_limit_time_ns(&f->limit, s->what),
                 time_ns = fmax(estimate_ns * f->pace, MIN_LAUNCH_NS);
    if (f->queued_ns > 0 && f->queued_ns + time_ns > MAX_QUEUED_NS) {
        if (*spread) CLG_TRY(ocl_queue_join(f->queue));
        *spread = false;
        CLG_TRY(ocl_queue_finish(f->queue));
        CLG_TRY(cancel_check("the run"));
        frame_note_pace(f);
        f->queued_ns = f->longest_ns = 0.0;
        f->longest_node = NODE_NONE;
    }
    if (f->queued_ns == 0.0) f->queued_since_ns = f->limit.now_ns();
    f->queued_ns += time_ns;
    f->estimated_ns += estimate_ns;
    if (f->longest_node == NODE_NONE || time_ns > f->longest_ns) {
        f->longest_node = s->node;
        f->longest_ns = time_ns;
    }
    return CLG_OK;
}

/* Returns whether all processors can have a part of the step. */
static bool is_shared(const step *s)
{
    uint64_t n_groups = 1;
    for (uint32_t i = 0; s->kind == STEP_KERNEL && i < s->n_dims; i++)
        n_groups *= s->local[i] ? s->global[i] / s->local[i] : 2;
    return n_groups > 1;
}

/* Returns after how many of the first steps the driver's threads are kept awake for the next one:
 * all before the last that several threads share. */
static size_t count_awake(const frame *f, const plan_segment *segment)
{
    size_t n = f->begun && segment->n_steps > 0 ? segment->n_steps - 1 : 0;
    while (n > 0 && !is_shared(segment->steps[n].what)) n--;
    return n > 0 && ocl_queue_keeps_awake(f->queue) ? n : 0;
}

/* Returns whether each of the n steps reports that it begins. */
static bool all_report(const plan_step *steps, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (!launch_reports_begin(steps[i].what)) return false;
    return true;
}

/* Before the first step of a level is enqueued: keeps threads that the level leaves without work
 * awake until the next level begins, if all these steps report that they begin. Elsewhere, threads
 * may have other work. PoCL starts the step that is enqueued first last, and only then the kernel
 * that waits for it; in another order that kernel ends immediately. */
static void keep_awake(frame *f, const plan_segment *segment, size_t i)
{
    const plan_step *s = &segment->steps[i];
    if (s->n_level > 0 && i + s->n_level < segment->n_steps && all_report(s, s->n_level + 1))
        ocl_queue_keep_awake(f->queue, f->begun, frame_step_number(i));
}

static clg_status enqueue_step(frame *f, const frame_segment *prepared, size_t i,
                               const bound_buffer *bound, bool is_plain, bool is_awake)
{
    const plan_step *s = &prepared->segment->steps[i];
    if (f->exec->context->profiling) CLG_TRY(note_ran(f, s, frame_count_parts(prepared, i)));
    ocl_queue_order(f->queue, (uint32_t)(i % PLAN_WINDOW), s->after);
    if (is_awake) keep_awake(f, prepared->segment, i);
    if (s->what->draws)
        CLG_TRY(launch_set_key(prepared->kernels[i], s->what, f->seed + f->n_draws++));
    const clg_status status =
        is_plain ? launch_step(f->queue, s->what, prepared->kernels[i], bound, LAUNCH_WHOLE)
                 : enqueue_parts(f, prepared, i, bound);
    return status == CLG_OK ? CLG_OK : frame_prefix_node(f, s, status);
}

/* Enqueues the steps. may_spread: they may run concurrently, and none is divided; between
 * ocl_queue_fork and ocl_queue_join they do. Threads are kept awake after the first n_awake. */
static clg_status enqueue_steps(frame *f, const frame_segment *prepared, bool may_spread,
                                size_t n_awake)
{
    const plan_segment *segment = prepared->segment;
    const bool is_plain = may_spread || (!prepared->parts && !prepared->is_watched);
    const bool is_limited = f->limit.budget.limit_ns > 0 || f->is_cancellable;
    bool spread = false;
    size_t at = 0;
    for (size_t i = 0; i < segment->n_steps; i++) {
        CLG_TRY(cancel_check("the run"));
        if (is_limited) CLG_TRY(limit_queued(f, &segment->steps[i], &spread));
        if (may_spread && !spread) {
            CLG_TRY(ocl_queue_fork(f->queue, i < PLAN_WINDOW));
            spread = true;
        }
        CLG_TRY(enqueue_step(f, prepared, i, &prepared->bound[at], is_plain, i < n_awake));
        at += segment->steps[i].n_buffers;
    }
    return spread ? ocl_queue_join(f->queue) : CLG_OK;
}

clg_status frame_enqueue(frame *f, frame_segment *prepared)
{
    const bool can_spread = !prepared->is_split && !prepared->is_watched && !ports_may_alias(f);
    const size_t n_awake = can_spread ? count_awake(f, prepared->segment) : 0;
    const bool may_spread = can_spread && (prepared->segment->overlaps || n_awake > 0);
    if (prepared->is_watched) CLG_TRY(ocl_queue_finish(f->queue)); /* of uploads */
    if (f->limit.budget.limit_ns > 0) f->enqueued_ns = f->limit.now_ns();
    CLG_TRY(enqueue_steps(f, prepared, may_spread, n_awake));
    if (prepared->segment->n_appends == 0) return CLG_OK;
    ocl_queue_set_tag(f->queue, UINT32_MAX); /* these copies are not steps */
    return frame_append(f, prepared);
}
