/* SPDX-License-Identifier: Apache-2.0
 *
 * Offers Winograd's convolution algorithm for 3x3 windows, F(2x2, 3x3) and F(4x4, 3x3) (Lavin and
 * Gray, "Fast Algorithms for Convolutional Neural Networks", 2016), as the implementations
 * winograd_2x2 and winograd_4x4, and chooses their tiling. The Winograd transforms of input tiles,
 * of weights and of outputs are in cl/conv/winograd_simd.cl and winograd_transform.clh.
 */
#include "ops/conv/winograd.h"

#include "ops/conv/conv_impls.h"
#include "ops/lowering/work.h"

#include <stdio.h>

/* Sizes of the kernel winograd_simd, fixed when it is compiled. V, the transformed pixels, and M,
 * the sums of one panel, occupy 1 MB and 0.3 MB of private memory: together they fit in an L2 cache
 * of 2 MB, which the machine of the cost model below has. With two vectors across, a register tile
 * of 12 rows has 24 accumulators of 32 registers, and one of 6 rows has 12 of 16. */
#define SIMD_STRIP 32 /* P_STRIP: tiles of a row that are transformed together */
#define SIMD_V 262144 /* P_V: floats of V */
#define SIMD_TILES 64 /* P_TILES: tiles of a work-group, which loads each panel of weights once */
#define SIMD_NRV 2    /* P_NRV: vectors of output channels of a register tile */

/* Cost model of winograd_2x2 and winograd_4x4: cycles of one core, summed over a work-group. A
 * vector has as many lanes (elements) as the device's vectors, each a different channel. Measured
 * on x86-64 with AVX-512 (vectors of 16 lanes), PoCL 3.1, one core, 2026-11-21; within 15 % of the
 * best times of ResNet-50's four shapes, but a third too low for 4x4 at 7 x 7. With vectors of 8
 * lanes or fewer: estimated, not measured. Checked by: build/tests/bench/cost_model winograd */
static const struct {
    double input_element_cycles, input_pixel_cycles, output_element_cycles, output_pixel_cycles;
    double row_cycles, register_tile_cycles, group_cycles;
    double weight_bytes_per_cycle, weight_line_cycles, packed_weight_cycles;
} cost = {
    .input_element_cycles = 5.0, /* per vector of V: input transform and store */
    /* per vector of pixels: load, and transpose if x is not channel-blocked */
    .input_pixel_cycles = 9.0,
    .output_element_cycles = 3.0,  /* per vector of M: load and output transform */
    .output_pixel_cycles = 12.0,   /* per vector of results: epilogue, transpose, store */
    .row_cycles = 1.2,             /* per row (two vectors) of a register tile: multiply-adds */
    .register_tile_cycles = 40.0,  /* per register tile: clear accumulators, store M */
    .group_cycles = 200.0,         /* per work-group: start, and ends of its loops */
    .weight_bytes_per_cycle = 8.0, /* weights read from the last-level cache or memory */
    .weight_line_cycles = 15.0,    /* float16: transform of a line of side + 2 weights */
    /* per packed weight, where each run packs them; measured for float32 only */
    .packed_weight_cycles = 2.4,
};

/* The tiling of winograd_simd. side: outputs of a Winograd tile in each direction; area: its
 * inputs, (side + 2)^2. */
typedef struct simd_tiling {
    int64_t side, area, strip, tiles, slices, panels; /* of the convolution */
    int64_t block_tiles, group_panels;                /* of a work-group */
    double cost;
} simd_tiling;

/* Returns the estimated cycles to read P_VEC weights, which are transformed already or, in float16,
 * are transformed by the kernel. */
static double weight_cost(const lower_context *c, const simd_tiling *w, clg_dtype dtype)
{
    const double vec = work_simd_lanes(c), area = (double)w->area;
    if (dtype == CLG_FLOAT32) return area * vec * 4.0 / cost.weight_bytes_per_cycle;
    return 9.0 * vec * 2.0 / cost.weight_bytes_per_cycle +
           (double)(w->side + 2) * cost.weight_line_cycles;
}

/* Returns the estimated cycles of a work-group: transforms of P_VEC channels of a tile, transposing
 * its pixels, multiplications, and reading weights. */
static double group_cost(const lower_context *c, const simd_tiling *w, clg_dtype dtype)
{
    const double vec = work_simd_lanes(c), tiles = (double)w->block_tiles;
    const double inner = (double)w->slices * vec, transposed = (double)(w->side * w->side);
    const double input =
        tiles * (double)w->slices *
        (cost.input_element_cycles * (double)w->area + cost.input_pixel_cycles * transposed);
    const double output =
        tiles * (double)(w->group_panels * SIMD_NRV) *
        (cost.output_element_cycles * (double)w->area + cost.output_pixel_cycles * transposed);
    const double parts = (double)work_ceil_div(w->block_tiles, work_simd_rows(c));
    const double products =
        (double)(w->group_panels * w->area) *
        (tiles * inner * cost.row_cycles * SIMD_NRV / 2.0 + parts * cost.register_tile_cycles);
    const double weights = (double)(w->group_panels * SIMD_NRV) * inner * weight_cost(c, w, dtype);
    return input + output + products + weights + cost.group_cycles;
}

/* Returns the number of packed weights. */
static int64_t count_packed(const lower_context *c, const conv_job *j, const simd_tiling *w)
{
    const int64_t lanes = work_simd_lanes(c), taps = j->dtype == CLG_FLOAT32 ? w->area : 9;
    return w->panels * taps * w->slices * lanes * lanes * SIMD_NRV;
}

/* Returns the tiling with the lowest estimated cost for Winograd tiles of side x side outputs. */
static simd_tiling plan_tiling(const lower_context *c, const conv_job *j, int64_t side)
{
    const int64_t lanes = work_simd_lanes(c), units = work_units(c);
    simd_tiling w = {.side = side, .area = (side + 2) * (side + 2), .cost = -1};
    const int64_t rows = work_ceil_div(j->axes[1].out, side),
                  across = work_ceil_div(j->axes[2].out, side);
    const int64_t strips = work_ceil_div(across, SIMD_STRIP);
    w.strip = work_ceil_div(across, strips);
    w.tiles = j->batch * rows * strips * w.strip;
    w.slices = work_ceil_div(j->ic, lanes);
    w.panels = work_ceil_div(j->oc, lanes * SIMD_NRV);
    const int64_t max = work_min(SIMD_TILES, SIMD_V / (w.area * w.slices * lanes));
    simd_tiling best = w;
    for (int64_t groups = work_ceil_div(w.tiles, max > 0 ? max : 1); max > 0;) {
        w.block_tiles = work_ceil_div(w.tiles, groups);
        for (int64_t splits = 1; splits <= w.panels; splits *= 2) {
            w.group_panels = work_ceil_div(w.panels, splits);
            const int64_t all =
                work_ceil_div(w.tiles, w.block_tiles) * work_ceil_div(w.panels, w.group_panels);
            w.cost = group_cost(c, &w, j->dtype) * (double)work_ceil_div(all, units);
            if (w.cost < c->trial.min_cost) continue;
            if (best.cost < 0 || w.cost < best.cost) best = w;
        }
        if (w.block_tiles <= work_simd_rows(c)) break;
        groups = work_ceil_div(w.tiles, w.block_tiles - 1);
    }
    return best;
}

static const char *simd_prelude(lower_context *c, const conv_job *j, const simd_tiling *w,
                                const char *epilogue)
{
    return prelude_text(&c->build,
                        "P_T=%d P_FMA=%d P_VEC=%d P_MR=%d P_NRV=%d P_M=%d P_STRIP=%d P_V=%d "
                        "P_TILES=%d P_BLOCKED=%d %s",
                        (int)j->dtype, work_fma(c), work_simd_lanes(c), work_simd_rows(c), SIMD_NRV,
                        (int)w->side, SIMD_STRIP, SIMD_V, SIMD_TILES, j->blocked, epilogue);
}

static operand pack_weights(lower_context *c, candidate *impl, const conv_job *j,
                            const simd_tiling *w)
{
    step_builder *b = &c->build;
    const bool transformed = j->dtype == CLG_FLOAT32;
    const int64_t lanes = work_simd_lanes(c), nr = lanes * SIMD_NRV;
    const int64_t inner = w->slices * lanes, n = count_packed(c, j, w);
    char recipe[96];
    (void)snprintf(recipe, sizeof recipe, "winograd_simd%s side=%d nr=%d oc=%lld ic=%lld",
                   j->is_rotated ? " rotated" : "", transformed ? (int)w->side : 0, (int)nr,
                   (long long)j->oc, (long long)j->ic);
    const operand to = step_packing(b, impl, j->weight, recipe, (size_t)n * dtype_size(j->dtype));
    conv_job any = *j;
    any.blocked = false; /* packing does not depend on the layout of x: one program */
    step *s = step_pack_kernel(b, impl, to, "winograd_simd", "winograd_pack_w",
                               simd_prelude(c, &any, w, "P_BIAS=0 P_RESIDUAL=0 P_ACT=0"));
    STEP_INTS(b, s, j->oc, j->ic);
    conv_weight_args(b, s, j);
    STEP_BUFFERS(b, s, {to, j->dtype});
    work_range_2d(c, s, w->panels, 1, work_ceil_div(inner, 16), 1);
    return to;
}

static void simd_candidate(lower_context *c, const conv_job *j, int64_t side)
{
    step_builder *b = &c->build;
    const simd_tiling w = plan_tiling(c, j, side);
    if (w.cost < 0 || w.block_tiles < 1 || w.tiles > INT32_MAX / SIMD_TILES) return;
    candidate *impl = step_candidate(b, side == 2 ? "winograd_2x2" : "winograd_4x4");
    impl->cost = w.cost;
    if (!j->weight_constant)
        impl->cost += cost.packed_weight_cycles * (double)count_packed(c, j, &w) / work_units(c);
    const operand packed = pack_weights(c, impl, j, &w);
    step *s = step_kernel(b, impl, "winograd_simd", "winograd_simd",
                          simd_prelude(c, j, &w, conv_epilogue_prelude(c, j)));
    const window_axis *a = j->axes;
    STEP_INTS(b, s, j->batch, j->ic, j->oc, a[1].in, a[2].in, a[1].out, a[2].out, a[1].pad_begin,
              a[2].pad_begin);
    STEP_BUFFERS(b, s, {j->x, j->dtype}, {packed, j->dtype}, {j->y, j->dtype});
    STEP_INTS(b, s, w.strip, w.block_tiles, w.group_panels);
    epilogue_args(c, s, &j->epilogue, j->dtype, j->y);
    conv_count_work(j, s);
    work_range_2d(c, s, work_ceil_div(w.tiles, w.block_tiles), 1,
                  work_ceil_div(w.panels, w.group_panels), 1);
}

void winograd_add(lower_context *c, const conv_job *j)
{
    const window_axis *depth = &j->axes[0];
    if (j->winograd == 0 || (j->dtype != CLG_FLOAT32 && j->dtype != CLG_FLOAT16) ||
        j->groups != 1 || j->batch == 0 || j->ic == 0 || depth->in != 1 || depth->out != 1 ||
        depth->kernel != 1)
        return;
    for (int i = 1; i < 3; i++) {
        const window_axis *a = &j->axes[i];
        if (a->kernel != 3 || a->stride != 1 || a->dilation != 1 || a->out == 0) return;
    }
    if (j->winograd != 2) simd_candidate(c, j, 4);
    if (j->winograd != 4) simd_candidate(c, j, 2);
}
