/* SPDX-License-Identifier: Apache-2.0
 *
 * Chooses the tiling of a convolution for CPUs (SIMD class) - output pixels and output channels of
 * a work-group - by a cost model.
 */
#include "ops/conv/conv_tiling.h"

#include "ops/lowering/work.h"

/* Size of the patch (the copied input) of one slice for a tile of output pixels: elements from line
 * to line, lines, and elements. */
typedef struct patch_size {
    int64_t pitch, lines, slice;
} patch_size;

static patch_size measure_patch(const window_axis *axes, int64_t tile_h, int64_t tile_w)
{
    const window_axis *h = &axes[1], *w = &axes[2];
    const int64_t phases = work_min(h->stride, (h->kernel - 1) * h->dilation + 1) *
                           work_min(w->stride, (w->kernel - 1) * w->dilation + 1);
    patch_size p = {.pitch = tile_w + (w->kernel - 1) * w->dilation / w->stride};
    p.lines = phases * (tile_h + (h->kernel - 1) * h->dilation / h->stride);
    p.slice = p.lines * p.pitch;
    return p;
}

int64_t conv_tiling_count(const window_axis axes[WINDOW_MAX_AXES], int64_t tile_h, int64_t tile_w)
{
    return axes[0].out * work_ceil_div(axes[1].out, tile_h) * work_ceil_div(axes[2].out, tile_w);
}

/* Returns the estimated cycles of a convolution with this tiling: those of a work-group, times the
 * number of rounds in which the work-groups run. Negative where the tiling does not fit in
 * memory. */
static double cost_of(const lower_context *c, const conv_tiling_job *j, const conv_tiling *t)
{
    const conv_tiling_costs *cost = j->costs;
    const int64_t nr = 2 * (int64_t)j->lanes, slices = j->slices;
    const int64_t taps = j->axes[1].kernel * j->axes[2].kernel;
    const patch_size p = measure_patch(j->axes, t->tile_h, t->tile_w);
    const int64_t panels = work_ceil_div((t->tile_h - 1) * p.pitch + t->tile_w, nr);
    const bool fits = p.slice <= j->patch && slices <= j->patch / p.slice;
    const int64_t rows = t->tile_m * (fits ? 1 : t->group_tiles) + j->spare_rows;
    if (p.slice > j->patch || rows > j->sums / (panels * nr)) return -1;
    const double fill = (double)slices * ((double)p.slice / j->lanes * cost->fill_vector_cycles +
                                          (double)p.lines * cost->fill_line_cycles);
    const double products =
        (double)(t->group_tiles * panels) *
        ((double)(slices * taps * t->tile_m) * cost->row_cycles + cost->register_tile_cycles);
    const double store =
        (double)(t->group_tiles * t->tile_m * t->tile_h) *
        ((double)t->tile_w / j->lanes * cost->store_vector_cycles + cost->store_line_cycles);
    const int64_t groups = conv_tiling_count(j->axes, t->tile_h, t->tile_w) *
                           work_ceil_div(t->tiles, t->group_tiles) * j->planes;
    return (fill + products + store + cost->group_cycles) *
           (double)work_ceil_div(groups, work_units(c));
}

/* Limits of the search, which bound the time of planning: estimated, not measured. */
#define MAX_ACROSS 64 /* maximum number of tiles along a row, unless tiles are WIDE_ENOUGH */
/* minimum width in pixels of the tiles of rows with more than MAX_ACROSS tiles */
#define WIDE_ENOUGH 256

bool conv_tiling_find(const lower_context *c, const conv_tiling_job *j, conv_tiling *out)
{
    const int64_t height = j->axes[1].out, width = j->axes[2].out;
    const int64_t max =
        width / WIDE_ENOUGH > MAX_ACROSS ? width / WIDE_ENOUGH : work_min(width, MAX_ACROSS);
    conv_tiling t = {.tile_m = work_ceil_div(j->oc, work_ceil_div(j->oc, j->rows))};
    bool found = false;
    t.tiles = work_ceil_div(j->oc, t.tile_m);
    for (int64_t across = 1; across <= max; across += across < 4 ? 1 : across) {
        t.tile_w = work_ceil_div(width, across);
        for (int64_t down = 1; down <= height; down += work_ceil_div(down, 8)) {
            t.tile_h = work_ceil_div(height, down);
            for (t.group_tiles = t.tiles; t.group_tiles > 0; t.group_tiles /= 2) {
                t.cost = cost_of(c, j, &t);
                if (t.cost < c->trial.min_cost || (found && t.cost >= out->cost)) continue;
                found = true;
                *out = t;
            }
        }
    }
    return found;
}

/* Sizes for depthwise convolutions, used instead of a cost model. Estimated, not measured. Checked
 * by:
 *     cltool profile MODEL    (conv_depthwise_simd in percent of the peak) */
/* elements of a work-group's patches: 24 KiB of float32, in an L1 of 32 KiB */
#define DEPTHWISE_PATCH 6144
#define DEPTHWISE_GROUPS_PER_UNIT 4 /* work-groups per compute unit: enough to balance the load */

bool conv_tiling_depthwise(const lower_context *c, const conv_tiling_job *j, int64_t n_channels,
                           conv_tiling *out)
{
    const int64_t height = j->axes[1].out, width = j->axes[2].out, strip = 4 * (int64_t)j->lanes;
    int64_t across = 1, down = 1, patch, sums;
    for (;;) {
        *out = (conv_tiling){.tile_h = work_ceil_div(height, down),
                             .tile_w = work_ceil_div(width, across)};
        const patch_size p = measure_patch(j->axes, out->tile_h, out->tile_w);
        patch = j->axes[0].kernel * p.slice;
        sums = j->oc * work_ceil_div((out->tile_h - 1) * p.pitch + out->tile_w, strip) * strip;
        if ((patch <= DEPTHWISE_PATCH && sums <= j->sums) || (out->tile_h == 1 && out->tile_w == 1))
            break;
        if (out->tile_h > 1)
            down += work_ceil_div(down, 8);
        else
            across += work_ceil_div(across, 8);
    }
    if (patch > j->patch || sums > j->sums) return false;
    const int64_t room = work_min(DEPTHWISE_PATCH / patch, j->sums / sums);
    const int64_t images = j->planes / n_channels;
    const int64_t splits = images * conv_tiling_count(j->axes, out->tile_h, out->tile_w);
    const int64_t share =
        work_ceil_div(n_channels, work_ceil_div(DEPTHWISE_GROUPS_PER_UNIT * work_units(c), splits));
    out->group_tiles = room < 1 ? 1 : work_min(room, share);
    return true;
}
