/* SPDX-License-Identifier: Apache-2.0
 *
 * Lowers a depthwise convolution (one filter per channel) of feature maps in the channel-blocked
 * layout (nChw16c): the implementation conv_depthwise_blocked. Kernel:
 * cl/conv/conv_depthwise_blocked.cl.
 */
#include "ops/conv/conv_blocked.h"

#include "ops/lowering/pack_panels.h"

#include <stdio.h>

static const char *prelude(lower_context *c, const conv_job *j, int64_t stride,
                           const char *epilogue)
{
    return prelude_text(&c->build, "P_T=%d P_FMA=%d P_VEC=%d P_STRIDE=%d %s", (int)j->dtype,
                        work_fma(c), work_simd_lanes(c), (int)stride, epilogue);
}

operand conv_depthwise_blocked_weights(lower_context *c, candidate *impl, const conv_job *j)
{
    const int64_t lanes = work_simd_lanes(c), blocks = work_ceil_div(j->groups, lanes);
    const int64_t taps = j->axes[1].kernel * j->axes[2].kernel;
    char recipe[96];
    (void)snprintf(recipe, sizeof recipe, "conv_depthwise_blocked lanes=%d channels=%lld taps=%lld",
                   (int)lanes, (long long)j->groups, (long long)taps);
    const panel_job panels = {
        .from = operand_input(j->weight),
        .to = step_packing(&c->build, impl, j->weight, recipe,
                           (size_t)(blocks * taps * lanes) * dtype_size(j->dtype)),
        .dtype = j->dtype,
        .batch = 1,
        .batch_in = 1,
        .lines = j->groups,
        .width = lanes,
        .by_line = taps,
        .slices = taps,
        .by_slice = 1,
        .rows = 1,
        .columns = 1,
        .depth = 1,
        .channels = taps};
    pack_panels(c, impl, &panels);
    return panels.to;
}

/* Sizes of a work-group: estimated, not measured. Checked by:
 *     cltool profile MODEL    (the bandwidth of conv_depthwise_blocked) */
/* minimum of output pixels of a work-group: starting it must take less time than computing them */
#define DEPTHWISE_PIXELS 256
/* maximum of work-groups per compute unit: enough to balance the load */
#define DEPTHWISE_GROUPS_PER_UNIT 8

void conv_depthwise_blocked_append(lower_context *c, candidate *impl, const conv_job *j)
{
    step_builder *b = &c->build;
    const window_axis *h = &j->axes[1], *w = &j->axes[2];
    const int64_t blocks = work_ceil_div(j->groups, work_simd_lanes(c));
    const int64_t fewest = work_ceil_div(DEPTHWISE_PIXELS, w->out);
    const int64_t share = j->batch * blocks * h->out / (DEPTHWISE_GROUPS_PER_UNIT * work_units(c));
    const int64_t tile_h = work_min(share > fewest ? share : fewest, h->out);
    const operand packed = conv_depthwise_blocked_weights(c, impl, j);
    step *s = step_kernel(b, impl, "conv_depthwise_blocked", "conv_depthwise_blocked",
                          prelude(c, j, w->stride, conv_epilogue_prelude(c, j)));
    STEP_INTS(b, s, j->batch, j->groups);
    conv_blocked_map_args(b, s, j, h, w, packed);
    step_arg_int(b, s, tile_h);
    epilogue_args(c, s, &j->epilogue, j->dtype, j->y);
    conv_count_work(j, s);
    work_groups(c, s, work_ceil_div(h->out, tile_h), blocks, j->batch);
}
