/* SPDX-License-Identifier: Apache-2.0
 *
 * Starts a child process with a channel on Windows, for process_windows.c and the compile helper.
 * Functions that return a bool leave the reason in GetLastError.
 */
#ifndef CLG_BASE_SPAWN_WINDOWS_H
#define CLG_BASE_SPAWN_WINDOWS_H

#include <stdbool.h>
#include <windows.h>

/* A process and the job object that contains it and all processes that it starts; job is NULL where
 * the system does not allow one (Windows 7 inside another job). */
typedef struct spawned {
    HANDLE process, job;
} spawned;

/* Creates the two ends of a duplex channel: ours, by CreateNamedPipe with `flags`
 * (FILE_FLAG_OVERLAPPED or 0), and the child's, which is inheritable. */
bool spawn_channel(DWORD flags, HANDLE *out_ours, HANDLE *out_theirs);
/* Starts the program at a path. Its standard input is `input`; its output goes to `output`. It
 * inherits only these two handles, has no window, gets no Ctrl-C, and ends with the process that
 * started it. arguments: as on a command line, or NULL. */
bool spawn_start(const wchar_t *path, const wchar_t *arguments, HANDLE input, HANDLE output,
                 spawned *out_spawned);
/* Kills the process, with all processes that it has started, and closes the handles. */
void spawn_kill(spawned *s);

#endif
