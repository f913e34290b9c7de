/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements base/process.h on Windows. Transfers use overlapped I/O, so that waiting for them can
 * be cancelled.
 */
#include "base/cancel.h"
#include "base/clock.h"
#include "base/process.h"

#include "base/files.h"
#include "base/memory.h"
#include "base/system.h"
#include "base/windows/spawn_windows.h"
#include "base/windows/utf16_windows.h"

#define SLICE_MS 50
/* Milliseconds that a child has to exit after its channel was closed. */
#define END_MS 500
/* Maximum size of one transfer, below the limit of ReadFile and WriteFile (a DWORD). */
#define PIECE_BYTES ((size_t)1 << 30)

const char process_suffix[] = ".exe";

struct process {
    spawned child;
    HANDLE channel, transferred; /* transferred: event that the pending transfer sets */
};

/* Always false: Windows has no setuid. An elevated program has its user's consent, and reads files
 * that the user's other programs could write in any case. */
bool process_is_privileged(void) { return false; }

static clg_status refuse(const char *path)
{
    return error_set(CLG_ERROR_IO, "'%s' cannot be started: Windows error %lu", path,
                     GetLastError());
}

static HANDLE open_nothing(void)
{
    SECURITY_ATTRIBUTES inheritable = {.nLength = sizeof inheritable, .bInheritHandle = TRUE};
    return CreateFileW(L"NUL", GENERIC_WRITE, FILE_SHARE_READ | FILE_SHARE_WRITE, &inheritable,
                       OPEN_EXISTING, 0, NULL);
}

static bool start(const wchar_t *path, process *p)
{
    HANDLE theirs, nothing = open_nothing();
    if (nothing == INVALID_HANDLE_VALUE) return false;
    if (!spawn_channel(FILE_FLAG_OVERLAPPED, &p->channel, &theirs)) {
        CloseHandle(nothing);
        return false;
    }
    const bool is_started = spawn_start(path, NULL, theirs, nothing, &p->child);
    const DWORD error = GetLastError();
    CloseHandle(theirs);
    CloseHandle(nothing);
    if (!is_started) CloseHandle(p->channel);
    SetLastError(error);
    return is_started;
}

clg_status process_start(const char *path, process **out_process)
{
    wchar_t wide[SYS_PATH_BYTES];
    *out_process = NULL;
    if (!utf16_widen(path, wide, SYS_PATH_BYTES)) return refuse(path);
    process *p = memory_zalloc(1, sizeof *p);
    if (!p) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    p->transferred = CreateEventW(NULL, TRUE, FALSE, NULL);
    if (!p->transferred || !start(wide, p)) {
        const clg_status status = refuse(path);
        if (p->transferred) CloseHandle(p->transferred);
        memory_free(p);
        return status;
    }
    *out_process = p;
    return CLG_OK;
}

static clg_status gone(void)
{
    return error_set(CLG_ERROR_IO, "the child process ended before it answered");
}

/* Waits until the pending transfer has ended. Polls keep_waiting every SLICE_MS; fails when that
 * cancels or until_ns has passed. */
static clg_status wait_for(const process *p, uint64_t until_ns, process_keep_waiting keep_waiting,
                           void *user)
{
    while (WaitForSingleObject(p->transferred, SLICE_MS) != WAIT_OBJECT_0) {
        CLG_TRY(cancel_check("waiting for a child process"));
        if (keep_waiting && !keep_waiting(user))
            return error_set(CLG_ERROR_CANCELLED, "waiting for a child process was cancelled");
        if (time_now_ns() >= until_ns)
            return error_set(CLG_ERROR_IO, "the child process did not answer in time");
    }
    return CLG_OK;
}

/* Sends or receives 1 to size_bytes bytes. The system uses data and `state` until the transfer has
 * ended, also after CancelIo: GetOverlappedResult waits for that. */
static clg_status transfer(process *p, bool is_sent, void *data, size_t size_bytes,
                           uint64_t until_ns, process_keep_waiting keep_waiting, void *user,
                           size_t *out_n_bytes)
{
    OVERLAPPED state = {.hEvent = p->transferred};
    const DWORD limited = (DWORD)(size_bytes < PIECE_BYTES ? size_bytes : PIECE_BYTES);
    DWORD n = 0;
    const BOOL is_done = is_sent ? WriteFile(p->channel, data, limited, NULL, &state)
                                 : ReadFile(p->channel, data, limited, NULL, &state);
    if (!is_done && GetLastError() != ERROR_IO_PENDING) return gone();
    const clg_status status = wait_for(p, until_ns, keep_waiting, user);
    if (status != CLG_OK) (void)CancelIo(p->channel);
    const BOOL is_whole = GetOverlappedResult(p->channel, &state, &n, TRUE);
    if (status != CLG_OK) return status;
    *out_n_bytes = n;
    return is_whole && n > 0 ? CLG_OK : gone();
}

clg_status process_send(process *p, const void *data, size_t size_bytes, uint64_t until_ns,
                        process_keep_waiting keep_waiting, void *user)
{
    const char *at = data;
    for (size_t n = 0; size_bytes > 0; at += n, size_bytes -= n)
        CLG_TRY(
            transfer(p, true, (void *)(uintptr_t)at, size_bytes, until_ns, keep_waiting, user, &n));
    return CLG_OK;
}

clg_status process_receive(process *p, void *data, size_t size_bytes, uint64_t until_ns,
                           process_keep_waiting keep_waiting, void *user)
{
    char *at = data;
    for (size_t n = 0; size_bytes > 0; at += n, size_bytes -= n)
        CLG_TRY(transfer(p, false, at, size_bytes, until_ns, keep_waiting, user, &n));
    return CLG_OK;
}

void process_kill(process *p)
{
    if (p) spawn_kill(&p->child);
    process_end(p);
}

void process_end(process *p)
{
    if (!p) return;
    CloseHandle(p->channel);
    (void)WaitForSingleObject(p->child.process, END_MS);
    spawn_kill(&p->child);
    CloseHandle(p->transferred);
    memory_free(p);
}
