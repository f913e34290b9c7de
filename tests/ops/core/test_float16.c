/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests loads and stores of float16, in kernels that access vectors and in those that access single
 * elements: converts every float16 to float, and rounds floats to float16 at and around every tie.
 * The test assembles float16 values from their fields, and places floats between two of them, so
 * that the expected rounding is known. Results must be exact.
 */
/* ctest: timeout 900 */
#include "support/cases/run_node.h"

#include <math.h>
#include <string.h>

enum { FP16_VALUES = 1 << 16, INFINITE = 0x7c00, SIGN = 0x8000 };

/* Returns the value of the float16 with these bits. For infinity it is 65536, the next value of a
 * format with a wider exponent. */
static double half_value(int bits)
{
    const int exponent = bits >> 10 & 31, fraction = bits & 1023;
    const double size =
        exponent == 0 ? ldexp(fraction, -24) : ldexp(1024 + fraction, exponent - 25);
    return bits & SIGN ? -size : size;
}

static bool is_number(int bits) { return (bits & INFINITE) != INFINITE; }

/* Returns the bits as a signed integer of this width. */
static double as_signed(int64_t bits, int width)
{
    return (double)(bits >= INT64_C(1) << (width - 1) ? bits - (INT64_C(1) << width) : bits);
}

static int64_t float_bits(double number)
{
    const float f = (float)number;
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits;
}

/* Casts `x` and compares bits. */
static void check_bits(clg_dtype from, clg_dtype to, int64_t n, const double *x, const double *bits,
                       bool heavy)
{
    run_node r;
    run_node_start(&r, NULL, "Cast", 26);
    run_node_int(&r, "to", to);
    run_node_input(&r, from, DIMS(n), x);
    run_node_then(&r, "BitCast");
    run_node_int(&r, "to", to == CLG_FLOAT16 ? CLG_INT16 : CLG_INT32);
    run_node_expect(&r, to == CLG_FLOAT16 ? CLG_INT16 : CLG_INT32, DIMS(n), bits);
    r.heavy = heavy;
    run_node_check(&r, 0);
}

static void check_to_floats(int every)
{
    double *x = run_node_zeros(FP16_VALUES), *bits = run_node_zeros(FP16_VALUES);
    int64_t n = 0;
    for (int h = 0; h < FP16_VALUES; h += every) {
        const double number = is_number(h)              ? half_value(h)
                              : (h & ~SIGN) == INFINITE ? (h & SIGN ? -INFINITY : INFINITY)
                                                        : NAN;
        if (isnan(number)) continue;
        x[n] = number;
        bits[n++] = as_signed(float_bits(number), 32);
    }
    check_bits(CLG_FLOAT16, CLG_FLOAT32, n, x, bits, every == 1);
}

TEST(float16__is_exact)
{
    check_to_floats(1);
    check_to_floats(61);
}

/* Checks the rounding of float16 values, of the midpoint between each and the next one, and of the
 * floats on both sides of the midpoint: to the nearest float16, ties to even. */
static void check_to_float16(int every)
{
    double *x = run_node_zeros(4 * FP16_VALUES), *bits = run_node_zeros(4 * FP16_VALUES);
    int64_t n = 0;
    for (int h = 0; h < FP16_VALUES; h += every) {
        if (!is_number(h)) continue;
        const float here = (float)half_value(h), next = (float)half_value(h + 1);
        const float middle = (here + next) / 2;
        const int even = h & 1 ? h + 1 : h;
        const struct {
            float x;
            int to;
        } points[] = {{here, h},
                      {middle, even},
                      {nextafterf(middle, here), h},
                      {nextafterf(middle, next), h + 1}};
        for (size_t i = 0; i < COUNT(points); i++) {
            x[n] = points[i].x;
            bits[n++] = as_signed(points[i].to, 16);
        }
    }
    check_bits(CLG_FLOAT32, CLG_FLOAT16, n, x, bits, every == 1);
}

TEST(floats__round_to_the_nearest_half)
{
    check_to_float16(1);
    check_to_float16(61);
}

/* Floats beyond the range of float16, and at its limits. */
static const double outliers[] = {INFINITY, -INFINITY, 65520, -65520, 1e5,   -3e38, 0.0,   -0.0,
                                  1e-8,     -1e-8,     1e-30, -1e-30, 1e-37, 2e-8,  -2e-8, 65519};
static const int outlier_bits[] = {INFINITE, INFINITE | SIGN,
                                   INFINITE, INFINITE | SIGN,
                                   INFINITE, INFINITE | SIGN,
                                   0,        SIGN,
                                   0,        SIGN,
                                   0,        SIGN,
                                   0,        0,
                                   SIGN,     INFINITE - 1};

TEST(floats__out_of_the_range_of_float16)
{
    double bits[COUNT(outliers)];
    for (size_t i = 0; i < COUNT(outliers); i++) bits[i] = as_signed(outlier_bits[i], 16);
    check_bits(CLG_FLOAT32, CLG_FLOAT16, (int64_t)COUNT(outliers), outliers, bits, false);
    check_bits(CLG_FLOAT32, CLG_FLOAT16, 1, outliers + 15, bits + 15, false);
    check_bits(CLG_FLOAT32, CLG_FLOAT16, 13, outliers + 1, bits + 1, false);
}

TEST(nan__stays_one)
{
    enum { N = 37 };
    double x[N];
    for (int i = 0; i < N; i++) x[i] = i % 3 ? NAN : i;
    for (int to_half = 0; to_half < 2; to_half++) {
        const clg_dtype half = CLG_FLOAT16, whole = CLG_FLOAT32;
        run_node r;
        run_node_start(&r, NULL, "Cast", 26);
        run_node_int(&r, "to", to_half ? half : whole);
        run_node_input(&r, to_half ? whole : half, DIMS(N), x);
        run_node_expect(&r, to_half ? half : whole, DIMS(N), x);
        run_node_check(&r, 0);
    }
}

/* Holds a float16, half of the distance to the next float16, and a quarter of that distance,
 * positive, negative or zero. float16 represents all three exactly, and float32 their sum. */
typedef struct sum_case {
    double terms[3];
    double sum;
} sum_case;

static sum_case sum_at(int h, int direction)
{
    const double here = half_value(h), middle = (half_value(h + 1) - here) / 2;
    if (fabs(here) < 0x1p-11) return (sum_case){{here, 0, 0}, here};
    const int to = direction < 0 ? h : direction > 0 || h & 1 ? h + 1 : h;
    const double sum = is_number(to) ? half_value(to) : h & SIGN ? -INFINITY : INFINITY;
    return (sum_case){{here, middle, direction * middle / 4}, sum};
}

static int64_t list_sums(int every, sum_case **out)
{
    int64_t n = 0;
    *out = (sum_case *)(void *)run_node_zeros(4 * FP16_VALUES);
    for (int h = 0; h < FP16_VALUES; h += every)
        if (is_number(h)) (*out)[n++] = sum_at(h, h / 2 % 3 - 1);
    return n;
}

/* Checks the rounding of GEMM results. Rows are stored as vectors, and the remaining elements
 * individually. */
static void check_gemms(int every)
{
    enum { N = 17 };
    sum_case *sums;
    const int64_t n = list_sums(every, &sums);
    double *x = run_node_zeros(n * 3), *w = run_node_zeros((int64_t)3 * N),
           *y = run_node_zeros(n * N);
    for (int64_t i = 0; i < n; i++) {
        for (int k = 0; k < 3; k++) x[i * 3 + k] = sums[i].terms[k];
        for (int k = 0; k < N; k++) y[i * N + k] = sums[i].sum;
    }
    for (int k = 0; k < 3 * N; k++) w[k] = 1;
    run_node r;
    run_node_start(&r, NULL, "MatMul", 13);
    run_node_input(&r, CLG_FLOAT16, DIMS(n, 3), x);
    run_node_constant(&r, CLG_FLOAT16, DIMS(3, N), w);
    run_node_expect(&r, CLG_FLOAT16, DIMS(n, N), y);
    r.heavy = every == 1;
    run_node_check(&r, 0);
}

TEST(gemm__is_rounded_once)
{
    check_gemms(1);
    check_gemms(61);
}

/* Checks the rounding of single elements: the last of three cumulative sums. */
static void check_sums(int every)
{
    sum_case *sums;
    const int64_t n = list_sums(every, &sums);
    const double axis = 1, from = 2, to = 3;
    double *x = run_node_zeros(n * 3), *y = run_node_zeros(n);
    for (int64_t i = 0; i < n; i++) {
        for (int k = 0; k < 3; k++) x[i * 3 + k] = sums[i].terms[k];
        y[i] = sums[i].sum;
    }
    run_node r;
    run_node_start(&r, NULL, "CumSum", 14);
    run_node_input(&r, CLG_FLOAT16, DIMS(n, 3), x);
    run_node_constant(&r, CLG_INT32, 0, NULL, &axis);
    run_node_then(&r, "Slice");
    run_node_constant(&r, CLG_INT64, DIMS(1), &from);
    run_node_constant(&r, CLG_INT64, DIMS(1), &to);
    run_node_constant(&r, CLG_INT64, DIMS(1), &axis);
    run_node_expect(&r, CLG_FLOAT16, DIMS(n, 1), y);
    r.heavy = every == 1;
    run_node_check(&r, 0);
}

TEST(running_sums__are_rounded_once)
{
    check_sums(1);
    check_sums(61);
}

/* Intermediate values of a fused kernel are not stored, but must be rounded to float16. */
TEST(floats__round_within_a_kernel)
{
    enum { N = 8191 };
    double *x = run_node_zeros(N), *y = run_node_zeros(N);
    for (int i = 0; i < N; i++) {
        const int h = i * 8 + i % 7;
        const sum_case s = sum_at(h, i % 3 - 1);
        x[i] = s.terms[0] + s.terms[1] + s.terms[2];
        y[i] = s.sum;
        if (!is_number(h)) x[i] = y[i] = NAN;
    }
    run_node r;
    run_node_start(&r, NULL, "Cast", 19);
    run_node_int(&r, "to", CLG_FLOAT16);
    run_node_input(&r, CLG_FLOAT32, DIMS(N), x);
    run_node_then(&r, "Cast");
    run_node_int(&r, "to", CLG_FLOAT32);
    run_node_expect(&r, CLG_FLOAT32, DIMS(N), y);
    run_node_check(&r, 0);
}

TEST_GROUP(run_node_open, run_node_close)
