/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs the worker as a fork of its supervisor, which has opened no driver and has one thread.
 */
#include "helper/child.h"

#include "helper/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#ifdef __linux__
#include <sys/prctl.h>
#endif

/* Milliseconds that a worker has to exit after it closed its channel. */
#define LINGER_MS 2000
/* malloc is set to map blocks of at least this size as fresh pages, which read as zeros;
 * helper_execute.c relies on that. */
#define MMAP_BYTES (1 << 20)

bool child_is_this(int n_arguments, char *const *arguments)
{
    (void)n_arguments, (void)arguments;
    return false; /* a forked worker continues in child_start, not in main */
}

/* Makes this process the first to be killed when memory runs out, and disables core dumps. */
static void lower_claims(void)
{
    const struct rlimit none = {0, 0};
    (void)setrlimit(RLIMIT_CORE, &none);
    const int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd >= 0) {
        (void)!write(fd, "1000", 4);
        (void)close(fd);
    }
}

_Noreturn static void become_worker(int channel, int output)
{
#ifdef __linux__
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
#ifdef __GLIBC__
    (void)mallopt(M_MMAP_THRESHOLD, MMAP_BYTES);
#endif
    (void)signal(SIGPIPE, SIG_DFL);
    (void)setpgid(0, 0);
    lower_claims();
    const int nothing = open("/dev/null", O_RDONLY);
    if (nothing < 0 || dup2(nothing, STDIN_FILENO) < 0 || dup2(output, STDOUT_FILENO) < 0 ||
        dup2(output, STDERR_FILENO) < 0)
        _exit(1);
    (void)close(nothing);
    (void)close(output);
    _exit(worker_run(channel));
}

bool child_start(child *c)
{
    int ends[2], output[2];
    *c = (child){.is_running = false};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return false;
    if (pipe(output) != 0) {
        (void)close(ends[0]);
        (void)close(ends[1]);
        return false;
    }
    for (int i = 0; i < 2; i++) (void)fcntl(output[i], F_SETFD, FD_CLOEXEC);
    (void)fcntl(output[0], F_SETFL, O_NONBLOCK);
    const pid_t pid = fork();
    if (pid == 0) {
        (void)close(ends[0]);
        (void)close(output[0]);
        become_worker(ends[1], output[1]);
    }
    (void)close(ends[1]);
    (void)close(output[1]);
    *c = (child){.is_running = pid > 0, .process = pid, .channel = ends[0], .output = output[0]};
    if (pid > 0) return true;
    (void)close(ends[0]);
    (void)close(output[0]);
    return false;
}

void child_read_output(child *c)
{
    char piece[512];
    for (;;) {
        const ssize_t n = read((int)c->output, piece, sizeof piece);
        if (n <= 0) return;
        child_keep_output(c, piece, (size_t)n);
    }
}

/* Reads /proc/PID/`file`, a line of numbers; returns the second one, or 0 if there is none. */
static uint64_t second_number(const child *c, const char *file)
{
    char path[64], line[128] = "";
    (void)snprintf(path, sizeof path, "/proc/%ld/%s", (long)c->process, file);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return 0;
    const ssize_t n = read(fd, line, sizeof line - 1);
    (void)close(fd);
    const char *second = n > 0 ? strchr(line, ' ') : NULL;
    return second ? strtoull(second, NULL, 10) : 0;
}

uint64_t child_resident_bytes(const child *c)
{
    return second_number(c, "statm") * (uint64_t)sysconf(_SC_PAGESIZE);
}

uint64_t child_waited_ns(const child *c) { return second_number(c, "schedstat"); }

static void forget(child *c)
{
    child_read_output(c);
    (void)close(c->channel);
    (void)close((int)c->output);
    c->is_running = false;
}

/* Kills the process group, which contains all processes that the worker started. */
void child_kill(child *c)
{
    if (!c->is_running) return;
    const pid_t pid = (pid_t)c->process;
    (void)kill(-pid, SIGKILL);
    (void)kill(pid, SIGKILL);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) continue;
    forget(c);
}

static bool is_fault(int signal_number)
{
    switch (signal_number) {
    case SIGSEGV:
    case SIGABRT:
    case SIGBUS:
    case SIGILL:
    case SIGFPE:
    case SIGTRAP:
    case SIGSYS: return true;
    default: return false;
    }
}

/* Counts an exit as a crash: a driver that calls exit() ends its process as abort() does. */
helper_outcome child_reap(child *c, int32_t *out_signal)
{
    const pid_t pid = (pid_t)c->process;
    int status = 0;
    pid_t got = 0;
    *out_signal = 0;
    for (int ms = 0; ms < LINGER_MS && got == 0; ms++) {
        got = waitpid(pid, &status, WNOHANG);
        if (got < 0 && errno == EINTR) got = 0;
        if (got == 0) (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    if (got <= 0) {
        child_kill(c);
        return HELPER_KILLED;
    }
    (void)kill(-pid, SIGKILL);
    forget(c);
    *out_signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    return WIFEXITED(status) || is_fault(*out_signal) ? HELPER_CRASHED : HELPER_KILLED;
}
