/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements platform.h on Windows.
 */
#include "support/platform.h"

#include "base/windows/utf16_windows.h"

#include <process.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#define PATH_CHARS 2048

const char *const platform_null_device = "NUL";
const char *const platform_no_folder = "no|folder";
const bool platform_keeps_mapped_files = true;

bool platform_temporary_folder(char *path, size_t n_bytes)
{
    static unsigned n_made;
    wchar_t base[PATH_CHARS], wide[PATH_CHARS];
    if (GetTempPathW(PATH_CHARS, base) == 0) return false;
    do { /* an earlier process with the same id may have left its folder */
        (void)swprintf(wide, PATH_CHARS, L"%lsclgraph-test-%lu-%u", base, GetCurrentProcessId(),
                       n_made++);
        if (CreateDirectoryW(wide, NULL)) return utf16_narrow(wide, path, (int)n_bytes);
    } while (GetLastError() == ERROR_ALREADY_EXISTS);
    return false;
}

static void remove_wide(const wchar_t *path)
{
    wchar_t pattern[PATH_CHARS], below[PATH_CHARS];
    WIN32_FIND_DATAW found;
    (void)swprintf(pattern, PATH_CHARS, L"%ls\\*", path);
    HANDLE search = FindFirstFileW(pattern, &found);
    if (search == INVALID_HANDLE_VALUE) return;
    do {
        if (wcscmp(found.cFileName, L".") == 0 || wcscmp(found.cFileName, L"..") == 0) continue;
        (void)swprintf(below, PATH_CHARS, L"%ls\\%ls", path, found.cFileName);
        (void)SetFileAttributesW(below, FILE_ATTRIBUTE_NORMAL);
        if (found.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY) {
            remove_wide(below);
        } else {
            (void)DeleteFileW(below);
        }
    } while (FindNextFileW(search, &found));
    (void)FindClose(search);
    (void)RemoveDirectoryW(path);
}

void platform_remove_tree(const char *path)
{
    wchar_t full[PATH_CHARS], wide[PATH_CHARS];
    if (!utf16_widen(path, wide, PATH_CHARS)) return;
    const DWORD n = GetFullPathNameW(wide, PATH_CHARS - 4, full, NULL);
    if (n == 0 || n >= PATH_CHARS - 4) return;
    (void)swprintf(wide, PATH_CHARS, L"\\\\?\\%ls", full); /* paths below may be long */
    remove_wide(wide);
}

FILE *platform_open(const char *path, const char *mode)
{
    wchar_t wide[PATH_CHARS], wide_mode[8];
    if (!utf16_widen(path, wide, PATH_CHARS) || !utf16_widen(mode, wide_mode, 8)) return NULL;
    return _wfopen(wide, wide_mode);
}

bool platform_age(const char *path, int64_t seconds)
{
    wchar_t wide[PATH_CHARS];
    FILETIME time;
    if (!utf16_widen(path, wide, PATH_CHARS)) return false;
    HANDLE file = CreateFileW(wide, FILE_READ_ATTRIBUTES | FILE_WRITE_ATTRIBUTES,
                              FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL,
                              OPEN_EXISTING, 0, NULL);
    if (file == INVALID_HANDLE_VALUE) return false;
    bool is_set = GetFileTime(file, NULL, NULL, &time);
    ULARGE_INTEGER ticks = {.LowPart = time.dwLowDateTime, .HighPart = time.dwHighDateTime};
    ticks.QuadPart -= (ULONGLONG)seconds * 10000000; /* of 100 ns */
    time = (FILETIME){ticks.LowPart, ticks.HighPart};
    is_set = is_set && SetFileTime(file, NULL, &time, &time);
    CloseHandle(file);
    return is_set;
}

bool platform_set_env(const char *name, const char *value)
{
    wchar_t wide_name[128], wide[PATH_CHARS];
    if (!utf16_widen(name, wide_name, 128)) return false;
    if (value && !utf16_widen(value, wide, PATH_CHARS)) return false;
    return SetEnvironmentVariableW(wide_name, value ? wide : NULL) ||
           GetLastError() == ERROR_ENVVAR_NOT_FOUND;
}

typedef struct part {
    int (*body)(const char *user, int i);
    const char *user;
    int i, result;
} part;

static unsigned __stdcall run_part(void *argument)
{
    part *p = argument;
    p->result = p->body(p->user, p->i);
    return 0;
}

bool platform_run_apart(int n, int (*body)(const char *user, int i), const char *user)
{
    enum { MAX = 16 };
    HANDLE threads[MAX];
    part parts[MAX];
    bool all_done = n <= MAX;
    for (int i = 0; i < n && n <= MAX; i++) {
        parts[i] = (part){body, user, i, -1};
        threads[i] = (HANDLE)_beginthreadex(NULL, 0, run_part, &parts[i], 0, NULL);
    }
    for (int i = 0; i < n && n <= MAX; i++) {
        if (threads[i]) {
            (void)WaitForSingleObject(threads[i], INFINITE);
            CloseHandle(threads[i]);
        }
        all_done = all_done && threads[i] && parts[i].result == 0;
    }
    return all_done;
}
