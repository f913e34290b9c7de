/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests the placement of memory blocks in slabs (large buffers): blocks whose lifetimes overlap
 * must not overlap in memory.
 */
#include "support/unit.h"

#include "base/memory.h"
#include "base/work_count.h"
#include "plan/plan.h"

#include <stdlib.h>
#include <string.h>

#define ALIGN 128
#define MAX_BLOCKS 300

typedef struct slabs {
    size_t *bytes, n, live;
} slabs;

static uint64_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

static bool overlap(size_t a, size_t n_a, size_t b, size_t n_b)
{
    return a < b + n_b && b < a + n_a;
}

static void check(const plan_block *blocks, size_t n, const slabs *s)
{
    for (size_t i = 0; i < n; i++) {
        const plan_block *a = &blocks[i];
        assert_true(a->slab < s->n);
        assert_int_equal(a->offset_bytes % ALIGN, 0);
        assert_true(a->offset_bytes + a->size_bytes <= s->bytes[a->slab]);
        for (size_t j = 0; j < i; j++) {
            const plan_block *b = &blocks[j];
            bool together = a->first_step <= b->last_step && b->first_step <= a->last_step;
            if (together && a->slab == b->slab)
                assert_false(
                    overlap(a->offset_bytes, a->size_bytes, b->offset_bytes, b->size_bytes));
        }
    }
}

TEST(slabs__random_lifetimes_never_overlap)
{
    for (uint64_t seed = 1; seed <= 40; seed++) {
        uint64_t random = seed;
        plan_block blocks[MAX_BLOCKS];
        slabs s = {0};
        size_t n = 1 + next_random(&random) % MAX_BLOCKS;
        for (size_t i = 0; i < n; i++) {
            uint32_t first = (uint32_t)(next_random(&random) % 100);
            blocks[i] = (plan_block){.size_bytes = 1 + next_random(&random) % 5000,
                                     .first_step = first,
                                     .last_step = first + (uint32_t)(next_random(&random) % 20)};
        }
        assert_ok(plan_place_blocks(blocks, n, ALIGN, 1u << 30, &s.bytes, &s.n, &s.live));
        check(blocks, n, &s);
        assert_int_equal(s.n, 1);
        assert_true(s.live <= s.bytes[0]);
        memory_free(s.bytes);
    }
}

/* Returns the largest total size, over all steps, of the blocks that are live at a step. */
static size_t live_at_most(const plan_block *blocks, size_t n, uint32_t n_steps)
{
    size_t max = 0;
    for (uint32_t step = 0; step < n_steps; step++) {
        size_t live = 0;
        for (size_t i = 0; i < n; i++)
            if (blocks[i].first_step <= step && step <= blocks[i].last_step)
                live += blocks[i].size_bytes;
        if (live > max) max = live;
    }
    return max;
}

/* Checks that slabs need little more memory than the largest live set, for lifetimes as in
 * networks: most blocks are live for a few steps, some until the end. */
TEST(slabs__stay_close_to_the_largest_live_set)
{
    size_t taken = 0, floor = 0;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        uint64_t random = seed * 77;
        plan_block blocks[MAX_BLOCKS];
        slabs s = {0};
        size_t n = 1 + next_random(&random) % MAX_BLOCKS;
        for (size_t i = 0; i < n; i++) {
            const uint32_t length = next_random(&random) % 5 ? 1 : 2 + next_random(&random) % 9;
            blocks[i] = (plan_block){.size_bytes = ALIGN * (1 + next_random(&random) % 64),
                                     .first_step = (uint32_t)i,
                                     .last_step = (uint32_t)i + length};
            if (next_random(&random) % 50 == 0) blocks[i].last_step = UINT32_MAX;
        }
        assert_ok(plan_place_blocks(blocks, n, ALIGN, 1u << 30, &s.bytes, &s.n, &s.live));
        assert_int_equal(s.live, live_at_most(blocks, n, (uint32_t)n + 1));
        taken += s.bytes[0];
        floor += s.live;
        memory_free(s.bytes);
    }
    assert_true((double)taken < 1.1 * (double)floor); /* in total; single cases reach 1.35 */
}

TEST(slabs__a_chain_reuses_its_memory)
{
    plan_block blocks[100];
    slabs s = {0};
    for (uint32_t i = 0; i < 100; i++)
        blocks[i] = (plan_block){.size_bytes = 1024, .first_step = i, .last_step = i + 1};
    assert_ok(plan_place_blocks(blocks, 100, ALIGN, 1u << 30, &s.bytes, &s.n, &s.live));
    check(blocks, 100, &s);
    assert_int_equal(s.bytes[0], 2048);
    assert_int_equal(s.live, 2048);
    memory_free(s.bytes);
}

/* Checks that a chain of blocks of 16, 16, 8, 12 and 4 units, as in MobileNetV2, takes 32 units,
 * its live set. Placed by size alone it would take 40: with the second 16 and the 12 in place, no
 * gap is left for the 8, which lives with both. Where slabs are limited to 32, any placement may
 * result. */
TEST(slabs__a_chain_of_several_sizes_leaves_no_gap)
{
    static const size_t sizes[] = {16, 16, 8, 12, 4};
    for (int limited = 0; limited < 2; limited++) {
        plan_block blocks[5];
        slabs s = {0};
        for (uint32_t i = 0; i < 5; i++)
            blocks[i] =
                (plan_block){.size_bytes = ALIGN * sizes[i], .first_step = i, .last_step = i + 1};
        assert_ok(plan_place_blocks(blocks, 5, ALIGN, (size_t)ALIGN * (limited ? 32 : 100),
                                    &s.bytes, &s.n, &s.live));
        check(blocks, 5, &s);
        assert_int_equal(s.live, ALIGN * 32);
        if (!limited) assert_int_equal(s.n, 1);
        if (!limited) assert_int_equal(s.bytes[0], ALIGN * 32);
        memory_free(s.bytes);
    }
}

TEST(slabs__fixed_blocks_stay_where_they_are)
{
    slabs s = {0};
    s.bytes = memory_zalloc(1, sizeof *s.bytes);
    s.bytes[0] = 4096;
    s.n = 1;
    plan_block blocks[] = {
        {.size_bytes = 1000,
         .first_step = 0,
         .last_step = 9,
         .fixed = true,
         .slab = 0,
         .offset_bytes = 1024},
        {.size_bytes = 1024, .first_step = 0, .last_step = 3},
        {.size_bytes = 3000, .first_step = 2, .last_step = 5},
    };
    assert_ok(plan_place_blocks(blocks, 3, ALIGN, 1u << 20, &s.bytes, &s.n, &s.live));
    assert_int_equal(blocks[0].offset_bytes, 1024);
    check(blocks, 3, &s);
    memory_free(s.bytes);
}

TEST(slabs__a_full_slab_opens_another)
{
    slabs s = {0};
    plan_block blocks[5];
    for (size_t i = 0; i < 5; i++)
        blocks[i] = (plan_block){.size_bytes = 900, .first_step = 0, .last_step = 1};
    assert_ok(plan_place_blocks(blocks, 5, ALIGN, 2048, &s.bytes, &s.n, &s.live));
    assert_int_equal(s.n, 3);
    check(blocks, 5, &s);
    memory_free(s.bytes);
}

TEST(slabs__a_block_beyond_the_largest_buffer_is_refused)
{
    slabs s = {0};
    plan_block block = {.size_bytes = 4097, .first_step = 0, .last_step = 1};
    assert_error(plan_place_blocks(&block, 1, ALIGN, 4096, &s.bytes, &s.n, &s.live),
                 CLG_ERROR_OUT_OF_DEVICE_MEMORY, "4097 bytes");
    memory_free(s.bytes);
}

/* Compares two blocks by slab, then offset. */
static int compare_places(const void *a, const void *b)
{
    const plan_block *x = a, *y = b;
    if (x->slab != y->slab) return x->slab < y->slab ? -1 : 1;
    return (x->offset_bytes > y->offset_bytes) - (x->offset_bytes < y->offset_bytes);
}

/* Checks plans with more blocks alive at a time than are compared with each other, which are placed
 * in free ranges: nothing overlaps, and little more memory is needed than the live set. Half of the
 * blocks stay to the end; the sizes of the others recur, as those of layers do. */
TEST(slabs__many_live_blocks_take_little_more_than_the_live_set)
{
    enum { N = 20000, N_STEPS = N };
    plan_block *blocks = memory_zalloc(N, sizeof *blocks);
    slabs s = {0};
    uint64_t random = 7;
    for (uint32_t i = 0; i < N; i++)
        blocks[i] = (plan_block){
            .size_bytes = (size_t)ALIGN * (1 + next_random(&random) % 8) - next_random(&random) % 9,
            .first_step = i,
            .last_step = i % 2 ? UINT32_MAX : i + 1 + (uint32_t)(next_random(&random) % 5000)};
    assert_ok(plan_place_blocks(blocks, N, ALIGN, 1u << 30, &s.bytes, &s.n, &s.live));
    assert_int_equal(s.n, 1);
    assert_true(s.bytes[0] < s.live + s.live / 16);
    check(blocks, 2000, &s);
    check(blocks + N - 2000, 2000, &s);
    size_t n_live = 0; /* at the end: all of them are there together */
    for (uint32_t i = 0; i < N; i++)
        if (blocks[i].last_step == UINT32_MAX) blocks[n_live++] = blocks[i];
    qsort(blocks, n_live, sizeof *blocks, compare_places);
    for (size_t i = 1; i < n_live; i++)
        assert_true(blocks[i].offset_bytes >=
                    blocks[i - 1].offset_bytes + blocks[i - 1].size_bytes);
    memory_free(s.bytes);
    memory_free(blocks);
}

/* As above with small slabs and blocks of an earlier segment, which stay where they are. */
TEST(slabs__many_live_blocks_respect_fixed_ones_and_limits)
{
    enum { N = 8000, N_FIXED = 20, LIMIT = 64 << 10 };
    plan_block *blocks = memory_zalloc(N, sizeof *blocks);
    slabs s = {.bytes = memory_zalloc(1, sizeof *s.bytes), .n = 1};
    uint64_t random = 3;
    s.bytes[0] = 50000;
    for (uint32_t i = 0; i < N; i++)
        blocks[i] = (plan_block){.size_bytes = 100 + next_random(&random) % 600,
                                 .first_step = i < N_FIXED ? 0 : i,
                                 .last_step =
                                     i < N_FIXED ? 3000 : i + (uint32_t)next_random(&random) % 4000,
                                 .fixed = i < N_FIXED,
                                 .offset_bytes = i < N_FIXED ? (size_t)ALIGN * 18 * i : 0};
    assert_ok(plan_place_blocks(blocks, N, ALIGN, LIMIT, &s.bytes, &s.n, &s.live));
    assert_true(s.n > 1);
    for (size_t i = 0; i < s.n; i++) assert_true(s.bytes[i] <= LIMIT);
    for (uint32_t i = 0; i < N_FIXED; i++)
        assert_int_equal(blocks[i].offset_bytes, (size_t)ALIGN * 18 * i);
    check(blocks, N, &s);
    memory_free(s.bytes);
    memory_free(blocks);
}

/* ---- work ------------------------------------------------------------------------------------ */

/* Returns how many blocks are looked at to place n blocks, each alive with the next two;
 * with_live: half of them stay to the end. */
static size_t count_work(size_t n, bool with_live)
{
    plan_block *blocks = memory_zalloc(n, sizeof *blocks);
    slabs s = {0};
    uint64_t random = 5;
    for (uint32_t i = 0; i < n; i++)
        blocks[i] = (plan_block){.size_bytes = 100 + next_random(&random) % 600,
                                 .first_step = i,
                                 .last_step = with_live && i % 2 ? UINT32_MAX : i + 2};
    const size_t before = work_count();
    assert_ok(plan_place_blocks(blocks, n, ALIGN, (size_t)1 << 30, &s.bytes, &s.n, &s.live));
    memory_free(s.bytes);
    memory_free(blocks);
    return work_count() - before;
}

TEST(slabs__a_long_chain_compares_near_blocks_only)
{
    enum { N = 100000 };
    const size_t n = count_work(N, false);
    print_message("%zu of %d blocks\n", n, N);
    assert_true(n >= N);
    assert_true(n <= (size_t)64 * N);
}

/* With many that are alive together, comparing them is given up (slab_ranges.c). */
TEST(slabs__many_live_blocks_are_not_compared_with_each_other)
{
    enum { N = 100000 };
    const size_t n = count_work(N, true);
    print_message("%zu of %d blocks\n", n, N);
    assert_true(n >= N);
    assert_true(n <= (size_t)4096 * N); /* each with all that live: 25000 N or more */
}
