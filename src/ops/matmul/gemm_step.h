/* SPDX-License-Identifier: Apache-2.0
 *
 * Adds the arguments that all GEMM kernels have in common, and counts their operations and bytes.
 */
#ifndef CLG_OPS_GEMM_STEP_H
#define CLG_OPS_GEMM_STEP_H

#include "ops/matmul/gemm.h"

/* Adds the arguments m, n, k, batch, batch_in, then A, B and C. left and right are passed as A and
 * B in place of the job's, since they may be packed. */
void gemm_step_operands(step_builder *b, step *s, const gemm_job *j, const gemm_matrix *left,
                        const gemm_matrix *right);
/* Adds the arguments of one matrix: its buffer, of elements of this dtype, and the strides rs, cs,
 * b0, b1. */
void gemm_step_matrix(step_builder *b, step *s, const gemm_matrix *x, clg_dtype dtype);
/* Sets the floating-point operations and bytes of a step, for profiles. */
void gemm_step_work(step *s, const gemm_job *j);

#endif
