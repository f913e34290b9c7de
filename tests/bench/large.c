/* SPDX-License-Identifier: Apache-2.0
 *
 * Measures how the times of loading, optimising, planning and running grow with the number of
 * nodes.
 *
 *     large [KIND|- [FROM [TO]]]      default: each kind of large_models.h, 1000 to 1000000 nodes
 *
 * A kind is not measured at a larger size once a phase took longer than a minute.
 */
#include "support/fixtures/large_models.h"

#include <clgraph/inspect.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TOO_LONG_S 60.0
#define MAX_RUN_NODES 100000 /* a driver's kernel objects take kilobytes each */

enum { LOADING, CREATING, PLANNING, FIRST_RUN, RUN, FREEING, N_PHASES };

static double now_s(void)
{
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Stores the time since *start in *out_s, and starts again. */
static void lap(double *start, double *out_s)
{
    const double now = now_s();
    *out_s = now - *start;
    *start = now;
}

static clg_status run_phases(const large_model *kind, clg_session *session, size_t n, double *start,
                             double *times, clg_memory_estimate *memory)
{
    static const float zeros[2] = {0};
    const int64_t dims[] = {2};
    clg_status s = clg_session_set_input_data(session, "x", kind->dtype, kind->rank, dims, zeros);
    if (s == CLG_OK) s = clg_session_memory(session, memory);
    lap(start, &times[PLANNING]);
    for (int i = FIRST_RUN; i <= RUN && s == CLG_OK && n <= MAX_RUN_NODES; i++) {
        s = clg_session_run(session);
        lap(start, &times[i]);
    }
    return s;
}

static clg_status measure(const large_model *kind, size_t n, double *times)
{
    clg_context *context = NULL;
    clg_model *model = NULL;
    clg_session *session = NULL;
    clg_memory_estimate memory = CLG_MEMORY_ESTIMATE_INIT;
    memset(times, 0, N_PHASES * sizeof *times);
    clg_status s = clg_context_create(NULL, NULL, &context);
    double start = now_s();
    if (s == CLG_OK) s = large_model_load(kind, n, NULL, &model);
    lap(&start, &times[LOADING]);
    if (s == CLG_OK) s = clg_session_create(context, model, NULL, &session);
    lap(&start, &times[CREATING]);
    if (s == CLG_OK) s = run_phases(kind, session, n, &start, times, &memory);
    if (s != CLG_OK) (void)fprintf(stderr, "large: %s %zu: %s\n", kind->name, n, clg_last_error());
    start = now_s();
    clg_session_free(session);
    clg_model_free(model);
    lap(&start, &times[FREEING]);
    clg_context_free(context);
    printf("%-10s %8zu", kind->name, n);
    for (int i = 0; i < N_PHASES; i++) printf(" %9.3f", times[i]);
    printf(" %11llu\n", (unsigned long long)memory.slab_bytes);
    (void)fflush(stdout);
    return s;
}

static bool too_long(const double *times)
{
    for (int i = 0; i < N_PHASES; i++)
        if (times[i] > TOO_LONG_S) return true;
    return false;
}

int main(int argc, char **argv)
{
    const size_t from = argc > 2 ? (size_t)strtoull(argv[2], NULL, 10) : 1000;
    const size_t to = argc > 3 ? (size_t)strtoull(argv[3], NULL, 10) : 1000000;
    const char *only = argc > 1 && strcmp(argv[1], "-") != 0 ? argv[1] : NULL;
    clg_status s = CLG_OK;
    if (from == 0 || (only && !large_model_find(only))) {
        (void)fprintf(stderr, "usage: large [KIND|- [FROM [TO]]]\n");
        return 2;
    }
    printf("%-10s %8s %9s %9s %9s %9s %9s %9s %11s\n", "seconds", "n", "load", "create", "plan",
           "first run", "run", "free", "slab bytes");
    for (size_t k = 0; k < n_large_models; k++) {
        double times[N_PHASES] = {0};
        if (only && strcmp(only, large_models[k].name) != 0) continue;
        for (size_t n = from; n <= to && s == CLG_OK && !too_long(times); n *= 10)
            s = measure(&large_models[k], n, times);
    }
    return s == CLG_OK ? 0 : 1;
}
