/* SPDX-License-Identifier: Apache-2.0
 *
 * Measures how the times of loading, optimising, planning and running grow with the number of
 * nodes.
 *
 *     large [KIND|- [FROM [TO]]]      default: each kind of large_models.h, 1000 to 1000000 nodes
 *     large cancel [KIND|- [N]]       how long after a cancel each phase ends, for 100000 nodes
 *     large write KIND N FILE         writes a model
 *
 * A kind is not measured at a larger size once a phase took longer than a minute.
 */
#include "support/fixtures/large_models.h"
#include "support/fixtures/sized_data.h"

#include <clgraph/inspect.h>

#include <math.h>
#include <pthread.h>
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
    clg_status s = sized_input(session, "x", kind->dtype, kind->rank, dims, zeros);
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

/* ---- cancelling ------------------------------------------------------------------------------ */

#define N_CANCELS 8 /* of each kind, at moments evenly apart */

/* A token to trigger some time after a phase has begun. */
typedef struct canceller {
    clg_cancel *token;
    double after_s, at_s; /* at_s: when it was triggered */
} canceller;

static void *trigger_later(void *argument)
{
    canceller *c = argument;
    const double whole = floor(c->after_s);
    const struct timespec pause = {(time_t)whole, (long)((c->after_s - whole) * 1e9)};
    (void)nanosleep(&pause, NULL);
    c->at_s = now_s();
    clg_cancel_trigger(c->token);
    return NULL;
}

/* Everything from loading to a second run, with a token. *out_end_s: when it ended, before what it
 * made is freed. */
static clg_status do_all(const large_model *kind, const ow_bytes *file, clg_context *context,
                         clg_cancel *token, double *out_end_s)
{
    clg_model *model = NULL;
    clg_session *session = NULL;
    clg_memory_estimate memory = CLG_MEMORY_ESTIMATE_INIT;
    clg_model_options loading = CLG_MODEL_OPTIONS_INIT;
    clg_session_options creating = CLG_SESSION_OPTIONS_INIT;
    double start = now_s(), times[N_PHASES];
    loading.cancel = creating.cancel = token;
    clg_status s = clg_model_load_memory(file->data, file->n, &loading, &model);
    if (s == CLG_OK) s = clg_session_create(context, model, &creating, &session);
    if (s == CLG_OK) s = run_phases(kind, session, 1, &start, times, &memory);
    *out_end_s = now_s();
    clg_session_free(session);
    clg_model_free(model);
    return s;
}

/* Measures from the trigger to the return of the call that it ends. */
static clg_status measure_cancels(const large_model *kind, size_t n)
{
    clg_context *context = NULL;
    canceller c = {.token = NULL};
    ow_bytes file = large_model_write(kind, n);
    double whole_s = 0.0, max_s = 0.0, max_at_s = 0.0, end_s, start = now_s();
    clg_status s = clg_context_create(NULL, NULL, &context);
    if (s == CLG_OK) s = clg_cancel_create(&c.token);
    if (s == CLG_OK) s = do_all(kind, &file, context, c.token, &end_s);
    lap(&start, &whole_s);
    for (int i = 0; i < N_CANCELS && s == CLG_OK; i++) {
        pthread_t thread;
        clg_cancel_reset(c.token);
        c.after_s = whole_s * (i + 0.5) / N_CANCELS;
        if (pthread_create(&thread, NULL, trigger_later, &c) != 0) break;
        const clg_status ended = do_all(kind, &file, context, c.token, &end_s);
        (void)pthread_join(thread, NULL);
        if (ended == CLG_ERROR_CANCELLED && end_s - c.at_s > max_s) {
            max_s = end_s - c.at_s;
            max_at_s = c.after_s;
        }
        if (ended != CLG_ERROR_CANCELLED) s = ended;
    }
    printf("%-10s %8zu  %9.3f s in all, at most %.3f s after a cancel (at %.3f s)%s%s\n",
           kind->name, n, whole_s, max_s, max_at_s, s == CLG_OK ? "" : ": ",
           s == CLG_OK ? "" : clg_last_error());
    (void)fflush(stdout);
    clg_cancel_free(c.token);
    clg_context_free(context);
    ow_free(&file);
    return s;
}

/* ---- arguments ------------------------------------------------------------------------------- */

static int usage(void)
{
    (void)fprintf(stderr, "usage: large [cancel] [KIND|- [FROM [TO]]]; large write KIND N FILE\n");
    return 2;
}

static int write_model(const char *name, const char *n, const char *path)
{
    const large_model *kind = large_model_find(name);
    if (!kind) return usage();
    ow_bytes file = large_model_write(kind, (size_t)strtoull(n, NULL, 10));
    FILE *stream = fopen(path, "wb");
    const bool is_written = stream && fwrite(file.data, 1, file.n, stream) == file.n;
    const bool is_closed = stream && fclose(stream) == 0;
    ow_free(&file);
    return is_written && is_closed ? 0 : 1;
}

int main(int argc, char **argv)
{
    const bool cancels = argc > 1 && strcmp(argv[1], "cancel") == 0;
    if (argc == 5 && strcmp(argv[1], "write") == 0) return write_model(argv[2], argv[3], argv[4]);
    if (cancels) {
        argc--;
        argv++;
    }
    const size_t from = argc > 2 ? (size_t)strtoull(argv[2], NULL, 10) : cancels ? 100000 : 1000;
    const size_t to = argc > 3 ? (size_t)strtoull(argv[3], NULL, 10) : cancels ? from : 1000000;
    const char *only = argc > 1 && strcmp(argv[1], "-") != 0 ? argv[1] : NULL;
    clg_status s = CLG_OK;
    if (from == 0 || (only && !large_model_find(only))) return usage();
    if (!cancels)
        printf("%-10s %8s %9s %9s %9s %9s %9s %9s %11s\n", "seconds", "n", "load", "create", "plan",
               "first run", "run", "free", "slab bytes");
    for (size_t k = 0; k < n_large_models; k++) {
        double times[N_PHASES] = {0};
        if (only && strcmp(only, large_models[k].name) != 0) continue;
        for (size_t n = from; n <= to && s == CLG_OK && !too_long(times); n *= 10)
            s = cancels ? measure_cancels(&large_models[k], n)
                        : measure(&large_models[k], n, times);
    }
    return s == CLG_OK ? 0 : 1;
}
