/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests ArgMax, ArgMin, CumSum and CumProd. Values repeat, so that ArgMax and ArgMin have many
 * ties. Results must be exact.
 */
#include "support/cases/run_node.h"

#include <math.h>
#include <string.h>

static int64_t product(int from, int to, const int64_t *dims)
{
    int64_t n = 1;
    for (int i = from; i < to; i++) n *= dims[i];
    return n;
}

/* Returns the index of the best element, by counting the better ones. NaN is best, as in NumPy. */
static int64_t best_place(const double *x, int64_t stride, int64_t n, bool max, bool last)
{
    for (int64_t step = 0; step < n; step++) {
        const int64_t i = last ? n - 1 - step : step;
        bool beaten = false;
        for (int64_t k = 0; k < n; k++) {
            const double a = x[i * stride], b = x[k * stride];
            beaten = beaten || (isnan(b) && !isnan(a)) ||
                     (max ? b > a && !isnan(a) : b < a && !isnan(a));
        }
        if (!beaten) return i;
    }
    return -1;
}

static void check_arg(const char *op, clg_dtype dtype, int rank, const int64_t *dims, int axis,
                      bool last, bool keep, const double *given)
{
    run_node r;
    const int64_t n = dims[axis], outer = product(0, axis, dims),
                  inner = product(axis + 1, rank, dims);
    int64_t out[CLG_MAX_RANK];
    int out_rank = 0;
    double *x = run_node_random(outer * n * inner), *y = run_node_zeros(outer * inner);
    for (int64_t i = 0; i < outer * n * inner; i++) {
        x[i] = given ? given[i] : floor(x[i] * 20);
        if (!given && dtype == CLG_UINT8) x[i] += 20;
    }
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < inner; i++)
            y[o * inner + i] = (double)best_place(x + o * n * inner + i, inner, n,
                                                  strcmp(op, "ArgMax") == 0, last);
    for (int i = 0; i < rank; i++)
        if (i != axis || keep) out[out_rank++] = i == axis ? 1 : dims[i];
    run_node_start(&r, NULL, op, 13);
    run_node_int(&r, "axis", axis - rank);
    run_node_int(&r, "keepdims", keep);
    run_node_int(&r, "select_last_index", last);
    run_node_input(&r, dtype, rank, dims, x);
    run_node_expect(&r, CLG_INT64, out_rank, out, y);
    run_node_check(&r, 0);
}

TEST(arg__shapes)
{
    for (int last = 0; last < 2; last++) {
        check_arg("ArgMax", CLG_FLOAT32, DIMS(3, 7), 1, last, true, NULL);
        check_arg("ArgMin", CLG_FLOAT32, DIMS(3, 1000), 1, last, false, NULL); /* work-groups */
        check_arg("ArgMax", CLG_FLOAT32, DIMS(2, 21, 37), 1, last, false, NULL);
        check_arg("ArgMin", CLG_FLOAT32, DIMS(19, 5, 3), 0, last, true, NULL);
    }
    check_arg("ArgMax", CLG_FLOAT32, DIMS(1), 0, false, false, NULL);
    check_arg("ArgMax", CLG_FLOAT32, DIMS(0, 3), 1, false, true, NULL);
}

TEST(arg__dtypes)
{
    check_arg("ArgMax", CLG_FLOAT16, DIMS(4, 70), 1, false, true, NULL);
    check_arg("ArgMin", CLG_BFLOAT16, DIMS(4, 7), 0, false, true, NULL);
    check_arg("ArgMax", CLG_FLOAT64, DIMS(4, 7), 1, false, true, NULL);
    check_arg("ArgMax", CLG_INT8, DIMS(4, 70), 1, true, true, NULL);
    check_arg("ArgMin", CLG_UINT8, DIMS(4, 70), 0, false, true, NULL);
    check_arg("ArgMax", CLG_INT64, DIMS(4, 9), 1, false, true, NULL);
}

TEST(arg__special_numbers)
{
    const double x[] = {1, INFINITY, -INFINITY, INFINITY, 0, -0.0, 0, -0.0, 3, NAN, 7, NAN};
    check_arg("ArgMax", CLG_FLOAT32, DIMS(3, 4), 1, false, true, x);
    check_arg("ArgMax", CLG_FLOAT32, DIMS(3, 4), 1, true, true, x);
    check_arg("ArgMin", CLG_FLOAT32, DIMS(3, 4), 1, false, true, x);
    check_arg("ArgMin", CLG_FLOAT32, DIMS(3, 4), 0, true, true, x);
}

TEST(arg__refusals)
{
    run_node r;
    const double none[] = {0};
    run_node_start(&r, NULL, "ArgMax", 13);
    run_node_input(&r, CLG_FLOAT32, 2, (int64_t[]){0, 3}, none);
    run_node_expect(&r, CLG_INT64, 2, (int64_t[]){1, 3}, none);
    run_node_refused(&r, CLG_ERROR_SHAPE, "empty");
}

/* Checks cumulative sums of integers, which are exact in every dtype. */
static void check_sums(clg_dtype dtype, int rank, const int64_t *dims, int axis, bool exclusive,
                       bool reverse)
{
    run_node r;
    const int64_t n = dims[axis], outer = product(0, axis, dims),
                  inner = product(axis + 1, rank, dims);
    const double axis_number = axis - rank;
    double *x = run_node_random(outer * n * inner), *y = run_node_zeros(outer * n * inner);
    for (int64_t i = 0; i < outer * n * inner; i++) x[i] = floor(fabs(x[i]) * 8);
    for (int64_t at = 0; at < outer * n * inner; at++) {
        const int64_t k = at / inner % n, start = at - k * inner;
        for (int64_t j = 0; j < n; j++) {
            const bool counts = (reverse ? j >= k : j <= k) && !(exclusive && j == k);
            y[at] += counts ? x[start + j * inner] : 0;
        }
    }
    run_node_start(&r, NULL, "CumSum", 14);
    run_node_int(&r, "exclusive", exclusive);
    run_node_int(&r, "reverse", reverse);
    run_node_input(&r, dtype, rank, dims, x);
    run_node_constant(&r, CLG_INT32, 0, NULL, &axis_number);
    run_node_expect(&r, dtype, rank, dims, y);
    run_node_check(&r, 0);
}

TEST(arg__sums)
{
    check_sums(CLG_FLOAT32, DIMS(7), 0, false, false);
    check_sums(CLG_FLOAT32, DIMS(3, 50), 1, true, false);
    check_sums(CLG_FLOAT32, DIMS(3, 50, 37), 1, false, true);
    check_sums(CLG_FLOAT32, DIMS(3, 50, 3), 0, true, true);
    check_sums(CLG_INT64, DIMS(3, 5), 1, false, false);
    check_sums(CLG_FLOAT16, DIMS(2, 20), 1, false, false);
}

/* Checks cumulative products of powers of two, which are exact in range; the reference adds
 * exponents. */
static void check_products(clg_dtype dtype, int rank, const int64_t *dims, int axis, bool exclusive,
                           bool reverse)
{
    run_node r;
    const bool whole = dtype == CLG_INT32 || dtype == CLG_INT64 || dtype == CLG_UINT32;
    const int64_t n = dims[axis], outer = product(0, axis, dims),
                  inner = product(axis + 1, rank, dims);
    double *x = run_node_random(outer * n * inner), *y = run_node_zeros(outer * n * inner);
    double *powers = run_node_zeros(outer * n * inner);
    for (int64_t i = 0; i < outer * n * inner; i++) {
        powers[i] = whole ? x[i] > 0.5 : floor((x[i] + 1) * 1.49) - 1;
        x[i] = (x[i] < 0 ? -1 : 1) * ldexp(1, (int)powers[i]);
        if (dtype == CLG_UINT32) x[i] = fabs(x[i]);
    }
    for (int64_t at = 0; at < outer * n * inner; at++) {
        const int64_t k = at / inner % n, start = at - k * inner;
        int power = 0, signs = 0;
        for (int64_t j = 0; j < n; j++) {
            if (!(reverse ? j >= k : j <= k) || (exclusive && j == k)) continue;
            power += (int)powers[start + j * inner];
            signs += x[start + j * inner] < 0;
        }
        y[at] = (signs % 2 ? -1 : 1) * ldexp(1, power);
    }
    run_node_start(&r, NULL, "CumProd", 26);
    run_node_int(&r, "exclusive", exclusive);
    run_node_int(&r, "reverse", reverse);
    run_node_input(&r, dtype, rank, dims, x);
    run_node_constant(&r, CLG_INT64, 0, NULL, (double[]){axis});
    run_node_expect(&r, dtype, rank, dims, y);
    run_node_check(&r, 0);
}

TEST(arg__products)
{
    check_products(CLG_FLOAT32, DIMS(7), 0, false, false);
    check_products(CLG_FLOAT32, DIMS(3, 50), 1, true, false);
    check_products(CLG_FLOAT32, DIMS(3, 9, 37), 1, false, true);
    check_products(CLG_FLOAT32, DIMS(3, 5, 3), 0, true, true);
    check_products(CLG_FLOAT32, DIMS(3, 0, 2), 1, true, true);
    check_products(CLG_FLOAT64, DIMS(3, 50), 1, false, false);
    check_products(CLG_FLOAT16, DIMS(2, 9), 1, false, false);
    check_products(CLG_BFLOAT16, DIMS(2, 9), 1, true, false);
    check_products(CLG_INT64, DIMS(3, 15), 1, false, false);
    check_products(CLG_INT32, DIMS(3, 15), 1, false, true);
    check_products(CLG_UINT32, DIMS(3, 15), 1, true, true);
}

/* 65537 * 65537 is 131073 modulo 2^32. */
TEST(arg__products_wrap)
{
    run_node r;
    run_node_start(&r, NULL, "CumProd", 26);
    run_node_input(&r, CLG_INT32, 1, (int64_t[]){3}, (double[]){65537, 65537, -1});
    run_node_constant(&r, CLG_INT64, 0, NULL, (double[]){0});
    run_node_expect(&r, CLG_INT32, 1, (int64_t[]){3}, (double[]){65537, 131073, -131073});
    run_node_check(&r, 0);
}

TEST_GROUP(run_node_open, run_node_close)
