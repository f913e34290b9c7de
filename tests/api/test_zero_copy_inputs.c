/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests inputs that a CPU device uses in place in host memory: large ones at an address that the
 * driver and the kernels take. Others must be copied. Results must be equal, and the application
 * may change a value's memory once the run has ended.
 */
#include "support/fixtures/sized_data.h"
#include "support/unit.h"

#include "support/fixtures/build_session.h"
#include "support/fixtures/pocl_context.h"
#include "support/literals.h"

#include "session/context_handle.h"

#include <clgraph/inspect.h>

#include <string.h>

enum { ROWS = 300, COLUMNS = 77, N = ROWS * COLUMNS };

static float number(int i, int seed) { return (float)((i * 7 + seed * 13) % 101 - 50); }

/* Creates y = -x, z = x in another shape. */
static clg_session *open_session(void)
{
    static const int64_t flat = N;
    clg_builder *g = start_graph();
    assert_ok(clg_builder_input(g, "x", CLG_FLOAT32, 2, DIMS(-1, COLUMNS), NULL));
    assert_ok(sized_constant(g, "flat", CLG_INT64, 1, DIMS(1), &flat));
    assert_ok(clg_builder_node(g, NULL, "Neg", "minus", 1, NAMES("x"), 1, NAMES("y")));
    assert_ok(clg_builder_node(g, NULL, "Reshape", "view", 2, NAMES("x", "flat"), 1, NAMES("z")));
    assert_ok(clg_builder_output(g, "y"));
    assert_ok(clg_builder_output(g, "z"));
    return build_session(context, g, NULL);
}

static clg_value *filled(int seed)
{
    clg_value *v;
    assert_ok(clg_value_create(CLG_FLOAT32, 2, DIMS(ROWS, COLUMNS), &v));
    float *x = clg_value_data(v);
    for (int i = 0; i < N; i++) x[i] = number(i, seed);
    return v;
}

static void expect(clg_session *s, int seed)
{
    static float y[N], z[N];
    assert_ok(clg_session_get_output_data(s, "y", y, sizeof y));
    assert_ok(clg_session_get_output_data(s, "z", z, sizeof z));
    for (int i = 0; i < N; i++)
        if (y[i] != -number(i, seed) || z[i] != number(i, seed)) fail_msg("element %d", i);
}

static uint64_t device_bytes(void)
{
    clg_counters counters = CLG_COUNTERS_INIT;
    assert_ok(clg_context_counters(context, &counters));
    return counters.device_bytes;
}

TEST(zero_copy__is_not_copied)
{
    clg_session *s = open_session();
    clg_value *x = filled(1);
    const uint64_t before = device_bytes();
    assert_ok(clg_session_set_input(s, "x", x));
    assert_ok(clg_session_run(s));
    expect(s, 1);
    /* y and z take device memory; a copy of x would be a third. */
    assert_between(device_bytes() - before, 2 * N * sizeof(float), 3 * N * sizeof(float) - 1);
    clg_value_free(x);
    clg_session_free(s);
}

/* Runs with an input at `at` bytes behind an address with OpenCL's buffer alignment, in a session
 * of its own. Returns whether the device copied it. */
static bool is_copied(clg_kernel_class kernels, size_t at)
{
    _Alignas(128) static char memory[N * sizeof(float) + 256];
    clg_session_options options = CLG_SESSION_OPTIONS_INIT;
    clg_value *x;
    static float y[N];
    options.kernels = kernels;
    clg_builder *g = start_graph();
    assert_ok(clg_builder_input(g, "x", CLG_FLOAT32, 2, DIMS(-1, COLUMNS), NULL));
    assert_ok(clg_builder_node(g, NULL, "Neg", "minus", 1, NAMES("x"), 1, NAMES("y")));
    assert_ok(clg_builder_output(g, "y"));
    clg_session *s = build_session(context, g, &options);
    const uint64_t before = device_bytes();
    for (int i = 0; i < N; i++) {
        const float f = number(i, (int)at);
        memcpy(memory + at + (size_t)i * sizeof f, &f, sizeof f);
    }
    assert_ok(
        clg_value_wrap(CLG_FLOAT32, 2, DIMS(ROWS, COLUMNS), memory + at, sizeof y, NULL, NULL, &x));
    assert_ok(clg_session_set_input(s, "x", x));
    assert_ok(clg_session_run(s));
    assert_ok(clg_session_get_output_data(s, "y", y, sizeof y));
    for (int i = 0; i < N; i++) assert_true(y[i] == -number(i, (int)at));
    const bool copied = device_bytes() - before >= 2 * N * sizeof(float); /* besides y */
    clg_value_free(x);
    clg_session_free(s);
    return copied;
}

/* PoCL reads host memory in place at any address. The kernels of the SIMD class take floats at any
 * multiple of 4 bytes; those of the other class may not. */
TEST(zero_copy__alignment)
{
    const uint32_t align = ocl_context_caps(context->current->ocl)->zero_copy_align_bytes;
    assert_int_equal(align, 4);
    for (size_t at = 0; at < 128; at++) {
        assert_int_equal(is_copied(CLG_KERNELS_SIMD, at), at % 4 != 0);
        if (at % 8 == 0) assert_int_equal(is_copied(CLG_KERNELS_SIMT, at), at != 0);
    }
}

/* The same for data of clg_session_call. */
TEST(zero_copy__data_of_a_call)
{
    _Alignas(128) static float memory[N + 4];
    static float y[N], z[N];
    clg_session *s = open_session();
    const uint64_t before = device_bytes();
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < N; i++) memory[4 + i] = number(i, round);
        const clg_call_input in = {"x",        CLG_FLOAT32, 2,   DIMS(ROWS, COLUMNS),
                                   memory + 4, sizeof y,    NULL};
        clg_call_output out[] = {{.name = "y", .data = y, .capacity_bytes = sizeof y},
                                 {.name = "z", .data = z, .capacity_bytes = sizeof z}};
        assert_ok(clg_session_call(s, &in, 1, out, 2));
        for (int i = 0; i < N; i++) assert_true(y[i] == -number(i, round) && z[i] == -y[i]);
    }
    assert_between(device_bytes() - before, 2 * N * sizeof(float), 3 * N * sizeof(float) - 1);
    clg_session_free(s);
}

TEST(zero_copy__what_changes_between_runs_counts)
{
    clg_session *s = open_session();
    clg_value *x = filled(1);
    assert_ok(clg_session_set_input(s, "x", x));
    assert_ok(clg_session_run(s));
    float *data = clg_value_data(x);
    for (int i = 0; i < N; i++) data[i] = number(i, 2);
    expect(s, 1); /* results are separate memory */
    assert_ok(clg_session_run(s));
    expect(s, 2);
    clg_value *other = filled(3);
    assert_ok(clg_session_set_input(s, "x", other));
    clg_value_free(other);
    assert_ok(clg_session_run(s));
    expect(s, 3);
    assert_ok(clg_session_set_input(s, "x", x));
    assert_ok(clg_session_run_async(s));
    assert_ok(clg_session_wait(s));
    expect(s, 2);
    clg_value_free(x);
    clg_session_free(s);
}

static int n_released;

static void release(void *user)
{
    (void)user;
    n_released++;
}

/* Sets input data at every offset, in floats, from an address with OpenCL's buffer alignment. */
TEST(zero_copy__memory_of_the_caller)
{
    static float memory[N + 64];
    clg_session *s = open_session();
    for (int at = 0; at < 64; at++) {
        clg_value *x;
        for (int i = 0; i < N; i++) memory[at + i] = number(i, at);
        assert_ok(sized_wrap(CLG_FLOAT32, 2, DIMS(ROWS, COLUMNS), memory + at, release, NULL, &x));
        assert_ok(clg_session_set_input(s, "x", x));
        clg_value_free(x);
        assert_int_equal(n_released, at);
        assert_ok(clg_session_run(s));
        expect(s, at);
    }
    assert_ok(clg_session_set_input(s, "x", NULL));
    assert_int_equal(n_released, 64); /* a run that has ended retains none of it */
    clg_session_free(s);
}

TEST(zero_copy__other_inputs_follow)
{
    clg_session *s = open_session();
    clg_value *x = filled(4), *on_device;
    void *mapped;
    assert_ok(clg_session_set_input(s, "x", x));
    assert_ok(clg_session_run(s));
    assert_ok(clg_session_map_input(s, "x", 2, DIMS(ROWS, COLUMNS), &mapped));
    for (int i = 0; i < N; i++) ((float *)mapped)[i] = number(i, 5);
    assert_ok(clg_session_run(s));
    expect(s, 5);
    assert_ok(clg_value_create_device(context, CLG_FLOAT32, 2, DIMS(ROWS, COLUMNS), &on_device));
    assert_ok(clg_value_write(on_device, clg_value_data(x), N * sizeof(float)));
    assert_ok(clg_session_set_input(s, "x", on_device));
    assert_ok(clg_session_run(s));
    expect(s, 4);
    assert_ok(clg_session_set_input(s, "x", x));
    assert_ok(clg_session_run(s));
    expect(s, 4);
    clg_value_free(on_device);
    clg_value_free(x);
    clg_session_free(s);
}

/* next = state + 1, where the first state is a value owned by the caller. */
TEST(zero_copy__state_goes_on_in_other_memory)
{
    static const float one = 1;
    static float y[N];
    clg_builder *g = start_graph();
    clg_value *x = filled(6);
    assert_ok(clg_builder_input(g, "state", CLG_FLOAT32, 2, DIMS(ROWS, COLUMNS), NULL));
    assert_ok(sized_constant(g, "one", CLG_FLOAT32, 0, NULL, &one));
    assert_ok(clg_builder_node(g, NULL, "Add", "add", 2, NAMES("state", "one"), 1, NAMES("next")));
    assert_ok(clg_builder_output(g, "next"));
    clg_session *s = build_session(context, g, NULL);
    assert_ok(clg_session_set_input(s, "state", x));
    assert_ok(clg_session_link(s, "next", "state"));
    for (int round = 1; round <= 4; round++) {
        assert_ok(clg_session_run(s));
        assert_ok(clg_session_get_output_data(s, "next", y, sizeof y));
        for (int i = 0; i < N; i++) assert_true(y[i] == number(i, 6) + (float)round);
    }
    const float *data = clg_value_data(x);
    for (int i = 0; i < N; i++) assert_true(data[i] == number(i, 6));
    clg_value_free(x);
    clg_session_free(s);
}

TEST_GROUP(open_context, close_context)
