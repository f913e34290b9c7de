/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements channels on Windows, as pipes. Waiting for data polls the pipe, because a blocking
 * read would also block writes.
 */
#include "helper/channel.h"

#include "base/clock.h"

#include <fcntl.h>
#include <io.h>
#include <stdio.h>
#include <windows.h>

#define NS_PER_MS UINT64_C(1000000)
/* A wait for data polls every millisecond for the first AWAKE_MS milliseconds, then every PAUSE_MS
 * milliseconds: a compilation takes tens of milliseconds or more. */
#define AWAKE_MS 100
#define PAUSE_MS 5

/* Disables modal error dialogs, which would block a crashed process; workers inherit this. */
static void be_silent(void)
{
    (void)SetErrorMode(SEM_FAILCRITICALERRORS | SEM_NOGPFAULTERRORBOX | SEM_NOOPENFILEERRORBOX);
}

int channel_open_parent(void)
{
    HANDLE input = GetStdHandle(STD_INPUT_HANDLE), own;
    be_silent();
    if (input == NULL || input == INVALID_HANDLE_VALUE || GetFileType(input) != FILE_TYPE_PIPE ||
        !DuplicateHandle(GetCurrentProcess(), input, GetCurrentProcess(), &own, 0, FALSE,
                         DUPLICATE_SAME_ACCESS))
        return -1;
    /* Replace the standard input: processes that a driver starts inherit it. */
    if (!freopen("NUL", "r", stdin)) return -1;
    (void)SetStdHandle(STD_INPUT_HANDLE, (HANDLE)_get_osfhandle(_fileno(stdin)));
    return _open_osfhandle((intptr_t)own, _O_BINARY | _O_NOINHERIT);
}

bool channel_is_readable(int channel, int timeout_ms)
{
    HANDLE pipe = (HANDLE)_get_osfhandle(channel);
    const uint64_t start = time_now_ns();
    for (;;) {
        DWORD n_bytes;
        if (!PeekNamedPipe(pipe, NULL, 0, NULL, &n_bytes, NULL) || n_bytes > 0) return true;
        const uint64_t ms = (time_now_ns() - start) / NS_PER_MS;
        if (ms >= (uint64_t)timeout_ms) return false;
        Sleep(ms < AWAKE_MS ? 1 : PAUSE_MS);
    }
}

/* Limits a size to what _read and _write accept in one call. */
static unsigned limited(size_t n_bytes)
{
    return n_bytes < (1u << 30) ? (unsigned)n_bytes : 1u << 30;
}

int64_t channel_read(int channel, void *data, size_t n_bytes)
{
    return _read(channel, data, limited(n_bytes));
}

int64_t channel_write(int channel, const void *data, size_t n_bytes)
{
    return _write(channel, data, limited(n_bytes));
}
