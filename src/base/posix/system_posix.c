/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements base/system.h and base/clock.h on Linux and other POSIX systems; system_windows.c does
 * so on Windows. The build uses one of them.
 */
#include "base/clock.h"
#include "base/memory.h"
#include "base/system.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <linux/magic.h>
#include <sys/vfs.h>
#endif

const char sys_separator = '/';

int64_t sys_read(int fd, void *data, size_t n_bytes)
{
    return read(fd, data, sys_io_bytes(n_bytes));
}

int64_t sys_write(int fd, const void *data, size_t n_bytes)
{
    return write(fd, data, sys_io_bytes(n_bytes));
}

int sys_flush(int fd) { return fsync(fd) == 0 || errno == EINVAL || errno == ENOTSUP ? 0 : -1; }

int sys_seek(int fd, uint64_t offset) { return lseek(fd, (off_t)offset, SEEK_SET) < 0 ? -1 : 0; }

int sys_close(int fd) { return close(fd); }

long sys_n_processors(void) { return sysconf(_SC_NPROCESSORS_ONLN); }

int sys_open_read(const char *path) { return open(path, O_RDONLY | O_CLOEXEC); }

int sys_open_read_now(const char *path)
{
    return open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

int sys_open_new(const char *path)
{
    return open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
}

int sys_open_shared(const char *path)
{
    return open(path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666);
}

int sys_open_special(const char *path) { return open(path, O_WRONLY | O_CLOEXEC); }

int sys_open_spool(void)
{
    enum { TRIES = 16 };
    const char *folder = sys_env("TMPDIR");
    char path[SYS_PATH_BYTES];
    int fd = -1;
    if (!folder || folder[0] == '\0') folder = "/tmp";
    for (int i = 0; i < TRIES && fd < 0; i++) {
        const int n = snprintf(path, sizeof path, "%s/clgraph-%08x", folder, sys_arbitrary());
        if (n < 0 || (size_t)n >= sizeof path) {
            errno = ENAMETOOLONG;
            return -1;
        }
        fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd < 0 && errno != EEXIST) return -1;
    }
    if (fd >= 0) (void)unlink(path);
    return fd;
}

int sys_open_locked(const char *path)
{
    return open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
}

sys_lock_result sys_lock(int fd)
{
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) return SYS_LOCKED;
    return errno == EWOULDBLOCK ? SYS_LOCK_HELD : SYS_LOCK_NONE;
}

bool sys_lock_is_seen_by_all(int fd)
{
#ifdef __linux__
    /* Others (NFS, SMB, FUSE, 9P, ...) may belong to several machines whose locks are separate. */
    static const unsigned local[] = {
        EXT4_SUPER_MAGIC, TMPFS_MAGIC, OVERLAYFS_SUPER_MAGIC, BTRFS_SUPER_MAGIC, XFS_SUPER_MAGIC,
        F2FS_SUPER_MAGIC, RAMFS_MAGIC, 0x2FC12FC1 /* ZFS */,  0xCA451A4E /* bcachefs */};
    struct statfs info;
    if (fstatfs(fd, &info) != 0) return false;
    for (size_t i = 0; i < sizeof local / sizeof local[0]; i++) {
        if ((unsigned)info.f_type == local[i]) return true;
    }
#else
    (void)fd;
#endif
    return false;
}

int sys_close_keep_lock(int fd, int *out_kept)
{
    *out_kept = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (*out_kept >= 0) return close(fd);
    const int number = errno;
    (void)close(fd);
    errno = number;
    return -1;
}

bool sys_is_named(int fd, const char *path)
{
    struct stat opened, named;
    return fstat(fd, &opened) == 0 && lstat(path, &named) == 0 && opened.st_dev == named.st_dev &&
           opened.st_ino == named.st_ino;
}

bool sys_read_link(const char *path, char out_path[SYS_PATH_BYTES])
{
    const ssize_t n = readlink(path, out_path, SYS_PATH_BYTES);
    if (n < 0 || n == SYS_PATH_BYTES) return false;
    out_path[n] = '\0';
    return true;
}

uint32_t sys_arbitrary(void)
{
    static atomic_uint counter;
    const uint64_t x = time_now_ns() * 0x9E3779B97F4A7C15u ^ (uint64_t)getpid() << 32;
    return (uint32_t)(x >> 16) + atomic_fetch_add(&counter, 1);
}

int64_t sys_write_quietly(int fd, const void *data, size_t n_bytes)
{
    sigset_t pipes, before, pending;
    int signal_number, number;
    (void)sigemptyset(&pipes);
    (void)sigaddset(&pipes, SIGPIPE);
    (void)sigemptyset(&pending);
    (void)sigpending(&pending);
    const bool was_pending = sigismember(&pending, SIGPIPE) == 1;
    (void)pthread_sigmask(SIG_BLOCK, &pipes, &before);
    const int64_t n = sys_write(fd, data, n_bytes);
    number = errno;
    if (n < 0 && number == EPIPE && !was_pending) {
        (void)sigemptyset(&pending);
        (void)sigpending(&pending);
        if (sigismember(&pending, SIGPIPE) == 1) (void)sigwait(&pipes, &signal_number);
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = number;
    return n;
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

bool sys_is_private(const char *folder, const char **out_words)
{
    struct stat st;
    *out_words = NULL;
    if (stat(folder, &st) != 0) return true;
    if (st.st_uid != geteuid() && st.st_uid != 0) *out_words = "belongs to another user";
    /* A group of the owner's number is the owner's own, where each user has one (umask 002). */
    if ((st.st_mode & S_IWGRP) && st.st_gid != st.st_uid)
        *out_words = "may be written by a group of users";
    if (st.st_mode & S_IWOTH) *out_words = "may be written by all users";
    return !*out_words;
}

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

#ifdef MADV_HUGEPAGE

#define HUGE_PAGE_BYTES ((size_t)2 << 20)

/* The page before the memory has the size of the whole mapping. */
void *sys_map_huge(size_t size_bytes)
{
    const long page = sysconf(_SC_PAGESIZE);
    if (page <= 0 || (size_t)page > HUGE_PAGE_BYTES || size_bytes > SIZE_MAX / 2) return NULL;
    const size_t page_bytes = (size_t)page, used = memory_align_up(size_bytes, page_bytes);
    const size_t mapped = page_bytes + used + HUGE_PAGE_BYTES;
    char *from = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (from == MAP_FAILED) return NULL;
    char *memory =
        from + (memory_align_up((uintptr_t)from + page_bytes, HUGE_PAGE_BYTES) - (uintptr_t)from);
    char *head = memory - page_bytes, *end = memory + used;
    if (head > from) (void)munmap(from, (size_t)(head - from));
    if (end < from + mapped) (void)munmap(end, (size_t)(from + mapped - end));
    *(size_t *)(void *)head = page_bytes + used;
    (void)madvise(memory, used, MADV_HUGEPAGE); /* in vain where an administrator forbids it */
    return memory;
}

void sys_unmap_huge(void *memory)
{
    char *head = (char *)memory - sysconf(_SC_PAGESIZE);
    (void)munmap(head, *(size_t *)(void *)head);
}

#else

void *sys_map_huge(size_t size_bytes)
{
    (void)size_bytes;
    return NULL;
}

void sys_unmap_huge(void *memory) { (void)memory; }

#endif

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

#ifdef __APPLE__
const clockid_t sys_wait_clock = CLOCK_REALTIME;
#else
const clockid_t sys_wait_clock = CLOCK_MONOTONIC;
#endif

int sys_condition_init(pthread_cond_t *c)
{
    pthread_condattr_t attributes;
    int failed = pthread_condattr_init(&attributes);
    if (failed) return failed;
#ifndef __APPLE__
    failed = pthread_condattr_setclock(&attributes, sys_wait_clock);
#endif
    if (!failed) failed = pthread_cond_init(c, &attributes);
    (void)pthread_condattr_destroy(&attributes);
    return failed;
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

void sys_at_fork(void (*child)(void)) { (void)pthread_atfork(NULL, NULL, child); }

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
