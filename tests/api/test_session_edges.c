/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests sessions whose inputs, outputs and their memory overlap or are linked in unusual ways. Each
 * case must give right results or an error, never stale data or those of another value.
 */
/* ctest: label quick */
#include "support/fixtures/sized_data.h"
#include "support/unit.h"

#include "support/fixtures/build_session.h"
#include "support/fixtures/pocl_context.h"
#include "support/literals.h"

#include <clgraph/inspect.h>

#include <pthread.h>
#include <string.h>

/* Creates next = state + x, twice = next + next. x: [declared], state: [4]. */
static clg_session *adder(int64_t declared)
{
    clg_builder *g = start_graph();
    assert_ok(clg_builder_input(g, "x", CLG_FLOAT32, 1, &declared, NULL));
    assert_ok(clg_builder_input(g, "state", CLG_FLOAT32, 1, DIMS(4), NULL));
    assert_ok(clg_builder_node(g, NULL, "Add", "add", 2, NAMES("state", "x"), 1, NAMES("next")));
    assert_ok(
        clg_builder_node(g, NULL, "Add", "twice", 2, NAMES("next", "next"), 1, NAMES("twice")));
    assert_ok(clg_builder_output(g, "next"));
    assert_ok(clg_builder_output(g, "twice"));
    return build_session(context, g, NULL);
}

static void set(clg_session *s, const char *name, const float *x, int64_t n)
{
    assert_ok(sized_input(s, name, CLG_FLOAT32, 1, &n, x));
}

static void expect(clg_session *s, const char *name, float a, float b, float c, float d)
{
    const float want[4] = {a, b, c, d};
    float got[4];
    assert_ok(clg_session_get_output_data(s, name, got, sizeof got));
    for (int i = 0; i < 4; i++) assert_true(got[i] == want[i]);
}

static const float ones[4] = {1, 1, 1, 1}, ramp[4] = {1, 2, 3, 4};

static clg_session *set_adder(void)
{
    clg_session *s = adder(4);
    set(s, "x", ramp, 4);
    set(s, "state", ones, 4);
    return s;
}

static clg_session *linked_adder(void)
{
    clg_session *s = set_adder();
    assert_ok(clg_session_link(s, "next", "state"));
    return s;
}

/* ---- links ----------------------------------------------------------------------------------- */

TEST(link__an_output_is_still_there_after_its_input_is_set_again)
{
    clg_session *s = linked_adder();
    for (int i = 0; i < 3; i++) assert_ok(clg_session_run(s));
    set(s, "state", ramp, 4);
    expect(s, "next", 4, 7, 10, 13);
    assert_ok(clg_session_run(s));
    expect(s, "next", 2, 4, 6, 8);
    assert_ok(clg_session_run(s));
    expect(s, "next", 3, 6, 9, 12);
    expect(s, "twice", 6, 12, 18, 24);
    clg_session_free(s);
}

TEST(link__an_output_is_still_there_after_unlinking)
{
    clg_session *s = linked_adder();
    assert_ok(clg_session_run(s));
    assert_ok(clg_session_run(s));
    assert_ok(clg_session_link(s, NULL, "state"));
    expect(s, "next", 3, 5, 7, 9);
    assert_error(clg_session_run(s), CLG_ERROR_NOT_FOUND, "'state' is not set");
    clg_session_free(s);
}

TEST(link__a_mapped_input_takes_over)
{
    void *mapped;
    clg_session *s = linked_adder();
    assert_ok(clg_session_run(s));
    assert_ok(clg_session_map_input(s, "state", 1, DIMS(4), &mapped));
    memcpy(mapped, ramp, sizeof ramp);
    expect(s, "next", 2, 3, 4, 5);
    assert_ok(clg_session_run(s));
    expect(s, "next", 2, 4, 6, 8);
    clg_session_free(s);
}

TEST(link__a_shape_that_the_input_cannot_have_is_reported)
{
    clg_session *s = adder(-1); /* x: [1] or [4]; state: [4] */
    clg_builder *g = start_graph();
    clg_session *growing;
    assert_ok(clg_builder_input(g, "x", CLG_FLOAT32, 1, DIMS(4), NULL));
    assert_ok(clg_builder_node(g, NULL, "Concat", "join", 2, NAMES("x", "x"), 1, NAMES("y")));
    assert_ok(clg_builder_attribute_int(g, "axis", 0));
    assert_ok(clg_builder_output(g, "y"));
    growing = build_session(context, g, NULL);
    set(growing, "x", ramp, 4);
    assert_ok(clg_session_link(growing, "y", "x"));
    assert_ok(clg_session_run(growing));
    assert_error(clg_session_run(growing), CLG_ERROR_SHAPE, "'x' has shape [4]");
    clg_session_free(growing);
    set(s, "x", ones, 1);
    set(s, "state", ramp, 4);
    assert_ok(clg_session_run(s));
    expect(s, "next", 2, 3, 4, 5);
    clg_session_free(s);
}

/* ---- memory of inputs and outputs ------------------------------------------------------------ */

TEST(memory__an_output_may_be_the_next_input)
{
    clg_session *s = set_adder();
    assert_ok(clg_session_run(s));
    for (int i = 0; i < 3; i++) {
        clg_value *next;
        assert_ok(clg_session_get_output_device(s, "next", &next));
        assert_ok(clg_session_set_input(s, "state", next));
        clg_value_free(next);
        assert_ok(clg_session_run(s));
    }
    expect(s, "next", 5, 9, 13, 17);
    expect(s, "twice", 10, 18, 26, 34);
    clg_session_free(s);
}

/* test_in_place has outputs over inputs. */
TEST(memory__an_output_over_another_is_refused)
{
    clg_session *s = adder(4);
    clg_value *v;
    assert_ok(clg_value_create_device(context, CLG_FLOAT32, 1, DIMS(4), &v));
    set(s, "x", ramp, 4);
    set(s, "state", ones, 4);
    assert_ok(clg_session_bind_output(s, "next", v));
    assert_ok(clg_session_bind_output(s, "twice", v));
    assert_error(clg_session_run(s), CLG_ERROR_INVALID_ARGUMENT, "'next'");
    assert_ok(clg_session_bind_output(s, "twice", NULL));
    assert_ok(clg_session_run(s));
    expect(s, "next", 2, 3, 4, 5);
    clg_value_free(v);
    clg_session_free(s);
}

/* ---- bound outputs --------------------------------------------------------------------------- */

/* Creates y = Shape(x), computed by the host while planning, and d = -x. */
static clg_session *shape_session(void)
{
    clg_builder *g = start_graph();
    assert_ok(clg_builder_input(g, "x", CLG_FLOAT32, 2, DIMS(-1, -1), NULL));
    assert_ok(clg_builder_node(g, NULL, "Shape", "shape", 1, NAMES("x"), 1, NAMES("y")));
    assert_ok(clg_builder_node(g, NULL, "Neg", "neg", 1, NAMES("x"), 1, NAMES("d")));
    assert_ok(clg_builder_output(g, "y"));
    assert_ok(clg_builder_output(g, "d"));
    return build_session(context, g, NULL);
}

TEST(bound__contents_known_at_planning_arrive_everywhere)
{
    clg_session *s = shape_session();
    clg_value *device, *host, *back;
    int64_t numbers[2] = {0};
    assert_ok(sized_input(s, "x", CLG_FLOAT32, 2, DIMS(2, 2), ramp));
    assert_ok(clg_value_create_device(context, CLG_INT64, 1, DIMS(2), &device));
    assert_ok(clg_session_bind_output(s, "y", device));
    assert_ok(clg_session_run(s));
    assert_ok(clg_value_read(device, numbers, sizeof numbers));
    assert_true(numbers[0] == 2 && numbers[1] == 2);
    assert_ok(sized_wrap(CLG_INT64, 1, DIMS(2), numbers, NULL, NULL, &host));
    memset(numbers, 0, sizeof numbers);
    assert_ok(clg_session_bind_output(s, "y", host));
    assert_ok(clg_session_run(s));
    assert_true(numbers[0] == 2 && numbers[1] == 2);
    assert_ok(clg_session_bind_output(s, "y", NULL));
    assert_ok(clg_session_run(s));
    memset(numbers, 0, sizeof numbers);
    assert_ok(clg_session_get_output_device(s, "y", &back));
    assert_ok(clg_value_read(back, numbers, sizeof numbers));
    assert_true(numbers[0] == 2 && numbers[1] == 2);
    clg_value_free(back);
    clg_value_free(device);
    clg_value_free(host);
    clg_session_free(s);
}

TEST(bound__a_value_of_another_shape_is_refused)
{
    clg_session *s = shape_session();
    clg_value *small, *transposed, *other;
    assert_ok(sized_input(s, "x", CLG_FLOAT32, 2, DIMS(1, 4), ramp));
    assert_ok(clg_value_create(CLG_INT64, 1, DIMS(1), &small));
    assert_ok(clg_value_create(CLG_FLOAT32, 2, DIMS(4, 1), &transposed));
    assert_ok(clg_value_create(CLG_INT32, 2, DIMS(1, 4), &other));
    assert_ok(clg_session_bind_output(s, "y", small));
    assert_error(clg_session_run(s), CLG_ERROR_SHAPE, "int64[1]");
    assert_ok(clg_session_bind_output(s, "y", NULL));
    assert_ok(clg_session_bind_output(s, "d", transposed));
    assert_error(clg_session_run(s), CLG_ERROR_SHAPE, "float32[4,1]");
    assert_ok(clg_session_bind_output(s, "d", other));
    assert_error(clg_session_run(s), CLG_ERROR_SHAPE, "int32[1,4]");
    assert_ok(clg_session_bind_output(s, "d", NULL));
    assert_ok(clg_session_run(s));
    expect(s, "d", -1, -2, -3, -4);
    clg_value_free(small);
    clg_value_free(transposed);
    clg_value_free(other);
    clg_session_free(s);
}

TEST(outputs__of_every_origin)
{
    clg_builder *g = start_graph();
    clg_session *s;
    float view[4];
    assert_ok(clg_builder_input(g, "x", CLG_FLOAT32, 1, DIMS(4), NULL));
    assert_ok(sized_constant(g, "c", CLG_FLOAT32, 1, DIMS(4), ramp));
    assert_ok(sized_constant(g, "flat", CLG_INT64, 1, DIMS(2), DIMS(2, 2)));
    assert_ok(clg_builder_node(g, NULL, "Reshape", "view", 2, NAMES("x", "flat"), 1, NAMES("v")));
    assert_ok(clg_builder_node(g, NULL, "Transpose", "turn", 1, NAMES("v"), 1, NAMES("t")));
    assert_ok(clg_builder_node(g, NULL, "Identity", "same", 1, NAMES("x"), 1, NAMES("i")));
    assert_ok(clg_builder_output(g, "c"));
    assert_ok(clg_builder_output(g, "x"));
    assert_ok(clg_builder_output(g, "v"));
    assert_ok(clg_builder_output(g, "t"));
    assert_ok(clg_builder_output(g, "i"));
    s = build_session(context, g, NULL);
    set(s, "x", ramp, 4);
    assert_ok(clg_session_run(s));
    expect(s, "c", 1, 2, 3, 4);
    expect(s, "x", 1, 2, 3, 4);
    expect(s, "v", 1, 2, 3, 4);
    expect(s, "t", 1, 3, 2, 4);
    expect(s, "i", 1, 2, 3, 4);
    for (size_t k = 0; k < 5; k++) {
        clg_value *d;
        assert_ok(clg_session_get_output_device(s, NAMES("c", "x", "v", "t", "i")[k], &d));
        assert_ok(clg_value_read(d, view, sizeof view));
        assert_true(view[0] == 1 && view[3] == 4);
        clg_value_free(d);
    }
    clg_session_free(s);
}

/* ---- shapes ---------------------------------------------------------------------------------- */

TEST(shapes__the_last_word_counts)
{
    clg_session *s = adder(-1);
    clg_memory_estimate memory = CLG_MEMORY_ESTIMATE_INIT;
    set(s, "x", ramp, 4);
    set(s, "state", ones, 4);
    assert_ok(clg_session_memory(s, &memory));
    assert_int_equal(memory.io_bytes, 4 * 4 * sizeof(float));
    assert_ok(clg_session_set_input_shape(s, "x", 1, DIMS(1)));
    assert_ok(clg_session_memory(s, &memory));
    assert_int_equal(memory.io_bytes, (1 + 3 * 4) * sizeof(float));
    assert_ok(clg_session_run(s));
    expect(s, "next", 2, 3, 4, 5);
    assert_error(clg_session_set_input_shape(s, "x", 1, DIMS(-1)), CLG_ERROR_INVALID_ARGUMENT,
                 "negative");
    clg_session_free(s);
}

/* ---- kept values ----------------------------------------------------------------------------- */

TEST(keep__links_and_bound_outputs_stay)
{
    clg_session *s = adder(4);
    float twice[4];
    clg_value *bound;
    assert_ok(sized_wrap(CLG_FLOAT32, 1, DIMS(4), twice, NULL, NULL, &bound));
    set(s, "x", ramp, 4);
    set(s, "state", ones, 4);
    assert_ok(clg_session_link(s, "next", "state"));
    assert_ok(clg_session_bind_output(s, "twice", bound));
    assert_ok(clg_session_run(s));
    assert_ok(clg_session_keep_values(s, NULL, 0));
    assert_ok(clg_session_run(s));
    expect(s, "next", 3, 5, 7, 9);
    assert_true(twice[0] == 6 && twice[3] == 18);
    assert_ok(clg_session_keep_values(s, NAMES(""), 0));
    assert_ok(clg_session_run(s));
    expect(s, "next", 4, 7, 10, 13);
    assert_true(twice[0] == 8 && twice[3] == 26);
    clg_value_free(bound);
    clg_session_free(s);
}

/* The option to keep all values omits sequences; those requested by name are kept. */
TEST(keep__of_all_values_sequences_are_left_out)
{
    clg_builder *b = start_graph();
    clg_session *s;
    clg_value *part;
    assert_ok(clg_builder_input(b, "x", CLG_FLOAT32, 1, DIMS(-1), NULL));
    assert_ok(clg_builder_node(b, NULL, "Neg", "neg", 1, NAMES("x"), 1, NAMES("n")));
    assert_ok(clg_builder_node(b, NULL, "SequenceConstruct", "join", 2, NAMES("x", "n"), 1,
                               NAMES("parts")));
    assert_ok(
        clg_builder_node(b, NULL, "ConcatFromSequence", "cat", 1, NAMES("parts"), 1, NAMES("y")));
    assert_ok(clg_builder_attribute_int(b, "axis", 0));
    assert_ok(clg_builder_output(b, "y"));
    s = build_session(context, b, NULL);
    assert_ok(clg_session_keep_values(s, NULL, 0));
    set(s, "x", ramp, 2);
    assert_ok(clg_session_run(s));
    expect(s, "y", 1, 2, -1, -2);
    assert_error(clg_session_get_output(s, "parts", &part), CLG_ERROR_NOT_FOUND, "parts");
    assert_ok(clg_session_get_output(s, "n", &part));
    assert_true(((float *)clg_value_data(part))[1] == -2);
    clg_value_free(part);
    assert_ok(clg_session_keep_values(s, NAMES("parts"), 1));
    assert_ok(clg_session_run(s));
    assert_ok(clg_session_get_output(s, "parts", &part));
    assert_int_equal(clg_value_n_items(part), 2);
    assert_true(((float *)clg_value_data(clg_value_item(part, 1)))[1] == -2);
    clg_value_free(part);
    clg_session_free(s);
}

/* ---- waiting --------------------------------------------------------------------------------- */

typedef struct waiter {
    clg_session *session;
    clg_status status;
} waiter;

static void *wait_too(void *argument)
{
    waiter *w = argument;
    w->status = clg_session_wait(w->session);
    return NULL;
}

TEST(wait__two_threads_that_wait_both_come_back)
{
    clg_session *s = adder(4);
    set(s, "state", ones, 4);
    for (int i = 0; i < 10; i++) {
        pthread_t other;
        waiter w = {.session = s};
        const float number = (float)i, x[4] = {number, 2, 3, 4};
        set(s, "x", x, 4);
        assert_ok(clg_session_run_async(s));
        assert_int_equal(pthread_create(&other, NULL, wait_too, &w), 0);
        const clg_status own = clg_session_wait(s);
        assert_int_equal(pthread_join(other, NULL), 0);
        assert_true(own == CLG_OK ||
                    w.status == CLG_OK); /* the later one may have no run to wait for */
        assert_true(own == CLG_OK || own == CLG_ERROR_INVALID_ARGUMENT);
        assert_true(w.status == CLG_OK || w.status == CLG_ERROR_INVALID_ARGUMENT);
        expect(s, "next", number + 1, 3, 4, 5);
    }
    clg_session_free(s);
}

TEST_GROUP(open_context, close_context)
