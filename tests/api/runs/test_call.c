/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests clg_session_call: what it returns for every kind of input and output, in what memory, and
 * what it leaves set in the session.
 */
/* ctest: label quick */
#include "support/unit.h"

#include "support/fakes/counting_alloc.h"
#include "support/fixtures/build_session.h"
#include "support/fixtures/pocl_context.h"
#include "support/fixtures/sized_data.h"
#include "support/literals.h"

#include <clgraph/inspect.h>

#include <string.h>

/* Creates y = -x for x: [N, 3], and half = 0.5 * bias for bias: [2]. */
static clg_session *open_session(void)
{
    static const float factor = 0.5f;
    clg_builder *g = start_graph();
    assert_ok(clg_builder_input(g, "x", CLG_FLOAT32, 2, DIMS(-1, 3), NULL));
    assert_ok(clg_builder_input(g, "bias", CLG_FLOAT32, 1, DIMS(2), NULL));
    assert_ok(sized_constant(g, "factor", CLG_FLOAT32, 0, NULL, &factor));
    assert_ok(clg_builder_node(g, NULL, "Neg", "minus", 1, NAMES("x"), 1, NAMES("y")));
    assert_ok(
        clg_builder_node(g, NULL, "Mul", "halve", 2, NAMES("bias", "factor"), 1, NAMES("half")));
    assert_ok(clg_builder_output(g, "y"));
    assert_ok(clg_builder_output(g, "half"));
    return build_session(context, g, NULL);
}

static void fill(float *x, size_t n, float first)
{
    for (size_t i = 0; i < n; i++) x[i] = first + (float)i;
}

static void expect_negative(const float *y, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) assert_true(y[i] == -x[i]);
}

static clg_call_input data_of(const char *name, size_t rank, const int64_t *dims, const void *data,
                              size_t size_bytes)
{
    return (clg_call_input){name, CLG_FLOAT32, rank, dims, data, size_bytes, NULL};
}

static clg_call_input bias_data(void)
{
    static const float bias[2] = {8, -6};
    static const int64_t dims[1] = {2};
    return data_of("bias", 1, dims, bias, sizeof bias);
}

static clg_call_output into(const char *name, void *data, size_t capacity_bytes)
{
    return (clg_call_output){.name = name, .data = data, .capacity_bytes = capacity_bytes};
}

static uint64_t plans_made(void)
{
    clg_counters counters = CLG_COUNTERS_INIT;
    assert_ok(clg_context_counters(context, &counters));
    return counters.plans_made;
}

/* ---- tensors --------------------------------------------------------------------------------- */

TEST(call__shapes_differ_between_calls)
{
    float x[15], y[15], half[2];
    clg_session *s = open_session();
    for (int64_t rows = 5; rows > 0; rows -= 2) {
        const int64_t dims[] = {rows, 3};
        const size_t n = (size_t)rows * 3;
        fill(x, n, (float)rows);
        clg_call_input in[] = {bias_data(), data_of("x", 2, dims, x, n * sizeof(float))};
        clg_call_output out[] = {into("half", half, sizeof half), into("y", y, sizeof y)};
        assert_ok(clg_session_call(s, in, 2, out, 2));
        expect_negative(y, x, n);
        assert_true(half[0] == 4 && half[1] == -3);
        assert_null(out[1].value);
        assert_int_equal(out[1].kind, CLG_VALUE_TENSOR);
        assert_int_equal(out[1].dtype, CLG_FLOAT32);
        assert_int_equal(out[1].rank, 2);
        assert_int_equal(out[1].dims[0], rows);
        assert_int_equal(out[1].dims[1], 3);
        assert_int_equal(out[1].size_bytes, n * sizeof(float));
        assert_int_equal(out[0].rank, 1);
        assert_int_equal(out[0].dims[0], 2);
    }
    clg_session_free(s);
}

TEST(call__a_larger_output_comes_as_a_value)
{
    float x[6], y[6] = {0};
    const float zeros[6] = {0};
    clg_session *s = open_session();
    fill(x, 6, 1);
    for (size_t capacity = 0; capacity < sizeof y; capacity += sizeof y - 1) {
        clg_call_input in[] = {data_of("x", 2, DIMS(2, 3), x, sizeof x), bias_data()};
        clg_call_output out = into("y", capacity ? y : NULL, capacity);
        assert_ok(clg_session_call(s, in, 2, &out, 1));
        assert_non_null(out.value);
        assert_int_equal(clg_value_size_bytes(out.value), sizeof x);
        assert_int_equal(out.size_bytes, sizeof x);
        assert_int_equal(out.dims[0], 2);
        expect_negative(clg_value_data(out.value), x, 6);
        assert_memory_equal(y, zeros, sizeof y);
        clg_call_output next = into("y", y, sizeof y); /* later calls do not change the value */
        in[0].data = zeros;
        assert_ok(clg_session_call(s, in, 2, &next, 1));
        expect_negative(clg_value_data(out.value), x, 6);
        clg_value_free(out.value);
        memset(y, 0, sizeof y);
    }
    clg_session_free(s);
}

TEST(call__without_elements)
{
    clg_session *s = open_session();
    clg_call_input in[] = {data_of("x", 2, DIMS(0, 3), NULL, 0), bias_data()};
    float y[1];
    for (int i = 0; i < 2; i++) {
        clg_call_output out = i ? into("y", y, sizeof y) : into("y", NULL, 0);
        assert_ok(clg_session_call(s, in, 2, &out, 1));
        assert_null(out.value);
        assert_int_equal(out.rank, 2);
        assert_int_equal(out.dims[0], 0);
        assert_int_equal(out.dims[1], 3);
        assert_int_equal(out.size_bytes, 0);
    }
    clg_session_free(s);
}

TEST(call__bools_other_than_0_and_1_are_read_as_1)
{
    const uint8_t x[4] = {0, 1, 2, 255};
    uint8_t y[4];
    clg_builder *g = start_graph();
    assert_ok(clg_builder_input(g, "x", CLG_BOOL, 1, DIMS(4), NULL));
    assert_ok(clg_builder_node(g, NULL, "Identity", "same", 1, NAMES("x"), 1, NAMES("y")));
    assert_ok(clg_builder_output(g, "y"));
    clg_session *s = build_session(context, g, NULL);
    clg_call_input in = {"x", CLG_BOOL, 1, DIMS(4), x, sizeof x, NULL};
    clg_call_output out = into("y", y, sizeof y);
    assert_ok(clg_session_call(s, &in, 1, &out, 1));
    assert_true(y[0] == 0 && y[1] == 1 && y[2] == 1 && y[3] == 1);
    clg_session_free(s);
}

TEST(call__sizes_that_depend_on_data)
{
    const float x[6] = {0, 3, 0, 0, -2, 0}, none[6] = {0};
    int64_t where[6];
    clg_builder *g = start_graph();
    assert_ok(clg_builder_input(g, "x", CLG_FLOAT32, 1, DIMS(6), NULL));
    assert_ok(clg_builder_node(g, NULL, "NonZero", "find", 1, NAMES("x"), 1, NAMES("y")));
    assert_ok(clg_builder_output(g, "y"));
    clg_session *s = build_session(context, g, NULL);
    clg_call_input in = data_of("x", 1, DIMS(6), x, sizeof x);
    clg_call_output out = into("y", where, sizeof where);
    assert_ok(clg_session_call(s, &in, 1, &out, 1));
    assert_null(out.value);
    assert_int_equal(out.dtype, CLG_INT64);
    assert_int_equal(out.dims[1], 2);
    assert_true(where[0] == 1 && where[1] == 4);
    out = into("y", where, sizeof *where); /* too small for two */
    assert_ok(clg_session_call(s, &in, 1, &out, 1));
    assert_int_equal(((const int64_t *)clg_value_data(out.value))[1], 4);
    clg_value_free(out.value);
    in.data = none;
    out = into("y", where, sizeof where);
    assert_ok(clg_session_call(s, &in, 1, &out, 1));
    assert_int_equal(out.dims[1], 0);
    assert_null(out.value);
    clg_session_free(s);
}

/* ---- values ---------------------------------------------------------------------------------- */

TEST(call__device_and_host_values_are_inputs)
{
    float x[6], y[6], half[2];
    const float bias[2] = {2, 4};
    clg_value *on_device, *on_host;
    clg_session *s = open_session();
    fill(x, 6, -3);
    assert_ok(clg_value_create_device(context, CLG_FLOAT32, 2, DIMS(2, 3), &on_device));
    assert_ok(clg_value_write(on_device, x, sizeof x));
    assert_ok(clg_value_create(CLG_FLOAT32, 1, DIMS(2), &on_host));
    assert_ok(clg_value_write(on_host, bias, sizeof bias));
    clg_call_input in[] = {{.name = "x", .value = on_device}, {.name = "bias", .value = on_host}};
    clg_call_output out[] = {into("y", y, sizeof y), into("half", half, sizeof half)};
    assert_ok(clg_session_call(s, in, 2, out, 2));
    expect_negative(y, x, 6);
    assert_true(half[0] == 1 && half[1] == 2);
    /* Values are for one call, too. */
    assert_error(clg_session_call(s, in, 1, out, 2), CLG_ERROR_NOT_FOUND, "'bias' is not set");
    clg_value_free(on_device);
    clg_value_free(on_host);
    clg_session_free(s);
}

TEST(call__strings_come_and_go_as_values)
{
    const char *words[] = {"one", "two"};
    clg_builder *g = start_graph();
    clg_value *x;
    assert_ok(clg_builder_input(g, "x", CLG_STRING, 1, DIMS(2), NULL));
    assert_ok(clg_builder_node(g, NULL, "Identity", "same", 1, NAMES("x"), 1, NAMES("y")));
    assert_ok(clg_builder_output(g, "y"));
    clg_session *s = build_session(context, g, NULL);
    assert_ok(sized_wrap(CLG_STRING, 1, DIMS(2), words, NULL, NULL, &x));
    clg_call_input in = {.name = "x", .value = x};
    char room[64];
    clg_call_output out = into("y", room, sizeof room);
    assert_ok(clg_session_call(s, &in, 1, &out, 1));
    assert_non_null(out.value);
    assert_int_equal(out.dtype, CLG_STRING);
    assert_int_equal(out.rank, 1);
    assert_int_equal(out.dims[0], 2);
    assert_int_equal(out.size_bytes, 0);
    assert_string_equal(((char **)clg_value_data(out.value))[1], "two");
    clg_value_free(out.value);
    in = (clg_call_input){"x", CLG_STRING, 1, DIMS(2), words, sizeof words, NULL};
    assert_error(clg_session_call(s, &in, 1, &out, 1), CLG_ERROR_UNSUPPORTED_DTYPE,
                 "given as a value");
    clg_value_free(x);
    clg_session_free(s);
}

TEST(call__sequences_come_and_go_as_values)
{
    ow_model m = {.ir_version = 8, .opset = 16};
    clg_value *items[2], *x;
    const float ramp[] = {1, 2, 3};
    ow_put_message(&m.graph, 11, ow_info("x", ow_type_list(OW_SEQUENCE, ow_type_tensor(1))));
    ow_input(&m, "t", CLG_FLOAT32, 1, DIMS(-1), "N");
    ow_simple_node(&m, "Neg", "", "t", "minus");
    ow_simple_node(&m, "SequenceInsert", "", "x,minus", "y");
    ow_put_message(&m.graph, 12, ow_info("y", ow_type_list(OW_SEQUENCE, ow_type_tensor(1))));
    clg_session *s = open_model(context, &m);
    for (size_t i = 0; i < 2; i++) {
        assert_ok(clg_value_create(CLG_FLOAT32, 1, DIMS(2), &items[i]));
        ((float *)clg_value_data(items[i]))[1] = (float)i + 5;
    }
    assert_ok(clg_value_create_sequence(CLG_FLOAT32, 2, items, &x));
    clg_call_input in[] = {{.name = "x", .value = x}, data_of("t", 1, DIMS(3), ramp, sizeof ramp)};
    float room[8];
    for (int round = 0; round < 2; round++) {
        clg_call_output out = into("y", room, sizeof room);
        assert_ok(clg_session_call(s, in, 2, &out, 1));
        assert_int_equal(out.kind, CLG_VALUE_SEQUENCE);
        assert_int_equal(out.dtype, CLG_FLOAT32);
        assert_int_equal(out.rank, 0);
        assert_int_equal(clg_value_n_items(out.value), 3);
        assert_true(((float *)clg_value_data(clg_value_item(out.value, 1)))[1] == 6);
        expect_negative(clg_value_data(clg_value_item(out.value, 2)), ramp, 3);
        clg_value_free(out.value);
    }
    /* One that is not listed can be fetched afterwards. */
    clg_value *y;
    assert_ok(clg_session_call(s, in, 2, NULL, 0));
    assert_ok(clg_session_get_output(s, "y", &y));
    assert_int_equal(clg_value_n_items(y), 3);
    clg_value_free(y);
    for (size_t i = 0; i < 2; i++) clg_value_free(items[i]);
    clg_value_free(x);
    clg_session_free(s);
}

TEST(call__maps_come_and_go_as_values)
{
    clg_builder *g = start_graph();
    const float scores[] = {0.25f, 0.75f};
    assert_ok(clg_builder_input(g, "x", CLG_FLOAT32, 2, DIMS(-1, 2), NULL));
    assert_ok(clg_builder_node(g, "ai.onnx.ml", "ZipMap", "zip", 1, NAMES("x"), 1, NAMES("y")));
    assert_ok(clg_builder_attribute_ints(g, "classlabels_int64s", 2, DIMS(10, 20)));
    assert_ok(clg_builder_output(g, "y"));
    clg_session *s = build_session(context, g, NULL);
    clg_call_input in = data_of("x", 2, DIMS(1, 2), scores, sizeof scores);
    clg_call_output out = into("y", NULL, 0);
    assert_ok(clg_session_call(s, &in, 1, &out, 1));
    assert_int_equal(out.kind, CLG_VALUE_SEQUENCE);
    const clg_value *map = clg_value_item(out.value, 0);
    assert_int_equal(((int64_t *)clg_value_data(clg_value_map_keys(map)))[1], 20);
    assert_true(((float *)clg_value_data(clg_value_map_values(map)))[1] == 0.75f);
    clg_value_free(out.value);
    clg_session_free(s);
}

static ow_bytes map_info(const char *name)
{
    return ow_info(name, ow_type_map(CLG_STRING, ow_type_tensor(CLG_FLOAT32)));
}

TEST(call__maps_are_inputs)
{
    ow_model m = {.ir_version = 8, .opset = 13};
    const char *words[] = {"b", "c"};
    float y[3];
    clg_value *keys, *values, *map;
    ow_opset(&m, "ai.onnx.ml", 1);
    ow_put_message(&m.graph, 11, map_info("x"));
    ow_bytes n = ow_node("DictVectorizer", "look", "x", "y");
    ow_put_string(&n, 7, "ai.onnx.ml");
    ow_attribute_strings(&n, "string_vocabulary", 3, NAMES("a", "b", "c"));
    ow_add_node(&m, n);
    ow_output(&m, "y", CLG_FLOAT32);
    clg_session *s = open_model(context, &m);
    assert_ok(sized_wrap(CLG_STRING, 1, DIMS(2), words, NULL, NULL, &keys));
    assert_ok(clg_value_create(CLG_FLOAT32, 1, DIMS(2), &values));
    fill(clg_value_data(values), 2, 7);
    assert_ok(clg_value_create_map(keys, values, &map));
    clg_call_input in = {.name = "x", .value = map};
    clg_call_output out = into("y", y, sizeof y);
    assert_ok(clg_session_call(s, &in, 1, &out, 1));
    assert_null(out.value);
    assert_true(y[0] == 0 && y[1] == 7 && y[2] == 8);
    clg_value_free(keys);
    clg_value_free(values);
    clg_value_free(map);
    clg_session_free(s);
}

/* ---- what stays in the session --------------------------------------------------------------- */

TEST(call__data_is_unset_and_the_rest_stays)
{
    float x[6], y[6], half[2];
    const float bias[2] = {2, 4}, other[2] = {10, 20};
    clg_session *s = open_session();
    fill(x, 6, 1);
    assert_ok(clg_session_set_input_data(s, "bias", CLG_FLOAT32, 1, DIMS(2), bias, sizeof bias));
    clg_call_input in[] = {data_of("x", 2, DIMS(2, 3), x, sizeof x),
                           data_of("bias", 1, DIMS(2), other, sizeof other)};
    clg_call_output out[] = {into("half", half, sizeof half), into("y", y, sizeof y)};
    assert_ok(clg_session_call(s, in, 1, out, 2));
    assert_true(half[0] == 1 && half[1] == 2);
    assert_error(clg_session_run(s), CLG_ERROR_NOT_FOUND, "'x' is not set");
    assert_ok(clg_session_call(s, in, 1, out, 2)); /* bias is still set */
    assert_true(half[0] == 1 && half[1] == 2);
    assert_ok(clg_session_call(s, in, 2, out, 2)); /* replaced for this call, and unset */
    assert_true(half[0] == 5 && half[1] == 10);
    assert_error(clg_session_call(s, in, 1, out, 2), CLG_ERROR_NOT_FOUND, "'bias' is not set");
    clg_session_free(s);
}

TEST(call__other_outputs_can_be_fetched_afterwards)
{
    float x[6], got[6], half[2];
    clg_value *v;
    clg_session *s = open_session();
    fill(x, 6, 1);
    clg_call_input in[] = {data_of("x", 2, DIMS(2, 3), x, sizeof x), bias_data()};
    clg_call_output out = into("half", half, sizeof half);
    for (int round = 0; round < 2; round++) {
        assert_ok(clg_session_call(s, in, 2, &out, 1));
        assert_ok(clg_session_get_output_data(s, "y", got, sizeof got));
        expect_negative(got, x, 6);
        memset(half, 0, sizeof half);
        assert_ok(clg_session_get_output_data(s, "half", half, sizeof half));
        assert_true(half[0] == 4 && half[1] == -3);
        assert_ok(clg_session_get_output_device(s, "y", &v));
        clg_value_free(v);
        fill(x, 6, 20); /* of the next round */
    }
    /* And an ordinary run fetches all again, also into values bound later. */
    assert_ok(clg_session_set_input_data(s, "x", CLG_FLOAT32, 2, DIMS(2, 3), x, sizeof x));
    assert_ok(clg_session_set_input_data(s, "bias", CLG_FLOAT32, 1, DIMS(2), x, 8));
    assert_ok(clg_session_run(s));
    assert_ok(clg_session_get_output_data(s, "y", got, sizeof got));
    expect_negative(got, x, 6);
    assert_ok(clg_value_create(CLG_FLOAT32, 2, DIMS(2, 3), &v));
    assert_ok(clg_session_call(s, in, 2, &out, 1));
    assert_ok(clg_session_bind_output(s, "y", v));
    assert_ok(clg_session_set_input_data(s, "x", CLG_FLOAT32, 2, DIMS(2, 3), x, sizeof x));
    assert_ok(clg_session_set_input_data(s, "bias", CLG_FLOAT32, 1, DIMS(2), x, 8));
    assert_ok(clg_session_run(s));
    expect_negative(clg_value_data(v), x, 6);
    clg_value_free(v);
    clg_session_free(s);
}

TEST(call__a_bound_output_comes_as_its_value)
{
    float x[6], got[6], y[6] = {0};
    clg_session *s = open_session();
    fill(x, 6, 1);
    clg_call_input in[] = {data_of("x", 2, DIMS(2, 3), x, sizeof x), bias_data()};
    for (int on_device = 0; on_device < 2; on_device++) {
        clg_value *bound;
        assert_ok(on_device ? clg_value_create_device(context, CLG_FLOAT32, 2, DIMS(2, 3), &bound)
                            : clg_value_create(CLG_FLOAT32, 2, DIMS(2, 3), &bound));
        assert_ok(clg_session_bind_output(s, "y", bound));
        for (int listed = 0; listed < 2; listed++) {
            clg_call_output out = into("y", y, sizeof y);
            assert_ok(clg_session_call(s, in, 2, &out, (size_t)listed));
            assert_ok(clg_value_read(bound, got, sizeof got));
            expect_negative(got, x, 6);
            if (listed) assert_ptr_equal(out.value, bound);
            if (listed) assert_int_equal(out.size_bytes, sizeof x);
            assert_true(y[0] == 0); /* not written */
            clg_value_free(out.value);
            fill(x, 6, 7);
        }
        assert_ok(clg_session_bind_output(s, "y", NULL));
        clg_value_free(bound);
    }
    clg_session_free(s);
}

/* Creates total = sum + x, scaled = 2 * total, with total linked to sum. */
static clg_session *open_linked(void)
{
    clg_builder *g = start_graph();
    static const float two = 2;
    assert_ok(clg_builder_input(g, "x", CLG_FLOAT32, 1, DIMS(3), NULL));
    assert_ok(clg_builder_input(g, "sum", CLG_FLOAT32, 1, DIMS(3), NULL));
    assert_ok(sized_constant(g, "two", CLG_FLOAT32, 0, NULL, &two));
    assert_ok(clg_builder_node(g, NULL, "Add", "add", 2, NAMES("sum", "x"), 1, NAMES("total")));
    assert_ok(clg_builder_node(g, NULL, "Mul", "scale", 2, NAMES("total", "two"), 1, NAMES("y")));
    assert_ok(clg_builder_output(g, "total"));
    assert_ok(clg_builder_output(g, "y"));
    clg_session *s = build_session(context, g, NULL);
    assert_ok(clg_session_link(s, "total", "sum"));
    return s;
}

TEST(call__linked_inputs_keep_their_state)
{
    const float x[3] = {1, 2, 3}, start[3] = {100, 100, 100};
    float total[3], y[3];
    clg_session *s = open_linked();
    clg_call_input in[] = {data_of("x", 1, DIMS(3), x, sizeof x),
                           data_of("sum", 1, DIMS(3), start, sizeof start)};
    for (int again = 0; again < 2; again++) {
        clg_call_output out[] = {into("total", total, sizeof total), into("y", y, sizeof y)};
        assert_ok(clg_session_call(s, in, 2, out, 2)); /* lists sum: starts over */
        for (int step = 1; step < 5; step++) {
            const bool is_value = step == 3; /* a linked output that does not fit */
            for (int i = 0; i < 3; i++) {
                const float *got = out[0].value ? clg_value_data(out[0].value) : total;
                assert_true(got[i] == 100 + (float)step * x[i]);
                assert_true(y[i] == 2 * (100 + (float)step * x[i]));
            }
            clg_value_free(out[0].value);
            memset(total, 0, sizeof total);
            out[0] = into("total", total, is_value ? 4 : sizeof total);
            assert_ok(clg_session_call(s, in, 1, out, 2));
            assert_int_equal(out[0].value != NULL, is_value);
        }
        clg_value_free(out[0].value);
    }
    clg_session_free(s);
}

/* ---- many calls ------------------------------------------------------------------------------ */

static void call_often(clg_session *s, int n)
{
    float x[12], y[6], half[2];
    clg_call_input in[] = {{NULL}, bias_data()};
    for (int i = 0; i < n; i++) {
        const int64_t dims[] = {1 + i % 4, 3};
        in[0] = data_of("x", 2, dims, x, (size_t)dims[0] * 12);
        fill(x, (size_t)dims[0] * 3, (float)i);
        clg_call_output out[] = {into("y", y, sizeof y), into("half", half, sizeof half)};
        if (i % 5 == 0) in[0].size_bytes++; /* every fifth one is refused */
        if (i % 5 == 0) {
            assert_int_equal(clg_session_call(s, in, 2, out, 2), CLG_ERROR_INVALID_ARGUMENT);
            continue;
        }
        assert_ok(clg_session_call(s, in, 2, out, 2));
        expect_negative(out[0].value ? clg_value_data(out[0].value) : y, x, (size_t)dims[0] * 3);
        clg_value_free(out[0].value);
    }
}

TEST(call__many_take_no_more_memory)
{
    clg_session *s = open_session();
    call_often(s, 200);
    const uint64_t plans = plans_made();
    const size_t live = counting_alloc_live_bytes();
    clg_counters before = CLG_COUNTERS_INIT, after = CLG_COUNTERS_INIT;
    assert_ok(clg_context_counters(context, &before));
    call_often(s, 10000);
    assert_ok(clg_context_counters(context, &after));
    assert_int_equal(counting_alloc_live_bytes(), live);
    assert_int_equal(after.device_bytes, before.device_bytes);
    assert_int_equal(plans_made(), plans);
    clg_session_free(s);
}

static int open_counted(void **state)
{
    return counting_alloc_install() == CLG_OK ? open_context(state) : -1;
}

static int close_counted(void **state)
{
    const int failed = close_context(state);
    return counting_alloc_remove() == CLG_OK ? failed : -1;
}

TEST_GROUP(open_counted, close_counted)
