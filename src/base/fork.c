/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements fork.h by a handler that the system calls in the child of a fork: a call of the
 * library costs no system call. Processes started by exec or posix_spawn start anew.
 */
#include "base/fork.h"

#include "base/system.h"
#include "base/threads.h"

atomic_uint fork_depth;
static atomic_bool is_used, is_registered;

/* Runs in the child, before fork returns. */
static void begin_child(void)
{
    if (!atomic_load(&is_used)) return;
    atomic_fetch_add(&fork_depth, 1);
    mutex_begin_child();
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
