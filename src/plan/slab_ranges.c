/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements the placement of slab_ranges.h as an allocator with segregated free lists (Masmano et
 * al., "TLSF: a New Dynamic Memory Allocator for Real-Time Systems", 2004): the ranges of a slab
 * are linked by offset, so that a range that becomes free is merged with its neighbours; free ones
 * are also linked with others of similar size, and a bitmap finds the first list of large enough
 * ranges.
 */
#include "plan/slab_ranges.h"

#include "base/cancel.h"
#include "base/memory.h"
#include "base/sort.h"

clg_status slab_list_grow(slab_list *slabs)
{
    const size_t n = *slabs->n;
    size_t *grown = memory_resize(*slabs->bytes, (n + 1) * sizeof *grown);
    if (!grown) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    grown[n] = 0;
    *slabs->bytes = grown;
    *slabs->n = n + 1;
    return CLG_OK;
}

#define NONE UINT32_MAX
#define FRACTION_BITS 4 /* lists per power of two: 1 << FRACTION_BITS */
#define N_LISTS (64u << FRACTION_BITS)
#define N_WORDS (N_LISTS / 64)
#define MAX_COMPARED 16 /* ranges of similar size that are compared */

/* A range of a slab, free or used by a block. */
typedef struct range {
    size_t offset_bytes, size_bytes; /* size_bytes: a multiple of the alignment */
    uint32_t slab;
    uint32_t before, after;  /* neighbours in the slab; `after` links unused records, too */
    uint32_t previous, next; /* of free ranges: in their list */
    bool is_free;
} range;

typedef struct range_set {
    range *ranges;
    size_t n_ranges, capacity;
    uint32_t unused; /* records to use again */
    uint32_t *last;  /* by slab: its last range */
    size_t n_last, last_capacity;
    uint32_t *ranges_of; /* by block */
    uint32_t lists[N_LISTS];
    uint64_t has_ranges[N_WORDS]; /* bit i: lists[i] is not empty */
    slab_list *slabs;
} range_set;

static size_t align_up(const range_set *s, size_t n)
{
    return memory_align_up(n, s->slabs->align_bytes);
}

/* ---- lists by size --------------------------------------------------------------------------- */

static unsigned log2_of(size_t n)
{
    unsigned bits = 0;
    while (n >>= 1) bits++;
    return bits;
}

/* Returns the list of free ranges of a size. */
static unsigned list_of(size_t size_bytes)
{
    const unsigned power = log2_of(size_bytes);
    if (power < FRACTION_BITS) return (unsigned)size_bytes;
    const size_t fraction = (size_bytes >> (power - FRACTION_BITS)) - (1u << FRACTION_BITS);
    return (power << FRACTION_BITS) + (unsigned)fraction;
}

/* Returns the first list whose ranges all have at least a size; N_LISTS if there is none. */
static unsigned list_for(size_t size_bytes)
{
    const unsigned power = log2_of(size_bytes);
    const size_t step = power < FRACTION_BITS ? 1 : (size_t)1 << (power - FRACTION_BITS);
    return size_bytes > SIZE_MAX - step ? N_LISTS : list_of(size_bytes + step - 1);
}

static void put(range_set *s, uint32_t r)
{
    const unsigned list = list_of(s->ranges[r].size_bytes);
    s->ranges[r].is_free = true;
    s->ranges[r].previous = NONE;
    s->ranges[r].next = s->lists[list];
    if (s->lists[list] != NONE) s->ranges[s->lists[list]].previous = r;
    s->lists[list] = r;
    s->has_ranges[list / 64] |= UINT64_C(1) << list % 64;
}

static void take(range_set *s, uint32_t r)
{
    const unsigned list = list_of(s->ranges[r].size_bytes);
    const uint32_t previous = s->ranges[r].previous, next = s->ranges[r].next;
    if (next != NONE) s->ranges[next].previous = previous;
    if (previous != NONE)
        s->ranges[previous].next = next;
    else
        s->lists[list] = next;
    if (s->lists[list] == NONE) s->has_ranges[list / 64] &= ~(UINT64_C(1) << list % 64);
    s->ranges[r].is_free = false;
}

/* Returns the smallest of the first ranges in the list of a size that have at least that size; NONE
 * if none has. */
static uint32_t find_same(const range_set *s, size_t size_bytes)
{
    uint32_t best = NONE, r = s->lists[list_of(size_bytes)];
    for (int i = 0; i < MAX_COMPARED && r != NONE; i++, r = s->ranges[r].next)
        if (s->ranges[r].size_bytes >= size_bytes &&
            (best == NONE || s->ranges[r].size_bytes < s->ranges[best].size_bytes))
            best = r;
    return best;
}

/* Returns a free range of at least a size; NONE if there is none. */
static uint32_t find(const range_set *s, size_t size_bytes)
{
    const uint32_t same = find_same(s, size_bytes);
    if (same != NONE) return same;
    unsigned list = list_for(size_bytes);
    while (list < N_LISTS) {
        const uint64_t word = s->has_ranges[list / 64] >> list % 64;
        if (word & 1) return s->lists[list];
        list = word ? list + 1 : (list / 64 + 1) * 64;
    }
    return NONE;
}

/* ---- ranges ---------------------------------------------------------------------------------- */

static clg_status add_range(range_set *s, range value, uint32_t *out_range)
{
    if (s->unused != NONE) {
        *out_range = s->unused;
        s->unused = s->ranges[s->unused].after;
    } else {
        CLG_TRY(MEMORY_RESERVE(s->ranges, s->capacity, s->n_ranges + 1));
        *out_range = (uint32_t)s->n_ranges++;
    }
    s->ranges[*out_range] = value;
    return CLG_OK;
}

/* Appends a range to a slab. */
static clg_status append(range_set *s, uint32_t slab, size_t offset_bytes, size_t size_bytes,
                         uint32_t *out_range)
{
    const uint32_t before = s->last[slab];
    CLG_TRY(add_range(s,
                      (range){.offset_bytes = offset_bytes,
                              .size_bytes = size_bytes,
                              .slab = slab,
                              .before = before,
                              .after = NONE},
                      out_range));
    if (before != NONE) s->ranges[before].after = *out_range;
    s->last[slab] = *out_range;
    return CLG_OK;
}

/* Takes a size from the start of a free range; the rest stays free. */
static clg_status use(range_set *s, uint32_t r, size_t size_bytes)
{
    uint32_t rest;
    take(s, r);
    const range whole = s->ranges[r];
    if (whole.size_bytes == size_bytes) return CLG_OK;
    CLG_TRY(add_range(s,
                      (range){.offset_bytes = whole.offset_bytes + size_bytes,
                              .size_bytes = whole.size_bytes - size_bytes,
                              .slab = whole.slab,
                              .before = r,
                              .after = whole.after},
                      &rest));
    s->ranges[r].size_bytes = size_bytes;
    s->ranges[r].after = rest;
    if (whole.after != NONE)
        s->ranges[whole.after].before = rest;
    else
        s->last[whole.slab] = rest;
    put(s, rest);
    return CLG_OK;
}

/* Merges range r with the one after it, whose record is released. */
static void absorb_next(range_set *s, uint32_t r)
{
    const uint32_t next = s->ranges[r].after, after = s->ranges[next].after;
    s->ranges[r].size_bytes += s->ranges[next].size_bytes;
    s->ranges[r].after = after;
    if (after != NONE)
        s->ranges[after].before = r;
    else
        s->last[s->ranges[r].slab] = r;
    s->ranges[next].after = s->unused;
    s->unused = next;
}

static void release(range_set *s, uint32_t r)
{
    const uint32_t before = s->ranges[r].before, after = s->ranges[r].after;
    if (after != NONE && s->ranges[after].is_free) {
        take(s, after);
        absorb_next(s, r);
    }
    if (before != NONE && s->ranges[before].is_free) {
        take(s, before);
        absorb_next(s, before);
        r = before;
    }
    put(s, r);
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static size_t end_of(const range_set *s, uint32_t slab)
{
    const uint32_t last = s->last[slab];
    return last == NONE ? 0 : s->ranges[last].offset_bytes + s->ranges[last].size_bytes;
}

/* Makes s->last as long as there are slabs. */
static clg_status match_slabs(range_set *s)
{
    CLG_TRY(MEMORY_RESERVE(s->last, s->last_capacity, *s->slabs->n + 1));
    while (s->n_last < *s->slabs->n) s->last[s->n_last++] = NONE;
    return CLG_OK;
}

/* Appends a range to the end of the last slab, or to a new one if it does not fit there. A free
 * range at the end of the slab becomes a part of it. */
static clg_status extend(range_set *s, size_t size_bytes, uint32_t *out_range)
{
    if (*s->slabs->n == 0) CLG_TRY(slab_list_grow(s->slabs));
    CLG_TRY(match_slabs(s));
    uint32_t slab = (uint32_t)(*s->slabs->n - 1);
    const uint32_t last = s->last[slab];
    const bool is_free = last != NONE && s->ranges[last].is_free;
    const size_t start = is_free ? s->ranges[last].offset_bytes : end_of(s, slab);
    if (size_bytes <= s->slabs->max_bytes && start <= s->slabs->max_bytes - size_bytes) {
        if (!is_free) return append(s, slab, start, align_up(s, size_bytes), out_range);
        take(s, last);
        s->ranges[last].size_bytes = align_up(s, size_bytes);
        *out_range = last;
        return CLG_OK;
    }
    CLG_TRY(slab_list_grow(s->slabs));
    CLG_TRY(match_slabs(s));
    return append(s, ++slab, 0, align_up(s, size_bytes), out_range);
}

static clg_status place(range_set *s, plan_block *block, uint32_t *out_range)
{
    const size_t size_bytes = align_up(s, block->size_bytes);
    *out_range = find(s, size_bytes);
    if (*out_range != NONE)
        CLG_TRY(use(s, *out_range, size_bytes));
    else
        CLG_TRY(extend(s, block->size_bytes, out_range));
    const range *r = &s->ranges[*out_range];
    block->slab = r->slab;
    block->offset_bytes = r->offset_bytes;
    size_t *slab_bytes = &(*s->slabs->bytes)[r->slab];
    if (r->offset_bytes + block->size_bytes > *slab_bytes)
        *slab_bytes = r->offset_bytes + block->size_bytes;
    return CLG_OK;
}

/* Makes ranges of the fixed blocks, which are alive from the first step on and do not overlap, and
 * free ranges of the gaps between them. by_offset: their indices, by slab and offset. */
static clg_status place_fixed(range_set *s, const plan_block *blocks, const uint32_t *by_offset,
                              size_t n)
{
    uint32_t gap;
    CLG_TRY(match_slabs(s));
    for (size_t i = 0; i < n; i++) {
        const plan_block *b = &blocks[by_offset[i]];
        const size_t start = end_of(s, b->slab);
        if (b->offset_bytes > start) {
            CLG_TRY(append(s, b->slab, start, b->offset_bytes - start, &gap));
            put(s, gap);
        }
        CLG_TRY(append(s, b->slab, b->offset_bytes, align_up(s, b->size_bytes),
                       &s->ranges_of[by_offset[i]]));
    }
    return CLG_OK;
}

static bool lies_before(const void *self, uint32_t a, uint32_t b)
{
    const plan_block *x = (const plan_block *)self + a, *y = (const plan_block *)self + b;
    return x->slab != y->slab ? x->slab < y->slab : x->offset_bytes < y->offset_bytes;
}

/* Lists the fixed blocks, and gives them ranges. */
static clg_status start(range_set *s, const plan_block *blocks, size_t n)
{
    uint32_t *fixed = memory_zalloc(n + 1, 2 * sizeof *fixed);
    size_t n_fixed = 0;
    if (!fixed) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (uint32_t i = 0; i < n; i++)
        if (blocks[i].fixed) fixed[n_fixed++] = i;
    sort_indices(fixed, n_fixed, fixed + n, lies_before, blocks);
    const clg_status status = place_fixed(s, blocks, fixed, n_fixed);
    memory_free(fixed);
    return status;
}

/* Places the blocks in the order in which they begin; releases those that have ended by then. */
static clg_status place_all(range_set *s, plan_block *blocks, const uint32_t *by_start,
                            const uint32_t *by_end, size_t n)
{
    size_t n_ended = 0;
    for (size_t i = 0; i < n; i++) {
        plan_block *b = &blocks[by_start[i]];
        CLG_TRY(cancel_check("planning"));
        if (b->fixed) continue;
        for (; blocks[by_end[n_ended]].last_step < b->first_step; n_ended++)
            release(s, s->ranges_of[by_end[n_ended]]);
        CLG_TRY(place(s, b, &s->ranges_of[by_start[i]]));
    }
    return CLG_OK;
}

clg_status slab_ranges_place(plan_block *blocks, const uint32_t *by_start, const uint32_t *by_end,
                             size_t n, slab_list *slabs)
{
    range_set *s = memory_zalloc(1, sizeof *s);
    if (!s) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    s->slabs = slabs;
    s->unused = NONE;
    for (size_t i = 0; i < N_LISTS; i++) s->lists[i] = NONE;
    s->ranges_of = memory_zalloc(n + 1, sizeof *s->ranges_of);
    clg_status status = s->ranges_of ? start(s, blocks, n) : CLG_ERROR_OUT_OF_HOST_MEMORY;
    if (status == CLG_OK) status = place_all(s, blocks, by_start, by_end, n);
    memory_free(s->ranges_of);
    memory_free(s->ranges);
    memory_free(s->last);
    memory_free(s);
    return status;
}
