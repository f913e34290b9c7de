/* SPDX-License-Identifier: Apache-2.0
 *
 * Lowers a convolution of feature maps in the channel-blocked layout (nChw16c) to a kernel without
 * tiles and vectors, one work-item per element: the implementation conv_blocked_direct, the last
 * resort of clgraph.BlockedConv and clgraph.BlockedConvTranspose, which have no other where the
 * driver's compiler fails on their kernels. Kernel: cl/conv/conv_blocked_direct.cl.
 */
#include "ops/conv/conv_blocked.h"

#include "ops/lowering/work.h"

void conv_blocked_direct_append(lower_context *c, candidate *impl, const conv_job *j,
                                bool input_is_blocked)
{
    step_builder *b = &c->build;
    const window_axis *h = &j->axes[1], *w = &j->axes[2];
    const int64_t lanes = work_simd_lanes(c);
    const int64_t planes = j->batch * work_ceil_div(j->groups * j->oc, lanes) * lanes;
    const conv_phase at = conv_blocked_places(j);
    operand weights = operand_input(j->weight);
    weights.offset_elems = at.first;
    step *s = step_kernel(b, impl, "conv_blocked_direct", "conv_blocked_direct",
                          prelude_text(b, "P_T=%d P_VEC=1 P_LANES=%d P_IN=%d P_PROLOGUE=%d %s",
                                       (int)j->dtype, (int)lanes, input_is_blocked ? (int)lanes : 1,
                                       (int)j->prologue, conv_epilogue_prelude(c, j)));
    STEP_INTS(b, s, j->batch, j->groups, j->ic, j->oc);
    conv_blocked_size_args(b, s, h, w);
    step_arg_int(b, s, w->stride);
    STEP_BUFFERS(b, s, {j->x, j->dtype}, {weights, j->dtype}, {j->y, j->dtype});
    STEP_INTS(b, s, at.step_h * at.columns, at.lines * at.columns, at.step_w);
    step_arg_long(b, s, at.by_output);
    step_arg_long(b, s, at.by_input);
    step_arg_long(b, s, at.by_line);
    step_arg_long(b, s, at.by_column);
    conv_blocked_prologue_args(b, s, j);
    epilogue_args(c, s, &j->epilogue, j->dtype, j->y);
    conv_count_work(j, s);
    work_range_rows(c, s, h->out * w->out, planes);
}

candidate *conv_blocked_direct_start(lower_context *c)
{
    candidate *impl = step_candidate(&c->build, "conv_blocked_direct");
    impl->last_resort = true;
    return impl;
}
