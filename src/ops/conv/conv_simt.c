/* SPDX-License-Identifier: Apache-2.0
 *
 * Lowers a convolution for GPUs: the implementations conv_simt and conv_depthwise_simt. Kernels:
 * cl/conv/conv_simt.cl.
 */
#include "ops/conv/conv_impls.h"
#include "ops/lowering/simt_tile.h"
#include "ops/lowering/work.h"

/* Depthwise: 64 output pixels of a channel per work-group, one per work-item. Estimated, not
 * measured on a GPU. Checked by: tests/bench/gpu/run.sh */
static const simt_tile depthwise_tile = {1, 64, 1, 1, 1};

void conv_add_simt(lower_context *c, const conv_job *j)
{
    step_builder *b = &c->build;
    const int64_t pixels = j->batch * window_count_out(j->axes);
    const bool depthwise = conv_is_depthwise(j);
    if (pixels > INT32_MAX || j->ic == 0) return;
    const char *entry = depthwise ? "conv_depthwise_simt" : "conv_simt";
    const simt_tile t = depthwise ? depthwise_tile : simt_tile_choose(c, j->oc, pixels);
    if (!simt_tile_fits(c, &t)) return;
    step *s = step_kernel(
        b, step_candidate(b, entry), "conv_simt", entry,
        prelude_text(b, "P_T=%d P_FMA=%d P_VEC=1 P_WG_M=%d P_WG_N=%d P_TM=%d P_TN=%d P_TK=%d %s",
                     (int)j->dtype, work_fma(c), t.wg_m, t.wg_n, t.tm, t.tn, t.tk,
                     conv_epilogue_prelude(c, j)));
    STEP_INTS(b, s, j->batch, j->groups);
    if (!depthwise) step_arg_int(b, s, j->ic);
    step_arg_int(b, s, j->oc);
    window_args(b, s, j->axes);
    conv_image_args(b, s, j, operand_input(j->weight));
    epilogue_args(c, s, &j->epilogue, j->dtype, j->y);
    conv_count_work(j, s);
    const uint64_t wg_n = (uint64_t)t.wg_n, wg_m = (uint64_t)t.wg_m;
    if (depthwise)
        work_range_3d(c, s, window_count_out(j->axes), wg_n, j->groups * j->oc, 1, j->batch);
    else
        work_range_3d(c, s, work_ceil_div(pixels, t.tn), wg_n, work_ceil_div(j->oc, t.tm), wg_m,
                      j->groups);
}
