/* SPDX-License-Identifier: Apache-2.0
 *
 * Wraps pthread's threads, mutexes and condition variables; defines atomic reference counts; and
 * tells whether this process was forked after OpenCL was used.
 */
#ifndef CLG_BASE_THREADS_H
#define CLG_BASE_THREADS_H

#include "base/error.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>

/* In a process that was forked after OpenCL was used the drivers do not work: their threads are
 * those of the parent, and locks that these held stay locked. So every call with a context, session
 * or stream fails there before it reaches a driver or waits for a thread, and freeing one does
 * nothing: its memory belongs to the parent, too. Processes started by exec or posix_spawn are as
 * new. */

/* Starts watching for forks, before OpenCL is used for the first time; false: OpenCL was not there,
 * so that children are as good as this process. */
void fork_watch(bool uses_opencl);
/* The number of forks after fork_watch between the process that was started and this one. */
extern atomic_uint fork_depth;
static inline unsigned fork_get_depth(void)
{
    return atomic_load_explicit(&fork_depth, memory_order_relaxed);
}
/* Returns whether this process was forked after OpenCL was used. */
static inline bool fork_is_child(void) { return fork_get_depth() > 0; }
/* Returns FORKED if so. */
clg_status fork_check(void);

typedef struct mutex {
    pthread_mutex_t lock;
    atomic_uint depth; /* fork_get_depth() of the process in which it was made or renewed */
} mutex;
#define MUTEX_INIT                                                                                 \
    {                                                                                              \
        PTHREAD_MUTEX_INITIALIZER, 0                                                               \
    }
clg_status mutex_init(mutex *m);
/* Makes a mutex of the parent anew, which another thread may have held when this process was
 * forked: that thread does not exist here. */
void mutex_renew(mutex *m);
static inline void mutex_lock(mutex *m)
{
    if (atomic_load_explicit(&m->depth, memory_order_acquire) != fork_get_depth()) mutex_renew(m);
    (void)pthread_mutex_lock(&m->lock);
}
static inline void mutex_unlock(mutex *m) { (void)pthread_mutex_unlock(&m->lock); }
static inline void mutex_deinit(mutex *m) { (void)pthread_mutex_destroy(&m->lock); }

typedef pthread_cond_t condition;
#define CONDITION_INIT PTHREAD_COND_INITIALIZER
clg_status condition_init(condition *c);
static inline void condition_wait(condition *c, mutex *m) { (void)pthread_cond_wait(c, &m->lock); }
/* As condition_wait, for at most some milliseconds. */
void condition_wait_for(condition *c, mutex *m, unsigned ms);
static inline void condition_broadcast(condition *c) { (void)pthread_cond_broadcast(c); }
static inline void condition_deinit(condition *c) { (void)pthread_cond_destroy(c); }

typedef pthread_t thread;
/* Starts a thread, which must be joined by thread_join, or detached by thread_detach. */
clg_status thread_start(thread *out_thread, void *(*body)(void *), void *argument);
static inline void thread_join(thread t) { (void)pthread_join(t, NULL); }
static inline void thread_detach(thread t) { (void)pthread_detach(t); }
/* Returns the number of processors that the system reports; at least 1. */
size_t thread_n_processors(void);
/* Lets other threads that are ready run first. */
static inline void thread_yield(void) { (void)sched_yield(); }

/* An atomic reference count, initially 1. refcount_release returns whether it released the last
 * reference. */
typedef struct refcount {
    atomic_size_t count;
} refcount;
static inline void refcount_init(refcount *r) { atomic_init(&r->count, 1); }
static inline void refcount_retain(refcount *r)
{
    atomic_fetch_add_explicit(&r->count, 1, memory_order_relaxed);
}
/* Returns whether there are other references than the caller's. */
static inline bool refcount_is_shared(const refcount *r)
{
    return atomic_load_explicit(&r->count, memory_order_acquire) > 1;
}
static inline bool refcount_release(refcount *r)
{
    return atomic_fetch_sub_explicit(&r->count, 1, memory_order_acq_rel) == 1;
}

#endif
