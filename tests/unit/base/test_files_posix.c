/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests files on POSIX systems: pipes, permissions, links, paths, the cache folder.
 */
#include "support/unit.h"

#include "support/cases/path_checks.h"
#include "support/scratch.h"

#include "base/files.h"
#include "base/memory.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
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
    assert_ok(file_view_open(path, 0, &view));
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
    assert_ok(file_view_open(scratch_file("resident", bytes, N), 0, &view));
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
    assert_ok(file_replace(path, "old", 3));
    assert_ok(file_view_open(path, 0, &old));
    assert_ok(file_replace(path, "new text", 8));
    assert_memory_equal(old.data, "old", 3); /* an open view keeps the old data */
    file_view_close(&old);
}

/* Returns how many files in a folder are temporary. */
static size_t n_temporary(const char *folder)
{
    file_entry *entries;
    size_t n, count = 0;
    assert_ok(file_list(folder, &entries, &n));
    for (size_t i = 0; i < n; i++) count += strstr(entries[i].name, FILE_TEMPORARY_MARK) != NULL;
    file_list_free(entries, n);
    return count;
}

static void expect_content(const char *path, const char *expected)
{
    char *data;
    size_t size;
    assert_ok(file_read(path, 100, &data, &size));
    assert_string_equal(data, expected);
    memory_free(data);
}

/* Starts to write a file in a process that kills itself. */
static void die_while_writing(const char *path)
{
    const pid_t child = fork();
    int result;
    assert_true(child >= 0);
    if (child == 0) {
        file_writer writer;
        if (file_writer_open(path, &writer) != CLG_OK) _exit(1);
        if (file_writer_append(&writer, "half", 4) != CLG_OK) _exit(1);
        (void)kill(getpid(), SIGKILL);
    }
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_true(WIFSIGNALED(result));
}

TEST(files__what_dead_writers_left_is_removed)
{
    const char *path = scratch_path("dead/file");
    assert_ok(file_make_folders(scratch_path("dead")));
    die_while_writing(path);
    assert_int_equal(n_temporary(scratch_path("dead")), 1);
    assert_ok(file_write(path, "whole", 5));
    assert_int_equal(n_temporary(scratch_path("dead")), 0);
    expect_content(path, "whole");
}

TEST(files__concurrent_writers_keep_their_temporary_files)
{
    const char *folder = scratch_path("live"), *path = scratch_path("live/file");
    enum { N = 12 }; /* more than there are numbered names */
    file_writer writers[N];
    assert_ok(file_make_folders(folder));
    for (int i = 0; i < N; i++) {
        assert_ok(file_writer_open(path, &writers[i]));
        assert_ok(file_writer_append(&writers[i], "0123456789ab" + i, 1));
    }
    assert_int_equal(n_temporary(folder), N);
    for (int i = 0; i < N; i++) {
        const char expected[2] = {"0123456789ab"[i], '\0'};
        assert_ok(file_writer_commit(&writers[i]));
        expect_content(path, expected);
        assert_int_equal(n_temporary(folder), N - 1 - i);
    }
}

static void *write_often(void *path)
{
    for (int i = 0; i < 500; i++)
        if (file_write(path, "whole", 5) != CLG_OK) {
            print_message("%s\n", error_text());
            return path;
        }
    return NULL;
}

/* A temporary file gets its final name, and another writer's gets the name that it had, while a
 * third one looks at it. */
TEST(files__writers_of_one_file_never_fail)
{
    enum { N = 8 };
    const char *path = scratch_path("often/file");
    pthread_t threads[N];
    size_t n_failed = 0;
    assert_ok(file_make_folders(scratch_path("often")));
    for (int i = 0; i < N; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, write_often, (void *)(uintptr_t)path),
                         0);
    for (int i = 0; i < N; i++) {
        void *failed;
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        n_failed += failed != NULL;
    }
    assert_int_equal(n_failed, 0);
    expect_content(path, "whole");
}

TEST(files__foreign_temporary_names_do_not_block)
{
    /* Names that are taken by something that cannot be a left-over: folders. */
    char name[64];
    const char *path = scratch_path("taken/file");
    assert_ok(file_make_folders(scratch_path("taken")));
    for (int i = 0; i < 10; i++) {
        (void)snprintf(name, sizeof name, "taken/file" FILE_TEMPORARY_MARK "%d", i);
        assert_ok(file_make_folders(scratch_path(name)));
    }
    assert_ok(file_write(path, "whole", 5));
    expect_content(path, "whole");
}

TEST(files__links_are_followed_and_kept)
{
    static const char *const links[][2] = {{"links/link", "target"},
                                           {"links/far", "sub/../sub/target"},
                                           {"links/dangling", "not yet"},
                                           {"links/two", "far"}};
    const char *const ends[] = {"links/target", "links/sub/target", "links/not yet",
                                "links/sub/target"};
    assert_ok(file_make_folders(scratch_path("links/sub")));
    (void)scratch_file("links/target", "old", 3);
    (void)scratch_file("links/sub/target", "old", 3);
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        struct stat info;
        char text[2] = {(char)('a' + i), '\0'};
        assert_int_equal(symlink(links[i][1], scratch_path(links[i][0])), 0);
        assert_ok(file_write(scratch_path(links[i][0]), text, 1));
        expect_content(scratch_path(ends[i]), text);
        assert_int_equal(lstat(scratch_path(links[i][0]), &info), 0);
        assert_true(S_ISLNK(info.st_mode));
    }
    assert_int_equal(n_temporary(scratch_path("links")), 0);
    assert_int_equal(symlink("loop", scratch_path("links/loop")), 0);
    assert_error(file_write(scratch_path("links/loop"), "x", 1), CLG_ERROR_IO, "cannot be written");
    /* Replaced, not followed. */
    assert_ok(file_replace(scratch_path("links/link"), "new", 3));
    expect_content(scratch_path("links/target"), "a");
}

static void *read_pipe(void *path)
{
    static char text[200000];
    FILE *f = fopen(path, "rb");
    const size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    if (f) (void)fclose(f);
    text[n] = '\0';
    return text;
}

TEST(files__pipes_are_written_in_place)
{
    const char *path = scratch_path("pipe");
    struct stat info;
    file_writer writer;
    pthread_t reader;
    void *got;
    char block[70000];
    memset(block, 'b', sizeof block);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(pthread_create(&reader, NULL, read_pipe, (void *)(uintptr_t)path), 0);
    assert_ok(file_writer_open(path, &writer));
    assert_ok(file_writer_append(&writer, "....body", 8));
    assert_ok(file_writer_append(&writer, block, sizeof block));
    assert_ok(file_writer_patch(&writer, 0, "head", 4)); /* as headers with a number of rows are */
    assert_ok(file_writer_commit(&writer));
    assert_int_equal(pthread_join(reader, &got), 0);
    assert_int_equal(strlen(got), sizeof block + 8);
    assert_memory_equal(got, "headbodybbbb", 12);
    assert_int_equal(lstat(path, &info), 0);
    assert_true(S_ISFIFO(info.st_mode));
}

static void *close_pipe(void *path)
{
    const int fd = open(path, O_RDONLY);
    (void)close(fd);
    return NULL;
}

TEST(files__pipe_without_reader_is_an_error_not_a_signal)
{
    const char *path = scratch_path("closed pipe");
    file_writer writer;
    pthread_t reader;
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(pthread_create(&reader, NULL, close_pipe, (void *)(uintptr_t)path), 0);
    assert_ok(file_writer_open(path, &writer));
    assert_int_equal(pthread_join(reader, NULL), 0);
    assert_ok(file_writer_append(&writer, "text", 4));
    assert_error(file_writer_commit(&writer), CLG_ERROR_IO, "cannot be written");
}

TEST(files__devices_are_written_in_place)
{
    const char *link = scratch_path("null link");
    struct stat info;
    file_writer writer;
    assert_int_equal(symlink("/dev/null", link), 0);
    assert_ok(file_writer_open(link, &writer));
    assert_ok(file_writer_append(&writer, "text", 4));
    assert_ok(file_writer_patch(&writer, 0, "t", 1));
    assert_ok(file_writer_commit(&writer));
    assert_int_equal(stat("/dev/null", &info), 0);
    assert_true(S_ISCHR(info.st_mode));
    if (access("/dev/full", W_OK) == 0)
        assert_error(file_write("/dev/full", "text", 4), CLG_ERROR_IO, "No space left");
}

TEST(files__regular_files_only_where_asked)
{
    const char *path = scratch_path("unread pipe");
    file_view view;
    file_reader reader;
    char *data;
    size_t n;
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_error(file_view_open(path, FILE_VIEW_REGULAR, &view), CLG_ERROR_IO, "not a regular");
    assert_error(file_reader_open(path, &reader), CLG_ERROR_IO, "not a regular");
    assert_error(file_read(path, 10, &data, &n), CLG_ERROR_IO, "not a regular");
}

TEST(files__view_that_is_read_survives_truncation)
{
    enum { N = 1 << 20 };
    uint8_t *bytes = memory_zalloc(N, 1);
    file_view view;
    memset(bytes, 't', N);
    const char *path = scratch_file("truncated", bytes, N);
    assert_ok(file_view_open(path, FILE_VIEW_READ, &view));
    assert_int_equal(truncate(path, 0), 0);
    assert_int_equal(view.size_bytes, N);
    assert_memory_equal(view.data, bytes, N);
    file_view_close(&view);
    memory_free(bytes);
}

TEST(files__private_folders)
{
    const char *folder = scratch_path("private");
    assert_ok(file_check_private(scratch_path("no folder yet")));
    assert_ok(file_make_folders(folder));
    assert_ok(file_check_private(folder));
    assert_int_equal(chmod(folder, 0755), 0);
    assert_ok(file_check_private(folder));
    assert_int_equal(chmod(folder, 0777), 0);
    assert_error(file_check_private(folder), CLG_ERROR_IO, "by all users");
    assert_int_equal(chmod(folder, 01777), 0);
    assert_error(file_check_private(folder), CLG_ERROR_IO, "by all users");
    assert_int_equal(chmod(folder, 0775), 0);
    if (geteuid() != 0) {
        /* What the group is decides; only root can choose one. */
        if (getegid() == geteuid()) assert_ok(file_check_private(folder));
        return;
    }
    assert_int_equal(chown(folder, 0, 0), 0);
    assert_ok(file_check_private(folder)); /* the owner's own group */
    assert_int_equal(chown(folder, 0, 100), 0);
    assert_error(file_check_private(folder), CLG_ERROR_IO, "by a group");
    assert_int_equal(chmod(folder, 0755), 0);
    assert_ok(file_check_private(folder)); /* the group may only read */
    assert_int_equal(chown(folder, 1234, 1234), 0);
    assert_error(file_check_private(folder), CLG_ERROR_IO, "another user");
    assert_non_null(strstr(error_hint_text(), "belongs to this user"));
    assert_int_equal(chown(folder, 0, 0), 0);
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
