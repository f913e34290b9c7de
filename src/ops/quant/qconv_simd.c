/* SPDX-License-Identifier: Apache-2.0
 *
 * Lowers 8-bit convolutions for CPUs: chooses the tiling, packs weights and adds arguments.
 * Kernels: cl/quant/qconv_simd.cl.
 */
#include "ops/conv/conv_tiling.h"
#include "ops/lowering/dot.h"
#include "ops/quant/qconv.h"

#include <stdio.h>

/* Sizes of a work-group's private arrays, compiled into the kernels as in conv_simd.c. Together
 * they should fit an L2 cache of 1 MB. A word has 32 bits: one float, two int16 or four int8
 * channels of a pixel. Estimated, not measured. */
#define PATCH 65536 /* P_PATCH: words of copied pixels, 256 KiB */
#define SUMS 32768  /* P_ACC: accumulators kept while the patch is refilled, 128 KiB */
/* DOT_DEPTH: the largest kernel volume of a depthwise convolution, whose sums are then exact in
 * float */
#define MAX_TAPS 256

/* Cost models of qconv_simd_float, _short and _byte, which compare tilings of each kernel; the
 * choice among the kernels does not depend on them. Written for x86-64 with AVX-512 and VNNI
 * (vectors of 16 lanes), PoCL 3.1, 2026-11-21; the constants are estimates, not measured
 * individually. Checked by:
 *     build/tests/bench/cost_model qconv */
static const conv_tiling_costs cost_of_floats = {
    .row_cycles = 1,            /* two multiply-adds start in a cycle */
    .register_tile_cycles = 30, /* clear, and store accumulators */
    .fill_vector_cycles = 4,    /* load, convert and store one channel */
    .fill_line_cycles = 25,     /* zero points at its ends, and addresses */
    .store_vector_cycles = 8,   /* compensate zero points, requantize, store bytes */
    .store_line_cycles = 20,    /* its last, partial vector, and addresses */
    .group_cycles = 100,        /* start, and end of its loops */
};
static const conv_tiling_costs cost_of_shorts = {
    .row_cycles = 2,            /* each dot product is a multiplication and an addition */
    .register_tile_cycles = 30, /* as above */
    .fill_vector_cycles = 4,    /* interleave two channels */
    .fill_line_cycles = 25,     /* as above */
    .store_vector_cycles = 8,   /* as above */
    .store_line_cycles = 20,    /* as above */
    .group_cycles = 100,        /* as above */
};
static const conv_tiling_costs cost_of_bytes = {
    .row_cycles = 1,            /* two vpdpbusd start in a cycle */
    .register_tile_cycles = 30, /* as above */
    .fill_vector_cycles = 8,    /* interleave four channels */
    .fill_line_cycles = 25,     /* as above */
    .store_vector_cycles = 8,   /* as above */
    .store_line_cycles = 20,    /* as above */
    .group_cycles = 100,        /* as above */
};

static bool is_depthwise(const qconv_job *j)
{
    return j->ic == 1 && j->groups > 1 && j->oc <= 4 && window_count_taps(j->axes) <= MAX_TAPS;
}

/* Returns whether the sizes fit the 32-bit counters of these kernels. Larger convolutions use
 * cl/quant/qconv.cl. */
static bool counts_fit(const qconv_job *j)
{
    const window_axis *a = j->axes;
    const int64_t max = INT32_MAX;
    int64_t depth = j->ic, pixels = 1;
    for (int i = 0; i < WINDOW_MAX_AXES; i++) {
        if (a[i].kernel > max / depth || a[i].out > max / pixels) return false;
        depth *= a[i].kernel;
        pixels *= a[i].out;
    }
    return j->groups <= WORK_MAX_ITEMS && j->batch <= max / j->groups && j->oc <= max / j->groups;
}

/* Turns the image into a single line if the kernel is 1x1, with stride 1 and no padding. */
static void join_lines(qconv_job *j)
{
    int64_t pixels = 1;
    for (int i = 0; i < WINDOW_MAX_AXES; i++) {
        const window_axis *a = &j->axes[i];
        if (a->kernel != 1 || a->stride != 1 || a->pad_begin != 0 || a->pad_end != 0) return;
        pixels *= a->out;
    }
    const window_axis one = {.in = 1, .out = 1, .kernel = 1, .stride = 1, .dilation = 1};
    for (int i = 0; i < WINDOW_MAX_AXES; i++) j->axes[i] = one;
    j->axes[WINDOW_MAX_AXES - 1].in = j->axes[WINDOW_MAX_AXES - 1].out = pixels;
}

static conv_tiling_job tiling_job(const lower_context *c, const qconv_job *j, dot_unit unit)
{
    return (conv_tiling_job){.axes = j->axes,
                             .oc = j->oc,
                             .slices = j->axes[0].kernel * work_ceil_div(j->ic, unit),
                             .planes = j->batch * j->groups,
                             .patch = PATCH,
                             .sums = SUMS,
                             .spare_rows = 1,
                             .lanes = work_simd_lanes(c),
                             .rows = work_simd_rows(c),
                             .costs = unit == DOT_BYTE    ? &cost_of_bytes
                                      : unit == DOT_SHORT ? &cost_of_shorts
                                                          : &cost_of_floats};
}

static const char *prelude(lower_context *c, const qconv_job *j, dot_unit unit, bool for_weights)
{
    const bool bias = j->at->bias && lower_has_input(c, j->at->bias) && !for_weights;
    return prelude_text(&c->build,
                        "%s P_PATCH=%d P_ACC=%d P_A=%d P_B=%d P_Y=%d P_FP64=0 P_INDEX=32 "
                        "P_ZERO_A=%d P_ZERO_B=%d P_BIAS=%d",
                        dot_prelude(c, unit), PATCH, SUMS,
                        for_weights ? CLG_UINT8 : (int)j->x_dtype, (int)j->w_dtype,
                        for_weights ? CLG_INT32 : (int)j->y_dtype,
                        !for_weights && lower_has_input(c, j->at->x_zero),
                        !for_weights && lower_has_input(c, j->at->w_zero), bias);
}

static bool count_bytes(const qconv_job *j, const conv_tiling *t, dot_unit unit, size_t *out)
{
    const window_axis *a = j->axes;
    const int64_t words = a[0].kernel * work_ceil_div(j->ic, unit) * a[1].kernel * a[2].kernel + 1;
    const int64_t rows = j->groups * t->tiles * t->tile_m;
    return rows <= INT32_MAX && dtype_bytes(CLG_INT32, rows * words, out);
}

/* Appends the packing of the weights for qconv_simd, by qconv_pack_w: its program is the same for
 * all epilogues. */
static operand pack_weights(lower_context *c, candidate *impl, const qconv_job *j,
                            const conv_tiling *t, dot_unit unit, size_t size_bytes)
{
    step_builder *b = &c->build;
    const window_axis *a = j->axes;
    const int64_t taps = a[1].kernel * a[2].kernel;
    char recipe[160];
    (void)snprintf(recipe, sizeof recipe,
                   "qconv_simd unit=%d tile=%lld groups=%lld oc=%lld ic=%lld kd=%lld taps=%lld",
                   (int)unit, (long long)t->tile_m, (long long)j->groups, (long long)j->oc,
                   (long long)j->ic, (long long)a[0].kernel, (long long)taps);
    const operand to = step_packing(b, impl, j->at->w, recipe, size_bytes);
    step *s =
        step_pack_kernel(b, impl, to, "qconv_simd", "qconv_pack_w", prelude(c, j, unit, true));
    STEP_INTS(b, s, j->oc, j->ic, a[0].kernel, taps);
    STEP_BUFFERS(b, s, {operand_input(j->at->w), j->w_dtype}, {to, CLG_INT32});
    step_arg_int(b, s, t->tile_m);
    work_groups(c, s, t->tiles, j->groups, 1);
    return to;
}

static void set_range(lower_context *c, step *s, const qconv_job *j, const conv_tiling *t,
                      int64_t blocks, int64_t planes)
{
    s->flops = qconv_flops(j);
    work_groups(c, s, conv_tiling_count(j->axes, t->tile_h, t->tile_w), blocks, planes);
}

static void add_tiled(lower_context *c, const qconv_job *j, dot_unit unit, const char *name)
{
    step_builder *b = &c->build;
    const conv_tiling_job tiling = tiling_job(c, j, unit);
    conv_tiling t;
    size_t size_bytes;
    if (!conv_tiling_find(c, &tiling, &t) || !count_bytes(j, &t, unit, &size_bytes)) return;
    candidate *impl = step_candidate(b, name);
    impl->tiling_cost = t.cost;
    const operand packed = pack_weights(c, impl, j, &t, unit, size_bytes);
    step *s = step_kernel(b, impl, "qconv_simd", "qconv_simd", prelude(c, j, unit, false));
    qconv_size_args(b, s, j);
    STEP_BUFFERS(b, s, {operand_input(j->at->x), j->x_dtype}, {packed, CLG_INT32},
                 {operand_output(0), j->y_dtype});
    STEP_INTS(b, s, t.tile_m, t.group_tiles, t.tile_h, t.tile_w);
    qconv_last_args(c, s, j);
    set_range(c, s, j, &t, work_ceil_div(t.tiles, t.group_tiles), j->batch * j->groups);
}

static void add_depthwise(lower_context *c, const qconv_job *j)
{
    step_builder *b = &c->build;
    const conv_tiling_job tiling = tiling_job(c, j, DOT_FLOAT);
    conv_tiling t;
    if (!conv_tiling_depthwise(c, &tiling, j->groups, &t)) return;
    step *s = step_kernel(b, step_candidate(b, "qconv_depthwise_simd"), "qconv_simd",
                          "qconv_depthwise_simd", prelude(c, j, DOT_FLOAT, false));
    STEP_INTS(b, s, j->batch, j->groups, j->oc);
    window_args(b, s, j->axes);
    STEP_BUFFERS(b, s, {operand_input(j->at->x), j->x_dtype}, {operand_input(j->at->w), j->w_dtype},
                 {operand_output(0), j->y_dtype});
    STEP_INTS(b, s, t.group_tiles, t.tile_h, t.tile_w);
    qconv_last_args(c, s, j);
    set_range(c, s, j, &t, work_ceil_div(j->groups, t.group_tiles), j->batch);
}

void qconv_simd_add(lower_context *c, const qconv_job *j, bool fast)
{
    static const struct {
        dot_unit unit;
        const char *name;
    } impls[] = {{DOT_BYTE, "qconv_simd_byte"},
                 {DOT_SHORT, "qconv_simd_short"},
                 {DOT_FLOAT, "qconv_simd_float"}};
    qconv_job joined = *j;
    if (j->ic == 0 || j->batch == 0 || j->oc == 0 || !counts_fit(j)) return;
    if (is_depthwise(j)) {
        if (fast) add_depthwise(c, j);
        return;
    }
    join_lines(&joined);
    for (size_t i = 0; i < sizeof impls / sizeof *impls; i++)
        if (dot_is_fast(c, impls[i].unit) == fast)
            add_tiled(c, &joined, impls[i].unit, impls[i].name);
}
