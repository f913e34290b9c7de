/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests memory budgets: blocks count in the budget that was set when they were allocated until they
 * are freed, on any thread, and what exceeds it is refused without an allocation.
 */
#include "support/unit.h"

#include "support/fakes/counting_alloc.h"
#include "support/fakes/failing_alloc.h"

#include "base/cancel.h"
#include "base/memory.h"
#include "base/threads.h"

#include <string.h>

enum { LIMIT = 100000, BEFORE = 1000 };

static memory_budget *open_budget(void)
{
    memory_budget *b;
    assert_ok(memory_budget_create(LIMIT, BEFORE, &b));
    assert_null(memory_budget_set(b));
    return b;
}

static void close_budget(memory_budget *b)
{
    assert_ptr_equal(memory_budget_set(NULL), b);
    assert_int_equal(memory_budget_used(b), BEFORE);
    memory_budget_free(b);
}

TEST(budget__blocks_count_until_they_are_freed)
{
    const size_t live = memory_n_live();
    memory_budget *b = open_budget();
    arena a = {0};
    void *blocks[] = {memory_alloc(1000), memory_zalloc(10, 100), memory_alloc_aligned(1000),
                      memory_strdup("text"), arena_alloc(&a, 1, 1000)};
    for (size_t i = 0; i < 5; i++) assert_non_null(blocks[i]);
    assert_true(memory_budget_used(b) >= BEFORE + 4005);
    assert_true(memory_budget_used(b) < LIMIT / 4);
    memory_free(blocks[0]);
    memory_free(blocks[1]);
    memory_free_aligned(blocks[2]);
    memory_free(blocks[3]);
    arena_deinit(&a);
    close_budget(b);
    assert_int_equal(memory_n_live(), live);
}

TEST(budget__resizing_counts_the_difference)
{
    memory_budget *b = open_budget();
    char *p = memory_alloc(100);
    const uint64_t before = memory_budget_used(b);
    memset(p, 7, 100);
    p = memory_resize(p, 5100);
    assert_int_equal(memory_budget_used(b), before + 5000);
    assert_int_equal(p[99], 7);
    assert_null(memory_resize(p, LIMIT));
    assert_int_equal(memory_budget_used(b), before + 5000);
    p = memory_resize(p, 100);
    assert_int_equal(memory_budget_used(b), before);
    assert_int_equal(p[99], 7);
    memory_free(p);
    close_budget(b);
}

TEST(budget__a_block_belongs_to_the_budget_of_its_allocation)
{
    char *outside = memory_alloc(100);
    memory_budget *b = open_budget();
    outside = memory_resize(outside, 2 * LIMIT); /* does not count */
    assert_non_null(outside);
    assert_int_equal(memory_budget_used(b), BEFORE);
    char *inside = memory_alloc(100);
    (void)memory_budget_set(NULL);
    inside = memory_resize(inside, 5000);
    assert_true(memory_budget_used(b) >= BEFORE + 5000);
    assert_null(memory_resize(inside, LIMIT));
    memory_free(outside);
    memory_free(inside);
    (void)memory_budget_set(b);
    close_budget(b);
}

TEST(budget__what_exceeds_it_is_not_allocated)
{
    assert_ok(counting_alloc_install());
    memory_budget *b = open_budget();
    const size_t host_bytes = counting_alloc_live_bytes();
    const size_t sizes[] = {LIMIT - BEFORE, LIMIT, SIZE_MAX / 2, SIZE_MAX - 64};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        memory_budget_forget_refusal();
        assert_null(memory_alloc(sizes[i]));
        assert_true(memory_budget_was_refused());
        assert_non_null(strstr(error_text(), "max_memory_bytes: 1000 of 100000 bytes are in use"));
        assert_null(memory_zalloc(1, sizes[i]));
        assert_null(memory_alloc_aligned(sizes[i]));
        assert_int_equal(memory_budget_used(b), BEFORE);
        assert_int_equal(counting_alloc_live_bytes(), host_bytes);
    }
    close_budget(b);
    assert_ok(counting_alloc_remove());
}

TEST(budget__other_memory_counts_in_it_exactly)
{
    memory_budget *b = open_budget();
    assert_error(memory_budget_take(b, LIMIT - BEFORE + 1), CLG_ERROR_LIMIT, "99001 bytes more");
    assert_error(memory_budget_take(b, UINT64_MAX), CLG_ERROR_LIMIT, "of 100000 bytes");
    assert_ok(memory_budget_take(b, LIMIT - BEFORE));
    assert_error(memory_budget_take(b, 1), CLG_ERROR_LIMIT, "100000 of 100000 bytes are in use");
    assert_null(memory_alloc(1));
    memory_budget_give(b, LIMIT - BEFORE);
    close_budget(b);
    assert_ok(memory_budget_take(NULL, UINT64_MAX)); /* no budget */
    memory_budget_give(NULL, UINT64_MAX);
}

static void *free_it(void *block)
{
    memory_free(block);
    return NULL;
}

TEST(budget__blocks_are_freed_by_any_thread_and_keep_it_alive)
{
    const size_t live = memory_n_live();
    memory_budget *b = open_budget();
    void *block = memory_alloc(1000);
    thread other;
    (void)memory_budget_set(NULL);
    memory_budget_free(b);
    assert_int_equal(memory_n_live(), live + 2);
    assert_ok(thread_start(&other, free_it, block));
    thread_join(other);
    assert_int_equal(memory_n_live(), live);
}

/* Returns the status of a scope whose work runs out of host memory. */
static clg_status fail_within(memory_budget *b, size_t size_bytes)
{
    limits_scope scope;
    limits_enter(&scope, NULL, b, LIMIT_COMPILE);
    void *block = memory_alloc(size_bytes);
    assert_null(block);
    return limits_leave(&scope, CLG_ERROR_OUT_OF_HOST_MEMORY);
}

TEST(budget__a_refusal_is_no_lack_of_memory)
{
    memory_budget *b;
    assert_ok(memory_budget_create(LIMIT, BEFORE, &b));
    assert_error(fail_within(b, LIMIT), CLG_ERROR_LIMIT, "max_memory_bytes");
    assert_string_equal(error_hint_text(), "clg_limits.max_memory_bytes sets another limit");
    memory_budget_free(b);
    b = NULL;
    assert_error(fail_within(b, SIZE_MAX - 64), CLG_ERROR_OUT_OF_HOST_MEMORY, "could not be");
    failing_alloc_install();
    assert_ok(memory_budget_create(LIMIT, BEFORE, &b));
    failing_alloc_arm(0);
    assert_error(fail_within(b, 100), CLG_ERROR_OUT_OF_HOST_MEMORY, "could not be");
    failing_alloc_arm(SIZE_MAX);
    assert_int_equal(memory_budget_used(b), BEFORE);
    memory_budget_free(b);
    failing_alloc_remove();
}
