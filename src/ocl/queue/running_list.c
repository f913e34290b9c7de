/* SPDX-License-Identifier: Apache-2.0
 *
 * The queues of the process that have left the launch guard while known launches of theirs are
 * still in flight, so that their thread may do something else meanwhile (ocl_queue_wait_read).
 * Whoever is admitted alone waits for them.
 */
#include "ocl/queue/queue.h"

static struct {
    mutex lock; /* guards the list, and `running` of its members; held while they are waited for */
    ocl_queue *first;
} running = {.lock = MUTEX_INIT};

static void remove_member(ocl_queue *q)
{
    if (!q->running.link) return;
    *q->running.link = q->running.next;
    if (q->running.next) q->running.next->running.link = q->running.link;
    q->running = (queue_running){NULL, NULL};
}

void running_list_add(ocl_queue *q)
{
    mutex_lock(&running.lock);
    if (!q->running.link) {
        q->running.next = running.first;
        if (running.first) running.first->running.link = &q->running.next;
        q->running.link = &running.first;
        running.first = q;
    }
    mutex_unlock(&running.lock);
}

void running_list_remove(ocl_queue *q)
{
    mutex_lock(&running.lock);
    remove_member(q);
    mutex_unlock(&running.lock);
}

void running_list_wait(void)
{
    mutex_lock(&running.lock);
    while (running.first) {
        (void)cl.Finish(running.first->handle); /* a failure is for its own thread to see */
        if (running.first->overlap.handle) (void)cl.Finish(running.first->overlap.handle);
        remove_member(running.first);
    }
    mutex_unlock(&running.lock);
}
