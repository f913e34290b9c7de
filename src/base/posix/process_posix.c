/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs child processes by posix_spawn. The channel is a socket pair, since writing to a pipe whose
 * reader has exited would raise SIGPIPE in the host program.
 */
#include "base/cancel.h"
#include "base/clock.h"
#include "base/process.h"

#include "base/files.h"
#include "base/memory.h"
#include "base/system.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/auxv.h>
#endif

#define SLICE_MS 50
#define NS_PER_MS 1000000u
/* Milliseconds that a child has to end after its channel was closed. */
#define END_MS 500

#if defined(__GLIBC__) && defined(__GLIBC_PREREQ)
#if __GLIBC_PREREQ(2, 34)
#define HAS_CLOSE_FROM 1
#endif
#endif

#ifndef __GLIBC__
extern char **environ;
#endif

struct process {
    pid_t pid;
    int channel;
};

const char process_suffix[] = "";

bool process_is_privileged(void)
{
#ifdef __linux__
    return getauxval(AT_SECURE) != 0;
#else
    return geteuid() != getuid() || getegid() != getgid();
#endif
}

static int set_actions(posix_spawn_file_actions_t *actions, int channel)
{
    int code = posix_spawn_file_actions_adddup2(actions, channel, STDIN_FILENO);
    for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO && code == 0; fd++)
        code = posix_spawn_file_actions_addopen(actions, fd, "/dev/null", O_WRONLY, 0);
#ifdef HAS_CLOSE_FROM
    if (code == 0) code = posix_spawn_file_actions_addclosefrom_np(actions, STDERR_FILENO + 1);
#endif
    return code;
}

/* Sets the attributes of the child: default signal handlers, no blocked signals, a new process
 * group. */
static int set_attributes(posix_spawnattr_t *attributes)
{
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    int code = posix_spawnattr_setsigmask(attributes, &none);
    if (code == 0) code = posix_spawnattr_setsigdefault(attributes, &all);
    if (code == 0) code = posix_spawnattr_setpgroup(attributes, 0);
    if (code == 0)
        code = posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                                        POSIX_SPAWN_SETPGROUP);
    return code;
}

/* Returns the child's environment in a new block (release with memory_free): ours, with settings of
 * glibc's malloc unless GLIBC_TUNABLES is set. Compilers allocate 100 MB and more, and a tenth of
 * their time is page faults of small pages: malloc takes huge pages, 16 MiB at a time and in one
 * arena, and returns none. NULL, for ours as it is, without memory or glibc. */
static char **environment_of_child(void)
{
#ifdef __GLIBC__
    static char tunables[] =
        "GLIBC_TUNABLES=glibc.malloc.hugetlb=1:glibc.malloc.arena_max=1" /* from glibc 2.35 on */
        ":glibc.malloc.top_pad=16777216:glibc.malloc.trim_threshold=1073741824"
        ":glibc.malloc.mmap_threshold=33554432";
    size_t n = 0;
    if (!environ || sys_env("GLIBC_TUNABLES")) return NULL;
    while (environ[n]) n++;
    char **all = memory_alloc((n + 2) * sizeof *all);
    if (!all) return NULL;
    all[0] = tunables;
    memcpy(all + 1, environ, (n + 1) * sizeof *all); /* with its NULL */
    return all;
#else
    return NULL;
#endif
}

static int spawn(const char *path, char *const *arguments, int channel, pid_t *out_pid)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int code = posix_spawn_file_actions_init(&actions);
    if (code != 0) return code;
    code = posix_spawnattr_init(&attributes);
    if (code == 0) {
        code = set_actions(&actions, channel);
        if (code == 0) code = set_attributes(&attributes);
        char **all = environment_of_child();
        if (code == 0)
            code =
                posix_spawn(out_pid, path, &actions, &attributes, arguments, all ? all : environ);
        memory_free(all);
        (void)posix_spawnattr_destroy(&attributes);
    }
    (void)posix_spawn_file_actions_destroy(&actions);
    return code;
}

static int open_channel(int ends[2])
{
#ifdef SOCK_CLOEXEC
    return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends);
#else
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return -1;
    for (int i = 0; i < 2; i++) (void)fcntl(ends[i], F_SETFD, FD_CLOEXEC);
    return 0;
#endif
}

clg_status process_start(const char *path, process **out_process)
{
    int ends[2];
    const char *arguments[] = {path, NULL};
    *out_process = NULL;
    process *p = memory_zalloc(1, sizeof *p);
    if (!p) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    if (open_channel(ends) != 0) {
        memory_free(p);
        return error_path("reached", path, errno);
    }
    const int code = spawn(path, (char *const *)(uintptr_t)arguments, ends[1], &p->pid);
    (void)close(ends[1]);
    if (code != 0) {
        (void)close(ends[0]);
        memory_free(p);
        return error_path("started", path, code);
    }
#ifdef SO_NOSIGPIPE
    (void)setsockopt(ends[0], SOL_SOCKET, SO_NOSIGPIPE, &(int){1}, sizeof(int));
#endif
    p->channel = ends[0];
    *out_process = p;
    return CLG_OK;
}

#ifndef MSG_NOSIGNAL
#define MSG_NOSIGNAL 0
#endif

static clg_status gone(void)
{
    return error_set(CLG_ERROR_IO, "the child process ended before it answered");
}

/* Waits until the channel is ready for `what` (POLLIN or POLLOUT). Polls in short slices, between
 * which keep_waiting may cancel. */
static clg_status wait_for(const process *p, short what, uint64_t until_ns,
                           process_keep_waiting keep_waiting, void *user)
{
    for (;;) {
        struct pollfd one = {.fd = p->channel, .events = what};
        const int n = poll(&one, 1, SLICE_MS);
        if (n > 0) return CLG_OK;
        if (n < 0 && errno != EINTR) return gone();
        CLG_TRY(cancel_check("waiting for a child process"));
        if (keep_waiting && !keep_waiting(user))
            return error_set(CLG_ERROR_CANCELLED, "waiting for a child process was cancelled");
        if (time_now_ns() >= until_ns)
            return error_set(CLG_ERROR_IO, "the child process did not answer in time");
    }
}

static bool is_interruption(int number)
{
    return number == EINTR || number == EAGAIN || number == EWOULDBLOCK;
}

clg_status process_send(process *p, const void *data, size_t size_bytes, uint64_t until_ns,
                        process_keep_waiting keep_waiting, void *user)
{
    const char *at = data;
    while (size_bytes > 0) {
        CLG_TRY(wait_for(p, POLLOUT, until_ns, keep_waiting, user));
        const ssize_t n = send(p->channel, at, size_bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && is_interruption(errno)) continue;
        if (n <= 0) return gone();
        at += n;
        size_bytes -= (size_t)n;
    }
    return CLG_OK;
}

clg_status process_receive(process *p, void *data, size_t size_bytes, uint64_t until_ns,
                           process_keep_waiting keep_waiting, void *user)
{
    char *at = data;
    while (size_bytes > 0) {
        CLG_TRY(wait_for(p, POLLIN, until_ns, keep_waiting, user));
        const ssize_t n = recv(p->channel, at, size_bytes, MSG_DONTWAIT);
        if (n < 0 && is_interruption(errno)) continue;
        if (n <= 0) return gone();
        at += n;
        size_bytes -= (size_t)n;
    }
    return CLG_OK;
}

/* Returns whether the child has exited; also true if waitpid fails, because the host program has
 * waited for it or ignores SIGCHLD. */
static bool has_ended(pid_t pid)
{
    const pid_t got = waitpid(pid, NULL, WNOHANG);
    return got == pid || (got < 0 && errno == ECHILD);
}

void process_kill(process *p)
{
    if (p) (void)kill(p->pid, SIGKILL);
    process_end(p);
}

void process_end(process *p)
{
    if (!p) return;
    (void)close(p->channel);
    bool ended = has_ended(p->pid);
    for (int ms = 0; !ended && ms < END_MS; ms++) {
        (void)nanosleep(&(struct timespec){.tv_nsec = NS_PER_MS}, NULL);
        ended = has_ended(p->pid);
    }
    if (!ended) {
        (void)kill(p->pid, SIGKILL);
        while (waitpid(p->pid, NULL, 0) < 0 && errno == EINTR) continue;
    }
    memory_free(p);
}
