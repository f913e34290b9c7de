/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests GEMMs whose sums are divided into parts (gemm_simt_split): few results with long sums.
 */
#include "support/cases/gemm_cases.h"

/* One work-group of results, so that every device divides them. */
TEST(split__sizes)
{
    static const int64_t sizes[][3] = {
        {64, 64, 1024}, {13, 61, 1030}, {3, 29, 2052}, {1, 64, 1028}, {9, 1, 518}};
    run_node_by(CLG_KERNELS_SIMT, "gemm_simt_split");
    for (size_t i = 0; i < COUNT(sizes); i++) {
        gemm_check_matmul(CLG_FLOAT32, sizes[i][0], sizes[i][1], sizes[i][2], true, false);
        gemm_check_matmul(CLG_FLOAT32, sizes[i][0], sizes[i][1], sizes[i][2], false, false);
    }
    run_node_by(CLG_KERNELS_AUTO, NULL);
}

TEST(split__all_attributes)
{
    run_node_by(CLG_KERNELS_SIMT, "gemm_simt_split");
    for (int i = 0; i < 8; i++) {
        const gemm_case g = {.m = 13,
                             .n = 37,
                             .k = 516,
                             .trans_a = i & 1,
                             .trans_b = (i & 2) != 0,
                             .alpha = 0.5,
                             .beta = 0.25,
                             .c_rank = i % 3,
                             .c_dims = {i % 3 == 1 ? 37 : 13, 37},
                             .constant = (i & 4) != 0};
        gemm_check(CLG_FLOAT32, &g, i > 3 && g.c_rank > 0);
    }
    run_node_by(CLG_KERNELS_AUTO, NULL);
}

/* A prime number of terms has no equal parts; float16 is not divided. */
TEST(split__what_is_not_divided)
{
    run_node_by(CLG_KERNELS_SIMT, "gemm_simt");
    gemm_check_matmul(CLG_FLOAT32, 5, 9, 1031, false, false);
    gemm_check_matmul(CLG_FLOAT16, 5, 9, 1024, false, false);
    gemm_check_matmul(CLG_FLOAT32, 5, 9, 64, false, false);
    run_node_by(CLG_KERNELS_AUTO, NULL);
}

/* Batches in one dimension and in two: divided where the device has enough compute units. */
static void check_batch(int rank, const int64_t *batch)
{
    enum { M = 5, N = 9, K = 1024 };
    int64_t n = 1, a_dims[4], b_dims[4], y_dims[4];
    for (int i = 0; i < rank; i++) {
        a_dims[i] = b_dims[i] = y_dims[i] = batch[i];
        n *= batch[i];
    }
    a_dims[rank] = y_dims[rank] = M;
    a_dims[rank + 1] = b_dims[rank] = K;
    b_dims[rank + 1] = y_dims[rank + 1] = N;
    const double *a = run_node_random(n * M * K), *b = run_node_random(n * K * N);
    double *y = run_node_zeros(n * M * N);
    for (int64_t i = 0; i < n; i++)
        gemm_reference(y + i * M * N, M, N, K, a + i * M * K, K, 1, b + i * K * N, N, 1);
    run_node r;
    run_node_start(&r, NULL, "MatMul", 13);
    run_node_input(&r, CLG_FLOAT32, rank + 2, a_dims, a);
    run_node_input(&r, CLG_FLOAT32, rank + 2, b_dims, b);
    run_node_expect(&r, CLG_FLOAT32, rank + 2, y_dims, y);
    run_node_check_scaled(&r, GEMM_FLOAT_TOLERANCE, gemm_scale(K));
}

TEST(split__batches)
{
    check_batch(1, (int64_t[]){2});
    check_batch(2, (int64_t[]){2, 1});
    check_batch(2, (int64_t[]){1, 2});
    check_batch(2, (int64_t[]){2, 2});
}

TEST_GROUP(run_node_open, run_node_close)
