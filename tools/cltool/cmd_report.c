/* SPDX-License-Identifier: Apache-2.0
 *
 * cltool report: one file about this machine's OpenCL devices, to attach to an issue: properties,
 * diagnosis, self-test and bench --suite, without the user's data.
 */
#include "cltool.h"

#include "bench_suite.h"
#include "device_json.h"
#include "digest.h"
#include "interrupt.h"
#include "names.h"
#include "output.h"
#include "private_text.h"
#include "text_buffer.h"
#include "tool_commit.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Of the file; tools/hardware_table.py knows it. */
#define FORMAT_VERSION 1

typedef struct report {
    const options *options;
    options each; /* the options for each device, with measuring */
    json_t *document;
    size_t n_devices;     /* of the machine */
    int code;             /* of the first device or model that failed; CODE_DONE: none did */
    failure_record first; /* its message, if there is one */
} report;

/* Keeps the code of a failure, and takes its message for the report. Returns CODE_DONE, so that the
 * report goes on, except after Ctrl-C. */
static int take_failure(report *r, int code, json_t *where, const char *key)
{
    if (code == CODE_DONE || code == CODE_INTERRUPTED) return code;
    failure_record record;
    (void)json_object_set_new(where, key, output_json_text(failure_text()));
    failure_take(&record);
    if (!r->first.is_set) {
        r->first = record;
        r->code = code;
    }
    return CODE_DONE;
}

/* ---- devices --------------------------------------------------------------------------------- */

static json_t *all_devices(report *r)
{
    clg_device_info *devices;
    json_t *list = json_array();
    if (clg_device_list(&devices, &r->n_devices) != CLG_OK)
        return list; /* the diagnosis says why */
    for (size_t i = 0; i < r->n_devices; i++) {
        const clg_status status = clg_device_probe(&devices[i]);
        json_t *json = device_json(&devices[i], false);
        if (status != CLG_OK)
            (void)json_object_set_new(json, "problem", output_json_text(clg_last_error()));
        (void)json_array_append_new(list, json);
    }
    clg_device_list_free(devices, r->n_devices);
    return list;
}

static json_t *diagnosis(void)
{
    char *text;
    if (clg_diagnose(&text) != CLG_OK) return output_json_text(clg_last_error());
    json_t *json = output_json_text(text);
    clg_text_free(text);
    return json;
}

/* ---- self-test ------------------------------------------------------------------------------- */

static json_t *failed_case(const clg_selftest_case *c)
{
    return json_pack("{s:s, s:s, s:s, s:s, s:o, s:f, s:o}", "operator", c->op_type, "problem",
                     c->problem, "implementation", c->impl, "kernel", c->kernel, "error",
                     output_json_real(c->worst_error), "allowed", c->bound, "failure",
                     output_json_text(c->failure));
}

static int test_device(report *r, const clg_device_info *device, json_t *json)
{
    clg_context *context = NULL;
    clg_selftest_case *cases = NULL;
    size_t n = 0, n_passed = 0;
    json_t *failed = json_array();
    int code = engine_open_device(r->options, device, false, &context);
    if (code == CODE_DONE) {
        interrupt_begin_computing();
        clg_status status = clg_context_selftest(context, clg_context_device(context)->kernel_class,
                                                 false, output_progress_callback, NULL, &cases, &n);
        interrupt_end_computing();
        output_progress_clear();
        if (interrupt_seen()) status = CLG_ERROR_CANCELLED;
        if (status != CLG_OK) code = fail_status(status, STAGE_WORK, NULL);
    }
    for (size_t i = 0; i < n; i++) {
        n_passed += cases[i].passed;
        if (!cases[i].passed) (void)json_array_append_new(failed, failed_case(&cases[i]));
    }
    (void)json_object_set_new(json, "passed", json_integer((json_int_t)n_passed));
    (void)json_object_set_new(json, "failed", json_integer((json_int_t)(n - n_passed)));
    (void)json_object_set_new(json, "failures", failed);
    if (n_passed < n && r->code == CODE_DONE) r->code = CODE_WORK;
    clg_selftest_free(cases, n);
    clg_context_free(context);
    return take_failure(r, code, json, "problem");
}

static int test_devices(report *r, const device_choice *choice)
{
    json_t *list = json_array();
    int code = CODE_DONE;
    for (size_t i = 0; i < choice->n_chosen && code == CODE_DONE; i++) {
        const clg_device_info *device = devices_chosen(choice, i);
        json_t *json = json_pack("{s:s}", "selector", device->selector);
        (void)json_array_append_new(list, json);
        code = test_device(r, device, json);
    }
    (void)json_object_set_new(r->document, "selftest", list);
    return code;
}

/* ---- the suite ------------------------------------------------------------------------------- */

static json_t *result_json(const bench_result *one)
{
    json_t *json = bench_result_json(one);
    (void)json_object_del(json, "device"); /* an id, which may be that of one machine */
    (void)json_object_set_new(json, "selector", output_json_text(one->selector));
    return json;
}

static int run_suite(report *r)
{
    bench_results results = {0};
    json_t *list = json_array(), *peaks = json_object();
    int code = bench_suite(&r->each, r->options->arguments, r->options->n_arguments, &results);
    for (size_t i = 0; i < results.n_devices; i++) {
        const bench_device *d = &results.devices[i];
        if (d->is_measured)
            (void)json_object_set_new(peaks, d->selector, device_measurement_json(&d->peaks));
    }
    for (size_t i = 0; i < results.count; i++)
        (void)json_array_append_new(list, result_json(&results.items[i]));
    (void)json_object_set_new(r->document, "measured", peaks);
    (void)json_object_set_new(r->document, "suite", list);
    bench_results_free(&results);
    return take_failure(r, code, r->document, "suite_problem");
}

/* ---- the command ----------------------------------------------------------------------------- */

static void start_document(report *r)
{
    char date[32] = "";
    const time_t now = time(NULL);
    const struct tm *utc = gmtime(&now); /* one thread runs */
    if (utc) (void)strftime(date, sizeof date, "%Y-%m-%d", utc);
    r->document =
        json_pack("{s:s, s:i, s:s, s:s, s:s}", "format", "clgraph report", "format_version",
                  FORMAT_VERSION, "date", date, "version", clg_version(), "commit", tool_commit);
    (void)json_object_set_new(r->document, "devices", all_devices(r));
    (void)json_object_set_new(r->document, "diagnosis", diagnosis());
}

static int fill(report *r)
{
    device_choice choice;
    start_document(r);
    int code = devices_choose(r->options, r->options->device ? NULL : "all", &choice);
    if (code == CODE_NO_DEVICE) return take_failure(r, code, r->document, "problem");
    if (code != CODE_DONE) return code;
    code = test_devices(r, &choice);
    if (code == CODE_DONE) code = run_suite(r);
    devices_free(&choice);
    return code;
}

/* Returns the document as text with its digest as the last member, which shows whether a file is
 * whole: that of all bytes before it. free() */
static char *text_of(json_t *document)
{
    char *json = json_dumps(document, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
    if (!json) return NULL;
    text_buffer b = {0};
    digest d = digest_start();
    const size_t n = strlen(json) - strlen("\n}");
    digest_add(&d, json, n);
    text_buffer_add_bytes(&b, json, n);
    text_buffer_printf(&b, ",\n  \"digest\": \"%016llx\"\n}\n", (unsigned long long)d.state);
    free(json);
    return text_buffer_take(&b);
}

static int give(const report *r)
{
    const char *path = r->options->output;
    char *text = text_of(r->document);
    if (!text) return fail(CODE_WORK, CLG_ERROR_OUT_OF_HOST_MEMORY, "out of host memory for JSON");
    int code = CODE_DONE;
    if (path)
        code = output_write(path, text, strlen(text));
    else
        (void)fputs(text, stdout);
    free(text);
    if (code != CODE_DONE || !path) return code;
    output_note("report written to '%s'; it has no paths and no names of users and machines", path);
    return r->options->json ? output_json(json_pack("{s:o}", "file", output_json_text(path)))
                            : CODE_DONE;
}

int cmd_report(const options *o)
{
    report r = {.options = o, .each = *o};
    private_names names;
    r.each.each = r.each.measure = true;
    int code = o->output ? file_may_be_written(o->output, o->force) : CODE_DONE;
    if (code == CODE_DONE) code = bench_suite_check(o, o->arguments, o->n_arguments);
    if (code == CODE_DONE) code = fill(&r);
    private_names_get(&names);
    if (code == CODE_DONE) {
        private_json(r.document, &names);
        code = give(&r);
    }
    json_decref(r.document);
    if (code != CODE_DONE) return code;
    if (r.first.is_set && !(o->json && !o->output)) failure_put(&r.first); /* else it is printed */
    return r.code;
}
