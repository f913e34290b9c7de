/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements simt_tile.h: the tiles for GPUs, and the choice among them.
 */
#include "ops/lowering/simt_tile.h"

/* Tiles of 256 work-items, which all GPUs support. Estimated, not measured on a GPU. Checked by:
 *     tests/bench/gpu/run.sh
 * or on any device with --kernels simt: cltool profile MODEL, cltool tune MODEL. */
static const simt_tile few_rows = {4, 64, 1, 1, 32, false}; /* 4 rows */
static const simt_tile large = {16, 16, 8, 8, 8, false};    /* 64 accumulators per work-item */
/* 16 accumulators: more work-groups in flight */
static const simt_tile usual = {16, 16, 4, 4, 16, false};
static const simt_tile smaller[] = {{8, 8, 4, 4, 8, false}, {1, 1, 1, 1, 8, false}};
/* maximum number of rows for few_rows: with `usual`, most work-items would be idle */
#define FEW_ROWS 8
/* minimum number of rows and columns for `large`, which then has at least 64 work-groups */
#define LARGE_SIDE 1024

/* Lines of a tile in local memory beyond those of its results: padding against bank conflicts, and
 * the offsets of a convolution's windows. */
#define PADDING_LINES 16

#define N_SMALLER (sizeof smaller / sizeof *smaller)

bool simt_tile_fits(const lower_context *c, const simt_tile *t)
{
    const uint64_t items = (uint64_t)t->wg_m * (uint64_t)t->wg_n, local = c->caps->local_mem_bytes;
    const int lines = t->wg_m * t->tm + t->wg_n * t->tn;
    const uint64_t bytes = (uint64_t)(t->tk * (lines + PADDING_LINES)) * sizeof(float);
    return items <= c->caps->max_work_group_size && (local == 0 || bytes <= local);
}

bool simt_tile_has_groups(const lower_context *c) { return simt_tile_fits(c, &smaller[0]); }

simt_tile simt_tile_choose(const lower_context *c, int64_t m, int64_t n)
{
    if (!simt_tile_fits(c, &usual)) return smaller[simt_tile_has_groups(c) ? 0 : 1];
    if (m <= FEW_ROWS) return few_rows;
    const bool has_registers = (c->caps->quirks & QUIRK_SMALL_ARRAYS) == 0;
    return has_registers && m >= LARGE_SIDE && n >= LARGE_SIDE ? large : usual;
}

bool simt_tile_quads(const lower_context *c, const simt_tile *chosen, simt_tile *out)
{
    *out = *chosen;
    out->quads = true;
    return chosen->tm % 4 == 0 && chosen->tn % 4 == 0 && simt_tile_fits(c, out);
}

bool simt_tile_large(const lower_context *c, const simt_tile *chosen, int64_t m, int64_t n,
                     simt_tile *out)
{
    *out = large;
    out->quads = true;
    return chosen->tm < large.tm && m > usual.wg_m * usual.tm && n > usual.wg_n * usual.tn &&
           simt_tile_fits(c, out);
}

bool simt_tile_smaller(const lower_context *c, size_t i, simt_tile *out)
{
    const size_t first = simt_tile_fits(c, &usual) ? 0 : simt_tile_has_groups(c) ? 1 : N_SMALLER;
    if (first + i >= N_SMALLER) return false;
    *out = smaller[first + i];
    return true;
}
