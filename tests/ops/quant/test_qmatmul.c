/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares MatMulInteger and QLinearMatMul with sums in int64. Sums must be exact, and requantised
 * values equal, since the scales are powers of two.
 *
 * Tolerance of com.microsoft's quantised GEMMs with float32 results, which are rounded a few times:
 * 1e-5 of the largest element. Where they quantise A themselves, a tie may be rounded either way,
 * which adds one quantisation step of A times the largest element of B.
 */
#include "support/cases/quantized_case.h"

#include <math.h>

static const quantized_how none;

TEST(qmatmul__integer)
{
    qgemm_check_integer((qgemm_case){1, 1, 1, 1, false, false, 0, false}, none);
    qgemm_check_integer((qgemm_case){1, 5, 17, 33, false, true, 1, false}, none);
    qgemm_check_integer((qgemm_case){3, 4, 16, 7, true, true, 2, false}, none);
    qgemm_check_integer((qgemm_case){2, 7, 37, 300, true, false, 2, true}, none);
    qgemm_check_integer((qgemm_case){2, 3, 5, 0, true, false, 1, false}, none);
    qgemm_check_integer((qgemm_case){0, 3, 5, 2, true, false, 1, false}, none);
}

TEST(qmatmul__vectors)
{
    const double *a = quantized_bytes(9, false), *b = quantized_bytes(9 * 4, true);
    double y[4] = {0};
    for (int i = 0; i < 36; i++) y[i % 4] += a[i / 4] * b[i];
    run_node r;
    run_node_start(&r, NULL, "MatMulInteger", 10);
    run_node_input(&r, CLG_UINT8, 1, (int64_t[]){9}, a);
    run_node_input(&r, CLG_INT8, 2, (int64_t[]){9, 4}, b);
    run_node_expect(&r, CLG_INT32, 1, (int64_t[]){4}, y);
    run_node_check(&r, 0);
}

TEST(qmatmul__linear)
{
    qgemm_check_linear((qgemm_case){1, 1, 1, 4, false, false, 1, false}, CLG_UINT8, CLG_FLOAT32, 9,
                       none);
    qgemm_check_linear((qgemm_case){2, 6, 19, 31, false, true, 1, false}, CLG_UINT8, CLG_FLOAT32,
                       11, none);
    qgemm_check_linear((qgemm_case){2, 6, 19, 31, true, true, 2, false}, CLG_INT8, CLG_FLOAT32, 12,
                       none);
    qgemm_check_linear((qgemm_case){2, 6, 19, 31, false, true, 1, false}, CLG_UINT8, CLG_FLOAT16,
                       11, none);
    qgemm_check_linear((qgemm_case){2, 6, 19, 31, true, true, 2, false}, CLG_INT8, CLG_FLOAT16, 12,
                       none);
    qgemm_check_linear((qgemm_case){1, 5, 17, 31, true, true, 2, false}, CLG_INT8, CLG_BFLOAT16, 12,
                       none);
}

/* Checks an implementation for CPUs, with remainders in every dimension and sums longer than a
 * block of words. */
static void check_simd(const char *impl)
{
    const quantized_how usual = {ANY_NUMBERS, false, impl, CLG_KERNELS_SIMD},
                        furthest = {FURTHEST, false, impl, CLG_KERNELS_SIMD};
    const clg_dtype f = CLG_FLOAT32;
    qgemm_check_integer((qgemm_case){1, 25, 70, 1100, false, true, 2, true}, usual);
    qgemm_check_integer((qgemm_case){2, 101, 37, 66, false, true, 1, false}, usual);
    qgemm_check_integer((qgemm_case){1, 3, 1500, 5, false, true, 0, true}, usual);
    qgemm_check_integer((qgemm_case){2, 13, 33, 2051, true, false, 2, true}, furthest);
    qgemm_check_integer((qgemm_case){2, 7, 31, 1027, false, true, 1, false}, furthest);
    qgemm_check_integer((qgemm_case){1, 1, 129, 39, true, false, 2, false}, usual);
    qgemm_check_linear((qgemm_case){1, 97, 65, 131, false, true, 2, true}, CLG_UINT8, f, 12, usual);
    qgemm_check_linear((qgemm_case){2, 5, 100, 259, true, true, 1, false}, CLG_INT8, f, 13, usual);
    qgemm_check_linear((qgemm_case){1, 26, 15, 1030, false, false, 2, true}, CLG_INT8, f, 20,
                       furthest);
}

TEST(qmatmul__simd_byte) { check_simd("qgemm_simd_byte"); }

TEST(qmatmul__simd_short) { check_simd("qgemm_simd_short"); }

TEST(qmatmul__simd_float) { check_simd("qgemm_simd_float"); }

TEST(qmatmul__refuses)
{
    const double x[12] = {0};
    run_node r;
    run_node_start(&r, NULL, "MatMulInteger", 10);
    run_node_input(&r, CLG_UINT8, 2, (int64_t[]){3, 4}, x);
    run_node_input(&r, CLG_INT8, 2, (int64_t[]){3, 4}, x);
    run_node_expect(&r, CLG_INT32, 2, (int64_t[]){3, 4}, x);
    run_node_refused(&r, CLG_ERROR_SHAPE, "4 columns");
    run_node_start(&r, NULL, "MatMulInteger", 10);
    run_node_input(&r, CLG_UINT8, 2, (int64_t[]){3, 4}, x);
    run_node_input(&r, CLG_INT8, 2, (int64_t[]){4, 3}, x);
    run_node_input(&r, CLG_UINT8, 1, (int64_t[]){2}, x);
    run_node_expect(&r, CLG_INT32, 2, (int64_t[]){3, 3}, x);
    run_node_refused(&r, CLG_ERROR_SHAPE, "zero point of A");
}

/* Checks MatMulIntegerToFloat. If p.zeros is 2, B has one zero point and scale per column. */
static void to_float(qgemm_case p, bool bias)
{
    const clg_dtype ta = p.a_signed ? CLG_INT8 : CLG_UINT8, tb = p.b_signed ? CLG_INT8 : CLG_UINT8;
    const double *a = quantized_bytes(p.batch * p.m * p.k, p.a_signed),
                 *b = quantized_bytes(p.batch * p.k * p.n, p.b_signed);
    const double *bz = quantized_bytes(p.n, p.b_signed), *sb = run_node_random(p.n),
                 *add = run_node_random(p.n), sa = 0.0078125, *az = quantized_bytes(1, p.a_signed);
    double *y = run_node_zeros(p.batch * p.m * p.n), *row_zeros = run_node_zeros(p.m);
    for (int64_t i = 0; i < p.m; i++) row_zeros[i] = az[0];
    for (int64_t i = 0; i < p.batch * p.m * p.n; i++) {
        const int64_t column = i % p.n;
        const double sum =
            (double)qgemm_sum(&p, a, b, row_zeros, bz, i / p.n / p.m, i / p.n % p.m, column);
        y[i] = sum * sa * sb[p.zeros == 2 ? column : 0] + (bias ? add[column] : 0);
    }
    run_node r;
    run_node_start(&r, "com.microsoft", "MatMulIntegerToFloat", 1);
    run_node_input(&r, ta, 3, (int64_t[]){p.batch, p.m, p.k}, a);
    run_node_input(&r, tb, 3, (int64_t[]){p.batch, p.k, p.n}, b);
    run_node_input(&r, CLG_FLOAT32, 0, NULL, &sa);
    run_node_input(&r, CLG_FLOAT32, p.zeros == 2, &p.n, sb);
    if (p.zeros) {
        run_node_input(&r, ta, 0, NULL, az);
        run_node_input(&r, tb, p.zeros == 2, &p.n, bz);
    } else if (bias) {
        run_node_absent(&r);
        run_node_absent(&r);
    }
    if (bias) run_node_input(&r, CLG_FLOAT32, 1, &p.n, add);
    run_node_expect(&r, CLG_FLOAT32, 3, (int64_t[]){p.batch, p.m, p.n}, y);
    run_node_check_scaled(&r, 1e-5, 1000);
}

TEST(qmatmul__to_float)
{
    to_float((qgemm_case){1, 5, 17, 33, false, true, 1, false}, true);
    to_float((qgemm_case){2, 4, 35, 20, true, true, 2, false}, true);
    to_float((qgemm_case){1, 3, 8, 9, false, false, 0, false}, false);
    to_float((qgemm_case){1, 3, 8, 9, true, false, 0, false}, true);
    to_float((qgemm_case){0, 3, 8, 9, true, false, 1, false}, true);
}

/* Checks DynamicQuantizeMatMul for values between -1 and 1, whose quantisation step is at most
 * 2/255. */
static void dynamic(int64_t m, int64_t k, int64_t n, bool lists, bool bias)
{
    const double *a = run_node_random(m * k), *b = quantized_bytes(k * n, true),
                 *bz = quantized_bytes(n, true), *add = run_node_random(n);
    double *y = run_node_zeros(m * n), *sb = run_node_zeros(n), low = 0, high = 0;
    for (int64_t i = 0; i < n; i++) sb[i] = ldexp(1, -8 - (int)(i % 2));
    for (int64_t i = 0; i < m * k; i++) {
        low = fmin(low, a[i]);
        high = fmax(high, a[i]);
    }
    const double step = (high - low) / 255, zero = nearbyint(-low / step);
    for (int64_t i = 0; i < m * n; i++) {
        const int64_t column = lists ? i % n : 0;
        y[i] = bias ? add[i % n] : 0;
        for (int64_t t = 0; t < k; t++) {
            const double q = fmin(fmax(nearbyint(a[i / n * k + t] / step) + zero, 0), 255);
            y[i] += (q - zero) * step * (b[t * n + i % n] - bz[column]) * sb[column];
        }
    }
    run_node r;
    run_node_start(&r, "com.microsoft", "DynamicQuantizeMatMul", 1);
    run_node_input(&r, CLG_FLOAT32, 2, (int64_t[]){m, k}, a);
    run_node_constant(&r, CLG_INT8, 2, (int64_t[]){k, n}, b);
    run_node_constant(&r, CLG_FLOAT32, lists, &n, sb);
    run_node_constant(&r, CLG_INT8, lists, &n, bz);
    if (bias) run_node_constant(&r, CLG_FLOAT32, 1, &n, add);
    run_node_expect(&r, CLG_FLOAT32, 2, (int64_t[]){m, n}, y);
    run_node_check_scaled(&r, 2.0 / 255, 1);
}

TEST(qmatmul__dynamic)
{
    dynamic(1, 40, 33, false, false);
    dynamic(7, 19, 20, true, true);
    dynamic(4, 300, 5, false, true);
    dynamic(0, 4, 5, false, true);
}

TEST_GROUP(run_node_open, run_node_close)
