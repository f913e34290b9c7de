/* SPDX-License-Identifier: Apache-2.0
 *
 * Starts child processes with CreateProcess. The channel is a named pipe: anonymous pipes support
 * neither timeouts nor both directions. A job object ends the child with its parent.
 */
#include "base/windows/spawn_windows.h"

#include <stdio.h>
#include <wchar.h>

#define NAME_CHARS 96
#define COMMAND_CHARS 4200
#define CHANNEL_BYTES (1 << 16)
#define KILLED_EXIT_CODE 1

bool spawn_channel(DWORD flags, HANDLE *out_ours, HANDLE *out_theirs)
{
    static volatile LONG n_channels;
    SECURITY_ATTRIBUTES inheritable = {.nLength = sizeof inheritable, .bInheritHandle = TRUE};
    wchar_t name[NAME_CHARS];
    LARGE_INTEGER now;
    QueryPerformanceCounter(&now);
    (void)swprintf(name, NAME_CHARS, L"\\\\.\\pipe\\clgraph-%lu-%ld-%llx", GetCurrentProcessId(),
                   InterlockedIncrement(&n_channels), (unsigned long long)now.QuadPart);
    /* Fails if another process has created a pipe of this name. The pipe has one instance, so no
     * other process can connect to it after the CreateFileW below. */
    *out_ours = CreateNamedPipeW(name, PIPE_ACCESS_DUPLEX | FILE_FLAG_FIRST_PIPE_INSTANCE | flags,
                                 PIPE_TYPE_BYTE | PIPE_READMODE_BYTE | PIPE_WAIT |
                                     PIPE_REJECT_REMOTE_CLIENTS,
                                 1, CHANNEL_BYTES, CHANNEL_BYTES, 0, NULL);
    if (*out_ours == INVALID_HANDLE_VALUE) return false;
    *out_theirs =
        CreateFileW(name, GENERIC_READ | GENERIC_WRITE, 0, &inheritable, OPEN_EXISTING, 0, NULL);
    if (*out_theirs != INVALID_HANDLE_VALUE) return true;
    const DWORD error = GetLastError();
    CloseHandle(*out_ours);
    SetLastError(error);
    return false;
}

/* Creates a job whose processes end when its last handle, which this process has, is closed. */
static HANDLE make_job(void)
{
    HANDLE job = CreateJobObjectW(NULL, NULL);
    JOBOBJECT_EXTENDED_LIMIT_INFORMATION limits = {
        .BasicLimitInformation = {.LimitFlags = JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE |
                                                JOB_OBJECT_LIMIT_DIE_ON_UNHANDLED_EXCEPTION}};
    if (job)
        (void)SetInformationJobObject(job, JobObjectExtendedLimitInformation, &limits,
                                      sizeof limits);
    return job;
}

static bool create(const wchar_t *path, wchar_t *command, STARTUPINFOEXW *startup,
                   PROCESS_INFORMATION *out_created)
{
    const DWORD flags = CREATE_SUSPENDED | CREATE_NO_WINDOW | CREATE_NEW_PROCESS_GROUP |
                        EXTENDED_STARTUPINFO_PRESENT;
    return CreateProcessW(path, command, NULL, NULL, TRUE, flags, NULL, NULL, &startup->StartupInfo,
                          out_created);
}

/* Creates a suspended process that inherits only input and output: this process may have other
 * inheritable handles. */
static bool create_with_handles(const wchar_t *path, wchar_t *command, HANDLE input, HANDLE output,
                                PROCESS_INFORMATION *out_created)
{
    union {
        char bytes[256]; /* a list of one attribute takes 48 */
        void *alignment;
    } room;
    SIZE_T size = sizeof room;
    HANDLE handles[] = {input, output};
    STARTUPINFOEXW startup = {.StartupInfo = {.cb = sizeof startup,
                                              .dwFlags = STARTF_USESTDHANDLES,
                                              .hStdInput = input,
                                              .hStdOutput = output,
                                              .hStdError = output}};
    startup.lpAttributeList = (LPPROC_THREAD_ATTRIBUTE_LIST)&room;
    if (!InitializeProcThreadAttributeList(startup.lpAttributeList, 1, 0, &size)) return false;
    const bool is_created =
        UpdateProcThreadAttribute(startup.lpAttributeList, 0, PROC_THREAD_ATTRIBUTE_HANDLE_LIST,
                                  handles, sizeof handles, NULL, NULL) &&
        create(path, command, &startup, out_created);
    const DWORD error = GetLastError();
    DeleteProcThreadAttributeList(startup.lpAttributeList);
    SetLastError(error);
    return is_created;
}

bool spawn_start(const wchar_t *path, const wchar_t *arguments, HANDLE input, HANDLE output,
                 spawned *out_spawned)
{
    wchar_t command[COMMAND_CHARS];
    PROCESS_INFORMATION created;
    *out_spawned = (spawned){NULL, NULL};
    if (swprintf(command, COMMAND_CHARS, L"\"%ls\" %ls", path, arguments ? arguments : L"") < 0) {
        SetLastError(ERROR_FILENAME_EXCED_RANGE);
        return false;
    }
    if (!create_with_handles(path, command, input, output, &created)) return false;
    out_spawned->process = created.hProcess;
    out_spawned->job = make_job();
    if (out_spawned->job && !AssignProcessToJobObject(out_spawned->job, created.hProcess)) {
        CloseHandle(out_spawned->job);
        out_spawned->job = NULL;
    }
    (void)ResumeThread(created.hThread);
    CloseHandle(created.hThread);
    return true;
}

void spawn_kill(spawned *s)
{
    if (!s->process) return;
    if (s->job) (void)TerminateJobObject(s->job, KILLED_EXIT_CODE);
    (void)TerminateProcess(s->process, KILLED_EXIT_CODE);
    if (s->job) CloseHandle(s->job);
    CloseHandle(s->process);
    *s = (spawned){NULL, NULL};
}
