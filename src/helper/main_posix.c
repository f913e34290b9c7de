/* SPDX-License-Identifier: Apache-2.0
 *
 * clgraph-compile: the compile helper. Drivers' compilers die on programs that they do not like, and take their process along;
 * here they do it in a worker process, and the library that asked learns how it ended. Started by libclgraph alone, with the
 * channel as standard input.
 *
 * This is the supervisor. It opens no driver: it passes messages between the library and a worker, which it forks, watches for
 * time and memory, and forks anew after a death. It ends when the library closes the channel, or after a while without work. That
 * it waits for the worker, not the library, is on purpose: the host program may ignore SIGCHLD or wait for any child.
 */
#include "base/files.h"
#include "base/memory.h"
#include "helper/worker.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#ifdef __linux__
#include <sys/prctl.h>
#endif

#define PARENT STDIN_FILENO
#define IDLE_MS 10000
#define SLICE_MS 100
#define NS_PER_S UINT64_C(1000000000)
/* How long a worker that has closed its channel may take to end. */
#define LINGER_MS 2000
#define OUTPUT_BYTES 2048
/* From here on large blocks of malloc are fresh pages. */
#define MMAP_BYTES (1 << 20)

typedef struct worker {
    pid_t pid; /* 0: there is none */
    int channel, output;
    char last[OUTPUT_BYTES]; /* the end of what it printed, not terminated */
    size_t n_last;
} worker;

/* ---- starting a worker --------------------------------------------------------------------------------- */

static void close_from(int first)
{
#ifdef SYS_close_range
    if (syscall(SYS_close_range, (unsigned)first, ~0u, 0u) == 0) return;
#endif
    const long limit = sysconf(_SC_OPEN_MAX);
    for (int fd = first; fd < (limit > 0 && limit < 65536 ? limit : 65536); fd++) (void)close(fd);
}

/* Of all processes this one is to go when memory is short; no core files. */
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

_Noreturn static void become_worker(int channel, int output, const helper_hello *hello)
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
    _exit(worker_run(channel, hello));
}

static bool start(worker *w, const helper_hello *hello)
{
    int ends[2], output[2];
    *w = (worker){.pid = 0};
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
        become_worker(ends[1], output[1], hello);
    }
    (void)close(ends[1]);
    (void)close(output[1]);
    w->channel = ends[0];
    w->output = output[0];
    w->pid = pid > 0 ? pid : 0;
    if (pid > 0) return true;
    (void)close(ends[0]);
    (void)close(output[0]);
    return false;
}

/* ---- its end ------------------------------------------------------------------------------------------- */

static void read_output(worker *w)
{
    char piece[512];
    for (;;) {
        const ssize_t n = read(w->output, piece, sizeof piece);
        if (n <= 0) return;
        const size_t keep = sizeof w->last - (size_t)n;
        if (w->n_last > keep) {
            memmove(w->last, w->last + (w->n_last - keep), keep);
            w->n_last = keep;
        }
        memcpy(w->last + w->n_last, piece, (size_t)n);
        w->n_last += (size_t)n;
    }
}

static void forget(worker *w)
{
    read_output(w);
    (void)close(w->channel);
    (void)close(w->output);
    w->pid = 0;
}

/* The compilers and linkers that a driver starts are of the worker's process group. */
static void kill_worker(worker *w)
{
    if (!w->pid) return;
    (void)kill(-w->pid, SIGKILL);
    (void)kill(w->pid, SIGKILL);
    while (waitpid(w->pid, NULL, 0) < 0 && errno == EINTR) continue;
    forget(w);
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

/* What a worker died of that has closed its channel. A driver that calls exit() has ended its program as surely as by abort(). */
static void reap(worker *w, helper_reply *out)
{
    int status = 0;
    pid_t got = 0;
    for (int ms = 0; ms < LINGER_MS && got == 0; ms++) {
        got = waitpid(w->pid, &status, WNOHANG);
        if (got < 0 && errno == EINTR) got = 0;
        if (got == 0) (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    if (got <= 0) {
        out->outcome = HELPER_KILLED;
        kill_worker(w);
        return;
    }
    out->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    out->outcome = WIFEXITED(status) || is_fault(out->signal) ? HELPER_CRASHED : HELPER_KILLED;
    (void)kill(-w->pid, SIGKILL);
    forget(w);
}

/* The last words of the driver, as one line of printable text. */
static char *last_words(const worker *w)
{
    char *words = memory_strndup(w->last, w->n_last);
    size_t n = 0;
    for (size_t i = 0; words && i < w->n_last; i++) {
        const unsigned char c = (unsigned char)w->last[i];
        const bool is_blank = isspace(c) || c == '\0';
        if (is_blank && (n == 0 || words[n - 1] == ' ')) continue;
        words[n++] = is_blank ? ' ' : isprint(c) ? (char)c : '?';
    }
    while (n > 0 && words[n - 1] == ' ') n--;
    if (words) words[n] = '\0';
    return words;
}

/* ---- watching ------------------------------------------------------------------------------------------ */

/* Resident bytes of a process; 0 where the system does not say. */
static uint64_t resident_bytes(pid_t pid)
{
    char path[64], line[128] = "";
    (void)snprintf(path, sizeof path, "/proc/%ld/statm", (long)pid);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return 0;
    const ssize_t n = read(fd, line, sizeof line - 1);
    (void)close(fd);
    const char *second = n > 0 ? strchr(line, ' ') : NULL; /* after the size in pages */
    return second ? strtoull(second, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
}

static bool is_readable(int fd, int timeout_ms)
{
    struct pollfd one = {.fd = fd, .events = POLLIN};
    return poll(&one, 1, timeout_ms) > 0;
}

/* Whether the library has closed its end: it sends nothing while it waits. */
static bool parent_is_gone(void) { return is_readable(PARENT, 0); }

/* Waits for the worker's next message. False: out says how it ended, and there is no worker any more. */
static bool await(worker *w, const helper_hello *hello, char **out_data, size_t *out_n_bytes,
                  helper_reply *out)
{
    const uint64_t until = time_now_ns() + hello->limit_s * NS_PER_S;
    *out = (helper_reply){0};
    while (!is_readable(w->channel, SLICE_MS)) {
        read_output(w);
        if (parent_is_gone()) {
            kill_worker(w);
            exit(0);
        }
        const bool is_late = time_now_ns() > until;
        const bool is_large =
            hello->max_memory_bytes && resident_bytes(w->pid) > hello->max_memory_bytes;
        if (!is_late && !is_large) continue;
        kill_worker(w);
        out->outcome = is_large ? HELPER_OUT_OF_MEMORY : HELPER_TIMED_OUT;
        out->text = last_words(w);
        return false;
    }
    if (message_read(w->channel, out_data, out_n_bytes)) return true;
    reap(w, out);
    out->text = last_words(w);
    return false;
}

/* ---- requests ------------------------------------------------------------------------------------------ */

static void refuse(helper_reply *out, const char *why)
{
    helper_reply_deinit(out);
    *out = (helper_reply){.outcome = HELPER_UNABLE, .text = memory_strdup(why)};
}

/* Has a worker whose device is open; false: out says why not. */
static bool have_worker(worker *w, const helper_hello *hello, helper_reply *out)
{
    char *data;
    size_t n_bytes;
    if (w->pid) return true;
    if (!start(w, hello)) {
        refuse(out, "no process could be started");
        return false;
    }
    if (!await(w, hello, &data, &n_bytes, out)) {
        /* No program was built yet: this says nothing of one. */
        refuse(out, "the driver ended the compile helper before it compiled anything");
        return false;
    }
    const bool understood = helper_read_reply(data, n_bytes, out) == CLG_OK;
    memory_free(data);
    if (understood && out->outcome == HELPER_DONE) return true;
    kill_worker(w);
    return false;
}

/* Passes a request on and its answer back. False when the library is gone. */
static bool serve(worker *w, const helper_hello *hello, const char *data, size_t n_bytes)
{
    helper_reply reply = {0};
    char *answer = NULL;
    size_t n_answer = 0;
    if (!have_worker(w, hello, &reply)) return message_write_reply(PARENT, &reply);
    w->n_last = 0;
    (void)message_pass_on(w->channel, data, n_bytes); /* of a worker that is dead, await tells */
    if (!await(w, hello, &answer, &n_answer, &reply)) return message_write_reply(PARENT, &reply);
    const bool sent = message_pass_on(PARENT, answer, n_answer);
    memory_free(answer);
    return sent;
}

/* The first message: which device. Answered, so that a library of another version learns it at once. */
static bool greet(helper_hello *out_hello, char **out_data)
{
    size_t n_bytes;
    helper_reply reply = {.outcome = HELPER_DONE};
    if (!is_readable(PARENT, IDLE_MS) || !message_read(PARENT, out_data, &n_bytes)) return false;
    const bool fits = helper_read_hello(*out_data, n_bytes, out_hello) &&
                      strcmp(out_hello->version, HELPER_VERSION) == 0;
    if (!fits) refuse(&reply, "it is of another version (" HELPER_VERSION ")");
    return message_write_reply(PARENT, &reply) && fits;
}

int main(void)
{
    helper_hello hello;
    worker w = {.pid = 0};
    char *greeting = NULL, *data;
    size_t n_bytes;
    close_from(STDERR_FILENO + 1);
    (void)signal(SIGPIPE, SIG_IGN); /* the worker, or the library, may be gone */
    bool going = greet(&hello, &greeting);
    while (going && is_readable(PARENT, IDLE_MS) && message_read(PARENT, &data, &n_bytes)) {
        going = serve(&w, &hello, data, n_bytes);
        memory_free(data);
    }
    kill_worker(&w);
    memory_free(greeting);
    return 0;
}
