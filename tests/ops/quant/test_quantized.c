/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares the quantised operators that passes/quant/pass_quantized.c decomposes into simpler ones
 * with their definitions in double.
 *
 * Tolerance: quantised results may differ by 1, where a tie is rounded to the other side; float32
 * 1e-5 for values of magnitude 1.
 */
/* ctest: timeout 900 */
#include "support/cases/run_node.h"

#include <math.h>

#define DOMAIN "com.microsoft"

/* Holds quantised 8-bit values. Column i uses scale and zero point i % n_scales. */
typedef struct quantised {
    clg_dtype dtype;
    int64_t n_scales;
    double *q, *scale, *zero;
} quantised;

static quantised draw(clg_dtype dtype, int64_t n, int64_t n_scales, double scale, double zero)
{
    quantised x = {dtype, n_scales, run_node_random(n), run_node_zeros(n_scales),
                   run_node_zeros(n_scales)};
    for (int64_t i = 0; i < n; i++) x.q[i] = floor(x.q[i] * 127) + (dtype == CLG_UINT8 ? 128 : 0);
    for (int64_t i = 0; i < n_scales; i++) {
        x.scale[i] = scale * (1 + 0.0625 * (double)(i % 7));
        x.zero[i] = zero + (double)(i % 3);
    }
    return x;
}

static double real(const quantised *x, int64_t i)
{
    return (x->q[i] - x->zero[i % x->n_scales]) * x->scale[i % x->n_scales];
}

static double back(const quantised *y, double v)
{
    const double low = y->dtype == CLG_UINT8 ? 0 : -128;
    return fmin(fmax(nearbyint(v / y->scale[0]) + y->zero[0], low), low + 255);
}

static void feed_scale(run_node *r, const quantised *x)
{
    if (x->n_scales > 1)
        run_node_constant(r, CLG_FLOAT32, DIMS(x->n_scales), x->scale);
    else
        run_node_constant(r, CLG_FLOAT32, 0, NULL, x->scale);
}

static void feed_zero(run_node *r, const quantised *x)
{
    if (x->n_scales > 1)
        run_node_constant(r, x->dtype, DIMS(x->n_scales), x->zero);
    else
        run_node_constant(r, x->dtype, 0, NULL, x->zero);
}

static void feed_numbers(run_node *r, const quantised *x)
{
    feed_scale(r, x);
    feed_zero(r, x);
}

static void check_bytes(run_node *r) { run_node_check_scaled(r, 1.0 / 255, 255); }

/* ---- QGemm ----------------------------------------------------------------------------------- */

enum { M = 5, K = 33, N = 19 };

typedef struct qgemm {
    bool ta, tb, bytes, columns, by_input;
    int64_t n_c; /* elements of C: 0, one row, or M rows */
    double alpha;
} qgemm;

static void check_gemm(qgemm t)
{
    const quantised a = draw(CLG_UINT8, M * K, 1, 0.02, 121),
                    b = draw(CLG_INT8, K * N, t.columns ? N : 1, 0.01, -3);
    const quantised y = draw(CLG_UINT8, 1, 1, 0.25, 99);
    double *sums = run_node_zeros(M * N), *c = run_node_random(M * N);
    for (int64_t i = 0; i < M * N; i++) c[i] = floor(c[i] * 3000);
    /* Stored transposed: the columns of b are rows of bt. */
    double *bt = run_node_zeros(K * N), *at = run_node_zeros(M * K);
    for (int64_t i = 0; i < K * N; i++) bt[i % N * K + i / N] = b.q[i];
    for (int64_t i = 0; i < M * K; i++) at[i % K * M + i / K] = a.q[i];
    for (int64_t i = 0; i < M * N; i++) {
        const int64_t row = i / N, col = i % N;
        const double unit = a.scale[0] * b.scale[col % b.n_scales];
        for (int64_t k = 0; k < K; k++) sums[i] += real(&a, row * K + k) * real(&b, k * N + col);
        if (t.n_c) sums[i] += unit * c[row % t.n_c * N + col];
        sums[i] *= t.alpha;
        if (t.bytes) sums[i] = back(&y, sums[i]);
    }
    run_node r;
    run_node_start(&r, DOMAIN, "QGemm", 1);
    run_node_int(&r, "transA", t.ta);
    run_node_int(&r, "transB", t.tb);
    if (t.alpha != 1) run_node_float(&r, "alpha", t.alpha);
    run_node_input(&r, a.dtype, DIMS(t.ta ? K : M, t.ta ? M : K), t.ta ? at : a.q);
    feed_numbers(&r, &a);
    (t.by_input ? run_node_input : run_node_constant)(&r, b.dtype, DIMS(t.tb ? N : K, t.tb ? K : N),
                                                      t.tb ? bt : b.q);
    feed_numbers(&r, &b);
    if (t.n_c)
        run_node_constant(&r, CLG_INT32, DIMS(t.n_c, N), c);
    else
        run_node_absent(&r);
    if (t.bytes) feed_numbers(&r, &y);
    run_node_expect(&r, t.bytes ? CLG_UINT8 : CLG_FLOAT32, DIMS(M, N), sums);
    if (t.bytes)
        check_bytes(&r);
    else
        run_node_check_scaled(&r, 1e-5, 10);
}

TEST(quantized__gemm)
{
    check_gemm((qgemm){.tb = true, .bytes = true, .n_c = 1, .alpha = 1});
    check_gemm((qgemm){.tb = true, .columns = true, .n_c = 1, .alpha = 0.5});
    check_gemm((qgemm){.ta = true, .bytes = true, .columns = true, .alpha = 1, .by_input = true});
    check_gemm((qgemm){.n_c = M, .alpha = 1});
}

/* ---- QLinearSoftmax, QLinearWhere ------------------------------------------------------------ */

/* Checks QLinearSoftmax of x [2, 3, 17]. With opset 12, it normalises over all dimensions from the
 * axis on. */
static void softmax(clg_dtype dtype, int64_t opset, int64_t axis)
{
    enum { SIZE = 2 * 3 * 17 };
    const quantised x = draw(dtype, SIZE, 1, 0.04, dtype == CLG_UINT8 ? 120 : -5);
    quantised y = draw(dtype, SIZE, 1, 1.0 / 256, dtype == CLG_UINT8 ? 0 : -128);
    const int64_t inner = opset >= 13 && axis == 1 ? 17 : 1, length = opset < 13 && axis == 1 ? 51
                                                                      : inner == 17           ? 3
                                                                                              : 17;
    for (int64_t i = 0; i < SIZE; i++) {
        double sum = 0;
        const int64_t first = i / (length * inner) * (length * inner) + i % inner;
        for (int64_t k = 0; k < length; k++) sum += exp(real(&x, first + k * inner));
        y.q[i] = back(&y, exp(real(&x, i)) / sum);
    }
    run_node r;
    run_node_start(&r, DOMAIN, "QLinearSoftmax", 1);
    run_node_int(&r, "opset", opset);
    if (axis >= 0) run_node_int(&r, "axis", axis);
    run_node_input(&r, dtype, DIMS(2, 3, 17), x.q);
    feed_numbers(&r, &x);
    feed_numbers(&r, &y);
    run_node_expect(&r, dtype, DIMS(2, 3, 17), y.q);
    check_bytes(&r);
}

TEST(quantized__softmax)
{
    softmax(CLG_UINT8, 13, -1);
    softmax(CLG_INT8, 13, 1);
    softmax(CLG_INT8, 12, 1);
}

TEST(quantized__where)
{
    const quantised a = draw(CLG_UINT8, 13, 1, 0.05, 100), b = draw(CLG_UINT8, 4, 1, 0.03, 50);
    quantised y = draw(CLG_UINT8, 52, 1, 0.06, 120);
    double *takes = run_node_random(52);
    for (int64_t i = 0; i < 52; i++) {
        takes[i] = takes[i] > 0;
        y.q[i] = back(&y, takes[i] > 0 ? real(&a, i % 13) : real(&b, i / 13));
    }
    run_node r;
    run_node_start(&r, DOMAIN, "QLinearWhere", 1);
    run_node_input(&r, CLG_BOOL, DIMS(4, 13), takes);
    run_node_input(&r, a.dtype, DIMS(13), a.q);
    feed_numbers(&r, &a);
    run_node_input(&r, b.dtype, DIMS(4, 1), b.q);
    feed_numbers(&r, &b);
    feed_numbers(&r, &y);
    run_node_expect(&r, CLG_UINT8, DIMS(4, 13), y.q);
    check_bytes(&r);
}

/* ---- QEmbedLayerNormalization ---------------------------------------------------------------- */

enum { BATCH = 2, PLACES = 5, WIDTH = 21 };

static void embed(bool segments, bool mask)
{
    const quantised tables[5] = {
        draw(CLG_UINT8, 11 * WIDTH, 1, 0.02, 127), draw(CLG_UINT8, 9 * WIDTH, 1, 0.01, 110),
        draw(CLG_UINT8, 2 * WIDTH, 1, 0.015, 140), draw(CLG_UINT8, WIDTH, 1, 0.008, 3),
        draw(CLG_UINT8, WIDTH, 1, 0.004, 125)};
    const int64_t rows[5] = {11, 9, 2, 1, 1}, n = BATCH * PLACES;
    double *ids[3] = {run_node_random(n), run_node_random(n), run_node_random(n)},
           *y = run_node_zeros(n * WIDTH), *counts = run_node_zeros(BATCH);
    for (int64_t i = 0; i < n; i++) {
        double mean = 0, square = 0, *row = y + i * WIDTH;
        for (int k = 0; k < 3; k++) ids[k][i] = floor((ids[k][i] + 1) / 2.001 * (k ? 2 : 11));
        counts[i / PLACES] += mask ? ids[2][i] : 0;
        for (int64_t c = 0; c < WIDTH; c++) {
            row[c] = real(&tables[0], (int64_t)ids[0][i] * WIDTH + c) +
                     real(&tables[1], i % PLACES * WIDTH + c);
            if (segments) row[c] += real(&tables[2], (int64_t)ids[1][i] * WIDTH + c);
            mean += row[c] / WIDTH;
        }
        for (int64_t c = 0; c < WIDTH; c++) square += (row[c] - mean) * (row[c] - mean) / WIDTH;
        for (int64_t c = 0; c < WIDTH; c++)
            row[c] =
                (row[c] - mean) / sqrt(square + 1e-5) * real(&tables[3], c) + real(&tables[4], c);
    }
    run_node r;
    run_node_start(&r, DOMAIN, "QEmbedLayerNormalization", 1);
    run_node_float(&r, "epsilon", 1e-5);
    run_node_input(&r, CLG_INT32, DIMS(BATCH, PLACES), ids[0]);
    if (segments)
        run_node_input(&r, CLG_INT32, DIMS(BATCH, PLACES), ids[1]);
    else
        run_node_absent(&r);
    for (int k = 0; k < 5; k++) {
        if (k == 2 && !segments)
            run_node_absent(&r);
        else if (k < 3)
            run_node_constant(&r, CLG_UINT8, DIMS(rows[k], WIDTH), tables[k].q);
        else
            run_node_constant(&r, CLG_UINT8, DIMS(WIDTH), tables[k].q);
    }
    if (mask)
        run_node_input(&r, CLG_INT32, DIMS(BATCH, PLACES), ids[2]);
    else
        run_node_absent(&r);
    for (int k = 0; k < 10; k++) {
        if (k % 5 == 2 && !segments)
            run_node_absent(&r);
        else
            (k < 5 ? feed_scale : feed_zero)(&r, &tables[k % 5]);
    }
    run_node_expect(&r, CLG_FLOAT32, DIMS(BATCH, PLACES, WIDTH), y);
    run_node_expect(&r, CLG_INT32, DIMS(BATCH), counts);
    run_node_check(&r, 1e-5);
}

TEST(quantized__embed)
{
    embed(true, true);
    embed(false, false);
}

/* ---- DynamicQuantizeLSTM --------------------------------------------------------------------- */

enum { STEPS = 4, ROWS = 3, INPUTS = 6, UNITS = 7, GATES = 4 * UNITS };

/* Computes one direction. The gates are in the order i, o, f, c. */
static void run_lstm(const quantised *w, const quantised *u, const double *x, int64_t dir,
                     bool reverse, int64_t n_dirs, double *y)
{
    double h[ROWS * UNITS] = {0}, c[ROWS * UNITS] = {0};
    for (int64_t t = 0; t < STEPS; t++) {
        const int64_t step = reverse ? STEPS - 1 - t : t;
        for (int64_t b = 0; b < ROWS; b++) {
            double gates[GATES] = {0};
            for (int64_t g = 0; g < GATES; g++) {
                for (int64_t k = 0; k < INPUTS; k++)
                    gates[g] += x[(step * ROWS + b) * INPUTS + k] * real(&w[dir], k * GATES + g);
                for (int64_t k = 0; k < UNITS; k++)
                    gates[g] += h[b * UNITS + k] * real(&u[dir], k * GATES + g);
            }
            for (int64_t k = 0; k < UNITS; k++) {
                const double i = 1 / (1 + exp(-gates[k])), o = 1 / (1 + exp(-gates[UNITS + k])),
                             f = 1 / (1 + exp(-gates[2 * UNITS + k]));
                c[b * UNITS + k] = f * c[b * UNITS + k] + i * tanh(gates[3 * UNITS + k]);
                y[((step * n_dirs + dir) * ROWS + b) * UNITS + k] = o * tanh(c[b * UNITS + k]);
            }
            for (int64_t k = 0; k < UNITS; k++)
                h[b * UNITS + k] = y[((step * n_dirs + dir) * ROWS + b) * UNITS + k];
        }
    }
}

static double *joined(const double *a, const double *b, int64_t n_dirs, int64_t n)
{
    double *both = run_node_zeros(n_dirs * n);
    for (int64_t i = 0; i < n_dirs * n; i++) both[i] = i < n ? a[i] : b[i - n];
    return both;
}

/* Adds scales and zero points, of shape [directions] or [directions, columns]. */
static void feed_lists(run_node *r, const quantised *of, int64_t n_dirs)
{
    const int64_t n = of[0].n_scales;
    const double *scales = joined(of[0].scale, of[1].scale, n_dirs, n),
                 *zeros = joined(of[0].zero, of[1].zero, n_dirs, n);
    if (n == 1) {
        run_node_constant(r, CLG_FLOAT32, DIMS(n_dirs), scales);
        run_node_constant(r, CLG_INT8, DIMS(n_dirs), zeros);
        return;
    }
    run_node_constant(r, CLG_FLOAT32, DIMS(n_dirs, n), scales);
    run_node_constant(r, CLG_INT8, DIMS(n_dirs, n), zeros);
}

static void lstm(const char *direction, bool columns)
{
    const int64_t n_dirs = direction[0] == 'b' ? 2 : 1, n_scales = columns ? GATES : 1;
    quantised w[2], u[2];
    const double *x = run_node_random(STEPS * ROWS * INPUTS);
    double *y = run_node_zeros(STEPS * n_dirs * ROWS * UNITS);
    for (int d = 0; d < 2; d++) {
        w[d] = draw(CLG_INT8, INPUTS * GATES, n_scales, 0.005 * (1 + d), 0);
        u[d] = draw(CLG_INT8, UNITS * GATES, n_scales, 0.004 * (1 + d), 1);
    }
    for (int64_t d = 0; d < n_dirs; d++)
        run_lstm(w, u, x, d, d == 1 || direction[0] == 'r', n_dirs, y);
    run_node r;
    run_node_start(&r, DOMAIN, "DynamicQuantizeLSTM", 1);
    run_node_string(&r, "direction", direction);
    run_node_int(&r, "hidden_size", UNITS);
    run_node_input(&r, CLG_FLOAT32, DIMS(STEPS, ROWS, INPUTS), x);
    run_node_constant(&r, CLG_INT8, DIMS(n_dirs, INPUTS, GATES),
                      joined(w[0].q, w[1].q, n_dirs, INPUTS * GATES));
    run_node_constant(&r, CLG_INT8, DIMS(n_dirs, UNITS, GATES),
                      joined(u[0].q, u[1].q, n_dirs, UNITS * GATES));
    for (int i = 0; i < 5; i++) run_node_absent(&r);
    feed_lists(&r, w, n_dirs);
    feed_lists(&r, u, n_dirs);
    run_node_expect(&r, CLG_FLOAT32, DIMS(STEPS, n_dirs, ROWS, UNITS), y);
    run_node_check(&r, 1e-5);
}

TEST(quantized__lstm)
{
    lstm("forward", false);
    lstm("reverse", true);
    lstm("bidirectional", true);
}

/* ---- channels last --------------------------------------------------------------------------- */

enum { HEIGHT = 8, LENGTH = 9, CHANNELS = 5, OUT_H = 4, OUT_W = 9 };

/* Returns the maximum or mean of a 3 x 2 window, with strides 2 x 1 and padding of 1 at the top and
 * at the left. */
static double window(const quantised *x, int64_t i, bool mean)
{
    const int64_t c = i % CHANNELS, ox = i / CHANNELS % OUT_W, oy = i / CHANNELS / OUT_W % OUT_H,
                  b = i / CHANNELS / OUT_W / OUT_H;
    double sum = 0, count = 0, max = -INFINITY;
    for (int64_t t = 0; t < 6; t++) {
        const int64_t iy = oy * 2 - 1 + t / 2, ix = ox - 1 + t % 2;
        if (iy < 0 || iy >= HEIGHT || ix < 0 || ix >= LENGTH) continue;
        const int64_t at = ((b * HEIGHT + iy) * LENGTH + ix) * CHANNELS + c;
        max = fmax(max, x->q[at]);
        sum += real(x, at);
        count++;
    }
    return mean ? sum / count : max;
}

static void windows(run_node *r, const char *name)
{
    run_node_start(r, DOMAIN, name, 1);
    run_node_ints(r, "kernel_shape", 2, (int64_t[]){3, 2});
    run_node_ints(r, "strides", 2, (int64_t[]){2, 1});
    run_node_ints(r, "pads", 4, (int64_t[]){1, 1, 0, 0});
}

TEST(quantized__pools)
{
    run_node r;
    for (int k = 0; k < 3; k++) {
        const bool mean = k == 2;
        const clg_dtype dtype = k ? CLG_UINT8 : CLG_INT8;
        const quantised x = draw(dtype, 2 * HEIGHT * LENGTH * CHANNELS, 1, 0.05, 90);
        quantised y = draw(dtype, 2 * OUT_H * OUT_W * CHANNELS, 1, 0.04, 60);
        for (int64_t i = 0; i < 2 * OUT_H * OUT_W * CHANNELS; i++)
            y.q[i] = mean ? back(&y, window(&x, i, true)) : window(&x, i, false);
        windows(&r, mean ? "QLinearAveragePool" : "NhwcMaxPool");
        if (mean) run_node_int(&r, "channels_last", 1);
        run_node_input(&r, dtype, DIMS(2, HEIGHT, LENGTH, CHANNELS), x.q);
        if (mean) feed_numbers(&r, &x);
        if (mean) feed_numbers(&r, &y);
        run_node_expect(&r, dtype, DIMS(2, OUT_H, OUT_W, CHANNELS), y.q);
        if (mean)
            check_bytes(&r);
        else
            run_node_check(&r, 0);
    }
}

/* Checks a 3 x 3 QLinearConv of [1, 6, 7, CHANNELS] (channels last) to 4 channels, with padding 1.
 */
TEST(quantized__conv)
{
    enum { H = 6, W = 7, OUT = 4 };
    const quantised x = draw(CLG_UINT8, H * W * CHANNELS, 1, 0.02, 120),
                    w = draw(CLG_INT8, OUT * CHANNELS * 9, 1, 0.01, 0);
    quantised y = draw(CLG_UINT8, H * W * OUT, 1, 0.1, 110);
    for (int64_t i = 0; i < H * W * OUT; i++) {
        double sum = 0;
        for (int64_t t = 0; t < 9 * CHANNELS; t++) {
            const int64_t c = t / 9, iy = i / OUT / W + t % 9 / 3 - 1, ix = i / OUT % W + t % 3 - 1;
            if (iy >= 0 && iy < H && ix >= 0 && ix < W)
                sum += real(&x, (iy * W + ix) * CHANNELS + c) *
                       real(&w, (i % OUT * CHANNELS + c) * 9 + t % 9);
        }
        y.q[i] = back(&y, sum);
    }
    run_node r;
    run_node_start(&r, DOMAIN, "QLinearConv", 1);
    run_node_int(&r, "channels_last", 1);
    run_node_ints(&r, "pads", 4, (int64_t[]){1, 1, 1, 1});
    run_node_input(&r, x.dtype, DIMS(1, H, W, CHANNELS), x.q);
    feed_numbers(&r, &x);
    run_node_constant(&r, w.dtype, DIMS(OUT, CHANNELS, 3, 3), w.q);
    feed_numbers(&r, &w);
    feed_numbers(&r, &y);
    run_node_expect(&r, y.dtype, DIMS(1, H, W, OUT), y.q);
    check_bytes(&r);
}

/* ---- rejected inputs and attributes ---------------------------------------------------------- */

TEST(quantized__refuses)
{
    const double zeros[64] = {0};
    run_node r;
    run_node_start(&r, DOMAIN, "QGemm", 1);
    run_node_input(&r, CLG_UINT8, DIMS(2, 3), zeros);
    run_node_constant(&r, CLG_FLOAT32, 0, NULL, zeros);
    run_node_constant(&r, CLG_UINT8, 0, NULL, zeros);
    run_node_constant(&r, CLG_INT8, DIMS(4, 3), zeros);
    run_node_constant(&r, CLG_FLOAT32, 0, NULL, zeros);
    run_node_constant(&r, CLG_INT8, 0, NULL, zeros);
    run_node_expect(&r, CLG_FLOAT32, DIMS(2, 3), zeros);
    run_node_refused(&r, CLG_ERROR_SHAPE, "not matrices that can be multiplied");
    run_node_start(&r, DOMAIN, "QLinearSoftmax", 1);
    run_node_int(&r, "opset", 0);
    run_node_input(&r, CLG_UINT8, DIMS(2, 3), zeros);
    for (int i = 0; i < 2; i++) {
        run_node_constant(&r, CLG_FLOAT32, 0, NULL, zeros);
        run_node_constant(&r, CLG_UINT8, 0, NULL, zeros);
    }
    run_node_expect(&r, CLG_UINT8, DIMS(2, 3), zeros);
    run_node_refused(&r, CLG_ERROR_INVALID_MODEL, "'opset' is 0");
    windows(&r, "NhwcMaxPool");
    run_node_input(&r, CLG_UINT8, DIMS(1, 1, 1, 3), zeros);
    run_node_expect(&r, CLG_UINT8, DIMS(1, 1, 1, 3), zeros);
    run_node_refused(&r, CLG_ERROR_SHAPE, "does not fit spatial axis 0");
}

TEST_GROUP(run_node_open, run_node_close)
