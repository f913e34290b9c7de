/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares NonZero and Compress with a loop over the elements. Both only select, so results must be
 * exact.
 */
/* ctest: label quick timeout 900 */
#include "support/cases/run_node.h"

#include <math.h>

/* Returns n values of which a fraction of about `share` is not 0; for bool they are 0 and 1. */
static double *sparse(int64_t n, double share, bool is_bool)
{
    double *x = run_node_random(n);
    for (int64_t i = 0; i < n; i++) x[i] = fabs(x[i]) >= share ? 0 : is_bool ? 1 : i % 100 + 1;
    return x;
}

/* ---- NonZero --------------------------------------------------------------------------------- */

static void nonzero_of(clg_dtype dtype, int rank, const int64_t *dims, const double *x,
                       bool constant)
{
    int64_t n = 1, count = 0, found = 0;
    const int out_rank = rank ? rank : 1;
    run_node r;
    for (int d = 0; d < rank; d++) n *= dims[d];
    for (int64_t i = 0; i < n; i++) count += x[i] != 0;
    double *y = run_node_zeros(out_rank * count);
    for (int64_t i = 0; i < n; i++) {
        int64_t below = 1;
        if (x[i] == 0) continue;
        for (int d = rank - 1; d >= 0; d--) {
            y[d * count + found] = (double)(i / below % dims[d]);
            below *= dims[d];
        }
        found++;
    }
    run_node_start(&r, NULL, "NonZero", 13);
    if (constant)
        run_node_constant(&r, dtype, rank, dims, x);
    else
        run_node_input(&r, dtype, rank, dims, x);
    run_node_expect(&r, CLG_INT64, 2, (int64_t[]){out_rank, count}, y);
    run_node_check(&r, 0);
}

static void nonzero(clg_dtype dtype, int rank, const int64_t *dims, double share)
{
    int64_t n = 1;
    for (int d = 0; d < rank; d++) n *= dims[d];
    nonzero_of(dtype, rank, dims, sparse(n, share, dtype == CLG_BOOL), false);
}

TEST(nonzero__sizes)
{
    nonzero(CLG_FLOAT32, DIMS(1), 2);
    nonzero(CLG_FLOAT32, DIMS(1), 0);
    nonzero(CLG_FLOAT32, 0, NULL, 2);
    nonzero(CLG_FLOAT32, DIMS(0), 2);
    nonzero(CLG_FLOAT32, DIMS(3, 0, 2), 2);
    nonzero(CLG_FLOAT32, DIMS(7, 13), 0.5);
    nonzero(CLG_FLOAT32, DIMS(64, 64), 0.1);
    nonzero(CLG_FLOAT32, DIMS(4097), 0.9);
    nonzero(CLG_FLOAT32, DIMS(255), 2);
    nonzero(CLG_FLOAT32, DIMS(3, 5, 31, 29), 0.3);
    nonzero(CLG_FLOAT32, DIMS(2, 1, 3, 2, 1, 2, 3, 2), 0.5);
}

TEST(nonzero__dtypes)
{
    static const clg_dtype dtypes[] = {CLG_BOOL,  CLG_FLOAT16, CLG_UINT64, CLG_INT8,
                                       CLG_UINT8, CLG_INT16,   CLG_INT32,  CLG_INT64};
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        nonzero(dtypes[i], DIMS(50, 93), 0.4);
}

TEST(nonzero__special_numbers)
{
    const double x[] = {0.0, -0.0, NAN, INFINITY, -INFINITY, 0x1p-149, 0, -1};
    nonzero_of(CLG_FLOAT32, DIMS(2, 4), x, false);
}

/* Computed on the host if small; by the init plan otherwise. */
TEST(nonzero__of_constants)
{
    nonzero_of(CLG_INT64, DIMS(3, 4), sparse(12, 0.5, false), true);
    nonzero_of(CLG_INT64, DIMS(3, 4), sparse(12, 0, false), true);
    nonzero_of(CLG_FLOAT32, DIMS(4, 8, 8, 16), sparse(4096, 2, false), true);
    nonzero_of(CLG_FLOAT32, DIMS(90, 70), sparse(6300, 0.5, false), true);
}

/* ---- Compress -------------------------------------------------------------------------------- */

/* Checks Compress. axis INT64_MIN: no axis attribute. */
static void compress(clg_dtype dtype, int64_t outer, int64_t n, int64_t inner, int64_t axis,
                     int64_t n_condition, double share)
{
    const bool flat = axis == INT64_MIN;
    const int64_t all = outer * n * inner;
    double *x = run_node_random(all), *condition = sparse(n_condition, share, true);
    int64_t count = 0, at = 0;
    run_node r;
    for (int64_t i = 0; dtype != CLG_FLOAT32 && i < all; i++) x[i] = floor(x[i] * 50) + 50;
    for (int64_t i = 0; i < n_condition; i++) count += condition[i] != 0;
    double *y = run_node_zeros(flat ? count : outer * count * inner);
    for (int64_t i = 0; i < all; i++) {
        const int64_t row = flat ? i : i / inner % n;
        if (row < n_condition && condition[row] != 0) y[at++] = x[i];
    }
    run_node_start(&r, NULL, "Compress", 11);
    if (!flat) run_node_int(&r, "axis", axis);
    run_node_input(&r, dtype, DIMS(outer, n, inner), x);
    run_node_input(&r, CLG_BOOL, DIMS(n_condition), condition);
    if (flat)
        run_node_expect(&r, dtype, DIMS(count), y);
    else
        run_node_expect(&r, dtype, DIMS(outer, count, inner), y);
    run_node_check(&r, 0);
}

TEST(compress__sizes)
{
    compress(CLG_FLOAT32, 2, 7, 5, 1, 7, 0.5);
    compress(CLG_FLOAT32, 2, 7, 5, -2, 4, 0.5); /* the condition may be shorter than the axis */
    compress(CLG_FLOAT32, 2, 7, 5, 1, 7, 0);
    compress(CLG_FLOAT32, 2, 7, 5, 1, 7, 2);
    compress(CLG_FLOAT32, 2, 7, 5, 1, 0, 2);
    compress(CLG_FLOAT32, 3, 300, 33, 1, 300, 0.3);
    compress(CLG_FLOAT32, 1, 9000, 1, 1, 9000, 0.7);
    compress(CLG_FLOAT32, 3, 4, 5, INT64_MIN, 60, 0.5);
    compress(CLG_FLOAT32, 3, 4, 5, INT64_MIN, 17, 0.5);
}

TEST(compress__dtypes)
{
    static const clg_dtype dtypes[] = {CLG_UINT8, CLG_FLOAT16, CLG_INT32, CLG_INT64};
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        compress(dtypes[i], 2, 60, 3, 1, 60, 0.5);
}

TEST(compress__refuses_a_condition_that_is_too_long)
{
    const double x[] = {1, 2, 3}, condition[] = {1, 1, 1, 1};
    run_node r;
    run_node_start(&r, NULL, "Compress", 11);
    run_node_input(&r, CLG_FLOAT32, DIMS(3), x);
    run_node_input(&r, CLG_BOOL, DIMS(4), condition);
    run_node_expect(&r, CLG_FLOAT32, DIMS(3), x);
    run_node_refused(&r, CLG_ERROR_SHAPE, "4 elements");
}

/* The following nodes are planned for the number of elements that was found. */
TEST(compress__goes_on)
{
    const double x[] = {1, 2, 3, 4}, condition[] = {1, 0, 1, 1}, y[] = {-1, -3, -4};
    run_node r;
    run_node_start(&r, NULL, "Compress", 11);
    run_node_input(&r, CLG_FLOAT32, DIMS(4), x);
    run_node_input(&r, CLG_BOOL, DIMS(4), condition);
    run_node_then(&r, "Neg");
    run_node_expect(&r, CLG_FLOAT32, DIMS(3), y);
    run_node_check(&r, 0);
}

TEST_GROUP(run_node_open, run_node_close)
