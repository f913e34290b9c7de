/* SPDX-License-Identifier: Apache-2.0
 *
 * Offers Winograd's convolution algorithm (Lavin and Gray, "Fast Algorithms for Convolutional
 * Neural Networks", 2016) and chooses its tiling, as these implementations:
 *
 *   winograd_2x2, winograd_4x4   F(2x2, 3x3) and F(4x4, 3x3), for windows of 3x3
 *   winograd_polyphase_2x2       windows of 3x3 with stride 2, by phases: F(2, 2) where the window
 *                                has two taps in a phase (Yepez and Ko, "Stride 2 1-D, 2-D, and 3-D
 *                                Winograd for Convolutional Neural Networks", 2020)
 *   winograd_strided_4x4, _3x3   windows of 5x5 to 8x8 with stride 2 on images: F(4x4, 3x3) and
 *                                F(3x3, 4x4) after a space-to-depth transform
 *
 * The transforms of input tiles, of weights and of outputs are in cl/conv/winograd_simd.cl and
 * winograd_transform.clh.
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

/* Cost model of all forms: cycles of one core, summed over a work-group. A
 * vector has as many lanes (elements) as the device's vectors, each a different channel. Measured
 * on x86-64 with AVX-512 (vectors of 16 lanes), PoCL 3.1, one core, 2026-11-21; within 15 % of the
 * best times of ResNet-50's four shapes. Weights count as read from memory, as they are in a large
 * model; alone they would stay in the caches. Which form is chosen, or none, was compared in models
 * on AVX-512 and AVX2 (Zen 4), 2026-11-30. Checked by: build/tests/bench/cost_model winograd
 */
static const struct {
    double input_pixel_cycles, output_element_cycles, output_pixel_cycles, blocked_pixel_cycles;
    double row_cycles, register_tile_cycles, group_cycles;
    double weight_bytes_per_cycle, weight_line_cycles, packed_weight_cycles;
} cost = {
    .input_pixel_cycles = 9.0,     /* per vector of pixels: load and transpose */
    .output_element_cycles = 3.0,  /* per vector of M: load and output transform */
    .output_pixel_cycles = 12.0,   /* per vector of results: epilogue, transpose, store */
    .blocked_pixel_cycles = 4.0,   /* per vector of pixels or results, without transpose */
    .row_cycles = 1.2,             /* per row (two vectors) of a register tile: multiply-adds */
    .register_tile_cycles = 40.0,  /* per register tile: clear accumulators, store M */
    .group_cycles = 200.0,         /* per work-group: start, and ends of its loops */
    .weight_bytes_per_cycle = 5.0, /* weights read from memory, of which each core has a share */
    .weight_line_cycles = 15.0,    /* float16: transform of a line of side + 2 weights */
    /* per packed weight, where each run packs them; measured for float32 only */
    .packed_weight_cycles = 2.4,
};

/* Convolutions with fewer multiply-adds a run are computed directly: Winograd's algorithm would
 * save some microseconds of it, and its two programs take 0.2 s to compile. */
#define MIN_MACS ((double)(1 << 21))

/* F(side x side, taps x taps), with lengths along an axis. With a space-to-depth transform, `taps`
 * is half of the window, and its four phases are channels; winograd_polyphase_2x2 adds the phases,
 * which have up to two taps. */
typedef struct winograd_form {
    const char *impl;
    int64_t side, taps, stride;
    int64_t inputs;        /* pixels on which a tile depends */
    int64_t step;          /* pixels from one tile to the next */
    int64_t weights;       /* transformed weights */
    int64_t phases;        /* channels that the space-to-depth transform makes of one */
    double element_cycles; /* of the cost model, per vector of V: input transform and store */
} winograd_form;

static const winograd_form form_2x2 = {"winograd_2x2", 2, 3, 1, 4, 2, 4, 1, 5.0},
                           form_4x4 = {"winograd_4x4", 4, 3, 1, 6, 4, 6, 1, 5.0},
                           form_polyphase_2x2 =
                               {"winograd_polyphase_2x2", 2, 2, 2, 5, 4, 4, 1, 2.5},
                           form_strided_4x4 = {"winograd_strided_4x4", 4, 3, 2, 6, 4, 6, 4, 5.0},
                           form_strided_3x3 = {"winograd_strided_3x3", 3, 4, 2, 6, 3, 6, 4, 5.0};

/* The tiling of winograd_simd. area: inputs of a Winograd tile; channels: of the input, after the
 * space-to-depth transform. */
typedef struct simd_tiling {
    const winograd_form *form;
    int64_t area, channels, strip, tiles, slices, panels; /* of the convolution */
    int64_t block_tiles, group_panels;                    /* of a work-group */
    double cost;
} simd_tiling;

/* Returns P_CHANNELS: how many channels of each slice are multiplied. All but for images, so that
 * there is one program for all numbers of channels. */
static int64_t channels_of_slice(const lower_context *c, const simd_tiling *w)
{
    const int64_t lanes = work_simd_lanes(c);
    return w->form->phases == 1 ? lanes : work_min(w->channels, lanes);
}

/* Returns the bytes of P_VEC weights: transformed ones, or those of the window in float16. */
static double weight_bytes(const lower_context *c, const simd_tiling *w, clg_dtype dtype)
{
    const double vec = work_simd_lanes(c);
    return dtype == CLG_FLOAT32 ? (double)(w->form->weights * w->form->weights) * vec * 4.0
                                : 9.0 * vec * 2.0;
}

/* Returns the estimated cycles to transform P_VEC weights, which the kernel does in float16. */
static double transform_cost(const simd_tiling *w, clg_dtype dtype)
{
    return dtype == CLG_FLOAT32 ? 0 : (double)(w->form->side + 2) * cost.weight_line_cycles;
}

/* Returns the estimated cycles of a work-group: transforms of P_VEC channels of a tile, transposing
 * its pixels, multiplications, and reading weights. */
static double group_cost(const lower_context *c, const simd_tiling *w, const conv_job *j)
{
    const double tiles = (double)w->block_tiles;
    const double inner = (double)(w->slices * channels_of_slice(c, w));
    const double loaded = (double)(w->form->step * w->form->step);
    const double stored = (double)(w->form->side * w->form->side);
    const double load =
        j->blocked && w->form->phases == 1 ? cost.blocked_pixel_cycles : cost.input_pixel_cycles;
    const double store = j->blocked ? cost.blocked_pixel_cycles : cost.output_pixel_cycles;
    const double input =
        tiles * (double)w->slices * (w->form->element_cycles * (double)w->area + load * loaded);
    const double output = tiles * (double)(w->group_panels * SIMD_NRV) *
                          (cost.output_element_cycles * (double)w->area + store * stored);
    const double parts = (double)work_ceil_div(w->block_tiles, work_simd_rows(c));
    const double products =
        (double)(w->group_panels * w->area) *
        (tiles * inner * cost.row_cycles * SIMD_NRV / 2.0 + parts * cost.register_tile_cycles);
    const double vectors = (double)(w->group_panels * SIMD_NRV) * inner; /* of weights */
    const double computing = products + vectors * transform_cost(w, j->dtype);
    const double reading = vectors * weight_bytes(c, w, j->dtype) / cost.weight_bytes_per_cycle;
    /* Weights are prefetched while others are multiplied. */
    return input + output + (computing > reading ? computing : reading) + cost.group_cycles;
}

/* Returns the number of packed weights. */
static int64_t count_packed(const lower_context *c, const conv_job *j, const simd_tiling *w)
{
    const int64_t lanes = work_simd_lanes(c);
    const int64_t taps = j->dtype == CLG_FLOAT32 ? w->form->weights * w->form->weights : 9;
    return w->panels * taps * w->slices * lanes * lanes * SIMD_NRV;
}

/* Returns the tiling with the lowest estimated cost. */
static simd_tiling plan_tiling(const lower_context *c, const conv_job *j, const winograd_form *f)
{
    const int64_t lanes = work_simd_lanes(c), units = work_units(c), side = f->side;
    simd_tiling w = {
        .form = f, .area = f->inputs * f->inputs, .channels = j->ic * f->phases, .cost = -1};
    const int64_t rows = work_ceil_div(j->axes[1].out, side),
                  across = work_ceil_div(j->axes[2].out, side);
    const int64_t strips = work_ceil_div(across, SIMD_STRIP);
    w.strip = work_ceil_div(across, strips);
    w.tiles = j->batch * rows * strips * w.strip;
    w.slices = work_ceil_div(w.channels, lanes);
    w.panels = work_ceil_div(j->oc, lanes * SIMD_NRV);
    const int64_t max = work_min(SIMD_TILES, SIMD_V / (w.area * w.slices * lanes));
    simd_tiling best = w;
    for (int64_t groups = work_ceil_div(w.tiles, max > 0 ? max : 1); max > 0;) {
        w.block_tiles = work_ceil_div(w.tiles, groups);
        for (int64_t splits = 1; splits <= w.panels; splits *= 2) {
            w.group_panels = work_ceil_div(w.panels, splits);
            const int64_t all =
                work_ceil_div(w.tiles, w.block_tiles) * work_ceil_div(w.panels, w.group_panels);
            w.cost = group_cost(c, &w, j) * (double)work_ceil_div(all, units);
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
    const winograd_form *f = w->form;
    return prelude_text(&c->build,
                        "P_T=%d P_FMA=%d P_VEC=%d P_MR=%d P_NRV=%d P_M=%d P_R=%d P_STRIDE=%d "
                        "P_STRIP=%d P_V=%d P_TILES=%d P_CHANNELS=%d P_BLOCKED=%d %s",
                        (int)j->dtype, work_fma(c), work_simd_lanes(c), work_simd_rows(c), SIMD_NRV,
                        (int)f->side, (int)f->taps, (int)f->stride, SIMD_STRIP, SIMD_V, SIMD_TILES,
                        (int)channels_of_slice(c, w), j->blocked, epilogue);
}

static operand pack_weights(lower_context *c, candidate *impl, const conv_job *j,
                            const simd_tiling *w)
{
    step_builder *b = &c->build;
    const bool transformed = j->dtype == CLG_FLOAT32;
    const int64_t lanes = work_simd_lanes(c), nr = lanes * SIMD_NRV;
    const int64_t inner = w->slices * lanes, n = count_packed(c, j, w);
    char recipe[160];
    (void)snprintf(recipe, sizeof recipe,
                   "winograd_simd%s side=%d stride=%d nr=%d oc=%lld ic=%lld kernel=%lldx%lld",
                   j->is_rotated ? " rotated" : "", transformed ? (int)w->form->side : 0,
                   (int)w->form->stride, (int)nr, (long long)j->oc, (long long)j->ic,
                   (long long)j->axes[1].kernel, (long long)j->axes[2].kernel);
    const operand to = step_packing(b, impl, j->weight, recipe, (size_t)n * dtype_size(j->dtype));
    conv_job any = *j;
    any.blocked = false; /* packing depends neither on the layout of x nor on P_CHANNELS */
    simd_tiling full = *w;
    full.channels = full.slices * lanes;
    step *s = step_pack_kernel(b, impl, to, "winograd_simd", "winograd_pack_w",
                               simd_prelude(c, &any, &full, "P_BIAS=0 P_RESIDUAL=0 P_ACT=0"));
    STEP_INTS(b, s, j->oc, j->ic, j->axes[1].kernel, j->axes[2].kernel);
    const conv_weight_strides from = conv_weight_strides_of(j);
    STEP_BUFFERS(b, s, {from.first, j->dtype});
    STEP_LONGS(b, s, from.by_output, from.by_input, from.by_tap);
    STEP_BUFFERS(b, s, {to, j->dtype});
    work_range_2d(c, s, w->panels, 1, work_ceil_div(inner, 16), 1);
    return to;
}

static void simd_candidate(lower_context *c, const conv_job *j, const winograd_form *f)
{
    step_builder *b = &c->build;
    const simd_tiling w = plan_tiling(c, j, f);
    if (w.cost < 0 || w.block_tiles < 1 || w.tiles > INT32_MAX / SIMD_TILES) return;
    candidate *impl = step_candidate(b, f->impl);
    impl->cost = w.cost;
    if (conv_count_macs(j) < MIN_MACS) impl->cost += MIN_MACS; /* cycles: more than a direct one */
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

/* Returns the form for this side of a window with stride 2, or NULL. */
static const winograd_form *strided_form(int64_t kernel)
{
    return kernel == 5 || kernel == 6   ? &form_strided_4x4
           : kernel == 7 || kernel == 8 ? &form_strided_3x3
                                        : NULL;
}

/* Adds the forms for windows of 3x3 with stride 1. */
static void add_plain(lower_context *c, const conv_job *j)
{
    if (j->winograd != 2) simd_candidate(c, j, &form_4x4);
    if (j->winograd != 4) simd_candidate(c, j, &form_2x2);
}

/* Adds the form for windows of 3x3 with stride 2, on channel-blocked feature maps. */
static void add_polyphase(lower_context *c, const conv_job *j, bool input_is_blocked)
{
    const bool is_wanted = j->winograd == 1 || j->winograd == form_polyphase_2x2.side;
    if (is_wanted && input_is_blocked && j->blocked && j->dtype == CLG_FLOAT32 && !j->is_rotated)
        simd_candidate(c, j, &form_polyphase_2x2);
}

/* Adds the form for larger windows with stride 2, on images in NCHW order. */
static void add_strided(lower_context *c, const conv_job *j, bool input_is_blocked)
{
    const winograd_form *f = strided_form(j->axes[1].kernel);
    const bool is_wanted = j->winograd == 1 || (f && j->winograd == f->side);
    if (f && f == strided_form(j->axes[2].kernel) && is_wanted && j->dtype == CLG_FLOAT32 &&
        !input_is_blocked && !j->is_rotated)
        simd_candidate(c, j, f);
}

void winograd_add(lower_context *c, const conv_job *j, bool input_is_blocked)
{
    const window_axis *depth = &j->axes[0], *h = &j->axes[1], *w = &j->axes[2];
    if (j->winograd == 0 || (j->dtype != CLG_FLOAT32 && j->dtype != CLG_FLOAT16) ||
        j->groups != 1 || j->batch == 0 || j->ic == 0 || depth->in != 1 || depth->out != 1 ||
        depth->kernel != 1 || h->dilation != 1 || w->dilation != 1 || h->out == 0 || w->out == 0 ||
        h->stride != w->stride)
        return;
    if (h->stride == 1 && h->kernel == 3 && w->kernel == 3 && input_is_blocked == j->blocked)
        add_plain(c, j);
    else if (h->stride == 2 && h->kernel == 3 && w->kernel == 3)
        add_polyphase(c, j, input_is_blocked);
    else if (h->stride == 2)
        add_strided(c, j, input_is_blocked);
}
