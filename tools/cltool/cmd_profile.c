/* SPDX-License-Identifier: Apache-2.0
 *
 * cltool profile: measures the time on the device of each step and of each operator.
 */
#include "cltool.h"

#include "host.h"
#include "measure.h"
#include "names.h"
#include "output.h"
#include "trace.h"

#include <stdlib.h>
#include <string.h>

#define DEFAULT_RUNS 10

/* A step and its times in all runs; the strings are borrowed from the session. */
typedef struct step_row {
    const char *node, *op_type, *kernel, *impl, *impls;
    double flops, bytes;
    times us;
    double median_us;
} step_row;

typedef struct operator_row {
    const char *op_type;
    size_t n_steps;
    double us, flops, bytes;
} operator_row;

typedef struct profile {
    const options *options;
    engine engine;
    input_set inputs;
    clg_measurement peaks;
    step_row *steps;
    size_t n_steps, n_runs;
    operator_row *operators;
    size_t n_operators;
    times host_ms, device_ms;
    double total_us;
    trace events;
} profile;

/* ---- measuring ------------------------------------------------------------------------------- */

static void start_rows(profile *p, const clg_step_profile *steps, size_t n)
{
    for (size_t i = 0; i < p->n_steps; i++) times_free(&p->steps[i].us);
    free(p->steps);
    p->steps = must_alloc(n, sizeof *p->steps);
    p->n_steps = n;
    for (size_t i = 0; i < n; i++) {
        p->steps[i] = (step_row){.node = steps[i].node,
                                 .op_type = steps[i].op_type,
                                 .kernel = steps[i].kernel,
                                 .impl = steps[i].impl,
                                 .impls = steps[i].impls,
                                 .flops = steps[i].flops,
                                 .bytes = steps[i].bytes};
    }
}

static int add_run(profile *p, double started_ms)
{
    clg_step_profile *steps;
    size_t n;
    clg_status status = clg_session_profile(p->engine.session, &steps, &n);
    if (status != CLG_OK) return fail_status(status, STAGE_WORK, NULL);
    double sum = 0;
    if (n != p->n_steps) start_rows(p, steps, n);
    for (size_t i = 0; i < n; i++) {
        p->steps[i].node = steps[i].node;
        p->steps[i].op_type = steps[i].op_type;
        p->steps[i].kernel = steps[i].kernel;
        p->steps[i].impl = steps[i].impl;
        p->steps[i].impls = steps[i].impls;
        times_add(&p->steps[i].us, steps[i].duration_us);
        sum += steps[i].duration_us;
        trace_device(&p->events, steps[i].kernel, steps[i].node, steps[i].op_type,
                     started_ms * 1e3 + steps[i].start_us, steps[i].duration_us);
    }
    times_add(&p->device_ms, sum / 1e3);
    clg_session_profile_free(steps, n);
    return CODE_DONE;
}

static int run_once(profile *p, const char *name, bool measured)
{
    double start = now_ms(), ms;
    int code = measure_once(p->engine.session, &p->inputs, p->engine.model, &ms);
    if (code != CODE_DONE) return code;
    trace_host(&p->events, name, start * 1e3, ms * 1e3);
    if (!measured) return CODE_DONE;
    times_add(&p->host_ms, ms);
    return add_run(p, start);
}

static int measure_peaks(profile *p)
{
    p->peaks.struct_size = sizeof p->peaks;
    output_progress("measuring what the device can do", 0, 0);
    clg_status status = clg_context_measure(p->engine.context, &p->peaks);
    output_progress_clear();
    return status == CLG_OK ? CODE_DONE : fail_status(status, STAGE_WORK, NULL);
}

static int start(profile *p)
{
    double before = now_ms();
    int code =
        p->options->trace ? file_may_be_written(p->options->trace, p->options->force) : CODE_DONE;
    if (code == CODE_DONE) code = engine_load(p->options, p->options->arguments[0], &p->engine);
    trace_host(&p->events, "load model", before * 1e3, (now_ms() - before) * 1e3);
    if (code == CODE_DONE)
        code = inputs_gather(p->options, p->engine.model, INPUTS_FILL, &p->inputs);
    before = now_ms();
    if (code == CODE_DONE) code = engine_start_all(p->options, true, &p->engine);
    trace_host(&p->events, "open device, create session", before * 1e3, (now_ms() - before) * 1e3);
    if (code == CODE_DONE) code = run_once(p, "first run", false);
    if (code == CODE_DONE) code = run_once(p, "second run", false);
    return code;
}

/* ---- sums ------------------------------------------------------------------------------------ */

static operator_row *row_of(profile *p, const char *op_type)
{
    for (size_t i = 0; i < p->n_operators; i++) {
        if (strcmp(p->operators[i].op_type, op_type) == 0) return &p->operators[i];
    }
    p->operators = must_resize(p->operators, p->n_operators + 1, sizeof *p->operators);
    p->operators[p->n_operators] = (operator_row){.op_type = op_type};
    return &p->operators[p->n_operators++];
}

static int slowest_first(const void *a, const void *b)
{
    const operator_row *x = a, *y = b;
    return (x->us < y->us) - (x->us > y->us);
}

static void sum_up(profile *p)
{
    for (size_t i = 0; i < p->n_steps; i++) {
        step_row *s = &p->steps[i];
        s->median_us = times_stats(&s->us).median;
        p->total_us += s->median_us;
        operator_row *row = row_of(p, s->op_type);
        row->n_steps++;
        row->us += s->median_us;
        row->flops += s->flops;
        row->bytes += s->bytes;
    }
    if (p->n_operators > 0)
        qsort(p->operators, p->n_operators, sizeof *p->operators, slowest_first);
}

static double share(const profile *p, double us) { return p->total_us > 0 ? us / p->total_us : 0; }

/* Returns amount / us in billions per second; 0 when no time was measured. */
static double giga_rate(double amount, double us) { return us > 0 ? amount / (us * 1e3) : 0; }

/* Returns the fraction of the device's peak that a step reaches: the larger one of its fractions of
 * the peak FLOP rate and of the peak memory bandwidth. */
static double of_peak(const profile *p, double flops, double bytes, double us)
{
    double by_flops = p->peaks.fp32_gflops > 0 ? giga_rate(flops, us) / p->peaks.fp32_gflops : 0;
    double by_bytes =
        p->peaks.memory_gbytes_per_s > 0 ? giga_rate(bytes, us) / p->peaks.memory_gbytes_per_s : 0;
    return by_flops > by_bytes ? by_flops : by_bytes;
}

/* ---- printing -------------------------------------------------------------------------------- */

static void number_cell(table *t, double number, const char *unit)
{
    if (number > 0) {
        table_cell(t, MARK_NONE, "%.1f%s", number, unit);
    } else {
        table_cell(t, MARK_NONE, "-"); /* not counted */
    }
}

static void rate_cells(const profile *p, table *t, double flops, double bytes, double us)
{
    table_cell(t, MARK_NONE, "%.1f", us);
    table_cell(t, MARK_NONE, "%.1f%%", 100 * share(p, us));
    number_cell(t, giga_rate(flops, us), "");
    number_cell(t, giga_rate(bytes, us), "");
    number_cell(t, 100 * of_peak(p, flops, bytes, us), "%");
}

static void print_text(const profile *p)
{
    static const char *const step_headers[] = {">step",  "node",     "operator", "kernel",  ">us",
                                               ">share", ">GFLOP/s", ">GB/s",    ">of peak"};
    static const char *const operator_headers[] = {"operator", ">steps", ">us",     ">share",
                                                   ">GFLOP/s", ">GB/s",  ">of peak"};
    table t;
    table_begin(&t, 9, step_headers);
    for (size_t i = 0; i < p->n_steps; i++) {
        const step_row *s = &p->steps[i];
        table_cell(&t, MARK_NONE, "%zu", i);
        table_cell(&t, MARK_NONE, "%s", printable(s->node));
        table_cell(&t, MARK_NONE, "%s", printable(s->op_type));
        table_cell(&t, MARK_NONE, "%s", printable(s->kernel));
        rate_cells(p, &t, s->flops, s->bytes, s->median_us);
    }
    table_print(&t, stdout, 0);
    (void)putchar('\n');
    table_begin(&t, 7, operator_headers);
    for (size_t i = 0; i < p->n_operators; i++) {
        const operator_row *row = &p->operators[i];
        table_cell(&t, MARK_NONE, "%s", printable(row->op_type));
        table_cell(&t, MARK_NONE, "%zu", row->n_steps);
        rate_cells(p, &t, row->flops, row->bytes, row->us);
    }
    table_print(&t, stdout, 0);
    times host = p->host_ms, device = p->device_ms;
    (void)printf(
        "\n%zu runs: median %.4g ms from host to host, %.4g ms on the device in %zu steps\n",
        p->n_runs, times_stats(&host).median, times_stats(&device).median, p->n_steps);
    (void)printf(
        "the device can do: %.0f GFLOP/s in fp32, %.1f GB/s of memory, a launch in %.1f us\n",
        p->peaks.fp32_gflops, p->peaks.memory_gbytes_per_s, p->peaks.launch_us);
}

static json_t *rates_json(const profile *p, double flops, double bytes, double us)
{
    return json_pack("{s:f, s:f, s:f, s:f, s:f}", "us", us, "share", share(p, us), "gflops_per_s",
                     giga_rate(flops, us), "gbytes_per_s", giga_rate(bytes, us), "of_peak",
                     of_peak(p, flops, bytes, us));
}

/* Returns the names of all implementations of the step's node. */
static json_t *impls_json(const step_row *s)
{
    json_t *impls = json_array();
    char *names = must_copy(s->impls ? s->impls : s->impl), *rest = names, *name;
    while ((name = split_next(&rest, ' ')) != NULL)
        (void)json_array_append_new(impls, json_string(name));
    free(names);
    return impls;
}

static int print_json(const profile *p)
{
    json_t *steps = json_array(), *operators = json_array();
    for (size_t i = 0; i < p->n_steps; i++) {
        const step_row *s = &p->steps[i];
        json_t *json =
            json_pack("{s:o, s:o, s:o, s:s, s:o}", "node", output_json_text(s->node), "op_type",
                      output_json_text(s->op_type), "kernel", output_json_text(s->kernel),
                      "implementation", s->impl, "implementations", impls_json(s));
        json_t *rates = rates_json(p, s->flops, s->bytes, s->median_us);
        (void)json_object_update(json, rates);
        json_decref(rates);
        (void)json_array_append_new(steps, json);
    }
    for (size_t i = 0; i < p->n_operators; i++) {
        const operator_row *row = &p->operators[i];
        json_t *json = json_pack("{s:o, s:I}", "op_type", output_json_text(row->op_type), "steps",
                                 (json_int_t)row->n_steps);
        json_t *rates = rates_json(p, row->flops, row->bytes, row->us);
        (void)json_object_update(json, rates);
        json_decref(rates);
        (void)json_array_append_new(operators, json);
    }
    times host = p->host_ms, device = p->device_ms;
    return output_json(json_pack(
        "{s:o, s:o, s:s, s:I, s:f, s:f, s:{s:f, s:f, s:f}, s:o, s:o}", "model",
        output_json_text(p->engine.model_path), "device",
        output_json_text(engine_device_id(&p->engine)), "precision",
        engine_precision(p->engine.session), "runs", (json_int_t)p->n_runs, "latency_ms",
        times_stats(&host).median, "device_ms", times_stats(&device).median, "peaks", "fp32_gflops",
        p->peaks.fp32_gflops, "memory_gbytes_per_s", p->peaks.memory_gbytes_per_s, "launch_us",
        p->peaks.launch_us, "steps", steps, "operators", operators));
}

/* ---- the command ----------------------------------------------------------------------------- */

static void release(profile *p)
{
    for (size_t i = 0; i < p->n_steps; i++) times_free(&p->steps[i].us);
    free(p->steps);
    free(p->operators);
    times_free(&p->host_ms);
    times_free(&p->device_ms);
    trace_free(&p->events);
    inputs_free(&p->inputs);
    engine_close(&p->engine);
}

int cmd_profile(const options *o)
{
    profile p = {.options = o, .n_runs = o->runs > 0 ? o->runs : DEFAULT_RUNS};
    trace_begin(&p.events, o->trace != NULL);
    int code = start(&p);
    for (size_t i = 0; i < p.n_runs && code == CODE_DONE; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "run %zu", i);
        output_progress("run", i + 1, p.n_runs);
        code = run_once(&p, name, true);
    }
    output_progress_clear();
    if (code == CODE_DONE) engine_note_parts(p.options, p.engine.session);
    if (code == CODE_DONE) code = measure_peaks(&p);
    if (code == CODE_DONE) sum_up(&p);
    if (code == CODE_DONE && o->trace) code = trace_write(&p.events, o->trace);
    if (code == CODE_DONE && o->json) {
        code = print_json(&p);
    } else if (code == CODE_DONE) {
        print_text(&p);
    }
    release(&p);
    return code;
}
