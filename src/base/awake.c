/* SPDX-License-Identifier: Apache-2.0
 *
 * Compiled with _GNU_SOURCE, for SCHED_IDLE and sets of processors.
 */
#include "base/awake.h"

#include "base/threads.h"

#ifdef __linux__

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define MOST_PROCESSORS 256
#define SPINS_BETWEEN_LOOKS 32

/* One for the process: what sleeps and wakes are its processors. */
static struct {
    mutex
        lifetime; /* guards the next line, while threads start and end too; taken before the other */
    size_t users, n_threads;
    thread threads[MOST_PROCESSORS];
    mutex lock; /* sleeping and being woken */
    condition begun;
    atomic_bool stop;
    atomic_size_t n_asleep, n_working;
    atomic_llong until_ns; /* spinning goes on to here when nothing works any more */
} all = {.lifetime = MUTEX_INIT, .lock = MUTEX_INIT, .begun = CONDITION_INIT};

static long long now_ns(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (long long)t.tv_sec * 1000000000 + t.tv_nsec;
}

static bool wanted(void)
{
    if (atomic_load(&all.stop)) return false;
    return atomic_load(&all.n_working) > 0 || now_ns() < atomic_load(&all.until_ns);
}

static void spin(void)
{
    for (int i = 0; i < SPINS_BETWEEN_LOOKS; i++) {
#if defined(__x86_64__) || defined(__i386__)
        __builtin_ia32_pause();
#elif defined(__aarch64__)
        __asm__ volatile("yield");
#else
        atomic_signal_fence(memory_order_seq_cst);
#endif
    }
}

/* The processor is chosen by the argument, its number. A thread that may not have idle priority must not spin. */
static void *stay_awake(void *argument)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET((size_t)(uintptr_t)argument, &one);
    const bool may =
        pthread_setschedparam(pthread_self(), SCHED_IDLE, &(struct sched_param){0}) == 0 &&
        pthread_setaffinity_np(pthread_self(), sizeof one, &one) == 0;
    mutex_lock(&all.lock);
    while (!atomic_load(&all.stop)) {
        if (may && wanted()) {
            mutex_unlock(&all.lock);
            while (wanted()) spin();
            mutex_lock(&all.lock);
        } else {
            atomic_fetch_add(&all.n_asleep, 1);
            const bool sleep = !may || !wanted(); /* again: a begin may have seen nobody asleep */
            if (sleep && !atomic_load(&all.stop)) condition_wait(&all.begun, &all.lock);
            atomic_fetch_sub(&all.n_asleep, 1);
        }
    }
    mutex_unlock(&all.lock);
    return NULL;
}

static bool read_line(const char *path, char *line, size_t n_bytes)
{
    FILE *f = fopen(path, "re");
    if (!f) return false;
    const bool got = fgets(line, (int)n_bytes, f) != NULL;
    (void)fclose(f);
    return got;
}

/* Whether a control group gives the process a share of its processors' time: cpu.max is "max PERIOD" without one, version 1
 * has -1. Within a container the group is the root of what can be seen. */
static bool is_limited(void)
{
    char line[4096], path[4200];
    if (read_line("/sys/fs/cgroup/cpu.max", line, sizeof line) && strncmp(line, "max", 3) != 0)
        return true;
    if (read_line("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", line, sizeof line) && line[0] != '-')
        return true;
    if (!read_line("/proc/self/cgroup", line, sizeof line) || strncmp(line, "0::/", 4) != 0)
        return false;
    line[strcspn(line, "\n")] = '\0';
    for (char *own = line + 3; own[0] != '\0'; *strrchr(own, '/') = '\0') {
        (void)snprintf(path, sizeof path, "/sys/fs/cgroup%s/cpu.max", own);
        char limit[64];
        if (read_line(path, limit, sizeof limit) && strncmp(limit, "max", 3) != 0) return true;
    }
    return false;
}

size_t awake_processors(void)
{
    cpu_set_t mine;
    if (sched_getaffinity(0, sizeof mine, &mine) != 0 || is_limited()) return 0;
    return (size_t)CPU_COUNT(&mine);
}

static void start_threads(void)
{
    cpu_set_t mine;
    if (sched_getaffinity(0, sizeof mine, &mine) != 0) return;
    for (size_t i = 0; i < CPU_SETSIZE && all.n_threads < MOST_PROCESSORS; i++) {
        if (!CPU_ISSET(i, &mine)) continue;
        if (thread_start(&all.threads[all.n_threads], stay_awake, (void *)(uintptr_t)i) != CLG_OK)
            return; /* it goes with fewer */
        all.n_threads++;
    }
}

bool awake_open(size_t n_processors)
{
    if (n_processors == 0 || n_processors != awake_processors()) return false;
    mutex_lock(&all.lifetime);
    if (all.users == 0) start_threads();
    const bool started = all.n_threads > 0;
    if (started) all.users++;
    mutex_unlock(&all.lifetime);
    return started;
}

void awake_close(void)
{
    mutex_lock(&all.lifetime);
    if (--all.users == 0) {
        mutex_lock(&all.lock);
        atomic_store(&all.stop, true);
        condition_broadcast(&all.begun);
        mutex_unlock(&all.lock);
        for (size_t i = 0; i < all.n_threads; i++) thread_join(all.threads[i]);
        all.n_threads = 0;
        atomic_store(&all.stop, false);
    }
    mutex_unlock(&all.lifetime);
}

void awake_begin(void)
{
    atomic_fetch_add(&all.n_working, 1);
    if (atomic_load(&all.n_asleep) == 0) return;
    mutex_lock(&all.lock);
    condition_broadcast(&all.begun);
    mutex_unlock(&all.lock);
}

void awake_end(void)
{
    atomic_store(&all.until_ns, now_ns() + AWAKE_LINGER_NS);
    atomic_fetch_sub(&all.n_working, 1);
}

void awake_count(size_t *out_asleep, size_t *out_all)
{
    mutex_lock(&all.lifetime);
    *out_asleep = atomic_load(&all.n_asleep);
    *out_all = all.n_threads;
    mutex_unlock(&all.lifetime);
}

#else /* no idle priority that others push aside at once */

size_t awake_processors(void) { return 0; }
bool awake_open(size_t n_processors)
{
    (void)n_processors;
    return false;
}
void awake_close(void) {}
void awake_begin(void) {}
void awake_end(void) {}
void awake_count(size_t *out_asleep, size_t *out_all) { *out_asleep = *out_all = 0; }

#endif
