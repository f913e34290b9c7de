/* SPDX-License-Identifier: Apache-2.0
 *
 * The queues of the process that may have the kernel of spin_wait.c in flight, and the memory by
 * which all of these kernels are ended together. Apart from spin_wait.c, so that the launch guard
 * can end them before it admits a queue alone.
 */
#include "ocl/queue/queue.h"

#include <stdalign.h>

/* 0, and the number of announcements. Nothing else is on their cache line. */
static alignas(SPIN_WORD_BYTES) atomic_int words[SPIN_WORD_BYTES / sizeof(atomic_int)];

static struct {
    mutex lock; /* guards the list, and `last`, `next` and `link` of its members */
    queue_spin *first;
} spinning = {.lock = MUTEX_INIT};

const void *spin_words(void) { return words; }

int spin_n_announced(void) { return atomic_load_explicit(&words[1], memory_order_acquire); }

void spin_announce_work(void) { atomic_fetch_add_explicit(&words[1], 1, memory_order_release); }

/* Waits for the member's last launch; to be called with the lock, after an announcement. */
static void wait_for_last(queue_spin *s)
{
    if (!s->last) return;
    (void)cl.WaitForEvents(1, &s->last);
    (void)cl.ReleaseEvent(s->last);
    s->last = NULL;
}

void spin_list_add(queue_spin *s)
{
    mutex_lock(&spinning.lock);
    if (!s->link) {
        s->next = spinning.first;
        if (s->next) s->next->link = &s->next;
        s->link = &spinning.first;
        spinning.first = s;
    }
    mutex_unlock(&spinning.lock);
}

void spin_list_keep(queue_spin *s, cl_event launched)
{
    mutex_lock(&spinning.lock);
    if (s->last) (void)cl.ReleaseEvent(s->last);
    s->last = launched;
    mutex_unlock(&spinning.lock);
}

void spin_list_remove(queue_spin *s)
{
    mutex_lock(&spinning.lock);
    if (s->link) {
        spin_announce_work();
        wait_for_last(s);
        *s->link = s->next;
        if (s->next) s->next->link = s->link;
        s->link = NULL;
    }
    mutex_unlock(&spinning.lock);
}

void spin_end_all(void)
{
    mutex_lock(&spinning.lock);
    spin_announce_work();
    for (queue_spin *s = spinning.first; s; s = s->next) wait_for_last(s);
    mutex_unlock(&spinning.lock);
}
