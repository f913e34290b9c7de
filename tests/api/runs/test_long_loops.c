/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests loops that are not unrolled: those whose condition the device decides, and long ones. Their
 * results, held against loops in C; and that the library holds no memory for an iteration.
 */
#include "support/fixtures/sized_data.h"
#include "support/unit.h"

#include "support/fakes/counting_alloc.h"
#include "support/fixtures/build_session.h"
#include "support/fixtures/pocl_context.h"

#include <string.h>

static int open_counted(void **state)
{
    return counting_alloc_install() == CLG_OK ? open_context(state) : -1;
}

static int close_counted(void **state)
{
    const int result = close_context(state);
    return counting_alloc_remove() == CLG_OK ? result : -1;
}

TEST_GROUP(open_counted, close_counted)

enum { ROWS = 3, COLUMNS = 2 };

static void add_float(ow_model *m, const char *name, float number)
{
    ow_initializer(m, ow_tensor_raw(name, CLG_FLOAT32, 0, NULL, &number, sizeof number));
}

static void add_flag(ow_model *m, const char *name)
{
    const bool yes = true;
    ow_initializer(m, ow_tensor_raw(name, CLG_BOOL, 0, NULL, &yes, sizeof yes));
}

static void start_body(ow_model *body)
{
    ow_loop_inputs(body);
    ow_input(body, "v", CLG_FLOAT32, SIZE_MAX, NULL, NULL);
}

static void add_cast(ow_model *m, const char *from, const char *to)
{
    ow_bytes cast = ow_node("Cast", "", from, to);
    ow_attribute_int(&cast, "to", CLG_FLOAT32);
    ow_add_node(m, cast);
}

static void add_max(ow_model *m, const char *from, const char *to)
{
    ow_bytes max = ow_node("ReduceMax", "", from, to);
    ow_attribute_int(&max, "keepdims", 0);
    ow_add_node(m, max);
}

/* v = v + transpose(w) and row = v * i, while the largest v is below the input `limit`. */
static clg_session *open_while(const clg_session_options *options)
{
    ow_model m = {.ir_version = 8, .opset = 13}, body = {0};
    ow_bytes loop = ow_node("Loop", "until", ",yes,x", "last,rows");
    clg_model *model;
    clg_session *s;
    start_body(&body);
    ow_simple_node(&body, "Add", "", "v,turned", "next");
    add_cast(&body, "i", "number");
    ow_simple_node(&body, "Mul", "", "next,number", "row");
    add_max(&body, "next", "largest");
    ow_simple_node(&body, "Less", "", "largest,limit", "goes");
    ow_output(&body, "goes", CLG_BOOL);
    ow_output(&body, "next", CLG_FLOAT32);
    ow_output(&body, "row", CLG_FLOAT32);
    ow_attribute_graph(&loop, "body", body.graph);
    ow_input(&m, "x", CLG_FLOAT32, 2, (int64_t[]){COLUMNS, ROWS}, NULL);
    ow_input(&m, "w", CLG_FLOAT32, 2, (int64_t[]){ROWS, COLUMNS}, NULL);
    ow_input(&m, "limit", CLG_FLOAT32, 0, NULL, NULL);
    add_flag(&m, "yes");
    ow_simple_node(&m, "Transpose", "", "w", "turned");
    ow_add_node(&m, loop);
    ow_output(&m, "last", CLG_FLOAT32);
    ow_output(&m, "rows", CLG_FLOAT32);
    assert_ok(ow_load(&m, &model));
    assert_ok(clg_session_create(context, model, options, &s));
    clg_model_free(model);
    return s;
}

static void set_floats(clg_session *s, const char *name, size_t rank, const int64_t *dims,
                       const float *data)
{
    assert_ok(sized_input(s, name, CLG_FLOAT32, rank, dims, data));
}

static const float start[COLUMNS][ROWS] = {{0.5F, -1, 2}, {0, 3, -0.25F}};
static const float slope[ROWS][COLUMNS] = {{0.25F, 0.5F}, {-0.5F, 1}, {0.125F, 0}};

static void set_while(clg_session *s, float limit)
{
    set_floats(s, "x", 2, (int64_t[]){COLUMNS, ROWS}, &start[0][0]);
    set_floats(s, "w", 2, (int64_t[]){ROWS, COLUMNS}, &slope[0][0]);
    set_floats(s, "limit", 0, NULL, &limit);
}

/* All numbers are multiples of 1/8 below 2^21, so that float32 has them exactly. */
static void check_while(clg_session *s, float limit)
{
    clg_value *last, *rows;
    double v[COLUMNS][ROWS], largest = 0;
    int64_t n = 0;
    set_while(s, limit);
    assert_ok(clg_session_run(s));
    assert_ok(clg_session_get_output(s, "last", &last));
    assert_ok(clg_session_get_output(s, "rows", &rows));
    const float *got_last = clg_value_data(last), *got_rows = clg_value_data(rows);
    for (int c = 0; c < COLUMNS; c++)
        for (int r = 0; r < ROWS; r++) v[c][r] = (double)start[c][r];
    for (bool goes = true; goes; n++, goes = largest < (double)limit) {
        assert_true(n < clg_value_dims(rows)[0]);
        for (int c = 0; c < COLUMNS; c++)
            for (int r = 0; r < ROWS; r++) {
                v[c][r] += (double)slope[r][c];
                largest = v[c][r] > largest ? v[c][r] : largest;
                assert_true((double)got_rows[(n * COLUMNS + c) * ROWS + r] == v[c][r] * (double)n);
            }
    }
    assert_int_equal(clg_value_dims(rows)[0], n);
    for (int c = 0; c < COLUMNS; c++)
        for (int r = 0; r < ROWS; r++) assert_true((double)got_last[c * ROWS + r] == v[c][r]);
    clg_value_free(last);
    clg_value_free(rows);
}

TEST(long_loops__end_when_the_device_decides)
{
    static const float limits[] = {-100, 4.5F, 5.5F, 6.5F, 7.5F, 60, 300, 5.5F};
    for (int kernels = CLG_KERNELS_SIMD; kernels <= CLG_KERNELS_SIMT; kernels++) {
        clg_session_options options = CLG_SESSION_OPTIONS_INIT;
        options.kernels = (clg_kernel_class)kernels;
        clg_session *s = open_while(&options);
        for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) check_while(s, limits[i]);
        clg_session_free(s);
    }
}

TEST(long_loops__hold_no_memory_for_an_iteration)
{
    clg_session *s = open_while(NULL);
    check_while(s, 30);
    const size_t before = counting_alloc_live_bytes();
    check_while(s, 2000);
    /* the stacked output has 24 bytes for each of 2000 iterations; each plan, some KB */
    assert_true(counting_alloc_live_bytes() < before + ((size_t)96 << 10));
    clg_session_free(s);
}

TEST(long_loops__that_never_end_are_an_error)
{
    clg_session_options options = CLG_SESSION_OPTIONS_INIT;
    options.max_iterations = 100;
    clg_session *s = open_while(&options);
    set_while(s, 1e30F);
    assert_error(clg_session_run(s), CLG_ERROR_DATA, "more than 100 iterations");
    assert_error(clg_session_run(s), CLG_ERROR_DATA, "'until'");
    check_while(s, 50);
    assert_ok(clg_session_prepare(s, NULL, NULL)); /* on zeros, the loop never ends */
    clg_session_free(s);
}

/* v = v / 2 + i, `trip` times; the numbers of all iterations are stacked. */
static clg_session *open_for(int64_t trip)
{
    ow_model m = {.ir_version = 8, .opset = 13}, body = {0};
    ow_bytes loop = ow_node("Loop", "", "trip,yes,x", "last,numbers");
    start_body(&body);
    add_float(&body, "half", 0.5F);
    add_cast(&body, "i", "number");
    ow_simple_node(&body, "Mul", "", "v,half", "less");
    ow_simple_node(&body, "Add", "", "less,number", "next");
    ow_simple_node(&body, "Identity", "", "on", "goes");
    ow_output(&body, "goes", CLG_BOOL);
    ow_output(&body, "next", CLG_FLOAT32);
    ow_output(&body, "number", CLG_FLOAT32);
    ow_attribute_graph(&loop, "body", body.graph);
    ow_input(&m, "x", CLG_FLOAT32, 1, (int64_t[]){COLUMNS}, NULL);
    ow_initializer(&m, ow_tensor_raw("trip", CLG_INT64, 0, NULL, &trip, sizeof trip));
    add_flag(&m, "yes");
    ow_add_node(&m, loop);
    ow_output(&m, "last", CLG_FLOAT32);
    ow_output(&m, "numbers", CLG_FLOAT32);
    return open_model(context, &m);
}

/* Runs a loop of `trip` iterations; returns the bytes that the library holds for it. */
static size_t check_for(int64_t trip)
{
    const size_t before = counting_alloc_live_bytes();
    clg_session *s = open_for(trip);
    clg_value *last, *numbers;
    const float x[COLUMNS] = {1, -3};
    set_floats(s, "x", 1, (int64_t[]){COLUMNS}, x);
    for (int run = 0; run < 2; run++) {
        assert_ok(clg_session_run(s));
        assert_ok(clg_session_get_output(s, "last", &last));
        assert_ok(clg_session_get_output(s, "numbers", &numbers));
        assert_int_equal(clg_value_dims(numbers)[0], trip);
        for (int64_t i = 0; i < trip; i++)
            assert_true(((const float *)clg_value_data(numbers))[i] == (float)i);
        for (int c = 0; c < COLUMNS; c++) {
            float v = x[c]; /* the same roundings as those of the kernel */
            for (int64_t i = 0; i < trip; i++) v = v * 0.5F + (float)i;
            assert_true(((const float *)clg_value_data(last))[c] == v);
        }
        clg_value_free(last);
        clg_value_free(numbers);
    }
    const size_t held = counting_alloc_live_bytes() - before;
    clg_session_free(s);
    return held;
}

TEST(long_loops__of_known_length_are_planned_once)
{
    (void)check_for(7); /* unrolled */
    const size_t once = check_for(9001);
    /* 4 bytes an iteration are the stacked output's */
    assert_true(check_for(18000) < once + 9000 * 4 + ((size_t)16 << 10));
}

/* v = v + 1 with v: [0], `trip` times; each v is stacked. */
TEST(long_loops__of_values_without_elements)
{
    enum { TRIP = 9001 };
    ow_model m = {.ir_version = 8, .opset = 13}, body = {0};
    ow_bytes loop = ow_node("Loop", "", "trip,,x", "last,all");
    const int64_t trip = TRIP;
    clg_value *last, *all;
    start_body(&body);
    add_float(&body, "one", 1);
    ow_simple_node(&body, "Add", "", "v,one", "next");
    ow_simple_node(&body, "Identity", "", "on", "goes");
    ow_output(&body, "goes", CLG_BOOL);
    ow_output(&body, "next", CLG_FLOAT32);
    ow_output(&body, "next", CLG_FLOAT32);
    ow_attribute_graph(&loop, "body", body.graph);
    ow_input(&m, "x", CLG_FLOAT32, 1, (int64_t[]){-1}, "n");
    ow_initializer(&m, ow_tensor_raw("trip", CLG_INT64, 0, NULL, &trip, sizeof trip));
    ow_add_node(&m, loop);
    ow_output(&m, "last", CLG_FLOAT32);
    ow_output(&m, "all", CLG_FLOAT32);
    clg_session *s = open_model(context, &m);
    for (int64_t n = 0; n < 3; n++) {
        const float zeros[2] = {0};
        set_floats(s, "x", 1, &n, zeros);
        assert_ok(clg_session_run(s));
        assert_ok(clg_session_get_output(s, "last", &last));
        assert_ok(clg_session_get_output(s, "all", &all));
        assert_int_equal(clg_value_dims(last)[0], n);
        assert_int_equal(clg_value_dims(all)[0], TRIP);
        assert_int_equal(clg_value_dims(all)[1], n);
        for (int64_t i = 0; i < TRIP * n; i++)
            assert_true(((const float *)clg_value_data(all))[i] == (float)(i / n + 1));
        clg_value_free(last);
        clg_value_free(all);
    }
    clg_session_free(s);
}

/* Adds to the outer body below a loop: w = w + 1 from w = v on, while w < 2 v + 2.5; each w is
 * stacked. */
static void add_inner(ow_model *outer)
{
    ow_model body = {0};
    ow_bytes loop = ow_node("Loop", "inner", ",on,v", "w_last,rows");
    ow_input(&body, "k", CLG_INT64, 0, NULL, NULL);
    ow_input(&body, "w_on", CLG_BOOL, 0, NULL, NULL);
    ow_input(&body, "w", CLG_FLOAT32, 0, NULL, NULL);
    ow_simple_node(&body, "Add", "", "w,one", "w_next");
    ow_simple_node(&body, "Less", "", "w_next,until", "w_goes");
    ow_output(&body, "w_goes", CLG_BOOL);
    ow_output(&body, "w_next", CLG_FLOAT32);
    ow_output(&body, "w_next", CLG_FLOAT32);
    ow_attribute_graph(&loop, "body", body.graph);
    add_float(outer, "more", 2.5F);
    ow_simple_node(outer, "Add", "", "v,v", "double");
    ow_simple_node(outer, "Add", "", "double,more", "until");
    ow_add_node(outer, loop);
}

/* v = v + 1 while v < limit; the sums of the inner loop's rows, whose number grows, are stacked. */
TEST(long_loops__nested)
{
    ow_model m = {.ir_version = 8, .opset = 13}, body = {0};
    ow_bytes loop = ow_node("Loop", "outer", ",yes,x", "last,sums");
    clg_value *sums;
    float last;
    start_body(&body);
    add_inner(&body);
    ow_bytes sum = ow_node("ReduceSum", "", "rows", "sum");
    ow_attribute_int(&sum, "keepdims", 0);
    ow_add_node(&body, sum);
    ow_simple_node(&body, "Add", "", "v,one", "next");
    ow_simple_node(&body, "Less", "", "next,limit", "goes");
    ow_output(&body, "goes", CLG_BOOL);
    ow_output(&body, "next", CLG_FLOAT32);
    ow_output(&body, "sum", CLG_FLOAT32);
    ow_attribute_graph(&loop, "body", body.graph);
    ow_input(&m, "x", CLG_FLOAT32, 0, NULL, NULL);
    ow_input(&m, "limit", CLG_FLOAT32, 0, NULL, NULL);
    add_flag(&m, "yes");
    add_float(&m, "one", 1);
    ow_add_node(&m, loop);
    ow_output(&m, "last", CLG_FLOAT32);
    ow_output(&m, "sums", CLG_FLOAT32);
    clg_session *s = open_model(context, &m);
    static const float limits[] = {0.5F, 30, 3, 60, 60};
    for (size_t run = 0; run < sizeof limits / sizeof *limits; run++) {
        const float x = 0;
        set_floats(s, "x", 0, NULL, &x);
        set_floats(s, "limit", 0, NULL, &limits[run]);
        assert_ok(clg_session_run(s));
        assert_ok(clg_session_get_output_data(s, "last", &last, sizeof last));
        assert_ok(clg_session_get_output(s, "sums", &sums));
        int n = 0;
        for (bool goes = true; goes; n++) {
            double expected = 0, w = n;
            do expected += w += 1;
            while (w < 2 * n + 2.5);
            assert_true(n < clg_value_dims(sums)[0]);
            assert_true((double)((const float *)clg_value_data(sums))[n] == expected);
            goes = (float)(n + 1) < limits[run];
        }
        assert_int_equal(clg_value_dims(sums)[0], n);
        assert_true(last == (float)n);
        clg_value_free(sums);
    }
    clg_session_free(s);
}

/* The shape of a stacked output of no iterations is [0, 2, 3], which only the body's nodes tell. */
TEST(long_loops__of_no_iteration_have_inferred_shapes)
{
    const int64_t trip = 0;
    const float x[2] = {1, 2}, w[2 * 3] = {0};
    ow_model m = {.ir_version = 8, .opset = 13}, body = {0};
    ow_bytes loop = ow_node("Loop", "", "trip,,x", "last,rows");
    clg_value *rows;
    start_body(&body);
    ow_simple_node(&body, "Mul", "", "v,w", "product");
    ow_simple_node(&body, "Relu", "", "product", "row");
    ow_simple_node(&body, "Identity", "", "on", "goes");
    ow_simple_node(&body, "Identity", "", "v", "next");
    ow_output(&body, "goes", CLG_BOOL);
    ow_output(&body, "next", CLG_FLOAT32);
    ow_output(&body, "row", CLG_FLOAT32);
    ow_attribute_graph(&loop, "body", body.graph);
    ow_input(&m, "x", CLG_FLOAT32, 2, (int64_t[]){2, 1}, NULL);
    ow_input(&m, "w", CLG_FLOAT32, 2, (int64_t[]){2, 3}, NULL);
    ow_initializer(&m, ow_tensor_raw("trip", CLG_INT64, 0, NULL, &trip, sizeof trip));
    ow_add_node(&m, loop);
    ow_output(&m, "last", CLG_FLOAT32);
    ow_output(&m, "rows", CLG_FLOAT32);
    clg_session *s = open_model(context, &m);
    set_floats(s, "x", 2, (int64_t[]){2, 1}, x);
    set_floats(s, "w", 2, (int64_t[]){2, 3}, w);
    assert_ok(clg_session_run(s));
    assert_ok(clg_session_get_output(s, "rows", &rows));
    assert_int_equal(clg_value_rank(rows), 3);
    assert_int_equal(clg_value_dims(rows)[0], 0);
    assert_int_equal(clg_value_dims(rows)[1], 2);
    assert_int_equal(clg_value_dims(rows)[2], 3);
    clg_value_free(rows);
    clg_session_free(s);
}
