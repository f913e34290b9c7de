/* SPDX-License-Identifier: Apache-2.0
 *
 * Measures the time of a decoding step when shapes grow by one with each step. The model has a
 * key/value cache whose outputs are linked to its inputs, so that the state stays on the device.
 * Planning and running are timed separately, in three rounds that each start from an empty
 * key/value cache.
 *
 *     growing [MODEL|- [STEPS [simd|simt]]]      default: a small decoder, 100 steps
 *
 * MODEL is one of those that growing_model.h describes; position tables of 8 positions are
 * extended.
 */
#include "support/fakes/counting_alloc.h"
#include "support/fixtures/growing_model.h"

#include <clgraph/inspect.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WARM_UP = 4 };

typedef struct times {
    double *plan_ms, *run_ms, *host_ms; /* of each step: processor time of planning; run, in all and
                                           as processor time of its thread */
    size_t count;
} times;

static double now_ms(void)
{
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

/* Returns the processor time of this thread, on which planning runs; where the system does not give
 * it, the time of day. */
static double now_thread_ms(void)
{
#ifdef CLOCK_THREAD_CPUTIME_ID
    struct timespec t;
    if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) == 0)
        return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
#endif
    return now_ms();
}

static clg_status take_steps(clg_session *session, times *t)
{
    clg_memory_estimate estimate = CLG_MEMORY_ESTIMATE_INIT;
    for (size_t i = 0; i < t->count; i++) {
        const double start = now_thread_ms();
        clg_status s = clg_session_memory(session, &estimate); /* plans for the run */
        t->plan_ms[i] = now_thread_ms() - start;
        const double planned = now_ms(), host = now_thread_ms();
        if (s == CLG_OK) s = clg_session_run(session);
        if (s != CLG_OK) return s;
        t->run_ms[i] = now_ms() - planned;
        t->host_ms[i] = now_thread_ms() - host;
    }
    return CLG_OK;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print_times(const char *what, double *ms, size_t n)
{
    if (n <= WARM_UP) return;
    qsort(ms + WARM_UP, n - WARM_UP, sizeof *ms, compare);
    const double *sorted = ms + WARM_UP;
    n -= WARM_UP;
    printf("%-24s median %8.3f ms, 90th percentile %8.3f ms, most %8.3f ms\n", what, sorted[n / 2],
           sorted[n * 9 / 10], sorted[n - 1]);
}

static void print_counters(const char *what, const clg_context *context)
{
    clg_counters c = CLG_COUNTERS_INIT;
    if (clg_context_counters(context, &c) != CLG_OK) return;
    printf("%-24s %llu programs compiled, %llu loaded, %llu plans, %llu packings, %llu kernels, "
           "%.2f MiB on the device, %.2f MiB of the library's on the host\n",
           what, (unsigned long long)c.programs_compiled, (unsigned long long)c.programs_loaded,
           (unsigned long long)c.plans_made, (unsigned long long)c.weights_packed,
           (unsigned long long)c.kernels_launched, (double)c.device_bytes / 1048576.0,
           (double)counting_alloc_live_bytes() / 1048576.0);
}

static clg_status measure(clg_context *context, clg_session *session, const clg_model *model,
                          times *t)
{
    static const char *const rounds[] = {"first time", "again", "and again"};
    clg_status s = growing_model_link(session, model);
    for (size_t r = 0; s == CLG_OK && r < sizeof rounds / sizeof rounds[0]; r++) {
        s = growing_model_start(session, model);
        if (s == CLG_OK) s = take_steps(session, t);
        if (s != CLG_OK) break;
        print_counters(rounds[r], context);
        print_times("  planning", t->plan_ms, t->count);
        print_times("  running", t->run_ms, t->count);
        print_times("  running, the host", t->host_ms, t->count);
    }
    return s;
}

int main(int argc, char **argv)
{
    int steps = argc > 2 ? atoi(argv[2]) : 100;
    clg_session_options options = CLG_SESSION_OPTIONS_INIT;
    if (argc > 3)
        options.kernels = strcmp(argv[3], "simt") == 0 ? CLG_KERNELS_SIMT : CLG_KERNELS_SIMD;
    if (steps < 1 || steps > 4096) {
        (void)fprintf(stderr, "usage: growing [MODEL|- [STEPS [simd|simt]]]\n");
        return 2;
    }
    clg_context *context = NULL;
    clg_model *model = NULL;
    clg_session *session = NULL;
    times t = {.count = (size_t)steps};
    t.plan_ms = malloc(t.count * sizeof *t.plan_ms);
    t.run_ms = malloc(t.count * sizeof *t.run_ms);
    t.host_ms = malloc(t.count * sizeof *t.host_ms);
    clg_status s = t.plan_ms && t.run_ms && t.host_ms ? CLG_OK : CLG_ERROR_OUT_OF_HOST_MEMORY;
    if (s == CLG_OK) s = counting_alloc_install();
    if (s == CLG_OK) s = clg_context_create(NULL, NULL, &context);
    if (s == CLG_OK)
        s = argc > 1 && strcmp(argv[1], "-") != 0 ? growing_model_load(argv[1], 8, steps, &model)
                                                  : growing_model_make(steps, &model);
    if (s == CLG_OK) s = clg_session_create(context, model, &options, &session);
    if (s == CLG_OK) s = measure(context, session, model, &t);
    if (s != CLG_OK) (void)fprintf(stderr, "growing: %s\n", clg_last_error());
    clg_session_free(session);
    clg_model_free(model);
    clg_context_free(context);
    free(t.plan_ms);
    free(t.run_ms);
    free(t.host_ms);
    return s == CLG_OK ? 0 : 1;
}
