/* SPDX-License-Identifier: Apache-2.0
 *
 * The implementations of a matrix product. Each function appends the steps of one GEMM to a
 * candidate; which dtypes and devices they are for is known in gemm.c.
 */
#ifndef CLG_OPS_GEMM_IMPLS_H
#define CLG_OPS_GEMM_IMPLS_H

#include "ops/lowering/simt_tile.h"
#include "ops/matmul/gemm.h"

/* pack: a constant B, or else a constant A, is packed once. */
void gemm_simd_steps(lower_context *c, candidate *impl, const gemm_job *j, bool pack);
void gemm_simt_steps(lower_context *c, candidate *impl, const gemm_job *j, simt_tile t);
/* gemm_fits_blas(j) must hold. */
void gemm_blas_steps(lower_context *c, candidate *impl, const gemm_job *j);
/* Offers CLBlast for all jobs, or nothing where it cannot compute one of them. */
void gemm_blas_candidate(lower_context *c, const gemm_job *jobs, size_t n_jobs);
void gemm_plain_steps(lower_context *c, candidate *impl, const gemm_job *j);
/* Whether gemm_plain can compute the GEMM: UNSUPPORTED_DTYPE or UNSUPPORTED_ATTRIBUTE where
 * it cannot. */
clg_status gemm_plain_check(const lower_context *c, const gemm_job *j);

#endif
