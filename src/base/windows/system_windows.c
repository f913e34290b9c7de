/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements base/system.h and base/clock.h on Windows. Paths are converted from UTF-8 and may be
 * longer than MAX_PATH. Open files can be replaced and removed by others, as on POSIX systems.
 */
#include "base/clock.h"
#include "base/system.h"

#include "base/windows/utf16_windows.h"

#include <errno.h>
#include <fcntl.h>
#include <io.h>
#include <process.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <wchar.h>

#define SHARE_ALL (FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE)
/* Number of attempts of a rename, and the pause between them: other programs, for example virus
 * scanners, open new files and block renames over them for a short time. */
#define RENAME_TRIES 20
#define RENAME_PAUSE_MS 10

const char sys_separator = '\\';

/* ---- errors ---------------------------------------------------------------------------------- */

/* Sets errno to the closest match of a Windows error; returns -1. */
static int fail_as(DWORD error)
{
    static const struct {
        DWORD error;
        int number;
    } rows[] = {
        {ERROR_FILE_NOT_FOUND, ENOENT},
        {ERROR_PATH_NOT_FOUND, ENOENT},
        {ERROR_INVALID_NAME, ENOENT},
        {ERROR_BAD_PATHNAME, ENOENT},
        {ERROR_BAD_NETPATH, ENOENT},
        {ERROR_BAD_NET_NAME, ENOENT},
        {ERROR_INVALID_DRIVE, ENOENT},
        {ERROR_NO_MORE_FILES, ENOENT},
        {ERROR_ACCESS_DENIED, EACCES},
        {ERROR_SHARING_VIOLATION, EACCES},
        {ERROR_LOCK_VIOLATION, EACCES},
        {ERROR_WRITE_PROTECT, EROFS},
        {ERROR_USER_MAPPED_FILE, EACCES},
        {ERROR_FILE_EXISTS, EEXIST},
        {ERROR_ALREADY_EXISTS, EEXIST},
        {ERROR_DISK_FULL, ENOSPC},
        {ERROR_HANDLE_DISK_FULL, ENOSPC},
        {ERROR_NOT_ENOUGH_MEMORY, ENOMEM},
        {ERROR_OUTOFMEMORY, ENOMEM},
        {ERROR_DIRECTORY, ENOTDIR},
        {ERROR_DIR_NOT_EMPTY, ENOTEMPTY},
        {ERROR_TOO_MANY_OPEN_FILES, EMFILE},
        {ERROR_FILENAME_EXCED_RANGE, ENAMETOOLONG},
        {ERROR_NO_UNICODE_TRANSLATION, EILSEQ},
        {ERROR_INSUFFICIENT_BUFFER, ENAMETOOLONG},
    };
    errno = EIO;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].error == error) errno = rows[i].number;
    }
    return -1;
}

static int fail_last(void) { return fail_as(GetLastError()); }

bool sys_strerror(int number, char *buffer, size_t n_bytes)
{
    return strerror_s(buffer, n_bytes, number) == 0;
}

/* ---- names ----------------------------------------------------------------------------------- */

/* Extends a path to the absolute form that may exceed MAX_PATH: \\?\C:\...,
 * \\?\UNC\server\share\... */
static bool lengthen(wchar_t path[SYS_PATH_BYTES])
{
    static const wchar_t local[] = L"\\\\?\\", remote[] = L"\\\\?\\UNC";
    wchar_t full[SYS_PATH_BYTES];
    const DWORD n = GetFullPathNameW(path, SYS_PATH_BYTES, full, NULL);
    const bool is_remote = n > 1 && full[0] == L'\\' && full[1] == L'\\';
    const wchar_t *front = is_remote ? remote : local, *rest = is_remote ? full + 1 : full;
    if (n == 0 || n >= SYS_PATH_BYTES || wcslen(front) + wcslen(rest) >= SYS_PATH_BYTES) {
        errno = ENAMETOOLONG;
        return false;
    }
    wcscpy(path, front);
    wcscat(path, rest);
    return true;
}

/* Converts a path from UTF-8, to the form that may exceed MAX_PATH where needed. Sets errno and
 * returns false when the path is not UTF-8 or too long. */
static bool widen(const char *path, wchar_t wide[SYS_PATH_BYTES])
{
    if (!utf16_widen(path, wide, SYS_PATH_BYTES)) return fail_last() == 0;
    /* The limit for folders, which must leave room for an 8.3 name. */
    return wcslen(wide) < MAX_PATH - 12 || wcsncmp(wide, L"\\\\?\\", 4) == 0 || lengthen(wide);
}

bool sys_is_separator(char c) { return c == '/' || c == '\\'; }

size_t sys_root_bytes(const char *path)
{
    if (path[0] != '\0' && path[1] == ':') return sys_is_separator(path[2]) ? 3 : 2;
    if (!sys_is_separator(path[0])) return 0;
    if (!sys_is_separator(path[1])) return 1;
    size_t n = 2; /* \\server\share, and \\?\C: as well */
    for (int part = 0; part < 2; part++) {
        if (part > 0 && path[n] != '\0') n++;
        while (path[n] != '\0' && !sys_is_separator(path[n])) n++;
    }
    return n;
}

bool sys_resolve(const char *path, char out_path[SYS_PATH_BYTES])
{
    wchar_t wide[SYS_PATH_BYTES];
    if (!widen(path, wide)) return false;
    HANDLE file =
        CreateFileW(wide, 0, SHARE_ALL, NULL, OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS, NULL);
    if (file == INVALID_HANDLE_VALUE) return fail_last() == 0;
    DWORD length = GetFinalPathNameByHandleW(file, wide, SYS_PATH_BYTES, 0);
    CloseHandle(file);
    errno = ENAMETOOLONG;
    return length > 0 && length < SYS_PATH_BYTES && utf16_narrow(wide, out_path, SYS_PATH_BYTES);
}

const char *sys_env(const char *name)
{
    enum { KEPT = 8, NAME = 64 };
    static _Thread_local char kept[KEPT][SYS_PATH_BYTES];
    static _Thread_local size_t next;
    wchar_t wide_name[NAME], wide[SYS_PATH_BYTES];
    if (!utf16_widen(name, wide_name, NAME)) return NULL;
    SetLastError(ERROR_SUCCESS);
    const DWORD n = GetEnvironmentVariableW(wide_name, wide, SYS_PATH_BYTES);
    if (n >= SYS_PATH_BYTES || (n == 0 && GetLastError() != ERROR_SUCCESS)) return NULL;
    char *value = kept[next++ % KEPT];
    return utf16_narrow(wide, value, SYS_PATH_BYTES) ? value : NULL;
}

const char sys_cache_variables[] = "LOCALAPPDATA is not set";

const char *sys_cache_base(const char **out_subfolder)
{
    *out_subfolder = NULL;
    const char *base = sys_env("LOCALAPPDATA");
    return base && base[0] != '\0' ? base : NULL;
}

/* ---- files ----------------------------------------------------------------------------------- */

int64_t sys_read(int fd, void *data, size_t n_bytes)
{
    return _read(fd, data, sys_io_bytes(n_bytes));
}

int64_t sys_write(int fd, const void *data, size_t n_bytes)
{
    return _write(fd, data, sys_io_bytes(n_bytes));
}

int64_t sys_write_quietly(int fd, const void *data, size_t n_bytes)
{
    return sys_write(fd, data, n_bytes);
}

int sys_seek(int fd, uint64_t offset)
{
    return _lseeki64(fd, (int64_t)offset, SEEK_SET) < 0 ? -1 : 0;
}

int sys_flush(int fd) { return _commit(fd); }

int sys_close(int fd) { return _close(fd); }

/* Converts a handle of CreateFileW into a descriptor. */
static int descriptor_of(HANDLE file, int flags)
{
    if (file == INVALID_HANDLE_VALUE) return fail_last();
    int fd = _open_osfhandle((intptr_t)file, flags | _O_BINARY | _O_NOINHERIT);
    if (fd < 0) CloseHandle(file);
    return fd;
}

int sys_open_read(const char *path)
{
    wchar_t wide[SYS_PATH_BYTES];
    if (!widen(path, wide)) return -1;
    /* Opens folders too, so that sys_stat_open can report them. */
    return descriptor_of(CreateFileW(wide, GENERIC_READ, SHARE_ALL, NULL, OPEN_EXISTING,
                                     FILE_FLAG_BACKUP_SEMANTICS, NULL),
                         _O_RDONLY);
}

int sys_open_read_now(const char *path) { return sys_open_read(path); }

int sys_open_new(const char *path)
{
    wchar_t wide[SYS_PATH_BYTES];
    if (!widen(path, wide)) return -1;
    return descriptor_of(CreateFileW(wide, GENERIC_WRITE, FILE_SHARE_READ | FILE_SHARE_DELETE, NULL,
                                     CREATE_NEW, FILE_ATTRIBUTE_NORMAL, NULL),
                         _O_WRONLY);
}

int sys_open_shared(const char *path)
{
    wchar_t wide[SYS_PATH_BYTES];
    if (!widen(path, wide)) return -1;
    return descriptor_of(
        CreateFileW(wide, GENERIC_WRITE, SHARE_ALL, NULL, OPEN_ALWAYS, FILE_ATTRIBUTE_NORMAL, NULL),
        _O_WRONLY);
}

int sys_open_special(const char *path)
{
    wchar_t wide[SYS_PATH_BYTES];
    if (!widen(path, wide)) return -1;
    return descriptor_of(CreateFileW(wide, GENERIC_WRITE, SHARE_ALL, NULL, OPEN_EXISTING,
                                     FILE_ATTRIBUTE_NORMAL, NULL),
                         _O_WRONLY);
}

int sys_open_spool(void)
{
    wchar_t folder[MAX_PATH + 1], path[MAX_PATH + 16];
    if (GetTempPathW(MAX_PATH, folder) == 0) return fail_last();
    if (GetTempFileNameW(folder, L"clg", 0, path) == 0) return fail_last();
    return descriptor_of(CreateFileW(path, GENERIC_READ | GENERIC_WRITE,
                                     FILE_SHARE_READ | FILE_SHARE_DELETE, NULL, OPEN_EXISTING,
                                     FILE_ATTRIBUTE_TEMPORARY | FILE_FLAG_DELETE_ON_CLOSE, NULL),
                         _O_RDWR);
}

/* Fails while a writer has the file open, who does not share writing. */
int sys_open_locked(const char *path)
{
    wchar_t wide[SYS_PATH_BYTES];
    if (!widen(path, wide)) return -1;
    return descriptor_of(CreateFileW(wide, GENERIC_READ | GENERIC_WRITE, SHARE_ALL, NULL,
                                     OPEN_EXISTING, FILE_ATTRIBUTE_NORMAL, NULL),
                         _O_RDWR);
}

sys_lock_result sys_lock(int fd)
{
    (void)fd;
    return SYS_LOCK_NONE;
}

bool sys_lock_is_seen_by_all(int fd)
{
    (void)fd;
    return false;
}

int sys_close_keep_lock(int fd, int *out_kept)
{
    *out_kept = -1;
    return _close(fd);
}

bool sys_is_named(int fd, const char *path)
{
    (void)fd;
    (void)path;
    return true;
}

/* Converts a FILETIME, which counts 100 ns since 1601, to nanoseconds since 1970. */
static int64_t unix_ns(FILETIME time)
{
    const int64_t ticks = (int64_t)((uint64_t)time.dwHighDateTime << 32 | time.dwLowDateTime);
    return (ticks - 116444736000000000) * 100;
}

static int fill_info(HANDLE file, sys_info *out_info)
{
    BY_HANDLE_FILE_INFORMATION info;
    *out_info = (sys_info){0};
    if (GetFileType(file) != FILE_TYPE_DISK) return 0; /* a pipe, a console */
    if (!GetFileInformationByHandle(file, &info)) return fail_last();
    const bool is_folder = (info.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY) != 0;
    *out_info = (sys_info){.is_folder = is_folder,
                           .is_regular = !is_folder,
                           .size_bytes = (uint64_t)info.nFileSizeHigh << 32 | info.nFileSizeLow,
                           .modified_ns = unix_ns(info.ftLastWriteTime),
                           .accessed_ns = unix_ns(info.ftLastAccessTime)};
    return 0;
}

int sys_stat(const char *path, sys_info *out_info)
{
    wchar_t wide[SYS_PATH_BYTES];
    if (!widen(path, wide)) return -1;
    HANDLE file = CreateFileW(wide, FILE_READ_ATTRIBUTES, SHARE_ALL, NULL, OPEN_EXISTING,
                              FILE_FLAG_BACKUP_SEMANTICS, NULL);
    if (file == INVALID_HANDLE_VALUE) return fail_last();
    const int result = fill_info(file, out_info);
    CloseHandle(file);
    return result;
}

int sys_stat_open(int fd, sys_info *out_info)
{
    return fill_info((HANDLE)_get_osfhandle(fd), out_info);
}

bool sys_read_link(const char *path, char out_path[SYS_PATH_BYTES])
{
    wchar_t wide[SYS_PATH_BYTES];
    if (!widen(path, wide)) return false;
    const DWORD attributes = GetFileAttributesW(wide);
    const bool is_link =
        attributes != INVALID_FILE_ATTRIBUTES && (attributes & FILE_ATTRIBUTE_REPARSE_POINT);
    return is_link && sys_resolve(path, out_path); /* a broken link is replaced */
}

/* Clears a file's read-only attribute: POSIX systems let read-only files be replaced and removed.
 */
static void lift_read_only(const wchar_t *path)
{
    const DWORD attributes = GetFileAttributesW(path);
    if (attributes != INVALID_FILE_ATTRIBUTES && (attributes & FILE_ATTRIBUTE_READONLY))
        (void)SetFileAttributesW(path, attributes & ~(DWORD)FILE_ATTRIBUTE_READONLY);
}

/* Renames as POSIX does, even over a file that others have open; Windows 10 and later, on NTFS. */
static bool rename_over(const wchar_t *from, const wchar_t *to)
{
    enum { RENAME_INFO_EX = 22, REPLACE = 1, POSIX_SEMANTICS = 2 }; /* some SDKs lack these */
    struct {
        DWORD flags;
        HANDLE folder;
        DWORD name_bytes;
        wchar_t name[SYS_PATH_BYTES];
    } info = {.flags = REPLACE | POSIX_SEMANTICS};
    HANDLE file = CreateFileW(from, DELETE | SYNCHRONIZE, SHARE_ALL, NULL, OPEN_EXISTING,
                              FILE_FLAG_BACKUP_SEMANTICS, NULL);
    if (file == INVALID_HANDLE_VALUE) return false;
    const DWORD n = GetFullPathNameW(to, SYS_PATH_BYTES, info.name, NULL);
    info.name_bytes = n * (DWORD)sizeof(wchar_t);
    const bool is_done = n > 0 && n < SYS_PATH_BYTES &&
                         SetFileInformationByHandle(file, (FILE_INFO_BY_HANDLE_CLASS)RENAME_INFO_EX,
                                                    &info, sizeof info);
    CloseHandle(file);
    return is_done;
}

int sys_rename(const char *from, const char *to)
{
    wchar_t wide_from[SYS_PATH_BYTES], wide_to[SYS_PATH_BYTES];
    if (!widen(from, wide_from) || !widen(to, wide_to)) return -1;
    for (int i = 1;; i++) {
        if (rename_over(wide_from, wide_to)) return 0;
        if (MoveFileExW(wide_from, wide_to, MOVEFILE_REPLACE_EXISTING)) return 0;
        const DWORD error = GetLastError();
        const bool is_in_use = error == ERROR_SHARING_VIOLATION || error == ERROR_ACCESS_DENIED;
        if (!is_in_use || i == RENAME_TRIES) return fail_as(error);
        if (i == 1)
            lift_read_only(wide_to);
        else
            Sleep(RENAME_PAUSE_MS);
    }
}

int sys_remove(const char *path)
{
    wchar_t wide[SYS_PATH_BYTES];
    if (!widen(path, wide)) return -1;
    if (DeleteFileW(wide)) return 0;
    lift_read_only(wide);
    return DeleteFileW(wide) ? 0 : fail_last();
}

/* Creates a folder. Within the user's folders it is private to the user: permissions are inherited.
 */
int sys_make_folder(const char *path)
{
    wchar_t wide[SYS_PATH_BYTES];
    if (!widen(path, wide)) return -1;
    return CreateDirectoryW(wide, NULL) ? 0 : fail_last();
}

int sys_touch(const char *path)
{
    wchar_t wide[SYS_PATH_BYTES];
    FILETIME now;
    if (!widen(path, wide)) return -1;
    HANDLE file = CreateFileW(wide, FILE_WRITE_ATTRIBUTES, SHARE_ALL, NULL, OPEN_EXISTING,
                              FILE_FLAG_BACKUP_SEMANTICS, NULL);
    if (file == INVALID_HANDLE_VALUE) return fail_last();
    GetSystemTimeAsFileTime(&now);
    const bool is_set = SetFileTime(file, NULL, &now, &now);
    const int result = is_set ? 0 : fail_last();
    CloseHandle(file);
    return result;
}

bool sys_is_private(const char *folder, const char **out_words)
{
    (void)folder;
    *out_words = NULL;
    return true;
}

bool sys_may(const char *path, bool reading, bool writing)
{
    wchar_t wide[SYS_PATH_BYTES];
    const DWORD rights = (reading ? GENERIC_READ : 0) | (writing ? GENERIC_WRITE : 0);
    if (!widen(path, wide)) return false;
    HANDLE file =
        CreateFileW(wide, rights, SHARE_ALL, NULL, OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS, NULL);
    if (file == INVALID_HANDLE_VALUE) return false;
    CloseHandle(file);
    return true;
}

void *sys_map(int fd, size_t size_bytes)
{
    HANDLE mapping =
        CreateFileMappingW((HANDLE)_get_osfhandle(fd), NULL, PAGE_READONLY, 0, 0, NULL);
    if (!mapping) return NULL;
    void *data = MapViewOfFile(mapping, FILE_MAP_READ, 0, 0, size_bytes);
    CloseHandle(mapping); /* the view keeps it alive */
    return data;
}

void sys_unmap(void *data, size_t size_bytes)
{
    (void)size_bytes;
    UnmapViewOfFile(data);
}

/* Large pages are for administrators only. */
void *sys_map_huge(size_t size_bytes)
{
    (void)size_bytes;
    return NULL;
}

void sys_unmap_huge(void *memory) { (void)memory; }

void sys_unload(void *data, size_t size_bytes)
{
    SYSTEM_INFO system;
    GetSystemInfo(&system);
    if (!sys_inner_pages(&data, &size_bytes, system.dwPageSize)) return;
    /* Unlocking pages that are not locked removes them from the working set. */
    (void)VirtualUnlock(data, size_bytes);
}

int sys_list(const char *folder, bool (*visit)(void *user, const char *name), void *user)
{
    wchar_t wide[SYS_PATH_BYTES];
    char name[SYS_PATH_BYTES];
    const int length = snprintf(name, sizeof name, "%s\\*", folder);
    if (length < 0 || (size_t)length >= sizeof name) {
        errno = ENAMETOOLONG;
        return -1;
    }
    if (!widen(name, wide)) return -1;
    WIN32_FIND_DATAW found;
    HANDLE search = FindFirstFileW(wide, &found);
    if (search == INVALID_HANDLE_VALUE) return fail_last();
    bool more = true;
    do {
        if (utf16_narrow(found.cFileName, name, sizeof name)) more = visit(user, name);
    } while (more && FindNextFileW(search, &found));
    const int result = more && GetLastError() != ERROR_NO_MORE_FILES ? fail_last() : 0;
    FindClose(search);
    return result;
}

/* ---- processes, threads, time ---------------------------------------------------------------- */

uint32_t sys_arbitrary(void)
{
    static volatile LONG counter;
    const uint64_t x = time_now_ns() * 0x9E3779B97F4A7C15u ^ (uint64_t)_getpid() << 32;
    return (uint32_t)(x >> 16) + (uint32_t)InterlockedIncrement(&counter);
}

long sys_n_processors(void)
{
    SYSTEM_INFO info;
    GetSystemInfo(&info);
    return (long)info.dwNumberOfProcessors;
}

int sys_condition_init(pthread_cond_t *c) { return pthread_cond_init(c, NULL); }

/* The system's clock, which may be set: winpthreads has no other one for conditions. */
const clockid_t sys_wait_clock = CLOCK_REALTIME;

int sys_thread_start(pthread_t *out_thread, void *(*body)(void *), void *argument)
{
    return pthread_create(out_thread, NULL, body, argument);
}

void sys_at_fork(void (*child)(void)) { (void)child; }

uint64_t time_now_ns(void)
{
    LARGE_INTEGER frequency, count;
    QueryPerformanceFrequency(&frequency);
    QueryPerformanceCounter(&count);
    uint64_t f = (uint64_t)frequency.QuadPart, c = (uint64_t)count.QuadPart;
    return c / f * 1000000000u + c % f * 1000000000u / f;
}
