/* SPDX-License-Identifier: Apache-2.0
 *
 * The implementations conv_simt and conv_depthwise_simt: cl/conv/conv_simt.cl.
 */
#include "ops/conv/conv_impls.h"
#include "ops/lowering/simt_tile.h"
#include "ops/lowering/work.h"

void conv_add_simt(lower_context *c, const conv_job *j)
{
    step_builder *b = &c->build;
    const int64_t pixels = j->batch * window_count_out(j->axes);
    const bool depthwise = conv_is_depthwise(j);
    if (pixels > INT32_MAX || j->ic == 0) return;
    const char *entry = depthwise ? "conv_depthwise_simt" : "conv_simt";
    const simt_tile t =
        depthwise ? (simt_tile){1, 64, 1, 1, 1} : simt_tile_choose(c, j->oc, pixels);
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
    const uint64_t local[3] = {(uint64_t)t.wg_n, (uint64_t)t.wg_m, 1};
    uint64_t range[3] = {work_items(c, work_ceil_div(pixels, t.tn), local[0]),
                         work_items(c, work_ceil_div(j->oc, t.tm), local[1]),
                         work_items(c, j->groups, 1)};
    if (depthwise) {
        range[0] = work_items(c, window_count_out(j->axes), local[0]);
        range[1] = work_items(c, j->groups * j->oc, 1);
        range[2] = work_items(c, j->batch, 1);
    }
    step_range(b, s, 3, range, local);
}
