/* SPDX-License-Identifier: Apache-2.0
 *
 * Adds the arguments and operation counts that GEMM kernels have in common. See gemm_step.h.
 */
#include "ops/matmul/gemm_step.h"

void gemm_step_matrix(step_builder *b, step *s, const gemm_matrix *x, clg_dtype dtype)
{
    step_arg_buffer(b, s, x->at, dtype);
    STEP_INTS(b, s, x->rs, x->cs);
    STEP_LONGS(b, s, x->b0, x->b1);
}

void gemm_step_operands(step_builder *b, step *s, const gemm_job *j, const gemm_matrix *left,
                        const gemm_matrix *right)
{
    STEP_INTS(b, s, j->m, j->n, j->k, j->batch, j->batch_in);
    gemm_step_matrix(b, s, left, j->dtype);
    gemm_step_matrix(b, s, right, j->dtype);
    gemm_step_matrix(b, s, &j->c, j->dtype);
}

void gemm_step_work(step *s, const gemm_job *j)
{
    const double m = (double)j->m, n = (double)j->n, k = (double)j->k, batch = (double)j->batch;
    s->flops = 2 * batch * m * n * k;
    s->bytes = batch * (m * k + k * n + m * n) * (double)dtype_size(j->dtype);
}
