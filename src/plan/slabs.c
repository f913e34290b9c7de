/* SPDX-License-Identifier: Apache-2.0
 *
 * Assigns memory to blocks with lifetimes, in slabs (device buffers that several blocks share):
 * greedy by size, each block at the lowest offset where it overlaps no block that is alive at the
 * same time (Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference", 2020).
 * If the first segment needs one slab, more than 1/16 larger than the lower bound, placement in the
 * order in which lifetimes begin is tried too, which suits chains, and the smaller result is used.
 */
#include "base/memory.h"
#include "plan/plan.h"

typedef struct slab_work {
    plan_block *blocks;
    uint32_t *order;  /* indices of the blocks that are not fixed, in the order of placement */
    uint32_t *placed; /* indices of placed blocks of all slabs, sorted by offset */
    size_t n_order, n_placed;
    size_t align_bytes, max_slab_bytes;
} slab_work;

static size_t align_up(size_t n, size_t align) { return (n + align - 1) / align * align; }

static bool overlap_in_time(const plan_block *a, const plan_block *b)
{
    return a->first_step <= b->last_step && b->first_step <= a->last_step;
}

/* Returns the lowest offset in `slab` where `block` fits between the placed blocks (sorted by
 * offset). */
static size_t lowest_gap(const slab_work *w, const plan_block *block, uint32_t slab)
{
    size_t offset = 0;
    for (size_t i = 0; i < w->n_placed; i++) {
        const plan_block *other = &w->blocks[w->placed[i]];
        if (other->slab != slab || !overlap_in_time(block, other)) continue;
        if (offset + block->size_bytes <= other->offset_bytes) return offset;
        size_t end = align_up(other->offset_bytes + other->size_bytes, w->align_bytes);
        if (end > offset) offset = end;
    }
    return offset;
}

/* Inserts a block into w->placed, which stays sorted by offset. */
static void insert_placed(slab_work *w, uint32_t index)
{
    size_t at = w->n_placed++;
    while (at > 0 && w->blocks[w->placed[at - 1]].offset_bytes > w->blocks[index].offset_bytes) {
        w->placed[at] = w->placed[at - 1];
        at--;
    }
    w->placed[at] = index;
}

static clg_status grow_slabs(size_t **slab_bytes, size_t *n_slabs)
{
    size_t *grown = memory_resize(*slab_bytes, (*n_slabs + 1) * sizeof *grown);
    if (!grown) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    grown[*n_slabs] = 0;
    *slab_bytes = grown;
    ++*n_slabs;
    return CLG_OK;
}

static clg_status place_block(slab_work *w, uint32_t index, size_t **slab_bytes, size_t *n_slabs)
{
    plan_block *block = &w->blocks[index];
    if (block->size_bytes > w->max_slab_bytes)
        return error_set(CLG_ERROR_OUT_OF_DEVICE_MEMORY,
                         "an intermediate tensor of %zu bytes does not fit the device's largest "
                         "buffer of %zu bytes",
                         block->size_bytes, w->max_slab_bytes);
    for (uint32_t slab = 0;; slab++) {
        if (slab == *n_slabs) CLG_TRY(grow_slabs(slab_bytes, n_slabs));
        size_t offset = lowest_gap(w, block, slab);
        if (offset + block->size_bytes > w->max_slab_bytes) continue;
        block->slab = slab;
        block->offset_bytes = offset;
        if (offset + block->size_bytes > (*slab_bytes)[slab])
            (*slab_bytes)[slab] = offset + block->size_bytes;
        insert_placed(w, index);
        return CLG_OK;
    }
}

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

typedef bool block_goes_after(const plan_block *a, const plan_block *b);

static bool is_smaller(const plan_block *a, const plan_block *b)
{
    return a->size_bytes < b->size_bytes;
}

static bool begins_later(const plan_block *a, const plan_block *b)
{
    return a->first_step > b->first_step;
}

/* Sorts w->order (Shell sort); ties are broken by index, so that plans are reproducible. */
static void sort(slab_work *w, block_goes_after *goes_after)
{
    for (size_t gap = w->n_order / 2; gap > 0; gap /= 2)
        for (size_t i = gap; i < w->n_order; i++) {
            const uint32_t moved = w->order[i];
            size_t at = i;
            while (at >= gap) {
                const plan_block *before = &w->blocks[w->order[at - gap]];
                const plan_block *block = &w->blocks[moved];
                const bool wrong = goes_after(before, block) ||
                                   (!goes_after(block, before) && w->order[at - gap] > moved);
                if (!wrong) break;
                w->order[at] = w->order[at - gap];
                at -= gap;
            }
            w->order[at] = moved;
        }
}

static clg_status place_all(slab_work *w, block_goes_after *goes_after, size_t **slab_bytes,
                            size_t *n_slabs)
{
    sort(w, goes_after);
    for (size_t i = 0; i < w->n_order; i++)
        CLG_TRY(place_block(w, w->order[i], slab_bytes, n_slabs));
    return CLG_OK;
}

static size_t sum(const size_t *slab_bytes, size_t n_slabs)
{
    size_t total = 0;
    for (size_t i = 0; i < n_slabs; i++) total += slab_bytes[i];
    return total;
}

/* Discards all placements and places the blocks again, starting with one empty slab. */
static clg_status place_again(slab_work *w, block_goes_after *goes_after, size_t **slab_bytes,
                              size_t *n_slabs)
{
    w->n_placed = 0;
    *n_slabs = 1;
    (*slab_bytes)[0] = 0;
    return place_all(w, goes_after, slab_bytes, n_slabs);
}

clg_status plan_place_blocks(plan_block *blocks, size_t n_blocks, size_t align_bytes,
                             size_t max_slab_bytes, size_t **slab_bytes, size_t *n_slabs,
                             size_t *out_live_bytes)
{
    clg_status status = CLG_OK;
    slab_work w = {.blocks = blocks, .align_bytes = align_bytes, .max_slab_bytes = max_slab_bytes};
    const bool is_first = *n_slabs == 0; /* later segments have blocks at fixed positions */
    *out_live_bytes = 0;
    w.order = memory_zalloc(n_blocks + 1, sizeof *w.order);
    w.placed = memory_zalloc(n_blocks + 1, sizeof *w.placed);
    if (!w.order || !w.placed) {
        status = CLG_ERROR_OUT_OF_HOST_MEMORY;
        goto done;
    }
    for (uint32_t i = 0; i < n_blocks; i++) {
        if (blocks[i].fixed)
            insert_placed(&w, i);
        else
            w.order[w.n_order++] = i;
    }
    CLG_TRY_GOTO(largest_live_set(blocks, n_blocks, out_live_bytes), done);
    CLG_TRY_GOTO(place_all(&w, is_smaller, slab_bytes, n_slabs), done);
    const size_t by_size = sum(*slab_bytes, *n_slabs);
    const size_t close = *out_live_bytes + *out_live_bytes / 16;
    if (is_first && *n_slabs == 1 && by_size > close) {
        CLG_TRY_GOTO(place_again(&w, begins_later, slab_bytes, n_slabs), done);
        if (*n_slabs > 1 || sum(*slab_bytes, *n_slabs) > by_size)
            CLG_TRY_GOTO(place_again(&w, is_smaller, slab_bytes, n_slabs), done);
    }
done:
    memory_free(w.order);
    memory_free(w.placed);
    return status;
}
