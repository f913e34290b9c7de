/* SPDX-License-Identifier: Apache-2.0
 *
 * Adds candidates for batched GEMMs with an epilogue, for MatMul, Gemm, 1x1 convolutions and
 * others:
 *
 *     C[z] = activation(alpha * A[z] x B[z] + beta * bias + residual), z = z0 * batch_in + z1
 *
 * Callers describe the product as a gemm_job; the kernels' arguments stay private to
 * src/ops/matmul.
 */
#ifndef CLG_OPS_GEMM_H
#define CLG_OPS_GEMM_H

#include "ops/lowering/epilogue.h"

/* A batch of strided matrices. Strides are in elements: element (row, column) of matrix (z0, z1) is
 * at row * rs + column * cs + z0 * b0 + z1 * b1 from `at`. */
typedef struct gemm_matrix {
    operand at;
    int64_t rs, cs, b0, b1;
    bool constant; /* a constant of the model, which may be packed once, before the first run */
} gemm_matrix;

/* A [m, k] x B [k, n] -> C [m, n] in this dtype, for each of `batch` matrices. */
typedef struct gemm_job {
    clg_dtype dtype;
    int64_t m, n, k, batch, batch_in; /* batch_in, the range of z1, divides batch */
    gemm_matrix a, b, c;
    epilogue_ops epilogue;
} gemm_job;

/* Adds candidates, each of which computes all the jobs in order. The jobs belong to one node and
 * have the same dtype, k and kind of epilogue. The candidates use no scratch memory, so that a
 * caller may name scratch 0 as one of the matrices and then allocate it in each candidate. */
clg_status gemm_lower(lower_context *c, const gemm_job *jobs, size_t n_jobs);

/* Appends a GEMM to the caller's candidate, for operators of which a GEMM is one part. Matrices and
 * bias may be the candidate's scratch or packed memory. A constant matrix must be an input of the
 * node; it is packed once for all GEMMs of the candidate that read it with the same strides. blas:
 * use CLBlast, which requires gemm_fits_blas(j); otherwise the kernel of the device's class. */
clg_status gemm_append(lower_context *c, candidate *impl, const gemm_job *j, bool blas);
bool gemm_fits_blas(const gemm_job *j);

#endif
