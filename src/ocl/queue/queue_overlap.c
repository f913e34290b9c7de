/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs commands of a queue concurrently: implements ocl_queue_fork, ocl_queue_order and
 * ocl_queue_join. The commands are enqueued in a second, out-of-order OpenCL queue, each with a
 * wait list of the commands that it depends on. They wait for a marker in the main queue, and a
 * barrier there waits for them; so the main queue stays in order for an application that shares it.
 * Used only where it is faster (decision 35).
 */
#include "ocl/queue/queue.h"

bool overlap_gains(const ocl_queue *q)
{
    return ocl_context_threads_sleep(q->context) && !q->is_callers && !q->profiling;
}

static void release(cl_event *event)
{
    if (*event) (void)cl.ReleaseEvent(*event);
    *event = NULL;
}

static void forget(queue_overlap *o)
{
    release(&o->begun);
    for (int i = 0; i < QUEUE_WINDOW; i++) release(&o->done[i]);
    o->is_open = false;
    o->last = 0;
}

static clg_status open_second(ocl_queue *q)
{
    cl_int code;
    CLG_TRY(ocl_context_require(q->context));
    q->overlap.handle = cl.CreateCommandQueue(q->context->handle, q->context->device,
                                              CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, &code);
    return context_check(q->context, code, "clCreateCommandQueue");
}

clg_status ocl_queue_fork(ocl_queue *q, bool is_first_window)
{
    queue_overlap *o = &q->overlap;
    if (!overlap_gains(q) || q->place == GUARD_ALONE) return CLG_OK;
    if (!o->handle) CLG_TRY(open_second(q));
    CLG_TRY(order_catch_up(q));
    CL_TRY(q->context, EnqueueMarkerWithWaitList, (q->handle, 0, NULL, &o->begun));
    o->is_open = q->in_flight = true;
    o->is_first_window = is_first_window;
    CL_TRY(q->context, Flush, (q->handle));
    return CLG_OK;
}

/* Lists the events of the window's commands on which no other command of the window depends. */
static cl_uint list_last(const queue_overlap *o, cl_event *out)
{
    cl_uint n = 0;
    for (int i = 0; i < QUEUE_WINDOW; i++)
        if (o->last >> i & 1u) out[n++] = o->done[i];
    return n;
}

clg_status ocl_queue_join(ocl_queue *q)
{
    queue_overlap *o = &q->overlap;
    cl_event last[QUEUE_WINDOW];
    if (!o->is_open) return CLG_OK;
    const cl_uint n = list_last(o, last);
    CL_TRY(q->context, Flush, (o->handle));
    if (n > 0) CL_TRY(q->context, EnqueueBarrierWithWaitList, (q->handle, n, last, NULL));
    forget(o);
    return CLG_OK;
}

void ocl_queue_order(ocl_queue *q, uint32_t slot, uint32_t after)
{
    q->overlap.slot = slot;
    q->overlap.after = after;
    q->overlap.is_new_slot = true;
}

void overlap_begin(const ocl_queue *q, queue_command *c)
{
    const queue_overlap *o = &q->overlap;
    *c = (queue_command){.handle = q->handle};
    if (!o->is_open) return;
    c->handle = o->handle;
    c->overlaps = true;
    if (!o->is_new_slot) {
        c->wait[c->n_wait++] = o->done[o->slot];
    } else if (o->slot == 0) {
        c->n_wait = list_last(o, c->wait);
    } else {
        for (int i = 0; i < QUEUE_WINDOW; i++)
            if ((o->after >> i & 1u) && o->done[i]) c->wait[c->n_wait++] = o->done[i];
    }
    if (c->n_wait == 0)
        c->wait[c->n_wait++] = o->is_first_window || !o->done[0] ? o->begun : o->done[0];
}

void concurrent_keep(ocl_queue *q, const queue_command *c)
{
    queue_overlap *o = &q->overlap;
    if (!c->overlaps) return;
    if (o->slot == 0 && o->is_new_slot && o->last != 0) {
        for (int i = 0; i < QUEUE_WINDOW; i++) release(&o->done[i]);
        o->last = 0;
        o->is_first_window = false;
    }
    release(&o->done[o->slot]);
    o->done[o->slot] = c->made;
    o->last = (o->last & ~o->after) | 1u << o->slot;
    o->is_new_slot = false;
}

clg_status overlap_finish(ocl_queue *q)
{
    queue_overlap *o = &q->overlap;
    if (!o->is_open) return CLG_OK;
    const clg_status status = queue_drain(q->context, o->handle);
    forget(o);
    return status;
}

void overlap_settle(ocl_queue *q)
{
    queue_overlap *o = &q->overlap;
    if (o->has_spins && !ocl_context_is_lost(q->context)) (void)cl.Finish(o->handle);
    o->has_spins = false;
}

void overlap_free(ocl_queue *q)
{
    (void)overlap_finish(q);
    overlap_settle(q);
    if (q->overlap.handle) (void)cl.ReleaseCommandQueue(q->overlap.handle);
}
