/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements clg_context_selftest: runs the table of self-test cases, each with all implementations
 * that may run on the device and in each floating-point dtype, and a small graph in a session, and
 * reports the results. Without
 * `all`, only cases with several implementations are run.
 */
#include "base/log.h"
#include "base/strbuf.h"
#include "plan/plan.h"
#include "session/selftest/selftest.h"

typedef struct report {
    device_context *context;
    plan_context planning; /* determines which implementations may run */
    clg_selftest_case *items;
    size_t count, capacity;
    selftest_records records;
} report;

void selftest_free_report(clg_selftest_case *cases, size_t n)
{
    for (size_t i = 0; cases && i < n; i++) {
        memory_free((char *)cases[i].problem);
        memory_free((char *)cases[i].impl);
        memory_free((char *)cases[i].kernel);
        memory_free((char *)cases[i].failure);
    }
    memory_free(cases);
}

/* Returns dtypes and shapes of the inputs as allocated text; NULL when memory runs out. */
static char *problem_text(const selftest_problem *p)
{
    char dims[SHAPE_TEXT_BYTES], *line = NULL;
    strbuf t;
    strbuf_init(&t, 0);
    for (size_t i = 0; i < p->node.n_inputs; i++) {
        const lower_operand *o = &p->inputs[i];
        if (o->dtype == CLG_DTYPE_NONE) continue;
        strbuf_printf(&t, "%s%s%s%s", t.size_bytes ? " " : "", dtype_name(o->dtype),
                      shape_text(&o->dims, dims), o->constant ? "c" : "");
    }
    if (strbuf_take(&t, &line) != CLG_OK) strbuf_deinit(&t);
    return line;
}

/* Adds a row to the report. Takes ownership of `problem`. */
static clg_status add_row(report *r, const clg_selftest_case *row, char *problem)
{
    const clg_status status = MEMORY_RESERVE(r->items, r->capacity, r->count + 1);
    if (status != CLG_OK) {
        memory_free(problem);
        return status;
    }
    clg_selftest_case *item = &r->items[r->count++];
    *item = *row;
    item->problem = problem;
    item->impl = memory_strdup(row->impl);
    item->kernel = memory_strdup(row->kernel);
    item->failure = memory_strdup(row->failure);
    return item->problem && item->impl && item->kernel && item->failure
               ? CLG_OK
               : CLG_ERROR_OUT_OF_HOST_MEMORY;
}

static clg_status note(report *r, const selftest_problem *p, const candidate *impl, bool has_choice,
                       const selftest_result *result, const char *failure)
{
    return add_row(r,
                   &(clg_selftest_case){.op_type = p->node.op_type,
                                        .impl = impl->variant,
                                        .kernel = selftest_kernel(impl),
                                        .has_choice = has_choice,
                                        .passed = result->passed,
                                        .worst_error = result->worst,
                                        .bound = result->bound,
                                        .failure = failure},
                   problem_text(p));
}

/* Returns whether an error ends the report, since no further test can run. Other errors are
 * reported as failures of the implementation. */
static bool ends_report(clg_status status)
{
    return status == CLG_ERROR_DEVICE_LOST || status == CLG_ERROR_OUT_OF_DEVICE_MEMORY ||
           status == CLG_ERROR_OUT_OF_HOST_MEMORY || status == CLG_ERROR_CANCELLED;
}

static clg_status report_impl(report *r, const selftest_problem *p, const candidate *impl,
                              bool has_choice)
{
    selftest_result result;
    clg_status status = selftest_run(r->context, p, impl, &result);
    if (ends_report(status)) return status;
    if (status == CLG_ERROR_NOT_FOUND) return CLG_OK;
    if (status != CLG_OK) return note(r, p, impl, has_choice, &result, error_text());
    if (has_choice) CLG_TRY(context_add_selftest_record(&r->records, impl, &result));
    return note(r, p, impl, has_choice, &result, "");
}

/* Returns CLG_OK with a warning for a large case whose buffers a small device cannot hold, else the
 * status. Smaller cases of each operator remain, so that the report still covers it. */
static clg_status skip_too_large(const selftest_case *row, clg_status status)
{
    if (status != CLG_ERROR_OUT_OF_DEVICE_MEMORY || !row->large) return status;
    log_write(CLG_LOG_WARNING, "self-test: skipped %s %s: %s", row->op_type, row->dims,
              error_text());
    return CLG_OK;
}

/* Tests a case in one dtype, with every implementation. Skips it if device or operator do not
 * support the dtype. */
static clg_status report_case(report *r, const selftest_case *row, clg_dtype dtype,
                              clg_kernel_class kernel_class, bool all, selftest_problem *p)
{
    const lower_context as = {.kernel_class = kernel_class};
    size_t n_impls = 0;
    clg_status status = selftest_from_case(row, dtype, p);
    if (status == CLG_OK) status = selftest_lower(r->context, &as, p);
    if (status == CLG_ERROR_NOT_FOUND || status == CLG_ERROR_UNSUPPORTED_DTYPE ||
        status == CLG_ERROR_UNSUPPORTED_DEVICE)
        return CLG_OK;
    CLG_TRY(status);
    const candidate *impls = p->lc.build.candidates;
    for (const candidate *impl = impls; impl; impl = impl->next)
        n_impls += plan_may_run(&r->planning, impl);
    for (const candidate *impl = impls; impl && (all || n_impls > 1); impl = impl->next)
        if (plan_may_run(&r->planning, impl)) CLG_TRY(report_impl(r, p, impl, n_impls > 1));
    return CLG_OK;
}

static clg_status report_all(report *r, clg_kernel_class kernel_class, bool all,
                             clg_progress_callback progress, void *user, selftest_problem *p)
{
    static const clg_dtype dtypes[] = {CLG_FLOAT32, CLG_FLOAT16, CLG_BFLOAT16};
    for (size_t i = 0; i < n_selftest_cases; i++) {
        if (progress && !progress(user, "testing kernels", i, n_selftest_cases))
            return error_set(CLG_ERROR_CANCELLED, "testing kernels was cancelled");
        for (size_t k = 0; k < sizeof dtypes / sizeof *dtypes; k++) {
            if (selftest_cases[i].large && !(all && k == 0)) continue;
            const clg_status status =
                report_case(r, &selftest_cases[i], dtypes[k], kernel_class, all, p);
            selftest_deinit(p);
            CLG_TRY(skip_too_large(&selftest_cases[i], status));
        }
    }
    return CLG_OK;
}

/* Tests two runs of a session, which must compute the right result each. */
static clg_status report_session(report *r, clg_kernel_class kernel_class)
{
    selftest_result results[SELFTEST_SESSION_RUNS] = {{0}};
    const clg_status status = selftest_session(r->context, kernel_class, results);
    if (ends_report(status)) return status;
    for (int run = 0; run < SELFTEST_SESSION_RUNS; run++)
        CLG_TRY(add_row(r,
                        &(clg_selftest_case){.op_type = "session",
                                             .impl = run == 0 ? "first run" : "second run",
                                             .kernel = "all",
                                             .passed = status == CLG_OK && results[run].passed,
                                             .worst_error = results[run].worst,
                                             .bound = results[run].bound,
                                             .failure = status == CLG_OK ? "" : error_text()},
                        memory_strdup("Conv Relu MaxPool MatMul Add Softmax")));
    return CLG_OK;
}

clg_status context_selftest(device_context *context, clg_kernel_class kernel_class, bool all,
                            clg_progress_callback progress, void *user,
                            clg_selftest_case **out_cases, size_t *out_n)
{
    report r = {.context = context,
                .planning = {.allow_blas = ocl_blas_available(context->ocl),
                             .blas_accepts = ocl_blas_accepts}};
    selftest_problem *p = memory_alloc(sizeof *p);
    clg_status status = p ? CLG_OK : CLG_ERROR_OUT_OF_HOST_MEMORY;
    if (status == CLG_OK) status = report_all(&r, kernel_class, all, progress, user, p);
    if (status == CLG_OK) status = report_session(&r, kernel_class);
    memory_free(p);
    ocl_programs_save(context->ocl);
    if (status == CLG_OK) status = context_replace_selftest_records(context, &r.records);
    selftest_records_deinit(&r.records);
    if (status != CLG_OK) {
        selftest_free_report(r.items, r.count);
        return status;
    }
    *out_cases = r.items;
    *out_n = r.count;
    return CLG_OK;
}
