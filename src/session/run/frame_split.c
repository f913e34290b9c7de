/* SPDX-License-Identifier: Apache-2.0
 *
 * Divides the steps of a frame's segments so that no launch takes longer than the context's limit,
 * and learns from measured times which to divide further (decision 43).
 *
 * Times are measured by the queue's time stamps where it has them. Else, after a run that took
 * longer than the limit, the next run of the same segment waits for each launch: once, unless it
 * finds launches that are too long, or runs become twice as long.
 */
#include "session/run/frame.h"

#include "base/log.h"

#include <math.h>

/* Estimates are those of a slow device. The time that the last work took, by its estimate, scales
 * the next ones, down to this. */
#define MIN_PACE 0.01

kernel_ref frame_kernel_ref(const frame_segment *prepared, size_t i)
{
    const step *s = prepared->segment->steps[i].what;
    return frame_count_parts(prepared, i) > 1 ? launch_part_ref(s) : s->kernel;
}

void frame_drop_kernel(frame *f, frame_segment *prepared, size_t i)
{
    if (!prepared->kernels[i]) return;
    const kernel_ref ref = frame_kernel_ref(prepared, i);
    kernel_pool_put(&f->spare, &ref, prepared->kernels[i]);
    prepared->kernels[i] = NULL;
}

static const char *node_of(const frame *f, const plan_step *s, char name[NODE_TEXT_BYTES])
{
    return s->node < f->exec->graph->n_nodes ? node_text(&f->exec->graph->nodes[s->node], name)
                                             : "a node";
}

static const char *kernel_of(const plan_step *s)
{
    static const char *const kinds[] = {"", "CLBlast", "copy", "fill"};
    return s->what->kind == STEP_KERNEL ? s->what->kernel.entry : kinds[s->what->kind];
}

/* Logs that a launch is divided; and, once for each launch, that one may take longer than the
 * limit. */
static clg_status report(frame *f, const plan_step *s, uint32_t n_parts)
{
    char name[NODE_TEXT_BYTES];
    bool is_new;
    if (n_parts > 1)
        log_write(CLG_LOG_DEBUG, "%s: '%s' is divided into %u launches", node_of(f, s, name),
                  kernel_of(s), (unsigned)n_parts);
    CLG_TRY(launch_limit_report(&f->limit, s->what, n_parts, &is_new));
    if (!is_new) return CLG_OK;
    log_write(CLG_LOG_WARNING,
              "%s: a launch of '%s' is estimated to take %.0f ms, the limit is %.0f ms, and it "
              "cannot be divided further",
              node_of(f, s, name), kernel_of(s),
              launch_limit_time_ns(&f->limit, s->what) / n_parts * 1e-6,
              (double)f->limit.budget.limit_ns * 1e-6);
    return CLG_OK;
}

static double total_time_ns(const frame *f, const plan_segment *segment)
{
    double total = 0.0;
    for (size_t i = 0; i < segment->n_steps; i++)
        total += launch_limit_time_ns(&f->limit, segment->steps[i].what);
    return total;
}

/* Sets the number of parts of a step, and drops its kernel if that is another one then. */
static void set_parts(frame *f, frame_segment *prepared, size_t i, uint32_t n_parts)
{
    if ((frame_count_parts(prepared, i) > 1) != (n_parts > 1) && prepared->kernels[i]) {
        frame_drop_kernel(f, prepared, i);
        prepared->bound_stamp = prepared->built_stamp = 0;
    }
    prepared->parts[i].count = n_parts;
    prepared->is_split = prepared->is_split || n_parts > 1;
}

clg_status frame_split(frame *f, frame_segment *prepared)
{
    const plan_segment *segment = prepared->segment;
    const double limit_ns = (double)f->limit.budget.limit_ns;
    double since_flush_ns = 0.0;
    if (prepared->limit_epoch == f->limit.epoch) return CLG_OK;
    prepared->limit_epoch = f->limit.epoch;
    prepared->is_split = false;
    if (f->limit.budget.limit_ns == 0) return CLG_OK;
    if (!prepared->parts) {
        if (total_time_ns(f, segment) <= limit_ns) return CLG_OK;
        prepared->parts = memory_zalloc(segment->n_steps + 1, sizeof *prepared->parts);
        if (!prepared->parts) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    }
    for (size_t i = 0; i < segment->n_steps; i++) {
        const plan_step *s = &segment->steps[i];
        uint32_t n_parts = launch_limit_parts(&f->limit, s->what);
        bool works = true;
        if (n_parts > 1 && s->what->kind == STEP_KERNEL)
            CLG_TRY(ocl_parts_work(f->exec->context->ocl, &works));
        if (!works) n_parts = 1;
        set_parts(f, prepared, i, n_parts);
        CLG_TRY(report(f, s, n_parts));
        since_flush_ns += launch_limit_time_ns(&f->limit, s->what);
        prepared->parts[i].flushes = n_parts > 1 || since_flush_ns > limit_ns;
        if (prepared->parts[i].flushes) since_flush_ns = 0.0;
    }
    return CLG_OK;
}

/* ---- measurements ---------------------------------------------------------------------------- */

void frame_note_time(frame *f, uint32_t tag, uint64_t time_ns)
{
    if (tag < f->n_ran && time_ns > f->ran[tag].longest_ns) f->ran[tag].longest_ns = time_ns;
}

clg_status frame_learn_times(frame *f)
{
    for (size_t i = 0; i < f->n_ran; i++)
        CLG_TRY(launch_limit_note(&f->limit, f->ran[i].what->what, f->ran[i].n_parts,
                                  f->ran[i].longest_ns));
    return CLG_OK;
}

void frame_note_pace(frame *f)
{
    const double time_ns = (double)(f->limit.now_ns() - f->queued_since_ns);
    if (f->estimated_ns > 0) f->pace = fmin(fmax(time_ns / f->estimated_ns, MIN_PACE), 1.0);
    f->estimated_ns = 0.0;
}

void frame_finished(frame *f, frame_segment *prepared)
{
    const uint64_t limit_ns = f->limit.budget.limit_ns;
    frame_note_pace(f);
    if (limit_ns == 0 || ocl_queue_is_profiling(f->queue)) return;
    const uint64_t time_ns = f->limit.now_ns() - f->enqueued_ns;
    if (prepared->is_watched) {
        const bool has_settled = prepared->limit_epoch == f->limit.epoch;
        prepared->settled_ns = has_settled ? time_ns : 0;
        prepared->is_watched = false;
    } else if (time_ns > limit_ns && time_ns / 2 > prepared->settled_ns) {
        prepared->is_watched = true;
    }
}
