/* SPDX-License-Identifier: Apache-2.0
 *
 * Lowers a convolution for GPUs: the implementations conv_simt, conv_simt_split (sums in parts) and
 * conv_depthwise_simt. Kernels: cl/conv/conv_simt.cl.
 */
#include "ops/conv/conv_impls.h"
#include "ops/lowering/simt_split.h"
#include "ops/lowering/work.h"

/* Depthwise: 64 output pixels of a channel per work-group, one per work-item. Estimated, not
 * measured on a GPU. Checked by: tests/bench/gpu/run.sh */
static const simt_tile depthwise_tile = {1, 64, 1, 1, 1, false};

/* Appends the tiled kernel. Several parts: into `parts`, without the epilogue. */
static void tiled_step(lower_context *c, candidate *impl, const conv_job *j, const simt_tile *t,
                       int64_t n_parts, operand parts)
{
    step_builder *b = &c->build;
    const int64_t pixels = j->batch * window_count_out(j->axes);
    conv_job part = *j;
    if (n_parts > 1) {
        part.y = parts;
        part.epilogue = (epilogue_ops){.alpha = 1, .beta = 1};
    }
    step *s = step_kernel(
        b, impl, "conv_simt", "conv_simt",
        prelude_text(b,
                     "P_T=%d P_FMA=%d P_VEC=1 P_WG_M=%d P_WG_N=%d P_TM=%d P_TN=%d P_TK=%d "
                     "P_QUADS=%d %s",
                     (int)j->dtype, work_fma(c), t->wg_m, t->wg_n, t->tm, t->tn, t->tk, t->quads,
                     conv_epilogue_prelude(c, &part)));
    STEP_INTS(b, s, j->batch, j->groups, j->ic, j->oc, n_parts);
    window_args(b, s, j->axes);
    conv_image_args(b, s, &part, operand_input(j->weight));
    epilogue_args(c, s, &part.epilogue, j->dtype, part.y);
    conv_count_work(j, s);
    work_range_3d(c, s, work_ceil_div(pixels, t->tn), (uint64_t)t->wg_n,
                  work_ceil_div(j->oc, t->tm), (uint64_t)t->wg_m, j->groups * n_parts);
}

/* Adds conv_simt_split where the results are too few to occupy the device. */
static void add_split(lower_context *c, const conv_job *j, const simt_tile *t)
{
    const int64_t per_image = window_count_out(j->axes), channels = j->groups * j->oc,
                  tiles_m = work_ceil_div(j->oc, (int64_t)t->wg_m * t->tm),
                  tiles_n = work_ceil_div(j->batch * per_image, (int64_t)t->wg_n * t->tn),
                  k = j->ic * window_count_taps(j->axes);
    if (j->dtype != CLG_FLOAT32) return;
    const int64_t n_parts = simt_split_parts(c, t, tiles_m * tiles_n * j->groups, k, false);
    if (n_parts == 1) return;
    candidate *impl = step_candidate(&c->build, "conv_simt_split");
    simt_split_result r = {.m = channels,
                           .n = per_image,
                           .batch = j->batch,
                           .batch_in = 1,
                           .at = j->y,
                           .rs = per_image,
                           .cs = 1,
                           .b0 = channels * per_image,
                           .epilogue = j->epilogue};
    if (r.epilogue.bias != BIAS_NONE) r.epilogue.bias = BIAS_ROW;
    r.epilogue.bias_b0 = r.epilogue.bias_b1 = 0;
    const operand parts = simt_split_scratch(c, impl, &r, n_parts);
    tiled_step(c, impl, j, t, n_parts, parts);
    simt_split_sum(c, impl, &r, parts, n_parts);
}

static void add_depthwise(lower_context *c, const conv_job *j)
{
    step_builder *b = &c->build;
    const simt_tile t = depthwise_tile;
    if (!simt_tile_fits(c, &t)) return;
    step *s = step_kernel(
        b, step_candidate(b, "conv_depthwise_simt"), "conv_simt", "conv_depthwise_simt",
        prelude_text(b,
                     "P_T=%d P_FMA=%d P_VEC=1 P_WG_M=%d P_WG_N=%d P_TM=%d P_TN=%d P_TK=%d "
                     "P_QUADS=%d %s",
                     (int)j->dtype, work_fma(c), t.wg_m, t.wg_n, t.tm, t.tn, t.tk, t.quads,
                     conv_epilogue_prelude(c, j)));
    STEP_INTS(b, s, j->batch, j->groups, j->oc);
    window_args(b, s, j->axes);
    conv_image_args(b, s, j, operand_input(j->weight));
    epilogue_args(c, s, &j->epilogue, j->dtype, j->y);
    conv_count_work(j, s);
    work_range_3d(c, s, window_count_out(j->axes), (uint64_t)t.wg_n, j->groups * j->oc, 1,
                  j->batch);
}

void conv_add_simt(lower_context *c, const conv_job *j)
{
    const int64_t pixels = j->batch * window_count_out(j->axes);
    if (pixels > INT32_MAX || j->ic == 0) return;
    if (conv_is_depthwise(j)) {
        add_depthwise(c, j);
        return;
    }
    const simt_tile t = simt_tile_choose(c, j->oc, pixels);
    if (!simt_tile_fits(c, &t)) return;
    add_split(c, j, &t);
    tiled_step(c, step_candidate(&c->build, "conv_simt"), j, &t, 1, j->y);
    simt_tile other;
    if (simt_tile_quads(c, &t, &other))
        tiled_step(c, step_candidate(&c->build, "conv_simt_quads"), j, &other, 1, j->y);
    if (simt_tile_large(c, &t, j->oc, pixels, &other))
        tiled_step(c, step_candidate(&c->build, "conv_simt_large"), j, &other, 1, j->y);
}
