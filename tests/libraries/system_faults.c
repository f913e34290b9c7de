/* SPDX-License-Identifier: Apache-2.0
 *
 * A library for LD_PRELOAD that fails the N-th operation of a kind:
 *
 *   files   on the files of one folder: open, read, write, sync, seek, map, lock, rename, close,
 *           fopen and making a folder. Files elsewhere, such as those of drivers, are left alone;
 *           removing files never fails. A close that fails has closed.
 *   starts  of threads and processes, and of the sockets to these, by clgraph or cltool; what
 *           drivers start is left alone
 *
 * CLG_SYSTEM_FAULTS: N, from 1. CLG_SYSTEM_FAULTS_KIND: the kind, default `files`.
 * CLG_SYSTEM_FAULTS_UNDER: the folder, absolute; relative paths belong to it.
 * CLG_SYSTEM_FAULTS_FIRED: a file that is made when the fault happens.
 * CLG_SYSTEM_FAULTS_DEATH: `kill`: the process is killed in place of the operation. `power`: the
 * same, and what was written in place (to files that need not be new) without a sync is lost.
 */
#define _GNU_SOURCE
#undef _FILE_OFFSET_BITS /* each function is defined under both of its names */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_DESCRIPTORS 4096

static atomic_long n_operations;
static atomic_bool is_ours[MAX_DESCRIPTORS];

/* Calls the function of this name that libc has. */
#define REAL(type, name) ((type)(uintptr_t)dlsym(RTLD_NEXT, name))

typedef int open_function(const char *path, int flags, mode_t mode);

static bool is_below(const char *path)
{
    const char *folder = getenv("CLG_SYSTEM_FAULTS_UNDER");
    if (!folder || !path) return false;
    return path[0] != '/' || strncmp(path, folder, strlen(folder)) == 0;
}

static bool is_ours_open(int fd) { return fd >= 0 && fd < MAX_DESCRIPTORS && is_ours[fd]; }

/* ---- deaths ---------------------------------------------------------------------------------- */

/* A range of a file that was written in place, and not synced since. */
typedef struct range {
    int fd;   /* as the program knows it */
    int copy; /* stays open; -1: the range is synced */
    off_t first, end;
} range;
#define MAX_RANGES 1000
static range ranges[MAX_RANGES];
static size_t n_ranges;
static pthread_mutex_t ranges_lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool is_in_place[MAX_DESCRIPTORS];

static void note_write(int fd, size_t n)
{
    const char *death = getenv("CLG_SYSTEM_FAULTS_DEATH");
    if (!death || strcmp(death, "power") != 0 || !is_in_place[fd]) return;
    const off_t first = REAL(off_t(*)(int, off_t, int), "lseek")(fd, 0, SEEK_CUR);
    (void)pthread_mutex_lock(&ranges_lock);
    if (n_ranges == MAX_RANGES) abort();
    ranges[n_ranges++] = (range){fd, dup(fd), first, first + (off_t)n};
    (void)pthread_mutex_unlock(&ranges_lock);
}

static void note_sync(int fd)
{
    (void)pthread_mutex_lock(&ranges_lock);
    for (size_t i = 0; i < n_ranges; i++) {
        if (ranges[i].fd == fd) ranges[i].copy = -1;
    }
    (void)pthread_mutex_unlock(&ranges_lock);
}

/* What was written to a descriptor stays unsynced when it is closed. */
static void note_close(int fd)
{
    (void)pthread_mutex_lock(&ranges_lock);
    for (size_t i = 0; i < n_ranges; i++) {
        if (ranges[i].fd == fd) ranges[i].fd = -1;
    }
    (void)pthread_mutex_unlock(&ranges_lock);
}

_Noreturn static void die(void)
{
    (void)pthread_mutex_lock(&ranges_lock);
    for (size_t i = 0; i < n_ranges; i++) {
        for (off_t at = ranges[i].first; ranges[i].copy >= 0 && at < ranges[i].end; at++)
            (void)!pwrite(ranges[i].copy, "", 1, at);
    }
    (void)raise(SIGKILL);
    abort();
}

/* ---- files ----------------------------------------------------------------------------------- */

/* Counts an operation; returns whether it is the one to fail, and sets errno. */
static bool fails_in(const char *kind, bool counts, int number)
{
    const char *wanted = getenv("CLG_SYSTEM_FAULTS_KIND");
    if (strcmp(wanted ? wanted : "files", kind) != 0) return false;
    const char *at = counts ? getenv("CLG_SYSTEM_FAULTS") : NULL;
    const char *fired = getenv("CLG_SYSTEM_FAULTS_FIRED");
    if (!at || atomic_fetch_add(&n_operations, 1) + 1 != atol(at)) return false;
    if (fired) {
        const int fd = REAL(open_function *, "open")(fired, O_CREAT | O_WRONLY, 0600);
        if (fd >= 0) (void)REAL(int (*)(int), "close")(fd);
    }
    if (getenv("CLG_SYSTEM_FAULTS_DEATH")) die();
    errno = number;
    return true;
}

static bool fails(bool counts, int number) { return fails_in("files", counts, number); }

static int note(int fd, bool ours)
{
    if (fd >= 0 && fd < MAX_DESCRIPTORS) is_ours[fd] = ours;
    return fd;
}

#define OPEN(name)                                                                                 \
    int name(const char *path, int flags, ...)                                                     \
    {                                                                                              \
        va_list args;                                                                              \
        va_start(args, flags);                                                                     \
        const mode_t mode = flags & O_CREAT ? (mode_t)va_arg(args, int) : 0;                       \
        va_end(args);                                                                              \
        const bool ours = is_below(path);                                                          \
        if (fails(ours, EMFILE)) return -1;                                                        \
        const int fd = note(REAL(open_function *, #name)(path, flags, mode), ours);                \
        if (fd >= 0 && fd < MAX_DESCRIPTORS)                                                       \
            is_in_place[fd] = ours && (flags & O_ACCMODE) == O_WRONLY && !(flags & O_EXCL);        \
        return fd;                                                                                 \
    }
OPEN(open)
OPEN(open64)

#define FOPEN(name)                                                                                \
    FILE *name(const char *path, const char *mode)                                                 \
    {                                                                                              \
        if (fails(is_below(path), EMFILE)) return NULL;                                            \
        return REAL(FILE * (*)(const char *, const char *), #name)(path, mode);                    \
    }
FOPEN(fopen)
FOPEN(fopen64)

ssize_t read(int fd, void *data, size_t n)
{
    if (fails(is_ours_open(fd), EIO)) return -1;
    return REAL(ssize_t(*)(int, void *, size_t), "read")(fd, data, n);
}

ssize_t write(int fd, const void *data, size_t n)
{
    if (fails(is_ours_open(fd), ENOSPC)) return -1;
    if (is_ours_open(fd)) note_write(fd, n);
    return REAL(ssize_t(*)(int, const void *, size_t), "write")(fd, data, n);
}

int fsync(int fd)
{
    if (fails(is_ours_open(fd), EIO)) return -1;
    if (is_ours_open(fd)) note_sync(fd);
    return REAL(int (*)(int), "fsync")(fd);
}

#define SEEK(name, type)                                                                           \
    type name(int fd, type offset, int from)                                                       \
    {                                                                                              \
        if (fails(is_ours_open(fd), EIO)) return -1;                                               \
        return REAL(type(*)(int, type, int), #name)(fd, offset, from);                             \
    }
SEEK(lseek, off_t)
SEEK(lseek64, off64_t)

#define MAP(name, type)                                                                            \
    void *name(void *at, size_t n, int protection, int flags, int fd, type offset)                 \
    {                                                                                              \
        if (fails(is_ours_open(fd), ENODEV)) return MAP_FAILED;                                    \
        return REAL(void *(*)(void *, size_t, int, int, int, type), #name)(at, n, protection,      \
                                                                           flags, fd, offset);     \
    }
MAP(mmap, off_t)
MAP(mmap64, off64_t)

int flock(int fd, int operation)
{
    if (fails(is_ours_open(fd), ENOLCK)) return -1;
    return REAL(int (*)(int, int), "flock")(fd, operation);
}

int rename(const char *from, const char *to)
{
    if (fails(is_below(to), EIO)) return -1;
    return REAL(int (*)(const char *, const char *), "rename")(from, to);
}

int mkdir(const char *path, mode_t mode)
{
    if (fails(is_below(path), ENOSPC)) return -1;
    return REAL(int (*)(const char *, mode_t), "mkdir")(path, mode);
}

int fcntl64(int fd, int command, ...)
{
    va_list args;
    va_start(args, command);
    void *argument = va_arg(args, void *);
    va_end(args);
    const bool copies = command == F_DUPFD_CLOEXEC && is_ours_open(fd);
    if (fails(copies, EMFILE)) return -1;
    const int result = REAL(int (*)(int, int, void *), "fcntl64")(fd, command, argument);
    return copies ? note(result, true) : result;
}

int close(int fd)
{
    const bool ours = is_ours_open(fd);
    (void)note(fd, false);
    if (ours) note_close(fd);
    const int result = REAL(int (*)(int), "close")(fd);
    return fails(ours, EIO) ? -1 : result;
}

/* ---- starts ---------------------------------------------------------------------------------- */

/* Returns whether an address is in clgraph's library or in a program of ours. */
static bool is_our_code(const void *at)
{
    Dl_info info;
    if (!dladdr(at, &info) || !info.dli_fname) return false;
    const char *slash = strrchr(info.dli_fname, '/'), *name = slash ? slash + 1 : info.dli_fname;
    return strncmp(name, "libclgraph", 10) == 0 || strcmp(name, "cltool") == 0;
}

#define CALLER __builtin_extract_return_addr(__builtin_return_address(0))

int pthread_create(pthread_t *out, const pthread_attr_t *attributes, void *(*body)(void *),
                   void *argument)
{
    typedef int create_function(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    if (fails_in("starts", is_our_code(CALLER), EAGAIN)) return EAGAIN;
    return REAL(create_function *, "pthread_create")(out, attributes, body, argument);
}

int posix_spawn(pid_t *out, const char *path, const posix_spawn_file_actions_t *actions,
                const posix_spawnattr_t *attributes, char *const arguments[],
                char *const environment[])
{
    typedef int spawn_function(pid_t *, const char *, const posix_spawn_file_actions_t *,
                               const posix_spawnattr_t *, char *const[], char *const[]);
    if (fails_in("starts", is_our_code(CALLER), EAGAIN)) return EAGAIN;
    return REAL(spawn_function *, "posix_spawn")(out, path, actions, attributes, arguments,
                                                 environment);
}

int socketpair(int domain, int type, int protocol, int ends[2])
{
    if (fails_in("starts", is_our_code(CALLER), EMFILE)) return -1;
    return REAL(int (*)(int, int, int, int *), "socketpair")(domain, type, protocol, ends);
}
