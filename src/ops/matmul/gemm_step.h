/* SPDX-License-Identifier: Apache-2.0
 *
 * What launches of matrix products have in common, whichever kernel they are of.
 */
#ifndef CLG_OPS_GEMM_STEP_H
#define CLG_OPS_GEMM_STEP_H

#include "ops/matmul/gemm.h"

/* m, n, k, batch, batch_in; A and B as this kernel reads them; C. */
void gemm_step_operands(step_builder *b, step *s, const gemm_job *j, const gemm_matrix *left,
                        const gemm_matrix *right);
/* A matrix of elements of this dtype: buffer, strides of row, column, z0, z1. */
void gemm_step_matrix(step_builder *b, step *s, const gemm_matrix *x, clg_dtype dtype);
/* flops and bytes, for profiles */
void gemm_step_work(step *s, const gemm_job *j);

#endif
