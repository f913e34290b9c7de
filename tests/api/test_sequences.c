/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests sequences and optionals in the public interface: their creation, use as inputs and outputs,
 * and the rejection of invalid ones.
 */
#include "support/unit.h"

#include "support/fixtures/build_session.h"
#include "support/fixtures/onnx_writer.h"
#include "support/fixtures/pocl_context.h"
#include "support/literals.h"

#include <clgraph/inspect.h>

#include <string.h>

/* ---- values ---------------------------------------------------------------------------------- */

static clg_value *list_of(size_t n, float first)
{
    clg_value *v;
    const int64_t dims = (int64_t)n;
    assert_ok(clg_value_create(CLG_FLOAT32, 1, &dims, &v));
    for (size_t i = 0; i < n; i++) ((float *)clg_value_data(v))[i] = first + (float)i;
    return v;
}

/* Creates a sequence; takes ownership of the items. */
static clg_value *sequence_of(size_t n, clg_value **items)
{
    clg_value *v;
    assert_ok(clg_value_create_sequence(CLG_FLOAT32, n, items, &v));
    for (size_t i = 0; i < n; i++) clg_value_free(items[i]);
    return v;
}

static void expect_list(const clg_value *v, size_t n, float first)
{
    assert_int_equal(clg_value_get_kind(v), CLG_VALUE_TENSOR);
    assert_int_equal(clg_value_n_elements(v), n);
    for (size_t i = 0; i < n; i++)
        assert_true(((const float *)clg_value_data(v))[i] == first + (float)i);
}

TEST(values__hold_what_they_were_made_of)
{
    clg_value *sequence, *optional, *empty, *other, *list = list_of(3, 1);
    assert_ok(clg_value_create_sequence(CLG_DTYPE_NONE, 2, (clg_value *[]){list, list}, &sequence));
    assert_ok(clg_value_create_optional(CLG_DTYPE_NONE, sequence, &optional));
    assert_ok(clg_value_create_optional(CLG_INT32, NULL, &empty));
    assert_int_equal(clg_value_get_kind(sequence), CLG_VALUE_SEQUENCE);
    assert_int_equal(clg_value_get_kind(optional), CLG_VALUE_OPTIONAL);
    assert_int_equal(clg_value_dtype(optional), CLG_FLOAT32);
    assert_int_equal(clg_value_dtype(empty), CLG_INT32);
    assert_int_equal(clg_value_n_items(sequence), 2);
    assert_int_equal(clg_value_n_items(optional), 1);
    assert_int_equal(clg_value_n_items(empty), 0);
    assert_int_equal(clg_value_n_items(list), 0);
    assert_int_equal(clg_value_n_items(NULL), 0);
    assert_ptr_equal(clg_value_item(sequence, 1), list);
    assert_ptr_equal(clg_value_item(optional, 0), sequence);
    assert_null(clg_value_item(sequence, 2));
    assert_error(clg_value_create_sequence(CLG_INT32, 1, &list, &other), CLG_ERROR_INVALID_ARGUMENT,
                 "item 0 is of float32");
    assert_error(clg_value_create_sequence(CLG_FLOAT32, 1, (clg_value *[]){NULL}, &other),
                 CLG_ERROR_INVALID_ARGUMENT, "item 0 is NULL");
    clg_value_free(list);
    clg_value_free(sequence);
    clg_value_free(empty);
    clg_value_free(optional);
}

TEST(values__nest_only_so_deep)
{
    clg_value *v = list_of(1, 0), *outer;
    clg_status status = CLG_OK;
    int depth = 0;
    while (status == CLG_OK && depth < 100) {
        status = clg_value_create_sequence(CLG_FLOAT32, 1, &v, &outer);
        if (status != CLG_OK) break;
        clg_value_free(v);
        v = outer;
        depth++;
    }
    assert_int_equal(depth, 64);
    clg_value_free(v);
}

/* ---- models ---------------------------------------------------------------------------------- */

/* Returns a ValueInfoProto of a sequence or optional of float tensors. */
static ow_bytes kind_info(const char *name, unsigned kind)
{
    return ow_info(name, ow_type_list(kind, ow_type_tensor(CLG_FLOAT32)));
}

/* Creates same = x, longer = x with -t appended, and n = the length of longer, where x is a
 * sequence and t a tensor. */
static clg_session *sequence_session(void)
{
    ow_model m = {.ir_version = 8, .opset = 16};
    ow_put_message(&m.graph, 11, kind_info("x", OW_SEQUENCE));
    ow_input(&m, "t", CLG_FLOAT32, 1, DIMS(-1), "N");
    ow_simple_node(&m, "Identity", "", "x", "same");
    ow_simple_node(&m, "Neg", "", "t", "less");
    ow_simple_node(&m, "SequenceInsert", "", "x,less", "longer");
    ow_simple_node(&m, "SequenceLength", "", "longer", "n");
    ow_put_message(&m.graph, 12, kind_info("same", OW_SEQUENCE));
    ow_put_message(&m.graph, 12, kind_info("longer", OW_SEQUENCE));
    ow_output(&m, "n", CLG_INT64);
    return open_model(context, &m);
}

static uint64_t plans_made(void)
{
    clg_counters counters = CLG_COUNTERS_INIT;
    assert_ok(clg_context_counters(context, &counters));
    return counters.plans_made;
}

static void run_sequence(clg_session *s, size_t n, float first)
{
    clg_value *items[4], *x, *t = list_of(5, -first), *got;
    int64_t count;
    for (size_t i = 0; i < n; i++) items[i] = list_of(i * 3 + 1, first + (float)i);
    x = sequence_of(n, items);
    assert_ok(clg_session_set_input(s, "x", x));
    assert_ok(clg_session_set_input(s, "t", t));
    assert_ok(clg_session_run(s));
    assert_ok(clg_session_get_output_data(s, "n", &count, sizeof count));
    assert_int_equal(count, n + 1);
    assert_ok(clg_session_get_output(s, "same", &got));
    assert_int_equal(clg_value_get_kind(got), CLG_VALUE_SEQUENCE);
    assert_int_equal(clg_value_n_items(got), n);
    for (size_t i = 0; i < n; i++) expect_list(clg_value_item(got, i), i * 3 + 1, first + (float)i);
    clg_value_free(got);
    assert_ok(clg_session_get_output(s, "longer", &got));
    assert_int_equal(clg_value_n_items(got), n + 1);
    for (size_t i = 0; i < n; i++) expect_list(clg_value_item(got, i), i * 3 + 1, first + (float)i);
    const clg_value *last = clg_value_item(got, n);
    for (int i = 0; i < 5; i++)
        assert_true(((const float *)clg_value_data(last))[i] == first - (float)i);
    clg_value_free(got);
    clg_value_free(x);
    clg_value_free(t);
}

TEST(session__takes_and_gives_sequences)
{
    clg_session *s = sequence_session();
    run_sequence(s, 2, 10);
    const uint64_t before = plans_made();
    run_sequence(s, 2, 30); /* the same shapes: the same plan */
    assert_int_equal(plans_made(), before);
    run_sequence(s, 4, 7);
    run_sequence(s, 0, 7);
    assert_true(plans_made() > before);
    run_sequence(s, 2, -3);
    clg_session_free(s);
}

TEST(session__takes_items_on_the_device)
{
    const float numbers[] = {3, 4, 5};
    clg_value *items[2], *x, *t = list_of(5, 0), *got;
    clg_session *s = sequence_session();
    items[0] = list_of(2, 8);
    assert_ok(clg_value_create_device(context, CLG_FLOAT32, 1, DIMS(3), &items[1]));
    assert_ok(clg_value_write(items[1], numbers, sizeof numbers));
    x = sequence_of(2, items);
    assert_ok(clg_session_set_input(s, "x", x));
    assert_ok(clg_session_set_input(s, "t", t));
    assert_ok(clg_session_run(s));
    assert_ok(clg_session_get_output(s, "same", &got));
    expect_list(clg_value_item(got, 0), 2, 8);
    expect_list(clg_value_item(got, 1), 3, 3);
    clg_value_free(got);
    clg_value_free(x);
    clg_value_free(t);
    clg_session_free(s);
}

TEST(session__refuses_what_does_not_fit)
{
    clg_session *s = sequence_session();
    clg_value *t = list_of(5, 0), *x = sequence_of(1, (clg_value *[]){list_of(2, 0)}), *ints, *got;
    void *mapped;
    assert_error(clg_session_set_input(s, "x", t), CLG_ERROR_INVALID_ARGUMENT, "takes a sequence");
    assert_error(clg_session_set_input(s, "t", x), CLG_ERROR_INVALID_ARGUMENT, "takes a tensor");
    clg_value *number;
    assert_ok(clg_value_create(CLG_INT32, 0, NULL, &number));
    assert_ok(clg_value_create_sequence(CLG_INT32, 1, &number, &ints));
    assert_error(clg_session_set_input(s, "x", ints), CLG_ERROR_UNSUPPORTED_DTYPE, "holds float32");
    assert_error(clg_session_map_input(s, "x", 1, DIMS(2), &mapped), CLG_ERROR_INVALID_ARGUMENT,
                 "cannot be mapped");
    assert_error(clg_session_set_input_shape(s, "x", 1, DIMS(2)), CLG_ERROR_INVALID_ARGUMENT,
                 "has no shape");
    assert_error(clg_session_link(s, "same", "x"), CLG_ERROR_INVALID_ARGUMENT, "cannot be linked");
    assert_ok(clg_session_set_input(s, "t", t));
    assert_error(clg_session_run(s), CLG_ERROR_NOT_FOUND, "'x' is not set");
    assert_ok(clg_session_set_input(s, "x", x));
    assert_ok(clg_session_bind_output(s, "same", t));
    assert_error(clg_session_run(s), CLG_ERROR_SHAPE, "is not a tensor");
    assert_ok(clg_session_bind_output(s, "same", NULL));
    assert_ok(clg_session_run(s));
    assert_error(clg_session_get_output_device(s, "same", &got), CLG_ERROR_UNSUPPORTED_DTYPE,
                 "is a sequence");
    clg_value_free(number);
    clg_value_free(ints);
    clg_value_free(t);
    clg_value_free(x);
    clg_session_free(s);
}

/* Checks outputs that need no kernel: a sequence of shapes, and an empty optional. */
TEST(session__gives_what_planning_knows)
{
    ow_model m = {.ir_version = 8, .opset = 16};
    clg_value *x = list_of(6, 0), *got;
    ow_input(&m, "x", CLG_FLOAT32, 1, DIMS(-1), "N");
    ow_simple_node(&m, "Shape", "", "x", "n");
    ow_simple_node(&m, "Add", "", "n,n", "twice");
    ow_simple_node(&m, "SequenceConstruct", "", "n,twice,n", "shapes");
    ow_simple_node(&m, "Optional", "", "", "nothing");
    ow_put_message(&m.graph, 12, kind_info("shapes", OW_SEQUENCE));
    ow_put_message(&m.graph, 12, kind_info("nothing", OW_OPTIONAL));
    clg_session *s = open_model(context, &m);
    assert_ok(clg_session_set_input(s, "x", x));
    for (int round = 0; round < 2; round++) {
        assert_ok(clg_session_run(s));
        assert_ok(clg_session_get_output(s, "shapes", &got));
        assert_int_equal(clg_value_n_items(got), 3);
        assert_true(clg_value_get_double(clg_value_item(got, 1), 0) == 12);
        assert_true(clg_value_get_double(clg_value_item(got, 2), 0) == 6);
        for (size_t i = 0; i < 3; i++) /* items are the caller's */
            *(int64_t *)clg_value_data(clg_value_item(got, i)) = 77;
        clg_value_free(got);
        assert_ok(clg_session_get_output(s, "nothing", &got));
        assert_int_equal(clg_value_get_kind(got), CLG_VALUE_OPTIONAL);
        assert_int_equal(clg_value_n_items(got), 0);
        clg_value_free(got);
    }
    clg_value_free(x);
    clg_session_free(s);
}

/* Creates a model with an optional input o. Output `has`: whether o has an element; output `got`:
 * the negated element, or 0. */
static clg_session *optional_session(void)
{
    ow_model m = {.ir_version = 8, .opset = 18}, then_ = {0}, else_ = {0};
    const float zero = 0;
    ow_bytes branch = ow_node("If", "", "has", "got");
    ow_simple_node(&then_, "OptionalGetElement", "", "o", "element");
    ow_simple_node(&then_, "Neg", "", "element", "negative");
    ow_output(&then_, "negative", CLG_FLOAT32);
    ow_initializer(&else_, ow_tensor_raw("zero", CLG_FLOAT32, 1, DIMS(1), &zero, sizeof zero));
    ow_simple_node(&else_, "Identity", "", "zero", "nothing");
    ow_output(&else_, "nothing", CLG_FLOAT32);
    ow_attribute_graph(&branch, "then_branch", then_.graph);
    ow_attribute_graph(&branch, "else_branch", else_.graph);
    ow_put_message(&m.graph, 11, kind_info("o", OW_OPTIONAL));
    ow_simple_node(&m, "OptionalHasElement", "", "o", "has");
    ow_add_node(&m, branch);
    ow_simple_node(&m, "Optional", "", "got", "wrapped");
    ow_output(&m, "has", CLG_BOOL);
    ow_output(&m, "got", CLG_FLOAT32);
    ow_put_message(&m.graph, 12, kind_info("wrapped", OW_OPTIONAL));
    return open_model(context, &m);
}

TEST(session__takes_and_gives_optionals)
{
    clg_session *s = optional_session();
    for (int filled = 0; filled < 3; filled++) {
        clg_value *list = list_of(1, 5), *o, *wrapped;
        uint8_t has;
        float got;
        const bool is_filled = filled % 2 != 0;
        assert_ok(clg_value_create_optional(CLG_FLOAT32, is_filled ? list : NULL, &o));
        assert_ok(clg_session_set_input(s, "o", o));
        assert_ok(clg_session_run(s));
        assert_ok(clg_session_get_output_data(s, "has", &has, sizeof has));
        assert_ok(clg_session_get_output_data(s, "got", &got, sizeof got));
        assert_int_equal(has, is_filled);
        assert_true(got == (is_filled ? -5 : 0));
        assert_ok(clg_session_get_output(s, "wrapped", &wrapped));
        assert_int_equal(clg_value_get_kind(wrapped), CLG_VALUE_OPTIONAL);
        expect_list(clg_value_item(wrapped, 0), 1, got);
        clg_value_free(wrapped);
        clg_value_free(list);
        clg_value_free(o);
    }
    clg_session_free(s);
}

TEST_GROUP(open_context, close_context)
