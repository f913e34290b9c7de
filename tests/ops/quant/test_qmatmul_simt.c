/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests MatMulInteger and QLinearMatMul by the tiled implementation for GPUs and by the plain one,
 * with signed and unsigned operands. Sizes leave remainders of tiles, of words of four bytes, and
 * of the tiles' depth (16 words).
 */
/* ctest: timeout 1800 */
#include "support/cases/quantized_case.h"

#define TILED .impl = "qgemm_simt", .impl_kernels = CLG_KERNELS_SIMT

/* Checks MatMulInteger; and QLinearMatMul, where B is not a constant and there are zero points. */
static void both(qgemm_case p, quantized_how how)
{
    qgemm_check_integer(p, how);
    if (!p.shared_b && p.zeros) qgemm_check_linear(p, CLG_UINT8, CLG_FLOAT32, 12, how);
}

static const quantized_how tiled = {TILED};

TEST(qmatmul_simt__signs)
{
    for (int signs = 0; signs < 4; signs++) {
        const qgemm_case p = {1, 70, 69, 67, signs & 1, signs & 2, 2, false};
        both(p, tiled);
        both(p, (quantized_how){.range = ENDS, TILED});
    }
    both((qgemm_case){1, 70, 69, 67, false, false, 0, false}, tiled);
}

TEST(qmatmul_simt__sizes)
{
    both((qgemm_case){1, 1, 1, 1, false, true, 1, false}, tiled);
    both((qgemm_case){1, 1, 200, 130, false, true, 1, false}, tiled); /* few rows */
    both((qgemm_case){1, 8, 65, 64, false, true, 2, false}, tiled);
    both((qgemm_case){1, 9, 64, 68, false, true, 2, false}, tiled); /* rows aligned to words */
    both((qgemm_case){1, 64, 64, 64, false, true, 1, false}, tiled);
    both((qgemm_case){1, 65, 63, 66, false, true, 1, false}, tiled);
}

TEST(qmatmul_simt__batches)
{
    both((qgemm_case){3, 5, 17, 7, false, true, 2, false}, tiled);
    both((qgemm_case){2, 13, 37, 41, false, true, 1, true}, tiled);
    both((qgemm_case){0, 3, 5, 2, true, false, 1, false}, tiled);
}

/* Checks A [2,1,m,k] by B [3,k,n], and by a constant B. */
static void check_broadcast(bool constant)
{
    enum { M = 11, K = 18, N = 13 };
    const double *a = quantized_bytes(2 * M * K, false), *b = quantized_bytes(3 * K * N, true);
    double *y = run_node_zeros(6 * M * N);
    const qgemm_case p = {.m = M, .n = N, .k = K};
    for (int64_t i = 0; i < 6 * M * N; i++) {
        const int64_t z = i / N / M;
        y[i] = (double)qgemm_sum(&p, a + z / 3 * M * K, b + z % 3 * K * N, NULL, NULL, 0, i / N % M,
                                 i % N);
    }
    run_node r;
    run_node_start(&r, NULL, "MatMulInteger", 10);
    r.impl = "qgemm_simt";
    r.impl_kernels = CLG_KERNELS_SIMT;
    run_node_input(&r, CLG_UINT8, DIMS(2, 1, M, K), a);
    (constant ? run_node_constant : run_node_input)(&r, CLG_INT8, DIMS(3, K, N), b);
    run_node_expect(&r, CLG_INT32, DIMS(2, 3, M, N), y);
    run_node_check(&r, 0);
}

TEST(qmatmul_simt__broadcast)
{
    check_broadcast(false);
    check_broadcast(true);
}

TEST(qmatmul_simt__large) { both((qgemm_case){1, 1027, 1029, 9, false, true, 2, false}, tiled); }

TEST(qmatmul_simt__plain)
{
    both((qgemm_case){1, 70, 69, 67, false, true, 2, false},
         (quantized_how){.impl = "qmatmul", .impl_kernels = CLG_KERNELS_SIMT});
}

TEST_GROUP(run_node_open, run_node_close)
