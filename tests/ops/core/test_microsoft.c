/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares com.microsoft's Gelu, BiasGelu, FastGelu, QuickGelu, FusedConv, FusedGemm and
 * FusedMatMul with their formulas in double. Tolerance: float32 5e-6 for values of magnitude 1.
 */
#include "support/cases/run_node.h"

#include <math.h>

#define DOMAIN "com.microsoft"

static double by_erf(double x) { return 0.5 * x * (1 + erf(x / sqrt(2))); }
static double by_tanh(double x)
{
    return 0.5 * x * (1 + tanh(sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x)));
}
static double by_sigmoid(double x) { return x / (1 + exp(-1.702 * x)); }

static void gelu(const char *name, bool bias, double (*formula)(double))
{
    enum { ROWS = 5, COLS = 37 };
    const double *x = run_node_random(ROWS * COLS), *b = run_node_random(COLS);
    double *y = run_node_zeros(ROWS * COLS);
    for (int i = 0; i < ROWS * COLS; i++) y[i] = formula(x[i] + (bias ? b[i % COLS] : 0));
    run_node r;
    run_node_start(&r, DOMAIN, name, 1);
    run_node_input(&r, CLG_FLOAT32, DIMS(ROWS, COLS), x);
    if (bias) run_node_constant(&r, CLG_FLOAT32, DIMS(COLS), b);
    run_node_expect(&r, CLG_FLOAT32, DIMS(ROWS, COLS), y);
    run_node_check(&r, 5e-6);
}

TEST(microsoft__gelus)
{
    gelu("Gelu", false, by_erf);
    gelu("BiasGelu", true, by_erf);
    gelu("FastGelu", false, by_tanh);
    gelu("FastGelu", true, by_tanh);
    gelu("QuickGelu", false, by_sigmoid);
}

/* Checks FusedConv with 1x1 and 3x3 kernels, with and without a residual. */
TEST(microsoft__fused_conv)
{
    enum { IC = 5, OC = 7, SIDE = 4 };
    const double *x = run_node_random(IC * SIDE * SIDE), *w = run_node_random(OC * IC * 9),
                 *b = run_node_random(OC);
    const double *z = run_node_random(OC * SIDE * SIDE);
    for (int k = 1; k <= 3; k += 2)
        for (int residual = 0; residual < 2; residual++) {
            double *y = run_node_zeros(OC * SIDE * SIDE);
            for (int i = 0; i < OC * SIDE * SIDE; i++) {
                const int o = i / SIDE / SIDE, r = i / SIDE % SIDE, c = i % SIDE;
                double sum = b[o] + (residual ? z[i] : 0);
                for (int t = 0; t < IC * k * k; t++) {
                    const int yy = r + t / k % k - k / 2, xx = c + t % k - k / 2;
                    if (yy >= 0 && yy < SIDE && xx >= 0 && xx < SIDE)
                        sum += w[o * IC * k * k + t] * x[(t / k / k * SIDE + yy) * SIDE + xx];
                }
                y[i] = sum < 0 ? 0.3 * sum : sum;
            }
            run_node n;
            run_node_start(&n, DOMAIN, "FusedConv", 1);
            run_node_string(&n, "activation", "LeakyRelu");
            run_node_floats(&n, "activation_params", 1, (double[]){0.3});
            run_node_ints(&n, "pads", 4, (int64_t[]){k / 2, k / 2, k / 2, k / 2});
            run_node_input(&n, CLG_FLOAT32, DIMS(1, IC, SIDE, SIDE), x);
            run_node_constant(&n, CLG_FLOAT32, DIMS(OC, IC, k, k), w);
            run_node_constant(&n, CLG_FLOAT32, DIMS(OC), b);
            if (residual) run_node_input(&n, CLG_FLOAT32, DIMS(1, OC, SIDE, SIDE), z);
            run_node_expect(&n, CLG_FLOAT32, DIMS(1, OC, SIDE, SIDE), y);
            run_node_check(&n, 5e-6);
        }
}

TEST(microsoft__fused_conv_checks_its_residual)
{
    const double x[16] = {0};
    run_node n;
    run_node_start(&n, DOMAIN, "FusedConv", 1);
    run_node_input(&n, CLG_FLOAT32, DIMS(1, 1, 4, 4), x);
    run_node_constant(&n, CLG_FLOAT32, DIMS(1, 1, 1, 1), x);
    run_node_constant(&n, CLG_FLOAT32, DIMS(1), x);
    run_node_input(&n, CLG_FLOAT32, DIMS(1, 1, 2, 4), x);
    run_node_expect(&n, CLG_FLOAT32, DIMS(1, 1, 4, 4), x);
    run_node_refused(&n, CLG_ERROR_SHAPE, "residual");
}

TEST(microsoft__fused_gemm)
{
    enum { M = 3, N = 18, K = 5 };
    const double *a = run_node_random(K * M), *b = run_node_random(K * N), *c = run_node_random(N);
    double *y = run_node_zeros(M * N);
    for (int i = 0; i < M * N; i++) {
        double sum = 0.5 * c[i % N];
        for (int k = 0; k < K; k++) sum += 2 * a[k * M + i / N] * b[k * N + i % N];
        y[i] = sum < 0 ? 0.25 * sum : sum;
    }
    run_node r;
    run_node_start(&r, DOMAIN, "FusedGemm", 1);
    run_node_int(&r, "transA", 1);
    run_node_float(&r, "alpha", 2);
    run_node_float(&r, "beta", 0.5);
    run_node_string(&r, "activation", "LeakyRelu");
    run_node_float(&r, "activation_alpha", 0.25);
    run_node_input(&r, CLG_FLOAT32, DIMS(K, M), a);
    run_node_constant(&r, CLG_FLOAT32, DIMS(K, N), b);
    run_node_constant(&r, CLG_FLOAT32, DIMS(N), c);
    run_node_expect(&r, CLG_FLOAT32, DIMS(M, N), y);
    run_node_check(&r, 5e-6);
}

static void matmul(bool trans_a, bool trans_b, bool constant, bool shared)
{
    enum { BATCH = 3, M = 7, N = 19, K = 6 };
    const double *a = run_node_random(BATCH * M * K), *b = run_node_random(BATCH * K * N);
    double *y = run_node_zeros(BATCH * M * N);
    for (int i = 0; i < BATCH * M * N; i++) {
        const int z = i / N / M, row = i / N % M, col = i % N;
        for (int k = 0; k < K; k++) {
            const double left = a[z * M * K + (trans_a ? k * M + row : row * K + k)];
            y[i] +=
                0.5 * left * b[(shared ? 0 : z * K * N) + (trans_b ? col * K + k : k * N + col)];
        }
    }
    run_node r;
    run_node_start(&r, DOMAIN, "FusedMatMul", 1);
    run_node_int(&r, "transA", trans_a);
    run_node_int(&r, "transB", trans_b);
    run_node_float(&r, "alpha", 0.5);
    run_node_input(&r, CLG_FLOAT32, DIMS(BATCH, trans_a ? K : M, trans_a ? M : K), a);
    if (shared)
        (constant ? run_node_constant : run_node_input)(&r, CLG_FLOAT32,
                                                        DIMS(trans_b ? N : K, trans_b ? K : N), b);
    else
        (constant ? run_node_constant : run_node_input)(
            &r, CLG_FLOAT32, DIMS(BATCH, trans_b ? N : K, trans_b ? K : N), b);
    run_node_expect(&r, CLG_FLOAT32, DIMS(BATCH, M, N), y);
    run_node_check(&r, 5e-6);
}

TEST(microsoft__fused_matmul)
{
    for (int i = 0; i < 16; i++) matmul(i & 1, i & 2, i & 4, i & 8);
}

TEST_GROUP(run_node_open, run_node_close)
