/* SPDX-License-Identifier: Apache-2.0
 *
 * Enqueues a run of a session, and after it a run of another one in the same queue: the device goes
 * on with that while the host waits for the first one's results and deals with them. In one queue,
 * since a thread may not be inside the launch guard (ocl/queue/launch_guard.h) with two. For the
 * same reason the second run may not pack or compile: session_plan_run says whether it would.
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

static clg_status conclude(enqueued_run *r, clg_status status)
{
    status = run_conclude(&r->state, status);
    run_end(&r->state);
    memory_free(r);
    return status;
}

clg_status session_enqueue(clg_session *s, clg_session *in, enqueued_run **out_run)
{
    *out_run = NULL;
    if (s->multi || in->multi || s->exec->context != in->exec->context ||
        s->exec->context->profiling) /* a profile is of the samples of one queue */
        return session_run_refreshed(s);
    enqueued_run *r = memory_zalloc(1, sizeof *r);
    if (!r) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    r->state.session = s;
    r->queue = in->frame->queue;
    if (s == in) ocl_queue_keep_read(r->queue);
    clg_status status = enqueue_there(s, r);
    if (status == CLG_OK) {
        *out_run = r;
        return CLG_OK;
    }
    status = conclude(r, run_wait(r->queue, status));
    /* a kernel that the driver refused: plan again without it */
    return status == CLG_ERROR_KERNEL_BUILD ? session_run_refreshed(s) : status;
}

clg_status session_wrap_output(const enqueued_run *r, size_t i, const shape *dims,
                               clg_value **out_value)
{
    const clg_session *s = r->state.session;
    const plan_port *port = &r->state.segment->outputs[i];
    bound_buffer at;
    *out_value = NULL;
    if (port->known || port->kind != CLG_VALUE_TENSOR) return CLG_OK;
    CLG_TRY(frame_resolve(s->frame, r->state.segment, &port->place, &at));
    return context_wrap_buffer(s->exec->context, ocl_buffer_retain(at.buffer),
                               (size_t)at.offset_bytes, port->dtype, dims, out_value);
}

clg_status session_wrap_fault(const enqueued_run *r, const shape *dims, clg_value **out_value)
{
    const clg_session *s = r->state.session;
    return context_wrap_buffer(s->exec->context, ocl_buffer_retain(s->frame->fault), 0, CLG_INT32,
                               dims, out_value);
}

clg_status session_conclude(enqueued_run *r, bool leaves_rest)
{
    const clg_status status =
        leaves_rest ? ocl_queue_wait_read(r->queue) : ocl_queue_finish(r->queue);
    if (status == CLG_OK) {
        frame_finished(r->state.session->frame, r->state.prepared);
        ocl_queue_run_ended(r->queue);
        ocl_tiers_go_on(r->state.session->exec->context->ocl);
    }
    return conclude(r, status);
}

/* Returns whether commands of the run use host memory that is freed with it. */
static bool uses_host_memory(const run_state *r)
{
    bool uses = r->may_have_fault;
    for (size_t i = 0; i < r->session->n_inputs; i++)
        uses = uses || r->session->frame->inputs[i].is_zero_copy;
    for (size_t i = 0; i < r->session->n_outputs; i++) uses = uses || r->pending[i];
    return uses;
}

clg_status session_let_run(enqueued_run *r)
{
    return conclude(r, uses_host_memory(&r->state) ? ocl_queue_finish(r->queue) : CLG_OK);
}

clg_status session_finish(clg_session *s)
{
    return s->frame && ocl_queue_is_busy(s->frame->queue) ? ocl_queue_finish(s->frame->queue)
                                                          : CLG_OK;
}
