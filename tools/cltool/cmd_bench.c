/* SPDX-License-Identifier: Apache-2.0
 *
 * cltool bench: measures latency and throughput for each batch size and each device, or compares
 * two devices that run alternately.
 */
#include "cltool.h"

#include "compare.h"
#include "host.h"
#include "measure.h"
#include "output.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Results of one device with one batch size. */
typedef struct bench_result {
    char *device, *selector;
    size_t batch, runs;
    double load_ms, first_run_ms;
    const char *precision;
    time_stats latency, device_time;
    bool has_device_time;
    double elapsed_ms, throughput, flops; /* throughput: rows per second; flops: of one run */
    uint64_t peak_rss_bytes, device_bytes, steps; /* steps: kernels and CLBlast calls of one run */
    uint64_t weight_bytes, slab_bytes, live_bytes, io_bytes;
    uint64_t digest;
} bench_result;

typedef struct comparison_result {
    bool is_done;
    char *device, *selector;
    const char *precision;
    time_stats latency;
    double speedup, max_abs, max_rel;
    bool holds;
    char text[640];
} comparison_result;

typedef struct bench {
    const options *options;
    engine engine; /* the model, and the context and session of the current device */
    input_set inputs;
    size_t *batches, n_batches;
    device_choice choice;
    bench_result *results;
    size_t n_results;
    comparison_result compared;
} bench;

/* ---- one result ------------------------------------------------------------------------------ */

static int count_flops(const bench *b, const input_set *inputs, double *out_flops)
{
    size_t n;
    clg_shape_override *shapes = inputs_shapes(inputs, &n);
    clg_status status = clg_model_flops(b->engine.model, shapes, n, out_flops);
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
static int first_runs(const bench *b, const input_set *inputs, bench_result *r)
{
    clg_value **outputs;
    int code = measure_once(b->engine.session, inputs, b->engine.model, &r->first_run_ms);
    if (code == CODE_DONE) code = outputs_fetch(b->engine.session, b->engine.model, &outputs);
    if (code != CODE_DONE) return code;
    r->digest = outputs_digest(outputs, b->engine.model).state;
    outputs_free(outputs, b->engine.model);
    uint64_t before = n_launched(b->engine.context);
    code = measure_once(b->engine.session, inputs, b->engine.model, NULL);
    r->steps = n_launched(b->engine.context) - before;
    return code;
}

/* Measures the time that the device is busy during a run, in a session with profiling. */
static int measure_device_time(const bench *b, clg_session *session, const input_set *inputs,
                               bench_result *r)
{
    times sums = {0};
    int code = CODE_DONE;
    for (size_t i = 0; i < 6 && code == CODE_DONE; i++) {
        clg_step_profile *steps;
        size_t n;
        double sum_us = 0;
        code = measure_once(session, inputs, b->engine.model, NULL);
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

/* Measures the device time of each batch size in a separate context with profiling. No other
 * context is open meanwhile, so that the weights are on the device only once. */
static int measure_device_times(bench *b, bench_result *results)
{
    clg_context *context = NULL;
    clg_session *session = NULL;
    const clg_device_info device = {.selector = results->selector};
    int code = engine_open_context(b->options, &device, true, &context);
    if (code == CODE_DONE)
        code = engine_create_session(b->options, context, b->engine.model, &session);
    for (size_t i = 0; i < b->n_batches && code == CODE_DONE; i++) {
        input_set inputs;
        code = inputs_with_batch(&b->inputs, b->batches[i], &inputs);
        if (code == CODE_DONE) code = measure_device_time(b, session, &inputs, &results[i]);
        inputs_free(&inputs);
    }
    clg_session_free(session);
    clg_context_free(context);
    return code;
}

static int measure_memory(const bench *b, bench_result *r)
{
    clg_counters counters = {.struct_size = sizeof counters};
    clg_memory_estimate memory = {.struct_size = sizeof memory};
    clg_status status = clg_context_counters(b->engine.context, &counters);
    if (status == CLG_OK) status = clg_session_memory(b->engine.session, &memory);
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

static int measure_batch(bench *b, size_t batch)
{
    input_set inputs;
    variations varied = {0};
    times measured = {0};
    bench_result r = {.device = name_devices(&b->engine, true),
                      .selector = name_devices(&b->engine, false),
                      .batch = batch,
                      .precision = engine_precision(b->engine.session),
                      .load_ms = b->engine.load_ms};
    load how = {.warmup = b->options->has_warmup ? b->options->warmup : 3,
                .runs = b->options->runs,
                .concurrency = b->options->concurrency > 0 ? b->options->concurrency : 1};
    int code = inputs_with_batch(&b->inputs, batch, &inputs);
    if (code == CODE_DONE) code = variations_make(&inputs, &varied);
    if (code == CODE_DONE) code = count_flops(b, &inputs, &r.flops);
    if (code == CODE_DONE) code = first_runs(b, &inputs, &r);
    if (code == CODE_DONE)
        code = measure_load(b->engine.session, &varied, b->engine.model, &how, &measured,
                            &r.elapsed_ms);
    if (code == CODE_DONE) {
        r.runs = measured.count;
        r.latency = times_stats(&measured);
        r.throughput = how.concurrency > 1 ? (double)(batch * r.runs) * 1e3 / r.elapsed_ms
                                           : (double)batch * 1e3 / r.latency.median;
        code = measure_memory(b, &r);
    }
    b->results = must_resize(b->results, b->n_results + 1, sizeof *b->results);
    b->results[b->n_results++] = r;
    times_free(&measured);
    variations_free(&varied);
    inputs_free(&inputs);
    return code;
}

/* Opens one device; NULL: all that -d selects, for a session over them. */
static int open_device(bench *b, const clg_device_info *device, double model_ms)
{
    if (!device) {
        b->engine.load_ms = model_ms;
        return engine_start_all(b->options, false, &b->engine);
    }
    int code = engine_open_device(b->options, device, false, &b->engine.context);
    double start = now_ms();
    if (code == CODE_DONE)
        code = engine_create_session(b->options, b->engine.context, b->engine.model,
                                     &b->engine.session);
    b->engine.load_ms = model_ms + now_ms() - start;
    return code;
}

static void close_device(bench *b)
{
    engine rest = b->engine;
    rest.model = NULL;
    engine_close(&rest);
    b->engine = (engine){.model = b->engine.model, .model_path = b->engine.model_path};
}

static int measure_device(bench *b, const clg_device_info *device, double model_ms)
{
    size_t first = b->n_results;
    int code = open_device(b, device, model_ms);
    for (size_t i = 0; i < b->n_batches && code == CODE_DONE; i++)
        code = measure_batch(b, b->batches[i]);
    if (code == CODE_DONE) engine_note_parts(b->options, b->engine.session);
    const bool is_one = b->engine.n_contexts <= 1;
    close_device(b);
    return code == CODE_DONE && is_one ? measure_device_times(b, &b->results[first]) : code;
}

/* ---- two devices in alternation -------------------------------------------------------------- */

static int compare_outputs(const bench *b, clg_session *other, comparison_result *c)
{
    clg_value **want = NULL, **got = NULL;
    int code = outputs_fetch(b->engine.session, b->engine.model, &want);
    if (code == CODE_DONE) code = outputs_fetch(other, b->engine.model, &got);
    c->holds = true;
    for (size_t i = 0; i < clg_model_n_outputs(b->engine.model) && code == CODE_DONE; i++) {
        value_stats s = stats_of(want[i]);
        double largest = isnan(s.mean) ? 0 : fmax(fabs(s.min), fabs(s.max));
        comparison each = compare_values(got[i], want[i], b->options->rtol,
                                         options_atol(b->options, 1e-4 * largest));
        c->max_abs = fmax(c->max_abs, each.max_abs);
        c->max_rel = fmax(c->max_rel, each.max_rel);
        if (c->holds && !each.holds) {
            (void)snprintf(c->text, sizeof c->text, "output '%s': %.400s",
                           printable(clg_model_output(b->engine.model, i)->name), each.text);
        }
        c->holds &= each.holds;
    }
    outputs_free(want, b->engine.model);
    outputs_free(got, b->engine.model);
    return code;
}

/* Runs the two sessions alternately with varied inputs, and records the times of their runs in mine
 * and theirs. Then runs each once with the inputs as given, for comparing outputs. */
static int run_in_turn(const bench *b, clg_session *other, const variations *varied, times *mine,
                       times *theirs)
{
    size_t warmup = b->options->has_warmup ? b->options->warmup : 3;
    double start = now_ms(), ms;
    int code = CODE_DONE;
    for (size_t i = 0; code == CODE_DONE; i++) {
        bool measured = i >= warmup;
        if (i == warmup) start = now_ms();
        size_t n = measured ? i - warmup : 0;
        if (measured &&
            (b->options->runs > 0 ? n >= b->options->runs : n >= 10 && now_ms() - start > 4000))
            break;
        const input_set *inputs = &varied->sets[i % N_VARIATIONS];
        code = measure_once(b->engine.session, inputs, b->engine.model, &ms);
        if (code == CODE_DONE && measured) times_add(mine, ms);
        if (code == CODE_DONE) code = measure_once(other, inputs, b->engine.model, &ms);
        if (code == CODE_DONE && measured) times_add(theirs, ms);
    }
    if (code == CODE_DONE)
        code = measure_once(b->engine.session, &varied->sets[0], b->engine.model, NULL);
    if (code == CODE_DONE) code = measure_once(other, &varied->sets[0], b->engine.model, NULL);
    return code;
}

static int compare_devices(bench *b, const options *other, const clg_device_info *device)
{
    clg_context *context = NULL;
    clg_session *session = NULL;
    input_set inputs = {0};
    variations varied = {0};
    times mine = {0}, theirs = {0};
    comparison_result *c = &b->compared;
    c->device = must_copy(device->id);
    c->selector = must_copy(device->selector);
    int code = engine_open_device(other, device, false, &context);
    if (code == CODE_DONE) code = engine_create_session(other, context, b->engine.model, &session);
    if (code == CODE_DONE) c->precision = engine_precision(session);
    if (code == CODE_DONE) code = inputs_with_batch(&b->inputs, b->batches[0], &inputs);
    if (code == CODE_DONE) code = variations_make(&inputs, &varied);
    if (code == CODE_DONE) code = run_in_turn(b, session, &varied, &mine, &theirs);
    if (code == CODE_DONE) code = compare_outputs(b, session, c);
    if (code == CODE_DONE) {
        b->results[0].latency = times_stats(&mine);
        b->results[0].runs = mine.count;
        b->results[0].throughput = (double)b->results[0].batch * 1e3 / b->results[0].latency.median;
        c->latency = times_stats(&theirs);
        c->speedup = b->results[0].latency.median / c->latency.median;
        c->is_done = true;
    }
    times_free(&mine);
    times_free(&theirs);
    variations_free(&varied);
    inputs_free(&inputs);
    clg_session_free(session);
    clg_context_free(context);
    return code;
}

/* Compares with the device and precision that --compare names: "SELECTOR[@PRECISION]". */
static int compare(bench *b)
{
    char *selector = must_copy(b->options->compare), *at = strrchr(selector, '@');
    device_choice choice;
    options other = *b->options;
    int code = CODE_DONE;
    if (at) {
        *at = '\0';
        other.precision = at + 1;
        code = engine_check(&other);
    }
    if (code == CODE_DONE)
        code = devices_choose(b->options, selector[0] ? selector : NULL, &choice);
    if (code == CODE_DONE) {
        code = compare_devices(b, &other, devices_chosen(&choice, 0));
        devices_free(&choice);
    }
    free(selector);
    return code;
}

/* ---- summary --------------------------------------------------------------------------------- */

static const bench_result *result_of(const bench *b, size_t device, size_t batch)
{
    return &b->results[device * b->n_batches + batch];
}

static size_t fastest(const bench *b, size_t n_devices, size_t batch)
{
    size_t best = 0;
    for (size_t d = 1; d < n_devices; d++) {
        if (result_of(b, d, batch)->throughput > result_of(b, best, batch)->throughput) best = d;
    }
    return best;
}

/* Returns the line that names the fastest batch size or device; the caller frees it with free(). */
static char *summary(const bench *b)
{
    size_t n_devices = b->n_results / b->n_batches, best_batch = 0;
    if (n_devices == 1) {
        for (size_t i = 1; i < b->n_batches; i++) {
            if (result_of(b, 0, i)->throughput > result_of(b, 0, best_batch)->throughput)
                best_batch = i;
        }
        return must_printf("throughput is largest with batch %zu: %s a second",
                           b->batches[best_batch],
                           rate_text(result_of(b, 0, best_batch)->throughput));
    }
    size_t first = fastest(b, n_devices, 0), change = 0;
    while (change < b->n_batches && fastest(b, n_devices, change) == first) change++;
    if (change == b->n_batches) {
        return must_printf("device %s is the fastest%s", result_of(b, first, 0)->selector,
                           b->n_batches > 1 ? " with every batch" : "");
    }
    return must_printf("device %s is faster from batch %zu",
                       result_of(b, fastest(b, n_devices, change), 0)->selector,
                       b->batches[change]);
}

/* ---- printing -------------------------------------------------------------------------------- */

static json_t *latency_json(const time_stats *t)
{
    return json_pack("{s:f, s:f, s:f, s:f, s:f}", "min", t->min, "median", t->median, "p90", t->p90,
                     "p99", t->p99, "mean", t->mean);
}

static json_t *result_json(const bench *b, const bench_result *r)
{
    char hex[24];
    (void)snprintf(hex, sizeof hex, "%016llx", (unsigned long long)r->digest);
    json_t *device_ms = NULL; /* of several devices there is none */
    if (r->has_device_time)
        device_ms =
            json_pack("{s:f, s:f}", "min", r->device_time.min, "median", r->device_time.median);
    return json_pack("{s:o, s:o, s:s, s:I, s:I, s:f, s:f, s:o, s:o*, s:f, s:f, s:f, s:I, s:I, s:I, "
                     "s:I, s:I, s:I, "
                     "s:I, s:s}",
                     "model", output_json_text(b->engine.model_path), "device",
                     output_json_text(r->device), "precision", r->precision, "batch",
                     (json_int_t)r->batch, "runs", (json_int_t)r->runs, "load_ms", r->load_ms,
                     "first_run_ms", r->first_run_ms, "latency_ms", latency_json(&r->latency),
                     "device_ms", device_ms, "throughput_per_s", r->throughput, "flops", r->flops,
                     "gflops_per_s", r->flops / (r->latency.median * 1e6), "peak_rss_bytes",
                     (json_int_t)r->peak_rss_bytes, "device_bytes", (json_int_t)r->device_bytes,
                     "weight_bytes", (json_int_t)r->weight_bytes, "slab_bytes",
                     (json_int_t)r->slab_bytes, "live_bytes", (json_int_t)r->live_bytes, "io_bytes",
                     (json_int_t)r->io_bytes, "steps", (json_int_t)r->steps, "outputs_digest", hex);
}

static json_t *comparison_json(const comparison_result *c)
{
    return json_pack("{s:o, s:s, s:o, s:f, s:o, s:o, s:b}", "device", output_json_text(c->device),
                     "precision", c->precision, "latency_ms", latency_json(&c->latency), "speedup",
                     c->speedup, "max_abs_diff", output_json_real(c->max_abs), "max_rel_diff",
                     output_json_real(c->max_rel), "holds", c->holds);
}

static int print_json(const bench *b)
{
    json_t *json = result_json(b, &b->results[0]);
    if (b->n_results > 1 || b->options->each) {
        char *text = summary(b);
        json_t *list = json_array();
        for (size_t i = 0; i < b->n_results; i++)
            (void)json_array_append_new(list, result_json(b, &b->results[i]));
        json_decref(json);
        json = json_pack("{s:o, s:s}", "results", list, "verdict", text);
        free(text);
    }
    if (b->compared.is_done)
        (void)json_object_set_new(json, "compare", comparison_json(&b->compared));
    return output_json(json);
}

static void print_one(const bench *b, const bench_result *r)
{
    const time_stats *t = &r->latency;
    (void)printf("%s, device %s, fp32, batch %zu, %zu runs\n", b->engine.model_path, r->selector,
                 r->batch, r->runs);
    (void)printf("  latency     median %.4g ms (min %.4g, mean %.4g, p90 %.4g, p99 %.4g)\n",
                 t->median, t->min, t->mean, t->p90, t->p99);
    if (r->has_device_time)
        (void)printf("  on device   median %.4g ms (min %.4g), %llu steps\n", r->device_time.median,
                     r->device_time.min, (unsigned long long)r->steps);
    (void)printf("  throughput  %s a second, %.3g GFLOP/s at %s a run\n", rate_text(r->throughput),
                 r->flops / (t->median * 1e6), flops_text(r->flops));
    (void)printf("  start       load %.4g ms, first run %.4g ms\n", r->load_ms, r->first_run_ms);
    (void)printf("  memory      %s on the device, %s of the process at most\n",
                 bytes_text((double)r->device_bytes), bytes_text((double)r->peak_rss_bytes));
    (void)printf("  outputs     digest %016llx\n", (unsigned long long)r->digest);
}

static void print_many(const bench *b)
{
    static const char *const headers[] = {"device",     ">batch",   ">runs",
                                          ">median ms", ">p90 ms",  ">on device ms",
                                          ">a second",  ">GFLOP/s", ">first run ms"};
    char *text = summary(b);
    table t;
    table_begin(&t, 9, headers);
    for (size_t i = 0; i < b->n_results; i++) {
        const bench_result *r = &b->results[i];
        table_cell(&t, MARK_NONE, "%s", r->selector);
        table_cell(&t, MARK_NONE, "%zu", r->batch);
        table_cell(&t, MARK_NONE, "%zu", r->runs);
        table_cell(&t, MARK_NONE, "%.4g", r->latency.median);
        table_cell(&t, MARK_NONE, "%.4g", r->latency.p90);
        table_cell(&t, MARK_NONE, "%.4g", r->device_time.median);
        table_cell(&t, MARK_NONE, "%s", rate_text(r->throughput));
        table_cell(&t, MARK_NONE, "%.3g", r->flops / (r->latency.median * 1e6));
        table_cell(&t, MARK_NONE, "%.4g", r->first_run_ms);
    }
    table_print(&t, stdout, 0);
    (void)printf("%s\n", text);
    free(text);
}

static void print_text(const bench *b)
{
    if (b->n_results > 1 || b->options->each) {
        print_many(b);
    } else {
        print_one(b, &b->results[0]);
    }
    const comparison_result *c = &b->compared;
    if (!c->is_done) return;
    (void)printf(
        "compared with device %s: median %.4g ms there, %.3g times as fast; largest difference "
        "%.3g, relative %.3g: ",
        c->selector, c->latency.median, c->speedup, c->max_abs, c->max_rel);
    output_mark(stdout, c->holds ? MARK_GOOD : MARK_BAD, c->holds ? "the same" : "NOT the same");
    (void)printf("%s%s\n", c->holds ? "" : ", ", c->holds ? "" : c->text);
}

/* ---- the command ----------------------------------------------------------------------------- */

static int prepare(bench *b)
{
    const options *o = b->options;
    if (o->compare && (o->each || (o->batch && strchr(o->batch, ',')))) {
        return fail_usage("--compare takes one device and one batch at a time");
    }
    if (o->each && o->split)
        return fail_usage("--each takes one device at a time, without --split");
    int code = engine_load(o, o->arguments[0], &b->engine);
    if (code == CODE_DONE) code = inputs_gather(o, b->engine.model, INPUTS_FILL, &b->inputs);
    if (code == CODE_DONE && o->batch)
        code = option_sizes("--batch", o->batch, &b->batches, &b->n_batches);
    if (code == CODE_DONE && !o->batch) {
        b->batches = must_alloc(1, sizeof *b->batches);
        b->batches[0] = inputs_batch(&b->inputs);
        b->n_batches = 1;
    }
    if (code == CODE_DONE && o->each)
        code = devices_choose(o, o->device ? NULL : "all", &b->choice);
    return code;
}

static int run_all(bench *b)
{
    double model_ms = b->engine.load_ms;
    size_t n = b->options->each ? b->choice.n_chosen : 1;
    int code = CODE_DONE;
    for (size_t i = 0; i < n && code == CODE_DONE; i++)
        code = measure_device(b, b->options->each ? devices_chosen(&b->choice, i) : NULL, model_ms);
    if (code != CODE_DONE || !b->options->compare) return code;
    code = open_device(b, NULL, model_ms);
    return code == CODE_DONE ? compare(b) : code;
}

static void release(bench *b)
{
    for (size_t i = 0; i < b->n_results; i++) {
        free(b->results[i].device);
        free(b->results[i].selector);
    }
    free(b->results);
    free(b->compared.device);
    free(b->compared.selector);
    free(b->batches);
    devices_free(&b->choice);
    inputs_free(&b->inputs);
    engine_close(&b->engine);
}

int cmd_bench(const options *o)
{
    bench b = {.options = o};
    int code = prepare(&b);
    if (code == CODE_DONE) code = run_all(&b);
    if (code == CODE_DONE && o->json) {
        code = print_json(&b);
    } else if (code == CODE_DONE) {
        print_text(&b);
    }
    if (code == CODE_DONE && b.compared.is_done && !b.compared.holds) code = CODE_WORK;
    release(&b);
    return code;
}
