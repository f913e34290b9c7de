/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements base/system.h and base/clock.h on Linux and other POSIX systems; system_windows.c does
 * so on Windows. The build uses one of them.
 */
#include "base/clock.h"
#include "base/system.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

const char sys_separator = '/';

int64_t sys_read(int fd, void *data, size_t n_bytes)
{
    return read(fd, data, sys_io_bytes(n_bytes));
}

int64_t sys_write(int fd, const void *data, size_t n_bytes)
{
    return write(fd, data, sys_io_bytes(n_bytes));
}

int sys_seek(int fd, uint64_t offset) { return lseek(fd, (off_t)offset, SEEK_SET) < 0 ? -1 : 0; }

int sys_close(int fd) { return close(fd); }

long sys_process_id(void) { return (long)getpid(); }

long sys_n_processors(void) { return sysconf(_SC_NPROCESSORS_ONLN); }

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

int sys_touch(const char *path) { return utimensat(AT_FDCWD, path, NULL, 0); }

bool sys_may(const char *path, bool reading, bool writing)
{
    return access(path, (reading ? R_OK : 0) | (writing ? W_OK : 0)) == 0;
}

void *sys_map(int fd, size_t size_bytes)
{
    void *data = mmap(NULL, size_bytes, PROT_READ, MAP_PRIVATE, fd, 0);
    return data == MAP_FAILED ? NULL : data;
}

void sys_unmap(void *data, size_t size_bytes) { (void)munmap(data, size_bytes); }

void sys_unload(void *data, size_t size_bytes)
{
    const long page_bytes = sysconf(_SC_PAGESIZE);
    if (page_bytes <= 0 || !sys_inner_pages(&data, &size_bytes, (size_t)page_bytes)) return;
    (void)madvise(data, size_bytes, MADV_DONTNEED);
}

bool sys_resolve(const char *path, char out_path[SYS_PATH_BYTES])
{
    _Static_assert(SYS_PATH_BYTES >= PATH_MAX, "realpath writes up to PATH_MAX bytes");
    return realpath(path, out_path) != NULL;
}

int sys_list(const char *folder, bool (*visit)(void *user, const char *name), void *user)
{
    DIR *dir = opendir(folder);
    if (!dir) return -1;
    const struct dirent *entry;
    bool more = true;
    while (more && (errno = 0, entry = readdir(dir))) more = visit(user, entry->d_name);
    const int number = more ? errno : 0;
    (void)closedir(dir);
    errno = number;
    return number == 0 ? 0 : -1;
}

int sys_thread_start(pthread_t *out_thread, void *(*body)(void *), void *argument)
{
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    const int failed = pthread_create(out_thread, NULL, body, argument);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed;
}

const char sys_cache_variables[] = "neither XDG_CACHE_HOME nor HOME is set";

const char *sys_cache_base(const char **out_subfolder)
{
    *out_subfolder = NULL;
    const char *base = sys_env("XDG_CACHE_HOME");
    if (base && base[0] == '/') return base; /* the specification says to ignore a relative one */
    *out_subfolder = ".cache";
    const char *home = sys_env("HOME");
    return home && home[0] != '\0' ? home : NULL;
}

uint64_t time_now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

bool sys_is_separator(char c) { return c == '/'; }

size_t sys_root_bytes(const char *path) { return path[0] == '/' ? 1 : 0; }

const char *sys_env(const char *name) { return getenv(name); }

bool sys_strerror(int number, char *buffer, size_t n_bytes)
{
    return strerror_r(number, buffer, n_bytes) == 0;
}
