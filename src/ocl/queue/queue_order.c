/* SPDX-License-Identifier: Apache-2.0
 *
 * Orders the commands of a context's queues after uploads (decision 37). OpenCL orders the commands
 * of one in-order queue; commands of two queues are ordered only by events. That a blocking write
 * has returned does not order it before commands of other queues: with Intel's CPU runtime, a
 * kernel in a second queue may read the buffer's previous data.
 *
 * So the context keeps the event of the last write of its upload queue, and every other queue
 * enqueues a barrier that waits for it before its next command, once per upload. The event is
 * released when a finish has shown that the write is complete. Without new uploads this costs one
 * comparison per command.
 */
#include "ocl/queue/queue.h"

static void drop_event(upload_order *o)
{
    if (o->last) (void)cl.ReleaseEvent(o->last);
    o->last = NULL;
}

void order_publish(ocl_queue *q, cl_event written)
{
    ocl_context *ocl = q->context;
    mutex_lock(&ocl->lock);
    drop_event(&ocl->uploads);
    ocl->uploads.last = written;
    atomic_fetch_add_explicit(&ocl->uploads.count, 1, memory_order_release);
    mutex_unlock(&ocl->lock);
}

clg_status order_wait(ocl_queue *q)
{
    ocl_context *ocl = q->context;
    clg_status status = CLG_OK;
    /* Concurrent commands come after the marker that ocl_queue_fork enqueued, and so after all
     * uploads before it. */
    if (q->is_upload || q->overlap.is_open) return CLG_OK;
    mutex_lock(&ocl->lock);
    if (ocl->uploads.last && !ocl->uploads.is_ignored) {
        status =
            CONTEXT_DO(ocl, EnqueueBarrierWithWaitList, (q->handle, 1, &ocl->uploads.last, NULL));
        q->has_waited = status == CLG_OK;
        q->in_flight = q->in_flight || status == CLG_OK;
    }
    if (status == CLG_OK) q->n_uploads = atomic_load(&ocl->uploads.count);
    mutex_unlock(&ocl->lock);
    return status;
}

void order_settle(ocl_queue *q)
{
    ocl_context *ocl = q->context;
    if (!q->is_upload && !q->has_waited) return;
    mutex_lock(&ocl->lock);
    if (q->is_upload || q->n_uploads == atomic_load(&ocl->uploads.count)) drop_event(&ocl->uploads);
    mutex_unlock(&ocl->lock);
    q->has_waited = false;
}

void ocl_context_ignore_uploads(ocl_context *ocl) { ocl->uploads.is_ignored = true; }
