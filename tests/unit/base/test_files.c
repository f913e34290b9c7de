/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests functions for files, folders, file names and times.
 */
#include "base/clock.h"
#include "support/unit.h"

#include "support/fakes/failing_alloc.h"
#include "support/platform.h"
#include "support/scratch.h"

#include "base/files.h"
#include "base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TEST(files__view_shows_the_whole_file)
{
    file_view view;
    assert_ok(file_view_open(scratch_file("view", "a\0bc", 4), 0, &view));
    assert_int_equal(view.size_bytes, 4);
    assert_memory_equal(view.data, "a\0bc", 4);
    file_view_close(&view);
    assert_null(view.data);
    file_view_close(&view);

    assert_ok(file_view_open(scratch_file("empty", "", 0), 0, &view));
    assert_int_equal(view.size_bytes, 0);
    file_view_close(&view);
}

TEST(files__view_is_the_same_after_unloading)
{
    enum { N = 300000 };
    uint8_t *bytes = memory_alloc(N);
    file_view view;
    for (size_t i = 0; i < N; i++) bytes[i] = (uint8_t)(i * 2654435761u >> 13);
    assert_ok(file_view_open(scratch_file("unloaded", (const char *)bytes, N), 0, &view));
    static const size_t ranges[][2] = {
        {0, N},       {0, 1},        {0, 0},          {1, N - 2},       {4095, 4098},
        {4096, 4096}, {5000, 70000}, {131072, 65536}, {N - 5000, 5000}, {200001, 99998}};
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++) {
        file_view_unload(&view, view.data + ranges[i][0], ranges[i][1]);
        assert_memory_equal(view.data, bytes, N);
    }
    file_view_close(&view);
    file_view_unload(&view, NULL, 0);
    memory_free(bytes);
}

TEST(files__errors_name_path_and_cause)
{
    file_view view;
    char *data;
    size_t size;
    assert_error(file_view_open(scratch_path("absent"), 0, &view), CLG_ERROR_IO,
                 "absent' cannot be opened");
    assert_error(file_view_open(scratch_folder(), 0, &view), CLG_ERROR_IO, "is a folder");
    assert_error(file_read(scratch_path("absent"), 10, &data, &size), CLG_ERROR_IO, "absent");
    assert_null(data);
    assert_error(file_remove(scratch_path("absent")), CLG_ERROR_IO, "cannot be removed");
    assert_error(file_replace(scratch_path("no/folder"), "x", 1), CLG_ERROR_IO,
                 "cannot be written");
    file_entry *entries;
    size_t n;
    assert_error(file_list(scratch_path("absent"), &entries, &n), CLG_ERROR_IO, "cannot be listed");
    assert_null(entries);
}

TEST(files__read_keeps_to_its_maximum)
{
    char *data;
    size_t size;
    const char *path = scratch_file("ten", "0123456789", 10);
    assert_ok(file_read(path, 10, &data, &size));
    assert_int_equal(size, 10);
    assert_string_equal(data, "0123456789"); /* followed by a NUL */
    memory_free(data);
    assert_error(file_read(path, 9, &data, &size), CLG_ERROR_IO, "larger than the 9 bytes");
    assert_ok(file_read(path, SIZE_MAX, &data, &size));
    assert_int_equal(size, 10);
    memory_free(data);
}

static size_t n_entries(const char *folder)
{
    file_entry *entries;
    size_t n;
    assert_ok(file_list(folder, &entries, &n));
    file_list_free(entries, n);
    return n;
}

TEST(files__atomic_write_replaces_whole_files)
{
    const char *folder = scratch_path("atomic"), *path = scratch_path("atomic/file");
    char *data;
    size_t size;
    assert_ok(file_make_folders(folder));
    assert_ok(file_replace(path, "old", 3));
    assert_ok(file_replace(path, "new text", 8));
    assert_ok(file_read(path, 100, &data, &size));
    assert_string_equal(data, "new text");
    memory_free(data);
    assert_ok(file_replace(path, NULL, 0));
    assert_ok(file_read(path, 100, &data, &size));
    assert_int_equal(size, 0);
    memory_free(data);
    assert_int_equal(n_entries(folder), 1);
}

TEST(files__writer_patches_and_abandons)
{
    const char *folder = scratch_path("writer"), *path = scratch_path("writer/file");
    file_writer writer;
    char *data;
    size_t size;
    assert_ok(file_make_folders(folder));
    assert_ok(file_writer_open(path, &writer));
    assert_ok(file_writer_append(&writer, "....body", 8));
    assert_ok(file_writer_patch(&writer, 0, "head", 4));
    assert_ok(file_writer_append(&writer, "tail", 4));
    assert_error(file_writer_patch(&writer, 10, "xxx", 3), CLG_ERROR_INTERNAL, "outside");
    assert_false(file_exists(path));
    assert_ok(file_writer_commit(&writer));
    assert_ok(file_read(path, 100, &data, &size));
    assert_string_equal(data, "headbodytail");
    memory_free(data);

    assert_ok(file_writer_open(path, &writer));
    assert_ok(file_writer_append(&writer, "lost", 4));
    assert_int_equal(n_entries(folder), 2);
    file_writer_abandon(&writer);
    file_writer_abandon(&writer);
    assert_int_equal(n_entries(folder), 1);

    /* The target path is a folder: nothing remains after the failure. */
    assert_ok(file_make_folders(scratch_path("writer/folder")));
    assert_error(file_replace(scratch_path("writer/folder"), "x", 1), CLG_ERROR_IO,
                 "cannot be replaced");
    assert_int_equal(n_entries(folder), 2);
}

TEST(files__make_folders_is_repeatable)
{
    const char *deep = scratch_path("one/two//three");
    assert_ok(file_make_folders(deep));
    assert_ok(file_make_folders(deep));
    assert_true(file_exists(deep));
    (void)scratch_file("plain", "", 0);
    assert_error(file_make_folders(scratch_path("plain/below")), CLG_ERROR_IO, "cannot be made");
}

TEST(files__list_is_sorted)
{
    file_entry *entries;
    size_t n;
    assert_ok(file_make_folders(scratch_path("list/sub")));
    (void)scratch_file("list/b", "22", 2);
    (void)scratch_file("list/a", "1", 1);
    assert_ok(file_list(scratch_path("list"), &entries, &n));
    assert_int_equal(n, 3);
    assert_string_equal(entries[0].name, "a");
    assert_string_equal(entries[1].name, "b");
    assert_int_equal(entries[1].size_bytes, 2);
    assert_false(entries[1].is_folder);
    assert_true(entries[1].modified_ns > (int64_t)1600000000 * 1000000000);
    assert_string_equal(entries[2].name, "sub");
    assert_true(entries[2].is_folder);
    file_list_free(entries, n);
    file_list_free(NULL, 0);
}

TEST(names__inside_a_folder)
{
    static const char *const good[] = {"a",       "a.bin", "a/b", "./a",
                                       "..a/b..", "a..b",  "...", "a\\b"};
    static const char *const bad[] = {"",         "/a",  "..",  "../a", "a/..",  "a/../b",
                                      "a\\..\\b", "\\a", "C:a", "c:/a", "a/b/.."};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        assert_true(file_name_is_inside(good[i]));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(file_name_is_inside(bad[i]));
}

TEST(environment__empty_is_unset)
{
    assert_true(platform_set_env("CLG_TEST_VARIABLE", ""));
    assert_null(env_get("CLG_TEST_VARIABLE"));
    assert_true(platform_set_env("CLG_TEST_VARIABLE", "x"));
    assert_string_equal(env_get("CLG_TEST_VARIABLE"), "x");
    assert_true(platform_set_env("CLG_TEST_VARIABLE", NULL));
    assert_null(env_get("CLG_TEST_VARIABLE"));
}

TEST(time__goes_forward)
{
    uint64_t first = time_now_ns(), last = first;
    while (last == first) last = time_now_ns();
    assert_true(last > first);
}

static clg_status work_with_files(void *user)
{
    const char *folder = user;
    char *path = NULL, *data = NULL, *parent = NULL;
    file_entry *entries = NULL;
    size_t n = 0, size;
    clg_status status = file_join(folder, "file", &path);
    if (status == CLG_OK) status = file_make_folders(folder);
    if (status == CLG_OK) status = file_write(path, "abc", 3);
    if (status == CLG_OK) status = file_replace(path, "abc", 3);
    if (status == CLG_OK) status = file_read(path, 10, &data, &size);
    if (status == CLG_OK) status = file_folder(path, &parent);
    if (status == CLG_OK) status = file_list(parent, &entries, &n);
    file_list_free(entries, n);
    memory_free(parent);
    memory_free(data);
    memory_free(path);
    return status;
}

TEST(files__survive_every_failing_allocation)
{
    char folder[2048];
    (void)snprintf(folder, sizeof folder, "%s", scratch_path("faults"));
    assert_true(fault_loop_alone(work_with_files, folder) > 6);
    assert_int_equal(n_entries(folder), 1); /* no temporary file is left */
}
