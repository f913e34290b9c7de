/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests the disk cache without a device: damaged entries, files that are not entries, folders that
 * cannot be used, size limits, packs, and concurrent processes.
 */
#include "support/unit.h"

#include "support/bytes.h"
#include "support/fakes/failing_alloc.h"
#include "support/platform.h"
#include "support/scratch.h"

#include "base/files.h"
#include "base/log.h"
#include "base/memory.h"
#include "ocl/cache/cache_entry.h"
#include "ocl/cache/disk_cache.h"
#include "ocl/ocl.h"

#include <clgraph/inspect.h>

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const hash128 key_a = {.low = 1, .high = 0xA}, key_b = {.low = 2, .high = 0xB};

static const char *entry_path(const char *folder, hash128 key)
{
    char name[CACHE_ENTRY_NAME_BYTES], path[1024];
    cache_entry_name(key, name);
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    return scratch_path(path + strlen(scratch_folder()) + 1);
}

static disk_cache *open_cache(const char *folder)
{
    disk_cache *s;
    assert_ok(disk_cache_open(folder, &s));
    return s;
}

/* Returns whether the cache has an entry for the key; fails the test if its payload is not
 * `expected`. */
static bool has(disk_cache *s, hash128 key, const char *expected)
{
    char *data;
    size_t n;
    if (!disk_cache_get(s, key, &data, &n)) {
        assert_null(data);
        return false;
    }
    assert_int_equal(n, strlen(expected));
    assert_memory_equal(data, expected, n);
    memory_free(data);
    return true;
}

static void put(disk_cache *s, hash128 key, const char *what, const char *data)
{
    disk_cache_put(s, key, what, data, strlen(data));
}

/* ---- entries --------------------------------------------------------------------------------- */

TEST(cache__gives_back_what_was_put)
{
    const char *folder = scratch_path("a/b/c");
    disk_cache *s = open_cache(folder);
    assert_false(has(s, key_a, ""));
    put(s, key_a, "first", "payload");
    put(s, key_b, "empty", "");
    assert_true(has(s, key_a, "payload"));
    assert_true(has(s, key_b, ""));
    put(s, key_a, "second", "another payload");
    assert_true(has(s, key_a, "another payload"));
    disk_cache_close(s);
    s = open_cache(folder);
    assert_true(has(s, key_a, "another payload"));
    disk_cache_close(s);
}

typedef struct damage {
    disk_cache *s;
    const char *path;
    size_t n_tried;
} damage;

static void damage_is_a_miss(void *user, const uint8_t *data, size_t n)
{
    damage *d = user;
    FILE *file = fopen(d->path, "wb");
    assert_non_null(file);
    if (n > 0) assert_int_equal(fwrite(data, 1, n, file), n);
    assert_int_equal(fclose(file), 0);
    assert_false(has(d->s, key_a, "payload"));
    d->n_tried++;
}

TEST(cache__damage_is_a_miss_and_is_replaced)
{
    const char *folder = scratch_path("damage");
    disk_cache *s = open_cache(folder);
    put(s, key_a, "what", "payload");
    damage d = {.s = s, .path = entry_path(folder, key_a)};
    char *whole;
    size_t n;
    assert_ok(file_read(d.path, SIZE_MAX, &whole, &n));

    bytes_each_prefix((uint8_t *)whole, n, damage_is_a_miss, &d);
    bytes_each_damage((uint8_t *)whole, n, damage_is_a_miss, &d);
    assert_true(d.n_tried > 2 * n);

    char *longer = memory_zalloc(n + 1, 1);
    memcpy(longer, whole, n);
    damage_is_a_miss(&d, (uint8_t *)longer, n + 1);
    put(s, key_a, "what", "payload");
    assert_true(has(s, key_a, "payload"));
    memory_free(longer);
    memory_free(whole);
    disk_cache_close(s);
}

TEST(cache__entry_under_another_name_is_a_miss)
{
    const char *folder = scratch_path("foreign");
    disk_cache *s = open_cache(folder);
    put(s, key_a, "what", "payload");
    assert_int_equal(rename(entry_path(folder, key_a), entry_path(folder, key_b)), 0);
    assert_false(has(s, key_b, "payload"));
    put(s, key_b, "what", "other");
    assert_true(has(s, key_b, "other"));
    disk_cache_close(s);
}

TEST(cache__unreadable_entry_is_a_miss_and_is_replaced)
{
    const char *folder = scratch_path("unreadable");
    disk_cache *s = open_cache(folder);
    put(s, key_a, "what", "payload");
    const char *path = entry_path(folder, key_a);
    assert_int_equal(chmod(path, 0), 0);
    if (!file_is_allowed(path, true, false)) /* root may read it regardless */
        assert_false(has(s, key_a, "payload"));
    put(s, key_a, "what", "again");
    assert_true(has(s, key_a, "again"));
    disk_cache_close(s);
}

TEST(cache__a_folder_in_the_place_of_an_entry_is_skipped)
{
    const char *folder = scratch_path("blocked"), *pack = scratch_path("blocked.pack");
    disk_cache *s = open_cache(folder);
    size_t n;
    put(s, key_a, "what", "payload");
    put(s, key_b, "what", "other");
    assert_ok(ocl_cache_pack(folder, pack));
    assert_int_equal(unlink(entry_path(folder, key_b)), 0);
    assert_ok(file_make_folders(entry_path(folder, key_b)));
    assert_false(has(s, key_b, "payload"));
    put(s, key_b, "what", "other");
    assert_true(disk_cache_is_on_disk(s)); /* for all other entries */
    put(s, key_a, "what", "again");
    assert_true(has(s, key_a, "again"));
    assert_ok(ocl_cache_unpack(folder, pack, &n));
    assert_int_equal(n, 1);
    assert_true(has(s, key_a, "payload"));
    disk_cache_close(s);
}

/* ---- folders that cannot be used ------------------------------------------------------------- */

static void age(const char *path, int64_t seconds) { assert_true(platform_age(path, seconds)); }

static size_t n_warnings;

static void count_warnings(void *user, clg_log_level level, const char *message)
{
    (void)user;
    if (level == CLG_LOG_WARNING && strstr(message, "memory only")) n_warnings++;
}

TEST(cache__unusable_folder_is_memory_only_with_one_warning)
{
    const char *file = scratch_file("a file", "", 0);
    char below[1024];
    (void)snprintf(below, sizeof below, "%s/below", file);
    const char *const folders[] = {file, below, platform_no_folder};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        n_warnings = 0;
        log_set(count_warnings, NULL, CLG_LOG_WARNING);
        disk_cache *s = open_cache(folders[i]);
        assert_true(disk_cache_is_on_disk(s));
        put(s, key_a, "what", "payload");
        put(s, key_b, "what", "payload");
        assert_false(disk_cache_is_on_disk(s));
        assert_false(has(s, key_a, "payload"));
        disk_cache_close(s);
        log_set(NULL, NULL, CLG_LOG_ERROR);
        assert_int_equal(n_warnings, 1);
    }
}

/* A session's max_memory_bytes must not end the cache, which all sessions of a context share. */
TEST(cache__remains_usable_after_memory_was_refused)
{
    const char *folder = scratch_path("refused");
    memory_budget *none;
    size_t n_stored = 0;
    n_warnings = 0;
    log_set(count_warnings, NULL, CLG_LOG_WARNING);
    disk_cache *s = open_cache(folder);
    for (uint64_t max = 0; n_stored == 0; max += 16) {
        assert_true(max < 1 << 20);
        assert_ok(memory_budget_create(max, 0, &none));
        memory_budget *before = memory_budget_set(none);
        put(s, key_a, "what", "payload");
        (void)memory_budget_set(before);
        memory_budget_free(none);
        assert_true(disk_cache_is_on_disk(s));
        n_stored += has(s, key_a, "payload");
    }
    disk_cache_close(s);
    log_set(NULL, NULL, CLG_LOG_ERROR);
    assert_int_equal(n_warnings, 0);
}

#ifndef _WIN32
TEST(cache__folder_of_others_is_memory_only_with_one_warning)
{
    const char *folder = scratch_path("everybody's"), *pack = scratch_path("everybody's.pack");
    disk_cache *s = open_cache(folder);
    put(s, key_a, "what", "payload");
    disk_cache_close(s);
    assert_int_equal(chmod(folder, 0777), 0);
    n_warnings = 0;
    log_set(count_warnings, NULL, CLG_LOG_WARNING);
    s = open_cache(folder);
    assert_false(has(s, key_a, "payload")); /* not trusted, although it is there */
    put(s, key_b, "what", "payload");
    assert_false(disk_cache_is_on_disk(s));
    assert_false(file_exists(entry_path(folder, key_b)));
    disk_cache_close(s);
    log_set(NULL, NULL, CLG_LOG_ERROR);
    assert_int_equal(n_warnings, 1);
    assert_error(ocl_cache_pack(folder, pack), CLG_ERROR_IO, "by all users");
    assert_int_equal(chmod(folder, 0700), 0);
    s = open_cache(folder);
    assert_true(has(s, key_a, "payload"));
    assert_ok(ocl_cache_pack(folder, pack));
    assert_int_equal(chmod(folder, 0777), 0);
    size_t n;
    assert_error(ocl_cache_unpack(folder, pack, &n), CLG_ERROR_IO, "by all users");
    put(s, key_b, "what", "payload"); /* it was private when it was opened */
    assert_false(file_exists(entry_path(folder, key_b)));
    disk_cache_close(s);
}

TEST(cache__links_and_pipes_in_the_place_of_entries)
{
    const char *folder = scratch_path("odd"), *outside = scratch_file("odd outside", "mine", 4);
    disk_cache *s = open_cache(folder);
    assert_ok(file_make_folders(folder));
    assert_int_equal(mkfifo(entry_path(folder, key_a), 0600), 0);
    assert_int_equal(symlink(outside, entry_path(folder, key_b)), 0);
    assert_false(has(s, key_a, "payload")); /* without waiting for a writer */
    assert_false(has(s, key_b, "payload"));
    put(s, key_a, "what", "payload");
    put(s, key_b, "what", "payload");
    assert_true(has(s, key_a, "payload"));
    assert_true(has(s, key_b, "payload"));
    char *data;
    size_t n;
    assert_ok(file_read(outside, 100, &data, &n));
    assert_string_equal(data, "mine");
    memory_free(data);
    disk_cache_close(s);
}
#endif

TEST(cache__first_entry_removes_what_dead_processes_left)
{
    const char *folder = scratch_path("left over");
    char name[128];
    assert_ok(file_make_folders(folder));
    (void)snprintf(name, sizeof name, "left over/%032d.clb" FILE_TEMPORARY_MARK "1.2", 0);
    const char *left_over = scratch_file(name, "x", 1);
    age(left_over, 7200);
    disk_cache *s = open_cache(folder);
    put(s, key_a, "what", "payload");
    assert_false(file_exists(left_over));
    assert_true(has(s, key_a, "payload"));
    disk_cache_close(s);
}

TEST(cache__empty_folder_name_is_memory_only_without_a_warning)
{
    n_warnings = 0;
    log_set(count_warnings, NULL, CLG_LOG_WARNING);
    disk_cache *s = open_cache("");
    assert_false(disk_cache_is_on_disk(s));
    put(s, key_a, "what", "payload");
    assert_false(has(s, key_a, "payload"));
    disk_cache_close(s);
    log_set(NULL, NULL, CLG_LOG_ERROR);
    assert_int_equal(n_warnings, 0);
}

/* ---- pruning, clearing, listing -------------------------------------------------------------- */

TEST(cache__least_recently_used_go_first)
{
    const char *folder = scratch_path("lru");
    disk_cache *s = open_cache(folder);
    char name[128], payload[1001] = {0};
    memset(payload, 'x', 1000);
    for (uint64_t i = 0; i < 4; i++) {
        const hash128 key = {.low = i, .high = 7};
        put(s, key, "what", payload);
        age(entry_path(folder, key), 100 - (int64_t)i);
    }
    const hash128 oldest = {.low = 0, .high = 7}, second = {.low = 1, .high = 7},
                  last = {.low = 3, .high = 7};
    assert_true(has(s, oldest, payload)); /* now the most recently used */
    const char *stranger =
        (snprintf(name, sizeof name, "lru/%s", "notes.txt"), scratch_file(name, "mine", 4));
    const char *left_over =
        (snprintf(name, sizeof name, "lru/%032d.clb.tmp.1.2", 0), scratch_file(name, "x", 1));
    age(left_over, 7200);

    size_t n;
    assert_ok(ocl_cache_prune(folder, 2500, &n));
    assert_int_equal(n, 3); /* two entries and the left-over temporary file */
    assert_true(has(s, oldest, payload));
    assert_false(has(s, second, payload));
    assert_true(has(s, last, payload));
    assert_true(file_exists(stranger));
    assert_false(file_exists(left_over));

    assert_ok(ocl_cache_clear(folder, &n));
    assert_int_equal(n, 2);
    assert_true(file_exists(stranger));
    assert_ok(ocl_cache_clear(scratch_path("lru, absent"), &n));
    assert_int_equal(n, 0);
    disk_cache_close(s);
}

TEST(cache__list_says_what_entries_hold)
{
    const char *folder = scratch_path("list");
    disk_cache *s = open_cache(folder);
    put(s, key_a, "device A: program gemm", "payload");
    put(s, key_b, "device B: self-test results", "payload");
    const char *path = entry_path(folder, key_b);
    assert_int_equal(truncate(path, 60), 0);
    ocl_cache_entry *entries;
    size_t n;
    assert_ok(ocl_cache_list(folder, &entries, &n));
    assert_int_equal(n, 2);
    for (size_t i = 0; i < n; i++) {
        const bool is_a = strstr(path, entries[i].name) == NULL;
        assert_string_equal(entries[i].what, is_a ? "device A: program gemm" : "damaged");
        assert_true(entries[i].size_bytes >= 60);
        assert_true(entries[i].used_ns > 0);
    }
    ocl_cache_list_free(entries, n);
    assert_ok(ocl_cache_list(scratch_path("list, absent"), &entries, &n));
    assert_int_equal(n, 0);
    ocl_cache_list_free(entries, n);
    disk_cache_close(s);
}

/* ---- packs ----------------------------------------------------------------------------------- */

static void pack_is_refused(void *user, const uint8_t *data, size_t n)
{
    const char *folder = user;
    const char *file = scratch_path("damaged.pack");
    FILE *out = fopen(file, "wb");
    size_t n_entries;
    assert_non_null(out);
    if (n > 0) assert_int_equal(fwrite(data, 1, n, out), n);
    assert_int_equal(fclose(out), 0);
    assert_error(ocl_cache_unpack(folder, file, &n_entries), CLG_ERROR_IO, "cannot be unpacked");
    assert_int_equal(n_entries, 0);
}

TEST(cache__pack_moves_all_entries)
{
    const char *from = scratch_path("pack from"), *to = scratch_path("pack to"),
               *file = scratch_path("all.pack");
    disk_cache *s = open_cache(from);
    size_t n;
    put(s, key_a, "a", "payload a");
    put(s, key_b, "b", "payload b");
    const hash128 damaged = {.low = 3, .high = 3};
    put(s, damaged, "c", "payload c");
    assert_int_equal(truncate(entry_path(from, damaged), 70), 0);
    disk_cache_close(s);

    assert_ok(ocl_cache_pack(from, file));
    assert_ok(ocl_cache_unpack(to, file, &n));
    assert_int_equal(n, 2);
    s = open_cache(to);
    assert_true(has(s, key_a, "payload a"));
    assert_true(has(s, key_b, "payload b"));
    assert_false(has(s, damaged, "payload c"));
    disk_cache_close(s);

    char *pack;
    assert_ok(file_read(file, SIZE_MAX, &pack, &n));
    char *nowhere = memory_strdup(scratch_path("pack nowhere"));
    bytes_each_prefix((uint8_t *)pack, n, pack_is_refused, nowhere);
    bytes_each_damage((uint8_t *)pack, n, pack_is_refused, nowhere);
    assert_false(file_exists(nowhere));
    memory_free(nowhere);
    memory_free(pack);
    assert_error(ocl_cache_unpack(to, scratch_path("no.pack"), &n), CLG_ERROR_IO, "no.pack");
}

/* ---- concurrent processes -------------------------------------------------------------------- */

static int hammer(const char *folder, int seed)
{
    disk_cache *s;
    char payload[4096];
    if (disk_cache_open(folder, &s) != CLG_OK) return 2;
    for (int i = 0; i < 300; i++) {
        const hash128 key = {.low = (uint64_t)(i % 7), .high = 9};
        const size_t n = (size_t)((i * 37 + seed * 101) % (int)sizeof payload);
        char *data;
        size_t n_read;
        memset(payload, 'a' + (int)(n % 26), n);
        disk_cache_put(s, key, "hammer", payload, n);
        if (disk_cache_get(s, key, &data, &n_read)) {
            for (size_t b = 0; b < n_read; b++)
                if (data[b] != 'a' + (int)(n_read % 26)) return 3;
            memory_free(data);
        }
        if (i % 50 == 49) {
            size_t n_removed;
            (void)ocl_cache_prune(folder, 1000, &n_removed);
        }
    }
    disk_cache_close(s);
    return 0;
}

TEST(cache__processes_share_a_folder)
{
    enum { N_PROCESSES = 4 };
    const char *folder = scratch_path("shared");
    assert_true(platform_run_apart(N_PROCESSES, hammer, folder));
    file_entry *files;
    size_t n;
    assert_ok(file_list(folder, &files, &n));
    for (size_t i = 0; i < n; i++) assert_null(strstr(files[i].name, ".tmp."));
    file_list_free(files, n);
}

/* ---- failing allocations --------------------------------------------------------------------- */

static clg_status list_and_pack(void *user)
{
    const char *folder = user;
    ocl_cache_entry *entries;
    size_t n;
    CLG_TRY(ocl_cache_list(folder, &entries, &n));
    ocl_cache_list_free(entries, n);
    CLG_TRY(ocl_cache_pack(folder, scratch_path("faults.pack")));
    CLG_TRY(ocl_cache_unpack(scratch_path("faults to"), scratch_path("faults.pack"), &n));
    return ocl_cache_prune(folder, 1 << 20, &n);
}

TEST(cache__failed_allocations_lose_nothing)
{
    const char *folder = scratch_path("faults");
    disk_cache *s = open_cache(folder);
    put(s, key_a, "what", "payload");
    disk_cache_close(s);
    failing_alloc_install();
    for (size_t i = 0; i < 40; i++) {
        failing_alloc_arm(i);
        if (disk_cache_open(folder, &s) != CLG_OK) continue;
        (void)has(s, key_a, "payload");
        put(s, key_a, "what", "payload");
        disk_cache_close(s);
        assert_int_equal(failing_alloc_n_live(), 0);
    }
    failing_alloc_remove();
    s = open_cache(folder);
    assert_true(has(s, key_a, "payload"));
    disk_cache_close(s);
}

TEST(cache__listing_and_packing_survive_failed_allocations)
{
    const char *folder = scratch_path("faults 2");
    disk_cache *s = open_cache(folder);
    put(s, key_a, "what", "payload");
    disk_cache_close(s);
    assert_true(fault_loop_alone(list_and_pack, (void *)folder) > 5);
}

TEST(cache__a_folder_has_a_name)
{
    char *path;
    clg_cache_entry *entries;
    size_t n = 7;
    assert_error(clg_cache_path("", &path), CLG_ERROR_INVALID_ARGUMENT, "an empty name");
    assert_error(clg_cache_list("", &entries, &n), CLG_ERROR_INVALID_ARGUMENT, "an empty name");
    assert_error(clg_cache_clear("", &n), CLG_ERROR_INVALID_ARGUMENT, "an empty name");
    assert_error(clg_cache_prune("", 1, NULL), CLG_ERROR_INVALID_ARGUMENT, "an empty name");
    assert_error(clg_cache_pack("", scratch_path("pack")), CLG_ERROR_INVALID_ARGUMENT,
                 "an empty name");
    assert_error(clg_cache_unpack("", scratch_path("pack"), NULL), CLG_ERROR_INVALID_ARGUMENT,
                 "an empty name");
    assert_int_equal(n, 0);
}
