/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests files on Windows: names in several scripts, long paths, root folders, files that are open
 * elsewhere, the cache folder.
 */
#include "support/unit.h"

#include "support/cases/path_checks.h"
#include "support/platform.h"
#include "support/scratch.h"

#include "base/files.h"
#include "base/memory.h"

#include <stdio.h>
#include <string.h>

#define WORDS                                                                                      \
    "gr\xC3\xBC\xC3\x9F"                                                                           \
    "e \xE4\xB8\x96\xE7\x95\x8C \xF0\x9F\x98\x80" /* Latin, Chinese, and a surrogate pair */

TEST(files__names_in_all_scripts)
{
    file_entry *entries;
    file_view view;
    size_t n;
    char *path;
    const char *folder = scratch_path(WORDS);
    assert_ok(file_make_folders(folder));
    assert_ok(file_join(folder, WORDS ".bin", &path));
    assert_ok(file_replace(path, "abc", 3));
    assert_true(file_exists(path));
    assert_ok(file_view_open(path, 0, &view));
    assert_int_equal(view.size_bytes, 3);
    file_view_close(&view);
    assert_ok(file_list(folder, &entries, &n));
    assert_int_equal(n, 1);
    assert_string_equal(entries[0].name, WORDS ".bin");
    file_list_free(entries, n);
    assert_ok(file_remove(path));
    assert_false(file_exists(path));
    memory_free(path);
    assert_error(file_view_open("a\xFF", 0, &view), CLG_ERROR_IO, "cannot be opened");
}

TEST(files__paths_may_be_long)
{
    char path[1200], file[1300];
    char *data;
    size_t n = (size_t)snprintf(path, sizeof path, "%s", scratch_folder());
    for (int i = 0; i < 8; i++) n += (size_t)snprintf(path + n, sizeof path - n, "/%0100d", i);
    assert_ok(file_make_folders(path));
    (void)snprintf(file, sizeof file, "%s/file", path);
    assert_ok(file_replace(file, "abc", 3));
    assert_ok(file_read(file, 10, &data, &n));
    assert_int_equal(n, 3);
    memory_free(data);
}

/* Checks that an open reader keeps reading the old data after the file was replaced. Before Windows
 * 10, replacing an open file may fail: then the file is unchanged, and no temporary file remains.
 */
TEST(files__are_replaced_whole_while_they_are_read)
{
    file_reader reader;
    file_entry *entries;
    char old[3], *data;
    size_t n;
    assert_ok(file_make_folders(scratch_path("read")));
    const char *path = scratch_file("read/file", "old", 3);
    assert_ok(file_reader_open(path, &reader));
    const clg_status status = file_replace(path, "newer", 5);
    if (status != CLG_OK) assert_non_null(strstr(error_text(), "cannot be replaced"));
    assert_ok(file_reader_read(&reader, 0, old, 3));
    assert_memory_equal(old, "old", 3);
    file_reader_close(&reader);
    assert_ok(file_read(path, 10, &data, &n));
    assert_string_equal(data, status == CLG_OK ? "newer" : "old");
    memory_free(data);
    assert_ok(file_replace(path, "newest", 6));
    assert_ok(file_list(scratch_path("read"), &entries, &n));
    assert_int_equal(n, 1);
    file_list_free(entries, n);
}

TEST(names__join_and_folder)
{
    check_join("a", "b", "a\\b");
    check_join("a/", "b", "a/b");
    check_join("", "b", "b");
    check_join("C:", "b", "C:b");
    check_join("C:\\", "b", "C:\\b");
    check_join("\\\\server\\share", "b", "\\\\server\\share\\b");
    check_folder("model.onnx", ".");
    check_folder("a/model.onnx", "a");
    check_folder("a\\b/model.onnx", "a\\b");
    check_folder("\\model.onnx", "\\");
    check_folder("C:\\model.onnx", "C:\\");
    check_folder("C:model.onnx", "C:");
    check_folder("\\\\server\\share\\a\\b", "\\\\server\\share\\a");
    check_folder("\\\\server\\share\\a", "\\\\server\\share");
}

TEST(names__colons_are_streams)
{
    assert_false(file_name_is_inside("weights:0"));
    assert_true(file_name_is_inside("a\\b"));
}

TEST(environment__is_utf8)
{
    char name[16];
    assert_true(platform_set_env("CLG_TEST_VARIABLE", WORDS));
    const char *value = env_get("CLG_TEST_VARIABLE");
    assert_string_equal(value, WORDS);
    for (int i = 0; i < 7; i++) { /* the eighth further call would overwrite `value` */
        (void)snprintf(name, sizeof name, "CLG_TEST_%d", i);
        assert_true(platform_set_env(name, "x"));
        assert_string_equal(env_get(name), "x");
    }
    assert_string_equal(value, WORDS);
}

TEST(environment__cache_folder)
{
    char *path;
    assert_true(platform_set_env("LOCALAPPDATA", "C:\\" WORDS));
    assert_ok(file_cache_folder(&path));
    assert_string_equal(path, "C:\\" WORDS "\\clgraph");
    memory_free(path);
    assert_true(platform_set_env("LOCALAPPDATA", NULL));
    assert_error(file_cache_folder(&path), CLG_ERROR_IO, "LOCALAPPDATA");
    assert_non_null(strstr(error_hint_text(), "CLG_CACHE_DIR"));
    assert_null(path);
}
