/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests the library's host memory: allocation functions, the user's allocator, arenas; also the
 * hash function.
 */
#include "support/unit.h"

#include "support/fakes/failing_alloc.h"

#include "base/hash.h"
#include "base/memory.h"

#include <string.h>

TEST(memory__counts_live_blocks)
{
    size_t before = memory_n_live();
    void *a = memory_alloc(0), *b = memory_zalloc(3, 5);
    char *c = memory_strdup("text"), *d = memory_strndup("text", 2);
    assert_non_null(a);
    assert_memory_equal(b, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 15);
    assert_string_equal(c, "text");
    assert_string_equal(d, "te");
    assert_int_equal(memory_n_live(), before + 4);
    c = memory_resize(c, 1000);
    assert_string_equal(c, "text");
    a = memory_resize(a, 0);
    assert_non_null(a);
    assert_int_equal(memory_n_live(), before + 4);
    memory_free(a);
    memory_free(b);
    memory_free(c);
    memory_free(d);
    memory_free(NULL);
    assert_int_equal(memory_n_live(), before);
}

TEST(memory__refuses_sizes_that_overflow)
{
    assert_null(memory_zalloc(SIZE_MAX / 2, 3));
    assert_non_null(strstr(error_text(), "out of host memory"));
    assert_null(memory_alloc_aligned(SIZE_MAX - 8));
    assert_null(memory_strndup("x", SIZE_MAX));
    void *items = NULL;
    size_t capacity = 0;
    assert_int_equal(memory_reserve(&items, &capacity, SIZE_MAX / 2, 16),
                     CLG_ERROR_OUT_OF_HOST_MEMORY);
    assert_null(items);
    assert_int_equal(capacity, 0);
}

TEST(memory__aligned_blocks_are_aligned_and_zero)
{
    for (size_t size = 0; size < 300; size += 7) {
        uint8_t *p = memory_alloc_aligned(size);
        assert_non_null(p);
        assert_int_equal((uintptr_t)p % MEMORY_ALIGNMENT, 0);
        for (size_t i = 0; i < size; i++) assert_int_equal(p[i], 0);
        memset(p, 0xff, size);
        memory_free_aligned(p);
    }
    memory_free_aligned(NULL);
}

TEST(memory__reserve_grows_geometrically_and_keeps)
{
    int *items = NULL;
    size_t capacity = 0, n_moves = 0;
    for (int i = 0; i < 10000; i++) {
        size_t before = capacity;
        assert_ok(MEMORY_RESERVE(items, capacity, (size_t)i + 1));
        n_moves += capacity != before;
        items[i] = i;
    }
    for (int i = 0; i < 10000; i++) assert_int_equal(items[i], i);
    assert_true(n_moves < 20);
    memory_free(items);
}

TEST(memory__allocator_changes_only_when_nothing_lives)
{
    clg_allocator without = {0};
    assert_error(memory_set_allocator(&without), CLG_ERROR_INVALID_ARGUMENT, "no resize");
    void *block = memory_alloc(1);
    assert_error(memory_set_allocator(NULL), CLG_ERROR_INVALID_ARGUMENT, "in use");
    assert_true(error_hint_text()[0] != '\0');
    memory_free(block);
    failing_alloc_install();
    char *zeros = memory_zalloc(100, 1); /* the hook returns memory that is not zeroed */
    for (int i = 0; i < 100; i++) assert_int_equal(zeros[i], 0);
    assert_int_equal(failing_alloc_n_live(), 1);
    memory_free(zeros);
    assert_int_equal(failing_alloc_n_live(), 0);
    failing_alloc_remove();
}

TEST(memory__failure_keeps_the_old_block)
{
    failing_alloc_install();
    char *text = memory_strdup("kept");
    failing_alloc_arm(0);
    assert_null(memory_resize(text, 4000));
    assert_non_null(strstr(error_text(), "4000 bytes"));
    assert_string_equal(text, "kept");
    memory_free(text);
    failing_alloc_remove();
}

TEST(arena__gives_zeroed_aligned_lasting_memory)
{
    arena a = {0};
    char *first = arena_strdup(&a, "first");
    for (size_t i = 0; i < 5000; i++) {
        size_t size = i * 37 % 301;
        uint8_t *p = arena_alloc(&a, 1, size);
        assert_non_null(p);
        assert_int_equal((uintptr_t)p % _Alignof(max_align_t), 0);
        for (size_t j = 0; j < size; j++) assert_int_equal(p[j], 0);
        memset(p, 0xee, size);
    }
    uint8_t *large = arena_alloc(&a, 3, 1 << 20);
    assert_non_null(large);
    assert_int_equal(large[(3 << 20) - 1], 0);
    assert_non_null(arena_alloc(&a, 1, 8));
    assert_string_equal(arena_printf(&a, "%d-%s", 7, "x"), "7-x");
    assert_string_equal(arena_strndup(&a, "abcdef", 3), "abc");
    assert_string_equal(first, "first");
    assert_true(a.size_bytes >= (size_t)3 << 20);
    assert_null(arena_alloc(&a, SIZE_MAX, 2));
    assert_null(arena_alloc(&a, SIZE_MAX, 1));
    assert_null(arena_strndup(&a, "x", SIZE_MAX));
    arena_deinit(&a);
    assert_null(a.blocks);
    arena_deinit(&a);
}

static clg_status use_arena(void *user)
{
    (void)user;
    arena a = {0};
    clg_status status = CLG_ERROR_OUT_OF_HOST_MEMORY;
    if (arena_alloc(&a, 100, 1) && arena_alloc(&a, 5000, 1) && arena_printf(&a, "%5000s", ""))
        status = CLG_OK;
    arena_deinit(&a);
    return status;
}

TEST(arena__survives_every_failing_allocation)
{
    failing_alloc_install();
    assert_int_equal(fault_loop(use_arena, NULL), 3);
    failing_alloc_remove();
}

TEST(arena__cleared_is_as_new_but_for_a_block)
{
    arena a = {0};
    arena_clear(&a);
    assert_null(a.blocks);
    for (int round = 0; round < 3; round++) {
        char outside;
        for (size_t i = 0; i < 500; i++) {
            uint8_t *p = arena_alloc(&a, 1, 300);
            assert_non_null(p);
            assert_true(arena_owns(&a, p) && arena_owns(&a, p + 299));
            for (size_t j = 0; j < 300; j++) assert_int_equal(p[j], 0);
            memset(p, 0xee, 300);
        }
        assert_false(arena_owns(&a, &outside));
        const size_t live = memory_n_live();
        arena_clear(&a);
        assert_int_equal(a.size_bytes, 0);
        assert_true(memory_n_live() <= live);
        assert_non_null(a.blocks);
    }
    arena_deinit(&a);
    assert_int_equal(memory_n_live(), 0);
}

TEST(hash__is_xxh3)
{
    /* The hash of the empty input, from xxHash's documentation. */
    assert_true(hash_bytes("", 0, 0) == 0x2d06800538d394c2ull);
    char hex[33];
    hash128_hex(hash128_bytes("", 0), hex);
    assert_string_equal(hex, "99aa06d3014798d86001c324468d497f");
    assert_true(hash_string("abc") == hash_bytes("abcd", 3, 0));
    assert_true(hash_bytes("abc", 3, 0) != hash_bytes("abc", 3, 1));
}
