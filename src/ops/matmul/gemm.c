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

/* Whether CLBlast comes first on a GPU: for a single product, or products one after the other, that
 * fill the device with CLBlast's tiles. It computes a batch one matrix after the other or in small
 * tiles: on an NVIDIA H200 (driver 580, 2026-11-27), gemm_simt took 0.05 to 0.92 of its time in
 * each of 39 products, 1x1 and transposed convolutions of ResNet-50, MobileNetV2 and DCGAN at
 * batches of 16 and 64, while CLBlast reached 33 TFLOP/s at 4096^3 and 15 at 1024^3. Checked by:
 *     cltool tune MODEL    (on a GPU) */
#define BLAS_SIDE 512
static bool prefers_blas(const gemm_job *jobs, size_t n_jobs)
{
    for (size_t i = 0; i < n_jobs; i++)
        if (jobs[i].batch > 1 || jobs[i].m < BLAS_SIDE || jobs[i].n < BLAS_SIDE) return false;
    return true;
}

/* Adds the candidates with other tiles, which only measurements choose. */
static void other_tiles(lower_context *c, const gemm_job *j)
{
    const simt_tile t = simt_tile_choose(c, j->m, j->n);
    simt_tile other;
    if (simt_tile_quads(c, &t, &other))
        gemm_simt_steps(c, step_candidate(&c->build, "gemm_simt_quads"), j, other);
    if (simt_tile_large(c, &t, j->m, j->n, &other))
        gemm_simt_steps(c, step_candidate(&c->build, "gemm_simt_large"), j, other);
}

static void simt_candidates(lower_context *c, const gemm_job *jobs, size_t n_jobs)
{
    step_builder *b = &c->build;
    const bool blas_first = prefers_blas(jobs, n_jobs);
    simt_tile t;
    if (blas_first) gemm_blas_candidate(c, jobs, n_jobs);
    if (n_jobs == 1) gemm_split_candidate(c, &jobs[0]);
    candidate *impl = step_candidate(b, "gemm_simt");
    for (size_t i = 0; i < n_jobs; i++)
        gemm_simt_steps(c, impl, &jobs[i], simt_tile_choose(c, jobs[i].m, jobs[i].n));
    if (!blas_first) gemm_blas_candidate(c, jobs, n_jobs);
    if (n_jobs == 1) other_tiles(c, &jobs[0]);
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
