/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares MeanVarianceNormalization, and BatchNormalization in training mode, with sums in long
 * double; the variance is the mean of squares less the square of the mean.
 *
 * Tolerance: float64 1e-12, float32 2e-5, float16 2e-3, bfloat16 2e-2: results have magnitudes up
 * to 10 and errors of some ULP.
 */
/* ctest: timeout 900 */
#include "support/cases/run_node.h"

#include <math.h>

static double tolerance(clg_dtype dtype)
{
    return dtype == CLG_FLOAT64    ? 1e-12
           : dtype == CLG_FLOAT32  ? 2e-5
           : dtype == CLG_BFLOAT16 ? 2e-2
                                   : 2e-3;
}

/* Returns values that every float dtype represents exactly, if `shift` is 0; adds `shift`. */
static double *coarse(int64_t n, double shift)
{
    double *x = run_node_random(n);
    for (int64_t i = 0; i < n; i++) x[i] = rint(x[i] * 32) / 32 + shift;
    return x;
}

/* Computes mean and variance of each element's group. reduced: bit set of the reduced axes. */
static void statistics(const double *x, int rank, const int64_t *dims, unsigned reduced,
                       double *mean, double *var)
{
    int64_t n = 1, groups = 1;
    for (int i = 0; i < rank; i++) n *= dims[i];
    int64_t *of = test_calloc((size_t)n + 1, sizeof *of);
    for (int64_t e = 0; e < n; e++) {
        int64_t rest = e, stride = 1;
        for (int i = rank - 1; i >= 0; i--) {
            if (!(reduced >> i & 1)) {
                of[e] += rest % dims[i] * stride;
                stride *= dims[i];
            }
            rest /= dims[i];
        }
        groups = stride;
    }
    for (int64_t g = 0; g < groups && n > 0; g++) {
        long double sum = 0, squares = 0;
        int64_t count = 0;
        for (int64_t e = 0; e < n; e++) {
            if (of[e] != g) continue;
            sum += (long double)x[e];
            squares += (long double)x[e] * (long double)x[e];
            count++;
        }
        sum /= (long double)count;
        for (int64_t e = 0; e < n; e++) {
            if (of[e] != g) continue;
            mean[e] = (double)sum;
            var[e] = (double)(squares / (long double)count - sum * sum);
        }
    }
    test_free(of);
}

static void mvn(clg_dtype dtype, int64_t opset, size_t n_axes, const int64_t *axes, int rank,
                const int64_t *dims, double shift)
{
    run_node r;
    int64_t n = 1;
    unsigned reduced = n_axes > 0 ? 0 : 13;
    for (int i = 0; i < rank; i++) n *= dims[i];
    for (size_t i = 0; i < n_axes; i++) reduced |= 1u << (axes[i] < 0 ? axes[i] + rank : axes[i]);
    double *x = coarse(n, shift), *mean = run_node_zeros(n), *var = run_node_zeros(n),
           *y = run_node_zeros(n);
    statistics(x, rank, dims, reduced, mean, var);
    for (int64_t i = 0; i < n; i++) y[i] = (x[i] - mean[i]) / (sqrt(fmax(var[i], 0)) + 1e-9);
    run_node_start(&r, NULL, "MeanVarianceNormalization", opset);
    if (n_axes > 0) run_node_ints(&r, "axes", n_axes, axes);
    run_node_input(&r, dtype, rank, dims, x);
    run_node_expect(&r, dtype, rank, dims, y);
    r.heavy = n > 3000;
    run_node_check(&r, tolerance(dtype));
}

#define AXES(...)                                                                                  \
    sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), (int64_t[]) { __VA_ARGS__ }

TEST(moments__usual_axes)
{
    mvn(CLG_FLOAT32, 13, 0, NULL, DIMS(3, 3, 3, 1), 0);
    mvn(CLG_FLOAT32, 9, 0, NULL, DIMS(2, 5, 7, 33), 0);
    mvn(CLG_FLOAT32, 9, 0, NULL, DIMS(1, 70, 2, 2), 0);
    mvn(CLG_FLOAT32, 13, 0, NULL, DIMS(0, 3, 2, 2), 0);
    mvn(CLG_FLOAT32, 13, 0, NULL, DIMS(2, 0, 2, 2), 0);
}

TEST(moments__any_axes)
{
    mvn(CLG_FLOAT32, 13, AXES(1), DIMS(2, 5, 3, 7), 0);
    mvn(CLG_FLOAT32, 13, AXES(1), DIMS(2, 0, 3, 7), 0);
    mvn(CLG_FLOAT32, 13, AXES(1), DIMS(2, 5, 0, 7), 0);
    mvn(CLG_FLOAT32, 13, AXES(-1, 1), DIMS(3, 5, 4, 17), 0);
    mvn(CLG_FLOAT32, 13, AXES(0), DIMS(37, 19), 0);
    mvn(CLG_FLOAT32, 13, AXES(-1), DIMS(19, 37), 0);
    mvn(CLG_FLOAT32, 13, AXES(0, 1, 2), DIMS(3, 4, 65), 0);
    mvn(CLG_FLOAT32, 13, AXES(2, 0), DIMS(3, 4, 2, 3, 5), 0);
}

TEST(moments__dtypes)
{
    static const clg_dtype dtypes[] = {CLG_FLOAT16, CLG_BFLOAT16, CLG_FLOAT64};
    for (int i = 0; i < 3; i++) {
        mvn(dtypes[i], 13, 0, NULL, DIMS(2, 3, 5, 9), 0);
        mvn(dtypes[i], 13, AXES(1), DIMS(2, 3, 5, 9), 0);
    }
}

/* Reduced in parts, with a mean that is large compared to the deviations: in float32, the mean of
 * squares less the square of the mean would have no correct digit. */
TEST(moments__long_and_shifted)
{
    mvn(CLG_FLOAT32, 13, 0, NULL, DIMS(3, 2, 100, 131), 0);
    mvn(CLG_FLOAT32, 13, 0, NULL, DIMS(2, 3, 50, 131), 1000);
    mvn(CLG_FLOAT32, 13, AXES(-2), DIMS(1, 30011, 1), 512);
}

/* Constant channels whose sum is not a float: deviations are rounding errors, and results zeros. */
TEST(moments__constant)
{
    static const int64_t dims[][4] = {{3, 2, 41, 131}, {2, 3, 1, 7}, {9, 70, 1, 2}};
    for (int i = 0; i < 3; i++) {
        run_node r;
        const int64_t n = dims[i][0] * dims[i][1] * dims[i][2] * dims[i][3];
        double *x = run_node_zeros(n);
        for (int64_t e = 0; e < n; e++) x[e] = (double)0.1F;
        run_node_start(&r, NULL, "MeanVarianceNormalization", 13);
        run_node_input(&r, CLG_FLOAT32, 4, dims[i], x);
        run_node_expect(&r, CLG_FLOAT32, 4, dims[i], run_node_zeros(n));
        r.heavy = n > 3000;
        run_node_check(&r, 1e-4);
    }
}

/* Without axes, and for rank 0, each element is a separate group. */
TEST(moments__no_axes)
{
    run_node r;
    const double x[] = {3, -1.5, 0};
    for (int rank = 0; rank < 2; rank++) {
        run_node_start(&r, NULL, "MeanVarianceNormalization", 13);
        run_node_ints(&r, "axes", 0, NULL);
        run_node_input(&r, CLG_FLOAT32, rank, (int64_t[]){3}, x);
        run_node_expect(&r, CLG_FLOAT32, rank, (int64_t[]){3}, run_node_zeros(3));
        run_node_check(&r, 0);
    }
}

TEST(moments__refuses)
{
    run_node r;
    const double x[4] = {0};
    run_node_start(&r, NULL, "MeanVarianceNormalization", 13);
    run_node_input(&r, CLG_FLOAT32, 2, (int64_t[]){2, 2}, x);
    run_node_expect(&r, CLG_FLOAT32, 2, (int64_t[]){2, 2}, x);
    run_node_refused(&r, CLG_ERROR_SHAPE, "axis");
}

/* ---- BatchNormalization ---------------------------------------------------------------------- */

static void batch(int64_t opset, clg_dtype dtype, clg_dtype scales, clg_dtype means, int rank,
                  const int64_t *dims, bool spatial, double shift)
{
    run_node r;
    int64_t n = 1, channels = rank > 1 ? dims[1] : 1, inner = 1;
    for (int i = 0; i < rank; i++) n *= dims[i];
    for (int i = 2; i < rank; i++) inner *= dims[i];
    const int64_t grouped[3] = {rank > 1 ? dims[0] : n, spatial ? channels : channels * inner,
                                spatial ? inner : 1};
    double *x = coarse(n, shift), *mean = run_node_zeros(n), *var = run_node_zeros(n),
           *y = run_node_zeros(n), *in[4], *out[4];
    statistics(x, 3, grouped, 5, mean, var);
    channels = grouped[1];
    inner = grouped[2];
    for (int i = 0; i < 4; i++) {
        in[i] = coarse(channels, i == 3 ? 1.5 : 0);
        out[i] = run_node_zeros(channels);
    }
    for (int64_t i = 0; i < n; i++) {
        const int64_t c = i / inner % channels;
        y[i] = (x[i] - mean[i]) / sqrt(var[i] + 0.015625) * in[0][c] + in[1][c];
        out[0][c] = in[2][c] * 0.75 + mean[i] * 0.25;
        out[1][c] = in[3][c] * 0.75 + var[i] * 0.25;
        out[2][c] = mean[i];
        out[3][c] = var[i];
    }
    run_node_start(&r, NULL, "BatchNormalization", opset);
    run_node_float(&r, "epsilon", 0.015625);
    run_node_float(&r, "momentum", 0.75);
    if (opset >= 14) run_node_int(&r, "training_mode", 1);
    if (!spatial) run_node_int(&r, "spatial", 0);
    run_node_input(&r, dtype, rank, dims, x);
    for (int i = 0; i < 4; i++) run_node_input(&r, i < 2 ? scales : means, 1, &channels, in[i]);
    run_node_expect(&r, dtype, rank, dims, y);
    for (int i = 0; i < (opset < 14 ? 4 : 2); i++) run_node_expect(&r, means, 1, &channels, out[i]);
    r.heavy = n > 3000;
    run_node_check(&r, fmax(tolerance(dtype), tolerance(means)));
}

TEST(moments__batch_training)
{
    batch(15, CLG_FLOAT32, CLG_FLOAT32, CLG_FLOAT32, DIMS(2, 3, 4, 5), true, 0);
    batch(14, CLG_FLOAT32, CLG_FLOAT32, CLG_FLOAT32, DIMS(19, 70), true, 0);
    batch(15, CLG_FLOAT32, CLG_FLOAT32, CLG_FLOAT32, DIMS(131), true, 0);
    batch(9, CLG_FLOAT32, CLG_FLOAT32, CLG_FLOAT32, DIMS(3, 5, 33), true, 0);
    batch(7, CLG_FLOAT32, CLG_FLOAT32, CLG_FLOAT32, DIMS(3, 5, 2, 7), false, 0);
    batch(6, CLG_FLOAT32, CLG_FLOAT32, CLG_FLOAT32, DIMS(3, 5, 2, 7), true, 0);
    batch(15, CLG_FLOAT32, CLG_FLOAT32, CLG_FLOAT32, DIMS(2, 2, 131, 97), true, 100);
}

TEST(moments__batch_dtypes)
{
    batch(15, CLG_FLOAT16, CLG_FLOAT32, CLG_FLOAT32, DIMS(2, 3, 19), true, 0);
    batch(15, CLG_BFLOAT16, CLG_FLOAT16, CLG_FLOAT32, DIMS(2, 3, 19), true, 0);
    batch(15, CLG_FLOAT32, CLG_FLOAT32, CLG_BFLOAT16, DIMS(2, 3, 19), true, 0);
    batch(15, CLG_FLOAT64, CLG_FLOAT64, CLG_FLOAT64, DIMS(2, 3, 19), true, 0);
}

TEST_GROUP(run_node_open, run_node_close)
