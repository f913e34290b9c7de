/* SPDX-License-Identifier: Apache-2.0
 *
 * Lowers a convolution of feature maps in the channel-blocked layout (nChw16c) to a direct kernel
 * with packed weights: the implementation conv_blocked, its tiling and cost. Kernel:
 * cl/conv/conv_blocked.cl.
 */
#include "ops/conv/conv_blocked.h"

#include "ops/lowering/pack_panels.h"

#include <stdio.h>

/* Sizes of the kernel. PATCH and ACC are compiled into it: private memory of a work-group, which
 * should stay in an L2 cache of 1 MB. Estimated, not measured. */
#define PATCH 65536 /* P_PATCH: floats of copied pixels, 256 KiB */
#define ACC 65536   /* P_ACC: accumulators kept between chunks of weights, 256 KiB */
#define CHUNK 8192  /* floats of weights in a chunk: 32 KiB, an L1 cache */
/* Slices of a chunk. A register tile reads a pixel of each in turn, which are a feature map apart:
 * with more of them than the processor prefetches, each is a miss. Measured on AMD Zen 3 (AVX2),
 * PoCL 3.1, 2026-11-29: with 8, ResNet-50 took 0.88 of the time with 32, at batch 16 0.79, and
 * DenseNet-121 0.81; 4 and 6 were within 5 % of 8. With SSE, 4 to 6 were best: 0.90 and 0.90 at
 * batch 1. With AVX-512 (Zen 4), where at most 16 fit, ten models took 0.99 to 1.01 of the time. */
#define MAX_SLICES 8

/* Cost model of conv_blocked: cycles of one core, summed over a work-group. A vector has as many
 * lanes (elements) as the device's vectors, each a different channel; a row of a register tile is
 * two vectors and takes one cycle. Written on x86-64 with AVX-512 (vectors of 16 lanes), PoCL 3.1,
 * 2026-11-22; the constants are estimates, not measured individually. Checked by:
 * build/tests/bench/cost_model blocked */
static const struct {
    int64_t min_rows;
    double fill_vector_cycles, prologue_vector_cycles, register_tile_cycles, weight_bytes_per_cycle;
    double store_vector_cycles, group_cycles, waiting_groups;
} cost = {
    /* a register tile with fewer rows takes as long: multiply-adds have a latency of 4 cycles and 2
     * start per cycle, so that 8 accumulators are needed to hide it */
    .min_rows = 4,
    .fill_vector_cycles = 1.5, /* per vector of copied pixels */
    /* the same with a prologue: DenseNet-121 takes 22.3 ms with 1.5, 21.6 with 3, 21.2 to 21.5 with
     * 6 to 25 (AVX-512, 2026-11-30) */
    .prologue_vector_cycles = 6.0,
    .register_tile_cycles = 25.0,   /* per register tile and chunk: load and store accumulators */
    .weight_bytes_per_cycle = 12.0, /* weights read from the last-level cache or memory */
    .store_vector_cycles = 4.0,     /* per vector of results: epilogue and store */
    .group_cycles = 300.0,          /* per work-group: start, and ends of its loops */
    /* idle time of cores at the end, as a multiple of a work-group's time, since the last
     * work-groups do not end together */
    .waiting_groups = 0.8,
};

void conv_blocked_size_args(step_builder *b, step *s, const window_axis *h, const window_axis *w)
{
    STEP_INTS(b, s, h->in, w->in, h->out, w->out, h->kernel, w->kernel, h->dilation, w->dilation,
              h->stride, h->pad_begin, w->pad_begin);
}

void conv_blocked_map_args(step_builder *b, step *s, const conv_job *j, const window_axis *h,
                           const window_axis *w, operand weights)
{
    conv_blocked_size_args(b, s, h, w);
    STEP_BUFFERS(b, s, {j->x, j->dtype}, {weights, j->dtype}, {j->y, j->dtype});
}

/* Sizes of the convolution in the kernel's terms, and its tiling. */
typedef struct blocked_tiling {
    window_axis h, w;
    int64_t in, slices, taps, panels; /* in: input channels of a slice; taps: kernel elements */
    /* windows extend beyond the input, or it has a prologue: its pixels are copied, surrounded by
     * zeros */
    bool copied;
    int64_t chunk, tile_h, tile_w, group_panels;
    double cost; /* estimated cycles; negative: does not fit the kernel's memory */
} blocked_tiling;

shape conv_blocked_flat(const shape *x)
{
    shape flat = *x;
    if (x->rank != 5) return flat;
    flat.rank = 4;
    flat.dims[1] = x->dims[1] == DIM_UNKNOWN || x->dims[4] == DIM_UNKNOWN ? DIM_UNKNOWN
                                                                          : x->dims[1] * x->dims[4];
    return flat;
}

shape conv_blocked_shape(const shape *flat, int64_t lanes)
{
    shape x = *flat;
    if (x.dims[1] != DIM_UNKNOWN) x.dims[1] = work_ceil_div(x.dims[1], lanes);
    x.dims[x.rank++] = lanes;
    return x;
}

static blocked_tiling describe(const lower_context *c, const conv_job *j, bool input_is_blocked)
{
    const int64_t nr = BLOCKED_NRV * (int64_t)work_simd_lanes(c);
    blocked_tiling t = {.h = j->axes[1],
                        .w = j->axes[2],
                        .chunk = 1,
                        .tile_h = 1,
                        .tile_w = 1,
                        .group_panels = 1,
                        .cost = -1};
    t.in = input_is_blocked ? work_simd_lanes(c) : 1;
    t.slices = work_ceil_div(j->ic, t.in);
    t.taps = t.h.kernel * t.w.kernel;
    t.panels = work_ceil_div(j->oc, nr);
    /* Copy the input if a window exceeds the feature map: the kernel does not check bounds. */
    t.copied = t.h.pad_begin > 0 || t.w.pad_begin > 0 || window_seen(&t.h, t.h.out) > t.h.in ||
               window_seen(&t.w, t.w.out) > t.w.in;
    if (t.taps == 1 && t.h.stride == 1 && t.w.stride == 1 && !t.copied && t.h.out == t.h.in &&
        t.w.out == t.w.in &&
        !j->phase) { /* one line of all pixels, so that register tiles are full */
        t.w.in = t.w.out = t.h.in * t.w.in;
        t.h.in = t.h.out = 1;
    }
    t.copied = t.copied || j->prologue != PROLOGUE_NONE;
    return t;
}

/* Returns the number of slices in a chunk: as many as have weights that fit in the L1 cache, from 1
 * to MAX_SLICES. If the input is copied, their pixels must also fit in the patch. Returns 0 if the
 * pixels of one slice do not fit. */
static int64_t chunk_of(const blocked_tiling *t, int64_t nr)
{
    const int64_t slice = t->in * window_seen(&t->h, t->tile_h) * window_seen(&t->w, t->tile_w);
    int64_t chunk = CHUNK / (t->taps * t->in * nr);
    if (t->copied)
        chunk = work_min(chunk > 1 ? chunk : 1, PATCH / slice);
    else if (chunk < 1)
        chunk = 1;
    return work_min(work_min(chunk, MAX_SLICES), t->slices);
}

static double cost_of(const lower_context *c, const conv_job *j, blocked_tiling *t)
{
    const int64_t lanes = work_simd_lanes(c), nr = BLOCKED_NRV * lanes, mr = work_simd_rows(c);
    const int64_t parts = work_ceil_div(t->tile_w, mr), part = work_ceil_div(t->tile_w, parts);
    const int64_t patch = t->in * window_seen(&t->h, t->tile_h) * window_seen(&t->w, t->tile_w);
    t->chunk = chunk_of(t, nr);
    if (t->chunk < 1 || (t->chunk < t->slices && t->tile_h * parts * mr * nr > ACC)) return -1;
    const double k = (double)(t->slices * t->taps * t->in), panels = (double)t->group_panels;
    const double steps = (double)work_ceil_div(t->slices, t->chunk);
    const int64_t fits = t->copied && PATCH / patch < t->slices ? t->group_panels : 1;
    const double fill =
        t->copied ? (double)(fits * t->slices * patch) / (double)lanes *
                        (j->prologue ? cost.prologue_vector_cycles : cost.fill_vector_cycles)
                  : 0;
    const double tile = (double)(part > cost.min_rows ? part : cost.min_rows) * k +
                        cost.register_tile_cycles * steps;
    const double products = panels * (double)(t->tile_h * parts) * tile;
    const double weights = panels * k * (double)nr * 4.0 / cost.weight_bytes_per_cycle;
    const double store =
        panels * (double)(t->tile_h * t->tile_w) * BLOCKED_NRV * cost.store_vector_cycles;
    const int64_t groups = work_ceil_div(t->h.out, t->tile_h) * work_ceil_div(t->w.out, t->tile_w) *
                           work_ceil_div(t->panels, t->group_panels) * j->batch;
    return (fill + products + weights + store + cost.group_cycles) *
           ((double)work_ceil_div(groups, work_units(c)) + cost.waiting_groups);
}

/* Returns the tiling with the lowest estimated cost; its cost is negative when none fits. */
static blocked_tiling find_tiling(const lower_context *c, const conv_job *j, blocked_tiling t)
{
    blocked_tiling best = t;
    for (int64_t across = 1; across <= t.w.out; across += work_ceil_div(across, 8)) {
        t.tile_w = work_ceil_div(t.w.out, across);
        for (int64_t down = 1; down <= t.h.out; down += work_ceil_div(down, 8)) {
            t.tile_h = work_ceil_div(t.h.out, down);
            for (t.group_panels = t.panels; t.group_panels > 0; t.group_panels /= 2) {
                t.cost = cost_of(c, j, &t);
                if (t.cost < c->trial.min_cost) continue;
                if (best.cost < 0 || t.cost < best.cost) best = t;
            }
        }
    }
    return best;
}

/* spread: P_SPREAD. */
static const char *prelude(lower_context *c, const conv_job *j, const blocked_tiling *t,
                           int64_t spread, const char *epilogue)
{
    return prelude_text(&c->build,
                        "P_T=%d P_FMA=%d P_VEC=%d P_MR=%d P_NRV=%d P_IN=%d P_STRIDE=%d "
                        "P_SPREAD=%d P_PATCH=%d P_ACC=%d P_PROLOGUE=%d %s",
                        (int)j->dtype, work_fma(c), work_simd_lanes(c), work_simd_rows(c),
                        BLOCKED_NRV, (int)t->in, (int)t->w.stride, (int)spread,
                        t->copied ? PATCH : 0, ACC, t->copied ? (int)j->prologue : 0, epilogue);
}

conv_phase conv_blocked_places(const conv_job *j)
{
    if (j->phase) return *j->phase;
    const int64_t kw = j->axes[2].kernel, taps = j->axes[1].kernel * kw;
    return (conv_phase){.lines = j->axes[1].out,
                        .columns = j->axes[2].out,
                        .step_h = 1,
                        .step_w = 1,
                        .by_output = j->ic * taps,
                        .by_input = taps,
                        .by_line = kw,
                        .by_column = 1};
}

void conv_blocked_prologue_args(step_builder *b, step *s, const conv_job *j)
{
    const bool is_scaled = j->prologue != PROLOGUE_NONE;
    STEP_BUFFERS(b, s, {is_scaled ? operand_input(BLOCKED_SCALE) : j->y, j->dtype},
                 {is_scaled ? operand_input(BLOCKED_SHIFT) : j->y, j->dtype});
}

operand conv_blocked_weights(lower_context *c, candidate *impl, const conv_job *j,
                             bool input_is_blocked)
{
    const blocked_tiling t = describe(c, j, input_is_blocked);
    const int64_t nr = BLOCKED_NRV * (int64_t)work_simd_lanes(c);
    const int64_t n = t.panels * t.slices * t.taps * t.in * nr;
    const conv_phase at = conv_blocked_places(j);
    operand from = operand_input(j->weight);
    from.offset_elems = at.first;
    char recipe[256];
    (void)snprintf(recipe, sizeof recipe,
                   "conv_blocked nr=%d in=%d oc=%lld ic=%lld taps=%lld first=%lld by=%lld,%lld",
                   (int)nr, (int)t.in, (long long)j->oc, (long long)j->ic, (long long)t.taps,
                   (long long)at.first, (long long)at.by_line, (long long)at.by_column);
    const panel_job panels = {
        .from = from,
        .to = step_packing(&c->build, impl, j->weight, recipe, (size_t)n * dtype_size(j->dtype)),
        .dtype = j->dtype,
        .batch = 1,
        .batch_in = 1,
        .lines = j->oc,
        .width = nr,
        .by_line = at.by_output,
        .slices = t.slices,
        .by_slice = t.in * at.by_input,
        .rows = j->axes[1].kernel,
        .by_row = at.by_line,
        .columns = j->axes[2].kernel,
        .by_column = at.by_column,
        .depth = t.in,
        .channels = j->ic,
        .by_channel = at.by_input};
    pack_panels(c, impl, &panels);
    return panels.to;
}

clg_status conv_blocked_append(lower_context *c, candidate *impl, const conv_job *j,
                               bool input_is_blocked)
{
    step_builder *b = &c->build;
    const blocked_tiling t = find_tiling(c, j, describe(c, j, input_is_blocked));
    if (t.cost < 0 || t.h.in * t.w.in > INT32_MAX / t.in)
        return lower_error(c, CLG_ERROR_SHAPE,
                           "the feature maps are too large for a channel-blocked layout");
    impl->cost += t.cost;
    const operand packed = conv_blocked_weights(c, impl, j, input_is_blocked);
    const conv_phase at = conv_blocked_places(j);
    step *s = step_kernel(b, impl, "conv_blocked", "conv_blocked",
                          prelude(c, j, &t, at.step_w, conv_epilogue_prelude(c, j)));
    STEP_INTS(b, s, j->batch, t.slices, j->oc);
    conv_blocked_map_args(b, s, j, &t.h, &t.w, packed);
    STEP_INTS(b, s, t.tile_h, t.tile_w, t.group_panels, t.chunk, at.step_h * at.columns,
              at.lines * at.columns);
    conv_blocked_prologue_args(b, s, j);
    epilogue_args(c, s, &j->epilogue, j->dtype, j->y);
    conv_count_work(j, s);
    work_groups(c, s, work_ceil_div(t.h.out, t.tile_h) * work_ceil_div(t.w.out, t.tile_w),
                work_ceil_div(t.panels, t.group_panels), j->batch);
    return CLG_OK;
}

clg_status conv_blocked_add(lower_context *c, const conv_job *j, bool input_is_blocked)
{
    candidate *impl = step_candidate(&c->build, "conv_blocked");
    CLG_TRY(conv_blocked_append(c, impl, j, input_is_blocked));
    if (j->winograd > 1) impl->cost = 0;
    return CLG_OK;
}
