/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements threads.h by pthread; converts pthread's error codes to a clg_status.
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
    int failed = pthread_mutex_init(m, NULL);
    return failed ? refused("a lock", failed) : CLG_OK;
}

clg_status condition_init(condition *c)
{
    int failed = sys_condition_init(c);
    return failed ? refused("a condition variable", failed) : CLG_OK;
}

void condition_wait_for(condition *c, mutex *m, unsigned ms) { sys_condition_wait_for(c, m, ms); }

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
