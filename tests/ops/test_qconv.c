/* SPDX-License-Identifier: Apache-2.0
 *
 * ConvInteger and QLinearConv against sums in int64 over two axes, other ranks as such with axes of 1. Exact: the scales
 * are powers of two.
 */
#include "support/run_node.h"

#include <math.h>

typedef struct conv {
    int rank; /* of the window: 1 to 3; the first axes of `rank` 1 are 1 */
    int64_t batch, groups, ic, oc, h, w, kh, kw, sh, sw, dh, dw, ph, pw;
    bool x_signed, w_signed, w_lists, bias;
} conv;

/* How it is to be tested. */
typedef struct manner {
    const char *way; /* of kernels for CPUs; NULL: any device, any way */
    bool extreme; /* all of x, and of w, is the number furthest from zero points at the other end */
    bool w_computed; /* the weights are no constant */
} manner;

static double *bytes(int64_t n, bool is_signed)
{
    double *x = run_node_random(n);
    for (int64_t i = 0; i < n; i++) x[i] = floor((x[i] + 1) * 127.9) - (is_signed ? 128 : 0);
    return x;
}

static double *fill(int64_t n, double value)
{
    double *x = run_node_zeros(n);
    for (int64_t i = 0; i < n; i++) x[i] = value;
    return x;
}

/* Of one end of the range: 255 or 127, 0 or -128. */
static double *ends(int64_t n, bool is_signed, bool high)
{
    return fill(n, high ? (is_signed ? 127 : 255) : (is_signed ? -128 : 0));
}

static int64_t outputs(int64_t n, int64_t k, int64_t s, int64_t d, int64_t p)
{
    return (n + 2 * p - (k - 1) * d - 1) / s + 1;
}

static int64_t sum_at(const conv *t, const double *x, const double *w, double xz, double wz,
                      int64_t b, int64_t o, int64_t r, int64_t s)
{
    int64_t sum = 0;
    for (int64_t c = 0; c < t->ic; c++)
        for (int64_t kh = 0; kh < t->kh; kh++)
            for (int64_t kw = 0; kw < t->kw; kw++) {
                const int64_t y = r * t->sh - t->ph + kh * t->dh,
                              at = s * t->sw - t->pw + kw * t->dw;
                if (y < 0 || y >= t->h || at < 0 || at >= t->w) continue;
                const double a =
                    x[(((b * t->groups + o / t->oc) * t->ic + c) * t->h + y) * t->w + at] - xz;
                sum += (int64_t)(a * (w[((o * t->ic + c) * t->kh + kh) * t->kw + kw] - wz));
            }
    return sum;
}

/* The last `rank` of three spatial sizes. */
static void spatial(int rank, int64_t *dims, int64_t h, int64_t w)
{
    const int64_t all[3] = {1, h, w};
    for (int i = 0; i < rank; i++) dims[2 + i] = all[3 - rank + i];
}

static void attributes(run_node *r, const conv *t)
{
    int64_t values[8] = {0};
    spatial(t->rank, values, t->sh, t->sw);
    if (t->rank == 3) values[2] = 1;
    run_node_ints(r, "strides", (size_t)t->rank, values + 2);
    spatial(t->rank, values, t->dh, t->dw);
    run_node_ints(r, "dilations", (size_t)t->rank, values + 2);
    spatial(t->rank, values, t->ph, t->pw);
    if (t->rank == 3) values[2] = 0;
    for (int i = 0; i < t->rank; i++) values[2 + t->rank + i] = values[2 + i];
    run_node_ints(r, "pads", (size_t)(2 * t->rank), values + 2);
    run_node_int(r, "group", t->groups);
}

static void check_in(conv t, bool linear, manner how)
{
    const int64_t channels = t.groups * t.oc, oh = outputs(t.h, t.kh, t.sh, t.dh, t.ph),
                  ow = outputs(t.w, t.kw, t.sw, t.dw, t.pw);
    const clg_dtype tx = t.x_signed ? CLG_INT8 : CLG_UINT8, tw = t.w_signed ? CLG_INT8 : CLG_UINT8;
    int64_t x_dims[5] = {t.batch, t.groups * t.ic}, w_dims[5] = {channels, t.ic},
            y_dims[5] = {t.batch, channels};
    spatial(t.rank, x_dims, t.h, t.w);
    spatial(t.rank, w_dims, t.kh, t.kw);
    spatial(t.rank, y_dims, oh, ow);
    const int64_t n_x = t.batch * t.groups * t.ic * t.h * t.w, n_w = channels * t.ic * t.kh * t.kw;
    const double *x = how.extreme ? ends(n_x, t.x_signed, true) : bytes(n_x, t.x_signed),
                 *w = how.extreme ? ends(n_w, t.w_signed, false) : bytes(n_w, t.w_signed);
    const double *xz = how.extreme ? ends(1, t.x_signed, false) : bytes(1, t.x_signed),
                 *wz = how.extreme ? ends(channels, t.w_signed, true) : bytes(channels, t.w_signed);
    const double sx = 0.5, sy = how.extreme ? ldexp(1, 20) : 512, zy = 100;
    double *y = run_node_zeros(t.batch * channels * oh * ow), *sw = run_node_zeros(channels),
           *bias = run_node_random(channels);
    for (int64_t i = 0; i < channels; i++) {
        sw[i] = ldexp(1, t.w_lists ? (int)(i % 3) : 0);
        bias[i] = floor(bias[i] * 4000);
    }
    for (int64_t i = 0; i < t.batch * channels * oh * ow; i++) {
        const int64_t o = i / ow / oh % channels, list = t.w_lists ? o : 0;
        y[i] = (double)sum_at(&t, x, w, xz[0], wz[list], i / ow / oh / channels, o, i / ow % oh,
                              i % ow);
        if (!linear) continue;
        y[i] = nearbyint((y[i] + (t.bias ? bias[o] : 0)) * sx * sw[list] / sy) + zy;
        y[i] = y[i] < 0 ? 0 : y[i] > 255 ? 255 : y[i];
    }
    run_node r;
    run_node_start(&r, NULL, linear ? "QLinearConv" : "ConvInteger", 10);
    r.way = how.way;
    r.way_kernels = CLG_KERNELS_WIDE;
    attributes(&r, &t);
    run_node_input(&r, tx, 2 + t.rank, x_dims, x);
    if (linear) run_node_input(&r, CLG_FLOAT32, 0, NULL, &sx);
    if (linear) run_node_input(&r, tx, 0, NULL, xz);
    (how.w_computed ? run_node_input : run_node_constant)(&r, tw, 2 + t.rank, w_dims, w);
    if (linear) run_node_input(&r, CLG_FLOAT32, t.w_lists, &channels, sw);
    if (!linear) run_node_input(&r, tx, 0, NULL, xz);
    run_node_input(&r, tw, t.w_lists, &channels, wz);
    if (linear) run_node_input(&r, CLG_FLOAT32, 0, NULL, &sy);
    if (linear) run_node_input(&r, CLG_UINT8, 0, NULL, &zy);
    if (linear && t.bias) run_node_input(&r, CLG_INT32, 1, &channels, bias);
    run_node_expect(&r, linear ? CLG_UINT8 : CLG_INT32, 2 + t.rank, y_dims, y);
    run_node_check(&r, 0);
}

static void check(conv t, bool linear) { check_in(t, linear, (manner){NULL, false, false}); }

static const conv cases[] = {
    {2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, false, false, false, false},
    {2, 2, 1, 5, 7, 9, 11, 3, 3, 1, 1, 1, 1, 1, 1, false, true, true, true},
    {2, 1, 3, 2, 2, 10, 300, 3, 5, 2, 3, 2, 1, 2, 0, true, true, true, false},
    {1, 2, 1, 3, 4, 1, 17, 1, 4, 1, 2, 1, 2, 0, 3, false, false, false, true},
    {3, 1, 2, 2, 3, 6, 7, 2, 3, 1, 2, 1, 1, 0, 1, true, false, true, true},
};

static void qconv__integer(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) check(cases[i], false);
}

static void qconv__linear(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) check(cases[i], true);
}

/* Each kind of words, with remainders of channels in and out, of words, of tiles of pixels and of blocks. */
static const struct {
    conv t;
    bool extreme, w_computed;
} wide[] = {
    {{2, 2, 1, 5, 25, 9, 37, 3, 3, 1, 1, 1, 1, 1, 1, false, true, true, true}, false, false},
    {{2, 1, 3, 6, 13, 11, 40, 3, 3, 2, 2, 1, 2, 1, 2, false, true, false, true}, false, false},
    {{2, 1, 1, 130, 70, 7, 7, 1, 1, 1, 1, 1, 1, 0, 0, false, true, true, true}, false, false},
    {{2, 2, 1, 66, 12, 30, 31, 1, 1, 2, 2, 1, 1, 0, 0, false, true, true, true}, false, false},
    {{2, 1, 1, 2, 3, 20, 19, 9, 9, 1, 1, 1, 1, 4, 4, true, false, true, false}, false, true},
    {{2, 1, 1, 70000, 2, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, false, true, true, true}, false, false},
    {{2, 1, 1, 270000, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, false, true, true, true}, false, false},
    {{1, 1, 2, 261, 2, 1, 18, 1, 3, 1, 1, 1, 1, 0, 1, false, true, true, true}, true, false},
    {{2, 1, 1, 259, 1, 3, 3, 3, 3, 1, 1, 1, 1, 0, 0, true, false, true, false}, true, false},
};

static void check_wide(const char *way)
{
    for (size_t i = 0; i < COUNT(wide); i++) {
        const manner how = {way, wide[i].extreme, wide[i].w_computed};
        check_in(wide[i].t, i % 2 == 0, how);
        if (how.extreme) check_in(wide[i].t, i % 2 != 0, how);
    }
}

static void qconv__wide_byte(void **state)
{
    (void)state;
    check_wide("qconv_wide_byte");
}

static void qconv__wide_short(void **state)
{
    (void)state;
    check_wide("qconv_wide_short");
}

static void qconv__wide_float(void **state)
{
    (void)state;
    check_wide("qconv_wide_float");
}

/* One channel a group: 16 x 16 taps are the most whose sums floats have exactly. */
static void qconv__depthwise(void **state)
{
    static const conv usual[] = {
        {2, 2, 37, 1, 1, 9, 41, 3, 3, 1, 1, 1, 1, 1, 1, false, true, true, true},
        {2, 1, 5, 1, 2, 14, 15, 5, 3, 2, 2, 1, 2, 2, 1, true, false, true, true},
    };
    static const conv extreme[] = {
        {2, 1, 3, 1, 1, 20, 30, 16, 16, 1, 1, 1, 1, 3, 3, false, true, true, false},
        {2, 1, 3, 1, 1, 20, 30, 16, 16, 1, 1, 1, 1, 0, 7, true, false, false, false},
    };
    const manner plainly = {"qconv_depthwise_wide", false, false},
                 extremely = {"qconv_depthwise_wide", true, false};
    (void)state;
    for (size_t i = 0; i < COUNT(usual); i++) {
        check_in(usual[i], true, plainly);
        check_in(usual[i], false, plainly);
        check_in(extreme[i], true, extremely);
        check_in(extreme[i], false, extremely);
    }
    check_in((conv){2, 1, 2, 1, 1, 20, 18, 17, 16, 1, 1, 1, 1, 0, 0, false, true, true, true},
             false, (manner){NULL, true, false});
}

static void qconv__refuses(void **state)
{
    (void)state;
    const double x[32] = {0};
    run_node r;
    run_node_start(&r, NULL, "ConvInteger", 10);
    run_node_input(&r, CLG_UINT8, 4, (int64_t[]){1, 2, 3, 3}, x);
    run_node_input(&r, CLG_INT8, 4, (int64_t[]){2, 1, 2, 2}, x);
    run_node_expect(&r, CLG_INT32, 4, (int64_t[]){1, 2, 2, 2}, x);
    run_node_refused(&r, CLG_ERROR_SHAPE, "2 channels");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(qconv__integer),    cmocka_unit_test(qconv__linear),
        cmocka_unit_test(qconv__wide_byte),  cmocka_unit_test(qconv__wide_short),
        cmocka_unit_test(qconv__wide_float), cmocka_unit_test(qconv__depthwise),
        cmocka_unit_test(qconv__refuses),
    };
    return cmocka_run_group_tests(tests, run_node_open, run_node_close);
}
