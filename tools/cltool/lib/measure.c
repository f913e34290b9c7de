/* SPDX-License-Identifier: Apache-2.0
 *
 * Measures the times of repeated runs on one or several threads. Each thread keeps its own error
 * message, since the library's last error is per thread.
 */
#include "measure.h"

#include "host.h"
#include "interrupt.h"
#include "output.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIN_RUNS 10
#define MAX_RUNS 20000
#define BUDGET_MS 2000.0

int variations_make(const input_set *given, variations *out_variations)
{
    static const size_t steps[N_VARIATIONS] = {0, 5};
    *out_variations = (variations){0};
    for (size_t i = 0; i < N_VARIATIONS; i++) {
        int code = inputs_varied(given, steps[i], &out_variations->sets[i]);
        if (code == CODE_DONE) continue;
        variations_free(out_variations);
        return code;
    }
    return CODE_DONE;
}

void variations_free(variations *v)
{
    for (size_t i = 0; i < N_VARIATIONS; i++) inputs_free(&v->sets[i]);
}

clg_status measure_run(clg_session *session, const input_set *inputs, const clg_model *model)
{
    for (size_t i = 0; i < inputs->count; i++) {
        clg_status status =
            clg_session_set_input(session, inputs->items[i].port->name, inputs->items[i].value);
        if (status != CLG_OK) return status;
    }
    clg_status status = clg_session_run(session);
    for (size_t i = 0; status == CLG_OK && i < clg_model_n_outputs(model); i++) {
        clg_value *value;
        status = clg_session_get_output(session, clg_model_output(model, i)->name, &value);
        clg_value_free(value);
    }
    return status;
}

int measure_once(clg_session *session, const input_set *inputs, const clg_model *model,
                 double *out_ms)
{
    interrupt_begin(session);
    double start = now_ms();
    clg_status status = measure_run(session, inputs, model);
    if (out_ms) *out_ms = now_ms() - start;
    interrupt_end(session);
    if (interrupt_seen()) status = CLG_ERROR_CANCELLED;
    return status == CLG_OK ? CODE_DONE : fail_status(status, STAGE_INPUT, NULL);
}

typedef struct worker {
    clg_session *session;
    const variations *inputs;
    const clg_model *model;
    const load *how;
    times measured;
    clg_status status;
    char error[2048], hint[512];
    pthread_t thread;
} worker;

static bool goes_on(const worker *w, double start)
{
    if (interrupt_seen()) return false;
    if (w->how->runs > 0) return w->measured.count < w->how->runs;
    return w->measured.count < MIN_RUNS ||
           (w->measured.count < MAX_RUNS && now_ms() - start < BUDGET_MS);
}

static void *work(void *argument)
{
    worker *w = argument;
    interrupt_begin(w->session);
    for (size_t i = 0; i < w->how->warmup && w->status == CLG_OK && !interrupt_seen(); i++) {
        w->status = measure_run(w->session, &w->inputs->sets[i % N_VARIATIONS], w->model);
    }
    double start = now_ms();
    for (size_t i = 0; w->status == CLG_OK && goes_on(w, start); i++) {
        double before = now_ms();
        w->status = measure_run(w->session, &w->inputs->sets[i % N_VARIATIONS], w->model);
        if (w->status == CLG_OK) times_add(&w->measured, now_ms() - before);
    }
    interrupt_end(w->session);
    if (w->status != CLG_OK) {
        (void)snprintf(w->error, sizeof w->error, "%s", clg_last_error());
        (void)snprintf(w->hint, sizeof w->hint, "%s", failure_hint(w->status));
    }
    return NULL;
}

static int worker_code(const worker *w)
{
    if (interrupt_seen() || w->status == CLG_ERROR_CANCELLED)
        return fail(CODE_INTERRUPTED, CLG_ERROR_CANCELLED, "interrupted");
    if (w->status == CLG_OK) return CODE_DONE;
    /* only for the exit code: the message of the worker's thread replaces the recorded one */
    int code = fail_status(w->status, STAGE_INPUT, NULL);
    (void)fail(code, w->status, "%s", w->error);
    fail_hint("%s", w->hint);
    return code;
}

/* Runs all workers concurrently, the first one on the calling thread. Returns the code of the first
 * error. *out_elapsed_ms is the time until all have ended, warm-up runs included. */
static int run_workers(worker *workers, size_t n, double *out_elapsed_ms)
{
    size_t n_started = 1;
    int code = CODE_DONE;
    double start = now_ms();
    for (; n_started < n; n_started++) {
        if (pthread_create(&workers[n_started].thread, NULL, work, &workers[n_started]) == 0)
            continue;
        code = fail(CODE_WORK, CLG_ERROR_OUT_OF_HOST_MEMORY, "%zu threads cannot be started", n);
        break;
    }
    if (code == CODE_DONE) (void)work(&workers[0]);
    for (size_t i = 1; i < n_started; i++) (void)pthread_join(workers[i].thread, NULL);
    *out_elapsed_ms = now_ms() - start;
    for (size_t i = 0; i < n && code == CODE_DONE; i++) code = worker_code(&workers[i]);
    return code;
}

int measure_load(clg_session *session, const variations *inputs, const clg_model *model,
                 const load *how, times *out_times, double *out_elapsed_ms)
{
    worker *workers = must_alloc(how->concurrency, sizeof *workers);
    int code = CODE_DONE;
    *out_times = (times){0};
    for (size_t i = 0; i < how->concurrency && code == CODE_DONE; i++) {
        workers[i] = (worker){.session = session, .inputs = inputs, .model = model, .how = how};
        clg_status status = i > 0 ? clg_session_clone(session, &workers[i].session) : CLG_OK;
        if (status != CLG_OK) code = fail_status(status, STAGE_WORK, NULL);
    }
    if (code == CODE_DONE) code = run_workers(workers, how->concurrency, out_elapsed_ms);
    for (size_t i = 0; i < how->concurrency; i++) {
        for (size_t k = 0; k < workers[i].measured.count; k++)
            times_add(out_times, workers[i].measured.ms[k]);
        times_free(&workers[i].measured);
        if (i > 0) clg_session_free(workers[i].session);
    }
    free(workers);
    return code;
}

int outputs_fetch(clg_session *session, const clg_model *model, clg_value ***out_values)
{
    size_t n = clg_model_n_outputs(model);
    clg_value **values = must_alloc(n, sizeof *values);
    for (size_t i = 0; i < n; i++) {
        clg_status status =
            clg_session_get_output(session, clg_model_output(model, i)->name, &values[i]);
        if (status == CLG_OK) continue;
        outputs_free(values, model);
        return fail_status(status, STAGE_WORK, NULL);
    }
    *out_values = values;
    return CODE_DONE;
}

void outputs_free(clg_value **values, const clg_model *model)
{
    for (size_t i = 0; values && i < clg_model_n_outputs(model); i++) clg_value_free(values[i]);
    free(values);
}

digest outputs_digest(clg_value *const *values, const clg_model *model)
{
    digest d = digest_start();
    for (size_t i = 0; i < clg_model_n_outputs(model); i++) digest_value(&d, values[i]);
    return d;
}
