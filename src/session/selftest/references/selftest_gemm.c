/* SPDX-License-Identifier: Apache-2.0
 *
 * Self-test references of floating-point matrix products (MatMul, Gemm and fused) and convolutions
 * (Conv, FusedConv, channel-blocked BlockedConv), with bias, residual and activation, and of the
 * gradients of convolutions, in double.
 */
#include "ops/conv/conv_blocked.h"
#include "ops/conv/conv_grad.h"
#include "ops/lowering/epilogue.h"
#include "session/selftest/references/selftest_math.h"
#include "session/selftest/selftest.h"

#include <math.h>
#include <string.h>

/* ---- the epilogue ---------------------------------------------------------------------------- */

/* Computes an activation (numbers as in epilogue_activations) by other formulas than the
 * kernels. */
static double activate(const epilogue_ops *e, double v)
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

/* Returns the largest slope of an activation, but at least 1: the factor by which it may amplify an
 * error. */
static double steepness(const epilogue_ops *e)
{
    switch (e->activation) {
    case 2:
    case 6:
    case 10: return fmax(1, fabs((double)e->act_a)); /* an attribute is the slope */
    case 7: return 1.5;                              /* HardSwish at 3 */
    case 8: return 1.1;                              /* Silu, 1.0998 near 2.4 */
    case 9: return 1.13;                             /* Gelu, 1.1289 near 1.4 */
    default: return 1;
    }
}

/* Computes y = activation(alpha * y + bias + residual), where bias is already multiplied by beta,
 * or by a residual that is a mask residual > 0 ? alpha * y + bias : 0;
 * without the activation if `activated` is false. scale becomes the sum of the magnitudes of these
 * terms times steepness, plus 1 for the rounding of the activation. */
static void finish(const lower_context *lc, bool activated, const double *bias,
                   const double *residual, double *y, double *scale, int64_t n)
{
    epilogue_ops e;
    epilogue_read(lc, &e);
    if (!activated) e.activation = 0;
    const double alpha = (double)node_float(lc->node, "alpha", 1);
    for (int64_t i = 0; i < n; i++) {
        const double plus = (bias ? bias[i] : 0) + (residual && !e.is_mask ? residual[i] : 0);
        y[i] = activate(&e, alpha * y[i] + plus);
        if (residual && e.is_mask && !(residual[i] > 0)) y[i] = 0;
        scale[i] = steepness(&e) * (fabs(alpha) * scale[i] + fabs(plus)) + 1;
    }
}

/* ---- Gemm and MatMul ------------------------------------------------------------------------- */

static clg_status matrix_reference(const lower_context *lc, const double *const *in,
                                   const selftest_expected *out)
{
    double *y = out[0].y, *scale = out[0].scale;
    const selftest_factor a = {&lc->inputs[0].dims, in[0]}, b = {&lc->inputs[1].dims, in[1]};
    double *bias, *residual;
    CLG_TRY(selftest_broadcast(lc, 2, in, (double)node_float(lc->node, "beta", 1), &bias));
    CLG_TRY(selftest_broadcast(lc, 3, in, 1, &residual));
    selftest_multiply(lc, &a, &b, y, scale);
    finish(lc, true, bias, residual, y, scale, selftest_count(&lc->outputs[0].dims));
    return CLG_OK;
}

/* ---- Conv ------------------------------------------------------------------------------------ */

static clg_status conv_reference(const lower_context *lc, const double *const *in,
                                 const selftest_expected *out)
{
    double *y = out[0].y, *scale = out[0].scale;
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

/* ---- BlockedConv ----------------------------------------------------------------------------- */

/* Sets *out to an input in NCHW order; NULL if it is absent. */
static clg_status in_order(const lower_context *lc, size_t input, int64_t channels,
                           const double *const *in, const double **out)
{
    *out = in[input];
    if (!lower_has_input(lc, input) || lc->inputs[input].dims.rank != 5) return CLG_OK;
    const shape *dims = &lc->inputs[input].dims;
    double *made = arena_alloc(lc->memory, (size_t)selftest_count(dims) + 1, sizeof *made);
    if (!made) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    selftest_reorder(dims, channels, in[input], made, false);
    *out = made;
    return CLG_OK;
}

/* Expands a bias [channels] to n elements of feature maps in NCHW order with `plane` pixels; *out
 * is NULL if the input is absent. */
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

/* Returns n zeros in the arena; NULL when memory runs out. */
static double *zeros(const lower_context *lc, int64_t n)
{
    double *x = arena_alloc(lc->memory, (size_t)n + 1, sizeof *x);
    if (x) memset(x, 0, (size_t)n * sizeof *x);
    return x;
}

/* Computes the 1x1 convolution that precedes the node's own. Replaces *x by its result, and flat's
 * channels by its number of them. *out_size: the magnitudes of the terms of each element, to which
 * errors are relative. */
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
            selftest_axpy((*x)[i], &in[BLOCKED_EXPAND_WEIGHT][o * depth + c], 1, 1,
                          sums + at + o * plane, sizes + at + o * plane);
    }
    CLG_TRY(spread_bias(lc, BLOCKED_EXPAND_BIAS, in, channels, plane, n, &bias));
    finish(lc, (activated & BLOCKED_FIRST_ACTIVATED) != 0, bias, NULL, sums, sizes, n);
    flat->dims[1] = channels;
    *x = sums;
    *out_size = sizes;
    return CLG_OK;
}

/* Scales and shifts the channels of x by the node's prologue. *out_size: as go_through_points. */
static clg_status go_through_prologue(const lower_context *lc, const double *const *in,
                                      const shape *flat, const double **x, double **out_size)
{
    const int64_t plane = flat->dims[2] * flat->dims[3], channels = flat->dims[1];
    const int64_t n = flat->dims[0] * channels * plane;
    const bool has_relu = node_int(lc->node, "prologue_relu", 0) != 0;
    double *made = zeros(lc, n), *sizes = zeros(lc, n);
    if (!made || !sizes) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (int64_t i = 0; i < n; i++) {
        const int64_t c = i / plane % channels;
        const double scaled = (*x)[i] * in[BLOCKED_SCALE][c], shift = in[BLOCKED_SHIFT][c];
        made[i] = has_relu && scaled + shift < 0 ? 0 : scaled + shift;
        sizes[i] = fabs(scaled) + fabs(shift);
    }
    *x = made;
    *out_size = sizes;
    return CLG_OK;
}

/* Propagates `size`, the error scales of the convolution's input, through its absolute weights, and
 * adds the result to zeroed `sizes`. */
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

/* Computes BlockedConv as a convolution in NCHW order. Lanes after the last channel are only
 * checked for NaNs. */
static clg_status blocked_reference(const lower_context *lc, const double *const *in,
                                    const selftest_expected *out)
{
    double *y = out[0].y, *scale = out[0].scale;
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
    if (lower_has_input(lc, BLOCKED_SCALE)) CLG_TRY(go_through_prologue(lc, in, &flat, &x, &size));
    const selftest_factor left = {&flat, x}, right = {w, in[1]};
    CLG_TRY(selftest_convolve(lc, &left, &right, sums, sizes));
    if (size) CLG_TRY(carry_sizes(lc, &flat, size, w, in[1], n, sizes));
    CLG_TRY(spread_bias(lc, 2, in, channels, n_out, n, &bias));
    finish(lc, !expanded || (activated & BLOCKED_LAST_ACTIVATED) != 0, bias, residual, sums, sizes,
           n);
    for (int64_t i = 0; i < all; i++) scale[i] = HUGE_VAL;
    selftest_reorder(over, channels, sums, y, true);
    selftest_reorder(over, channels, sizes, scale, true);
    return CLG_OK;
}

selftest_reference *selftest_gemm_reference(const node *n)
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

clg_status selftest_gemm(const lower_context *lc, const double *const *in,
                         const selftest_expected *out)
{
    return selftest_gemm_reference(lc->node)(lc, in, out);
}

/* ---- gradients of convolutions --------------------------------------------------------------- */

/* A convolution between maps `small` [n, groups m, windows] and `large` [n, groups c, pixels], and
 * its weight [groups m, c, taps]: each of the three is a sum of products of the others. */
typedef struct conv_terms {
    window_axis axes[WINDOW_MAX_AXES];
    int64_t images, groups, m, c, windows, n_pixels, taps;
    int64_t *pixels; /* by window and tap: the pixel that it reads, or -1 */
    /* Distance between the channels of the result (c of large, m of the others) that are computed,
     * the last one among them. */
    int64_t step;
} conv_terms;

/* The number of products that the reference may sum, about. */
#define MAX_TERMS ((int64_t)1 << 24)

/* Returns the pixel that tap `tap` of a window reads, or -1. */
static int64_t pixel_of(const conv_terms *t, int64_t window, int64_t tap)
{
    int64_t at = 0, stride = 1;
    for (int d = WINDOW_MAX_AXES - 1; d >= 0; d--) {
        const window_axis *a = &t->axes[d];
        const int64_t i =
            window % a->out * a->stride + tap % a->kernel * a->dilation - a->pad_begin;
        if (i < 0 || i >= a->in) return -1;
        at += i * stride;
        stride *= a->in;
        window /= a->out;
        tap /= a->kernel;
    }
    return at;
}

/* The maps and the weight of a group and image: two to read, and the result with its scales. */
typedef struct conv_parts {
    const double *small, *large, *weight;
    double *result, *scale;
} conv_parts;

/* Adds the products for channel m of small and c of large. */
static void add_terms(const conv_terms *t, const conv_parts *p, int64_t m, int64_t c)
{
    for (int64_t i = 0; i < t->windows * t->taps; i++) {
        if (t->pixels[i] < 0) continue;
        const int64_t s = m * t->windows + i / t->taps, l = c * t->n_pixels + t->pixels[i],
                      w = (m * t->c + c) * t->taps + i % t->taps,
                      to = !p->small   ? s
                           : !p->large ? l
                                       : w;
        const double term = (p->small ? p->small[s] : 1) * (p->large ? p->large[l] : 1) *
                            (p->weight ? p->weight[w] : 1);
        p->result[to] += term;
        p->scale[to] += fabs(term);
    }
}

/* Adds all products of a group and image; the scales of what is not computed become infinite. */
static void add_group(const conv_terms *t, const conv_parts *p)
{
    const int64_t lines = p->large ? t->m : t->c, others = p->large ? t->c : t->m,
                  line = !p->small   ? t->windows
                         : !p->large ? t->n_pixels
                                     : t->c * t->taps;
    for (int64_t i = 0; i < lines; i++) {
        const bool is_computed = (lines - 1 - i) % t->step == 0;
        for (int64_t k = 0; is_computed && k < others; k++)
            add_terms(t, p, p->large ? i : k, p->large ? k : i);
        for (int64_t k = 0; !is_computed && k < line; k++) p->scale[i * line + k] = HUGE_VAL;
    }
}

/* Returns the part of a map or weight that belongs to a group and image; NULL for the result. */
static const double *part_of(const double *whole, int64_t offset)
{
    return whole ? whole + offset : NULL;
}

static clg_status read_terms(const lower_context *lc, const conv_grad_roles *r, conv_terms *t)
{
    *t = (conv_terms){.images = r->x->dims[0], .groups = node_int(lc->node, "group", 1)};
    CLG_TRY(conv_grad_axes(lc, t->axes));
    t->m = r->w->dims[0] / t->groups;
    t->c = r->w->dims[1];
    t->windows = window_count_out(t->axes);
    t->n_pixels = window_count_in(t->axes);
    t->taps = window_count_taps(t->axes);
    t->step = 1 + t->images * t->groups * t->m * t->c * t->windows * t->taps / MAX_TERMS;
    t->pixels = arena_alloc(lc->memory, (size_t)(t->windows * t->taps) + 1, sizeof *t->pixels);
    if (!t->pixels) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (int64_t i = 0; i < t->windows * t->taps; i++)
        t->pixels[i] = pixel_of(t, i / t->taps, i % t->taps);
    return CLG_OK;
}

clg_status selftest_conv_grad(const lower_context *lc, const double *const *in,
                              const selftest_expected *out)
{
    const conv_grad_op *op = lc->row->param;
    const conv_grad_roles r =
        conv_grad_roles_of(lc->row, &lc->inputs[0].dims, &lc->inputs[1].dims, &lc->outputs[0].dims);
    conv_terms t;
    CLG_TRY(read_terms(lc, &r, &t));
    const double *x = op->is_filter ? in[0] : NULL, *g = op->is_filter ? in[1] : in[0],
                 *weight = op->is_filter ? NULL : in[1];
    const double *small = op->is_transposed ? x : g, *large = op->is_transposed ? g : x;
    for (int64_t i = 0; i < t.images * t.groups; i++) { /* image, group */
        const int64_t s = i * t.m * t.windows, l = i * t.c * t.n_pixels,
                      w = i % t.groups * t.m * t.c * t.taps,
                      to = !small   ? s
                           : !large ? l
                                    : w;
        const conv_parts p = {part_of(small, s), part_of(large, l), part_of(weight, w),
                              out[0].y + to, out[0].scale + to};
        add_group(&t, &p);
    }
    return CLG_OK;
}
