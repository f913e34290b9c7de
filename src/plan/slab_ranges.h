/* SPDX-License-Identifier: Apache-2.0
 *
 * Places blocks of memory in slabs in the order in which their lifetimes begin, each in a free
 * range of a suitable size, in near-linear time. For plans with so many blocks alive at the same
 * time that the search for the lowest offset (slabs.c) would take too long.
 */
#ifndef CLG_PLAN_SLAB_RANGES_H
#define CLG_PLAN_SLAB_RANGES_H

#include "plan/plan.h"

/* The slabs to place blocks in: the caller's sizes, which grow; entries 0 to n - 1 of *bytes. */
typedef struct slab_list {
    size_t **bytes, *n;
    size_t align_bytes, max_bytes;
} slab_list;
/* Adds an empty slab. */
clg_status slab_list_grow(slab_list *slabs);

/* Places the blocks that are not fixed. by_start and by_end: the indices of all n blocks, sorted by
 * first_step and by last_step. Each block fits a slab. */
clg_status slab_ranges_place(plan_block *blocks, const uint32_t *by_start, const uint32_t *by_end,
                             size_t n, slab_list *slabs);

#endif
