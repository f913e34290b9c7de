/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests BitCast: the bytes of every element must be unchanged. The test decodes the bytes as a
 * value of the source and of the target dtype.
 */
#include "support/cases/run_node.h"

#include <math.h>

/* Test values whose bits in float16, bfloat16, float32 and float64 the function field() assembles
 * from sign, exponent and mantissa. */
static const double numbers[] = {1, -1, 0.5, -0.0, INFINITY, 3};
enum { N = 6 };

static double field(int i, int exponent_bits, int fraction_bits, bool is_signed)
{
    static const int exponents[N] = {0, 0, -1, 0, 0, 1}, half_units[N] = {0, 0, 0, 0, 0, 1};
    const double bias = ldexp(1, exponent_bits - 1) - 1, unit = ldexp(1, fraction_bits);
    const double magnitude = i == 3   ? 0
                             : i == 4 ? (2 * bias + 1) * unit
                                      : (exponents[i] + bias) * unit + half_units[i] * unit / 2;
    const double top = ldexp(1, exponent_bits + fraction_bits);
    const bool negative = i == 1 || i == 3;
    return magnitude + (negative ? (is_signed ? -top : top) : 0);
}

static void check(clg_dtype from, clg_dtype to, int rank, const int64_t *dims, const double *x,
                  const double *y, bool constant)
{
    run_node r;
    run_node_start(&r, NULL, "BitCast", 26);
    run_node_int(&r, "to", to);
    if (constant)
        run_node_constant(&r, from, rank, dims, x);
    else
        run_node_input(&r, from, rank, dims, x);
    run_node_expect(&r, to, rank, dims, y);
    run_node_check(&r, 0);
}

TEST(bitcast__floats)
{
    static const struct {
        clg_dtype dtype, as_signed, as_unsigned;
        int exponent, fraction;
    } rows[] = {{CLG_FLOAT32, CLG_INT32, CLG_UINT32, 8, 23},
                {CLG_FLOAT16, CLG_INT16, CLG_UINT16, 5, 10},
                {CLG_BFLOAT16, CLG_INT16, CLG_UINT16, 8, 7},
                {CLG_FLOAT64, CLG_INT64, CLG_UINT64, 11, 52}};
    const int64_t dims[] = {2, 3};
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
        double bits[2][N];
        for (int i = 0; i < 2 * N; i++)
            bits[i / N][i % N] = field(i % N, rows[k].exponent, rows[k].fraction, i < N);
        check(rows[k].as_signed, rows[k].dtype, 2, dims, bits[0], numbers, false);
        /* float64 is not tested: run_node_check expects devices without fp64 to reject float64
         * inputs, but BitCast needs no fp64. */
        if (rows[k].dtype == CLG_FLOAT64) continue;
        check(rows[k].dtype, rows[k].as_signed, 2, dims, numbers, bits[0], false);
        check(rows[k].dtype, rows[k].as_signed, 2, dims, numbers, bits[0], true);
        check(rows[k].dtype, rows[k].as_unsigned, 2, dims, numbers, bits[1], false);
    }
}

TEST(bitcast__integers)
{
    check(CLG_INT8, CLG_UINT8, 1, (int64_t[]){4}, (double[]){0, -1, -128, 127},
          (double[]){0, 255, 128, 127}, false);
    check(CLG_BOOL, CLG_UINT8, 1, (int64_t[]){3}, (double[]){0, 1, 1}, (double[]){0, 1, 1}, false);
    check(CLG_UINT32, CLG_UINT32, 0, NULL, (double[]){7}, (double[]){7}, false);
    check(CLG_FLOAT32, CLG_INT32, 2, (int64_t[]){0, 3}, numbers, numbers, false);
}

/* A view of a view, which a kernel then accesses in its new dtype. */
TEST(bitcast__between_others)
{
    const double x[] = {1, 2, 4, 8, 16, 32}, order[] = {0, 3, 1, 4, 2, 5};
    double y[N];
    for (int i = 0; i < N; i++) y[i] = (order[i] + 127) * 8388608 + 5;
    run_node r;
    run_node_start(&r, NULL, "Transpose", 26);
    run_node_input(&r, CLG_FLOAT32, 2, (int64_t[]){2, 3}, x);
    run_node_then(&r, "BitCast");
    run_node_int(&r, "to", CLG_INT32);
    run_node_then(&r, "Add");
    run_node_input(&r, CLG_INT32, 0, NULL, (double[]){5});
    run_node_expect(&r, CLG_INT32, 2, (int64_t[]){3, 2}, y);
    run_node_check(&r, 0);
}

TEST(bitcast__refuses)
{
    run_node r;
    run_node_start(&r, NULL, "BitCast", 26);
    run_node_int(&r, "to", CLG_INT16);
    run_node_input(&r, CLG_FLOAT32, 1, (int64_t[]){2}, numbers);
    run_node_expect(&r, CLG_INT16, 1, (int64_t[]){2}, numbers);
    run_node_refused(&r, CLG_ERROR_INVALID_MODEL, "the size");
    run_node_start(&r, NULL, "BitCast", 26);
    run_node_int(&r, "to", 15);
    run_node_input(&r, CLG_FLOAT32, 1, (int64_t[]){2}, numbers);
    run_node_expect(&r, CLG_FLOAT32, 1, (int64_t[]){2}, numbers);
    run_node_refused(&r, CLG_ERROR_UNSUPPORTED_DTYPE, "complex128");
}

TEST_GROUP(run_node_open, run_node_close)
