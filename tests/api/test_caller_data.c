/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests functions that read the caller's memory: name, dtype, shape and size are checked before a
 * byte is read. Where they are wrong the tests give an address that cannot be read.
 */
#include "support/unit.h"

#include "support/fixtures/build_session.h"
#include "support/fixtures/pocl_context.h"
#include "support/literals.h"

#include <clgraph/builder.h>

#include <string.h>

#define UNREADABLE ((void *)(uintptr_t)64)

static const float ramp[6] = {1, 2, 3, 4, 5, 6};

/* Creates y = -x with x: [2, n]. */
static clg_session *open_session(void)
{
    clg_builder *g = start_graph();
    assert_ok(clg_builder_input(g, "x", CLG_FLOAT32, 2, DIMS(2, -1), NULL));
    assert_ok(clg_builder_node(g, NULL, "Neg", "neg", 1, NAMES("x"), 1, NAMES("y")));
    assert_ok(clg_builder_output(g, "y"));
    return build_session(context, g, NULL);
}

static clg_status give(clg_session *s, const char *name, clg_dtype dtype, size_t rank,
                       const int64_t *dims, size_t size_bytes)
{
    return clg_session_set_input_data(s, name, dtype, rank, dims, UNREADABLE, size_bytes);
}

TEST(caller_data__inputs_are_checked_before_they_are_read)
{
    clg_session *s = open_session();
    assert_error(give(s, "z", CLG_FLOAT32, 2, DIMS(2, 3), 24), CLG_ERROR_NOT_FOUND, "'z'");
    assert_error(give(s, "x", CLG_INT32, 2, DIMS(2, 3), 24), CLG_ERROR_UNSUPPORTED_DTYPE, "int32");
    assert_error(give(s, "x", (clg_dtype)99, 2, DIMS(2, 3), 24), CLG_ERROR_INVALID_ARGUMENT,
                 "input 'x': 99 is not a dtype");
    assert_error(
        give(s, "x", CLG_FLOAT32, 2, DIMS(3, 2), 24), CLG_ERROR_SHAPE,
        "input 'x' has shape [2,?] in the model, [3,2] was given: dimension 0 is 3, not 2");
    assert_error(give(s, "x", CLG_FLOAT32, 1, DIMS(6), 24), CLG_ERROR_SHAPE,
                 "input 'x' has shape [2,?] in the model, [6] was given: the rank is 1, not 2");
    assert_error(give(s, "x", CLG_FLOAT32, 2, DIMS(2, -1), 24), CLG_ERROR_INVALID_ARGUMENT,
                 "input 'x': dimension 1 is negative: -1");
    clg_session_free(s);
}

TEST(caller_data__inputs_of_another_size_are_refused)
{
    clg_session *s = open_session();
    const size_t sizes[] = {0, 1, 23, 25, SIZE_MAX};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        assert_error(give(s, "x", CLG_FLOAT32, 2, DIMS(2, 3), sizes[i]), CLG_ERROR_INVALID_ARGUMENT,
                     "input 'x': float32 of shape [2,3] takes 24");
    }
    assert_error(clg_session_set_input_data(s, "x", CLG_FLOAT32, 2, DIMS(2, 3), NULL, 24),
                 CLG_ERROR_INVALID_ARGUMENT, "NULL");
    assert_error(clg_session_run(s), CLG_ERROR_NOT_FOUND, "x"); /* none of them was taken */
    assert_ok(clg_session_set_input_data(s, "x", CLG_FLOAT32, 2, DIMS(2, 0), NULL, 0));
    assert_ok(clg_session_set_input_data(s, "x", CLG_FLOAT32, 2, DIMS(2, 3), ramp, sizeof ramp));
    assert_ok(clg_session_run(s));
    float y[6];
    assert_ok(clg_session_get_output_data(s, "y", y, sizeof y));
    for (int i = 0; i < 6; i++) assert_true(y[i] == -ramp[i]);
    clg_session_free(s);
}

TEST(caller_data__constants_are_checked_before_they_are_read)
{
    clg_builder *g = start_graph();
    const size_t sizes[] = {0, 23, 25, SIZE_MAX};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        assert_error(clg_builder_constant(g, "c", CLG_FLOAT32, 2, DIMS(2, 3), UNREADABLE, sizes[i]),
                     CLG_ERROR_INVALID_ARGUMENT, "takes 24 bytes");
    }
    assert_error(clg_builder_constant(g, "c", CLG_FLOAT32, 2, DIMS(2, 3), NULL, 24),
                 CLG_ERROR_INVALID_ARGUMENT, "data");
    assert_ok(clg_builder_constant(g, "c", CLG_FLOAT32, 2, DIMS(2, 3), ramp, sizeof ramp));
    clg_builder_free(g);
}

TEST(caller_data__wrapped_memory_may_be_larger_and_not_smaller)
{
    float room[8];
    clg_value *v;
    memcpy(room, ramp, sizeof ramp);
    assert_error(clg_value_wrap(CLG_FLOAT32, 2, DIMS(2, 3), room, 23, NULL, NULL, &v),
                 CLG_ERROR_INVALID_ARGUMENT, "data has 23 bytes; float32 [2,3] has 24");
    assert_null(v);
    assert_ok(clg_value_wrap(CLG_FLOAT32, 2, DIMS(2, 3), room, sizeof room, NULL, NULL, &v));
    assert_int_equal(clg_value_size_bytes(v), 24);
    clg_value_free(v);
}

TEST_GROUP(open_context, close_context)
