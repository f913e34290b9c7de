/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of 16-bit floats by matrix units: cl/matmul/gemm_matrix.cl.
 */
#ifndef CLG_OPS_GEMM_MATRIX_H
#define CLG_OPS_GEMM_MATRIX_H

#include "ops/matmul/gemm.h"

/* Adds the candidate "gemm_matrix" for jobs as gemm_lower has them, where the device has such a
 * unit and it takes them all; else nothing. */
void gemm_matrix_candidate(lower_context *c, const gemm_job *jobs, size_t n_jobs);

#endif
