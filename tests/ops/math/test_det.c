/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares Det with other formulas in long double: up to 6 x 6 with cofactors along the first row,
 * beyond with the matrix determinant lemma, det(D + u v') = det(D) (1 + v' D^-1 u), for matrices
 * whose elements every dtype represents exactly, with their rows rotated.
 *
 * Tolerance: float64 1e-11 and float32 2e-5, for LU decompositions of well-conditioned matrices
 * with elements of magnitude 1; float16 2e-3 and bfloat16 1e-2, which also round the result.
 */
/* ctest: timeout 900 */
#include "support/cases/run_node.h"

#include <math.h>

static double tolerance(clg_dtype dtype)
{
    return dtype == CLG_FLOAT64    ? 1e-11
           : dtype == CLG_FLOAT32  ? 2e-5
           : dtype == CLG_BFLOAT16 ? 1e-2
                                   : 2e-3;
}

/* Returns the determinant of the rows from `row` on, without the columns whose bits are set in
 * `taken`. */
static long double cofactors(const double *a, int n, int row, unsigned taken)
{
    long double sum = 0, sign = 1;
    if (row == n) return 1;
    for (int j = 0; j < n; j++) {
        if (taken >> j & 1) continue;
        sum += sign * (long double)a[row * n + j] * cofactors(a, n, row + 1, taken | 1u << j);
        sign = -sign;
    }
    return sum;
}

static void check(clg_dtype dtype, int64_t opset, int64_t batch, int64_t n, const double *x,
                  const double *y)
{
    run_node r;
    run_node_start(&r, NULL, "Det", opset);
    run_node_input(&r, dtype, 3, (int64_t[]){batch, n, n}, x);
    run_node_expect(&r, dtype, 1, &batch, y);
    r.heavy = batch * n * n > 3000;
    run_node_check(&r, tolerance(dtype));
}

static void by_cofactors(clg_dtype dtype, int64_t batch, int64_t n)
{
    double *x = run_node_random(batch * n * n), *y = run_node_zeros(batch);
    for (int64_t i = 0; i < batch * n * n; i++) x[i] = rint(x[i] * 16) / 16;
    for (int64_t m = 0; m < batch; m++) y[m] = (double)cofactors(x + m * n * n, (int)n, 0, 0);
    check(dtype, 11, batch, n, x, y);
}

/* Checks matrices D + u v', where D has 2 and 1/2 alternately with random signs, and u and v are
 * multiples of 1/8. */
static void by_lemma(clg_dtype dtype, int64_t batch, int64_t n)
{
    double *x = run_node_zeros(batch * n * n), *y = run_node_zeros(batch);
    for (int64_t m = 0; m < batch; m++) {
        const double *u = run_node_random(n), *v = run_node_random(n), *d = run_node_random(n);
        double *a = x + m * n * n;
        long double product = 1, sum = 1;
        const int64_t shift = n > 1 ? m % n : 0;
        for (int64_t i = 0; i < n; i++) {
            const double of_d = (i % 2 ? 2 : 0.5) * (d[i] < 0 ? -1 : 1), of_u = rint(u[i] * 4) / 8;
            double *row = a + (i + shift) % n * n;
            product *= (long double)of_d;
            sum += (long double)(rint(v[i] * 4) / 8 / of_d * of_u);
            for (int64_t j = 0; j < n; j++) row[j] = of_u * (rint(v[j] * 4) / 8);
            row[i] += of_d;
        }
        /* Rows rotate by `shift`: each step of the rotation is n - 1 exchanges of rows. */
        y[m] = (double)(product * sum) * (shift * (n - 1) % 2 ? -1 : 1);
    }
    check(dtype, 22, batch, n, x, y);
}

TEST(det__cofactors)
{
    for (int64_t n = 1; n <= 6; n++) by_cofactors(CLG_FLOAT32, 7, n);
    by_cofactors(CLG_FLOAT32, 131, 3);
    by_cofactors(CLG_FLOAT32, 70, 5);
}

TEST(det__lemma)
{
    static const int64_t sizes[] = {7, 15, 16, 17, 33, 63, 64, 65, 130};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) by_lemma(CLG_FLOAT32, 3, sizes[i]);
}

TEST(det__dtypes)
{
    static const clg_dtype dtypes[] = {CLG_FLOAT16, CLG_BFLOAT16, CLG_FLOAT64};
    for (int i = 0; i < 3; i++) {
        by_cofactors(dtypes[i], 5, 3);
        by_cofactors(dtypes[i], 5, 5);
        by_lemma(dtypes[i], 3, 19);
    }
}

/* Matrices with zeros at the pivots, with dependent rows, and with NaN. */
TEST(det__pivots)
{
    const double x[] = {0, 1, 0, 0, 0,   1, 1, 0, 0, /* a cycle of three */
                        0, 2, 0, 3, 0,   0, 0, 0, 4, /* an exchange */
                        1, 2, 3, 2, 4,   6, 1, 0, 1, /* singular */
                        0, 5, 6, 0, 7,   8, 0, 9, 1, /* nothing in the first column */
                        1, 2, 3, 4, NAN, 6, 7, 8, 10};
    const double y[] = {1, -24, 0, 0, NAN};
    check(CLG_FLOAT32, 11, 5, 3, x, y);
    double *large = run_node_zeros(25 * 5), of_large[5];
    for (int m = 0; m < 5; m++) {
        /* Embeds the matrix in a corner of 5 x 5, for kernels with work-groups. */
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < 3; j++) large[m * 25 + i * 5 + j] = x[m * 9 + i * 3 + j];
        large[m * 25 + 19] = large[m * 25 + 23] = 1;
        of_large[m] = -y[m];
    }
    check(CLG_FLOAT32, 11, 5, 5, large, of_large);
}

/* Partial products of the pivots overflow float32; the product of all of them does not. */
TEST(det__no_overflow_between)
{
    double *x = run_node_zeros(2 * 36), y[2];
    for (int i = 0; i < 6; i++) {
        x[i * 7] = i < 3 ? 0x1p100 : 0x1p-100;
        x[36 + i * 7] = i < 3 ? 0x1p-100 : 0x1p100;
    }
    y[0] = y[1] = 1;
    check(CLG_FLOAT32, 11, 2, 6, x, y);
    for (int i = 0; i < 4; i++) x[i * 5] = 0x1p100;
    for (int i = 0; i < 16; i++)
        if (i % 5) x[i] = 0;
    y[0] = INFINITY;
    check(CLG_FLOAT32, 11, 1, 4, x, y);
}

TEST(det__shapes)
{
    run_node r;
    const double x[] = {1, 2, 3, 4, 5, 6, 7, 9}, minus_two = -2, ones[] = {1, 1, 1};
    run_node_start(&r, NULL, "Det", 11);
    run_node_input(&r, CLG_FLOAT32, 2, (int64_t[]){2, 2}, x);
    run_node_expect(&r, CLG_FLOAT32, 0, NULL, &minus_two);
    run_node_check(&r, 1e-6);
    run_node_start(&r, NULL, "Det", 11);
    run_node_input(&r, CLG_FLOAT32, 4, (int64_t[]){2, 1, 2, 2}, x);
    run_node_expect(&r, CLG_FLOAT32, 2, (int64_t[]){2, 1}, (double[]){-2, 3});
    run_node_check(&r, 1e-6);
    check(CLG_FLOAT32, 11, 0, 3, x, x);
    check(CLG_FLOAT32, 11, 3, 0, x, ones); /* an empty product */
    for (int rank = 1; rank < 3; rank++) {
        run_node_start(&r, NULL, "Det", 11);
        run_node_input(&r, CLG_FLOAT32, rank, (int64_t[]){2, 3}, x);
        run_node_expect(&r, CLG_FLOAT32, 0, NULL, x);
        run_node_refused(&r, CLG_ERROR_SHAPE, rank == 1 ? "must hold matrices" : "2 x 3");
    }
}

TEST_GROUP(run_node_open, run_node_close)
