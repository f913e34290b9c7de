/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements host.h on Linux and other POSIX systems. Signals are blocked in all threads and
 * handled by one, which may lock mutexes and call the library.
 */
#include "host.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Has lines of standard error written whole, so that those of several processes, such as ranks, do
 * not mix. */
char **host_start(char **argv)
{
    (void)setvbuf(stderr, NULL, _IOLBF, 1 << 12);
    return argv;
}

bool host_is_terminal(FILE *stream) { return isatty(fileno(stream)) != 0; }

static void (*call_on_interrupt)(void);

static void *watch(void *argument)
{
    const sigset_t *set = argument;
    for (;;) {
        int signal;
        if (sigwait(set, &signal) == 0) call_on_interrupt();
    }
    return NULL;
}

void host_watch_interrupts(void (*interrupted)(void))
{
    static sigset_t set;
    pthread_t thread;
    call_on_interrupt = interrupted;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGTERM);
    if (pthread_sigmask(SIG_BLOCK, &set, NULL) != 0) return;
    if (pthread_create(&thread, NULL, watch, &set) != 0) {
        (void)pthread_sigmask(SIG_UNBLOCK, &set, NULL); /* then signals end the program, as usual */
        return;
    }
    (void)pthread_detach(thread);
}

void host_say(const char *text, size_t n_bytes)
{
    const ssize_t n = write(STDERR_FILENO, text, n_bytes);
    (void)n;
}

void host_leave(bool to_stdout, const char *text, size_t n_bytes, int code)
{
    ssize_t n = write(to_stdout ? STDOUT_FILENO : STDERR_FILENO, text, n_bytes);
    (void)n;
    _exit(code);
}

void host_pause_ms(unsigned ms)
{
    const struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000L};
    (void)nanosleep(&pause, NULL);
}

bool host_is_separator(char c) { return c == '/'; }

bool host_exists(const char *path) { return access(path, F_OK) == 0; }

bool host_is_folder(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

int host_make_folder(const char *path) { return mkdir(path, 0777) == 0 ? 0 : errno; }

int host_stat(const char *path, uint64_t *out_size_bytes, int64_t *out_modified)
{
    struct stat info;
    if (stat(path, &info) != 0) return errno;
    *out_size_bytes = (uint64_t)info.st_size;
    *out_modified = (int64_t)info.st_mtim.tv_sec * 1000000000 + info.st_mtim.tv_nsec;
    return 0;
}

bool host_is_special(const char *path)
{
    struct stat info;
    return lstat(path, &info) == 0 && !S_ISREG(info.st_mode);
}

int host_rename(const char *from, const char *to) { return rename(from, to) == 0 ? 0 : errno; }

int host_remove(const char *path) { return unlink(path) == 0 ? 0 : errno; }

FILE *host_open(const char *path, const char *mode) { return fopen(path, mode); }

FILE *host_temporary(void)
{
    const char *folder = getenv("TMPDIR");
    char path[4096];
    const int n =
        snprintf(path, sizeof path, "%s/cltool-XXXXXX", folder && folder[0] ? folder : "/tmp");
    errno = ENAMETOOLONG;
    const int file = n > 0 && (size_t)n < sizeof path ? mkstemp(path) : -1;
    if (file < 0) return NULL;
    (void)unlink(path);
    FILE *stream = fdopen(file, "w+b");
    if (!stream) (void)close(file);
    return stream;
}

char *host_temporary_folder(void)
{
    const char *folder = getenv("TMPDIR");
    char path[4096];
    const int n =
        snprintf(path, sizeof path, "%s/cltool-XXXXXX", folder && folder[0] ? folder : "/tmp");
    errno = ENAMETOOLONG;
    return n > 0 && (size_t)n < sizeof path && mkdtemp(path) ? strdup(path) : NULL;
}

int host_remove_folder(const char *path) { return rmdir(path) == 0 ? 0 : errno; }

FILE *host_claim_stdout(void)
{
    (void)fflush(stdout);
    const int file = dup(STDOUT_FILENO);
    FILE *stream = file >= 0 && dup2(STDERR_FILENO, STDOUT_FILENO) >= 0 ? fdopen(file, "wb") : NULL;
    if (!stream && file >= 0) (void)close(file);
    return stream;
}

bool host_may_write(const char *folder) { return access(folder, W_OK | X_OK) == 0; }

int host_seek(FILE *stream, uint64_t offset_bytes)
{
    return fseeko(stream, (off_t)offset_bytes, SEEK_SET) == 0 ? 0 : errno;
}

int host_list(const char *folder, void (*visit)(void *user, const char *name), void *user)
{
    DIR *entries = opendir(folder);
    if (!entries) return errno;
    const struct dirent *entry;
    while ((errno = 0, entry = readdir(entries))) visit(user, entry->d_name);
    const int failed = errno;
    (void)closedir(entries);
    return failed;
}

size_t host_n_processors(void)
{
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n < 1 ? 1 : (size_t)n;
}

/* Reads the first line of the small file FOLDER/ENTRY/FILE, as in /sys; returns false when it
 * cannot be read. */
static bool read_word(const char *folder, const char *entry, const char *file, char *word, size_t n)
{
    char path[512];
    int length = snprintf(path, sizeof path, "%s/%s/%s", folder, entry, file);
    FILE *stream = length > 0 && (size_t)length < sizeof path ? fopen(path, "r") : NULL;
    if (!stream) return false;
    bool is_read = fgets(word, (int)n, stream) != NULL;
    (void)fclose(stream);
    return is_read;
}

static const char pci_folder[] = "/sys/bus/pci/devices";

static void look_at_card(void *user, const char *name)
{
    static const char *const vendors[] = {"0x10de", "0x1002", "0x8086"};
    bool *has_gpu = user;
    char kind[16], vendor[16];
    if (name[0] == '.' || !read_word(pci_folder, name, "class", kind, sizeof kind) ||
        !read_word(pci_folder, name, "vendor", vendor, sizeof vendor)) {
        return;
    }
    bool is_display = strncmp(kind, "0x0300", 6) == 0 || strncmp(kind, "0x0302", 6) == 0 ||
                      strncmp(kind, "0x0380", 6) == 0;
    for (size_t i = 0; i < sizeof vendors / sizeof vendors[0]; i++) {
        *has_gpu |= is_display && strncmp(vendor, vendors[i], 6) == 0;
    }
}

bool host_has_gpu(void)
{
    bool has_gpu = false;
    (void)host_list(pci_folder, look_at_card, &has_gpu);
    return has_gpu;
}

double now_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

uint64_t peak_rss_bytes(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? (uint64_t)usage.ru_maxrss * 1024 : 0;
}
