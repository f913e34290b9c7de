/* SPDX-License-Identifier: Apache-2.0
 *
 * Assigns memory to blocks with lifetimes, in slabs (device buffers that several blocks share):
 * greedy by size, each block at the lowest offset where it overlaps no block that is alive at the
 * same time (Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference", 2020).
 * If the first segment needs one slab, more than 1/16 larger than the lower bound, placement in the
 * order in which lifetimes begin is tried too, which suits chains, and the smaller result is used.
 *
 * The time is that of comparing each block with those alive at the same time. In a plan with so
 * many of these that it exceeds a limit, slab_ranges.c places the blocks instead, in near-linear
 * time and a little more memory. See decision 50.
 */
#include "base/cancel.h"
#include "base/memory.h"
#include "base/sort.h"
#include "base/work_count.h"
#include "plan/slab_overlaps.h"
#include "plan/slab_ranges.h"

/* Limit of comparisons of one placement: a second's work. Plans of 2000 blocks never reach it. */
#define MAX_COMPARED_PER_BLOCK 32
#define MAX_COMPARED ((size_t)1 << 22)

typedef struct slab_work {
    plan_block *blocks;
    size_t n_blocks, n_order;
    uint32_t *order;    /* indices of the blocks that are not fixed, in the order of placement */
    uint32_t *by_start; /* indices of all blocks, by the beginning of their lifetimes */
    uint32_t *found;    /* indices of blocks that are alive at the same time as another one */
    uint32_t *scratch;
    slab_overlaps overlaps; /* of the blocks that are placed */
    slab_list slabs;
    size_t n_compared; /* in this placement */
} slab_work;

/* ---- orders ---------------------------------------------------------------------------------- */

static bool is_larger(const void *self, uint32_t a, uint32_t b)
{
    const plan_block *blocks = self;
    return blocks[a].size_bytes > blocks[b].size_bytes;
}

static bool begins_earlier(const void *self, uint32_t a, uint32_t b)
{
    const plan_block *blocks = self;
    return blocks[a].first_step < blocks[b].first_step;
}

static bool ends_earlier(const void *self, uint32_t a, uint32_t b)
{
    const plan_block *blocks = self;
    return blocks[a].last_step < blocks[b].last_step;
}

static bool lies_lower(const void *self, uint32_t a, uint32_t b)
{
    const plan_block *blocks = self;
    return blocks[a].offset_bytes < blocks[b].offset_bytes;
}

/* ---- greedy placement ------------------------------------------------------------------------ */

/* Returns the lowest offset in `slab` where `block` fits between the n blocks in w->found, which
 * are sorted by offset. */
static size_t lowest_gap(const slab_work *w, const plan_block *block, size_t n, uint32_t slab)
{
    size_t offset = 0;
    for (size_t i = 0; i < n; i++) {
        const plan_block *other = &w->blocks[w->found[i]];
        if (other->slab != slab) continue;
        if (offset + block->size_bytes <= other->offset_bytes) return offset;
        size_t end = memory_align_up(other->offset_bytes + other->size_bytes, w->slabs.align_bytes);
        if (end > offset) offset = end;
    }
    return offset;
}

static clg_status place_block(slab_work *w, uint32_t index)
{
    plan_block *block = &w->blocks[index];
    const size_t n = slab_overlaps_find(&w->overlaps, block, w->found);
    sort_indices(w->found, n, w->scratch, lies_lower, w->blocks);
    for (uint32_t slab = 0;; slab++) {
        w->n_compared += n + 1;
        work_count_add(n + 1);
        if (slab == *w->slabs.n) CLG_TRY(slab_list_grow(&w->slabs));
        size_t offset = lowest_gap(w, block, n, slab);
        if (offset + block->size_bytes > w->slabs.max_bytes) continue;
        block->slab = slab;
        block->offset_bytes = offset;
        size_t *slab_bytes = &(*w->slabs.bytes)[slab];
        if (offset + block->size_bytes > *slab_bytes) *slab_bytes = offset + block->size_bytes;
        slab_overlaps_add(&w->overlaps, index);
        return CLG_OK;
    }
}

/* Places the blocks in an order. *out_done: false if that was given up, since it takes too long. */
static clg_status place_all(slab_work *w, sort_goes_before *goes_before, bool *out_done)
{
    *out_done = false;
    sort_indices(w->order, w->n_order, w->scratch, goes_before, w->blocks);
    w->n_compared = 0;
    slab_overlaps_clear(&w->overlaps);
    for (uint32_t i = 0; i < w->n_blocks; i++)
        if (w->blocks[i].fixed) slab_overlaps_add(&w->overlaps, i);
    for (size_t i = 0; i < w->n_order; i++) {
        CLG_TRY(cancel_check("planning"));
        CLG_TRY(place_block(w, w->order[i]));
        if (w->n_compared > MAX_COMPARED + MAX_COMPARED_PER_BLOCK * w->n_blocks) return CLG_OK;
    }
    *out_done = true;
    return CLG_OK;
}

/* ---- all placements -------------------------------------------------------------------------- */

/* Computes the largest total size of blocks that are alive at one step. */
static clg_status largest_live_set(const plan_block *blocks, size_t n_blocks, size_t *out_bytes)
{
    size_t n_steps = 0, live = 0;
    *out_bytes = 0;
    for (size_t i = 0; i < n_blocks; i++)
        if (blocks[i].first_step >= n_steps) n_steps = (size_t)blocks[i].first_step + 1;
    size_t *begin = memory_zalloc(n_steps + 1, sizeof *begin);
    size_t *end = memory_zalloc(n_steps + 1, sizeof *end);
    for (size_t i = 0; begin && end && i < n_blocks; i++) {
        begin[blocks[i].first_step] += blocks[i].size_bytes;
        if (blocks[i].last_step < n_steps) end[blocks[i].last_step] += blocks[i].size_bytes;
    }
    for (size_t s = 0; begin && end && s < n_steps; s++) {
        live += begin[s];
        if (live > *out_bytes) *out_bytes = live;
        live -= end[s];
    }
    const clg_status status = begin && end ? CLG_OK : CLG_ERROR_OUT_OF_HOST_MEMORY;
    memory_free(begin);
    memory_free(end);
    return status;
}

static size_t sum(const size_t *slab_bytes, size_t n_slabs)
{
    size_t total = 0;
    for (size_t i = 0; i < n_slabs; i++) total += slab_bytes[i];
    return total;
}

/* Discards all placements: one empty slab remains. */
static void start_again(slab_work *w)
{
    *w->slabs.n = 1;
    (*w->slabs.bytes)[0] = 0;
}

/* Places the blocks in free ranges of the slabs, of which there were n_before. */
static clg_status place_in_ranges(slab_work *w, const size_t *before, size_t n_before)
{
    *w->slabs.n = n_before;
    for (size_t i = 0; i < n_before; i++) (*w->slabs.bytes)[i] = before[i];
    uint32_t *by_end = w->found;
    for (uint32_t i = 0; i < w->n_blocks; i++) by_end[i] = i;
    sort_indices(by_end, w->n_blocks, w->scratch, ends_earlier, w->blocks);
    return slab_ranges_place(w->blocks, w->by_start, by_end, w->n_blocks, &w->slabs);
}

/* Places the blocks of a first segment in the order of their beginnings if that needs less
 * memory. */
static clg_status place_better(slab_work *w, size_t live_bytes)
{
    bool done;
    const size_t by_size = sum(*w->slabs.bytes, *w->slabs.n), close = live_bytes + live_bytes / 16;
    if (*w->slabs.n != 1 || by_size <= close) return CLG_OK;
    start_again(w);
    CLG_TRY(place_all(w, begins_earlier, &done));
    if (done && *w->slabs.n == 1 && (*w->slabs.bytes)[0] <= by_size) return CLG_OK;
    start_again(w);
    return place_all(w, is_larger, &done);
}

static clg_status place(slab_work *w, size_t live_bytes)
{
    bool done;
    const size_t n_before = *w->slabs.n; /* later segments have blocks at fixed positions */
    size_t *before = memory_zalloc(n_before + 1, sizeof *before);
    if (!before) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; i < n_before; i++) before[i] = (*w->slabs.bytes)[i];
    clg_status status = place_all(w, is_larger, &done);
    if (status == CLG_OK && !done) status = place_in_ranges(w, before, n_before);
    if (status == CLG_OK && done && n_before == 0 && w->n_order > 0)
        status = place_better(w, live_bytes);
    memory_free(before);
    return status;
}

static clg_status check_sizes(const slab_work *w)
{
    for (size_t i = 0; i < w->n_order; i++)
        if (w->blocks[w->order[i]].size_bytes > w->slabs.max_bytes)
            return error_set(CLG_ERROR_OUT_OF_DEVICE_MEMORY,
                             "an intermediate tensor of %zu bytes does not fit the device's "
                             "largest buffer of %zu bytes",
                             w->blocks[w->order[i]].size_bytes, w->slabs.max_bytes);
    return CLG_OK;
}

static clg_status slab_work_init(slab_work *w)
{
    const size_t n = w->n_blocks;
    w->order = memory_zalloc(n + 1, sizeof *w->order);
    w->by_start = memory_zalloc(n + 1, sizeof *w->by_start);
    w->found = memory_zalloc(n + 1, sizeof *w->found);
    w->scratch = memory_zalloc(n + 1, sizeof *w->scratch);
    if (!w->order || !w->by_start || !w->found || !w->scratch) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (uint32_t i = 0; i < n; i++) {
        w->by_start[i] = i;
        if (!w->blocks[i].fixed) w->order[w->n_order++] = i;
    }
    sort_indices(w->by_start, n, w->scratch, begins_earlier, w->blocks);
    return slab_overlaps_init(&w->overlaps, w->blocks, w->by_start, n);
}

clg_status plan_place_blocks(plan_block *blocks, size_t n_blocks, size_t align_bytes,
                             size_t max_slab_bytes, size_t **slab_bytes, size_t *n_slabs,
                             size_t *out_live_bytes)
{
    slab_work w = {.blocks = blocks, .n_blocks = n_blocks};
    w.slabs = (slab_list){slab_bytes, NULL, align_bytes, max_slab_bytes};
    w.slabs.n = n_slabs;
    *out_live_bytes = 0;
    clg_status status = slab_work_init(&w);
    if (status == CLG_OK) status = check_sizes(&w);
    if (status == CLG_OK) status = largest_live_set(blocks, n_blocks, out_live_bytes);
    if (status == CLG_OK) status = place(&w, *out_live_bytes);
    slab_overlaps_deinit(&w.overlaps);
    memory_free(w.order);
    memory_free(w.by_start);
    memory_free(w.found);
    memory_free(w.scratch);
    return status;
}
