/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares com.microsoft's QLinear operators with references in double. Results must be equal:
 * scales are such that a quotient is a tie, or so far from one that float32 rounds it to the same
 * side.
 */
#include "support/cases/run_node.h"

#include <math.h>

/* Holds a tensor of quantised values. */
typedef struct quantised {
    clg_dtype dtype;
    double scale, zero;
    double *q;
} quantised;

static quantised draw(clg_dtype dtype, int64_t n, double scale, double zero)
{
    quantised x = {dtype, scale, zero, run_node_random(n)};
    for (int64_t i = 0; i < n; i++) x.q[i] = floor(x.q[i] * 127) + (dtype == CLG_UINT8 ? 128 : 0);
    return x;
}

static double real(const quantised *x, int64_t i) { return (x->q[i] - x->zero) * x->scale; }

static double back(const quantised *y, double v)
{
    const double low = y->dtype == CLG_UINT8 ? 0 : -128;
    return fmin(fmax(nearbyint(v / y->scale) + y->zero, low), low + 255);
}

static void feed_numbers(run_node *r, const quantised *x, bool zero)
{
    run_node_constant(r, CLG_FLOAT32, 0, NULL, &x->scale);
    if (zero)
        run_node_constant(r, x->dtype, 0, NULL, &x->zero);
    else
        run_node_absent(r);
}

static void binary(const char *name, clg_dtype dtype)
{
    const quantised a = draw(dtype, 4 * 33, 0.0625, 3),
                    b = draw(dtype, 33, 0.03125, -2 + 4 * (dtype == CLG_UINT8));
    quantised y = {dtype, name[7] == 'A' ? 0.125 : 0.25, 5, run_node_zeros(4 * 33)};
    for (int64_t i = 0; i < 4 * 33; i++) {
        const double u = real(&a, i), v = real(&b, i % 33);
        y.q[i] = back(&y, name[7] == 'A' ? u + v : u * v);
    }
    run_node r;
    run_node_start(&r, "com.microsoft", name, 1);
    run_node_input(&r, dtype, DIMS(4, 33), a.q);
    feed_numbers(&r, &a, true);
    run_node_input(&r, dtype, DIMS(33), b.q);
    feed_numbers(&r, &b, true);
    feed_numbers(&r, &y, true);
    run_node_expect(&r, dtype, DIMS(4, 33), y.q);
    run_node_check(&r, 0);
}

TEST(qlinear__of_two)
{
    binary("QLinearAdd", CLG_UINT8);
    binary("QLinearAdd", CLG_INT8);
    binary("QLinearMul", CLG_UINT8);
    binary("QLinearMul", CLG_INT8);
}

static void unary(const char *name, clg_dtype dtype, double alpha)
{
    const bool sigmoid = name[7] == 'S';
    const quantised x = draw(dtype, 70, 0.0625, sigmoid ? 7 : 0);
    quantised y = {dtype, sigmoid ? 1.0 / 256 : 0.03125, sigmoid && dtype == CLG_INT8 ? -128 : 0,
                   run_node_zeros(70)};
    for (int64_t i = 0; i < 70; i++) {
        if (sigmoid && fabs(remainder(256 / (1 + exp(-real(&x, i))), 1)) > 0.499) x.q[i] = x.zero;
        const double v = real(&x, i);
        y.q[i] = back(&y, sigmoid ? 1 / (1 + exp(-v)) : v < 0 ? alpha * v : v);
    }
    run_node r;
    run_node_start(&r, "com.microsoft", name, 1);
    if (!sigmoid) run_node_float(&r, "alpha", alpha);
    run_node_input(&r, dtype, DIMS(2, 5, 7), x.q);
    feed_numbers(&r, &x, sigmoid);
    feed_numbers(&r, &y, y.zero != 0);
    run_node_expect(&r, dtype, DIMS(2, 5, 7), y.q);
    run_node_check(&r, 0);
}

TEST(qlinear__of_one)
{
    unary("QLinearSigmoid", CLG_UINT8, 0);
    unary("QLinearSigmoid", CLG_INT8, 0);
    unary("QLinearLeakyRelu", CLG_UINT8, 0.25);
    unary("QLinearLeakyRelu", CLG_INT8, 0.125);
}

static void pool(clg_dtype dtype, bool channels_last)
{
    const int64_t c = 5, plane = 6 * 7;
    const quantised x = draw(dtype, 2 * c * plane, 0.0625, dtype == CLG_UINT8 ? 100 : 9);
    quantised y = {dtype, 0.03125, 4, run_node_zeros(2 * c)};
    for (int64_t i = 0; i < 2 * c; i++) {
        double sum = 0;
        for (int64_t p = 0; p < plane; p++)
            sum += real(&x, channels_last ? (i / c * plane + p) * c + i % c : i * plane + p);
        y.q[i] = back(&y, sum / (double)plane);
    }
    run_node r;
    run_node_start(&r, "com.microsoft", "QLinearGlobalAveragePool", 1);
    run_node_int(&r, "channels_last", channels_last);
    if (channels_last)
        run_node_input(&r, dtype, DIMS(2, 6, 7, c), x.q);
    else
        run_node_input(&r, dtype, DIMS(2, c, 6, 7), x.q);
    feed_numbers(&r, &x, true);
    feed_numbers(&r, &y, true);
    if (channels_last)
        run_node_expect(&r, dtype, DIMS(2, 1, 1, c), y.q);
    else
        run_node_expect(&r, dtype, DIMS(2, c, 1, 1), y.q);
    run_node_check(&r, 0);
}

TEST(qlinear__global_average)
{
    pool(CLG_UINT8, false);
    pool(CLG_UINT8, true);
    pool(CLG_INT8, false);
}

/* Checks average pooling with 3 x 2 windows and strides 2 x 1, with padding of 1 at the top and at
 * the left. */
static void window_pool(clg_dtype dtype, bool padding_counts)
{
    const int64_t h = 8, w = 9, oh = 4, ow = 9;
    const quantised x = draw(dtype, 3 * h * w, 0.0625, dtype == CLG_UINT8 ? 100 : 9);
    quantised y = {dtype, 0.03125, 4, run_node_zeros(3 * oh * ow)};
    for (int64_t i = 0; i < 3 * oh * ow; i++) {
        double sum = 0, count = 0;
        for (int64_t t = 0; t < 6; t++) {
            const int64_t iy = i / ow % oh * 2 - 1 + t / 2, ix = i % ow - 1 + t % 2;
            const bool inside = iy >= 0 && iy < h && ix >= 0 && ix < w;
            if (inside) sum += real(&x, (i / (oh * ow) * h + iy) * w + ix);
            count += inside || padding_counts;
        }
        y.q[i] = back(&y, sum / count);
    }
    run_node r;
    run_node_start(&r, "com.microsoft", "QLinearAveragePool", 1);
    run_node_ints(&r, "kernel_shape", 2, (int64_t[]){3, 2});
    run_node_ints(&r, "strides", 2, (int64_t[]){2, 1});
    run_node_ints(&r, "pads", 4, (int64_t[]){1, 1, 0, 0});
    run_node_int(&r, "count_include_pad", padding_counts);
    run_node_input(&r, dtype, DIMS(1, 3, h, w), x.q);
    feed_numbers(&r, &x, true);
    feed_numbers(&r, &y, true);
    run_node_expect(&r, dtype, DIMS(1, 3, oh, ow), y.q);
    run_node_check(&r, 0);
}

TEST(qlinear__average)
{
    window_pool(CLG_UINT8, false);
    window_pool(CLG_INT8, true);
}

TEST(qlinear__concat)
{
    const int64_t lengths[] = {3, 17, 1};
    const quantised parts[] = {draw(CLG_UINT8, 2 * 3 * 4, 0.5, 1),
                               draw(CLG_INT8, 2 * 17 * 4, 0.25, -3),
                               draw(CLG_UINT8, 2 * 4, 0.125, 100)};
    quantised y = {CLG_UINT8, 0.375, 128, run_node_zeros(2 * 21 * 4)};
    int64_t place = 0;
    for (int k = 0; k < 3; place += lengths[k++])
        for (int64_t i = 0; i < 2 * lengths[k] * 4; i++)
            y.q[(i / (lengths[k] * 4) * 21 + place) * 4 + i % (lengths[k] * 4)] =
                back(&y, real(&parts[k], i));
    run_node r;
    run_node_start(&r, "com.microsoft", "QLinearConcat", 1);
    run_node_int(&r, "axis", -2);
    feed_numbers(&r, &y, true);
    for (int k = 0; k < 3; k++) {
        run_node_input(&r, parts[k].dtype, DIMS(2, lengths[k], 4), parts[k].q);
        feed_numbers(&r, &parts[k], true);
    }
    run_node_expect(&r, CLG_UINT8, DIMS(2, 21, 4), y.q);
    run_node_check(&r, 0);
}

TEST(qlinear__refuses)
{
    const double numbers[4] = {1, 1, 1, 1};
    run_node r;
    run_node_start(&r, "com.microsoft", "QLinearSigmoid", 1);
    run_node_input(&r, CLG_UINT8, DIMS(4), numbers);
    run_node_constant(&r, CLG_FLOAT32, DIMS(4), numbers);
    run_node_absent(&r);
    run_node_constant(&r, CLG_FLOAT32, DIMS(1), numbers);
    run_node_expect(&r, CLG_UINT8, DIMS(4), numbers);
    run_node_refused(&r, CLG_ERROR_SHAPE, "4 numbers");
}

TEST_GROUP(run_node_open, run_node_close)
