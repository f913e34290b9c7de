/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests what clg_session_call refuses. Arguments are checked before a byte is read: the tests give
 * an address that cannot be read. After each error the results are zero, what was set in the
 * session stays, and the next valid call gives the right bits.
 */
#include "support/unit.h"

#include "support/fixtures/build_session.h"
#include "support/fixtures/pocl_context.h"
#include "support/literals.h"

#include <string.h>

#define UNREADABLE ((void *)(uintptr_t)64)

static const float ramp[6] = {1, 2, 3, 4, 5, 6};

/* Creates y = -x with x: [N, 3], and w = -v with v: [2]. */
static clg_session *open_session(void)
{
    clg_builder *g = start_graph();
    assert_ok(clg_builder_input(g, "x", CLG_FLOAT32, 2, DIMS(-1, 3), NULL));
    assert_ok(clg_builder_input(g, "v", CLG_FLOAT32, 1, DIMS(2), NULL));
    assert_ok(clg_builder_node(g, NULL, "Neg", "first", 1, NAMES("x"), 1, NAMES("y")));
    assert_ok(clg_builder_node(g, NULL, "Neg", "second", 1, NAMES("v"), 1, NAMES("w")));
    assert_ok(clg_builder_output(g, "y"));
    assert_ok(clg_builder_output(g, "w"));
    return build_session(context, g, NULL);
}

static clg_call_input given(const char *name, size_t rank, const int64_t *dims, size_t size_bytes)
{
    return (clg_call_input){name, CLG_FLOAT32, rank, dims, UNREADABLE, size_bytes, NULL};
}

/* Fills the members for results, as an earlier call left them. */
static clg_call_output used(const char *name, void *data, size_t capacity_bytes)
{
    return (clg_call_output){name,
                             data,
                             capacity_bytes,
                             (clg_value *)UNREADABLE,
                             3,
                             CLG_INT8,
                             5,
                             {1, 2, 3, 4, 5, 6, 7, 8},
                             99};
}

static void expect_zero(const clg_call_output *out)
{
    const clg_call_output want = {
        .name = out->name, .data = out->data, .capacity_bytes = out->capacity_bytes};
    assert_null(out->value);
    assert_int_equal(out->kind, 0);
    assert_int_equal(out->dtype, 0);
    assert_int_equal(out->rank, 0);
    assert_int_equal(out->size_bytes, 0);
    assert_memory_equal(out->dims, want.dims, sizeof want.dims);
}

/* Runs a valid call: x is data, v what was set before. */
static void expect_right(clg_session *s, float v)
{
    float y[6], w[2];
    const clg_call_input in = {"x", CLG_FLOAT32, 2, DIMS(2, 3), ramp, sizeof ramp, NULL};
    clg_call_output out[] = {used("w", w, sizeof w), used("y", y, sizeof y)};
    assert_ok(clg_session_call(s, &in, 1, out, 2));
    for (int i = 0; i < 6; i++) assert_true(y[i] == -ramp[i]);
    assert_true(w[0] == -v && w[1] == -v);
}

static clg_session *open_with_v(void)
{
    const float v[2] = {9, 9};
    clg_session *s = open_session();
    assert_ok(clg_session_set_input_data(s, "v", CLG_FLOAT32, 1, DIMS(2), v, sizeof v));
    expect_right(s, 9);
    return s;
}

typedef struct bad_call {
    clg_call_input inputs[2];
    size_t n_inputs;
    clg_status status;
    const char *words; /* of the message */
} bad_call;

/* Makes the call with both outputs; then a valid one. */
static void refuse(clg_session *s, const bad_call *bad)
{
    float y[6] = {0}, w[2] = {0};
    const float zeros[6] = {0};
    clg_call_output out[] = {used("y", y, sizeof y), used("w", w, sizeof w)};
    assert_error(clg_session_call(s, bad->inputs, bad->n_inputs, out, 2), bad->status, bad->words);
    expect_zero(&out[0]);
    expect_zero(&out[1]);
    assert_memory_equal(y, zeros, sizeof y);
    assert_memory_equal(w, zeros, sizeof w);
    expect_right(s, 9);
}

TEST(call__inputs_are_checked_before_they_are_read)
{
    clg_session *s = open_with_v();
    const int64_t huge[] = {INT64_MAX / 4, 3};
    clg_call_input no_dtype = given("x", 2, DIMS(2, 3), 24), ints = no_dtype, null = no_dtype;
    no_dtype.dtype = (clg_dtype)99;
    ints.dtype = CLG_INT32;
    null.data = NULL;
    const bad_call calls[] = {
        {{given("z", 2, DIMS(2, 3), 24)}, 1, CLG_ERROR_NOT_FOUND, "'z'; there are: 'x', 'v'"},
        {{given(NULL, 2, DIMS(2, 3), 24)}, 1, CLG_ERROR_INVALID_ARGUMENT, "input 0"},
        {{given("x", 2, DIMS(2, 3), 24), given("x", 2, DIMS(2, 3), 24)},
         2,
         CLG_ERROR_INVALID_ARGUMENT,
         "'x' is listed twice"},
        {{no_dtype}, 1, CLG_ERROR_INVALID_ARGUMENT, "input 'x': 99 is not a dtype"},
        {{ints}, 1, CLG_ERROR_UNSUPPORTED_DTYPE, "input 'x' is float32 in the model, int32"},
        {{null}, 1, CLG_ERROR_INVALID_ARGUMENT, "input 'x': data is NULL"},
        {{given("x", 2, NULL, 24)},
         1,
         CLG_ERROR_INVALID_ARGUMENT,
         "input 'x': dimensions are missing"},
        {{given("x", 9, DIMS(1, 1, 1, 1, 1, 1, 1, 1, 1), 4)},
         1,
         CLG_ERROR_INVALID_ARGUMENT,
         "input 'x'"},
        {{given("x", 2, DIMS(2, -1), 24)},
         1,
         CLG_ERROR_INVALID_ARGUMENT,
         "input 'x': dimension 1 is negative: -1"},
        {{given("x", 2, DIMS(2, -7), 24)}, 1, CLG_ERROR_INVALID_ARGUMENT, "input 'x'"},
        {{given("x", 2, huge, 24)}, 1, CLG_ERROR_INVALID_ARGUMENT, "input 'x'"},
        {{given("x", 2, DIMS(3, 2), 24)},
         1,
         CLG_ERROR_SHAPE,
         "input 'x' has shape [?,3] in the model, [3,2] was given: dimension 1 is 2, not 3"},
        {{given("x", 1, DIMS(6), 24)},
         1,
         CLG_ERROR_SHAPE,
         "input 'x' has shape [?,3] in the model, [6] was given: the rank is 1, not 2"},
        {{given("x", 2, DIMS(2, 3), 23)},
         1,
         CLG_ERROR_INVALID_ARGUMENT,
         "input 'x': float32 of shape [2,3] takes 24 bytes, but 23 are given"},
        {{given("x", 2, DIMS(2, 3), SIZE_MAX)}, 1, CLG_ERROR_INVALID_ARGUMENT, "takes 24 bytes"},
        /* the second one is wrong: the first one is not read either */
        {{given("x", 2, DIMS(2, 3), 24), given("v", 1, DIMS(3), 12)},
         2,
         CLG_ERROR_SHAPE,
         "input 'v' has shape [2]"}};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) refuse(s, &calls[i]);
    clg_session_free(s);
}

TEST(call__values_are_checked)
{
    clg_session *s = open_with_v();
    clg_value *ints, *wide, *sequence;
    assert_ok(clg_value_create(CLG_INT32, 2, DIMS(2, 3), &ints));
    assert_ok(clg_value_create(CLG_FLOAT32, 2, DIMS(2, 4), &wide));
    assert_ok(clg_value_create_sequence(CLG_FLOAT32, 1, &wide, &sequence));
    const bad_call calls[] = {
        {{{.name = "x", .value = ints}}, 1, CLG_ERROR_UNSUPPORTED_DTYPE, "input 'x'"},
        {{{.name = "x", .value = wide}}, 1, CLG_ERROR_SHAPE, "dimension 1 is 4, not 3"},
        {{{.name = "x", .value = sequence}}, 1, CLG_ERROR_INVALID_ARGUMENT, "takes a tensor"}};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) refuse(s, &calls[i]);
    clg_value_free(ints);
    clg_value_free(wide);
    clg_value_free(sequence);
    clg_session_free(s);
}

TEST(call__outputs_are_checked)
{
    float y[6], w[2];
    clg_session *s = open_with_v();
    const clg_call_input in = given("x", 2, DIMS(2, 3), 24);
    const struct {
        clg_call_output outputs[2];
        clg_status status;
        const char *words;
    } bad[] = {
        {{used("y", y, sizeof y), used("z", w, sizeof w)},
         CLG_ERROR_NOT_FOUND,
         "'z'; there are: 'y', 'w'"},
        {{used("y", y, sizeof y), used(NULL, w, sizeof w)}, CLG_ERROR_INVALID_ARGUMENT, "output 1"},
        {{used("y", y, sizeof y), used("y", w, sizeof w)},
         CLG_ERROR_INVALID_ARGUMENT,
         "'y' is listed twice"},
        {{used("y", y, sizeof y), used("w", NULL, 8)},
         CLG_ERROR_INVALID_ARGUMENT,
         "output 'w': data is NULL, but its capacity is 8"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        clg_call_output out[] = {bad[i].outputs[0], bad[i].outputs[1]};
        assert_error(clg_session_call(s, &in, 1, out, 2), bad[i].status, bad[i].words);
        expect_zero(&out[0]);
        expect_zero(&out[1]);
        expect_right(s, 9);
    }
    clg_session_free(s);
}

TEST(call__memory_must_not_overlap)
{
    float memory[12];
    clg_value *v;
    clg_session *s = open_with_v();
    clg_call_input in = {"x", CLG_FLOAT32, 2, DIMS(2, 3), memory, 24, NULL};
    clg_call_output out[] = {used("y", memory + 5, 24), used("w", memory + 11, 4)};
    memcpy(memory, ramp, sizeof ramp);
    assert_error(clg_session_call(s, &in, 1, out, 1), CLG_ERROR_INVALID_ARGUMENT,
                 "output 'y' is written to memory that 'x' uses");
    expect_zero(out);
    assert_memory_equal(memory, ramp, sizeof ramp);
    out[0] = used("y", memory + 6, 24);
    assert_error(clg_session_call(s, &in, 1, out, 2), CLG_ERROR_INVALID_ARGUMENT,
                 "output 'w' is written to memory that 'y' uses");
    out[1] = used("w", memory, 0); /* without capacity, nothing is written */
    assert_ok(clg_session_call(s, &in, 1, out, 2));
    for (int i = 0; i < 6; i++) assert_true(memory[6 + i] == -ramp[i]);
    clg_value_free(out[1].value);
    assert_ok(clg_value_create(CLG_FLOAT32, 1, DIMS(2), &v)); /* set before, and not listed */
    assert_ok(clg_session_set_input(s, "v", v));
    out[1] = used("w", clg_value_data(v), 8);
    assert_error(clg_session_call(s, &in, 1, out, 2), CLG_ERROR_INVALID_ARGUMENT,
                 "output 'w' is written to memory that 'v' uses");
    clg_value_free(v);
    clg_session_free(s);
}

TEST(call__arrays_may_be_absent_when_empty)
{
    clg_session *s = open_with_v();
    clg_call_output out = used("y", NULL, 0);
    const clg_call_input in = {"x", CLG_FLOAT32, 2, DIMS(2, 3), ramp, sizeof ramp, NULL};
    assert_error(clg_session_call(NULL, &in, 1, &out, 1), CLG_ERROR_INVALID_ARGUMENT, "session");
    expect_zero(&out);
    assert_error(clg_session_call(s, NULL, 1, &out, 1), CLG_ERROR_INVALID_ARGUMENT, "inputs");
    assert_error(clg_session_call(s, &in, 1, NULL, 1), CLG_ERROR_INVALID_ARGUMENT, "outputs");
    assert_ok(clg_session_call(s, &in, 1, NULL, 0));
    assert_error(clg_session_call(s, NULL, 0, NULL, 0), CLG_ERROR_NOT_FOUND, "'x' is not set");
    clg_session_free(s);
}

TEST(call__is_busy_during_another_request)
{
    float y[6];
    clg_session *s = open_with_v();
    const clg_call_input in = given("x", 2, DIMS(2, 3), 24);
    assert_ok(clg_session_set_input_data(s, "x", CLG_FLOAT32, 2, DIMS(2, 3), ramp, sizeof ramp));
    assert_ok(clg_session_run_async(s)); /* busy until clg_session_wait, however fast it is */
    clg_call_output out = used("y", y, sizeof y);
    assert_error(clg_session_call(s, &in, 1, &out, 1), CLG_ERROR_BUSY, "another request");
    expect_zero(&out);
    assert_ok(clg_session_wait(s));
    expect_right(s, 9);
    clg_session_free(s);
}

/* An index is out of range in every other round: the run fails after its launches. */
TEST(call__a_failing_run_returns_nothing)
{
    const float table[4] = {10, 20, 30, 40};
    float y[2] = {0};
    clg_builder *g = start_graph();
    assert_ok(clg_builder_input(g, "table", CLG_FLOAT32, 1, DIMS(4), NULL));
    assert_ok(clg_builder_input(g, "i", CLG_INT64, 1, DIMS(2), NULL));
    assert_ok(clg_builder_node(g, NULL, "Gather", "take", 2, NAMES("table", "i"), 1, NAMES("y")));
    assert_ok(clg_builder_output(g, "y"));
    clg_session *s = build_session(context, g, NULL);
    for (int64_t round = 0; round < 4; round++) {
        const int64_t i[2] = {3, round % 2 ? 1 : 4};
        const clg_call_input in[] = {{"i", CLG_INT64, 1, DIMS(2), i, sizeof i, NULL},
                                     {"table", CLG_FLOAT32, 1, DIMS(4), table, sizeof table, NULL}};
        clg_call_output out = used("y", round == 2 ? NULL : y, round == 2 ? 0 : sizeof y);
        if (round % 2 == 0) {
            assert_error(clg_session_call(s, in, 2, &out, 1), CLG_ERROR_DATA, "take");
            expect_zero(&out);
            continue;
        }
        assert_ok(clg_session_call(s, in, 2, &out, 1));
        assert_true(y[0] == 40 && y[1] == 20);
    }
    clg_session_free(s);
}

TEST_GROUP(open_context, close_context)
