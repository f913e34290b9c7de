/* SPDX-License-Identifier: Apache-2.0
 *
 * Decides which GEMMs CLBlast can compute, in how many calls, and which memory they access.
 * CLBlast's GemmStridedBatched (1.5.3) returns wrong results for strides that are not dense and for
 * offsets that are not 0; batches with either are computed by one call of Gemm per matrix.
 */
#include "ocl/blas/blas.h"

typedef struct extent {
    int64_t rows, cols; /* as stored */
} extent;

static extent extent_of(bool transposed, int64_t rows, int64_t cols)
{
    return transposed ? (extent){cols, rows} : (extent){rows, cols};
}

/* Returns whether the matrices of a batch, and their rows, are stored without gaps. */
static bool is_dense(extent e, int64_t ld, int64_t stride)
{
    return ld == e.cols && stride == e.rows * e.cols;
}

static bool rows_fit(extent e, int64_t ld) { return ld >= e.cols && ld <= INT32_MAX; }

bool ocl_blas_accepts(const gemm_problem *p)
{
    if (p->m <= 0 || p->n <= 0 || p->k <= 0 || p->batch <= 0) return false;
    if (p->m > INT32_MAX || p->n > INT32_MAX || p->k > INT32_MAX || p->batch > INT32_MAX)
        return false;
    if (p->batch > 1 &&
        (p->stride_a < 0 || p->stride_b < 0 || p->stride_c < p->m * p->ldc - (p->ldc - p->n)))
        return false; /* results would overlap */
    return rows_fit(extent_of(p->trans_a, p->m, p->k), p->lda) &&
           rows_fit(extent_of(p->trans_b, p->k, p->n), p->ldb) &&
           rows_fit(extent_of(false, p->m, p->n), p->ldc);
}

ocl_gemm ocl_gemm_of(const gemm_problem *p)
{
    return (ocl_gemm){.offset_a = p->a.offset_elems,
                      .offset_b = p->b.offset_elems,
                      .offset_c = p->c.offset_elems,
                      .m = p->m,
                      .n = p->n,
                      .k = p->k,
                      .lda = p->lda,
                      .ldb = p->ldb,
                      .ldc = p->ldc,
                      .batch = p->batch,
                      .stride_a = p->stride_a,
                      .stride_b = p->stride_b,
                      .stride_c = p->stride_c,
                      .trans_a = p->trans_a,
                      .trans_b = p->trans_b,
                      .alpha = p->alpha,
                      .beta = p->beta};
}

bool blas_is_batched(const ocl_gemm *g)
{
    return g->batch > 1 && g->offset_a == 0 && g->offset_b == 0 && g->offset_c == 0 &&
           is_dense(extent_of(g->trans_a, g->m, g->k), g->lda, g->stride_a) &&
           is_dense(extent_of(g->trans_b, g->k, g->n), g->ldb, g->stride_b) &&
           is_dense(extent_of(false, g->m, g->n), g->ldc, g->stride_c);
}

bool ocl_blas_batches(const gemm_problem *p)
{
    const ocl_gemm g = ocl_gemm_of(p);
    return blas_is_batched(&g);
}

int64_t blas_n_calls(const ocl_gemm *g) { return blas_is_batched(g) ? 1 : g->batch; }

static int64_t n_elems(int64_t offset, int64_t batch, int64_t stride, extent e, int64_t ld)
{
    return offset + (batch - 1) * stride + e.rows * ld;
}

void blas_extents(const ocl_gemm *g, int64_t out_n_elems[3])
{
    const extent a = extent_of(g->trans_a, g->m, g->k), b = extent_of(g->trans_b, g->k, g->n);
    out_n_elems[0] = n_elems(g->offset_a, g->batch, g->stride_a, a, g->lda);
    out_n_elems[1] = n_elems(g->offset_b, g->batch, g->stride_b, b, g->ldb);
    out_n_elems[2] =
        n_elems(g->offset_c, g->batch, g->stride_c, extent_of(false, g->m, g->n), g->ldc);
}
