/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares MatMul and Gemm with sums in double, taken from the last term to the first, for the
 * tests of their kernels.
 *
 * Tolerance: float32 sums of k terms of size 1 differ from the double's by at most k * 2^-24 and,
 * with random signs, by far less: 2e-6 of the larger of the result and sqrt(k). float16 stores 11
 * bits: 1e-3; bfloat16 8: 4e-3, and operands that it holds.
 */
#ifndef CLG_TESTS_GEMM_CASES_H
#define CLG_TESTS_GEMM_CASES_H

#include "support/cases/run_node.h"

#define GEMM_FLOAT_TOLERANCE 2e-6
double gemm_tolerance(clg_dtype dtype);
double gemm_scale(int64_t k); /* of a sum of k terms */
/* Returns n random numbers that the dtype represents exactly. */
double *gemm_numbers(clg_dtype dtype, int64_t n);
/* Computes out[m,n] = a x b; element (i, j) of a is at i * a_rs + j * a_cs, of b likewise. */
void gemm_reference(double *out, int64_t m, int64_t n, int64_t k, const double *a, int64_t a_rs,
                    int64_t a_cs, const double *b, int64_t b_rs, int64_t b_cs);

/* Checks MatMul of [m,k] by [k,n]. */
void gemm_check_matmul(clg_dtype dtype, int64_t m, int64_t n, int64_t k, bool constant_b,
                       bool constant_a);
/* Checks MatMul of [a_dims,5,6] by [b_dims,6,9], whose batches broadcast to `over`. */
void gemm_check_batches(clg_dtype dtype, int rank_a, const int64_t *a_dims, int rank_b,
                        const int64_t *b_dims, int rank, const int64_t *over, bool constant_b);

typedef struct gemm_case {
    int64_t m, n, k;
    bool trans_a, trans_b;
    double alpha, beta;
    int c_rank; /* -1: no C */
    int64_t c_dims[2];
    bool constant;
} gemm_case;

/* Checks a Gemm; relu: followed by Relu where there is a C. */
void gemm_check(clg_dtype dtype, const gemm_case *g, bool relu);

/* Checks act(a x b + bias + residual) for each operator that can be fused, with and without the
 * pass that fuses it. */
void gemm_check_followers(clg_dtype dtype);

#endif
