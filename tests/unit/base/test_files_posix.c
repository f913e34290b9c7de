/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests files on POSIX systems: pipes, permissions, links, paths, the cache folder.
 */
#include "support/unit.h"

#include "support/cases/path_checks.h"
#include "support/scratch.h"

#include "base/files.h"
#include "base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

TEST(files__view_reads_what_cannot_be_mapped)
{
    int ends[2];
    char path[64];
    char block[5000];
    file_view view;
    memset(block, 'p', sizeof block);
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], block, sizeof block), sizeof block);
    assert_int_equal(close(ends[1]), 0);
    (void)snprintf(path, sizeof path, "/dev/fd/%d", ends[0]);
    assert_ok(file_view_open(path, &view));
    assert_int_equal(view.size_bytes, sizeof block);
    assert_memory_equal(view.data, block, sizeof block);
    file_view_unload(&view, view.data,
                     view.size_bytes); /* must keep the bytes: a pipe cannot be read again */
    assert_memory_equal(view.data, block, sizeof block);
    file_view_close(&view);
    assert_int_equal(close(ends[0]), 0);
}

/* Returns how many KiB of the mapping that starts at data are resident; -1 where the system does
 * not report it. */
static long resident_kib(const void *data)
{
    char line[512];
    unsigned long start, end;
    long kib = -1;
    bool is_it = false;
    FILE *f = fopen("/proc/self/smaps", "r");
    while (f && kib < 0 && fgets(line, sizeof line, f)) {
        if (sscanf(line, "%lx-%lx ", &start, &end) == 2) is_it = start == (uintptr_t)data;
        if (is_it) (void)sscanf(line, "Rss: %ld", &kib);
    }
    if (f) (void)fclose(f);
    return kib;
}

TEST(files__view_gives_its_memory_back)
{
    enum { N = 1 << 20, KIB = N / 1024 };
    uint8_t *bytes = memory_zalloc(N, 1);
    file_view view;
    memset(bytes, 'v', N);
    assert_ok(file_view_open(scratch_file("resident", bytes, N), &view));
    assert_memory_equal(view.data, bytes, N);
    const long all = resident_kib(view.data);
    if (all >= 0) {
        assert_int_equal(all, KIB);
        file_view_unload(&view, view.data + N / 2, N / 2);
        assert_int_equal(resident_kib(view.data), KIB / 2);
        file_view_unload(&view, view.data, N);
        assert_int_equal(resident_kib(view.data), 0);
    }
    file_view_close(&view);
    memory_free(bytes);
    if (all < 0) skip();
}

TEST(files__are_replaced_while_they_are_viewed)
{
    const char *path = scratch_path("replaced");
    file_view old;
    assert_ok(file_write_atomic(path, "old", 3));
    assert_ok(file_view_open(path, &old));
    assert_ok(file_write_atomic(path, "new text", 8));
    assert_memory_equal(old.data, "old", 3); /* an open view keeps the old data */
    file_view_close(&old);
}

TEST(files__make_folders_is_private)
{
    struct stat info;
    const char *deep = scratch_path("one/two//three");
    assert_ok(file_make_folders(deep));
    assert_int_equal(stat(deep, &info), 0);
    assert_int_equal(info.st_mode & 0077, 0);
}

TEST(files__list_skips_dead_links)
{
    file_entry *entries;
    size_t n;
    assert_ok(file_make_folders(scratch_path("list")));
    (void)scratch_file("list/a", "1", 1);
    assert_int_equal(symlink("nowhere", scratch_path("list/dead")), 0);
    assert_ok(file_list(scratch_path("list"), &entries, &n));
    assert_int_equal(n, 1);
    assert_string_equal(entries[0].name, "a");
    file_list_free(entries, n);
}

TEST(names__join_and_folder)
{
    check_join("a", "b", "a/b");
    check_join("a/", "b", "a/b");
    check_join("", "b", "b");
    check_join("/", "b", "/b");
    check_folder("model.onnx", ".");
    check_folder("a/model.onnx", "a");
    check_folder("a//model.onnx", "a");
    check_folder("/model.onnx", "/");
    check_folder("/a/b/c", "/a/b");
    check_folder("", ".");
}

TEST(names__may_have_colons) { assert_true(file_name_is_inside("weights:0")); }

static bool is_below(const char *folder, const char *path)
{
    bool below;
    assert_ok(file_is_below(folder, path, &below));
    return below;
}

TEST(names__links_do_not_lead_out)
{
    bool below;
    const char *folder = scratch_path("model");
    assert_ok(file_make_folders(scratch_path("model/sub")));
    (void)scratch_file("model/sub/in", "", 0);
    (void)scratch_file("outside", "", 0);
    (void)scratch_file("model2", "", 0);
    assert_int_equal(symlink("../outside", scratch_path("model/leak")), 0);
    assert_int_equal(symlink("sub/in", scratch_path("model/alias")), 0);
    assert_true(is_below(folder, scratch_path("model/sub/in")));
    assert_true(is_below(folder, scratch_path("model/alias")));
    assert_true(is_below("/", scratch_path("outside")));
    assert_false(is_below(folder, scratch_path("model/leak")));
    assert_false(is_below(folder, scratch_path("model2")));
    assert_false(is_below(folder, folder));
    assert_false(is_below(folder, scratch_folder()));
    assert_error(file_is_below(folder, scratch_path("model/absent"), &below), CLG_ERROR_IO,
                 "cannot be resolved");
    assert_false(below);
}

TEST(environment__cache_folder)
{
    char *path;
    assert_int_equal(setenv("HOME", "/somewhere", 1), 0);
    assert_int_equal(setenv("XDG_CACHE_HOME", "relative", 1), 0);
    assert_ok(file_cache_folder(&path));
    assert_string_equal(path, "/somewhere/.cache/clgraph");
    memory_free(path);
    assert_int_equal(setenv("XDG_CACHE_HOME", "/caches", 1), 0);
    assert_ok(file_cache_folder(&path));
    assert_string_equal(path, "/caches/clgraph");
    memory_free(path);
    assert_int_equal(unsetenv("XDG_CACHE_HOME"), 0);
    assert_int_equal(unsetenv("HOME"), 0);
    assert_error(file_cache_folder(&path), CLG_ERROR_IO, "no cache folder");
    assert_non_null(strstr(error_hint_text(), "CLG_CACHE_DIR"));
    assert_null(path);
}
