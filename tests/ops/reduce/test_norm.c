/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares BatchNormalization, LayerNormalization, InstanceNormalization, GroupNormalization and
 * LRN with their formulas in double. Variances are the mean of squares less the square of the mean,
 * for which double is sufficiently precise.
 *
 * Tolerance: float32 1e-5, for sums of up to a thousand values of magnitude 1, a square root and a
 * division.
 */
/* ctest: timeout 900 */
#include "support/cases/run_node.h"

#include <math.h>

#define FLOAT_TOLERANCE 1e-5
#define HALF_TOLERANCE 4e-3
#define BFLOAT16_TOLERANCE 4e-2

static int64_t product(int rank, const int64_t *dims, int from)
{
    int64_t n = 1;
    for (int i = from; i < rank; i++) n *= dims[i];
    return n;
}

static double tolerance_of(clg_dtype dtype)
{
    return dtype == CLG_FLOAT16    ? HALF_TOLERANCE
           : dtype == CLG_BFLOAT16 ? BFLOAT16_TOLERANCE
           : dtype == CLG_FLOAT64  ? 1e-12
                                   : FLOAT_TOLERANCE;
}

/* ---- BatchNormalization ---------------------------------------------------------------------- */

static void batch(int64_t opset, clg_dtype dtype, clg_dtype stats, int rank, const int64_t *dims,
                  bool spatial)
{
    run_node r;
    const int64_t n = product(rank, dims, 0), inner = spatial ? product(rank, dims, 2) : 1;
    const int64_t channels = spatial ? dims[1] : product(rank, dims, 1);
    const double *x = run_node_random(n), *scale = run_node_random(channels),
                 *bias = run_node_random(channels);
    const double *mean = run_node_random(channels);
    double *var = run_node_random(channels), *y = run_node_zeros(n);
    for (int64_t i = 0; i < channels; i++) var[i] = 1.0 + 0.5 * var[i];
    for (int64_t i = 0; i < n; i++) {
        const int64_t c = i / inner % channels;
        const double factor = scale[c] / sqrt(var[c] + (double)1e-3f);
        y[i] = factor * x[i] + (bias[c] - factor * mean[c]);
    }
    const int64_t *own = spatial ? &channels : dims + 1;
    const int own_rank = spatial ? 1 : rank - 1;
    run_node_start(&r, NULL, "BatchNormalization", opset);
    run_node_input(&r, dtype, rank, dims, x);
    run_node_constant(&r, opset < 15 ? dtype : stats, own_rank, own, scale);
    run_node_constant(&r, opset < 15 ? dtype : stats, own_rank, own, bias);
    run_node_constant(&r, stats, own_rank, own, mean);
    run_node_constant(&r, stats, own_rank, own, var);
    run_node_float(&r, "epsilon", 1e-3);
    if (!spatial) run_node_int(&r, "spatial", 0);
    run_node_expect(&r, dtype, rank, dims, y);
    run_node_check(&r, tolerance_of(dtype));
}

TEST(norm__batch)
{
    batch(9, CLG_FLOAT32, CLG_FLOAT32, DIMS(2, 3, 5, 7), true);
    batch(15, CLG_FLOAT32, CLG_FLOAT32, DIMS(1, 5, 3, 65), true);
    batch(15, CLG_FLOAT32, CLG_FLOAT32, DIMS(4, 17), true);
    batch(14, CLG_FLOAT32, CLG_FLOAT32, DIMS(2, 1, 301), true);
    batch(7, CLG_FLOAT32, CLG_FLOAT32, DIMS(3, 4, 5), false);
    batch(15, CLG_FLOAT32, CLG_FLOAT32, DIMS(0, 3, 2), true);
    batch(15, CLG_FLOAT16, CLG_FLOAT32, DIMS(2, 3, 19), true);
    batch(15, CLG_FLOAT16, CLG_FLOAT16, DIMS(2, 3, 19), true);
    batch(15, CLG_BFLOAT16, CLG_FLOAT32, DIMS(2, 3, 19), true);
    batch(15, CLG_BFLOAT16, CLG_BFLOAT16, DIMS(2, 3, 37), true);
    batch(15, CLG_FLOAT64, CLG_FLOAT64, DIMS(2, 3, 19), true);
}

TEST(norm__batch_refuses_half_training)
{
    const double one[] = {1};
    run_node r;
    run_node_start(&r, NULL, "BatchNormalization", 15);
    run_node_input(&r, CLG_FLOAT32, 2, (int64_t[]){1, 1}, one);
    for (int i = 0; i < 4; i++) run_node_constant(&r, CLG_FLOAT32, 1, (int64_t[]){1}, one);
    run_node_expect(&r, CLG_FLOAT32, 2, (int64_t[]){1, 1}, one);
    run_node_expect(&r, CLG_FLOAT32, 1, (int64_t[]){1}, one);
    run_node_refused(&r, CLG_ERROR_UNSUPPORTED_ATTRIBUTE, "training_mode 0");
    run_node_start(&r, NULL, "BatchNormalization", 6);
    run_node_input(&r, CLG_FLOAT32, 2, (int64_t[]){1, 1}, one);
    for (int i = 0; i < 4; i++) run_node_constant(&r, CLG_FLOAT32, 1, (int64_t[]){1}, one);
    run_node_expect(&r, CLG_FLOAT32, 2, (int64_t[]){1, 1}, one);
    run_node_refused(&r, CLG_ERROR_UNSUPPORTED_ATTRIBUTE, "is_test 0");
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* Computes the mean of a row and 1 / sqrt(variance + epsilon). */
static void measure(const double *x, int64_t cols, double epsilon, double *out_mean,
                    double *out_inverse)
{
    double sum = 0, squares = 0;
    for (int64_t i = cols; i-- > 0;) {
        sum += x[i];
        squares += x[i] * x[i];
    }
    *out_mean = sum / (double)cols;
    *out_inverse = 1.0 / sqrt(squares / (double)cols - *out_mean * *out_mean + epsilon);
}

static void layer(clg_dtype dtype, int rank, const int64_t *dims, int64_t axis, bool with_bias,
                  int outputs)
{
    run_node r;
    const int first = (int)(axis < 0 ? axis + rank : axis);
    const int64_t n = product(rank, dims, 0), cols = product(rank, dims, first),
                  rows = cols ? n / cols : 0;
    double *x = run_node_random(n), *y = run_node_zeros(n), *means = run_node_zeros(rows);
    const double *scale = run_node_random(cols), *bias = run_node_random(cols);
    double *inverses = run_node_zeros(rows);
    for (int64_t i = 0; i < n; i++) x[i] += 3; /* so that the mean is not near 0 */
    for (int64_t row = 0; row < rows; row++) {
        measure(x + row * cols, cols, (double)1e-5f, &means[row], &inverses[row]);
        for (int64_t i = 0; i < cols; i++)
            y[row * cols + i] = (x[row * cols + i] - means[row]) * inverses[row] * scale[i] +
                                (with_bias ? bias[i] : 0);
    }
    int64_t stats[CLG_MAX_RANK];
    for (int i = 0; i < rank; i++) stats[i] = i < first ? dims[i] : 1;
    run_node_start(&r, NULL, "LayerNormalization", 17);
    run_node_input(&r, dtype, rank, dims, x);
    run_node_constant(&r, dtype, rank - first, dims + first, scale);
    if (with_bias) run_node_constant(&r, dtype, rank - first, dims + first, bias);
    run_node_int(&r, "axis", axis);
    run_node_expect(&r, dtype, rank, dims, y);
    if (outputs & 1)
        run_node_expect(&r, CLG_FLOAT32, rank, stats, means);
    else if (outputs)
        run_node_expect_absent(&r);
    if (outputs & 2) run_node_expect(&r, CLG_FLOAT32, rank, stats, inverses);
    r.heavy = n > 5000;
    run_node_check(&r, tolerance_of(dtype));
}

TEST(norm__layer)
{
    static const int64_t cols[] = {1, 7, 16, 17, 255, 256, 257, 1021};
    for (size_t i = 0; i < sizeof cols / sizeof *cols; i++)
        layer(CLG_FLOAT32, DIMS(3, cols[i]), -1, true, 0);
    layer(CLG_FLOAT32, DIMS(2, 3, 4, 5), 2, true, 3);
    layer(CLG_FLOAT32, DIMS(2, 3, 4, 5), 0, false, 1);
    layer(CLG_FLOAT32, DIMS(2, 3, 5), -2, false, 2);
    layer(CLG_FLOAT16, DIMS(3, 40), -1, true, 3);
    layer(CLG_BFLOAT16, DIMS(3, 40), -1, true, 3);
    layer(CLG_FLOAT64, DIMS(3, 40), -1, true, 0);
    layer(CLG_FLOAT32, DIMS(0, 4), -1, true, 0);
}

static void by_channel(const char *op_type, int64_t opset, clg_dtype dtype, int rank,
                       const int64_t *dims, int64_t groups)
{
    run_node r;
    const int64_t n = product(rank, dims, 0), channels = dims[1], inner = product(rank, dims, 2);
    const int64_t cols = channels / groups * inner, n_scale = opset == 18 ? groups : channels;
    const double *x = run_node_random(n), *scale = run_node_random(n_scale),
                 *bias = run_node_random(n_scale);
    double *y = run_node_zeros(n), mean, inverse;
    for (int64_t i = 0; i < n; i++) {
        const int64_t channel = i / inner % channels, s = channel / (channels / n_scale);
        measure(x + i / cols * cols, cols, (double)1e-5f, &mean, &inverse);
        y[i] = (x[i] - mean) * inverse * scale[s] + bias[s];
    }
    run_node_start(&r, NULL, op_type, opset);
    run_node_input(&r, dtype, rank, dims, x);
    run_node_constant(&r, dtype, 1, &n_scale, scale);
    run_node_constant(&r, dtype, 1, &n_scale, bias);
    if (groups != channels) run_node_int(&r, "num_groups", groups);
    run_node_expect(&r, dtype, rank, dims, y);
    run_node_check(&r, tolerance_of(dtype));
}

TEST(norm__by_channel)
{
    by_channel("InstanceNormalization", 6, CLG_FLOAT32, DIMS(2, 3, 5, 7), 3);
    by_channel("InstanceNormalization", 6, CLG_FLOAT32, DIMS(1, 2, 300), 2);
    by_channel("InstanceNormalization", 6, CLG_FLOAT16, DIMS(2, 3, 5, 7), 3);
    by_channel("InstanceNormalization", 6, CLG_BFLOAT16, DIMS(2, 3, 5, 7), 3);
    by_channel("GroupNormalization", 18, CLG_FLOAT32, DIMS(2, 6, 5, 3), 2);
    by_channel("GroupNormalization", 21, CLG_FLOAT32, DIMS(2, 6, 5, 3), 3);
    by_channel("GroupNormalization", 21, CLG_BFLOAT16, DIMS(2, 6, 5, 3), 3);
}

/* The first stage of GroupNormalization rounds as its stash_type does: x, between 512 and 2048, to
 * multiples of `step`. */
static void stash(clg_dtype dtype, clg_dtype type, double step, const double *x)
{
    enum { GROUPS = 2, COLS = 4, PER_CHANNEL = 2, CHANNELS = 4, N = 8 };
    run_node r;
    const int64_t channels = CHANNELS;
    const double *scale = run_node_random(CHANNELS), *bias = run_node_random(CHANNELS);
    double all[N], rounded[N], mean, inverse;
    double *y = run_node_zeros(N);
    for (int64_t i = 0; i < N; i++) {
        all[i] = i < COLS ? x[i] : -x[i % COLS];
        rounded[i] = round(all[i] / step) * step;
    }
    for (int64_t i = 0; i < N; i++) {
        measure(rounded + i / COLS * COLS, COLS, (double)1e-5f, &mean, &inverse);
        y[i] = (rounded[i] - mean) * inverse * scale[i / PER_CHANNEL] + bias[i / PER_CHANNEL];
    }
    run_node_start(&r, NULL, "GroupNormalization", 21);
    run_node_input(&r, dtype, 3, (int64_t[]){1, CHANNELS, PER_CHANNEL}, all);
    run_node_constant(&r, dtype, 1, &channels, scale);
    run_node_constant(&r, dtype, 1, &channels, bias);
    run_node_int(&r, "num_groups", GROUPS);
    run_node_int(&r, "stash_type", type);
    run_node_expect(&r, dtype, 3, (int64_t[]){1, CHANNELS, PER_CHANNEL}, y);
    run_node_check(&r, fmax(tolerance_of(dtype), tolerance_of(type)));
}

TEST(norm__first_stage_of_groups_in_the_stash_type)
{
    const double coarse[] = {1000.5, 1001, 1003.25, 1007},
                 fine[] = {1500.375, 1500.625, 1501.4375, 1502.5625};
    stash(CLG_FLOAT32, CLG_BFLOAT16, 4, coarse);
    stash(CLG_FLOAT16, CLG_BFLOAT16, 4, coarse);
    stash(CLG_FLOAT64, CLG_BFLOAT16, 4, coarse);
    stash(CLG_FLOAT32, CLG_FLOAT16, 1, fine);
    stash(CLG_FLOAT32, CLG_FLOAT64, 0x1p-20, fine);
}

/* A constant row has variance 0. A NaN makes its row NaN, and no other row. */
TEST(norm__edges)
{
    const double x[] = {1e4, 1e4, 1e4, 1, NAN, 2}, scale[] = {1, 2, 3}, bias[] = {0.5, 0.25, -1};
    const double y[] = {0.5, 0.25, -1, NAN, NAN, NAN};
    run_node r;
    run_node_start(&r, NULL, "LayerNormalization", 17);
    run_node_input(&r, CLG_FLOAT32, 2, (int64_t[]){2, 3}, x);
    run_node_constant(&r, CLG_FLOAT32, 1, (int64_t[]){3}, scale);
    run_node_constant(&r, CLG_FLOAT32, 1, (int64_t[]){3}, bias);
    run_node_expect(&r, CLG_FLOAT32, 2, (int64_t[]){2, 3}, y);
    run_node_check(&r, FLOAT_TOLERANCE);
}

static void lrn(clg_dtype dtype, int64_t size, int rank, const int64_t *dims)
{
    run_node r;
    const int64_t n = product(rank, dims, 0), channels = dims[1], inner = product(rank, dims, 2);
    const double *x = run_node_random(n);
    double *y = run_node_zeros(n);
    for (int64_t i = 0; i < n; i++) {
        const int64_t c = i / inner % channels;
        double sum = 0;
        for (int64_t k = 0; k < channels; k++) {
            const bool near = k >= c - (int64_t)floor((double)(size - 1) / 2) &&
                              k <= c + (int64_t)ceil((double)(size - 1) / 2);
            const double v = x[i + (k - c) * inner];
            if (near) sum += v * v;
        }
        y[i] = x[i] * pow(1.5 + 0.25 / (double)size * sum, -0.6);
    }
    run_node_start(&r, NULL, "LRN", 13);
    run_node_input(&r, dtype, rank, dims, x);
    run_node_int(&r, "size", size);
    run_node_float(&r, "alpha", 0.25);
    run_node_float(&r, "beta", 0.6);
    run_node_float(&r, "bias", 1.5);
    run_node_expect(&r, dtype, rank, dims, y);
    run_node_check(&r, tolerance_of(dtype));
}

TEST(norm__lrn)
{
    lrn(CLG_FLOAT32, 3, DIMS(2, 7, 3, 4));
    lrn(CLG_FLOAT32, 4, DIMS(1, 5, 9));
    lrn(CLG_FLOAT32, 1, DIMS(2, 3));
    lrn(CLG_FLOAT32, 9, DIMS(1, 4, 2, 2));
    lrn(CLG_BFLOAT16, 3, DIMS(2, 7, 3, 4));
}

TEST_GROUP(run_node_open, run_node_close)
