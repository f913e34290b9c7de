/* SPDX-License-Identifier: Apache-2.0
 *
 * Inputs in host memory under a layer that copies memory of other alignments than a given one
 * (layers/opencl_device.c), as Intel's CPU driver does, and loses the copy: the library finds the
 * alignment out, and begins its buffers there, so that data at other addresses is used in place,
 * too. Where the driver always copies, the library makes no such buffers.
 */
#include "support/unit.h"

#include "support/fixtures/build_session.h"
#include "support/fixtures/ocl_platforms.h"
#include "support/literals.h"
#include "support/platform.h"
#include "support/scratch.h"

#include "session/context_handle.h"

#include <clgraph/inspect.h>

#include <string.h>

enum { ROWS = 300, COLUMNS = 77, N = ROWS * COLUMNS, ROOM = 256 };

/* Opens a context with a cache of its own, so that no answer of another case is found. */
static clg_context *open_context(const char *in_place, uint32_t expected)
{
    clg_context_options options = CLG_CONTEXT_OPTIONS_INIT;
    clg_context *context;
    options.cache_dir = scratch_path(in_place ? in_place : "any");
    assert_true(platform_set_env("CLG_DEVICE_IN_PLACE", in_place));
    assert_ok(clg_context_create(ocl_platforms_test_device(), &options, &context));
    assert_int_equal(ocl_context_caps(context->current->ocl)->zero_copy_align_bytes, expected);
    return context;
}

static uint64_t device_bytes(const clg_context *context)
{
    clg_counters counters = CLG_COUNTERS_INIT;
    assert_ok(clg_context_counters(context, &counters));
    return counters.device_bytes;
}

/* Creates y = -x and rows = x[1:299, 1:76]: kernels with and without vectors across rows. */
static clg_session *open_session(clg_context *context, clg_dtype dtype)
{
    static const int64_t starts[2] = {1, 1}, ends[2] = {ROWS - 1, COLUMNS - 1};
    clg_builder *g = start_graph();
    assert_ok(clg_builder_input(g, "x", dtype, 2, DIMS(ROWS, COLUMNS), NULL));
    assert_ok(clg_builder_constant(g, "starts", CLG_INT64, 1, DIMS(2), starts, sizeof starts));
    assert_ok(clg_builder_constant(g, "ends", CLG_INT64, 1, DIMS(2), ends, sizeof ends));
    assert_ok(clg_builder_node(g, NULL, "Neg", "minus", 1, NAMES("x"), 1, NAMES("y")));
    assert_ok(clg_builder_node(g, NULL, "Slice", "cut", 3, NAMES("y", "starts", "ends"), 1,
                               NAMES("rows")));
    assert_ok(clg_builder_output(g, "y"));
    assert_ok(clg_builder_output(g, "rows"));
    return build_session(context, g, NULL);
}

static float number(int i, size_t seed) { return (float)((i * 7 + (int)seed * 13) % 101 - 50); }

/* Runs with x at `at` bytes behind a multiple of 128. Returns whether x has no memory of its own on
 * the device. The bytes around x are not those of a float. */
static bool is_in_place(clg_context *context, size_t at)
{
    _Alignas(128) static char memory[N * sizeof(float) + 2 * ROOM];
    static float x[N], y[N];
    clg_session *s = open_session(context, CLG_FLOAT32);
    const uint64_t before = device_bytes(context);
    memset(memory, 0xff, sizeof memory);
    for (int i = 0; i < N; i++) x[i] = number(i, at);
    memcpy(memory + ROOM / 2 + at, x, sizeof x);
    const clg_call_input in = {
        "x", CLG_FLOAT32, 2, DIMS(ROWS, COLUMNS), memory + ROOM / 2 + at, sizeof x, NULL};
    clg_call_output out = {.name = "y", .data = y, .capacity_bytes = sizeof y};
    assert_ok(clg_session_call(s, &in, 1, &out, 1));
    for (int i = 0; i < N; i++) assert_true(y[i] == -x[i]);
    const uint64_t taken = device_bytes(context) - before;
    clg_session_free(s);
    return taken < 3 * N * sizeof(float) - N; /* y and rows, which is smaller, are on the device */
}

static void expect_in_place(const char *in_place, uint32_t align, bool expected)
{
    clg_context *context = open_context(in_place, align);
    for (size_t at = 0; at < 128; at += 4) assert_int_equal(is_in_place(context, at), expected);
    for (size_t at = 1; at < 4; at++) assert_false(is_in_place(context, at));
    clg_context_free(context);
}

TEST(host_memory__any_alignment) { expect_in_place(NULL, 4, true); }

TEST(host_memory__some_alignments)
{
    expect_in_place("16", 16, true);
    expect_in_place("128", 128, true);
}

TEST(host_memory__never) { expect_in_place("1M", 0, false); }

/* Elements of 8 and of 1 bytes: the former only at multiples of 8. */
TEST(host_memory__other_elements)
{
    _Alignas(128) static int64_t wide[N + 32];
    _Alignas(128) static int8_t narrow[N * 4 + ROOM];
    static int64_t y[N];
    clg_context *context = open_context("64", 64);
    clg_session *s = open_session(context, CLG_INT64);
    for (size_t at = 0; at < 64; at += 4) {
        for (int i = 0; i < N; i++) {
            const int64_t x = (int64_t)i * 1000003 - (int64_t)at;
            memcpy((char *)wide + at + (size_t)i * sizeof x, &x, sizeof x);
        }
        const clg_call_input in = {"x",      CLG_INT64, 2, DIMS(ROWS, COLUMNS), (char *)wide + at,
                                   sizeof y, NULL};
        clg_call_output out = {.name = "y", .data = y, .capacity_bytes = sizeof y};
        assert_ok(clg_session_call(s, &in, 1, &out, 1));
        for (int i = 0; i < N; i++) assert_true(y[i] == (int64_t)at - (int64_t)i * 1000003);
    }
    clg_session_free(s);
    enum { WIDE = COLUMNS * 4 };
    static int8_t z[N * 4];
    clg_builder *g = start_graph();
    assert_ok(clg_builder_input(g, "x", CLG_INT8, 2, DIMS(ROWS, WIDE), NULL));
    assert_ok(clg_builder_node(g, NULL, "Neg", "minus", 1, NAMES("x"), 1, NAMES("y")));
    assert_ok(clg_builder_output(g, "y"));
    s = build_session(context, g, NULL);
    for (size_t at = 0; at < 70; at++) {
        for (int i = 0; i < N * 4; i++) narrow[at + (size_t)i] = (int8_t)((i + (int)at) % 127);
        const clg_call_input in = {"x", CLG_INT8, 2, DIMS(ROWS, WIDE), narrow + at, sizeof z, NULL};
        clg_call_output out = {.name = "y", .data = z, .capacity_bytes = sizeof z};
        assert_ok(clg_session_call(s, &in, 1, &out, 1));
        for (int i = 0; i < N * 4; i++) assert_true(z[i] == -narrow[at + (size_t)i]);
    }
    clg_session_free(s);
    clg_context_free(context);
}

static int begin(void **state)
{
    (void)state;
    assert_true(
        platform_set_env("OPENCL_LAYERS", CLG_TEST_BUILD_DIR "/tests/layers/opencl_device.so"));
    ocl_platforms_show_pocl();
    return 0;
}

TEST_GROUP(begin, NULL)
