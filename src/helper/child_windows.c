/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs the worker as a second process of the supervisor's program, selected by an argument.
 */
#define PSAPI_VERSION 2 /* uses GetProcessMemoryInfo of kernel32.dll */
#include "helper/child.h"

#include "base/windows/spawn_windows.h"

#include <fcntl.h>
#include <io.h>
#include <psapi.h>
#include <string.h>

#define WORKER_ARGUMENT "--worker"
#define PATH_CHARS 4096
/* Milliseconds that a worker has to exit after it closed its channel. */
#define LINGER_MS 2000

bool child_is_this(int n_arguments, char *const *arguments)
{
    return n_arguments == 2 && strcmp(arguments[1], WORKER_ARGUMENT) == 0;
}

static bool start_worker(HANDLE input, HANDLE output, child *c)
{
    wchar_t path[PATH_CHARS];
    spawned s;
    const DWORD n = GetModuleFileNameW(NULL, path, PATH_CHARS);
    if (n == 0 || n >= PATH_CHARS) return false;
    if (!spawn_start(path, L"" WORKER_ARGUMENT, input, output, &s)) return false;
    c->process = (intptr_t)s.process;
    c->group = (intptr_t)s.job;
    return true;
}

bool child_start(child *c)
{
    SECURITY_ATTRIBUTES inheritable = {.nLength = sizeof inheritable, .bInheritHandle = TRUE};
    HANDLE ours, theirs, output, their_output;
    *c = (child){.is_running = false};
    if (!CreatePipe(&output, &their_output, &inheritable, 0)) return false;
    (void)SetHandleInformation(output, HANDLE_FLAG_INHERIT, 0);
    if (spawn_channel(0, &ours, &theirs)) {
        c->is_running = start_worker(theirs, their_output, c);
        CloseHandle(theirs);
        c->channel = c->is_running ? _open_osfhandle((intptr_t)ours, _O_BINARY) : -1;
        if (c->channel < 0) CloseHandle(ours);
    }
    CloseHandle(their_output);
    c->output = (intptr_t)output;
    if (!c->is_running) CloseHandle(output);
    return c->is_running;
}

void child_read_output(child *c)
{
    char piece[512];
    DWORD n;
    while (PeekNamedPipe((HANDLE)c->output, NULL, 0, NULL, &n, NULL) && n > 0 &&
           ReadFile((HANDLE)c->output, piece, sizeof piece, &n, NULL))
        child_keep_output(c, piece, n);
}

uint64_t child_resident_bytes(const child *c)
{
    PROCESS_MEMORY_COUNTERS counters = {.cb = sizeof counters};
    if (!GetProcessMemoryInfo((HANDLE)c->process, &counters, sizeof counters)) return 0;
    return counters.WorkingSetSize;
}

uint64_t child_waited_ns(const child *c)
{
    (void)c; /* Windows does not report it */
    return 0;
}

void child_kill(child *c)
{
    if (!c->is_running) return;
    spawned s = {(HANDLE)c->process, (HANDLE)c->group};
    spawn_kill(&s);
    child_read_output(c);
    if (c->channel >= 0) (void)_close(c->channel);
    CloseHandle((HANDLE)c->output);
    c->is_running = false;
}

/* Returns whether an exit code is that of a process that was ended from outside, or ran out of
 * memory; task managers end processes with 1. */
static bool is_killed(DWORD code)
{
    switch (code) {
    case 1:
    case 0xC0000017: /* STATUS_NO_MEMORY */
    case 0xC000009A: /* STATUS_INSUFFICIENT_RESOURCES */
    case 0xC000012D: /* STATUS_COMMITMENT_LIMIT */
    case 0xC000013A: /* STATUS_CONTROL_C_EXIT */
    case 0xC000026B: /* STATUS_DLL_INIT_FAILED_LOGOFF */ return true;
    default: return false;
    }
}

/* Returns how the worker ended. Exit codes from 0x80000000 on are exceptions; abort() exits with 3.
 * A driver that calls exit() counts as a crash too. */
helper_outcome child_reap(child *c, int32_t *out_signal)
{
    DWORD code = 1;
    const bool has_ended = WaitForSingleObject((HANDLE)c->process, LINGER_MS) == WAIT_OBJECT_0 &&
                           GetExitCodeProcess((HANDLE)c->process, &code);
    child_kill(c);
    *out_signal = has_ended && code >= 0x80000000 ? (int32_t)code : 0;
    return has_ended && !is_killed(code) ? HELPER_CRASHED : HELPER_KILLED;
}
