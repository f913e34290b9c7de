/* SPDX-License-Identifier: Apache-2.0
 *
 * cltool selftest: tests a device's kernels on small problems against references, and prints a
 * report for bug reports.
 */
#include "cltool.h"

#include "engine.h"
#include "interrupt.h"
#include "output.h"

typedef struct selftest {
    const options *options;
    clg_context *context;
    clg_selftest_case *cases;
    size_t n_cases, n_failed;
    clg_kernel_class kernels;
} selftest;

static const char *class_name(const selftest *t)
{
    return t->kernels == CLG_KERNELS_SIMD ? "simd" : "simt";
}

static int test(selftest *t)
{
    interrupt_begin_computing();
    clg_status status =
        clg_context_selftest(t->context, t->kernels, t->options->all, output_progress_callback,
                             NULL, &t->cases, &t->n_cases);
    interrupt_end_computing();
    output_progress_clear();
    if (interrupt_seen()) status = CLG_ERROR_CANCELLED;
    for (size_t i = 0; i < t->n_cases; i++) t->n_failed += !t->cases[i].passed;
    return status == CLG_OK ? CODE_DONE : fail_status(status, STAGE_WORK, NULL);
}

static void print_cases(const selftest *t)
{
    static const char *const headers[] = {"",       "operator", "problem", "implementation",
                                          "kernel", ">error",   ">allowed"};
    table rows;
    table_begin(&rows, 7, headers);
    for (size_t i = 0; i < t->n_cases; i++) {
        const clg_selftest_case *c = &t->cases[i];
        table_cell(&rows, c->passed ? MARK_GOOD : MARK_BAD, "%s", c->passed ? "passed" : "FAILED");
        table_cell(&rows, MARK_NONE, "%s", c->op_type);
        table_cell(&rows, MARK_NONE, "%s", c->problem);
        table_cell(&rows, MARK_NONE, "%s%s", c->impl, c->has_choice ? "" : " (alone)");
        table_cell(&rows, MARK_NONE, "%s", c->kernel);
        table_cell(&rows, MARK_NONE, "%.2g", c->worst_error);
        table_cell(&rows, MARK_NONE, "%.2g", c->bound);
    }
    table_print(&rows, stdout, 0);
    for (size_t i = 0; i < t->n_cases; i++) {
        if (t->cases[i].failure[0])
            (void)printf("\n%s: %s\n", t->cases[i].kernel, t->cases[i].failure);
    }
}

static void print_text(const selftest *t)
{
    const clg_device_info *d = clg_context_device(t->context);
    (void)printf("clgraph   %s\n", clg_version());
    (void)printf("device    %s\n", printable(d->name));
    (void)printf("platform  %s\n", printable(d->platform));
    (void)printf("driver    %s\n", printable(d->driver));
    (void)printf("OpenCL    %s\n", printable(d->opencl_version));
    (void)printf("quirks    %s\n", d->quirks[0] ? d->quirks : "none");
    (void)printf("kernels   %s\n\n", class_name(t));
    if (t->n_cases > 0) print_cases(t);
    (void)printf("%s%zu passed, %zu failed\n", t->n_cases ? "\n" : "", t->n_cases - t->n_failed,
                 t->n_failed);
}

static int print_json(const selftest *t)
{
    const clg_device_info *d = clg_context_device(t->context);
    json_t *cases = json_array();
    for (size_t i = 0; i < t->n_cases; i++) {
        const clg_selftest_case *c = &t->cases[i];
        (void)json_array_append_new(
            cases, json_pack("{s:s, s:s, s:s, s:s, s:b, s:b, s:o, s:f, s:o}", "operator",
                             c->op_type, "problem", c->problem, "implementation", c->impl, "kernel",
                             c->kernel, "choice", c->has_choice, "passed", c->passed, "error",
                             output_json_real(c->worst_error), "allowed", c->bound, "failure",
                             output_json_text(c->failure)));
    }
    return output_json(json_pack(
        "{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:s, s:I, s:I, s:o}", "version", clg_version(),
        "device", output_json_text(d->id), "name", output_json_text(d->name), "platform",
        output_json_text(d->platform), "driver", output_json_text(d->driver), "opencl",
        output_json_text(d->opencl_version), "quirks", output_json_text(d->quirks), "class",
        class_name(t), "passed", (json_int_t)(t->n_cases - t->n_failed), "failed",
        (json_int_t)t->n_failed, "cases", cases));
}

int cmd_selftest(const options *o)
{
    selftest t = {.options = o};
    int code = engine_check(o);
    if (code == CODE_DONE) code = engine_open(o, false, &t.context);
    if (code == CODE_DONE) {
        t.kernels = clg_context_device(t.context)->kernel_class;
        if (o->kernels) (void)engine_kernels(o, &t.kernels); /* checked by engine_check */
        code = test(&t);
    }
    if (code == CODE_DONE && o->json)
        code = print_json(&t);
    else if (code == CODE_DONE)
        print_text(&t);
    if (code == CODE_DONE && t.n_failed > 0) code = CODE_WORK;
    clg_selftest_free(t.cases, t.n_cases);
    clg_context_free(t.context);
    return code;
}
