/* SPDX-License-Identifier: Apache-2.0
 *
 * Child processes on Windows: not there yet, and refused. Kernels are then compiled in the calling process.
 */
#include "base/process.h"

bool process_is_privileged(void) { return false; }

clg_status process_start(const char *path, const char *const *arguments, process **out_process)
{
    (void)arguments;
    *out_process = NULL;
    return error_set(CLG_ERROR_IO, "'%s' cannot be started: not supported on Windows", path);
}

static clg_status no_process(void) { return error_set(CLG_ERROR_IO, "there is no child process"); }

clg_status process_send(process *p, const void *data, size_t size_bytes, uint64_t until_ns,
                        process_keep_waiting keep_waiting, void *user)
{
    (void)p, (void)data, (void)size_bytes, (void)until_ns, (void)keep_waiting, (void)user;
    return no_process();
}

clg_status process_receive(process *p, void *data, size_t size_bytes, uint64_t until_ns,
                           process_keep_waiting keep_waiting, void *user)
{
    (void)p, (void)data, (void)size_bytes, (void)until_ns, (void)keep_waiting, (void)user;
    return no_process();
}

void process_end(process *p) { (void)p; }
