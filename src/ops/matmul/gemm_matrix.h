/* SPDX-License-Identifier: Apache-2.0
 *
 * Adds the candidate for GEMMs of float16 and bfloat16 on matrix units, instructions that multiply
 * small matrices, such as those of NVIDIA's tensor cores. Kernel: cl/matmul/gemm_matrix.cl.
 */
#ifndef CLG_OPS_GEMM_MATRIX_H
#define CLG_OPS_GEMM_MATRIX_H

#include "ops/matmul/gemm.h"

/* Adds the candidate "gemm_matrix", which computes all jobs (as in gemm_lower), if the device has
 * matrix units and they support every job; otherwise adds nothing. */
void gemm_matrix_candidate(lower_context *c, const gemm_job *jobs, size_t n_jobs);

#endif
