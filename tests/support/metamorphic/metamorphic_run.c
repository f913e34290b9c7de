/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs, rearranges and compares values for metamorphic tests. See metamorphic_run.h.
 */
#include "support/metamorphic/metamorphic_run.h"

#include "base/strbuf.h"

#include <clgraph/inspect.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- running --------------------------------------------------------------------------------- */

static void add_impls(const char *names, char *all, size_t size)
{
    for (const char *at = names; at && *at;) {
        char word[64];
        const size_t n = strcspn(at, " ");
        (void)snprintf(word, sizeof word, "%.*s ", (int)n, at);
        const char *found = strstr(all, word);
        if ((!found || (found > all && found[-1] != ' ')) && strlen(all) + n + 2 < size)
            strcat(all, word); /* NOLINT(*-str*): the size is checked */
        at += n + (at[n] == ' ');
    }
}

/* Lists implementations and steps. The text of a plan does not show what the expression kernels of
 * pointwise operators compute; their estimated operations do. */
static clg_status list_steps(clg_session *session, meta_result *r)
{
    clg_step_profile *steps;
    size_t n;
    strbuf t;
    char *text;
    CLG_TRY(clg_session_plan_text(session, &text));
    strbuf_init(&t, 0);
    strbuf_append(&t, text);
    clg_text_free(text);
    clg_status status = clg_session_profile(session, &steps, &n);
    for (size_t i = 0; i < n && status == CLG_OK; i++) {
        const clg_step_profile *s = &steps[i];
        strbuf_printf(&t, "%s %s %s %.17g flops %.17g bytes\n", s->op_type, s->kernel,
                      s->impl ? s->impl : "", s->flops, s->bytes);
        if (s->impls && strchr(s->impls, ' ')) add_impls(s->impls, r->impls, sizeof r->impls);
    }
    if (status == CLG_OK) clg_session_profile_free(steps, n);
    if (status == CLG_OK) status = strbuf_take(&t, &r->plan);
    strbuf_deinit(&t);
    return status;
}

static clg_status run_session(clg_session *session, const clg_model *model,
                              clg_value *const *inputs, meta_result *r)
{
    for (size_t i = 0; i < clg_model_n_inputs(model); i++)
        CLG_TRY(clg_session_set_input(session, clg_model_input(model, i)->name, inputs[i]));
    CLG_TRY(clg_session_run(session));
    for (; r->n < clg_model_n_outputs(model); r->n++) {
        if (r->n == META_PORTS)
            return error_set(CLG_ERROR_DATA, "more than %d outputs", META_PORTS);
        CLG_TRY(clg_session_get_output(session, clg_model_output(model, r->n)->name,
                                       &r->outputs[r->n]));
    }
    return list_steps(session, r);
}

clg_status meta_run(clg_context *context, clg_model *model, clg_value *const *inputs,
                    const meta_options *options, meta_result *out_result)
{
    clg_session_options o = CLG_SESSION_OPTIONS_INIT;
    clg_counters before = CLG_COUNTERS_INIT, after = CLG_COUNTERS_INIT;
    clg_session *session;
    *out_result = (meta_result){0};
    o.kernels = options->kernels;
    o.no_blas = options->no_blas;
    o.precision = options->precision;
    o.disabled_passes = options->disabled;
    o.n_disabled_passes = options->n_disabled;
    o.preferred_impls = &options->preferred;
    o.n_preferred_impls = options->preferred != NULL;
    CLG_TRY(clg_context_counters(context, &before));
    CLG_TRY(clg_session_create(context, model, &o, &session));
    clg_status status = run_session(session, model, inputs, out_result);
    clg_session_free(session);
    if (status == CLG_OK) status = clg_context_counters(context, &after);
    if (status == CLG_OK) {
        out_result->n_kernels = after.kernels_launched - before.kernels_launched;
        out_result->n_blas = after.blas_calls - before.blas_calls;
        if (out_result->n_kernels + out_result->n_blas == 0)
            status = error_set(CLG_ERROR_DATA, "no kernel ran");
    }
    if (status != CLG_OK) meta_result_free(out_result);
    return status;
}

void meta_result_free(meta_result *r)
{
    for (size_t i = 0; i < r->n; i++) clg_value_free(r->outputs[i]);
    clg_text_free(r->plan);
    *r = (meta_result){0};
}

/* ---- comparing ------------------------------------------------------------------------------- */

static void note(meta_difference *d, double worst, const char *text)
{
    if (worst <= d->worst && d->where[0]) return;
    d->worst = worst;
    (void)snprintf(d->where, sizeof d->where, "%s", text);
}

static bool is_float(clg_dtype dtype)
{
    return dtype == CLG_FLOAT32 || dtype == CLG_FLOAT64 || dtype == CLG_FLOAT16 ||
           dtype == CLG_BFLOAT16;
}

/* Returns |a - b| in units of the tolerance. */
static double distance(double a, double b, double rtol, double atol)
{
    if (a == b || (isnan(a) && isnan(b))) return 0;
    const double by = fabs(a - b) / (atol + rtol * fabs(a));
    return isfinite(a) && isfinite(b) && !isnan(by) ? by : INFINITY;
}

static void compare_elements(const char *name, const clg_value *a, const clg_value *b, double rtol,
                             double atol, meta_difference *d)
{
    const bool exact = !is_float(clg_value_dtype(a));
    char text[sizeof d->where];
    for (int64_t i = 0; i < clg_value_n_elements(a); i++) {
        const double x = clg_value_get_double(a, i), y = clg_value_get_double(b, i);
        const double by = exact ? distance(x, y, 0, 0) : distance(x, y, rtol, atol);
        if (by <= d->worst && (by == 0 || d->where[0])) continue;
        (void)snprintf(text, sizeof text, "%.60s[%lld]: %.9g and %.9g", name, (long long)i, x, y);
        note(d, by, text);
    }
}

static bool has_same_shape(const clg_value *a, const clg_value *b)
{
    return clg_value_get_kind(a) == clg_value_get_kind(b) &&
           clg_value_dtype(a) == clg_value_dtype(b) && clg_value_rank(a) == clg_value_rank(b) &&
           memcmp(clg_value_dims(a), clg_value_dims(b), clg_value_rank(a) * sizeof(int64_t)) == 0 &&
           clg_value_n_items(a) == clg_value_n_items(b);
}

void meta_compare(const char *name, const clg_value *a, const clg_value *b, double rtol,
                  double atol, meta_difference *d)
{
    char text[sizeof d->where];
    if (!has_same_shape(a, b) || clg_value_get_kind(a) == CLG_VALUE_MAP ||
        clg_dtype_size(clg_value_dtype(a)) == 0) {
        (void)snprintf(text, sizeof text, "%.60s: another shape, kind or dtype", name);
        d->same_bits = false;
        note(d, INFINITY, text);
        return;
    }
    for (size_t i = 0; i < clg_value_n_items(a); i++)
        meta_compare(name, clg_value_item(a, i), clg_value_item(b, i), rtol, atol, d);
    const size_t n = clg_value_size_bytes(a);
    d->n_elements += (size_t)clg_value_n_elements(a);
    if (n == 0 || memcmp(clg_value_data(a), clg_value_data(b), n) == 0) return;
    d->same_bits = false;
    compare_elements(name, a, b, rtol, atol, d);
}

/* ---- rearranging ----------------------------------------------------------------------------- */

static void rotate(const char *from, size_t n, size_t by, char *to)
{
    memcpy(to, from + by, n - by);
    memcpy(to + n - by, from, by);
}

clg_status meta_rows(const clg_value *v, int axis, size_t n_rows, const int64_t *rows,
                     clg_value **out_rows)
{
    int64_t dims[CLG_MAX_RANK];
    const size_t rank = clg_value_rank(v);
    size_t outer = 1, inner = 1;
    *out_rows = NULL;
    if (axis < 0 || (size_t)axis >= rank || clg_value_dims(v)[axis] == 0)
        return error_set(CLG_ERROR_INVALID_ARGUMENT, "there is no axis %d with rows", axis);
    memcpy(dims, clg_value_dims(v), rank * sizeof *dims);
    const int64_t length = dims[axis];
    for (int i = 0; i < axis; i++) outer *= (size_t)dims[i];
    for (size_t i = (size_t)axis + 1; i < rank; i++) inner *= (size_t)dims[i];
    dims[axis] = (int64_t)n_rows;
    CLG_TRY(clg_value_create(clg_value_dtype(v), rank, dims, out_rows));
    const size_t size = clg_dtype_size(clg_value_dtype(v)), block = inner * size;
    const char *from = clg_value_data(v);
    char *to = clg_value_data(*out_rows);
    for (size_t o = 0; o < outer && block; o++)
        for (size_t r = 0; r < n_rows; r++, to += block)
            rotate(from + (o * (size_t)length + (size_t)(rows[r] % length)) * block, block,
                   (size_t)(rows[r] / length) % inner * size, to);
    return CLG_OK;
}

clg_status meta_reverse_axes(const clg_value *v, clg_value **out_reversed)
{
    int64_t dims[CLG_MAX_RANK];
    const int64_t *given = clg_value_dims(v);
    const size_t rank = clg_value_rank(v), size = clg_dtype_size(clg_value_dtype(v));
    for (size_t i = 0; i < rank; i++) dims[i] = given[rank - 1 - i];
    CLG_TRY(clg_value_create(clg_value_dtype(v), rank, dims, out_reversed));
    const char *from = clg_value_data(v);
    char *to = clg_value_data(*out_reversed);
    for (int64_t i = 0; i < clg_value_n_elements(v); i++) {
        int64_t rest = i, at = 0;
        for (size_t d = rank; d-- > 0; rest /= given[d]) at = at * given[d] + rest % given[d];
        memcpy(to + (size_t)at * size, from + (size_t)i * size, size);
    }
    return CLG_OK;
}
