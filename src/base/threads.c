/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements threads.h by pthread; converts pthread's error codes to a clg_status. Forks are
 * noticed by a handler that the system calls in the child: a call of the library costs no system
 * call.
 */
#include "base/threads.h"

#include "base/system.h"

static clg_status refused(const char *what, int number)
{
    char words[ERROR_SYSTEM_BYTES];
    return error_set(CLG_ERROR_OUT_OF_HOST_MEMORY, "%s cannot be made: %s", what,
                     error_system(number, words));
}

clg_status mutex_init(mutex *m)
{
    int failed = pthread_mutex_init(&m->lock, NULL);
    atomic_init(&m->depth, fork_get_depth());
    return failed ? refused("a lock", failed) : CLG_OK;
}

static atomic_flag is_renewing = ATOMIC_FLAG_INIT;

void mutex_renew(mutex *m)
{
    const unsigned depth = fork_get_depth();
    while (atomic_flag_test_and_set_explicit(&is_renewing, memory_order_acquire)) thread_yield();
    if (atomic_load(&m->depth) != depth && pthread_mutex_init(&m->lock, NULL) == 0)
        atomic_store_explicit(&m->depth, depth, memory_order_release);
    atomic_flag_clear_explicit(&is_renewing, memory_order_release);
}

clg_status condition_init(condition *c)
{
    int failed = sys_condition_init(c);
    return failed ? refused("a condition variable", failed) : CLG_OK;
}

void condition_wait_for(condition *c, mutex *m, unsigned ms)
{
    struct timespec until;
    (void)clock_gettime(sys_wait_clock, &until);
    until.tv_sec += (time_t)(ms / 1000);
    until.tv_nsec += (long)(ms % 1000) * 1000000L;
    if (until.tv_nsec >= 1000000000L) {
        until.tv_nsec -= 1000000000L;
        until.tv_sec++;
    }
    (void)pthread_cond_timedwait(c, &m->lock, &until);
}

clg_status thread_start(thread *out_thread, void *(*body)(void *), void *argument)
{
    int failed = sys_thread_start(out_thread, body, argument);
    return failed ? refused("a thread", failed) : CLG_OK;
}

size_t thread_n_processors(void)
{
    const long n = sys_n_processors();
    return n > 1 ? (size_t)n : 1;
}

/* ---- forks ----------------------------------------------------------------------------------- */

atomic_uint fork_depth;
static atomic_bool is_used, is_registered;

/* Runs in the child, before fork returns. */
static void begin_child(void)
{
    if (!atomic_load(&is_used)) return;
    atomic_fetch_add(&fork_depth, 1);
    atomic_flag_clear(&is_renewing); /* a thread of the parent may have held it */
}

void fork_watch(bool uses_opencl)
{
    atomic_store(&is_used, uses_opencl);
    if (uses_opencl && !atomic_exchange(&is_registered, true)) sys_at_fork(begin_child);
}

clg_status fork_check(void)
{
    if (!fork_is_child()) return CLG_OK;
    const clg_status status = error_set(
        CLG_ERROR_FORKED,
        "this process was forked after OpenCL was used: OpenCL drivers do not work in it");
    error_hint("create contexts after the fork, and use no OpenCL before it; or start processes by "
               "spawn, not by fork");
    return status;
}
