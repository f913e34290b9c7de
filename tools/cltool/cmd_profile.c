/* SPDX-License-Identifier: Apache-2.0
 *
 * cltool profile: measures the time on the device of each step and of each operator.
 */
#include "cltool.h"

#include "host.h"
#include "html_profile.h"
#include "measure.h"
#include "names.h"
#include "output.h"
#include "profile_rows.h"
#include "trace.h"

#include <stdlib.h>
#include <string.h>

#define DEFAULT_RUNS 10

typedef struct profile {
    const options *options;
    engine engine;
    input_set inputs;
    profile_rows rows;
    host_event *hosts; /* what the host did, for a page */
    size_t n_hosts;
    trace events;
} profile;

/* ---- measuring ------------------------------------------------------------------------------- */

static void start_rows(profile_rows *r, const clg_step_profile *steps, size_t n)
{
    for (size_t i = 0; i < r->n_steps; i++) times_free(&r->steps[i].us);
    free(r->steps);
    r->steps = must_alloc(n, sizeof *r->steps);
    r->n_steps = n;
    for (size_t i = 0; i < n; i++)
        r->steps[i] = (step_row){.flops = steps[i].flops, .bytes = steps[i].bytes};
}

static int add_run(profile *p, double started_ms)
{
    profile_rows *r = &p->rows;
    clg_step_profile *steps;
    size_t n;
    clg_status status = clg_session_profile(p->engine.session, &steps, &n);
    if (status != CLG_OK) return fail_status(status, STAGE_WORK, NULL);
    double sum = 0;
    if (n != r->n_steps) start_rows(r, steps, n);
    for (size_t i = 0; i < n; i++) {
        step_row *row = &r->steps[i];
        row->node = steps[i].node;
        row->op_type = steps[i].op_type;
        row->kernel = steps[i].kernel;
        row->impl = steps[i].impl;
        row->impls = steps[i].impls;
        row->start_us = steps[i].start_us;
        row->last_us = steps[i].duration_us;
        times_add(&row->us, steps[i].duration_us);
        sum += steps[i].duration_us;
        trace_device(&p->events, steps[i].kernel, steps[i].node, steps[i].op_type,
                     started_ms * 1e3 + steps[i].start_us, steps[i].duration_us);
    }
    times_add(&r->device_ms, sum / 1e3);
    clg_session_profile_free(steps, n);
    return CODE_DONE;
}

/* Records what the host did, for the trace and the page. */
static void add_host(profile *p, const char *name, double start_ms, double ms)
{
    trace_host(&p->events, name, start_ms * 1e3, ms * 1e3);
    p->hosts = must_resize(p->hosts, p->n_hosts + 1, sizeof *p->hosts);
    host_event *e = &p->hosts[p->n_hosts++];
    *e = (host_event){.start_ms = start_ms, .ms = ms};
    (void)snprintf(e->name, sizeof e->name, "%s", name);
}

static int run_once(profile *p, const char *name, bool measured)
{
    double start = now_ms(), ms;
    int code = measure_once(p->engine.session, &p->inputs, p->engine.model, &ms);
    if (code != CODE_DONE) return code;
    add_host(p, name, start, ms);
    if (!measured) return CODE_DONE;
    p->rows.last_host_ms = ms;
    times_add(&p->rows.host_ms, ms);
    return add_run(p, start);
}

static int measure_peaks(profile *p)
{
    p->rows.peaks.struct_size = sizeof p->rows.peaks;
    output_progress("measuring what the device can do", 0, 0);
    clg_status status = clg_context_measure(p->engine.context, &p->rows.peaks);
    output_progress_clear();
    return status == CLG_OK ? CODE_DONE : fail_status(status, STAGE_WORK, NULL);
}

static int start(profile *p)
{
    double before = now_ms();
    int code =
        p->options->trace ? file_may_be_written(p->options->trace, p->options->force) : CODE_DONE;
    if (code == CODE_DONE && p->options->html)
        code = file_may_be_written(p->options->html, p->options->force);
    if (code == CODE_DONE) code = engine_load(p->options, p->options->arguments[0], &p->engine);
    add_host(p, "load model", before, now_ms() - before);
    if (code == CODE_DONE)
        code = inputs_gather(p->options, p->engine.model, INPUTS_FILL, &p->inputs);
    before = now_ms();
    if (code == CODE_DONE) code = engine_start_all(p->options, true, &p->engine);
    add_host(p, "open device, create session", before, now_ms() - before);
    if (code == CODE_DONE) code = run_once(p, "first run", false);
    if (code == CODE_DONE) code = run_once(p, "second run", false);
    return code;
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

static void rate_cells(const profile_rows *p, table *t, double flops, double bytes, double us)
{
    table_cell(t, MARK_NONE, "%.1f", us);
    table_cell(t, MARK_NONE, "%.1f%%", 100 * profile_share(p, us));
    number_cell(t, profile_rate(flops, us), "");
    number_cell(t, profile_rate(bytes, us), "");
    number_cell(t, 100 * profile_of_peak(p, flops, bytes, us), "%");
}

/* Returns the bytes that the steps of a run access, as far as they are counted. */
static double run_bytes(const profile_rows *p)
{
    double sum = 0;
    for (size_t i = 0; i < p->n_steps; i++) sum += p->steps[i].bytes;
    return sum;
}

static void print_text(const profile_rows *p)
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
        const group_row *row = &p->operators[i];
        table_cell(&t, MARK_NONE, "%s", printable(row->name));
        table_cell(&t, MARK_NONE, "%zu", row->n_steps);
        rate_cells(p, &t, row->flops, row->bytes, row->us);
    }
    table_print(&t, stdout, 0);
    times host = p->host_ms, device = p->device_ms;
    (void)printf(
        "\n%zu runs: median %.4g ms from host to host, %.4g ms on the device in %zu steps, "
        "which access %.3f MB\n",
        p->n_runs, times_stats(&host).median, times_stats(&device).median, p->n_steps,
        run_bytes(p) * 1e-6);
    (void)printf(
        "the device can do: %.0f GFLOP/s in fp32, %.1f GB/s of memory, a launch in %.1f us\n",
        p->peaks.fp32_gflops, p->peaks.memory_gbytes_per_s, p->peaks.launch_us);
}

static json_t *rates_json(const profile_rows *p, double flops, double bytes, double us)
{
    return json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "us", us, "share", profile_share(p, us),
                     "flops", flops, "bytes", bytes, "gflops_per_s", profile_rate(flops, us),
                     "gbytes_per_s", profile_rate(bytes, us), "of_peak",
                     profile_of_peak(p, flops, bytes, us));
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

static int print_json(const profile *profiled)
{
    const profile_rows *p = &profiled->rows;
    const engine *e = &profiled->engine;
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
        const group_row *row = &p->operators[i];
        json_t *json = json_pack("{s:o, s:I}", "op_type", output_json_text(row->name), "steps",
                                 (json_int_t)row->n_steps);
        json_t *rates = rates_json(p, row->flops, row->bytes, row->us);
        (void)json_object_update(json, rates);
        json_decref(rates);
        (void)json_array_append_new(operators, json);
    }
    times host = p->host_ms, device = p->device_ms;
    return output_json(
        json_pack("{s:o, s:o, s:s, s:I, s:f, s:f, s:f, s:{s:f, s:f, s:f}, s:o, s:o}", "model",
                  output_json_text(e->model_path), "device", output_json_text(engine_device_id(e)),
                  "precision", engine_precision(e->session), "runs", (json_int_t)p->n_runs,
                  "latency_ms", times_stats(&host).median, "device_ms", times_stats(&device).median,
                  "bytes_per_run", run_bytes(p), "peaks", "fp32_gflops", p->peaks.fp32_gflops,
                  "memory_gbytes_per_s", p->peaks.memory_gbytes_per_s, "launch_us",
                  p->peaks.launch_us, "steps", steps, "operators", operators));
}

/* ---- the command ----------------------------------------------------------------------------- */

static int write_page(profile *p)
{
    const engine *e = &p->engine;
    char *text;
    size_t n;
    clg_shape_override *shapes = inputs_shapes(&p->inputs, &n);
    const profile_page page = {.model_name = path_base(e->model_path),
                               .device = clg_context_device(e->context),
                               .precision = engine_precision(e->session),
                               .rows = &p->rows,
                               .model = e->model,
                               .session = e->session,
                               .shapes = shapes,
                               .n_shapes = n,
                               .events = p->hosts,
                               .n_events = p->n_hosts};
    int code = html_profile(&page, &text);
    if (code == CODE_DONE) code = output_write(p->options->html, text, strlen(text));
    free(text);
    free(shapes);
    return code;
}

static void release(profile *p)
{
    profile_rows_free(&p->rows);
    free(p->hosts);
    trace_free(&p->events);
    inputs_free(&p->inputs);
    engine_close(&p->engine);
}

int cmd_profile(const options *o)
{
    profile p = {.options = o, .rows = {.n_runs = o->runs > 0 ? o->runs : DEFAULT_RUNS}};
    trace_begin(&p.events, o->trace != NULL);
    int code = start(&p);
    for (size_t i = 0; i < p.rows.n_runs && code == CODE_DONE; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "run %zu", i);
        output_progress("run", i + 1, p.rows.n_runs);
        code = run_once(&p, name, true);
    }
    output_progress_clear();
    if (code == CODE_DONE) engine_note_parts(p.options, p.engine.session);
    if (code == CODE_DONE) code = measure_peaks(&p);
    if (code == CODE_DONE) profile_sum_up(&p.rows);
    if (code == CODE_DONE && o->trace) code = trace_write(&p.events, o->trace);
    if (code == CODE_DONE && o->html) code = write_page(&p);
    if (code == CODE_DONE && o->json) {
        code = print_json(&p);
    } else if (code == CODE_DONE) {
        print_text(&p.rows);
    }
    release(&p);
    return code;
}
