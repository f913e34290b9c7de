/* SPDX-License-Identifier: Apache-2.0
 *
 * Adds the candidates of a GEMM: chooses the implementations by dtype and kernel class. See gemm.h.
 */
#include "ops/matmul/gemm.h"

#include "ops/matmul/gemm_impls.h"
#include "ops/matmul/gemm_matrix.h"

static bool is_empty(const gemm_job *j) { return j->m == 0 || j->n == 0 || j->batch == 0; }
static bool is_tiled(clg_dtype dtype)
{
    return dtype == CLG_FLOAT32 || dtype == CLG_FLOAT16 || dtype == CLG_BFLOAT16;
}

static void simt_candidates(lower_context *c, const gemm_job *jobs, size_t n_jobs)
{
    step_builder *b = &c->build;
    simt_tile t;
    gemm_blas_candidate(c, jobs, n_jobs);
    candidate *impl = step_candidate(b, "gemm_simt");
    for (size_t i = 0; i < n_jobs; i++)
        gemm_simt_steps(c, impl, &jobs[i], simt_tile_choose(c, jobs[i].m, jobs[i].n));
    for (size_t k = 0; simt_tile_smaller(c, k, &t); k++) {
        impl = step_candidate(b, t.wg_m > 1 ? "gemm_simt_small" : "gemm_simt_alone");
        impl->last_resort = true;
        for (size_t i = 0; i < n_jobs; i++) gemm_simt_steps(c, impl, &jobs[i], t);
    }
    gemm_matrix_candidate(c, jobs, n_jobs);
}

clg_status gemm_lower(lower_context *c, const gemm_job *jobs, size_t n_jobs)
{
    step_builder *b = &c->build;
    if (is_empty(&jobs[0])) {
        (void)step_candidate(b, "nothing");
        return CLG_OK;
    }
    if (!is_tiled(jobs[0].dtype)) {
        CLG_TRY(gemm_plain_check(c, &jobs[0]));
        candidate *impl = step_candidate(b, "gemm_plain");
        for (size_t i = 0; i < n_jobs; i++) gemm_plain_steps(c, impl, &jobs[i]);
        return CLG_OK;
    }
    if (lower_is_simd(c)) {
        candidate *impl = step_candidate(b, "gemm_simd");
        for (size_t i = 0; i < n_jobs; i++) gemm_simd_steps(c, impl, &jobs[i], n_jobs == 1);
        gemm_blas_candidate(c, jobs, n_jobs);
    } else {
        simt_candidates(c, jobs, n_jobs);
    }
    return CLG_OK;
}

clg_status gemm_append(lower_context *c, candidate *impl, const gemm_job *j, bool blas)
{
    if (is_empty(j)) return CLG_OK;
    if (blas) {
        gemm_blas_steps(c, impl, j);
    } else if (!is_tiled(j->dtype)) {
        CLG_TRY(gemm_plain_check(c, j));
        gemm_plain_steps(c, impl, j);
    } else if (lower_is_simd(c)) {
        gemm_simd_steps(c, impl, j, true);
    } else {
        gemm_simt_steps(c, impl, j, simt_tile_choose(c, j->m, j->n));
    }
    return CLG_OK;
}
