/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares MatMul and Gemm with a reference in double, which adds from the last term to the first,
 * for the tests of their kernels.
 *
 * Tolerance: sums of k terms of magnitude 1 in float32 differ from the exact ones by at most k *
 * 2^-24 relative to the sum of magnitudes and, with random signs, by far less: 2e-6 of the larger
 * of the result and sqrt(k). float16 1e-3, since it stores 11 significant bits; bfloat16 4e-3, with
 * operands that it represents exactly; float64 1e-12.
 */
#ifndef CLG_TESTS_GEMM_CASES_H
#define CLG_TESTS_GEMM_CASES_H

#include "support/cases/run_node.h"

#define GEMM_FLOAT_TOLERANCE 2e-6
/* Returns the tolerance described above, relative to the larger of the result and gemm_scale. */
double gemm_tolerance(clg_dtype dtype);
/* Returns the magnitude of a sum of k terms of magnitude 1, the scale of its tolerance. */
double gemm_scale(int64_t k);
/* Returns n random values that the dtype represents exactly. */
double *gemm_numbers(clg_dtype dtype, int64_t n);
/* Computes out[m,n] = a b. Element (i, j) of a is at i * a_rs + j * a_cs, that of b likewise. */
void gemm_reference(double *out, int64_t m, int64_t n, int64_t k, const double *a, int64_t a_rs,
                    int64_t a_cs, const double *b, int64_t b_rs, int64_t b_cs);

/* Checks MatMul of [m,k] by [k,n]. */
void gemm_check_matmul(clg_dtype dtype, int64_t m, int64_t n, int64_t k, bool constant_b,
                       bool constant_a);
/* Checks MatMul of [a_dims,5,6] by [b_dims,6,9], whose batch dimensions broadcast to `over`. */
void gemm_check_batches(clg_dtype dtype, int rank_a, const int64_t *a_dims, int rank_b,
                        const int64_t *b_dims, int rank, const int64_t *over, bool constant_b);

/* A Gemm: A is [m,k], or [k,m] if trans_a; B is [k,n], or [n,k] if trans_b. */
typedef struct gemm_case {
    int64_t m, n, k;
    bool trans_a, trans_b;
    double alpha, beta;
    int c_rank; /* rank of C; -1: no C */
    int64_t c_dims[2];
    bool constant;
} gemm_case;

/* Checks Gemm. relu: followed by Relu; requires a C. */
void gemm_check(clg_dtype dtype, const gemm_case *g, bool relu);

/* Checks act(a b + bias + residual) for each activation that can be fused into a GEMM. */
void gemm_check_followers(clg_dtype dtype);
/* Checks a b where h > 0, else 0: the gradient of Relu after that of a MatMul, one kernel. */
void gemm_check_mask(clg_dtype dtype);

#endif
