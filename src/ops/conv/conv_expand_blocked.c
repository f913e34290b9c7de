/* SPDX-License-Identifier: Apache-2.0
 *
 * Lowers a 1x1 convolution followed by a depthwise convolution in the channel-blocked layout
 * (nChw16c): the implementations conv_expand_blocked, one fused kernel, conv_expand_apart, two
 * kernels, and conv_blocked_direct, the last resort. Kernel: cl/conv/conv_expand_blocked.cl. See
 * decision 34.
 */
#include "ops/conv/conv_blocked.h"

#include "ops/lowering/work.h"

/* Sizes of the kernel. P_MAP floats, 256 KiB of private memory per work-group, should stay in an L2
 * cache of 1 MB; estimated, not measured. AT_ONCE accumulators hide the latency of multiply-adds: 4
 * cycles, with 2 started per cycle. */
#define MAP 65536 /* P_MAP: floats of a work-group's part of the intermediate feature map */
#define AT_ONCE 8 /* output pixels with independent accumulators in the depthwise loop */

/* Cost model of the tilings of conv_expand_blocked: cycles of one core, summed over a work-group. A
 * vector has as many lanes (elements) as the device's vectors, each a different channel; a row of a
 * register tile is two vectors and takes one cycle. The model compares tilings only, not the fused
 * kernel with two kernels: the fused one is used unless `cltool tune` measured the other to be
 * faster. Written on x86-64 with AVX-512 (vectors of 16 lanes), PoCL 3.1, 2026-11-22; the constants
 * are estimates, not measured individually. Checked by: build/tests/bench/cost_model expand */
static const struct {
    double store_vector_cycles, register_tile_cycles;
    double tap_cycles, pixel_cycles, run_cycles, group_cycles, waiting_groups;
} cost = {
    /* per vector of results of the 1x1 convolution: epilogue and store */
    .store_vector_cycles = 6.0,
    .register_tile_cycles = 30.0, /* per register tile: clear accumulators, compute addresses */
    /* per kernel element (tap) of a depthwise output pixel: a load and a multiply-add */
    .tap_cycles = 0.7,
    .pixel_cycles = 4.0, /* per depthwise output pixel: epilogue and store */
    /* per AT_ONCE depthwise output pixels: clear accumulators, compute addresses */
    .run_cycles = 20.0,
    .group_cycles = 300.0, /* per work-group: start, and ends of its loops */
    .waiting_groups = 0.8, /* idle time of cores at the end, as in conv_blocked.c */
};

/* A tiling: output pixels of a work-group, and its estimated cost. */
typedef struct expand_tiling {
    int64_t tile_h, tile_w;
    double cost; /* estimated cycles */
} expand_tiling;

/* Returns whether the part of the intermediate feature map that a tile reads fits in P_MAP. */
static bool fits(const lower_context *c, const conv_job *depthwise, const expand_tiling *t)
{
    const int64_t across = t->tile_w < AT_ONCE ? AT_ONCE : t->tile_w;
    const int64_t pixels =
        window_seen(&depthwise->axes[1], t->tile_h) * window_seen(&depthwise->axes[2], across);
    return pixels * BLOCKED_NRV * (int64_t)work_simd_lanes(c) <= MAP;
}

static double cost_of(const lower_context *c, const conv_job *point, const conv_job *depthwise,
                      const expand_tiling *t)
{
    const int64_t lanes = work_simd_lanes(c), mr = work_simd_rows(c);
    const window_axis *h = &depthwise->axes[1], *w = &depthwise->axes[2];
    const int64_t lines = work_min(window_seen(h, t->tile_h), h->in);
    const int64_t columns = work_min(window_seen(w, t->tile_w), w->in);
    const int64_t tiles =
        columns == w->in ? work_ceil_div(lines * columns, mr) : lines * work_ceil_div(columns, mr);
    const double k = (double)(work_ceil_div(point->ic, lanes) * lanes);
    const double tile =
        (double)mr * (k + BLOCKED_NRV * cost.store_vector_cycles) + cost.register_tile_cycles;
    const double taps = (double)(h->kernel * w->kernel);
    const double runs =
        (double)(BLOCKED_NRV * t->tile_h * work_ceil_div(t->tile_w, (int64_t)AT_ONCE));
    const double group =
        (double)tiles * tile +
        runs * (AT_ONCE * (cost.tap_cycles * taps + cost.pixel_cycles) + cost.run_cycles) +
        cost.group_cycles;
    const int64_t groups = work_ceil_div(h->out, t->tile_h) * work_ceil_div(w->out, t->tile_w) *
                           work_ceil_div(point->oc, BLOCKED_NRV * lanes) * point->batch;
    return group * ((double)work_ceil_div(groups, work_units(c)) + cost.waiting_groups);
}

/* Returns the tiling with the lowest estimated cost. A line of AT_ONCE pixels always fits. */
static expand_tiling find_tiling(const lower_context *c, const conv_job *point,
                                 const conv_job *depthwise)
{
    const int64_t oh = depthwise->axes[1].out, ow = depthwise->axes[2].out;
    expand_tiling best = {1, work_min(ow, AT_ONCE), 0}, t;
    best.cost = cost_of(c, point, depthwise, &best);
    for (int64_t across = 1; across <= ow; across += work_ceil_div(across, 8)) {
        t.tile_w = work_ceil_div(ow, across);
        for (int64_t down = 1; down <= oh; down += work_ceil_div(down, 8)) {
            t.tile_h = work_ceil_div(oh, down);
            if (!fits(c, depthwise, &t)) continue;
            t.cost = cost_of(c, point, depthwise, &t);
            if (t.cost < c->trial.min_cost) continue;
            if (best.cost < c->trial.min_cost || t.cost < best.cost) best = t;
        }
    }
    return best;
}

static const char *prelude(lower_context *c, const conv_job *point, const conv_job *depthwise)
{
    conv_job epilogue = *depthwise;
    const bool first = point->epilogue.activation != 0, last = depthwise->epilogue.activation != 0;
    epilogue.epilogue.activation =
        last ? depthwise->epilogue.activation : point->epilogue.activation;
    return prelude_text(&c->build,
                        "P_T=%d P_FMA=%d P_VEC=%d P_MR=%d P_NRV=%d P_STRIDE=%d P_FIRST_BIAS=%d "
                        "P_FIRST=%d P_LAST=%d P_MAP=%d %s",
                        (int)point->dtype, work_fma(c), work_simd_lanes(c), work_simd_rows(c),
                        BLOCKED_NRV, (int)depthwise->axes[2].stride,
                        point->epilogue.bias != BIAS_NONE, first, last, MAP,
                        conv_epilogue_prelude(c, &epilogue));
}

static void add_together(lower_context *c, const conv_job *point, const conv_job *depthwise)
{
    step_builder *b = &c->build;
    const int64_t lanes = work_simd_lanes(c);
    const expand_tiling t = find_tiling(c, point, depthwise);
    candidate *impl = step_candidate(b, "conv_expand_blocked");
    impl->tiling_cost = t.cost;
    const operand w = conv_blocked_weights(c, impl, point, true);
    const operand d = conv_depthwise_blocked_weights(c, impl, depthwise);
    step *s = step_kernel(b, impl, "conv_expand_blocked", "conv_expand_blocked",
                          prelude(c, point, depthwise));
    const window_axis *h = &depthwise->axes[1], *a = &depthwise->axes[2];
    epilogue_ops epilogue = depthwise->epilogue;
    if (epilogue.activation == 0) {
        epilogue.act_a = point->epilogue.act_a;
        epilogue.act_b = point->epilogue.act_b;
    }
    STEP_INTS(b, s, point->batch, work_ceil_div(point->ic, lanes), point->oc);
    conv_blocked_size_args(b, s, h, a);
    STEP_BUFFERS(
        b, s, {point->x, point->dtype}, {w, point->dtype},
        {point->epilogue.bias != BIAS_NONE ? point->epilogue.bias_at : depthwise->y, point->dtype},
        {d, point->dtype}, {depthwise->y, point->dtype});
    STEP_INTS(b, s, t.tile_h, t.tile_w);
    epilogue_args(c, s, &epilogue, point->dtype, depthwise->y);
    conv_count_work(depthwise, s);
    const double flops = s->flops, bytes = s->bytes;
    conv_count_work(point, s);
    const double between =
        2.0 * (double)(point->batch * point->oc * h->in * a->in) * (double)dtype_size(point->dtype);
    s->flops += flops;
    s->bytes += bytes - between;
    work_groups(c, s, work_ceil_div(h->out, t.tile_h) * work_ceil_div(a->out, t.tile_w),
                work_ceil_div(point->oc, BLOCKED_NRV * lanes), point->batch);
}

/* Returns memory for the feature map between the two convolutions. */
static operand map_between(lower_context *c, candidate *impl, const conv_job *point)
{
    const int64_t lanes = work_simd_lanes(c);
    const int64_t pixels = point->axes[1].out * point->axes[2].out;
    const int64_t n = point->batch * work_ceil_div(point->oc, lanes) * lanes * pixels;
    return step_scratch(&c->build, impl, (size_t)n * dtype_size(point->dtype));
}

static clg_status add_apart(lower_context *c, const conv_job *point, const conv_job *depthwise)
{
    conv_job first = *point, last = *depthwise;
    candidate *impl = step_candidate(&c->build, "conv_expand_apart");
    first.y = last.x = map_between(c, impl, point);
    CLG_TRY(conv_blocked_append(c, impl, &first, true));
    conv_depthwise_blocked_append(c, impl, &last);
    return CLG_OK;
}

static void add_direct(lower_context *c, const conv_job *point, const conv_job *depthwise)
{
    conv_job first = *point, last = *depthwise;
    candidate *impl = conv_blocked_direct_start(c);
    first.y = last.x = map_between(c, impl, point);
    conv_blocked_direct_append(c, impl, &first, true);
    conv_blocked_direct_append(c, impl, &last, true);
}

clg_status conv_expand_blocked_add(lower_context *c, const conv_job *point,
                                   const conv_job *depthwise)
{
    add_together(c, point, depthwise);
    CLG_TRY(add_apart(c, point, depthwise));
    add_direct(c, point, depthwise);
    return CLG_OK;
}
