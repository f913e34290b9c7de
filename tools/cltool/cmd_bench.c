/* SPDX-License-Identifier: Apache-2.0
 *
 * cltool bench: measures latency and throughput for each batch size and each device, or compares
 * two devices that run alternately.
 */
#include "cltool.h"

#include "bench_run.h"
#include "bench_suite.h"
#include "compare.h"
#include "host.h"
#include "measure.h"
#include "output.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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
    bench_results results;
    comparison_result compared;
} bench;

/* ---- one device ------------------------------------------------------------------------------ */

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

/* Adds the devices of the session to those that results were measured with, and measures the peaks
 * of a single one with --measure. */
static int describe_devices(bench *b)
{
    const engine *e = &b->engine;
    const size_t n = e->contexts ? e->n_contexts : 1;
    int code = CODE_DONE;
    for (size_t i = 0; i < n && code == CODE_DONE; i++) {
        clg_context *context = e->contexts ? e->contexts[i] : e->context;
        bench_device *d = bench_results_add_device(&b->results, clg_context_device(context));
        if (b->options->measure) code = bench_device_measure(d, context);
    }
    return code;
}

static int measure_batch(bench *b, size_t batch)
{
    bench_result r;
    const bool is_one = b->engine.n_contexts <= 1;
    const int code =
        bench_measure(b->options, &b->engine, b->engine.model_path, &b->inputs, batch, &r);
    if (is_one)
        r.peak_gflops =
            bench_device_peak(&b->results.devices[b->results.n_devices - 1], r.precision);
    (void)bench_results_add(&b->results, r);
    return code;
}

static int measure_device(bench *b, const clg_device_info *device, double model_ms)
{
    size_t first = b->results.count;
    int code = open_device(b, device, model_ms);
    if (code == CODE_DONE) code = describe_devices(b);
    for (size_t i = 0; i < b->n_batches && code == CODE_DONE; i++)
        code = measure_batch(b, b->batches[i]);
    if (code == CODE_DONE) engine_note_parts(b->options, b->engine.session);
    const bool is_one = b->engine.n_contexts <= 1;
    close_device(b);
    if (code != CODE_DONE || !is_one) return code;
    return bench_measure_device_times(b->options, b->engine.model, &b->inputs,
                                      &b->results.items[first], b->n_batches);
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
        b->results.items[0].latency = times_stats(&mine);
        b->results.items[0].runs = mine.count;
        b->results.items[0].throughput =
            (double)b->results.items[0].batch * 1e3 / b->results.items[0].latency.median;
        c->latency = times_stats(&theirs);
        c->speedup = b->results.items[0].latency.median / c->latency.median;
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
    return &b->results.items[device * b->n_batches + batch];
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
    size_t n_devices = b->results.count / b->n_batches, best_batch = 0;
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

static json_t *comparison_json(const comparison_result *c)
{
    return json_pack("{s:o, s:s, s:o, s:f, s:o, s:o, s:b}", "device", output_json_text(c->device),
                     "precision", c->precision, "latency_ms", bench_latency_json(&c->latency),
                     "speedup", c->speedup, "max_abs_diff", output_json_real(c->max_abs),
                     "max_rel_diff", output_json_real(c->max_rel), "holds", c->holds);
}

static json_t *document_of(const bench *b)
{
    json_t *json = bench_result_json(&b->results.items[0]);
    if (b->results.count > 1 || b->options->each) {
        char *text = summary(b);
        json_t *list = json_array();
        for (size_t i = 0; i < b->results.count; i++)
            (void)json_array_append_new(list, bench_result_json(&b->results.items[i]));
        json_decref(json);
        json = json_pack("{s:o, s:s}", "results", list, "verdict", text);
        free(text);
    }
    if (b->compared.is_done)
        (void)json_object_set_new(json, "compare", comparison_json(&b->compared));
    if (b->options->measure) {
        json_t *environment = bench_environment_json(&b->results);
        (void)json_object_update(json, environment);
        json_decref(environment);
    }
    return json;
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
                 bench_result_gflops(r), flops_text(r->flops));
    if (r->peak_gflops > 0)
        (void)printf("  of peak     %.1f%% of %.0f GFLOP/s\n", 100 * bench_result_share(r),
                     r->peak_gflops);
    (void)printf("  start       load %.4g ms, first run %.4g ms\n", r->load_ms, r->first_run_ms);
    (void)printf("  memory      %s on the device, %s of the process at most\n",
                 bytes_text((double)r->device_bytes), bytes_text((double)r->peak_rss_bytes));
    (void)printf("  outputs     digest %016llx\n", (unsigned long long)r->digest);
}

static void print_many(const bench *b)
{
    char *text = summary(b);
    if (b->options->measure) bench_print_environment(&b->results);
    bench_print_table(&b->results);
    (void)printf("%s\n", text);
    free(text);
}

static void print_text(const bench *b)
{
    if (b->results.count > 1 || b->options->each) {
        print_many(b);
    } else {
        print_one(b, &b->results.items[0]);
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
    bench_results_free(&b->results);
    free(b->compared.device);
    free(b->compared.selector);
    free(b->batches);
    devices_free(&b->choice);
    inputs_free(&b->inputs);
    engine_close(&b->engine);
}

/* Writes the results to -o and prints them; document: as JSON, which is released. */
static int give_results(const options *o, const bench_results *r, json_t *document)
{
    int code = CODE_DONE;
    if (o->output) code = bench_file_write(o->output, r, document);
    if (code == CODE_DONE && o->json) return output_json(document);
    json_decref(document);
    return code;
}

static int bench_model(const options *o)
{
    bench b = {.options = o};
    int code = prepare(&b);
    if (code == CODE_DONE) code = run_all(&b);
    if (code == CODE_DONE) code = give_results(o, &b.results, document_of(&b));
    if (code == CODE_DONE && !o->json) print_text(&b);
    if (code == CODE_DONE && b.compared.is_done && !b.compared.holds) code = CODE_WORK;
    release(&b);
    return code;
}

/* Measures built-in models; prints what there is also when one of them failed. */
static int bench_built_in(const options *o)
{
    bench_results r = {0};
    const int measured = bench_suite(o, o->arguments, o->n_arguments, &r);
    int code = measured;
    if (r.count > 0 && code != CODE_INTERRUPTED) {
        if (!o->json) {
            bench_print_environment(&r);
            (void)putchar('\n');
            bench_print_table(&r);
        }
        code = give_results(o, &r, bench_suite_json(&r));
    }
    bench_results_free(&r);
    return measured != CODE_DONE ? measured : code;
}

int cmd_bench(const options *o)
{
    if (!o->suite && o->n_arguments != 1) {
        const int code = o->n_arguments == 0
                             ? fail_usage("'cltool bench' needs a MODEL, or --suite")
                             : fail_usage("'cltool bench' does not know what to do with '%s'",
                                          printable(o->arguments[1]));
        fail_hint("'cltool bench --help'");
        return code;
    }
    const int code = o->output ? bench_file_check(o->output, o->force) : CODE_DONE;
    if (code != CODE_DONE) return code;
    return o->suite ? bench_built_in(o) : bench_model(o);
}
