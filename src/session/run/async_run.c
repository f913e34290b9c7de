/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs a session asynchronously, in one thread per session that its first asynchronous run starts.
 * An error message is passed from that thread to the one that waits.
 */
#include "session/session.h"

/* Completes the OpenCL user event of this run, if the application requested one. Call with the
 * worker's lock held. */
static void complete_event(session_worker *w, clg_status status)
{
    if (w->event) ocl_event_complete(w->event, status != CLG_OK);
    w->event = NULL;
}

/* The thread: runs the session whenever there is work. */
static void *work(void *argument)
{
    clg_session *s = argument;
    session_worker *w = &s->worker;
    mutex_lock(&w->lock);
    while (!w->stop) {
        if (!w->has_work) {
            condition_wait(&w->changed, &w->lock);
            continue;
        }
        mutex_unlock(&w->lock);
        clg_status status = session_run(s);
        mutex_lock(&w->lock);
        error_save(status, &w->result);
        complete_event(w, status);
        w->has_work = false;
        w->done = true;
        condition_broadcast(&w->changed);
    }
    mutex_unlock(&w->lock);
    return NULL;
}

clg_status session_run_async(clg_session *s)
{
    session_worker *w = &s->worker;
    if (!w->started) {
        clg_status status = thread_start(&w->id, work, s);
        if (status != CLG_OK) return status;
        w->started = true;
    }
    mutex_lock(&w->lock);
    w->done = false;
    w->has_work = true;
    condition_broadcast(&w->changed);
    mutex_unlock(&w->lock);
    return CLG_OK;
}

clg_status session_wait(clg_session *s)
{
    session_worker *w = &s->worker;
    mutex_lock(&w->lock);
    while (w->has_work && !w->done) condition_wait(&w->changed, &w->lock);
    if (!w->done) { /* no run started, or another thread has its result */
        mutex_unlock(&w->lock);
        return error_set(CLG_ERROR_INVALID_ARGUMENT, "no asynchronous run was started");
    }
    w->done = false;
    clg_status status = error_restore(&w->result);
    session_leave(s);
    mutex_unlock(&w->lock);
    return status;
}

clg_status session_event(clg_session *s, void **out_cl_event)
{
    session_worker *w = &s->worker;
    clg_status status = CLG_OK;
    *out_cl_event = NULL;
    if (s->multi) return session_refuse_several("have one event");
    mutex_lock(&w->lock);
    bool in_flight = w->has_work, is_ours = !w->has_work && w->done;
    if (in_flight && !w->event) status = ocl_event_create(s->exec->context->ocl, &w->event);
    if (in_flight && status == CLG_OK) status = ocl_event_retain(s->exec->context->ocl, w->event);
    if (in_flight && status == CLG_OK) *out_cl_event = w->event;
    if (is_ours && !s->frame) status = ocl_context_require(s->exec->context->ocl);
    if (is_ours && s->frame)
        status = ocl_queue_marker(s->frame->queue, out_cl_event); /* not waited for yet */
    mutex_unlock(&w->lock);
    if (in_flight || is_ours) return status;
    CLG_TRY(session_enter(s));
    status = session_renew(s);
    if (status == CLG_OK) status = ocl_queue_marker(s->frame->queue, out_cl_event);
    session_leave(s);
    return status;
}

void session_stop_worker(clg_session *s)
{
    session_worker *w = &s->worker;
    if (!w->started) return;
    session_cancel(s);
    mutex_lock(&w->lock);
    w->stop = true;
    condition_broadcast(&w->changed);
    mutex_unlock(&w->lock);
    thread_join(w->id);
    w->started = false;
    complete_event(w, CLG_ERROR_CANCELLED);
}
