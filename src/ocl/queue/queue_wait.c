/* SPDX-License-Identifier: Apache-2.0
 *
 * Waits for a queue and for events, and creates events on which the application can wait.
 *
 * A thread that waits in the driver sleeps, and so does its core; waking both takes longer than a
 * small graph runs. So a wait that follows a short wait first polls for up to AWAKE_NS, yielding to
 * other threads, and only then sleeps in clFinish. After a long wait the next one does not poll,
 * and launches that occupy all cores are not slowed down by it (decision 31). See decision 27.
 */
#include "ocl/queue/queue.h"

#include "base/clock.h"
#include "base/memory.h"

#define AWAKE_NS 200000u

/* Returns whether threads may poll for this device. Drivers of GPUs poll themselves. Software
 * rasterisers need longer than AWAKE_NS for any command, and one of them, rusticl of Mesa 22, does
 * not wait in clFinish for commands that clFlush submitted. */
bool queue_may_stay_awake(const ocl_context *ocl)
{
    return context_caps(ocl)->kind == CLG_DEVICE_CPU && !context_caps(ocl)->is_software;
}

void queue_leave(ocl_queue *q, bool finished)
{
    if (finished) overlap_settle(q);
    queue_set_working(q, false);
    launch_guard_leave(q->place, finished);
    q->place = GUARD_OUTSIDE;
    q->wants_all = false;
}

void queue_unwatch(ocl_queue *q)
{
    if (q->watched) (void)cl.ReleaseEvent(q->watched);
    q->watched = NULL;
}

clg_status ocl_queue_flush(ocl_queue *q)
{
    CL_TRY(q->context, Flush, (q->handle));
    return CLG_OK;
}

/* Polls until the watched event has ended, successfully or not, for at most AWAKE_NS. */
static void wait_awake(ocl_queue *q, uint64_t since_ns)
{
    cl_int state = CL_QUEUED;
    if (!q->watched || q->wants_all || q->last_wait_ns > AWAKE_NS) return;
    if (ocl_context_is_lost(q->context)) return;
    if (cl.Flush(q->handle) != CL_SUCCESS) return;
    while (state > CL_COMPLETE && time_now_ns() - since_ns < AWAKE_NS) {
        thread_yield();
        if (cl.GetEventInfo(q->watched, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state,
                            NULL) != CL_SUCCESS)
            return;
    }
}

/* Waits for all commands in flight. With none, it still asks the driver, unless the device is
 * lost. */
static clg_status finish_all(ocl_queue *q)
{
    ocl_context *ocl = q->context;
    if (ocl_context_is_lost(ocl) && !q->in_flight) return ocl_context_require(ocl);
    const clg_status overlapping = overlap_finish(q);
    spin_begin_work(q);
    spin_enqueue(q);
    wait_awake(q, time_now_ns());
    const clg_status finished = queue_drain(ocl, q->handle);
    const clg_status status = overlapping != CLG_OK ? overlapping : finished;
    if (status == CLG_ERROR_DEVICE_LOST && !q->waits_for_others && !q->is_callers)
        context_mark_lost(ocl, CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, "clFinish");
    return status == CLG_OK ? ocl_context_require(ocl) : status;
}

clg_status ocl_queue_finish(ocl_queue *q)
{
    const uint64_t since_ns = time_now_ns();
    const clg_status status = finish_all(q);
    queue_unwatch(q);
    q->in_flight = q->waits_for_others = q->keeps_read = false;
    const uint64_t now_ns = time_now_ns();
    q->last_wait_ns = now_ns - since_ns;
    spin_trial_end(&q->spin.trial, now_ns);
    spin_ended(q, now_ns);
    if (status == CLG_OK) order_settle(q);
    running_list_remove(q);
    queue_leave(q, status == CLG_OK);
    return status;
}

void ocl_queue_keep_read(ocl_queue *q) { q->keeps_read = !q->profiling; }

clg_status ocl_queue_wait_read(ocl_queue *q)
{
    const uint64_t since_ns = time_now_ns();
    const bool may_leave = q->place != GUARD_ALONE && !q->is_callers && !q->waits_for_others;
    if (!q->watched || !may_leave || ocl_queue_flush(q) != CLG_OK) return ocl_queue_finish(q);
    wait_awake(q, since_ns);
    if (cl.WaitForEvents(1, &q->watched) != CL_SUCCESS) return ocl_queue_finish(q);
    queue_unwatch(q);
    q->keeps_read = false;
    const uint64_t now_ns = time_now_ns();
    q->last_wait_ns = now_ns - since_ns;
    spin_trial_end(&q->spin.trial, now_ns);
    if (q->place == GUARD_SHARED) running_list_add(q);
    queue_leave(q, false);
    return CLG_OK;
}

bool ocl_queue_is_busy(const ocl_queue *q) { return q->in_flight; }

bool ocl_queue_probe(ocl_queue *q)
{
    ocl_context *ocl = q->context;
    cl_event event = NULL;
    if (ocl_context_is_lost(ocl)) return false;
    const char *call = "clEnqueueMarkerWithWaitList";
    cl_int code = cl.EnqueueMarkerWithWaitList(q->handle, 0, NULL, &event);
    if (code == CL_SUCCESS) {
        call = "clWaitForEvents";
        code = cl.WaitForEvents(1, &event);
    }
    if (event) (void)cl.ReleaseEvent(event);
    if (code == CL_SUCCESS) {
        call = "clFinish";
        code = cl.Finish(q->handle);
    }
    if (code != CL_SUCCESS) context_mark_lost(ocl, code, call);
    return code == CL_SUCCESS;
}

clg_status ocl_queue_wait_for(ocl_queue *q, size_t n_events, void *const *cl_events)
{
    if (n_events == 0) return CLG_OK;
    cl_event *events = memory_zalloc(n_events, sizeof *events);
    if (!events) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; i < n_events; i++) events[i] = cl_events[i];
    clg_status status = ocl_context_require(q->context);
    if (status == CLG_OK) {
        const cl_int code =
            cl.EnqueueBarrierWithWaitList(q->handle, (cl_uint)n_events, events, NULL);
        status = code == CL_INVALID_CONTEXT || code == CL_INVALID_EVENT_WAIT_LIST
                     ? error_set(CLG_ERROR_INVALID_ARGUMENT,
                                 "an event is not one of the session's OpenCL context")
                     : context_check(q->context, code, "clEnqueueBarrierWithWaitList");
        if (status == CLG_OK) q->in_flight = q->waits_for_others = true;
    }
    memory_free(events);
    return status;
}

clg_status ocl_queue_marker(ocl_queue *q, void **out_cl_event)
{
    cl_event event = NULL;
    *out_cl_event = NULL;
    CL_TRY(q->context, EnqueueMarkerWithWaitList, (q->handle, 0, NULL, &event));
    q->in_flight = true;
    clg_status status = ocl_queue_flush(q);
    if (status != CLG_OK)
        (void)cl.ReleaseEvent(event);
    else
        *out_cl_event = event;
    return status;
}

clg_status ocl_event_create(ocl_context *ocl, void **out_cl_event)
{
    cl_int code;
    *out_cl_event = NULL;
    CLG_TRY(ocl_context_require(ocl));
    *out_cl_event = cl.CreateUserEvent(ocl->handle, &code);
    return context_check(ocl, code, "clCreateUserEvent");
}

clg_status ocl_event_retain(ocl_context *ocl, void *event)
{
    CL_TRY(ocl, RetainEvent, (event));
    return CLG_OK;
}

void ocl_event_complete(void *event, bool failed)
{
    (void)cl.SetUserEventStatus(event, failed ? CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST
                                              : CL_COMPLETE);
    (void)cl.ReleaseEvent(event);
}

clg_status ocl_event_wait(ocl_context *ocl, void *event)
{
    cl_event waited = event;
    clg_status status = CONTEXT_DO(ocl, WaitForEvents, (1, &waited));
    (void)cl.ReleaseEvent(waited);
    return status;
}
