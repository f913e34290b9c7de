/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests external data on POSIX systems: links, pipes, odd locations, offsets beyond 2 GiB, files
 * that change, and how much memory loading takes.
 */
#include "support/fixtures/onnx_writer.h"
#include "support/scratch.h"
#include "support/unit.h"

#include "base/files.h"
#include "base/memory.h"
#include "onnx/onnx.h"

#include <clgraph/clgraph.h>

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FOLDER "external model"

static void put_entry(ow_bytes *t, const char *key, const char *value, size_t n)
{
    ow_bytes entry = {0};
    ow_put_bytes(&entry, 1, key, strlen(key));
    ow_put_bytes(&entry, 2, value, n);
    ow_put_message(t, 13, entry);
}

/* Writes a model of n external floats to FOLDER/model.onnx; returns its path. location has
 * location_bytes bytes; offset may be NULL. */
static const char *write_model(const char *location, size_t location_bytes, const char *offset,
                               int64_t n)
{
    ow_model m = {.ir_version = 8, .opset = 13};
    ow_bytes t = ow_tensor("w", CLG_FLOAT32, 1, &n);
    put_entry(&t, "location", location, location_bytes);
    if (offset) put_entry(&t, "offset", offset, strlen(offset));
    ow_put_int(&t, 14, 1);
    ow_initializer(&m, t);
    ow_output(&m, "w", 0);
    ow_bytes file = ow_finish(&m);
    assert_ok(file_make_folders(scratch_path(FOLDER "/sub")));
    const char *path = scratch_file(FOLDER "/model.onnx", file.data, file.n);
    ow_free(&file);
    return path;
}

static const char *model_of(const char *location)
{
    return write_model(location, strlen(location), NULL, 2);
}

static void expect_refused(const char *path, clg_status status, const char *words)
{
    for (unsigned flags = 0; flags <= ONNX_READ_FILES; flags += ONNX_READ_FILES) {
        graph *g;
        assert_error(onnx_load_file(path, flags, NULL, &g), status, words);
        assert_null(g);
    }
}

static void expect_first(const char *path, unsigned flags, double expected)
{
    graph *g;
    assert_ok(onnx_load_file(path, flags, NULL, &g));
    const value_id v = graph_find_value(g, "w");
    assert_true(v != VALUE_NONE);
    assert_true(tensor_get_float(g->values[v].constant, 0) == expected);
    graph_free(g);
}

/* Makes the link FOLDER/name to `target`. */
static void make_link(const char *target, const char *name)
{
    char path[256];
    (void)snprintf(path, sizeof path, FOLDER "/%s", name);
    assert_ok(file_make_folders(scratch_path(FOLDER "/sub")));
    (void)unlink(scratch_path(path));
    assert_int_equal(symlink(target, scratch_path(path)), 0);
}

static const float two[2] = {3, 4};

TEST(external__absolute_paths_and_parents_are_refused)
{
    const char *outside = scratch_file("outside", two, sizeof two);
    expect_refused(model_of(outside), CLG_ERROR_INVALID_MODEL, "outside the model's folder");
    expect_refused(model_of("../outside"), CLG_ERROR_INVALID_MODEL, "outside the model's folder");
    expect_refused(model_of("sub/../../outside"), CLG_ERROR_INVALID_MODEL, "outside");
    expect_refused(model_of("sub/.."), CLG_ERROR_INVALID_MODEL, "outside");
    expect_refused(model_of("."), CLG_ERROR_INVALID_MODEL, "outside");
    expect_refused(model_of("sub"), CLG_ERROR_IO, "is a folder");
}

TEST(external__links_out_are_refused)
{
    const char *outside = scratch_file("outside", two, sizeof two);
    assert_ok(file_make_folders(scratch_path("elsewhere")));
    (void)scratch_file("elsewhere/data", two, sizeof two);
    make_link(outside, "absolute");
    make_link("../outside", "relative");
    make_link("relative", "twice");
    make_link("../elsewhere", "folder"); /* a folder in the path */
    make_link("/dev", "devices");
    expect_refused(model_of("absolute"), CLG_ERROR_INVALID_MODEL, "outside");
    expect_refused(model_of("relative"), CLG_ERROR_INVALID_MODEL, "outside");
    expect_refused(model_of("twice"), CLG_ERROR_INVALID_MODEL, "outside");
    expect_refused(model_of("folder/data"), CLG_ERROR_INVALID_MODEL, "outside");
    expect_refused(model_of("devices/zero"), CLG_ERROR_INVALID_MODEL, "outside");
}

TEST(external__links_inside_are_followed)
{
    const char *path = model_of("folder/alias");
    (void)scratch_file(FOLDER "/sub/data", two, sizeof two);
    make_link("sub", "folder");
    make_link("data", "sub/alias");
    expect_first(path, 0, 3);
    /* The model may lie behind a link of its own, and its folder too. */
    (void)unlink(scratch_path("model link"));
    assert_int_equal(symlink(FOLDER, scratch_path("model link")), 0);
    expect_first(scratch_path("model link/model.onnx"), 0, 3);
}

TEST(external__link_loops_are_not_followed)
{
    make_link("loop b", "loop a");
    make_link("loop a", "loop b");
    make_link(".", "self");
    expect_refused(model_of("loop a"), CLG_ERROR_IO, "is not there");
    expect_refused(model_of("loop a/data"), CLG_ERROR_IO, "is not there");
    (void)scratch_file(FOLDER "/data", two, sizeof two);
    expect_first(model_of("self/self/self/data"), 0, 3);
}

TEST(external__odd_locations_are_refused)
{
    (void)scratch_file(FOLDER "/data", two, sizeof two);
    expect_refused(write_model("", 0, NULL, 2), CLG_ERROR_INVALID_MODEL, "location");
    expect_refused(write_model("data\0x", 6, NULL, 2), CLG_ERROR_INVALID_MODEL, "location");
    expect_refused(write_model("\0", 1, NULL, 2), CLG_ERROR_INVALID_MODEL, "location");
    char longest[5000];
    memset(longest, 'a', sizeof longest);
    expect_refused(write_model(longest, sizeof longest, NULL, 2), CLG_ERROR_IO, "is not there");
}

TEST(external__regular_files_only)
{
    const char *path = model_of("pipe");
    assert_int_equal(mkfifo(scratch_path(FOLDER "/pipe"), 0600), 0);
    expect_refused(path, CLG_ERROR_IO, "not a regular file"); /* without waiting for a writer */
}

TEST(external__offsets_beyond_2_gib)
{
    static const char *const offsets[] = {"2147483648", "4294967296", "5000000000"};
    const char *data = scratch_file(FOLDER "/large", "", 0);
    const int fd = open(data, O_WRONLY);
    assert_true(fd >= 0);
    for (size_t i = 0; i < 3; i++) {
        long long at;
        const float numbers[2] = {(float)i + 10, 0};
        assert_int_equal(sscanf(offsets[i], "%lld", &at), 1);
        assert_int_equal(pwrite(fd, numbers, sizeof numbers, (off_t)at), sizeof numbers);
    }
    assert_int_equal(close(fd), 0);
    for (size_t i = 0; i < 3; i++)
        expect_first(write_model("large", 5, offsets[i], 2), 0, (double)i + 10);
    graph *g; /* the file ends one float behind this offset */
    assert_error(onnx_load_file(write_model("large", 5, "5000000004", 2), 0, NULL, &g),
                 CLG_ERROR_INVALID_MODEL, "external data of 8 bytes at offset 5000000004");
    assert_int_equal(unlink(data), 0);
}

TEST(external__files_that_were_read_may_be_truncated)
{
    clg_model_options options = CLG_MODEL_OPTIONS_INIT;
    clg_model *model;
    graph *g;
    const char *path = model_of("data"), *data = scratch_file(FOLDER "/data", two, sizeof two);
    assert_ok(onnx_load_file(path, ONNX_READ_FILES, NULL, &g));
    assert_int_equal(truncate(data, 0), 0);
    assert_int_equal(truncate(path, 0), 0);
    const value_id v = graph_find_value(g, "w");
    assert_true(tensor_get_float(g->values[v].constant, 1) == 4);
    graph_free(g);
    (void)scratch_file(FOLDER "/data", two, sizeof two);
    path = model_of("data");
    options.read_files = true;
    assert_ok(clg_model_load_file(path, &options, &model));
    clg_model_free(model);
}

/* Returns the process's peak of resident memory in KiB since its last call, -1 where that is not
 * known. */
static long peak_kib(void)
{
    char line[256];
    long kib = -1;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && kib < 0 && fgets(line, sizeof line, f)) (void)sscanf(line, "VmHWM: %ld", &kib);
    if (f) (void)fclose(f);
    f = fopen("/proc/self/clear_refs", "w");
    if (!f || fputs("5", f) < 0) kib = -1;
    if (f && fclose(f) != 0) kib = -1;
    return kib;
}

TEST(external__loading_takes_little_more_memory_than_the_file)
{
    enum { N = 64 << 20, KIB = N / 1024 };
    const char *path = write_model("weights", 7, NULL, N / 4);
    uint8_t *bytes = memory_zalloc(N, 1);
    assert_non_null(bytes);
    for (size_t i = 0; i < N; i += 4096) bytes[i] = 1;
    (void)scratch_file(FOLDER "/weights", bytes, N);
    memory_free(bytes);
    if (peak_kib() < 0) skip();
    const long before = peak_kib();
    for (unsigned flags = 0; flags <= ONNX_READ_FILES; flags += ONNX_READ_FILES) {
        graph *g;
        assert_ok(onnx_load_file(path, flags, NULL, &g));
        assert_ok(graph_check(g));
        const long added = peak_kib() - before;
        /* Of a mapped file nothing is resident before it is used. */
        const long limit = flags ? KIB / 10 * 11 + 16 * 1024 : KIB / 10;
        if (added > limit) fail_msg("loading took %ld KiB, limit %ld", added, limit);
        graph_free(g);
    }
}
