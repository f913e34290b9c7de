/* SPDX-License-Identifier: Apache-2.0
 *
 * Selects the implementations (algorithms) that can compute a convolution and adds them as
 * candidates, in order of preference or with an estimated cost; also lowers 1x1 convolutions to
 * matrix products. The planner chooses among the candidates (plan/impl_choice.c).
 */
#include "ops/conv/conv.h"

#include "ops/conv/conv_impls.h"
#include "ops/conv/winograd.h"
#include "ops/lowering/work.h"
#include "ops/matmul/gemm.h"

/* ---- 1x1: a matrix product ------------------------------------------------------------------- */

static bool is_gemm(const conv_job *j)
{
    for (int i = 0; i < WINDOW_MAX_AXES; i++) {
        const window_axis *a = &j->axes[i];
        if (a->kernel != 1 || a->stride != 1 || a->pad_begin != 0 || a->pad_end != 0) return false;
    }
    return true;
}

/* Thresholds for transposing the GEMM of a 1x1 convolution in NCHW. Measured on x86-64 with
 * AVX-512, PoCL 3.1, 2026-11-21: transposing was faster with k of 576 and more, at 7 x 7 and 14 x
 * 14, and took 1.06 to 1.29 times as long with k of 64 to 256. Checked by:
 *     build/tests/bench/cost_model transposed */
#define SMALL_MAP 256 /* pixels at most: larger feature maps store columns too far apart */
#define TRANSPOSED_STORE_STEPS 40.0 /* time to transpose the results, in steps along k */

/* Rewrites C = A x B as C^T = B^T x A^T, so that the rows of a register tile are pixels, whose
 * number need not be a multiple of the vector width, and its columns are channels. */
static void transpose_gemm(gemm_job *g)
{
    const gemm_matrix a = g->a;
    g->a = (gemm_matrix){g->b.at, g->b.cs, g->b.rs, g->b.b0, g->b.b1, g->b.constant};
    g->b = (gemm_matrix){a.at, a.cs, a.rs, a.b0, a.b1, a.constant};
    g->c = (gemm_matrix){g->c.at, g->c.cs, g->c.rs, g->c.b0, g->c.b1, g->c.constant};
    const int64_t m = g->m;
    g->m = g->n;
    g->n = m;
    if (g->epilogue.bias == BIAS_ROW) g->epilogue.bias = BIAS_COLUMN;
}

/* Returns the utilization of register tiles (SIMD class) for a result of m x n: the fraction of
 * their multiply-adds that are not padding. */
static double used_part(const lower_context *c, int64_t m, int64_t n)
{
    const int64_t tiles = work_ceil_div(m, work_simd_rows(c)), nr = 2 * (int64_t)work_simd_lanes(c);
    return (double)m / (double)(tiles * work_ceil_div(m, tiles)) * (double)n /
           (double)(work_ceil_div(n, nr) * nr);
}

/* Returns whether the better utilization of register tiles saves more time than transposing the
 * results takes. */
static bool gains_by_transposing(const lower_context *c, const conv_job *j, const gemm_job *g)
{
    if (c->trial.transposed != 0) return c->trial.transposed > 0;
    return j->weight_constant && g->n <= SMALL_MAP &&
           (double)g->k * (used_part(c, g->n, g->m) - used_part(c, g->m, g->n)) >
               TRANSPOSED_STORE_STEPS;
}

/* Adds the GEMM candidates of a 1x1 convolution: y[image, group] = weight[group] x x[image,
 * group]. */
static clg_status gemm_candidates(lower_context *c, const conv_job *j)
{
    const int64_t n = window_count_out(j->axes), in = j->ic * n, out = j->oc * n;
    const bool by_group = j->groups > 1;
    gemm_job g = {.dtype = j->dtype,
                  .m = j->oc,
                  .n = n,
                  .k = j->ic,
                  .batch = j->batch * j->groups,
                  .batch_in = by_group ? j->groups : j->batch,
                  .epilogue = j->epilogue};
    g.batch_in = g.batch_in > 0 ? g.batch_in : 1;
    g.a = (gemm_matrix){operand_input(j->weight), j->ic, 1, 0, by_group ? j->oc * j->ic : 0,
                        j->weight_constant};
    g.b = (gemm_matrix){j->x, n, 1, j->groups * in, in, false};
    g.c = (gemm_matrix){j->y, n, 1, j->groups * out, out, false};
    g.epilogue.bias_b1 = by_group ? j->epilogue.bias_b1 : 0;
    if (lower_is_simd(c) && gains_by_transposing(c, j, &g)) transpose_gemm(&g);
    return gemm_lower(c, &g, 1);
}

/* ---- dispatch: the choice of a convolution's implementations --------------------------------- */

static bool is_empty(const conv_job *j)
{
    return j->batch == 0 || j->oc == 0 || window_count_out(j->axes) == 0;
}

static bool has_tiles(const conv_job *j)
{
    return j->dtype == CLG_FLOAT32 || j->dtype == CLG_FLOAT16;
}

/* Selects the implementations (algorithms) of a convolution and appends them as candidates in order
 * of preference; plan/impl_choice.c picks one: by name, by measurements or by estimated cost.
 *   1x1, stride 1, no padding, not depthwise: GEMM only (matmul/gemm.c)
 *   others on CPUs (SIMD class): Winograd for 3x3 (winograd_4x4, winograd_2x2), then tiled
 *                                (conv_simd) or depthwise (conv_depthwise_simd)
 *   others on GPUs (SIMT class): tiled (conv_simt) or depthwise (conv_depthwise_simt)
 *   last resort, and float64:    direct (conv_direct)
 * For an empty output, the only candidate is "nothing". */
clg_status conv_add(lower_context *c, const conv_job *j)
{
    if (is_empty(j)) {
        (void)step_candidate(&c->build, "nothing");
        return CLG_OK;
    }
    const bool tiled = has_tiles(j);
    if (tiled && is_gemm(j) && !conv_is_depthwise(j)) return gemm_candidates(c, j);
    if (lower_is_simd(c)) winograd_add(c, j, false);
    if (tiled && !lower_is_simd(c))
        conv_add_simt(c, j);
    else if (tiled && conv_is_depthwise(j))
        conv_add_depthwise_simd(c, j);
    else if (tiled)
        conv_add_simd(c, j);
    conv_add_direct(c, j);
    return CLG_OK;
}

void conv_add_rotated(lower_context *c, const conv_job *j)
{
    if (is_empty(j) || !has_tiles(j) || is_gemm(j) || conv_is_depthwise(j)) return;
    winograd_add(c, j, false);
    conv_add_simd(c, j);
}
