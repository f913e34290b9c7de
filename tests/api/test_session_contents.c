/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests shapes and indices that depend on the values of tensors, as inputs or computed on the
 * device, and indices out of range. A run that needs such values on the host waits for them; plans
 * for earlier shapes must not accumulate.
 */
#include "support/fixtures/sized_data.h"
#include "support/unit.h"

#include "support/fixtures/build_session.h"
#include "support/fixtures/pocl_context.h"
#include "support/literals.h"

#include <clgraph/inspect.h>

#include <math.h>
#include <string.h>

TEST(contents__that_are_an_input)
{
    clg_builder *g = start_graph();
    clg_session *s;
    float x[24];
    clg_value *y;
    for (int i = 0; i < 24; i++) x[i] = sinf((float)(i * 7 + 3));
    assert_ok(clg_builder_input(g, "x", CLG_FLOAT32, 3, DIMS(2, 3, 4), NULL));
    assert_ok(clg_builder_input(g, "shape", CLG_INT64, 1, DIMS(2), NULL));
    assert_ok(
        clg_builder_node(g, NULL, "Reshape", "reshape", 2, NAMES("x", "shape"), 1, NAMES("r")));
    assert_ok(clg_builder_node(g, NULL, "Neg", "neg", 1, NAMES("r"), 1, NAMES("y")));
    assert_ok(clg_builder_output(g, "y"));
    s = build_session(context, g, NULL);
    assert_ok(sized_input(s, "x", CLG_FLOAT32, 3, DIMS(2, 3, 4), x));
    for (int64_t rows = 1; rows <= 24; rows *= 2) {
        if (24 % rows) continue;
        assert_ok(sized_input(s, "shape", CLG_INT64, 1, DIMS(2), DIMS(rows, -1)));
        assert_ok(clg_session_run(s));
        assert_ok(clg_session_get_output(s, "y", &y));
        assert_int_equal(clg_value_dims(y)[0], rows);
        assert_int_equal(clg_value_dims(y)[1], 24 / rows);
        for (int i = 0; i < 24; i++) assert_true(((float *)clg_value_data(y))[i] == -x[i]);
        clg_value_free(y);
    }
    assert_ok(sized_input(s, "shape", CLG_INT64, 1, DIMS(2), DIMS(5, -1)));
    assert_error(clg_session_run(s), CLG_ERROR_SHAPE, "reshape");
    clg_session_free(s);
}

TEST(contents__an_index_out_of_range_is_reported)
{
    clg_builder *g = start_graph();
    clg_session *s;
    float table[6] = {0, 1, 2, 3, 4, 5}, y[4];
    assert_ok(clg_builder_input(g, "at", CLG_INT64, 1, DIMS(2), NULL));
    assert_ok(sized_constant(g, "table", CLG_FLOAT32, 2, DIMS(3, 2), table));
    assert_ok(
        clg_builder_node(g, NULL, "Gather", "lookup", 2, NAMES("table", "at"), 1, NAMES("y")));
    assert_ok(clg_builder_output(g, "y"));
    s = build_session(context, g, NULL);
    assert_ok(sized_input(s, "at", CLG_INT64, 1, DIMS(2), DIMS(0, 3)));
    assert_error(clg_session_run(s), CLG_ERROR_DATA, "lookup");
    assert_non_null(strstr(clg_last_error(), "3"));
    assert_error(clg_session_get_output_data(s, "y", y, sizeof y), CLG_ERROR_NOT_FOUND, "'y'");
    assert_ok(
        sized_input(s, "at", CLG_INT64, 1, DIMS(2), DIMS(-1, 0))); /* and the next run is right */
    assert_ok(clg_session_run(s));
    assert_ok(clg_session_get_output_data(s, "y", y, sizeof y));
    assert_true(y[0] == 4 && y[1] == 5 && y[2] == 0 && y[3] == 1);
    clg_session_free(s);
}

/* ---- known to the device alone --------------------------------------------------------------- */

/* Creates y = 0, -1, -2 ..., of as many elements as the largest element of x. Only the device
 * computes this count: the run waits for it, reads it and continues planning. */
static clg_session *counter(void)
{
    static const int64_t zero = 0, one = 1;
    clg_builder *g = start_graph();
    assert_ok(clg_builder_input(g, "x", CLG_FLOAT32, 2, DIMS(-1, -1), NULL));
    assert_ok(sized_constant(g, "zero", CLG_INT64, 0, NULL, &zero));
    assert_ok(sized_constant(g, "one", CLG_INT64, 0, NULL, &one));
    assert_ok(clg_builder_node(g, NULL, "ReduceMax", "largest", 1, NAMES("x"), 1, NAMES("m")));
    assert_ok(clg_builder_attribute_int(g, "keepdims", 0));
    assert_ok(clg_builder_node(g, NULL, "Cast", "count", 1, NAMES("m"), 1, NAMES("n")));
    assert_ok(clg_builder_attribute_int(g, "to", CLG_INT64));
    assert_ok(
        clg_builder_node(g, NULL, "Range", "range", 3, NAMES("zero", "n", "one"), 1, NAMES("r")));
    assert_ok(clg_builder_node(g, NULL, "Neg", "negative", 1, NAMES("r"), 1, NAMES("y")));
    assert_ok(clg_builder_output(g, "y"));
    return build_session(context, g, NULL);
}

static void run_to(clg_session *s, int n)
{
    clg_value *y;
    assert_ok(clg_session_run(s));
    assert_ok(clg_session_get_output(s, "y", &y));
    assert_int_equal(clg_value_n_elements(y), n);
    for (int i = 0; i < n; i++) assert_true(((int64_t *)clg_value_data(y))[i] == -i);
    clg_value_free(y);
}

static void count_to(clg_session *s, int n)
{
    const float x = (float)n;
    assert_ok(sized_input(s, "x", CLG_FLOAT32, 2, DIMS(1, 1), &x));
    run_to(s, n);
}

TEST(contents__that_the_device_computes)
{
    clg_session *s = counter();
    for (int n = 0; n < 6; n++) {
        const float x[6] = {0, -1, 0, (float)n + 0.5f, 0, -2};
        assert_ok(sized_input(s, "x", CLG_FLOAT32, 2, DIMS(2, 3), x));
        run_to(s, n);
    }
    clg_session_free(s);
}

TEST(contents__many_do_not_pile_up)
{
    clg_session *s = counter(), *clone;
    clg_counters before = CLG_COUNTERS_INIT, after = CLG_COUNTERS_INIT;
    assert_ok(clg_session_clone(s, &clone));
    for (int n = 1; n <= 100; n++) count_to(s, n);
    assert_ok(clg_context_counters(context, &before));
    for (int n = 101; n <= 300; n++) {
        count_to(s, 1 + n % 150);
        if (n % 3 == 0) count_to(clone, n % 40);
    }
    count_to(s, 100);
    assert_ok(clg_context_counters(context, &after));
    assert_int_equal(after.plans_made, before.plans_made);
    assert_true(after.device_bytes < before.device_bytes + 65536);
    clg_session_free(clone);
    clg_session_free(s);
}

TEST(contents__that_are_the_same_make_no_plans)
{
    clg_session *s = counter();
    float x[40] = {0};
    clg_counters before = CLG_COUNTERS_INIT, after = CLG_COUNTERS_INIT;
    for (int i = 0; i < 30; i++) {
        x[3] = 2;
        x[5] = -(float)i;
        assert_ok(sized_input(s, "x", CLG_FLOAT32, 2, DIMS(1, 40), x));
        assert_ok(clg_session_run(s));
        if (i == 0) assert_ok(clg_context_counters(context, &before));
    }
    assert_ok(clg_context_counters(context, &after));
    assert_int_equal(after.plans_made, before.plans_made);
    clg_session_free(s);
}

TEST(contents__preparing_goes_as_far_as_zeros_lead)
{
    clg_session *s = counter();
    assert_ok(clg_session_prepare(s, NULL, NULL));
    count_to(s, 7);
    assert_ok(clg_session_set_input_shape(s, "x", 2, DIMS(1, 9)));
    assert_ok(clg_session_prepare(s, NULL, NULL));
    run_to(s, 7); /* the shape was set last; the data stay set */
    clg_session_free(s);
}

/* ---- outputs --------------------------------------------------------------------------------- */

TEST(contents__of_an_output_that_is_listed_twice)
{
    ow_model m = {.ir_version = 8, .opset = 13};
    const float x[] = {1, -2, 0.5F};
    const int64_t n = 3;
    ow_input(&m, "x", CLG_FLOAT32, 1, &n, NULL);
    ow_simple_node(&m, "Neg", "", "x", "y");
    ow_output(&m, "y", CLG_FLOAT32);
    ow_output(&m, "x", CLG_FLOAT32);
    ow_output(&m, "y", CLG_FLOAT32);
    clg_session *s = open_model(context, &m);
    clg_value *y;
    for (int run = 0; run < 2; run++) {
        assert_ok(sized_input(s, "x", CLG_FLOAT32, 1, &n, x));
        assert_ok(clg_session_run(s));
        assert_ok(clg_session_get_output(s, "y", &y));
        for (int i = 0; i < 3; i++) assert_true(((const float *)clg_value_data(y))[i] == -x[i]);
        clg_value_free(y);
    }
    clg_session_free(s);
}

TEST_GROUP(open_context, close_context)
