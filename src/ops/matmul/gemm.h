/* SPDX-License-Identifier: Apache-2.0
 *
 * Candidates for a matrix product: what MatMul, Gemm and 1x1 convolutions share. How each kernel
 * wants to be called is known here and nowhere else.
 *
 *     C[z] = activation(alpha * A[z] x B[z] + beta * bias + residual), z = z0 * batch_in + z1
 */
#ifndef CLG_OPS_GEMM_H
#define CLG_OPS_GEMM_H

#include "ops/lowering/epilogue.h"

/* A matrix: element (row, column) of batch (z0, z1) is at row * rs + column * cs + z0 * b0 +
 * z1 * b1. */
typedef struct gemm_matrix {
    operand at;
    int64_t rs, cs, b0, b1;
    bool constant; /* a weight of the model: packed once */
} gemm_matrix;

typedef struct gemm_job {
    clg_dtype dtype;
    int64_t m, n, k, batch, batch_in; /* batch_in >= 1 divides batch */
    gemm_matrix a, b, c;
    epilogue_ops epilogue;
} gemm_job;

/* Adds candidates that do all jobs, one after the other. Jobs of one node share dtype, k and the
 * kind of epilogue. The candidates have no scratch memory: a caller may name scratch 0 as a matrix
 * and then make it for each of them. */
clg_status gemm_lower(lower_context *c, const gemm_job *jobs, size_t n_jobs);

/* For operators of which a GEMM is one part: appends its steps to a candidate of the
 * caller's. Matrices and bias may be the candidate's scratch or packed memory; a constant one
 * must be an input, and is packed once for all products of the candidate that read it alike.
 * blas: by CLBlast, where gemm_fits_blas; else by the class's own kernel. */
clg_status gemm_append(lower_context *c, candidate *impl, const gemm_job *j, bool blas);
bool gemm_fits_blas(const gemm_job *j);

#endif
