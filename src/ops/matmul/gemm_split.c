/* SPDX-License-Identifier: Apache-2.0
 *
 * Lowers a GEMM to gemm_simt_split: gemm_simt with the sums divided into parts, as a batch of GEMMs
 * of equal shares of k, and a kernel that adds them. For few results with long sums on GPUs.
 */
#include "ops/lowering/simt_split.h"
#include "ops/lowering/work.h"
#include "ops/matmul/gemm_impls.h"

static bool in_scratch(const gemm_job *j)
{
    return j->a.at.space == OPERAND_SCRATCH || j->b.at.space == OPERAND_SCRATCH ||
           j->c.at.space == OPERAND_SCRATCH;
}

/* Makes x a batch of n_parts matrices of k / n_parts rows or columns, `step` elements apart, in
 * the outer dimension of the batch; the batch that it had becomes the inner one. */
static void divide(gemm_matrix *x, int64_t step, bool outer)
{
    if (outer) x->b1 = x->b0;
    x->b0 = step;
}

void gemm_split_candidate(lower_context *c, const gemm_job *j)
{
    const simt_tile t = simt_tile_choose(c, j->m, j->n);
    const int64_t tiles_m = work_ceil_div(j->m, (int64_t)t.wg_m * t.tm),
                  tiles_n = work_ceil_div(j->n, (int64_t)t.wg_n * t.tn);
    /* One of the two dimensions of the batch has to be free for the parts. */
    const bool outer = j->batch_in == 1;
    if (j->dtype != CLG_FLOAT32 || in_scratch(j) || !(outer || j->batch == j->batch_in)) return;
    const int64_t n_parts = simt_split_parts(c, &t, tiles_m * tiles_n * j->batch, j->k, true);
    if (n_parts == 1) return;

    candidate *impl = step_candidate(&c->build, "gemm_simt_split");
    const simt_split_result r = {.m = j->m,
                                 .n = j->n,
                                 .batch = j->batch,
                                 .batch_in = j->batch_in,
                                 .at = j->c.at,
                                 .rs = j->c.rs,
                                 .cs = j->c.cs,
                                 .b0 = j->c.b0,
                                 .b1 = j->c.b1,
                                 .epilogue = j->epilogue};
    const operand parts = simt_split_scratch(c, impl, &r, n_parts);
    gemm_job part = *j;
    part.k = j->k / n_parts;
    part.batch = j->batch * n_parts;
    part.batch_in = j->batch;
    divide(&part.a, part.k * j->a.cs, outer);
    divide(&part.b, part.k * j->b.rs, outer);
    part.c = (gemm_matrix){parts, j->n, 1, j->batch * j->m * j->n, j->m * j->n, false};
    part.epilogue = (epilogue_ops){.alpha = 1, .beta = 1};
    gemm_simt_steps(c, impl, &part, t);
    simt_split_sum(c, impl, &r, parts, n_parts);
}
