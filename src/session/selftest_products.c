/* SPDX-License-Identifier: Apache-2.0
 *
 * What products and convolutions should give. In double, and by other sums than the kernels': each element of an input is
 * spread over the results that it is a part of, where kernels gather.
 */
#include "ops/conv_blocked.h"
#include "ops/epilogue.h"
#include "ops/window.h"
#include "session/selftest.h"

#include <math.h>
#include <string.h>

/* ---- the tail ------------------------------------------------------------------------------------ */

/* epilogue_activations, by other formulas. */
static double activate(const epilogue *e, double v)
{
    const double a = (double)e->act_a, b = (double)e->act_b;
    const double sigmoid = 0.5 * (1 + tanh(v / 2));
    switch (e->activation) {
    case 1: return (v + fabs(v)) / 2;
    case 2: return (v + fabs(v)) / 2 + a * (v - fabs(v)) / 2;
    case 3: return fmin(fmax(v, a), b);
    case 4: return sigmoid;
    case 5: return 1 - 2 / (exp(2 * v) + 1);
    case 6: return fmin(fmax(a * v + b, 0), 1);
    case 7: return v * fmin(fmax(v / 6 + 0.5, 0), 1);
    case 8: return v * sigmoid;
    case 9: return v * erfc(-v / sqrt(2)) / 2;
    case 10: return v > 0 ? v : a * expm1(v);
    default: return v;
    }
}

/* How much larger an error can become in an activation. */
static double steepness(const epilogue *e)
{
    const bool has_slope = e->activation == 2 || e->activation == 6 || e->activation == 10;
    return has_slope ? fmax(1, fabs((double)e->act_a)) : 1;
}

/* y = activation(alpha * y + beta * bias + residual), or without one. An activation adds rounding of about its own size, one. */
static void finish(const lower_context *lc, bool activated, const double *bias,
                   const double *residual, double *y, double *scale, int64_t n)
{
    epilogue e;
    epilogue_read(lc, &e);
    if (!activated) e.activation = 0;
    const double alpha = (double)node_float(lc->node, "alpha", 1);
    for (int64_t i = 0; i < n; i++) {
        const double plus = (bias ? bias[i] : 0) + (residual ? residual[i] : 0);
        y[i] = activate(&e, alpha * y[i] + plus);
        scale[i] = steepness(&e) * (fabs(alpha) * scale[i] + fabs(plus)) + 1;
    }
}

/* Row `i` of a product: y[j] += x * w[j * step]. */
static void spread(double x, const double *w, int64_t step, int64_t n, double *y, double *scale)
{
    for (int64_t j = 0; j < n; j++) {
        y[j] += x * w[j * step];
        scale[j] += fabs(x * w[j * step]);
    }
}

/* ---- Gemm and MatMul -------------------------------------------------------------------------------- */

int64_t selftest_count(const shape *s)
{
    int64_t n = 1;
    for (int i = 0; i < s->rank; i++) n *= s->dims[i];
    return n;
}

clg_status selftest_broadcast(const lower_context *lc, size_t input, const double *const *in,
                              double factor, double **out)
{
    *out = NULL;
    if (!lower_has_input(lc, input)) return CLG_OK;
    const shape *y = &lc->outputs[0].dims, *x = &lc->inputs[input].dims;
    const int64_t n = selftest_count(y);
    *out = arena_alloc(lc->memory, (size_t)n + 1, sizeof **out);
    if (!*out) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (int64_t i = 0; i < n; i++) {
        int64_t rest = i, at = 0, stride = 1;
        for (int d = y->rank - 1, k = x->rank - 1; k >= 0; d--, k--) {
            at += x->dims[k] == 1 ? 0 : rest % y->dims[d] * stride;
            stride *= x->dims[k];
            rest /= y->dims[d];
        }
        (*out)[i] = factor * in[input][at];
    }
    return CLG_OK;
}

typedef struct product {
    int64_t m, n, k;
    int64_t a_row, a_col, b_row, b_col;
} product;

/* Of large products some rows are computed, the last among them; in the others nothing but NaNs counts. */
#define MOST_TERMS (1 << 24)
static int64_t step_of(int64_t lines, int64_t terms_of_line)
{
    const int64_t most = MOST_TERMS / (terms_of_line > 0 ? terms_of_line : 1);
    return lines > most ? lines / (most > 0 ? most : 1) + 1 : 1;
}

static void pass_over(double *scale, int64_t lines, int64_t line, int64_t step)
{
    for (int64_t i = 0; i < lines; i++)
        for (int64_t j = 0; (lines - 1 - i) % step != 0 && j < line; j++)
            scale[i * line + j] = HUGE_VAL;
}

static void multiply(const product *p, const double *a, const double *b, double *y, double *scale)
{
    const int64_t step = step_of(p->m, p->n * p->k);
    pass_over(scale, p->m, p->n, step);
    for (int64_t k = 0; k < p->k; k++)
        for (int64_t i = (p->m - 1) % step; i < p->m; i += step)
            spread(a[i * p->a_row + k * p->a_col], b + k * p->b_row, p->b_col, p->n, y + i * p->n,
                   scale + i * p->n);
}

static product sides(const node *n, const shape *a, const shape *b)
{
    const bool trans_a = a->rank > 1 && node_int(n, "transA", 0) != 0,
               trans_b = b->rank > 1 && node_int(n, "transB", 0) != 0;
    const int64_t rows = a->rank > 1 ? a->dims[a->rank - 2] : 1, cols = a->dims[a->rank - 1];
    const int64_t deep = b->rank > 1 ? b->dims[b->rank - 2] : b->dims[0];
    const int64_t wide = b->rank > 1 ? b->dims[b->rank - 1] : 1;
    return (product){.m = trans_a ? cols : rows,
                     .k = trans_a ? rows : cols,
                     .n = trans_b ? deep : wide,
                     .a_row = trans_a ? 1 : cols,
                     .a_col = trans_a ? cols : 1,
                     .b_row = trans_b ? 1 : wide,
                     .b_col = trans_b ? wide : 1};
}

/* Where batch `at` of the output finds its matrix in x, whose leading dimensions broadcast. */
static int64_t batch_of(const shape *x, const shape *over, int over_rank, int64_t at)
{
    int64_t place = 0, stride = 1;
    for (int d = over_rank - 1, k = x->rank - 3; k >= 0; d--, k--) {
        place += x->dims[k] == 1 ? 0 : at % over->dims[d] * stride;
        stride *= x->dims[k];
        at /= over->dims[d];
    }
    return place;
}

void selftest_multiply(const lower_context *lc, const selftest_factor *left,
                       const selftest_factor *right, double *y, double *scale)
{
    const shape *a = left->dims, *b = right->dims, *over = &lc->outputs[0].dims;
    const product p = sides(lc->node, a, b);
    const int64_t n = selftest_count(over), one = p.m * p.n;
    const int rank = over->rank - (a->rank > 1) - (b->rank > 1);
    for (int64_t z = 0; one > 0 && z < n / one; z++)
        multiply(&p, left->numbers + batch_of(a, over, rank, z) * p.m * p.k,
                 right->numbers + batch_of(b, over, rank, z) * p.k * p.n, y + z * one,
                 scale + z * one);
}

static clg_status matrix_reference(const lower_context *lc, const double *const *in, double *y,
                                   double *scale)
{
    const selftest_factor a = {&lc->inputs[0].dims, in[0]}, b = {&lc->inputs[1].dims, in[1]};
    double *bias, *residual;
    CLG_TRY(selftest_broadcast(lc, 2, in, (double)node_float(lc->node, "beta", 1), &bias));
    CLG_TRY(selftest_broadcast(lc, 3, in, 1, &residual));
    selftest_multiply(lc, &a, &b, y, scale);
    finish(lc, true, bias, residual, y, scale, selftest_count(&lc->outputs[0].dims));
    return CLG_OK;
}

/* ---- Conv --------------------------------------------------------------------------------------------- */

/* The output's position that tap `tap` carries input position `at` to; negative: none. */
static int64_t reached(const window_axis *a, int64_t at, int64_t tap)
{
    const int64_t from = at + a->pad_begin - tap * a->dilation;
    if (from < 0 || from % a->stride != 0 || from / a->stride >= a->out) return -1;
    return from / a->stride;
}

typedef struct convolution {
    window_axis axes[WINDOW_MAX_AXES];
    int64_t groups, ic, oc, n_out, n_taps;
    int64_t step; /* from one output channel to the next that is computed */
} convolution;

/* Input x at d, h, w, of channel c of a group: to all outputs of the group that see it. w: weights from [0, c, ...] on. */
static void scatter(const convolution *v, const int64_t at[3], double x, const double *w, double *y,
                    double *scale)
{
    const window_axis *a = v->axes;
    int64_t tap = 0;
    for (int64_t i = 0; i < a[0].kernel; i++)
        for (int64_t j = 0; j < a[1].kernel; j++)
            for (int64_t k = 0; k < a[2].kernel; k++, tap++) {
                const int64_t d = reached(&a[0], at[0], i), h = reached(&a[1], at[1], j),
                              q = reached(&a[2], at[2], k);
                if (d < 0 || h < 0 || q < 0) continue;
                const int64_t to = (d * a[1].out + h) * a[2].out + q;
                for (int64_t o = (v->oc - 1) % v->step; o < v->oc; o += v->step) {
                    const double term = x * w[o * v->ic * v->n_taps + tap];
                    y[o * v->n_out + to] += term;
                    scale[o * v->n_out + to] += fabs(term);
                }
            }
}

static void scatter_plane(const convolution *v, const double *x, const double *w, double *y,
                          double *scale)
{
    int64_t at[3];
    for (at[0] = 0; at[0] < v->axes[0].in; at[0]++)
        for (at[1] = 0; at[1] < v->axes[1].in; at[1]++)
            for (at[2] = 0; at[2] < v->axes[2].in; at[2]++) scatter(v, at, *x++, w, y, scale);
}

clg_status selftest_convolve(const lower_context *lc, const selftest_factor *left,
                             const selftest_factor *right, double *y, double *scale)
{
    const shape *x = left->dims, *w = right->dims;
    window win;
    CLG_TRY(window_read(lc->node, x, w, &win));
    convolution v = {.groups = node_int(lc->node, "group", 1), .ic = w->dims[1]};
    window_fill(&win, v.axes);
    v.oc = w->dims[0] / v.groups;
    v.n_out = v.axes[0].out * v.axes[1].out * v.axes[2].out;
    v.n_taps = v.axes[0].kernel * v.axes[1].kernel * v.axes[2].kernel;
    v.step = step_of(v.oc, x->dims[0] * v.groups * v.ic * v.n_out * v.n_taps);
    for (int64_t i = 0; i < x->dims[0] * v.groups; i++)
        pass_over(scale + i * v.oc * v.n_out, v.oc, v.n_out, v.step);
    const int64_t n_in = v.axes[0].in * v.axes[1].in * v.axes[2].in;
    for (int64_t i = 0; i < x->dims[0] * v.groups * v.ic; i++) { /* image, group, channel */
        const int64_t c = i % v.ic, image_group = i / v.ic, g = image_group % v.groups;
        const int64_t to = image_group * v.oc * v.n_out;
        scatter_plane(&v, left->numbers + i * n_in,
                      right->numbers + (g * v.oc * v.ic + c) * v.n_taps, y + to, scale + to);
    }
    return CLG_OK;
}

static clg_status conv_reference(const lower_context *lc, const double *const *in, double *y,
                                 double *scale)
{
    const selftest_factor x = {&lc->inputs[0].dims, in[0]}, w = {&lc->inputs[1].dims, in[1]};
    const shape *over = &lc->outputs[0].dims;
    const int64_t n = selftest_count(over), channels = w.dims->dims[0];
    double *bias = NULL;
    CLG_TRY(selftest_convolve(lc, &x, &w, y, scale));
    if (lower_has_input(lc, 2)) {
        const int64_t n_out = n > 0 ? n / over->dims[0] / channels : 1;
        bias = arena_alloc(lc->memory, (size_t)n + 1, sizeof *bias);
        if (!bias) return CLG_ERROR_OUT_OF_HOST_MEMORY;
        for (int64_t i = 0; i < n; i++) bias[i] = in[2][i / n_out % channels];
    }
    finish(lc, true, bias, in[3], y, scale, n);
    return CLG_OK;
}

/* ---- BlockedConv ---------------------------------------------------------------------------------------- */

/* Numbers of a map in blocks of channels, of which `channels` count, as they lie in NCHW order (`back`: the other way). */
static void reorder(const shape *in_blocks, int64_t channels, const double *from, double *to,
                    bool back)
{
    const int64_t *d = in_blocks->dims, plane = d[2] * d[3], lanes = d[4];
    for (int64_t i = 0; i < d[0] * channels * plane; i++) { /* i: place in NCHW order */
        const int64_t channel = i / plane % channels, image = i / plane / channels;
        const int64_t block = image * d[1] + channel / lanes;
        const int64_t at = (block * plane + i % plane) * lanes + channel % lanes;
        to[back ? at : i] = from[back ? i : at];
    }
}

static clg_status in_order(const lower_context *lc, size_t input, int64_t channels,
                           const double *const *in, const double **out)
{
    *out = in[input];
    if (!lower_has_input(lc, input) || lc->inputs[input].dims.rank != 5) return CLG_OK;
    const shape *dims = &lc->inputs[input].dims;
    double *made = arena_alloc(lc->memory, (size_t)selftest_count(dims) + 1, sizeof *made);
    if (!made) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    reorder(dims, channels, in[input], made, false);
    *out = made;
    return CLG_OK;
}

/* A bias [channels] for each of n elements of maps in NCHW order; none where the input is missing. */
static clg_status spread_bias(const lower_context *lc, size_t input, const double *const *in,
                              int64_t channels, int64_t plane, int64_t n, double **out)
{
    *out = NULL;
    if (!lower_has_input(lc, input)) return CLG_OK;
    *out = arena_alloc(lc->memory, (size_t)n + 1, sizeof **out);
    if (!*out) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (int64_t i = 0; i < n; i++) (*out)[i] = in[input][i / plane % channels];
    return CLG_OK;
}

static double *zeros(const lower_context *lc, int64_t n)
{
    double *x = arena_alloc(lc->memory, (size_t)n + 1, sizeof *x);
    if (x) memset(x, 0, (size_t)n * sizeof *x);
    return x;
}

/* The 1x1 convolution in front of x, and how large an error of each number counts. */
static clg_status go_through_points(const lower_context *lc, const double *const *in, shape *flat,
                                    const double **x, double **out_size)
{
    const shape *w = &lc->inputs[BLOCKED_EXPAND_WEIGHT].dims;
    const int64_t channels = w->dims[0], depth = w->dims[1], plane = flat->dims[2] * flat->dims[3];
    const int64_t n = flat->dims[0] * channels * plane;
    const int64_t activated = node_int(lc->node, "activated", BLOCKED_BOTH_ACTIVATED);
    double *sums = zeros(lc, n), *sizes = zeros(lc, n), *bias;
    if (!sums || !sizes) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (int64_t i = 0; i < flat->dims[0] * depth * plane; i++) { /* image, channel, pixel */
        const int64_t at = i / plane / depth * channels * plane + i % plane, c = i / plane % depth;
        for (int64_t o = 0; o < channels; o++)
            spread((*x)[i], &in[BLOCKED_EXPAND_WEIGHT][o * depth + c], 1, 1, sums + at + o * plane,
                   sizes + at + o * plane);
    }
    CLG_TRY(spread_bias(lc, BLOCKED_EXPAND_BIAS, in, channels, plane, n, &bias));
    finish(lc, (activated & BLOCKED_FIRST_ACTIVATED) != 0, bias, NULL, sums, sizes, n);
    flat->dims[1] = channels;
    *x = sums;
    *out_size = sizes;
    return CLG_OK;
}

/* Errors of the first convolution, as large as `size`, are carried on by the weights. */
static clg_status carry_sizes(const lower_context *lc, const shape *flat, const double *size,
                              const shape *w, const double *weights, int64_t n, double *sizes)
{
    const int64_t n_w = selftest_count(w);
    double *carried = zeros(lc, n), *absolute = zeros(lc, n_w);
    if (!carried || !absolute) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (int64_t i = 0; i < n_w; i++) absolute[i] = fabs(weights[i]);
    const selftest_factor left = {flat, size}, right = {w, absolute};
    memset(sizes, 0, (size_t)n * sizeof *sizes);
    return selftest_convolve(lc, &left, &right, carried, sizes);
}

/* What Conv gives of the same map in NCHW order. Of lanes behind the last channel nothing but NaNs counts. */
static clg_status blocked_reference(const lower_context *lc, const double *const *in, double *y,
                                    double *scale)
{
    const shape *over = &lc->outputs[0].dims, *w = &lc->inputs[1].dims;
    const bool expanded = lower_has_input(lc, BLOCKED_EXPAND_WEIGHT);
    const int64_t all = selftest_count(over), n_out = over->dims[2] * over->dims[3];
    const int64_t channels = w->dims[0], n = over->dims[0] * channels * n_out;
    const int64_t activated = node_int(lc->node, "activated", BLOCKED_BOTH_ACTIVATED);
    shape flat = conv_blocked_flat(&lc->inputs[0].dims);
    double *sums = zeros(lc, n), *sizes = zeros(lc, n), *bias, *size = NULL;
    const double *x, *residual;
    if (!sums || !sizes) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    flat.dims[1] = expanded ? lc->inputs[BLOCKED_EXPAND_WEIGHT].dims.dims[1]
                            : w->dims[1] * node_int(lc->node, "group", 1);
    CLG_TRY(in_order(lc, 0, flat.dims[1], in, &x));
    CLG_TRY(in_order(lc, 3, channels, in, &residual));
    if (expanded) CLG_TRY(go_through_points(lc, in, &flat, &x, &size));
    const selftest_factor left = {&flat, x}, right = {w, in[1]};
    CLG_TRY(selftest_convolve(lc, &left, &right, sums, sizes));
    if (expanded) CLG_TRY(carry_sizes(lc, &flat, size, w, in[1], n, sizes));
    CLG_TRY(spread_bias(lc, 2, in, channels, n_out, n, &bias));
    finish(lc, !expanded || (activated & BLOCKED_LAST_ACTIVATED) != 0, bias, residual, sums, sizes,
           n);
    for (int64_t i = 0; i < all; i++) scale[i] = HUGE_VAL;
    reorder(over, channels, sums, y, true);
    reorder(over, channels, sizes, scale, true);
    return CLG_OK;
}

selftest_reference *selftest_product_reference(const node *n)
{
    static const struct {
        const char *op_type;
        selftest_reference *reference;
    } rows[] = {{"BlockedConv", blocked_reference}, {"Conv", conv_reference},
                {"FusedConv", conv_reference},      {"MatMul", matrix_reference},
                {"FusedMatMul", matrix_reference},  {"Gemm", matrix_reference},
                {"FusedGemm", matrix_reference}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(rows[i].op_type, n->op_type) == 0) return rows[i].reference;
    return selftest_quantized_roles(n) ? selftest_quantized : NULL;
}

clg_status selftest_products(const lower_context *lc, const double *const *in, double *y,
                             double *scale)
{
    return selftest_product_reference(lc->node)(lc, in, y, scale);
}
