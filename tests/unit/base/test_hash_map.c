/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests the hash map: look-ups, replacing values, keys of any bytes, failing allocations.
 */
#include "support/unit.h"

#include "support/fakes/failing_alloc.h"

#include "base/hash_map.h"
#include "base/memory.h"

#include <stdio.h>
#include <string.h>

TEST(map__empty_finds_nothing)
{
    hash_map m = {0};
    assert_true(hash_map_get_string(&m, "a") == HASH_MAP_NONE);
    hash_map_deinit(&m);
}

TEST(map__finds_what_was_set)
{
    hash_map m = {0};
    char key[32];
    for (size_t i = 0; i < 5000; i++) {
        (void)snprintf(key, sizeof key, "key %zu", i);
        assert_ok(hash_map_set_string(&m, key, i));
    }
    memset(key, 0, sizeof key); /* keys are copied */
    for (size_t i = 0; i < 5000; i++) {
        (void)snprintf(key, sizeof key, "key %zu", i);
        assert_int_equal(hash_map_get_string(&m, key), i);
    }
    assert_int_equal(m.count, 5000);
    assert_true(hash_map_get_string(&m, "key 5000") == HASH_MAP_NONE);
    hash_map_deinit(&m);
    assert_int_equal(m.count, 0);
}

TEST(map__replaces_and_takes_any_bytes)
{
    hash_map m = {0};
    assert_ok(hash_map_set(&m, "a\0b", 3, 1));
    assert_ok(hash_map_set(&m, "a\0c", 3, 2));
    assert_ok(hash_map_set(&m, "", 0, 3));
    assert_ok(hash_map_set(&m, "a\0b", 3, 4));
    assert_int_equal(m.count, 3);
    assert_int_equal(hash_map_get(&m, "a\0b", 3), 4);
    assert_int_equal(hash_map_get(&m, "a\0c", 3), 2);
    assert_int_equal(hash_map_get(&m, NULL, 0), 3);
    assert_true(hash_map_get(&m, "a", 1) == HASH_MAP_NONE);
    hash_map_deinit(&m);
}

static clg_status fill(void *user)
{
    (void)user;
    hash_map m = {0};
    clg_status status = CLG_OK;
    for (size_t i = 0; i < 1000 && status == CLG_OK; i++) {
        status = hash_map_set(&m, &i, sizeof i, i);
        /* Existing entries are unchanged, also after a failure. */
        for (size_t j = 0; j < m.count; j++) assert_int_equal(hash_map_get(&m, &j, sizeof j), j);
    }
    hash_map_deinit(&m);
    return status;
}

/* Of eight sizes of the table, and of three blocks of keys or more. */
TEST(map__survives_every_failing_allocation) { assert_true(fault_loop_alone(fill, NULL) > 8 + 2); }
