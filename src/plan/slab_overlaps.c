/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements the search for overlapping lifetimes (slab_overlaps.h). A lifetime overlaps another
 * one if it begins no later than the other ends, a prefix of the blocks by start, and ends no
 * earlier than the other begins, which prunes the tree.
 */
#include "plan/slab_overlaps.h"

#include "base/memory.h"
#include "base/work_count.h"

#include <string.h>

/* So many leaves in a row are looked at one after another, which takes less time than the way
 * through the tree to the next one that counts; only from the first of them on is it taken. */
#define N_NEAR 16

clg_status slab_overlaps_init(slab_overlaps *o, const plan_block *blocks, const uint32_t *by_start,
                              size_t n)
{
    *o = (slab_overlaps){.blocks = blocks, .by_start = by_start, .n = n, .n_leaves = 1};
    while (o->n_leaves < n) o->n_leaves *= 2;
    o->position = memory_zalloc(n + 1, sizeof *o->position);
    o->ends = memory_zalloc(2 * o->n_leaves, sizeof *o->ends);
    if (!o->position || !o->ends) {
        slab_overlaps_deinit(o);
        return CLG_ERROR_OUT_OF_HOST_MEMORY;
    }
    for (size_t i = 0; i < n; i++) o->position[by_start[i]] = (uint32_t)i;
    return CLG_OK;
}

void slab_overlaps_deinit(slab_overlaps *o)
{
    memory_free(o->position);
    memory_free(o->ends);
    *o = (slab_overlaps){0};
}

void slab_overlaps_clear(slab_overlaps *o)
{
    memset(o->ends, 0, 2 * o->n_leaves * sizeof *o->ends);
}

void slab_overlaps_add(slab_overlaps *o, uint32_t block)
{
    const uint64_t end = (uint64_t)o->blocks[block].last_step + 1;
    for (size_t at = o->n_leaves + o->position[block]; at > 0 && o->ends[at] < end; at /= 2)
        o->ends[at] = end;
}

/* Returns the number of blocks whose lifetimes begin at or before a step. */
static size_t count_begun(const slab_overlaps *o, uint32_t step)
{
    size_t low = 0, high = o->n;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (o->blocks[o->by_start[middle]].first_step <= step)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Returns the first leaf after `leaf` (a node of the tree at the lowest level) whose end is greater
 * than `end`; 2 * n_leaves if there is none. */
static size_t next_leaf(const slab_overlaps *o, size_t leaf, uint64_t end)
{
    size_t at = leaf;
    for (;;) {
        while (at % 2 == 1) at /= 2; /* a right child: continue after its parent */
        if (at == 0) return 2 * o->n_leaves;
        at++;
        if (o->ends[at] > end) break;
    }
    while (at < o->n_leaves) at = o->ends[2 * at] > end ? 2 * at : 2 * at + 1;
    return at;
}

size_t slab_overlaps_find(const slab_overlaps *o, const plan_block *block, uint32_t *out_found)
{
    const size_t limit = o->n_leaves + count_begun(o, block->last_step);
    const uint64_t first = block->first_step;
    size_t n = 0, n_looks = 0, leaf = o->n_leaves;
    for (; leaf < limit; n_looks++) {
        const bool overlaps = o->ends[leaf] > first;
        if (overlaps) out_found[n++] = o->by_start[leaf - o->n_leaves];
        leaf = overlaps || leaf % N_NEAR != 0 ? leaf + 1 : next_leaf(o, leaf, first);
    }
    work_count_add(n_looks);
    return n;
}
