/* SPDX-License-Identifier: Apache-2.0
 *
 * POSIX and Windows behind one set of functions; every branch between the two that files need is here.
 */
#include "base/system.h"

#include "base/files.h"
#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

/* Below what read and write take in one call on any system. */
static unsigned limited(size_t n_bytes)
{
    return n_bytes < (1u << 30) ? (unsigned)n_bytes : 1u << 30;
}

/* Cuts a range down to the whole pages inside it; false when there is none. */
static bool inner_pages(void **data, size_t *size_bytes, size_t page_bytes)
{
    const size_t head = (page_bytes - (uintptr_t)*data % page_bytes) % page_bytes;
    if (*size_bytes < head + page_bytes) return false;
    *data = (char *)*data + head;
    *size_bytes = (*size_bytes - head) / page_bytes * page_bytes;
    return true;
}

#ifdef _WIN32
/* ---- Windows ---------------------------------------------------------------------------------- */

#include <direct.h>
#include <io.h>
#include <process.h>
#include <windows.h>

int64_t sys_read(int fd, void *data, size_t n_bytes) { return _read(fd, data, limited(n_bytes)); }

int64_t sys_write(int fd, const void *data, size_t n_bytes)
{
    return _write(fd, data, limited(n_bytes));
}

int sys_seek(int fd, uint64_t offset)
{
    return _lseeki64(fd, (int64_t)offset, SEEK_SET) < 0 ? -1 : 0;
}

int sys_close(int fd) { return _close(fd); }

long sys_process_id(void) { return _getpid(); }

/* Sets errno and returns false when the path is no UTF-8 or too long. */
static bool widen(const char *path, wchar_t wide[SYS_PATH_BYTES])
{
    if (MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path, -1, wide, SYS_PATH_BYTES) > 0)
        return true;
    errno = EINVAL;
    return false;
}

static bool narrow(const wchar_t *wide, char *path, int n_bytes)
{
    return WideCharToMultiByte(CP_UTF8, 0, wide, -1, path, n_bytes, NULL, NULL) > 0;
}

int sys_open_read(const char *path)
{
    wchar_t wide[SYS_PATH_BYTES];
    return widen(path, wide) ? _wopen(wide, _O_RDONLY | _O_BINARY | _O_NOINHERIT) : -1;
}

int sys_open_new(const char *path)
{
    wchar_t wide[SYS_PATH_BYTES];
    if (!widen(path, wide)) return -1;
    return _wopen(wide, _O_WRONLY | _O_CREAT | _O_EXCL | _O_BINARY | _O_NOINHERIT,
                  _S_IREAD | _S_IWRITE);
}

static int fill_info(int result, const struct _stat64 *st, sys_info *out_info)
{
    if (result != 0) return result;
    *out_info = (sys_info){.is_folder = (st->st_mode & _S_IFDIR) != 0,
                           .is_regular = (st->st_mode & _S_IFREG) != 0,
                           .size_bytes = (uint64_t)st->st_size,
                           .modified_ns = (int64_t)st->st_mtime * 1000000000,
                           .accessed_ns = (int64_t)st->st_atime * 1000000000};
    return 0;
}

int sys_stat(const char *path, sys_info *out_info)
{
    wchar_t wide[SYS_PATH_BYTES];
    struct _stat64 st;
    return widen(path, wide) ? fill_info(_wstat64(wide, &st), &st, out_info) : -1;
}

int sys_stat_open(int fd, sys_info *out_info)
{
    struct _stat64 st;
    return fill_info(_fstat64(fd, &st), &st, out_info);
}

int sys_rename(const char *from, const char *to)
{
    wchar_t wide_from[SYS_PATH_BYTES], wide_to[SYS_PATH_BYTES];
    if (!widen(from, wide_from) || !widen(to, wide_to)) return -1;
    if (MoveFileExW(wide_from, wide_to, MOVEFILE_REPLACE_EXISTING)) return 0;
    errno = EACCES;
    return -1;
}

int sys_remove(const char *path)
{
    wchar_t wide[SYS_PATH_BYTES];
    return widen(path, wide) ? _wunlink(wide) : -1;
}

int sys_make_folder(const char *path)
{
    wchar_t wide[SYS_PATH_BYTES];
    return widen(path, wide) ? _wmkdir(wide) : -1;
}

void *sys_map(int fd, size_t size_bytes)
{
    (void)size_bytes;
    HANDLE mapping =
        CreateFileMappingW((HANDLE)_get_osfhandle(fd), NULL, PAGE_READONLY, 0, 0, NULL);
    if (!mapping) return NULL;
    void *data = MapViewOfFile(mapping, FILE_MAP_READ, 0, 0, 0);
    CloseHandle(mapping); /* the view keeps it alive */
    return data;
}

void sys_unmap(void *data, size_t size_bytes)
{
    (void)size_bytes;
    UnmapViewOfFile(data);
}

void sys_unload(void *data, size_t size_bytes)
{
    SYSTEM_INFO system;
    GetSystemInfo(&system);
    if (!inner_pages(&data, &size_bytes, system.dwPageSize)) return;
    (void)VirtualUnlock(data,
                        size_bytes); /* of pages that are not locked: out of the working set */
}

bool sys_resolve(const char *path, char out_path[SYS_PATH_BYTES])
{
    wchar_t wide[SYS_PATH_BYTES];
    if (!widen(path, wide)) return false;
    HANDLE file = CreateFileW(wide, 0, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL,
                              OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS, NULL);
    errno = ENOENT;
    if (file == INVALID_HANDLE_VALUE) return false;
    DWORD length = GetFinalPathNameByHandleW(file, wide, SYS_PATH_BYTES, 0);
    CloseHandle(file);
    return length > 0 && length < SYS_PATH_BYTES && narrow(wide, out_path, SYS_PATH_BYTES);
}

/* Calls visit(user, name) for each entry. */
clg_status sys_list(const char *folder, clg_status (*visit)(void *user, const char *name),
                    void *user)
{
    wchar_t wide[SYS_PATH_BYTES];
    char name[SYS_PATH_BYTES];
    int length = snprintf(name, sizeof name, "%s\\*", folder);
    if (length < 0 || (size_t)length >= sizeof name || !widen(name, wide))
        return sys_error("listed", folder, EINVAL);
    WIN32_FIND_DATAW found;
    HANDLE search = FindFirstFileW(wide, &found);
    if (search == INVALID_HANDLE_VALUE) return sys_error("listed", folder, ENOENT);
    clg_status status = CLG_OK;
    do {
        if (narrow(found.cFileName, name, sizeof name)) status = visit(user, name);
    } while (status == CLG_OK && FindNextFileW(search, &found));
    FindClose(search);
    return status;
}

clg_status sys_cache_base(char **out_path)
{
    const wchar_t *wide = _wgetenv(L"LOCALAPPDATA");
    char base[SYS_PATH_BYTES];
    if (!wide || !narrow(wide, base, sizeof base)) {
        return error_set(CLG_ERROR_IO, "there is no cache folder: LOCALAPPDATA is not set");
    }
    *out_path = memory_strdup(base);
    return *out_path ? CLG_OK : CLG_ERROR_OUT_OF_HOST_MEMORY;
}

uint64_t time_now_ns(void)
{
    LARGE_INTEGER frequency, count;
    QueryPerformanceFrequency(&frequency);
    QueryPerformanceCounter(&count);
    uint64_t f = (uint64_t)frequency.QuadPart, c = (uint64_t)count.QuadPart;
    return c / f * 1000000000u + c % f * 1000000000u / f;
}

bool sys_is_separator(char c) { return c == '/' || c == '\\'; }

#else
/* ---- POSIX ------------------------------------------------------------------------------------ */

#include <dirent.h>
#include <limits.h>
#include <sys/mman.h>
#include <unistd.h>

int64_t sys_read(int fd, void *data, size_t n_bytes) { return read(fd, data, limited(n_bytes)); }

int64_t sys_write(int fd, const void *data, size_t n_bytes)
{
    return write(fd, data, limited(n_bytes));
}

int sys_seek(int fd, uint64_t offset) { return lseek(fd, (off_t)offset, SEEK_SET) < 0 ? -1 : 0; }

int sys_close(int fd) { return close(fd); }

long sys_process_id(void) { return (long)getpid(); }

int sys_open_read(const char *path) { return open(path, O_RDONLY | O_CLOEXEC); }

int sys_open_new(const char *path)
{
    return open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
}

#ifdef __APPLE__
#define st_mtim st_mtimespec
#define st_atim st_atimespec
#endif

static int fill_info(int result, const struct stat *st, sys_info *out_info)
{
    if (result != 0) return result;
    *out_info =
        (sys_info){.is_folder = S_ISDIR(st->st_mode),
                   .is_regular = S_ISREG(st->st_mode),
                   .size_bytes = (uint64_t)st->st_size,
                   .modified_ns = (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec,
                   .accessed_ns = (int64_t)st->st_atim.tv_sec * 1000000000 + st->st_atim.tv_nsec};
    return 0;
}

int sys_stat(const char *path, sys_info *out_info)
{
    struct stat st;
    return fill_info(stat(path, &st), &st, out_info);
}

int sys_stat_open(int fd, sys_info *out_info)
{
    struct stat st;
    return fill_info(fstat(fd, &st), &st, out_info);
}

int sys_rename(const char *from, const char *to) { return rename(from, to); }

int sys_remove(const char *path) { return unlink(path); }

int sys_make_folder(const char *path) { return mkdir(path, 0700); }

void *sys_map(int fd, size_t size_bytes)
{
    void *data = mmap(NULL, size_bytes, PROT_READ, MAP_PRIVATE, fd, 0);
    return data == MAP_FAILED ? NULL : data;
}

void sys_unmap(void *data, size_t size_bytes) { (void)munmap(data, size_bytes); }

void sys_unload(void *data, size_t size_bytes)
{
    const long page_bytes = sysconf(_SC_PAGESIZE);
    if (page_bytes <= 0 || !inner_pages(&data, &size_bytes, (size_t)page_bytes)) return;
    (void)madvise(data, size_bytes, MADV_DONTNEED);
}

bool sys_resolve(const char *path, char out_path[SYS_PATH_BYTES])
{
    _Static_assert(SYS_PATH_BYTES >= PATH_MAX, "realpath writes up to PATH_MAX bytes");
    return realpath(path, out_path) != NULL;
}

/* Calls visit(user, name) for each entry. */
clg_status sys_list(const char *folder, clg_status (*visit)(void *user, const char *name),
                    void *user)
{
    DIR *dir = opendir(folder);
    if (!dir) return sys_error("listed", folder, errno);
    clg_status status = CLG_OK;
    for (const struct dirent *entry; status == CLG_OK && (entry = readdir(dir));)
        status = visit(user, entry->d_name);
    (void)closedir(dir);
    return status;
}

clg_status sys_cache_base(char **out_path)
{
    const char *base = env_get("XDG_CACHE_HOME");
    if (base && base[0] == '/') { /* a relative one is to be ignored, says the specification */
        *out_path = memory_strdup(base);
        return *out_path ? CLG_OK : CLG_ERROR_OUT_OF_HOST_MEMORY;
    }
    const char *home = env_get("HOME");
    if (home) return file_join(home, ".cache", out_path);
    return error_set(CLG_ERROR_IO,
                     "there is no cache folder: neither XDG_CACHE_HOME nor HOME is set");
}

uint64_t time_now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

bool sys_is_separator(char c) { return c == '/'; }

#endif
