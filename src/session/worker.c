/* SPDX-License-Identifier: Apache-2.0
 *
 * Asynchronous runs: one thread a session, started by the first of them. Its error is moved to the thread that waits.
 */
#include "session/session.h"

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
    if (!w->has_work && !w->done) {
        mutex_unlock(&w->lock);
        return error_set(CLG_ERROR_INVALID_ARGUMENT, "no asynchronous run was started");
    }
    while (!w->done) condition_wait(&w->changed, &w->lock);
    w->done = false;
    mutex_unlock(&w->lock);
    clg_status status = error_restore(&w->result);
    session_leave(s);
    return status;
}

void session_stop_worker(clg_session *s)
{
    session_worker *w = &s->worker;
    if (!w->started) return;
    atomic_store(&s->cancel, true);
    mutex_lock(&w->lock);
    w->stop = true;
    condition_broadcast(&w->changed);
    mutex_unlock(&w->lock);
    thread_join(w->id);
    w->started = false;
}
