/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds, among the blocks of memory that are placed, those that are alive at the same time as
 * another one. Private to the placement of slabs (slabs.c).
 */
#ifndef CLG_PLAN_SLAB_OVERLAPS_H
#define CLG_PLAN_SLAB_OVERLAPS_H

#include "plan/plan.h"

/* A balanced tree over all blocks in the order in which their lifetimes begin; each node has the
 * latest end of a lifetime of the placed blocks below it. */
typedef struct slab_overlaps {
    const plan_block *blocks;
    const uint32_t *by_start; /* blocks by first_step; borrowed */
    uint32_t *position;       /* by block: its index in by_start */
    uint64_t *ends;           /* implicit tree: 1 + last_step, 0 where nothing is placed */
    size_t n, n_leaves;       /* n_leaves: a power of two */
} slab_overlaps;

/* Creates the tree without placed blocks. by_start: the indices of all n blocks, sorted by
 * first_step; it must outlive the tree. */
clg_status slab_overlaps_init(slab_overlaps *o, const plan_block *blocks, const uint32_t *by_start,
                              size_t n);
void slab_overlaps_deinit(slab_overlaps *o);
/* Removes all blocks. */
void slab_overlaps_clear(slab_overlaps *o);
/* Adds a block, now placed. O(log n). */
void slab_overlaps_add(slab_overlaps *o, uint32_t block);
/* Writes the placed blocks that are alive at a step at which `block` is to out_found, room for n;
 * returns their number k. O((k + 1) log n). */
size_t slab_overlaps_find(const slab_overlaps *o, const plan_block *block, uint32_t *out_found);

#endif
