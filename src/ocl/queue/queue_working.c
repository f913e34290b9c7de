/* SPDX-License-Identifier: Apache-2.0
 *
 * Counts the queues of the process with launches in flight: what makes one of them faster alone may
 * slow down others.
 */
#include "ocl/queue/queue.h"

static atomic_int n_working;

void queue_set_working(ocl_queue *q, bool is_working)
{
    if (q->is_working == is_working) return;
    q->is_working = is_working;
    atomic_fetch_add_explicit(&n_working, is_working ? 1 : -1, memory_order_relaxed);
}

bool queue_works_alone(const ocl_queue *q)
{
    return atomic_load_explicit(&n_working, memory_order_relaxed) == (q->is_working ? 1 : 0);
}
