/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests outputs that lie on inputs (clg_session_bind_output): a value in device memory is updated
 * by each run where one elementwise kernel computes it; other graphs are refused, by the run.
 */
#include "support/unit.h"

#include "support/fixtures/build_session.h"
#include "support/fixtures/pocl_context.h"
#include "support/fixtures/sized_data.h"
#include "support/literals.h"

#include <clgraph/opencl.h>

#include <string.h>

TEST_GROUP(open_context, close_context)

enum { N = 1003 }; /* no multiple of a vector's width */

static void add(clg_builder *g, const char *op, const char *a, const char *b, const char *out)
{
    assert_ok(clg_builder_node(g, "", op, NULL, b ? 2 : 1, NAMES(a, b), 1, NAMES(out)));
}

static clg_value *on_device(int64_t n, const float *numbers)
{
    clg_value *v;
    assert_ok(clg_value_create_device(context, CLG_FLOAT32, 1, &n, &v));
    assert_ok(clg_value_write(v, numbers, (size_t)n * sizeof *numbers));
    return v;
}

static clg_builder *start(void)
{
    clg_builder *g = start_graph();
    assert_ok(clg_builder_input(g, "x", CLG_FLOAT32, 1, DIMS(-1), NULL));
    assert_ok(clg_builder_input(g, "g", CLG_FLOAT32, 1, DIMS(-1), NULL));
    assert_ok(clg_builder_input(g, "rate", CLG_FLOAT32, 1, DIMS(1), NULL));
    return g;
}

/* Ends with the outputs, "second" may be NULL, and sets the inputs. */
static clg_session *finish(clg_builder *g, const char *second, clg_value *x, clg_value *gradient)
{
    const float rate = 0.5F;
    clg_session *s;
    assert_ok(clg_builder_output(g, "y"));
    if (second) assert_ok(clg_builder_output(g, second));
    s = build_session(context, g, NULL);
    assert_ok(clg_session_set_input(s, "x", x));
    assert_ok(clg_session_set_input(s, "g", gradient));
    assert_ok(sized_input(s, "rate", CLG_FLOAT32, 1, DIMS(1), &rate));
    return s;
}

static void make_numbers(float *x, float *g)
{
    for (int i = 0; i < N; i++) {
        x[i] = (float)(i % 17) - 8;
        g[i] = (float)(i % 5) - 2;
    }
}

/* m = m / 2 + g; x = x - rate * m: two values that each run updates from both. */
TEST(in_place__values_that_runs_update)
{
    float x[N], g[N], m[N] = {0}, got[N];
    make_numbers(x, g);
    clg_value *vx = on_device(N, x), *vg = on_device(N, g), *vm = on_device(N, m);
    clg_builder *b = start();
    assert_ok(clg_builder_input(b, "m", CLG_FLOAT32, 1, DIMS(-1), NULL));
    add(b, "Mul", "m", "rate", "half");
    add(b, "Add", "half", "g", "m2");
    add(b, "Mul", "m2", "rate", "by");
    add(b, "Sub", "x", "by", "y");
    clg_session *s = finish(b, "m2", vx, vg);
    assert_ok(clg_session_set_input(s, "m", vm));
    assert_ok(clg_session_bind_output(s, "y", vx));
    assert_ok(clg_session_bind_output(s, "m2", vm));
    for (int run = 0; run < 5; run++) {
        assert_ok(clg_session_run(s));
        for (int i = 0; i < N; i++) {
            m[i] = m[i] * 0.5F + g[i];
            x[i] = x[i] - m[i] * 0.5F;
        }
    }
    assert_ok(clg_value_read(vx, got, sizeof got));
    for (int i = 0; i < N; i++) assert_true(got[i] == x[i]);
    assert_ok(clg_value_read(vm, got, sizeof got));
    for (int i = 0; i < N; i++) assert_true(got[i] == m[i]);
    clg_session_free(s);
    clg_value_free(vx);
    clg_value_free(vg);
    clg_value_free(vm);
}

/* Runs y, of which x's memory is refused; other memory is not. */
static void expect_refused(clg_session *s, clg_value *x, int64_t n)
{
    clg_value *other;
    assert_ok(clg_session_bind_output(s, "y", x));
    assert_error(clg_session_run(s), CLG_ERROR_INVALID_ARGUMENT,
                 "output 'y' is bound to memory that 'x' uses");
    assert_non_null(strstr(clg_last_hint(), "clg_session_link"));
    assert_ok(clg_value_create_device(context, CLG_FLOAT32, 1, &n, &other));
    assert_ok(clg_session_bind_output(s, "y", other));
    assert_ok(clg_session_run(s));
    clg_value_free(other);
    clg_session_free(s);
}

TEST(in_place__not_where_another_kernel_reads_the_input)
{
    float x[N], g[N];
    make_numbers(x, g);
    clg_value *vx = on_device(N, x), *vg = on_device(N, g);
    clg_builder *b = start();
    add(b, "Sub", "x", "g", "y");
    add(b, "ReduceSumSquare", "x", NULL, "z");
    expect_refused(finish(b, "z", vx, vg), vx, N);
    clg_value_free(vx);
    clg_value_free(vg);
}

TEST(in_place__not_where_another_output_is_the_input)
{
    float x[N], g[N];
    make_numbers(x, g);
    clg_value *vx = on_device(N, x), *vg = on_device(N, g);
    clg_builder *b = start();
    add(b, "Sub", "x", "g", "y");
    add(b, "Identity", "x", NULL, "z");
    expect_refused(finish(b, "z", vx, vg), vx, N);
    clg_value_free(vx);
    clg_value_free(vg);
}

TEST(in_place__not_where_elements_move)
{
    float x[N], g[N];
    make_numbers(x, g);
    clg_value *vx = on_device(N, x), *vg = on_device(N, g);
    clg_builder *b = start();
    const int64_t start_at = -1, end = -N - 1, axis = 0, step = -1;
    assert_ok(sized_constant(b, "from", CLG_INT64, 1, DIMS(1), &start_at));
    assert_ok(sized_constant(b, "to", CLG_INT64, 1, DIMS(1), &end));
    assert_ok(sized_constant(b, "axes", CLG_INT64, 1, DIMS(1), &axis));
    assert_ok(sized_constant(b, "steps", CLG_INT64, 1, DIMS(1), &step));
    assert_ok(clg_builder_node(b, "", "Slice", NULL, 5, NAMES("x", "from", "to", "axes", "steps"),
                               1, NAMES("reversed")));
    add(b, "Sub", "reversed", "g", "y");
    expect_refused(finish(b, NULL, vx, vg), vx, N);
    clg_value_free(vx);
    clg_value_free(vg);
}

/* Values that share a part of their memory only. */
TEST(in_place__not_on_a_part)
{
    float x[N], g[N];
    cl_mem memory;
    size_t offset;
    make_numbers(x, g);
    clg_value *vx = on_device(N, x), *vg = on_device(N, g), *first, *last;
    assert_ok(clg_value_opencl(vx, &memory, &offset));
    assert_ok(clg_value_create_opencl(context, memory, 0, CLG_FLOAT32, 1, DIMS(N - 1), &first));
    assert_ok(clg_value_create_opencl(context, memory, 4, CLG_FLOAT32, 1, DIMS(N - 1), &last));
    clg_builder *b = start();
    add(b, "Neg", "x", NULL, "y");
    expect_refused(finish(b, NULL, first, vg), last, N - 1);
    clg_value_free(first);
    clg_value_free(last);
    clg_value_free(vx);
    clg_value_free(vg);
}

/* The kernel reads both inputs at the index that it writes. */
TEST(in_place__on_two_inputs_that_are_one)
{
    float x[N], g[N];
    make_numbers(x, g);
    clg_value *vx = on_device(N, x);
    clg_builder *b = start();
    add(b, "Sub", "x", "g", "y");
    clg_session *s = finish(b, NULL, vx, vx);
    assert_ok(clg_session_bind_output(s, "y", vx));
    assert_ok(clg_session_run(s));
    assert_ok(clg_value_read(vx, x, sizeof x));
    for (int i = 0; i < N; i++) assert_true(x[i] == 0);
    clg_session_free(s);
    clg_value_free(vx);
}
