/* SPDX-License-Identifier: Apache-2.0
 *
 * Measures runs of a model. See bench_run.h.
 */
#include "bench_run.h"

#include "host.h"
#include "measure.h"

#include <stdlib.h>

static int count_flops(const clg_model *model, const input_set *inputs, double *out_flops)
{
    size_t n;
    clg_shape_override *shapes = inputs_shapes(inputs, &n);
    clg_status status = clg_model_flops(model, shapes, n, out_flops);
    free(shapes);
    return status == CLG_OK ? CODE_DONE : fail_status(status, STAGE_INPUT, NULL);
}

static uint64_t n_launched(const clg_context *context)
{
    clg_counters counters = {.struct_size = sizeof counters};
    return clg_context_counters(context, &counters) == CLG_OK
               ? counters.kernels_launched + counters.blas_calls
               : 0;
}

/* Measures the time of the first run and computes the digest of its outputs. Then runs once more to
 * count launched kernels and CLBlast calls. */
static int first_runs(const engine *e, const input_set *inputs, bench_result *r)
{
    clg_value **outputs;
    int code = measure_once(e->session, inputs, e->model, &r->first_run_ms);
    if (code == CODE_DONE) code = outputs_fetch(e->session, e->model, &outputs);
    if (code != CODE_DONE) return code;
    r->digest = outputs_digest(outputs, e->model).state;
    outputs_free(outputs, e->model);
    uint64_t before = n_launched(e->context);
    code = measure_once(e->session, inputs, e->model, NULL);
    r->steps = n_launched(e->context) - before;
    return code;
}

static int measure_memory(const engine *e, bench_result *r)
{
    clg_counters counters = {.struct_size = sizeof counters};
    clg_memory_estimate memory = {.struct_size = sizeof memory};
    clg_status status = clg_context_counters(e->context, &counters);
    if (status == CLG_OK) status = clg_session_memory(e->session, &memory);
    if (status != CLG_OK) return fail_status(status, STAGE_WORK, NULL);
    r->peak_rss_bytes = peak_rss_bytes();
    r->device_bytes = counters.device_bytes_peak;
    r->weight_bytes = memory.weight_bytes;
    r->slab_bytes = memory.slab_bytes;
    r->live_bytes = memory.live_bytes;
    r->io_bytes = memory.io_bytes;
    return CODE_DONE;
}

/* Returns the selectors or ids of the engine's devices, joined by commas; freed by the caller. */
static char *name_devices(const engine *e, bool by_id)
{
    const size_t n = e->n_contexts ? e->n_contexts : 1;
    char *names = must_copy("");
    for (size_t i = 0; i < n; i++) {
        const clg_device_info *d = clg_context_device(e->contexts ? e->contexts[i] : e->context);
        char *longer = must_printf("%s%s%s", names, i ? "," : "", by_id ? d->id : d->selector);
        free(names);
        names = longer;
    }
    return names;
}

int bench_measure(const options *o, engine *e, const char *model, const input_set *inputs,
                  size_t batch, bench_result *out_result)
{
    input_set rows;
    variations varied = {0};
    times measured = {0};
    bench_result r = {.device = name_devices(e, true),
                      .selector = name_devices(e, false),
                      .model = model,
                      .batch = batch,
                      .precision = engine_precision(e->session),
                      .load_ms = e->load_ms};
    load how = {.warmup = o->has_warmup ? o->warmup : 3,
                .runs = o->runs,
                .concurrency = o->concurrency > 0 ? o->concurrency : 1};
    int code = inputs_with_batch(inputs, batch, &rows);
    if (code == CODE_DONE) code = variations_make(&rows, &varied);
    if (code == CODE_DONE) code = count_flops(e->model, &rows, &r.flops);
    if (code == CODE_DONE) code = first_runs(e, &rows, &r);
    if (code == CODE_DONE)
        code = measure_load(e->session, &varied, e->model, &how, &measured, &r.elapsed_ms);
    if (code == CODE_DONE) {
        r.runs = measured.count;
        r.latency = times_stats(&measured);
        r.throughput = how.concurrency > 1 ? (double)(batch * r.runs) * 1e3 / r.elapsed_ms
                                           : (double)batch * 1e3 / r.latency.median;
        code = measure_memory(e, &r);
    }
    *out_result = r;
    times_free(&measured);
    variations_free(&varied);
    inputs_free(&rows);
    return code;
}

/* ---- time on the device ---------------------------------------------------------------------- */

/* Measures the time that the device is busy during a run, in a session with profiling. */
static int measure_device_time(const clg_model *model, clg_session *session,
                               const input_set *inputs, bench_result *r)
{
    times sums = {0};
    int code = CODE_DONE;
    for (size_t i = 0; i < 6 && code == CODE_DONE; i++) {
        clg_step_profile *steps;
        size_t n;
        double sum_us = 0;
        code = measure_once(session, inputs, model, NULL);
        if (code != CODE_DONE) break;
        clg_status status = clg_session_profile(session, &steps, &n);
        if (status != CLG_OK) {
            code = fail_status(status, STAGE_WORK, NULL);
            break;
        }
        for (size_t k = 0; k < n; k++) sum_us += steps[k].duration_us;
        clg_session_profile_free(steps, n);
        if (i > 0) times_add(&sums, sum_us / 1e3);
    }
    r->device_time = times_stats(&sums);
    r->has_device_time = sums.count > 0;
    times_free(&sums);
    return code;
}

int bench_measure_device_times(const options *o, clg_model *model, const input_set *inputs,
                               bench_result *results, size_t n)
{
    clg_context *context = NULL;
    clg_session *session = NULL;
    const clg_device_info device = {.selector = results->selector};
    int code = engine_open_context(o, &device, true, &context);
    if (code == CODE_DONE) code = engine_create_session(o, context, model, &session);
    for (size_t i = 0; i < n && code == CODE_DONE; i++) {
        input_set rows;
        code = inputs_with_batch(inputs, results[i].batch, &rows);
        if (code == CODE_DONE) code = measure_device_time(model, session, &rows, &results[i]);
        inputs_free(&rows);
    }
    clg_session_free(session);
    clg_context_free(context);
    return code;
}
