/* SPDX-License-Identifier: Apache-2.0
 *
 * Lowers a GEMM to CLBlast, followed by cl/matmul/epilogue.cl where there is an epilogue: the
 * implementation "blas".
 */
#include "ops/lowering/work.h"
#include "ops/matmul/gemm_impls.h"
#include "ops/matmul/gemm_step.h"
#include "tensor/dtype.h"

/* Sets the transposition and leading dimension by which BLAS describes a matrix with contiguous
 * rows or contiguous columns. Returns false if it has neither. */
static bool blas_layout(const gemm_matrix *x, int64_t rows, int64_t cols, bool *out_trans,
                        int64_t *out_ld)
{
    if ((x->cs == 1 || cols == 1) && (x->rs >= cols || rows == 1)) {
        *out_trans = false;
        *out_ld = rows == 1 ? cols : x->rs;
        return true;
    }
    *out_trans = true;
    *out_ld = cols == 1 ? rows : x->cs;
    return (x->rs == 1 || rows == 1) && *out_ld >= rows;
}

static bool blas_problem(const gemm_job *j, gemm_problem *out)
{
    bool c_trans;
    *out = (gemm_problem){.a = j->a.at,
                          .b = j->b.at,
                          .c = j->c.at,
                          .m = j->m,
                          .n = j->n,
                          .k = j->k,
                          .batch = j->batch,
                          .stride_a = j->a.b1,
                          .stride_b = j->b.b1,
                          .stride_c = j->c.b1,
                          .alpha = j->epilogue.alpha,
                          .beta = 0};
    if (j->dtype != CLG_FLOAT32 || j->batch_in != j->batch || j->m < 1 || j->n < 1 || j->k < 1 ||
        j->batch < 1)
        return false;
    return blas_layout(&j->a, j->m, j->k, &out->trans_a, &out->lda) &&
           blas_layout(&j->b, j->k, j->n, &out->trans_b, &out->ldb) &&
           blas_layout(&j->c, j->m, j->n, &c_trans, &out->ldc) && !c_trans;
}

static void epilogue_step(lower_context *c, candidate *impl, const gemm_job *j)
{
    step_builder *b = &c->build;
    const int lanes = lower_is_simd(c) ? work_lanes(c, j->n) : 1;
    epilogue_ops epilogue = j->epilogue;
    epilogue.alpha = 1; /* CLBlast has applied it */
    step *s = step_kernel(b, impl, "epilogue", "epilogue",
                          prelude_text(b, "P_T=%d P_FMA=%d P_VEC=%d %s", (int)j->dtype, work_fma(c),
                                       lanes, epilogue_prelude(c, &epilogue)));
    STEP_INTS(b, s, j->m, j->n, j->batch, j->batch_in);
    step_arg_buffer(b, s, j->c.at, j->dtype);
    step_arg_int(b, s, j->c.rs);
    STEP_LONGS(b, s, j->c.b0, j->c.b1);
    epilogue_args(c, s, &epilogue, j->dtype, j->c.at);
    s->bytes = 2.0 * (double)(j->batch * j->m * j->n) * (double)dtype_size(j->dtype);
    const int64_t vectors = work_ceil_div(j->n, lanes);
    const uint64_t across = work_power_of_two(vectors, 64);
    work_range_3d(c, s, vectors, across, j->m, 64 / across, j->batch);
}

void gemm_blas_steps(lower_context *c, candidate *impl, const gemm_job *j)
{
    gemm_problem problem;
    (void)blas_problem(j, &problem);
    step *s = step_blas_gemm(&c->build, impl, &problem);
    s->label = "blas_gemm";
    gemm_step_work(s, j);
    if (!epilogue_is_empty(&j->epilogue)) epilogue_step(c, impl, j);
}

void gemm_blas_candidate(lower_context *c, const gemm_job *jobs, size_t n_jobs)
{
    gemm_problem problem;
    for (size_t i = 0; i < n_jobs; i++) {
        if (!blas_problem(&jobs[i], &problem)) return;
    }
    candidate *impl = step_candidate(&c->build, "blas");
    for (size_t i = 0; i < n_jobs; i++) gemm_blas_steps(c, impl, &jobs[i]);
}

bool gemm_fits_blas(const gemm_job *j)
{
    gemm_problem problem;
    return blas_problem(j, &problem);
}
