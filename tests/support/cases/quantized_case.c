/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs test cases of 8-bit GEMMs and convolutions. See quantized_case.h.
 */
#include "support/cases/quantized_case.h"

#include <math.h>

double *quantized_bytes(int64_t n, bool is_signed)
{
    double *x = run_node_random(n);
    for (int64_t i = 0; i < n; i++) x[i] = floor((x[i] + 1) * 127.9) - (is_signed ? 128 : 0);
    return x;
}

/* Multiply-adds from which on a case takes too long on a simulator. */
#define MANY_TERMS 2000000

/* Returns n random quantised values in a range. high: with FURTHEST, all are the largest value
 * instead of the smallest. */
static double *numbers(int64_t n, bool is_signed, quantized_range range, bool high)
{
    double *x = quantized_bytes(n, is_signed);
    const double low = is_signed ? -128 : 0;
    for (int64_t i = 0; range != ANY_NUMBERS && i < n; i++) {
        const bool up = range == FURTHEST ? high : x[i] >= low + 128;
        x[i] = up ? low + 255 : low;
    }
    return x;
}

/* ---- GEMMs ----------------------------------------------------------------------------------- */

int64_t qgemm_sum(const qgemm_case *p, const double *a, const double *b, const double *az,
                  const double *bz, int64_t z, int64_t i, int64_t j)
{
    int64_t sum = 0;
    for (int64_t t = 0; t < p->k; t++) {
        const double x = a[(z * p->m + i) * p->k + t] - (p->zeros ? az[p->zeros == 2 ? i : 0] : 0);
        const double y = b[((p->shared_b ? 0 : z) * p->k + t) * p->n + j] -
                         (p->zeros ? bz[p->zeros == 2 ? j : 0] : 0);
        sum += (int64_t)(x * y);
    }
    return sum;
}

void qgemm_check_integer(qgemm_case p, quantized_how how)
{
    const clg_dtype ta = p.a_signed ? CLG_INT8 : CLG_UINT8, tb = p.b_signed ? CLG_INT8 : CLG_UINT8;
    const double *a = numbers(p.batch * p.m * p.k, p.a_signed, how.range, true),
                 *b = numbers(p.batch * p.k * p.n, p.b_signed, how.range, false);
    const double *az = numbers(p.m, p.a_signed, how.range, false),
                 *bz = numbers(p.n, p.b_signed, how.range, true);
    double *y = run_node_zeros(p.batch * p.m * p.n);
    for (int64_t i = 0; i < p.batch * p.m * p.n; i++)
        y[i] = (double)qgemm_sum(&p, a, b, az, bz, i / p.n / p.m, i / p.n % p.m, i % p.n);
    run_node r;
    run_node_start(&r, NULL, "MatMulInteger", 10);
    run_node_input(&r, ta, 3, (int64_t[]){p.batch, p.m, p.k}, a);
    if (p.shared_b)
        run_node_constant(&r, tb, 2, (int64_t[]){p.k, p.n}, b);
    else
        run_node_input(&r, tb, 3, (int64_t[]){p.batch, p.k, p.n}, b);
    if (p.zeros) run_node_input(&r, ta, p.zeros == 2, &p.m, az);
    if (p.zeros) run_node_input(&r, tb, p.zeros == 2, &p.n, bz);
    r.impl = how.impl;
    r.impl_kernels = how.impl_kernels;
    r.heavy = p.batch * p.m * p.n * p.k > MANY_TERMS;
    run_node_expect(&r, CLG_INT32, 3, (int64_t[]){p.batch, p.m, p.n}, y);
    run_node_check(&r, 0);
}

void qgemm_check_linear(qgemm_case p, clg_dtype ty, clg_dtype ts, int fold, quantized_how how)
{
    const clg_dtype ta = p.a_signed ? CLG_INT8 : CLG_UINT8, tb = p.b_signed ? CLG_INT8 : CLG_UINT8;
    const double *a = numbers(p.batch * p.m * p.k, p.a_signed, how.range, true),
                 *b = numbers(p.batch * p.k * p.n, p.b_signed, how.range, false);
    const double *az = numbers(p.m, p.a_signed, how.range, false),
                 *bz = numbers(p.n, p.b_signed, how.range, true);
    double *y = run_node_zeros(p.batch * p.m * p.n), *sa = run_node_zeros(p.m + 1),
           *sb = run_node_zeros(p.n + 1);
    const double sy = ldexp(1, fold), zy = 7, low = ty == CLG_INT8 ? -128 : 0, high = low + 255;
    for (int64_t i = 0; i <= p.m; i++) sa[i] = ldexp(1, p.zeros == 2 ? (int)(i % 3) : 0);
    for (int64_t i = 0; i <= p.n; i++) sb[i] = ldexp(1, p.zeros == 2 ? -(int)(i % 2) : 0);
    for (int64_t i = 0; i < p.batch * p.m * p.n; i++) {
        const int64_t row = i / p.n % p.m, column = i % p.n;
        const double sum = (double)qgemm_sum(&p, a, b, az, bz, i / p.n / p.m, row, column);
        y[i] = nearbyint(sum * sa[row] * sb[column] / sy) + zy;
        y[i] = y[i] < low ? low : y[i] > high ? high : y[i];
    }
    run_node r;
    run_node_start(&r, NULL, "QLinearMatMul", ts == CLG_FLOAT32 ? 10 : 21);
    run_node_input(&r, ta, 3, (int64_t[]){p.batch, p.m, p.k}, a);
    run_node_input(&r, ts, p.zeros == 2, &p.m, sa);
    run_node_input(&r, ta, p.zeros == 2, &p.m, az);
    if (p.shared_b)
        run_node_constant(&r, tb, 2, (int64_t[]){p.k, p.n}, b);
    else
        run_node_input(&r, tb, 3, (int64_t[]){p.batch, p.k, p.n}, b);
    run_node_input(&r, ts, p.zeros == 2, &p.n, sb);
    run_node_input(&r, tb, p.zeros == 2, &p.n, bz);
    run_node_input(&r, ts, 0, NULL, &sy);
    run_node_input(&r, ty, 0, NULL, &zy);
    r.impl = how.impl;
    r.impl_kernels = how.impl_kernels;
    r.heavy = p.batch * p.m * p.n * p.k > MANY_TERMS;
    run_node_expect(&r, ty, 3, (int64_t[]){p.batch, p.m, p.n}, y);
    run_node_check(&r, 0);
}

/* ---- convolutions ---------------------------------------------------------------------------- */

static int64_t outputs(int64_t n, int64_t k, int64_t s, int64_t d, int64_t p)
{
    return (n + 2 * p - (k - 1) * d - 1) / s + 1;
}

static int64_t sum_at(const qconv_case *t, const double *x, const double *w, double xz, double wz,
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

/* Sets dims to the last `rank` of the three spatial sizes. */
static void spatial(int rank, int64_t *dims, int64_t h, int64_t w)
{
    const int64_t all[3] = {1, h, w};
    for (int i = 0; i < rank; i++) dims[2 + i] = all[3 - rank + i];
}

static void attributes(run_node *r, const qconv_case *t)
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

void qconv_check(qconv_case t, bool linear, quantized_how how)
{
    const int64_t channels = t.groups * t.oc, oh = outputs(t.h, t.kh, t.sh, t.dh, t.ph),
                  ow = outputs(t.w, t.kw, t.sw, t.dw, t.pw);
    const clg_dtype tx = t.x_signed ? CLG_INT8 : CLG_UINT8, tw = t.w_signed ? CLG_INT8 : CLG_UINT8;
    int64_t x_dims[5] = {t.batch, t.groups * t.ic}, w_dims[5] = {channels, t.ic},
            y_dims[5] = {t.batch, channels};
    spatial(t.rank, x_dims, t.h, t.w);
    spatial(t.rank, w_dims, t.kh, t.kw);
    spatial(t.rank, y_dims, oh, ow);
    const double *x = numbers(t.batch * t.groups * t.ic * t.h * t.w, t.x_signed, how.range, true),
                 *w = numbers(channels * t.ic * t.kh * t.kw, t.w_signed, how.range, false);
    const double *xz = numbers(1, t.x_signed, how.range, false),
                 *wz = numbers(channels, t.w_signed, how.range, true), sx = 0.5, sy = 512, zy = 100;
    double *y = run_node_zeros(t.batch * channels * oh * ow), *sw = run_node_zeros(channels),
           *bias = run_node_random(channels);
    for (int64_t i = 0; i < channels; i++) {
        sw[i] = ldexp(1, t.w_lists ? (int)(i % 3) : 0);
        bias[i] = floor(bias[i] * 4000);
    }
    for (int64_t i = 0; i < t.batch * channels * oh * ow; i++) {
        const int64_t o = i / ow / oh % channels, list = t.w_lists ? o : 0;
        const int64_t sum =
            sum_at(&t, x, w, xz[0], wz[list], i / ow / oh / channels, o, i / ow % oh, i % ow);
        const int64_t all = sum + (linear && t.bias ? (int64_t)bias[o] : 0);
        y[i] = (double)(int32_t)(uint32_t)all; /* int32 sums wrap modulo 2^32 */
        if (!linear) continue;
        y[i] = nearbyint(y[i] * sx * sw[list] / sy) + zy;
        y[i] = y[i] < 0 ? 0 : y[i] > 255 ? 255 : y[i];
    }
    run_node r;
    run_node_start(&r, NULL, linear ? "QLinearConv" : "ConvInteger", 10);
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
    r.impl = how.impl;
    r.impl_kernels = how.impl_kernels;
    r.heavy = t.batch * channels * oh * ow * t.ic * t.kh * t.kw > MANY_TERMS;
    run_node_expect(&r, linear ? CLG_UINT8 : CLG_INT32, 2 + t.rank, y_dims, y);
    run_node_check(&r, 0);
}
