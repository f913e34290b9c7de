/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests Gemm and MatMul in all dtypes on every device: sizes, transpositions, broadcast batches and
 * C, constants, and fused epilogues. gemm_cases.h describes the reference and tolerances.
 */
/* ctest: timeout 900 */
#include "support/cases/gemm_cases.h"

#include <math.h>

/* ---- MatMul ---------------------------------------------------------------------------------- */

TEST(gemm__matmul_sizes)
{
    /* Sizes around those of tiles (SIMD class: 12 rows and 32 columns; SIMT class: 64) and of the
     * blocks of k (256); primes; 1; 0. */
    static const int64_t sizes[][3] = {
        {1, 1, 1},
        {1, 17, 31},
        {2, 1, 512},
        {11, 31, 255},
        {12, 32, 256},
        {12, 32, 257},
        {11, 31, 511},
        {12, 32, 513},
        {13, 33, 64},
        {7, 65, 129},
        {64, 64, 16},
        {65, 63, 17},
        {0, 5, 3},
        {5, 0, 3},
        {5, 3, 0},
        /* Several panels per work-group, and blocks of k in threes with one left over. */
        {128, 16, 8},
        {37, 101, 1031},
        {13, 777, 523},
        {19, 40, 1024}, /* rows of A share a set of the cache */
        {3, 450, 300},  /* one work-group computes all panels */
    };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        gemm_check_matmul(CLG_FLOAT32, sizes[i][0], sizes[i][1], sizes[i][2], false, false);
        gemm_check_matmul(CLG_FLOAT32, sizes[i][0], sizes[i][1], sizes[i][2], true, false);
    }
    gemm_check_matmul(CLG_FLOAT32, 29, 47, 530, false, true);
}

TEST(gemm__matmul_dtypes)
{
    gemm_check_matmul(CLG_FLOAT16, 13, 33, 70, false, false);
    gemm_check_matmul(CLG_FLOAT16, 13, 33, 70, true, false);
    gemm_check_matmul(CLG_FLOAT16, 1, 100, 70, true, false); /* one row: every vector width */
    gemm_check_matmul(CLG_FLOAT16, 29, 47, 530, true, false);
    gemm_check_matmul(CLG_FLOAT16, 29, 47, 530, false, false);
    gemm_check_matmul(CLG_FLOAT16, 29, 47, 66, false, true);
    gemm_check_matmul(CLG_FLOAT16, 3, 5, 0, false, false);
    gemm_check_matmul(CLG_FLOAT64, 13, 33, 70, false, false);
    gemm_check_matmul(CLG_BFLOAT16, 13, 33, 70, false, false);
    gemm_check_matmul(CLG_BFLOAT16, 1, 100, 70, true, false); /* one row: every vector width */
    gemm_check_matmul(CLG_BFLOAT16, 29, 47, 530, true, false);
    gemm_check_matmul(CLG_BFLOAT16, 29, 47, 66, false, true);
    gemm_check_matmul(CLG_BFLOAT16, 3, 5, 0, false, false);
}

TEST(gemm__matmul_integers)
{
    static const clg_dtype dtypes[] = {CLG_INT32, CLG_INT64, CLG_UINT32, CLG_UINT64};
    enum { M = 3, N = 5, K = 7 };
    double a[M * K], b[K * N], y[M * N];
    for (size_t d = 0; d < 4; d++) {
        const bool negative = d < 2;
        for (int i = 0; i < M * K; i++) a[i] = (i * 37 % 101) - (negative ? 50 : 0);
        for (int i = 0; i < K * N; i++) b[i] = (i * 53 % 97) - (negative ? 40 : 0);
        gemm_reference(y, M, N, K, a, K, 1, b, N, 1);
        run_node r;
        run_node_start(&r, NULL, "MatMul", 13);
        run_node_input(&r, dtypes[d], 2, (int64_t[]){M, K}, a);
        run_node_input(&r, dtypes[d], 2, (int64_t[]){K, N}, b);
        run_node_expect(&r, dtypes[d], 2, (int64_t[]){M, N}, y);
        run_node_check(&r, 0);
    }
}

TEST(gemm__matmul_batches)
{
    for (int constant = 0; constant < 2; constant++) {
        gemm_check_batches(CLG_FLOAT32, DIMS(3), DIMS(3), DIMS(3), constant);
        gemm_check_batches(CLG_FLOAT32, DIMS(3), 0, NULL, DIMS(3), constant);
        gemm_check_batches(CLG_FLOAT32, 0, NULL, DIMS(3), DIMS(3), constant);
        gemm_check_batches(CLG_FLOAT32, DIMS(2, 3), DIMS(1, 3), DIMS(2, 3), constant);
        gemm_check_batches(CLG_FLOAT32, DIMS(2, 1), DIMS(1, 3), DIMS(2, 3), constant);
        gemm_check_batches(CLG_FLOAT32, DIMS(2, 3), DIMS(2, 1), DIMS(2, 3), constant);
        /* Batch dimensions that alternately broadcast need more dimensions than the kernels
         * support. */
        gemm_check_batches(CLG_FLOAT32, DIMS(2, 1, 3, 1), DIMS(1, 2, 1, 4), DIMS(2, 2, 3, 4),
                           constant);
        gemm_check_batches(CLG_FLOAT32, DIMS(0), DIMS(1), DIMS(0), constant);
    }
}

TEST(gemm__matmul_vectors)
{
    enum { M = 5, N = 7, K = 11, B = 3 };
    const double *a = run_node_random(B * M * K), *b = run_node_random(B * K * N);
    double *y = run_node_zeros(B * M * N);
    run_node r;

    gemm_reference(y, 1, 1, K, a, K, 1, b, 1, 1);
    run_node_start(&r, NULL, "MatMul", 13);
    run_node_input(&r, CLG_FLOAT32, 1, (int64_t[]){K}, a);
    run_node_input(&r, CLG_FLOAT32, 1, (int64_t[]){K}, b);
    run_node_expect(&r, CLG_FLOAT32, 0, NULL, y);
    run_node_check_scaled(&r, GEMM_FLOAT_TOLERANCE, gemm_scale(K));

    gemm_reference(y, 1, N, K, a, K, 1, b, N, 1);
    run_node_start(&r, NULL, "MatMul", 13);
    run_node_input(&r, CLG_FLOAT32, 1, (int64_t[]){K}, a);
    run_node_constant(&r, CLG_FLOAT32, 2, (int64_t[]){K, N}, b);
    run_node_expect(&r, CLG_FLOAT32, 1, (int64_t[]){N}, y);
    run_node_check_scaled(&r, GEMM_FLOAT_TOLERANCE, gemm_scale(K));

    for (int i = 0; i < B; i++) gemm_reference(y + i * M, M, 1, K, a + i * M * K, K, 1, b, 1, 1);
    run_node_start(&r, NULL, "MatMul", 13);
    run_node_input(&r, CLG_FLOAT32, 3, (int64_t[]){B, M, K}, a);
    run_node_input(&r, CLG_FLOAT32, 1, (int64_t[]){K}, b);
    run_node_expect(&r, CLG_FLOAT32, 2, (int64_t[]){B, M}, y);
    run_node_check_scaled(&r, GEMM_FLOAT_TOLERANCE, gemm_scale(K));

    for (int i = 0; i < B; i++) gemm_reference(y + i * N, 1, N, K, a, K, 1, b + i * K * N, N, 1);
    run_node_start(&r, NULL, "MatMul", 13);
    run_node_input(&r, CLG_FLOAT32, 1, (int64_t[]){K}, a);
    run_node_input(&r, CLG_FLOAT32, 3, (int64_t[]){B, K, N}, b);
    run_node_expect(&r, CLG_FLOAT32, 2, (int64_t[]){B, N}, y);
    run_node_check_scaled(&r, GEMM_FLOAT_TOLERANCE, gemm_scale(K));
}

/* ---- Gemm ------------------------------------------------------------------------------------ */

TEST(gemm__all_attributes)
{
    for (int i = 0; i < 8; i++) {
        const gemm_case g = {.m = 13,
                             .n = 37,
                             .k = 29,
                             .trans_a = i & 1,
                             .trans_b = (i & 2) != 0,
                             .alpha = 0.5,
                             .beta = 0.25,
                             .c_rank = 2,
                             .c_dims = {13, 37},
                             .constant = (i & 4) != 0};
        gemm_check(CLG_FLOAT32, &g, false);
    }
}

/* A constant of more than 16 MiB is packed in pieces: split along either dimension, as the left and
 * as the right matrix. */
TEST(gemm__large_constants)
{
    gemm_check_matmul(CLG_FLOAT32, 2, 2603, 1701, true, false);
    gemm_check_matmul(CLG_FLOAT32, 2603, 2, 1701, false, true);
    const gemm_case right = {
        2, 2603, 1701, .trans_b = true, .alpha = 1, .c_rank = -1, .constant = true};
    gemm_check(CLG_FLOAT32, &right, false);
    run_node r;
    enum { M = 2603, N = 2, K = 1701 };
    const double *a = gemm_numbers(CLG_FLOAT32, (int64_t)M * K),
                 *b = gemm_numbers(CLG_FLOAT32, K * N);
    double *y = run_node_zeros(M * N);
    gemm_reference(y, M, N, K, a, 1, M, b, N, 1);
    run_node_start(&r, NULL, "Gemm", 13);
    run_node_constant(&r, CLG_FLOAT32, 2, (int64_t[]){K, M}, a);
    run_node_input(&r, CLG_FLOAT32, 2, (int64_t[]){K, N}, b);
    run_node_expect(&r, CLG_FLOAT32, 2, (int64_t[]){M, N}, y);
    run_node_int(&r, "transA", 1);
    r.heavy = true;
    run_node_check_scaled(&r, GEMM_FLOAT_TOLERANCE, gemm_scale(K));
}

TEST(gemm__bias_shapes)
{
    static const gemm_case cases[] = {
        {.c_rank = -1},
        {.c_rank = 0},
        {.c_rank = 1, .c_dims = {1}},
        {.c_rank = 1, .c_dims = {37}},
        {.c_rank = 2, .c_dims = {1, 1}},
        {.c_rank = 2, .c_dims = {1, 37}},
        {.c_rank = 2, .c_dims = {13, 1}},
        {.c_rank = 2, .c_dims = {13, 37}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        gemm_case g = cases[i];
        g.m = 13;
        g.n = 37;
        g.k = 5;
        g.alpha = 1;
        g.beta = 1;
        gemm_check(CLG_FLOAT32, &g, false);
        g.beta = -2;
        gemm_check(CLG_FLOAT32, &g, false);
        g.k = 0;
        gemm_check(CLG_FLOAT32, &g, false);
    }
    const gemm_case empty = {.m = 5, .n = 33, .alpha = 1, .beta = 1, .c_rank = 1, .c_dims = {33}};
    gemm_check(CLG_FLOAT32, &empty, true);
    const gemm_case half = {
        .m = 5, .n = 33, .k = 20, .alpha = 1, .beta = 1, .c_rank = 1, .c_dims = {33}};
    gemm_check(CLG_FLOAT16, &half, false);
    gemm_check(CLG_BFLOAT16, &half, false);
    gemm_check(CLG_BFLOAT16, &half, true);
    const gemm_case transposed = {.m = 13,
                                  .n = 37,
                                  .k = 29,
                                  .trans_a = true,
                                  .trans_b = true,
                                  .alpha = 0.5,
                                  .beta = 0.25,
                                  .c_rank = 2,
                                  .c_dims = {13, 37},
                                  .constant = true};
    gemm_check(CLG_BFLOAT16, &transposed, true);
    gemm_check(CLG_FLOAT16, &transposed, true);
}

/* With beta 0, C is ignored, whatever its elements are. */
TEST(gemm__beta_zero)
{
    const double a[] = {1, 2, 3, 4}, b[] = {1, 0, 0, 1}, c[] = {NAN, INFINITY};
    run_node r;
    run_node_start(&r, NULL, "Gemm", 13);
    run_node_input(&r, CLG_FLOAT32, 2, (int64_t[]){2, 2}, a);
    run_node_input(&r, CLG_FLOAT32, 2, (int64_t[]){2, 2}, b);
    run_node_input(&r, CLG_FLOAT32, 1, (int64_t[]){2}, c);
    run_node_float(&r, "beta", 0);
    run_node_expect(&r, CLG_FLOAT32, 2, (int64_t[]){2, 2}, a);
    run_node_check(&r, GEMM_FLOAT_TOLERANCE);
}

TEST(gemm__integers_with_whole_factors)
{
    const double a[] = {1, -2, 3, 4}, b[] = {5, 6, -7, 8}, c[] = {10}, y[] = {58, 0, -6, 120};
    run_node r;
    run_node_start(&r, NULL, "Gemm", 13);
    run_node_input(&r, CLG_INT32, 2, (int64_t[]){2, 2}, a);
    run_node_input(&r, CLG_INT32, 2, (int64_t[]){2, 2}, b);
    run_node_input(&r, CLG_INT32, 0, NULL, c);
    run_node_float(&r, "alpha", 2);
    run_node_float(&r, "beta", 2);
    run_node_expect(&r, CLG_INT32, 2, (int64_t[]){2, 2}, y);
    run_node_check(&r, 0);
    run_node_start(&r, NULL, "Gemm", 13);
    run_node_input(&r, CLG_INT32, 2, (int64_t[]){2, 2}, a);
    run_node_input(&r, CLG_INT32, 2, (int64_t[]){2, 2}, b);
    run_node_float(&r, "alpha", 0.5);
    run_node_expect(&r, CLG_INT32, 2, (int64_t[]){2, 2}, y);
    run_node_refused(&r, CLG_ERROR_UNSUPPORTED_ATTRIBUTE, "alpha or beta is not whole");
}

/* Negative factors of unsigned numbers: results wrap. */
TEST(gemm__unsigned_with_negative_factors)
{
    const double a[] = {1, 2, 3, 4}, b[] = {5, 6, 7, 8}, c[] = {10};
    const double y[] = {4294967248, 4294967242, 4294967200, 4294967186}; /* 2^32 - 48, ... */
    run_node r;
    run_node_start(&r, NULL, "Gemm", 13);
    run_node_input(&r, CLG_UINT32, 2, (int64_t[]){2, 2}, a);
    run_node_input(&r, CLG_UINT32, 2, (int64_t[]){2, 2}, b);
    run_node_input(&r, CLG_UINT32, 0, NULL, c);
    run_node_float(&r, "alpha", -2);
    run_node_float(&r, "beta", -1);
    run_node_expect(&r, CLG_UINT32, 2, (int64_t[]){2, 2}, y);
    run_node_check(&r, 0);
}

/* Tiles for GPUs that only measurements choose. */
TEST(gemm__other_tiles)
{
    static const char *const impls[] = {"gemm_simt_quads", "gemm_simt_large"};
    for (size_t i = 0; i < COUNT(impls); i++) {
        run_node_by(CLG_KERNELS_SIMT, impls[i]);
        gemm_check_matmul(CLG_FLOAT32, 67, 71, 19, false, false);
        gemm_check_matmul(CLG_FLOAT16, 130, 69, 33, true, false);
        for (int trans = 0; trans < 4; trans++) {
            const gemm_case g = {.m = 131,
                                 .n = 66,
                                 .k = 37,
                                 .trans_a = trans & 1,
                                 .trans_b = trans > 1,
                                 .alpha = 0.5,
                                 .beta = 2,
                                 .c_rank = 2,
                                 .c_dims = {131, 66}};
            gemm_check(CLG_FLOAT32, &g, true);
        }
        run_node_by(CLG_KERNELS_AUTO, NULL);
    }
}

/* ---- epilogues ------------------------------------------------------------------------------- */

TEST(gemm__followers) { gemm_check_followers(CLG_FLOAT32); }

TEST(gemm__mask) { gemm_check_mask(CLG_FLOAT32); }

TEST(gemm__nan_and_infinity)
{
    const double a[] = {NAN, 1, INFINITY, 1, -INFINITY, 1, 1e30, 1}, b[] = {1e30, 1, 1, 1};
    const double y[] = {NAN, NAN, INFINITY, INFINITY, 0, 0, INFINITY, 1e30};
    run_node r;
    run_node_start(&r, NULL, "MatMul", 13);
    run_node_input(&r, CLG_FLOAT32, 2, (int64_t[]){4, 2}, a);
    run_node_constant(&r, CLG_FLOAT32, 2, (int64_t[]){2, 2}, b);
    run_node_then(&r, "Relu");
    run_node_expect(&r, CLG_FLOAT32, 2, (int64_t[]){4, 2}, y);
    run_node_check(&r, GEMM_FLOAT_TOLERANCE);
}

/* Checks Gelu after a product of a column of n values and a row of ones. */
static void check_gelu(int n, const double *values, double tolerance, double scale)
{
    enum { COLUMNS = 35 }; /* whole vectors, and a rest */
    double ones[COLUMNS], *y = run_node_zeros(n * COLUMNS);
    for (int j = 0; j < COLUMNS; j++) ones[j] = 1;
    for (int i = 0; i < n * COLUMNS; i++) {
        const double x = (float)values[i / COLUMNS];
        y[i] = isinf(x) ? x : x * erfc(-x / sqrt(2.0)) / 2;
    }
    run_node r;
    run_node_start(&r, NULL, "MatMul", 20);
    run_node_input(&r, CLG_FLOAT32, 2, (int64_t[]){n, 1}, values);
    run_node_constant(&r, CLG_FLOAT32, 2, (int64_t[]){1, COLUMNS}, ones);
    run_node_then(&r, "Gelu");
    run_node_expect(&r, CLG_FLOAT32, 2, (int64_t[]){n, COLUMNS}, y);
    run_node_check_scaled(&r, tolerance, scale);
}

TEST(gemm__gelu_far_from_0)
{
    const double values[] = {NAN,  INFINITY, 1e30, 100,  6.6,   6.49, 6.51, 5,
                             -4.5, -6.49,    -6.6, -100, -1000, 0,    1e-6, -1e-6};
    check_gelu(sizeof values / sizeof *values, values, GEMM_FLOAT_TOLERANCE, 1);
}

/* Tolerances are relative to the results. By erf in float32, 1 + erf(x / sqrt(2)) is a multiple of
 * 2^-24: at -1 of a 5 millionth of it, at -3 of a 45,000th. */
TEST(gemm__gelu_near_0)
{
    double values[101];
    for (int i = 0; i < 101; i++) values[i] = -1 + 0.0713 * i;
    check_gelu(101, values, 1.5e-6, 0);
    for (int i = 0; i < 21; i++) values[i] = -3 + 0.1 * i;
    check_gelu(21, values, 5e-5, 0);
}

TEST_GROUP(run_node_open, run_node_close)
