/* SPDX-License-Identifier: Apache-2.0
 *
 * Self-test references, in double, of MaxPool, AveragePool, LpPool and GlobalLpPool. Where kernels
 * gather the elements of a window, each element here is scattered to the windows that contain it.
 * The reverse for their gradients: windows are scattered to their elements.
 */
#include "ops/lowering/window.h"
#include "session/selftest/references/selftest_axis.h"
#include "session/selftest/references/selftest_math.h"
#include "session/selftest/selftest.h"

#include <math.h>
#include <string.h>

typedef enum pool_kind { POOL_MAX, POOL_AVERAGE, POOL_LP } pool_kind;

/* A pooling; y, index and scale are those of a plane (one channel of one image). */
typedef struct pooling {
    pool_kind kind;
    window_axis axes[WINDOW_MAX_AXES]; /* D, H, W */
    double p;                          /* exponent of Lp */
    double *y, *scale, *index;         /* index may be NULL */
} pooling;

/* ---- windows --------------------------------------------------------------------------------- */

/* The outputs from `first` to `last` along an axis, of which those contain an element whose window
 * starts a multiple of the dilation before it. */
typedef struct window_range {
    int64_t first, last;
} window_range;

/* Returns the range of outputs whose windows extend over position `at` of the input. */
static window_range windows_over(const window_axis *a, int64_t at)
{
    const int64_t padded = at + a->pad_begin, before = padded - (a->kernel - 1) * a->dilation;
    const int64_t first = before > 0 ? (before + a->stride - 1) / a->stride : 0,
                  last = padded / a->stride;
    return (window_range){first, last < a->out ? last : a->out - 1};
}

/* Returns whether position `at`, which output o's window extends over, is one of its taps. */
static bool is_tap(const window_axis *a, int64_t at, int64_t o)
{
    return (at + a->pad_begin - o * a->stride) % a->dilation == 0;
}

/* Returns how many taps of output o are inside the input or, with `padded`, its padding. */
static int64_t count_taps(const window_axis *a, int64_t o, bool padded)
{
    const int64_t low = padded ? -a->pad_begin : 0, high = a->in + (padded ? a->pad_end : 0);
    int64_t n = 0;
    for (int64_t k = 0; k < a->kernel; k++) {
        const int64_t at = o * a->stride - a->pad_begin + k * a->dilation;
        n += at >= low && at < high;
    }
    return n;
}

/* ---- one plane ------------------------------------------------------------------------------- */

/* Returns what an element adds to a sum. */
static double term_of(const pooling *p, double x)
{
    return p->kind == POOL_LP ? pow(fabs(x), p->p) : x;
}

/* Joins the term of an element, of number `number` in the tensor, to output o. Of equal maxima the
 * first counts: elements arrive in order. */
static void join_term(const pooling *p, double term, int64_t number, int64_t o)
{
    if (p->kind != POOL_MAX) {
        p->y[o] += term;
        p->scale[o] += fabs(term);
    } else if (term > p->y[o]) {
        p->y[o] = term;
        if (p->index) p->index[o] = (double)number;
    }
}

/* Joins an element at position `at` (d, h, w) to all outputs whose windows contain it. */
static void scatter_element(const pooling *p, const int64_t at[3], double x, int64_t number)
{
    const window_axis *a = p->axes;
    const double term = term_of(p, x);
    const window_range d = windows_over(&a[0], at[0]), h = windows_over(&a[1], at[1]),
                       w = windows_over(&a[2], at[2]);
    for (int64_t i = d.first; i <= d.last; i++)
        for (int64_t j = h.first; is_tap(&a[0], at[0], i) && j <= h.last; j++)
            for (int64_t k = w.first; is_tap(&a[1], at[1], j) && k <= w.last; k++)
                if (is_tap(&a[2], at[2], k))
                    join_term(p, term, number, (i * a[1].out + j) * a[2].out + k);
}

/* Scatters a plane. base: the number of its first element. */
static void scatter_plane(const pooling *p, const double *x, int64_t base, bool column_major)
{
    const window_axis *a = p->axes;
    int64_t at[3];
    for (at[0] = 0; at[0] < a[0].in; at[0]++)
        for (at[1] = 0; at[1] < a[1].in; at[1]++)
            for (at[2] = 0; at[2] < a[2].in; at[2]++) {
                const int64_t row_major = (at[0] * a[1].in + at[1]) * a[2].in + at[2];
                const int64_t place =
                    column_major ? (at[2] * a[1].in + at[1]) * a[0].in + at[0] : row_major;
                scatter_element(p, at, x[row_major], base + place);
            }
}

/* Finishes output o of a plane: `taps` are the elements that an average is of. */
static void finish_output(const pooling *p, clg_dtype dtype, int64_t taps, int64_t o)
{
    if (p->kind == POOL_AVERAGE) {
        p->y[o] /= (double)taps;
        p->scale[o] /= (double)taps;
    } else if (p->kind == POOL_LP) {
        p->y[o] = pow(p->y[o], 1 / p->p);
        p->scale[o] = p->y[o];
    }
    if (p->kind != POOL_MAX) p->scale[o] += selftest_least_scale(dtype);
    if (isfinite(p->y[o])) return;
    p->scale[o] = NAN; /* a window without elements */
    if (p->index) p->index[o] = -1;
}

static void finish_plane(const pooling *p, clg_dtype dtype, bool padded)
{
    const window_axis *a = p->axes;
    int64_t o = 0;
    for (int64_t i = 0; i < a[0].out; i++)
        for (int64_t j = 0; j < a[1].out; j++)
            for (int64_t k = 0; k < a[2].out; k++, o++)
                finish_output(p, dtype,
                              p->kind == POOL_AVERAGE
                                  ? count_taps(&a[0], i, padded) * count_taps(&a[1], j, padded) *
                                        count_taps(&a[2], k, padded)
                                  : 1,
                              o);
}

/* ---- references ------------------------------------------------------------------------------ */

/* Computes a pooling with a window, plane by plane. Set are its kind and p. */
static clg_status pool(const lower_context *lc, const double *x, pooling *p,
                       const selftest_expected *out)
{
    const shape *dims = &lc->inputs[0].dims;
    const bool has_index = lc->n_outputs > 1 && out[1].y;
    const bool column_major = node_int(lc->node, "storage_order", 0) != 0,
               padded = node_int(lc->node, "count_include_pad", 0) != 0;
    window_desc window;
    CLG_TRY(window_read(lc->node, dims, NULL, &window));
    window_fill(&window, p->axes);
    const int64_t n_in = window_count_in(p->axes), n_out = window_count_out(p->axes);
    for (int64_t plane = 0; plane < dims->dims[0] * dims->dims[1]; plane++) {
        p->y = out[0].y + plane * n_out;
        p->scale = out[0].scale + plane * n_out;
        p->index = has_index ? out[1].y + plane * n_out : NULL;
        for (int64_t o = 0; o < n_out; o++) p->y[o] = p->kind == POOL_MAX ? -HUGE_VAL : 0;
        scatter_plane(p, x + plane * n_in, plane * n_in, column_major);
        finish_plane(p, lc->outputs[0].dtype, padded);
    }
    return CLG_OK;
}

/* Computes MaxPool, with indices, and AveragePool. */
clg_status selftest_pool(const lower_context *lc, const double *const *in,
                         const selftest_expected *out)
{
    const bool max = strcmp(lc->node->op_type, "MaxPool") == 0;
    pooling p = {.kind = max ? POOL_MAX : POOL_AVERAGE};
    if (!out[0].y) return error_set(CLG_ERROR_NOT_FOUND, "a pooling with indices alone");
    return pool(lc, in[0], &p, out);
}

/* Powers of the test's elements, multiples of 1/32, stay above the smallest float32 up to here. */
#define MAX_EXPONENT 24

/* Computes LpPool, and GlobalLpPool, whose window is the whole plane. */
clg_status selftest_lp_pool(const lower_context *lc, const double *const *in,
                            const selftest_expected *out)
{
    const bool is_global = strcmp(lc->node->op_type, "GlobalLpPool") == 0;
    const shape *dims = &lc->inputs[0].dims;
    pooling p = {.kind = POOL_LP, .p = (double)node_int(lc->node, "p", 2)};
    if (p.p < 1 || p.p > MAX_EXPONENT)
        return error_set(CLG_ERROR_NOT_FOUND, "an Lp norm with p %g", p.p);
    if (!is_global) return pool(lc, in[0], &p, out);
    const int64_t planes = dims->dims[0] * dims->dims[1], n = selftest_count(dims);
    p.y = out[0].y;
    p.scale = out[0].scale;
    for (int64_t i = 0; i < n; i++) join_term(&p, term_of(&p, in[0][i]), i, i / (n / planes));
    for (int64_t plane = 0; plane < planes; plane++)
        finish_output(&p, lc->outputs[0].dtype, 1, plane);
    return CLG_OK;
}

/* ---- gradients ------------------------------------------------------------------------------- */

/* Adds `part` to an element of a gradient. */
static void add_part(const selftest_expected *out, int64_t at, double part)
{
    out[0].y[at] += part;
    out[0].scale[at] += fabs(part);
}

/* Adds `part` to all elements of the window of output o (d, h, w) of a plane from `base` on. */
static void add_window(const window_axis *a, const int64_t o[3], double part, int64_t base,
                       const selftest_expected *out)
{
    int64_t k[3], at[3];
    for (k[0] = 0; k[0] < a[0].kernel; k[0]++)
        for (k[1] = 0; k[1] < a[1].kernel; k[1]++)
            for (k[2] = 0; k[2] < a[2].kernel; k[2]++) {
                bool inside = true;
                for (int i = 0; i < 3; i++) {
                    at[i] = o[i] * a[i].stride - a[i].pad_begin + k[i] * a[i].dilation;
                    inside = inside && at[i] >= 0 && at[i] < a[i].in;
                }
                if (inside) add_part(out, base + (at[0] * a[1].in + at[1]) * a[2].in + at[2], part);
            }
}

/* Adds `part` to the first element of the window of output o that is `top`, if there is one. */
static void add_first(const window_axis *a, const int64_t o[3], double part, int64_t base,
                      const double *x, double top, const selftest_expected *out)
{
    for (int64_t i = 0; i < window_count_in(a); i++) {
        const int64_t at[3] = {i / a[2].in / a[1].in, i / a[2].in % a[1].in, i % a[2].in};
        bool inside = x[base + i] == top || (isnan(x[base + i]) && isnan(top));
        for (int k = 0; k < 3 && inside; k++) {
            const window_range over = windows_over(&a[k], at[k]);
            inside = o[k] >= over.first && o[k] <= over.last && is_tap(&a[k], at[k], o[k]);
        }
        if (!inside) continue;
        add_part(out, base + i, part);
        return;
    }
}

/* Computes MaxPoolGrad, AveragePoolGrad and SumPoolGrad. */
clg_status selftest_pool_grad(const lower_context *lc, const double *const *in,
                              const selftest_expected *out)
{
    const node *n = lc->node;
    const bool max = strcmp(n->op_type, "MaxPoolGrad") == 0,
               average = strcmp(n->op_type, "AveragePoolGrad") == 0,
               padded = node_int(n, "count_include_pad", 0) != 0;
    const shape *dims = &lc->outputs[0].dims;
    window_desc window;
    window_axis a[WINDOW_MAX_AXES];
    CLG_TRY(window_read(n, dims, NULL, &window));
    window_fill(&window, a);
    const int64_t n_in = window_count_in(a), n_out = window_count_out(a);
    for (int64_t i = 0; i < selftest_count(dims); i++)
        out[0].scale[i] = selftest_least_scale(lc->outputs[0].dtype);
    for (int64_t i = 0; i < selftest_count(&lc->inputs[0].dims); i++) {
        const int64_t base = i / n_out * n_in;
        const int64_t o[3] = {i % n_out / (a[1].out * a[2].out), i / a[2].out % a[1].out,
                              i % a[2].out};
        double count = 1;
        for (int k = 0; k < 3 && average; k++) count *= (double)count_taps(&a[k], o[k], padded);
        if (max)
            add_first(a, o, in[0][i], base, in[1], in[2][i], out);
        else
            add_window(a, o, in[0][i] / count, base, out);
    }
    return CLG_OK;
}

/* Input and output of MaxPoolGrad's pooling: few different numbers, so that some are equal. */
bool selftest_pool_contents(const selftest_problem *p, size_t input, int64_t at, uint64_t random,
                            double *out)
{
    (void)p;
    (void)at;
    *out = (double)(random % 4);
    return input > 0;
}
