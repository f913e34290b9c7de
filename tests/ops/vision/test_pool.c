/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares MaxPool, AveragePool and LpPool with loops in double over every tap of a padded input.
 *
 * Tolerance: maxima are exact; means and norms of up to a hundred values have 2e-6 in float32 and
 * 1e-3 in float16.
 */
/* ctest: label quick timeout 900 */
#include "support/cases/run_node.h"

#include "tensor/dtype.h"

#include <math.h>
#include <string.h>

#define FLOAT_TOLERANCE 2e-6

typedef struct pool_case {
    int axes;
    int64_t planes[2];
    int64_t in[3], kernel[3], strides[3], dilations[3], begin[3], end[3];
    const char *auto_pad;
    bool ceil_mode;
} pool_case;

typedef enum pool_op { POOL_MAX, POOL_AVERAGE, POOL_AVERAGE_PADDED, POOL_LP } pool_op;

/* Completes a case to three axes, with output sizes by ONNX's formulas. */
typedef struct pool_whole {
    int64_t in[3], out[3], kernel[3], stride[3], dilation[3], begin[3], end[3];
} pool_whole;

static void complete_axis(const pool_case *t, int i, pool_whole *w, int at)
{
    w->in[at] = t->in[i];
    w->kernel[at] = t->kernel[i];
    w->stride[at] = t->strides[i] ? t->strides[i] : 1;
    w->dilation[at] = t->dilations[i] ? t->dilations[i] : 1;
    w->begin[at] = t->begin[i];
    w->end[at] = t->end[i];
    const int64_t reach = (w->kernel[at] - 1) * w->dilation[at] + 1;
    const double stride = (double)w->stride[at];
    if (t->auto_pad && strncmp(t->auto_pad, "SAME", 4) == 0) {
        w->out[at] = (int64_t)ceil((double)w->in[at] / stride);
        const int64_t total = (w->out[at] - 1) * w->stride[at] + reach - w->in[at];
        const int64_t padding = total > 0 ? total : 0;
        w->begin[at] = strcmp(t->auto_pad, "SAME_UPPER") == 0 ? padding / 2 : (padding + 1) / 2;
        w->end[at] = padding - w->begin[at];
        return;
    }
    const double positions = (double)(w->in[at] + w->begin[at] + w->end[at] - reach) / stride + 1;
    w->out[at] = (int64_t)(t->ceil_mode ? ceil(positions) : floor(positions));
    /* A window may start in the input or in the padding before it, but not in the padding after it.
     */
    if (t->ceil_mode && (w->out[at] - 1) * w->stride[at] >= w->in[at] + w->begin[at]) w->out[at]--;
}

static pool_whole complete(const pool_case *t)
{
    pool_whole w = {.in = {1, 1, 1},
                    .out = {1, 1, 1},
                    .kernel = {1, 1, 1},
                    .stride = {1, 1, 1},
                    .dilation = {1, 1, 1}};
    for (int i = 0; i < t->axes; i++) complete_axis(t, i, &w, 3 - t->axes + i);
    return w;
}

/* Computes one output. *out_at: the index of the first maximum in its plane. */
static double pool_at(const pool_whole *w, const double *x, const int64_t *place, pool_op op,
                      double p, int64_t *out_at)
{
    double best = -INFINITY, sum = 0;
    int64_t counted = 0;
    bool any = false;
    for (int64_t i = 0; i < w->kernel[0] * w->kernel[1] * w->kernel[2]; i++) {
        const int64_t tap[3] = {i / (w->kernel[1] * w->kernel[2]), i / w->kernel[2] % w->kernel[1],
                                i % w->kernel[2]};
        bool inside = true, padded = true;
        int64_t at = 0;
        for (int d = 0; d < 3; d++) {
            const int64_t c = place[d] * w->stride[d] - w->begin[d] + tap[d] * w->dilation[d];
            inside = inside && c >= 0 && c < w->in[d];
            padded = padded && c < w->in[d] + w->end[d];
            at = at * w->in[d] + c;
        }
        if (op == POOL_AVERAGE_PADDED && padded) counted++;
        if (!inside) continue;
        if (op != POOL_AVERAGE_PADDED) counted++;
        if (!any || x[at] > best || isnan(x[at])) {
            best = x[at];
            *out_at = at;
        }
        any = true;
        sum += op == POOL_LP ? pow(fabs(x[at]), p) : x[at];
    }
    if (op == POOL_MAX) return best;
    return op == POOL_LP ? pow(sum, 1.0 / p) : sum / (double)counted;
}

static void describe(run_node *r, const pool_case *t)
{
    run_node_ints(r, "kernel_shape", (size_t)t->axes, t->kernel);
    if (t->strides[0]) run_node_ints(r, "strides", (size_t)t->axes, t->strides);
    if (t->dilations[0]) run_node_ints(r, "dilations", (size_t)t->axes, t->dilations);
    if (t->ceil_mode) run_node_int(r, "ceil_mode", 1);
    if (t->auto_pad) {
        run_node_string(r, "auto_pad", t->auto_pad);
        return;
    }
    run_node_pads(r, t->axes, t->begin, t->end);
}

/* Returns the column-major index of element `at` of a plane (storage_order 1). */
static int64_t column_major(const pool_whole *w, int64_t at)
{
    const int64_t z = at / (w->in[1] * w->in[2]), y = at / w->in[2] % w->in[1], x = at % w->in[2];
    return (x * w->in[1] + y) * w->in[0] + z;
}

static const char *const op_names[] = {"MaxPool", "AveragePool", "AveragePool", "LpPool"};

static int64_t elements_of(const pool_case *t)
{
    const pool_whole w = complete(t);
    return t->planes[0] * t->planes[1] * w.in[0] * w.in[1] * w.in[2];
}

/* Pools x. indices: 1 also checks the indices, 2 those of storage_order 1. */
static void pool_values(const pool_case *t, pool_op op, clg_dtype dtype, double p, int indices,
                        const double *x)
{
    const pool_whole w = complete(t);
    const int64_t outputs = w.out[0] * w.out[1] * w.out[2], size = w.in[0] * w.in[1] * w.in[2];
    const int64_t planes = t->planes[0] * t->planes[1];
    double *y = run_node_zeros(planes * outputs), *positions = run_node_zeros(planes * outputs);
    for (int64_t i = 0; i < planes * outputs; i++) {
        const int64_t at = i % outputs, plane = i / outputs;
        const int64_t place[3] = {at / (w.out[1] * w.out[2]), at / w.out[2] % w.out[1],
                                  at % w.out[2]};
        int64_t found = -1;
        y[i] = pool_at(&w, x + plane * size, place, op, p, &found);
        positions[i] = (double)(plane * size + (indices == 2 ? column_major(&w, found) : found));
    }
    int64_t x_dims[5] = {t->planes[0], t->planes[1]}, y_dims[5] = {t->planes[0], t->planes[1]};
    for (int i = 0; i < t->axes; i++) {
        x_dims[2 + i] = t->in[i];
        y_dims[2 + i] = w.out[3 - t->axes + i];
    }
    run_node r;
    run_node_start(&r, NULL, op_names[op], 19);
    run_node_input(&r, dtype, t->axes + 2, x_dims, x);
    describe(&r, t);
    if (op == POOL_AVERAGE_PADDED) run_node_int(&r, "count_include_pad", 1);
    if (op == POOL_LP) run_node_int(&r, "p", (int64_t)p);
    if (indices == 2) run_node_int(&r, "storage_order", 1);
    run_node_expect(&r, dtype, t->axes + 2, y_dims, y);
    if (indices) run_node_expect(&r, CLG_INT64, t->axes + 2, y_dims, positions);
    run_node_check(&r, op == POOL_MAX ? 0 : dtype == CLG_FLOAT16 ? 1e-3 : FLOAT_TOLERANCE);
}

static void pool(const pool_case *t, pool_op op, clg_dtype dtype, double p, int indices)
{
    const int64_t n = elements_of(t);
    double *x = run_node_random(n);
    for (int64_t i = 0; i < n && !dtype_is_float(dtype); i++)
        x[i] = floor(x[i] * 100) + (dtype == CLG_UINT8 ? 100 : 0);
    pool_values(t, op, dtype, p, indices, x);
}

static const pool_case cases[] = {
    {.axes = 2, .planes = {1, 1}, .in = {1, 1}, .kernel = {1, 1}},
    {.axes = 2,
     .planes = {2, 3},
     .in = {9, 11},
     .kernel = {3, 3},
     .strides = {2, 2},
     .begin = {1, 1},
     .end = {1, 1}},
    {.axes = 2, .planes = {1, 2}, .in = {5, 40}, .kernel = {2, 3}, .begin = {0, 2}, .end = {1, 0}},
    {.axes = 2,
     .planes = {1, 2},
     .in = {8, 23},
     .kernel = {2, 2},
     .strides = {3, 3},
     .ceil_mode = true},
    {.axes = 2,
     .planes = {1, 2},
     .in = {10, 12},
     .kernel = {3, 2},
     .dilations = {2, 3},
     .begin = {2, 1},
     .end = {1, 2}},
    {.axes = 2,
     .planes = {1, 1},
     .in = {7, 8},
     .kernel = {3, 4},
     .strides = {2, 3},
     .auto_pad = "SAME_UPPER"},
    {.axes = 2,
     .planes = {1, 1},
     .in = {7, 8},
     .kernel = {3, 4},
     .strides = {2, 3},
     .auto_pad = "SAME_LOWER"},
    {.axes = 2,
     .planes = {1, 1},
     .in = {7, 9},
     .kernel = {3, 4},
     .strides = {2, 3},
     .auto_pad = "VALID"},
    {.axes = 2,
     .planes = {1, 1},
     .in = {3, 2},
     .kernel = {2, 2},
     .strides = {2, 2},
     .begin = {0, 1},
     .end = {1, 1},
     .ceil_mode = true},
    {.axes = 1,
     .planes = {2, 5},
     .in = {37},
     .kernel = {4},
     .strides = {3},
     .begin = {2},
     .end = {1},
     .ceil_mode = true},
    {.axes = 3,
     .planes = {1, 2},
     .in = {5, 6, 9},
     .kernel = {2, 3, 3},
     .strides = {2, 1, 1},
     .begin = {1, 1, 0},
     .end = {0, 1, 1}},
    {.axes = 2, .planes = {0, 3}, .in = {4, 4}, .kernel = {2, 2}},
};

/* Windows of one element along the last axis, of LANES elements, as of feature maps in blocks of
 * channels: with padding and strides, with dilations, a line longer than any buffer of the kernel,
 * and a window that is. */
static const pool_case blocked_cases[] = {
    {.axes = 3,
     .planes = {1, 3},
     .in = {9, 13},
     .kernel = {3, 3, 1},
     .strides = {2, 2, 1},
     .begin = {1, 1, 0},
     .end = {1, 1, 0}},
    {.axes = 3,
     .planes = {2, 2},
     .in = {10, 11},
     .kernel = {2, 3, 1},
     .strides = {1, 2, 1},
     .dilations = {3, 2, 1},
     .begin = {1, 1, 0},
     .end = {0, 2, 0},
     .ceil_mode = true},
    {.axes = 3,
     .planes = {1, 1},
     .in = {2, 1100},
     .kernel = {2, 5, 1},
     .strides = {1, 2, 1},
     .begin = {0, 2, 0}},
    {.axes = 3, .planes = {1, 1}, .in = {1, 1200}, .kernel = {1, 2, 1}, .dilations = {1, 1100, 1}},
};
static const int64_t lanes[] = {4, 8, 16};
#define N_BLOCKED (sizeof blocked_cases / sizeof *blocked_cases)
#define N_IN_BLOCKS (N_BLOCKED * sizeof lanes / sizeof *lanes)

/* Returns case i of blocked_cases with each number of lanes, i < N_IN_BLOCKS. */
static const pool_case *in_blocks(size_t i)
{
    static pool_case t;
    t = blocked_cases[i % N_BLOCKED];
    t.in[2] = lanes[i / N_BLOCKED];
    return &t;
}

#define N_PLAIN (sizeof cases / sizeof *cases)
#define N_CASES (N_PLAIN + N_IN_BLOCKS)

static const pool_case *case_at(size_t i)
{
    return i < N_PLAIN ? &cases[i] : in_blocks(i - N_PLAIN);
}

TEST(pool__max)
{
    for (size_t i = 0; i < N_CASES; i++) pool(case_at(i), POOL_MAX, CLG_FLOAT32, 0, 0);
}

TEST(pool__max_indices)
{
    for (size_t i = 0; i < N_PLAIN; i++) {
        pool(case_at(i), POOL_MAX, CLG_FLOAT32, 0, 1);
        pool(case_at(i), POOL_MAX, CLG_FLOAT32, 0, 2);
    }
}

TEST(pool__average)
{
    for (size_t i = 0; i < N_CASES; i++) {
        pool(case_at(i), POOL_AVERAGE, CLG_FLOAT32, 0, 0);
        pool(case_at(i), POOL_AVERAGE_PADDED, CLG_FLOAT32, 0, 0);
    }
}

TEST(pool__lp)
{
    for (size_t i = 0; i < N_CASES; i++) pool(case_at(i), POOL_LP, CLG_FLOAT32, 2, 0);
    pool(&cases[1], POOL_LP, CLG_FLOAT32, 1, 0);
    pool(&cases[2], POOL_LP, CLG_FLOAT32, 3, 0);
}

TEST(pool__dtypes)
{
    for (size_t i = 1; i < 3; i++) {
        pool(case_at(i), POOL_MAX, CLG_UINT8, 0, 0);
        pool(case_at(i), POOL_MAX, CLG_INT8, 0, 0);
        pool(case_at(i), POOL_MAX, CLG_FLOAT16, 0, 0);
        pool(case_at(i), POOL_AVERAGE, CLG_FLOAT16, 0, 0);
        pool(case_at(i), POOL_MAX, CLG_FLOAT64, 0, 0);
    }
    for (size_t i = N_PLAIN; i < N_CASES; i += N_BLOCKED) {
        pool(case_at(i), POOL_MAX, CLG_INT8, 0, 0);
        pool(case_at(i), POOL_AVERAGE, CLG_FLOAT16, 0, 0);
        pool(case_at(i), POOL_MAX, CLG_FLOAT64, 0, 0);
    }
    pool(&cases[1], POOL_MAX, CLG_INT8, 0, 1);
}

TEST(pool__nan_and_infinity)
{
    const double x[] = {1, NAN, 3, -INFINITY, -INFINITY, INFINITY, 2, 5};
    const double max[] = {NAN, NAN, 3, -INFINITY, INFINITY, INFINITY, 5};
    const double mean[] = {NAN, NAN, -INFINITY, -INFINITY, NAN, INFINITY, 3.5};
    run_node r;
    run_node_start(&r, NULL, "MaxPool", 12);
    run_node_input(&r, CLG_FLOAT32, 3, (int64_t[]){1, 1, 8}, x);
    run_node_ints(&r, "kernel_shape", 1, (int64_t[]){2});
    run_node_expect(&r, CLG_FLOAT32, 3, (int64_t[]){1, 1, 7}, max);
    run_node_check(&r, 0);
    run_node_start(&r, NULL, "AveragePool", 11);
    run_node_input(&r, CLG_FLOAT32, 3, (int64_t[]){1, 1, 8}, x);
    run_node_ints(&r, "kernel_shape", 1, (int64_t[]){2});
    run_node_expect(&r, CLG_FLOAT32, 3, (int64_t[]){1, 1, 7}, mean);
    run_node_check(&r, FLOAT_TOLERANCE);
}

/* In one lane a NaN, in others infinities of both signs, whose sum is NaN. */
TEST(pool__nan_and_infinity_in_blocks)
{
    for (size_t i = 0; i < N_IN_BLOCKS; i++) {
        const pool_case *t = in_blocks(i);
        const int64_t width = t->in[2], n = elements_of(t), middle = n / width / 2;
        double *x = run_node_random(n);
        x[middle * width + 1] = NAN;
        x[middle * width + 2] = INFINITY;
        x[(middle + 1) * width + 2] = x[(middle + 1) * width + 3] = -INFINITY;
        pool_values(t, POOL_MAX, CLG_FLOAT32, 0, 0, x);
        pool_values(t, POOL_MAX, CLG_FLOAT16, 0, 0, x);
        pool_values(t, POOL_AVERAGE, CLG_FLOAT32, 0, 0, x);
    }
}

TEST_GROUP(run_node_open, run_node_close)
