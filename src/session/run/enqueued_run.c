/* SPDX-License-Identifier: Apache-2.0
 *
 * Enqueues a run of a session in the queue of another one, whose run follows it there: one wait is
 * then for both, and the device does not idle between them. In one queue, since a thread may not be
 * inside the launch guard (ocl/queue/launch_guard.h) with two. For the same reason the other run
 * may not pack or compile while the first is in flight: session_plan_run tells.
 */
#include "base/cancel.h"
#include "session/run/run_state.h"

struct enqueued_run {
    run_state state;
    ocl_queue *queue; /* borrowed: of the other session */
};

static clg_status find_built(clg_session *s, bool *out_is_built)
{
    run_state r;
    clg_status status = run_begin(s, RUN_FOR_REAL, &r);
    if (status == CLG_OK) status = run_find_plan(&r);
    if (status == CLG_OK) *out_is_built = frame_has_built(s->frame, r.plan);
    run_end(&r);
    return status;
}

clg_status session_plan_run(clg_session *s, bool *out_is_built)
{
    clg_status status;
    limits_scope scope;
    *out_is_built = false;
    if (s->multi) return CLG_OK;
    limits_enter(&scope, &s->exec->options.limits, s->exec->budget, LIMIT_RUN);
    CANCEL_WITHIN(status, s->token, &s->cancel, find_built(s, out_is_built));
    return limits_leave(&scope, status);
}

static clg_status enqueue(enqueued_run *r)
{
    CLG_TRY(run_begin(r->state.session, RUN_FOR_REAL, &r->state));
    return run_enqueue(&r->state);
}

/* Enqueues with the other session's queue in the frame. */
static clg_status enqueue_there(clg_session *s, enqueued_run *r)
{
    clg_status status;
    limits_scope scope;
    ocl_queue *own = s->frame->queue;
    s->frame->queue = r->queue;
    for (size_t i = 0; i < s->n_outputs; i++) s->outputs[i].valid = false;
    limits_enter(&scope, &s->exec->options.limits, s->exec->budget, LIMIT_RUN);
    CANCEL_WITHIN(status, s->token, &s->cancel, enqueue(r));
    status = limits_leave(&scope, status);
    s->frame->queue = own;
    return status;
}

/* Waits, unless another wait was for all commands, and frees the run. */
static clg_status conclude(enqueued_run *r, clg_status status)
{
    if (status != CLG_OK || ocl_queue_is_busy(r->queue)) status = run_wait(r->queue, status);
    /* with the time of the other run: a session that seems slow measures its launches next time */
    if (status == CLG_OK) frame_finished(r->state.session->frame, r->state.prepared);
    status = run_conclude(&r->state, status);
    run_end(&r->state);
    memory_free(r);
    return status;
}

clg_status session_enqueue_in(clg_session *s, clg_session *in, enqueued_run **out_run)
{
    *out_run = NULL;
    if (s->multi || in->multi || s->exec->context != in->exec->context ||
        s->exec->context->profiling) /* a profile is of the samples of one queue */
        return session_run_refreshed(s);
    enqueued_run *r = memory_zalloc(1, sizeof *r);
    if (!r) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    r->state.session = s;
    r->queue = in->frame->queue;
    clg_status status = enqueue_there(s, r);
    if (status == CLG_OK) {
        *out_run = r;
        return CLG_OK;
    }
    status = conclude(r, status);
    /* a kernel that the driver refused: plan again without it */
    return status == CLG_ERROR_KERNEL_BUILD ? session_run_refreshed(s) : status;
}

clg_status session_conclude(enqueued_run *run) { return conclude(run, CLG_OK); }
