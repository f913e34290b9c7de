/* SPDX-License-Identifier: Apache-2.0
 *
 * Lowers a convolution for CPUs: the implementations conv_simd and conv_depthwise_simd, their
 * tiling and packing. Kernels: cl/conv/conv_simd.cl.
 */
#include "ops/conv/conv_impls.h"
#include "ops/conv/conv_tiling.h"
#include "ops/lowering/pack_panels.h"
#include "tensor/dtype.h"

#include <stdio.h>

/* Sizes of the kernels' private memory per work-group, compiled into them; it should stay in an L2
 * cache of 1 MB. Estimated, not measured. */
#define SIMD_PATCH 65536 /* P_PATCH: elements of copied pixels, 256 KiB of float32 */
#define SIMD_ACC 32768   /* P_ACC: accumulators kept while the patch is refilled, 128 KiB */

/* Cost model of conv_simd. Its total was within 15 % of the best times of ResNet-50's four 3x3
 * shapes on x86-64 with AVX-512 (vectors of 16 lanes), PoCL 3.1, 2026-11-21; the constants are
 * estimates, not measured individually. Checked by: build/tests/bench/cost_model conv */
static const conv_tiling_costs cost = {
    .row_cycles = 1,            /* two multiply-adds start per cycle */
    .register_tile_cycles = 30, /* clear and store accumulators */
    .fill_vector_cycles = 2,    /* a load and a store, often unaligned */
    .fill_line_cycles = 12,     /* zeros at the line's ends, address computation */
    .store_vector_cycles = 2,   /* epilogue and store */
    .store_line_cycles = 15,    /* the line's last, partial vector; address computation */
    .group_cycles = 100,        /* start of a work-group, ends of its loops */
};

/* Cycles to pack a weight, where each run packs them: 1.8 % of the time of ResNet-18's steps on the
 * machine above, 2026-11-27. */
#define PACKED_WEIGHT_CYCLES 10.0

static const char *simd_prelude(lower_context *c, const conv_job *j, const char *epilogue)
{
    return prelude_text(
        &c->build, "P_T=%d P_FMA=%d P_VEC=%d P_MR=%d P_NRV=2 P_PATCH=%d P_ACC=%d %s", (int)j->dtype,
        work_fma(c), work_simd_lanes(c), work_simd_rows(c), SIMD_PATCH, SIMD_ACC, epilogue);
}

static conv_tiling_job tiling_job(const lower_context *c, const conv_job *j)
{
    return (conv_tiling_job){.axes = j->axes,
                             .oc = j->oc,
                             .slices = j->axes[0].kernel * j->ic,
                             .planes = j->batch * j->groups,
                             .patch = SIMD_PATCH,
                             .sums = SIMD_ACC,
                             .lanes = work_simd_lanes(c),
                             .rows = work_simd_rows(c),
                             .costs = &cost};
}

static int64_t count_packed(const conv_job *j, const conv_tiling *t)
{
    return j->groups * t->tiles * t->tile_m * j->ic * window_count_taps(j->axes);
}

/* Appends the packing of the weights to [groups][tiles][kh*kw][kd*ic][tile_m]; returns the packed
 * operand. */
static operand simd_weights(lower_context *c, candidate *impl, const conv_job *j,
                            const conv_tiling *t)
{
    const window_axis *a = j->axes;
    const int64_t taps = a[1].kernel * a[2].kernel;
    char recipe[160];
    (void)snprintf(recipe, sizeof recipe,
                   "conv_simd%s tile=%lld groups=%lld oc=%lld ic=%lld kd=%lld taps=%lld",
                   j->is_rotated ? " rotated" : "", (long long)t->tile_m, (long long)j->groups,
                   (long long)j->oc, (long long)j->ic, (long long)a[0].kernel, (long long)taps);
    const int64_t n = count_packed(j, t);
    const conv_weight_strides w = conv_weight_strides_of(j);
    const panel_job panels = {
        .from = w.first,
        .to = step_packing(&c->build, impl, j->weight, recipe, (size_t)n * dtype_size(j->dtype)),
        .dtype = j->dtype,
        .batch = j->groups,
        .batch_in = j->groups,
        .b1 = w.by_group,
        .lines = j->oc,
        .width = t->tile_m,
        .by_line = w.by_output,
        .slices = taps,
        .by_slice = w.by_tap,
        .rows = a[0].kernel,
        .by_row = taps * w.by_tap,
        .columns = 1,
        .depth = j->ic,
        .channels = taps * j->ic, /* each tap is a slice, in which all channels exist */
        .by_channel = w.by_input};
    pack_panels(c, impl, &panels);
    return panels.to;
}

void conv_add_simd(lower_context *c, const conv_job *j)
{
    step_builder *b = &c->build;
    const conv_tiling_job tiling = tiling_job(c, j);
    conv_tiling t;
    if (j->ic == 0 || j->groups > WORK_MAX_ITEMS || !conv_tiling_find(c, &tiling, &t)) return;
    candidate *impl = step_candidate(b, "conv_simd");
    impl->cost = j->winograd > 1 ? 0 : t.cost;
    if (j->winograd <= 1 && !j->weight_constant)
        impl->cost += PACKED_WEIGHT_CYCLES * (double)count_packed(j, &t) / work_units(c);
    const operand packed = simd_weights(c, impl, j, &t);
    step *s = step_kernel(b, impl, "conv_simd", "conv_simd",
                          simd_prelude(c, j, conv_epilogue_prelude(c, j)));
    STEP_INTS(b, s, j->batch, j->groups, j->ic, j->oc);
    window_args(b, s, j->axes);
    conv_image_args(b, s, j, packed);
    STEP_INTS(b, s, t.tile_m, t.group_tiles, t.tile_h, t.tile_w);
    epilogue_args(c, s, &j->epilogue, j->dtype, j->y);
    conv_count_work(j, s);
    work_groups(c, s, conv_tiling_count(j->axes, t.tile_h, t.tile_w),
                work_ceil_div(t.tiles, t.group_tiles), j->batch * j->groups);
}

void conv_add_depthwise_simd(lower_context *c, const conv_job *j)
{
    step_builder *b = &c->build;
    const conv_tiling_job tiling = tiling_job(c, j);
    conv_tiling t;
    if (!conv_tiling_depthwise(c, &tiling, j->groups, &t)) return;
    step *s = step_kernel(b, step_candidate(b, "conv_depthwise_simd"), "conv_simd",
                          "conv_depthwise_simd", simd_prelude(c, j, conv_epilogue_prelude(c, j)));
    STEP_INTS(b, s, j->batch, j->groups, j->oc);
    window_args(b, s, j->axes);
    conv_image_args(b, s, j, operand_input(j->weight));
    STEP_INTS(b, s, t.group_tiles, t.tile_h, t.tile_w);
    epilogue_args(c, s, &j->epilogue, j->dtype, j->y);
    conv_count_work(j, s);
    work_groups(c, s, conv_tiling_count(j->axes, t.tile_h, t.tile_w),
                work_ceil_div(j->groups, t.group_tiles), j->batch);
}
