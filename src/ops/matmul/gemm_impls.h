/* SPDX-License-Identifier: Apache-2.0
 *
 * Declares the implementations of a GEMM. Each *_steps function appends the steps of one product to
 * a candidate; gemm.c decides for which dtypes and devices each is used.
 */
#ifndef CLG_OPS_GEMM_IMPLS_H
#define CLG_OPS_GEMM_IMPLS_H

#include "ops/lowering/simt_tile.h"
#include "ops/matmul/gemm.h"

/* Appends gemm_simd, the implementation for CPUs. With `pack`, a constant B, or else a constant A,
 * is packed once, before the first run. */
void gemm_simd_steps(lower_context *c, candidate *impl, const gemm_job *j, bool pack);
void gemm_simt_steps(lower_context *c, candidate *impl, const gemm_job *j, simt_tile t);
/* Appends a call of CLBlast and the epilogue. Requires gemm_fits_blas(j). */
void gemm_blas_steps(lower_context *c, candidate *impl, const gemm_job *j);
/* Adds the candidate "blas", which computes all jobs with CLBlast; adds nothing if CLBlast cannot
 * compute one of them. */
void gemm_blas_candidate(lower_context *c, const gemm_job *jobs, size_t n_jobs);
/* Adds the candidate "gemm_simt_split" where sums should be divided to occupy a GPU. */
void gemm_split_candidate(lower_context *c, const gemm_job *j);
void gemm_plain_steps(lower_context *c, candidate *impl, const gemm_job *j);
/* Returns CLG_OK if gemm_plain can compute the GEMM; else UNSUPPORTED_DTYPE or
 * UNSUPPORTED_ATTRIBUTE. */
clg_status gemm_plain_check(const lower_context *c, const gemm_job *j);

#endif
