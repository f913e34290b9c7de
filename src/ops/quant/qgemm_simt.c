/* SPDX-License-Identifier: Apache-2.0
 *
 * Lowers 8-bit GEMMs for GPUs: the implementations qgemm_simt and qgemm_dot. Kernels:
 * cl/quant/qgemm_simt.cl.
 */
#include "ops/lowering/work.h"
#include "ops/quant/qmatmul.h"
#include "ops/quant/qtile_simt.h"

#include <stdio.h>

/* Sets *out to the number of matrices in B, which are stored contiguously. Returns false if there
 * are more than QTILE_MAX_COUNT. */
static bool count_matrices(const qmatmul_job *j, int64_t *out)
{
    return qtile_fits((size_t)(j->b_dims.rank > 2 ? j->b_dims.rank - 2 : 0), j->b_dims.dims,
                      QTILE_MAX_COUNT, out);
}

bool qgemm_simt_fits(const qmatmul_job *j, const qmatmul_size *z)
{
    const int64_t batch = grid_n_elements(z->batches);
    int64_t n_matrices, n_bytes;
    return z->m > 0 && z->n > 0 && z->k > 0 && batch > 0 && z->m <= QTILE_MAX_COUNT &&
           z->n <= QTILE_MAX_COUNT && z->k <= QTILE_MAX_COUNT && batch <= QTILE_MAX_COUNT &&
           j->b.space == OPERAND_INPUT && count_matrices(j, &n_matrices) &&
           QTILE_FITS(INT64_MAX, &n_bytes, n_matrices, z->n, work_ceil_div(z->k, 4),
                      QTILE_WORD_BYTES);
}

static operand pack_matrices(lower_context *c, candidate *impl, const qmatmul_job *j,
                             const qmatmul_size *z)
{
    step_builder *b = &c->build;
    const int64_t words = work_ceil_div(z->k, 4);
    const qtile_dtypes d = {j->b_dtype, j->b_dtype, CLG_INT32, false, false};
    int64_t n_matrices = 0;
    char recipe[128];
    (void)count_matrices(j, &n_matrices);
    (void)snprintf(recipe, sizeof recipe, "qgemm dtype=%d n=%lld k=%lld matrices=%lld",
                   (int)j->b_dtype, (long long)z->n, (long long)z->k, (long long)n_matrices);
    const operand to = step_packing(b, impl, j->b.index, recipe,
                                    (size_t)(n_matrices * words * z->n) * QTILE_WORD_BYTES);
    step *s = step_pack_kernel(b, impl, to, "qgemm_simt", "qgemm_pack",
                               qtile_prelude(b, &d, &qtile_packing, 0, "P_RANK", 0));
    STEP_INTS(b, s, z->n, z->k, words, n_matrices);
    STEP_BUFFERS(b, s, {j->b, j->b_dtype}, {to, CLG_INT32});
    qtile_packing_range(c, s, z->n, words, n_matrices);
    return to;
}

void qgemm_simt_steps(lower_context *c, candidate *impl, const qmatmul_job *j,
                      const qmatmul_size *z, int dot4)
{
    step_builder *b = &c->build;
    const grid_dims *over = z->batches;
    const simt_tile t = simt_tile_choose(c, z->m, z->n);
    const qtile_dtypes d = {j->a_dtype, j->b_dtype, j->y_dtype, j->a_zero.given, j->b_zero.given};
    const int64_t words = work_ceil_div(z->k, 4), batch = grid_n_elements(over);
    const operand packed = pack_matrices(c, impl, j, z);
    step *s = step_kernel(b, impl, "qgemm_simt", "qgemm_simt",
                          qtile_prelude(b, &d, &t, dot4, "P_RANK", over->rank));
    STEP_INTS(b, s, z->m, z->n, z->k, words, batch);
    for (int i = 0; i < over->rank; i++) {
        step_arg_int(b, s, over->dims[i]);
        STEP_LONGS(b, s, over->strides[0][i], over->strides[1][i] / (z->k * z->n) * (words * z->n));
    }
    STEP_BUFFERS(b, s, {j->a, j->a_dtype}, {packed, CLG_INT32}, {j->y, j->y_dtype});
    qmatmul_last_args(c, s, j);
    qmatmul_count_work(s, z);
    qtile_range(c, s, &t, z->m, z->n, batch);
}
