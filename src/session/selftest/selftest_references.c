/* SPDX-License-Identifier: Apache-2.0
 *
 * Self-test references, in double, of pointwise operators, Softmax, reductions, pooling,
 * normalisation, Concat and Gather, by other formulas than the kernels'.
 */
#include "ops/lowering/window.h"
#include "session/selftest/selftest.h"
#include "session/selftest/selftest_math.h"

#include <math.h>
#include <string.h>

/* Sets the scale of each error to the magnitude of the result plus 1. */
static void scale_by_answer(const double *y, double *scale, int64_t n)
{
    for (int64_t i = 0; i < n; i++) scale[i] = fabs(y[i]) + 1;
}

/* A tensor as [outer, dim, inner], where dim is the length of an axis. */
typedef struct around {
    int64_t outer, dim, inner;
} around;

static around around_axis(const shape *s, int axis)
{
    around a = {1, s->dims[axis], 1};
    for (int i = 0; i < s->rank; i++) {
        if (i < axis) a.outer *= s->dims[i];
        if (i > axis) a.inner *= s->dims[i];
    }
    return a;
}

int selftest_axis(const node *n, const shape *x, int64_t fallback)
{
    return (int)((node_int(n, "axis", fallback) + x->rank) % x->rank);
}

static int axis_of(const lower_context *lc, int64_t fallback)
{
    return selftest_axis(lc->node, &lc->inputs[0].dims, fallback);
}

/* ---- element by element ---------------------------------------------------------------------- */

static double relu(double a, double b) { return (a + fabs(a)) / 2 + 0 * b; }
static double sigmoid(double a, double b) { return 0.5 * (1 + tanh(a / 2)) + 0 * b; }
static double hyperbolic(double a, double b) { return 1 - 2 / (exp(2 * a) + 1) + 0 * b; }
static double exponential(double a, double b) { return pow(2, a / log(2)) + 0 * b; }
static double logarithm(double a, double b) { return log1p(a - 1) + 0 * b; }
static double root(double a, double b) { return exp(log(a) / 2) + 0 * b; }
static double error_function(double a, double b) { return 1 - erfc(a) + 0 * b; }
static double gelu(double a, double b) { return a * erfc(-a / sqrt(2)) / 2 + 0 * b; }
static double add(double a, double b) { return -(-a - b); }
static double subtract(double a, double b) { return -(b - a); }
static double multiply(double a, double b) { return ((a + b) * (a + b) - (a - b) * (a - b)) / 4; }
static double divide(double a, double b) { return a * (1 / b); }
static double power(double a, double b) { return exp(b * log(a)); }
static double larger(double a, double b) { return (a + b + fabs(a - b)) / 2; }
static double smaller(double a, double b) { return (a + b - fabs(a - b)) / 2; }

clg_status selftest_pointwise(const lower_context *lc, const double *const *in, double *y,
                              double *scale)
{
    static const struct {
        const char *op_type;
        double (*f)(double a, double b);
    } rows[] = {{"Relu", relu},          {"Sigmoid", sigmoid}, {"Tanh", hyperbolic},
                {"Exp", exponential},    {"Log", logarithm},   {"Sqrt", root},
                {"Erf", error_function}, {"Gelu", gelu},       {"Add", add},
                {"Sub", subtract},       {"Mul", multiply},    {"Div", divide},
                {"Pow", power},          {"Max", larger},      {"Min", smaller}};
    const int64_t n = selftest_count(&lc->outputs[0].dims);
    double *a, *b, (*f)(double, double) = NULL;
    CLG_TRY(selftest_broadcast(lc, 0, in, 1, &a));
    CLG_TRY(selftest_broadcast(lc, 1, in, 1, &b));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(rows[i].op_type, lc->node->op_type) == 0) f = rows[i].f;
    for (int64_t i = 0; f && i < n; i++) y[i] = f(a[i], b ? b[i] : 0);
    scale_by_answer(y, scale, n);
    return CLG_OK;
}

/* ---- along axes ------------------------------------------------------------------------------ */

/* Computes Softmax as 1 / sum exp(x[k] - x[i]), and LogSoftmax as the logarithm of that. */
clg_status selftest_softmax(const lower_context *lc, const double *const *in, double *y,
                            double *scale)
{
    const bool is_log = strcmp(lc->node->op_type, "LogSoftmax") == 0;
    const around a = around_axis(&lc->inputs[0].dims, axis_of(lc, -1));
    for (int64_t i = 0; i < a.outer * a.dim * a.inner; i++) {
        const double *line = in[0] + i / (a.dim * a.inner) * a.dim * a.inner + i % a.inner;
        double sum = 0;
        for (int64_t k = 0; k < a.dim; k++) sum += exp(line[k * a.inner] - in[0][i]);
        y[i] = is_log ? -log(sum) : 1 / sum;
    }
    scale_by_answer(y, scale, a.outer * a.dim * a.inner);
    return CLG_OK;
}

/* Computes ReduceSum, ReduceMean, ReduceMax, ReduceMin, ReduceL2, ReduceSumSquare and
 * ReduceLogSumExp with keepdims, and global pools, by scattering each element to its result. The
 * reduced axes are those of size 1 in the output. */
clg_status selftest_reduce(const lower_context *lc, const double *const *in, double *y,
                           double *scale)
{
    const shape *x = &lc->inputs[0].dims, *to = &lc->outputs[0].dims;
    const char *op = lc->node->op_type;
    const int64_t n = selftest_count(x), n_out = selftest_count(to), each = n / n_out;
    const bool mean = strstr(op, "Mean") || strstr(op, "Average"), square = strstr(op, "Square");
    const bool max = strstr(op, "Max"), min = strstr(op, "Min");
    const bool root_of = strcmp(op, "ReduceL2") == 0, log_of = strcmp(op, "ReduceLogSumExp") == 0;
    for (int64_t i = 0; i < n_out; i++) y[i] = max ? -HUGE_VAL : min ? HUGE_VAL : 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t rest = i, at = 0, stride = 1;
        for (int d = x->rank - 1; d >= 0; d--) {
            if (to->dims[d] > 1) at += rest % x->dims[d] * stride;
            stride *= to->dims[d];
            rest /= x->dims[d];
        }
        const double v = in[0][i];
        const double term = square || root_of ? v * v : log_of ? exp(v) : v;
        y[at] = max ? fmax(y[at], v) : min ? fmin(y[at], v) : y[at] + term;
        scale[at] += fabs(term) / (mean ? (double)each : 1);
    }
    for (int64_t i = 0; i < n_out; i++) {
        y[i] = mean      ? y[i] / (double)each
               : root_of ? hypot(0, sqrt(y[i]))
               : log_of  ? log(y[i])
                         : y[i];
        scale[i] += 1;
    }
    return CLG_OK;
}

/* Computes MaxPool and AveragePool over two axes without dilations, by scattering each element to
 * the windows that contain it. */
clg_status selftest_pool(const lower_context *lc, const double *const *in, double *y, double *scale)
{
    const shape *x = &lc->inputs[0].dims;
    const bool max = strcmp(lc->node->op_type, "MaxPool") == 0;
    const bool padded = node_int(lc->node, "count_include_pad", 0) != 0;
    window_desc win;
    window_axis a[WINDOW_MAX_AXES];
    CLG_TRY(window_read(lc->node, x, NULL, &win));
    window_fill(&win, a);
    const int64_t plane = a[1].out * a[2].out, n = x->dims[0] * x->dims[1] * plane;
    for (int64_t i = 0; i < n; i++) y[i] = max ? -HUGE_VAL : 0;
    for (int64_t i = 0; i < selftest_count(x); i++) {
        const int64_t w = i % a[2].in, h = i / a[2].in % a[1].in, p = i / (a[1].in * a[2].in);
        for (int64_t r = 0; r < a[1].out; r++)
            for (int64_t q = 0; q < a[2].out; q++) {
                const int64_t down = h + a[1].pad_begin - r * a[1].stride,
                              across = w + a[2].pad_begin - q * a[2].stride;
                if (down < 0 || across < 0 || down >= a[1].kernel || across >= a[2].kernel)
                    continue;
                const int64_t at = p * plane + r * a[2].out + q;
                y[at] = max ? fmax(y[at], in[0][i]) : y[at] + in[0][i];
                scale[at] += 1; /* counts the elements in the window */
            }
    }
    for (int64_t i = 0; i < n; i++) {
        if (!max) y[i] /= padded ? (double)(a[1].kernel * a[2].kernel) : scale[i];
        scale[i] = fabs(y[i]) + 1;
    }
    return CLG_OK;
}

/* Computes mean and variance of n elements `step` apart; the variance as half the mean of the
 * squared differences of all ordered pairs. */
static void moments(const double *x, int64_t n, int64_t step, double *out_mean,
                    double *out_variance)
{
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += x[i * step];
        for (int64_t k = 0; k < i; k++)
            squares += (x[i * step] - x[k * step]) * (x[i * step] - x[k * step]);
    }
    *out_mean = sum / (double)n;
    *out_variance = squares / (double)n / (double)n;
}

/* Computes LayerNormalization over the last axis, InstanceNormalization and BatchNormalization. */
clg_status selftest_norm(const lower_context *lc, const double *const *in, double *y, double *scale)
{
    const shape *x = &lc->inputs[0].dims;
    const bool layer = strcmp(lc->node->op_type, "LayerNormalization") == 0,
               batch = strcmp(lc->node->op_type, "BatchNormalization") == 0;
    const around a = around_axis(x, layer ? x->rank - 1 : 1);
    const double epsilon = (double)node_float(lc->node, "epsilon", 1e-5f);
    for (int64_t i = 0; i < a.outer * a.dim * a.inner; i++) {
        const int64_t channel = i / a.inner % a.dim;
        double mean, variance;
        if (layer)
            moments(in[0] + i / a.dim * a.dim, a.dim, 1, &mean, &variance);
        else if (!batch)
            moments(in[0] + i / a.inner * a.inner, a.inner, 1, &mean, &variance);
        if (batch) {
            mean = in[3][channel];
            variance = in[4][channel];
        }
        const double gain = in[1][channel] / sqrt(variance + epsilon);
        y[i] = in[0][i] * gain - mean * gain + in[2][channel];
        scale[i] = fabs(in[0][i] * gain) + fabs(mean * gain) + fabs(in[2][channel]) + 1;
    }
    return CLG_OK;
}

/* ---- data movement --------------------------------------------------------------------------- */

clg_status selftest_concat(const lower_context *lc, const double *const *in, double *y,
                           double *scale)
{
    const int axis = axis_of(lc, 0);
    const around all = around_axis(&lc->outputs[0].dims, axis);
    int64_t offset = 0;
    for (size_t i = 0; i < lc->n_inputs; i++) {
        const around part = around_axis(&lc->inputs[i].dims, axis);
        for (int64_t k = 0; k < part.outer * part.dim * part.inner; k++) {
            const int64_t row = k / (part.dim * part.inner), rest = k % (part.dim * part.inner);
            y[row * all.dim * all.inner + offset * all.inner + rest] = in[i][k];
        }
        offset += part.dim;
    }
    scale_by_answer(y, scale, selftest_count(&lc->outputs[0].dims));
    return CLG_OK;
}

clg_status selftest_gather(const lower_context *lc, const double *const *in, double *y,
                           double *scale)
{
    const around a = around_axis(&lc->inputs[0].dims, axis_of(lc, 0));
    const int64_t n = selftest_count(&lc->inputs[1].dims);
    for (int64_t o = 0; o < a.outer; o++)
        for (int64_t k = 0; k < n; k++) {
            const int64_t index = ((int64_t)in[1][k] + a.dim) % a.dim;
            for (int64_t i = 0; i < a.inner; i++)
                y[(o * n + k) * a.inner + i] = in[0][(o * a.dim + index) * a.inner + i];
        }
    scale_by_answer(y, scale, a.outer * n * a.inner);
    return CLG_OK;
}
