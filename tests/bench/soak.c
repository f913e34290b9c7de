/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs five models ten thousand times in all, with different shapes from run to run, and checks
 * that memory is constant and results are reproducible. At the end of every cycle of shapes, the
 * library's memory on the host and on the device must be equal to the byte, and the process must
 * not grow. Results must be bit-identical each time a shape recurs. At the end of a cycle, each
 * model is also loaded, run once and freed while its other session exists.
 *
 *     soak [RUNS [simd|simt [FOLDER...]]]      default 10000 runs of five models, simd
 *
 * FOLDERs are at most five models with test_data_set_*. Exits with code 77 when one does not exist.
 */
#include "support/fakes/counting_alloc.h"
#include "support/fixtures/soak_models.h"
#include "support/process_use.h"

#include <clgraph/inspect.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WARM_UP_RUNS = 1000, REPORTS = 10 };
/* The heaps of the C library and of the driver may grow early on; a leak of 300 bytes a run exceeds
 * this limit. */
#define MAX_GROWTH_BYTES ((size_t)2560 << 10)

/* ---- measurements ---------------------------------------------------------------------------- */

typedef struct footprint {
    size_t host_bytes, process_bytes;
    clg_counters counters;
} footprint;

static clg_status measure(const clg_context *context, footprint *out)
{
    *out = (footprint){.counters = CLG_COUNTERS_INIT};
    out->host_bytes = counting_alloc_live_bytes();
    out->process_bytes = process_use_bytes();
    return clg_context_counters(context, &out->counters);
}

static void print_footprint(size_t n_runs, const footprint *f)
{
    printf("%7zu runs: process %8.2f MiB, library %8.3f MiB on the host, %8.3f MiB on the device, "
           "%llu plans, %llu programs compiled\n",
           n_runs, (double)f->process_bytes / 1048576.0, (double)f->host_bytes / 1048576.0,
           (double)f->counters.device_bytes / 1048576.0, (unsigned long long)f->counters.plans_made,
           (unsigned long long)f->counters.programs_compiled);
    (void)fflush(stdout);
}

static int expect_same(size_t n_runs, const footprint *a, const footprint *b)
{
    if (a->host_bytes == b->host_bytes && a->counters.device_bytes == b->counters.device_bytes &&
        a->counters.programs_compiled == b->counters.programs_compiled)
        return 0;
    printf(
        "after %zu runs the library holds %zu bytes on the host and %llu on the device; after the "
        "warm-up it was %zu and %llu\n",
        n_runs, b->host_bytes, (unsigned long long)b->counters.device_bytes, a->host_bytes,
        (unsigned long long)a->counters.device_bytes);
    return 1;
}

/* ---- running --------------------------------------------------------------------------------- */

typedef struct soak {
    clg_context *context;
    clg_session_options options;
    soak_model models[SOAK_MODELS];
    clg_session *sessions[SOAK_MODELS];
    size_t n_models, n_sets; /* n_sets: input sets of each model in a cycle */
    size_t n_runs, n_wrong;
} soak;

static clg_status run_set(soak *s, size_t m, size_t set, clg_session *session)
{
    uint64_t digest;
    clg_status status = soak_model_run(&s->models[m], set % s->models[m].n_sets, session, &digest);
    if (status != CLG_OK) return status;
    uint64_t *known = &s->models[m].digests[set % s->models[m].n_sets];
    if (*known == 0) *known = digest;
    if (*known != digest && s->n_wrong++ == 0)
        printf("'%s' gave other results than before for its inputs %zu\n", s->models[m].name,
               set % s->models[m].n_sets);
    s->n_runs++;
    return CLG_OK;
}

/* Loads, runs and frees a model, while the other session of the model exists. */
static clg_status live_briefly(soak *s, size_t m)
{
    clg_model *model = NULL;
    clg_session *session = NULL;
    clg_status status = soak_model_load(&s->models[m], &model);
    if (status == CLG_OK) status = clg_session_create(s->context, model, &s->options, &session);
    clg_model_free(model);
    if (status == CLG_OK) status = run_set(s, m, 0, session);
    clg_session_free(session);
    return status;
}

static clg_status run_cycle(soak *s)
{
    clg_status status = CLG_OK;
    for (size_t set = 0; set < s->n_sets; set++)
        for (size_t m = 0; m < s->n_models && status == CLG_OK; m++)
            status = run_set(s, m, set, s->sessions[m]);
    for (size_t m = 0; m < s->n_models && status == CLG_OK; m++) status = live_briefly(s, m);
    return status;
}

/* Runs the models. *out_code: 1 when memory was not constant or results were not reproducible, else
 * 0. */
static clg_status soak_run(soak *s, size_t n_runs, int *out_code)
{
    footprint warm = {0}, now = {0};
    bool is_warm = false;
    size_t next_report = 0;
    *out_code = 0;
    while (s->n_runs < n_runs) {
        clg_status status = run_cycle(s);
        if (status == CLG_OK) status = measure(s->context, &now);
        if (status != CLG_OK) return status;
        if (s->n_runs >= next_report) {
            print_footprint(s->n_runs, &now);
            next_report += n_runs / REPORTS;
        }
        if (is_warm) *out_code |= expect_same(s->n_runs, &warm, &now);
        if (!is_warm && s->n_runs >= WARM_UP_RUNS) {
            warm = now;
            is_warm = true;
        }
    }
    print_footprint(s->n_runs, &now);
    if (is_warm && now.process_bytes > warm.process_bytes + MAX_GROWTH_BYTES) {
        printf("the process grew by %.2f MiB\n",
               (double)(now.process_bytes - warm.process_bytes) / 1048576.0);
        *out_code = 1;
    }
    if (s->n_wrong) *out_code = 1;
    return CLG_OK;
}

static clg_status soak_open(soak *s, int n_folders, char **folders)
{
    clg_status status = clg_context_create(NULL, NULL, &s->context);
    s->n_models = n_folders > 0 ? (size_t)n_folders : SOAK_MODELS;
    for (size_t m = 0; m < s->n_models && status == CLG_OK; m++) {
        clg_model *model = NULL;
        status = n_folders > 0 ? soak_model_open(folders[m], &s->models[m])
                               : soak_model_own(m, &s->models[m]);
        if (status == CLG_OK) status = soak_model_load(&s->models[m], &model);
        if (status == CLG_OK)
            status = clg_session_create(s->context, model, &s->options, &s->sessions[m]);
        clg_model_free(model);
        if (s->models[m].n_sets > s->n_sets) s->n_sets = s->models[m].n_sets;
    }
    return status;
}

static void soak_close(soak *s)
{
    for (size_t m = 0; m < SOAK_MODELS; m++) {
        clg_session_free(s->sessions[m]);
        soak_model_close(&s->models[m]);
    }
    clg_context_free(s->context);
}

int main(int argc, char **argv)
{
    soak s = {.options = CLG_SESSION_OPTIONS_INIT};
    const long runs = argc > 1 ? atol(argv[1]) : 10000;
    int code = 0;
    if (runs < 1 || argc > 3 + SOAK_MODELS) {
        (void)fprintf(stderr, "usage: soak [RUNS [simd|simt [FOLDER...]]]\n");
        return 2;
    }
    for (int i = 3; i < argc; i++)
        if (access(argv[i], R_OK) != 0) {
            printf("skipped: there is no %s\n", argv[i]);
            return 77;
        }
    s.options.kernels =
        argc > 2 && strcmp(argv[2], "simt") == 0 ? CLG_KERNELS_SIMT : CLG_KERNELS_SIMD;
    clg_status status = counting_alloc_install();
    if (status == CLG_OK) status = soak_open(&s, argc > 3 ? argc - 3 : 0, argv + 3);
    if (status == CLG_OK) status = soak_run(&s, (size_t)runs, &code);
    if (status != CLG_OK) (void)fprintf(stderr, "soak: %s\n", clg_last_error());
    soak_close(&s);
    const size_t left = counting_alloc_live_bytes();
    if (status == CLG_OK && left != 0) printf("%zu bytes were never freed\n", left);
    return status != CLG_OK || code != 0 || left != 0;
}
