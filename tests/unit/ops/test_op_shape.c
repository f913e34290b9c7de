/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests operators of shape arithmetic (Shape, Size, Constant and others) without a device:
 * inference, evaluation on the host, lowering.
 */
#include "support/cases/op_case.h"

#include <string.h>

/* ---- Shape, Size ----------------------------------------------------------------------------- */

TEST(shape__gives_dimensions)
{
    op_case k;
    op_case_start(&k, "Shape", 13, 1, 1);
    op_case_dims(&k, 0, CLG_FLOAT32, LIST(2, 0, 5));
    assert_ok(op_case_infer(&k));
    assert_int_equal(k.outputs[0].dtype, CLG_INT64);
    op_case_expect_content(&k, LIST(2, 0, 5));
    op_case_dims(&k, 0, CLG_BOOL, 0, NULL);
    assert_ok(op_case_infer(&k));
    op_case_expect_content(&k, 0, NULL);
    op_case_dims(&k, 0, CLG_FLOAT32, LIST(2, U));
    assert_ok(op_case_infer(&k));
    op_case_expect_dims(&k, LIST(2));
    assert_null(k.outputs[0].known);
    k.inputs[0].dims = shape_unknown();
    assert_ok(op_case_infer(&k));
    op_case_expect_dims(&k, LIST(U));
    op_case_end(&k);
}

TEST(shape__start_and_end_are_clamped)
{
    const struct {
        int64_t start, end;
        int n;
        int64_t dims[4];
    } cases[] = {{0, 4, 4, {2, 3, 4, 5}}, {1, 3, 2, {3, 4}}, {-2, 100, 2, {4, 5}},
                 {-100, -3, 1, {2}},      {3, 1, 0, {0}},    {4, 9, 0, {0}}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        op_case k;
        op_case_start(&k, "Shape", 15, 1, 1);
        assert_ok(node_set_int(k.graph, 0, "start", cases[i].start));
        assert_ok(node_set_int(k.graph, 0, "end", cases[i].end));
        op_case_dims(&k, 0, CLG_FLOAT32, LIST(2, 3, 4, 5));
        assert_ok(op_case_infer(&k));
        op_case_expect_content(&k, cases[i].n, cases[i].dims);
        op_case_end(&k);
    }
    op_case k;
    op_case_start(&k, "Shape", 15, 1, 1);
    assert_ok(node_set_int(k.graph, 0, "start", INT64_MIN));
    assert_ok(node_set_int(k.graph, 0, "end", 1));
    op_case_dims(&k, 0, CLG_FLOAT32, LIST(2, U));
    assert_ok(op_case_infer(&k)); /* the unknown dimension is outside of start..end */
    op_case_expect_content(&k, LIST(2));
    op_case_end(&k);
}

TEST(size__counts_elements)
{
    op_case k;
    op_case_start(&k, "Size", 13, 1, 1);
    op_case_dims(&k, 0, CLG_FLOAT32, LIST(2, 3, 5));
    assert_ok(op_case_infer(&k));
    op_case_expect_content(&k, LIST(30));
    op_case_expect_dims(&k, 0, NULL);
    op_case_dims(&k, 0, CLG_FLOAT32, LIST(2, U));
    assert_ok(op_case_infer(&k));
    assert_null(k.outputs[0].known);
    op_case_end(&k);
}

/* ---- Constant, ConstantOfShape --------------------------------------------------------------- */

TEST(constant__has_many_forms)
{
    const char *const words[2] = {"one", "two"};
    graph_attribute forms[] = {
        {.name = "value_int", .type = ATTRIBUTE_INT, .as.i = 7},
        {.name = "value_ints", .type = ATTRIBUTE_INTS, .count = 2, .as.ints = (int64_t[]){7, -8}},
        {.name = "value_float", .type = ATTRIBUTE_FLOAT, .as.f = 7},
        {.name = "value_floats",
         .type = ATTRIBUTE_FLOATS,
         .count = 2,
         .as.floats = (float[]){7, -8}},
        {.name = "value_string", .type = ATTRIBUTE_STRING, .count = 3, .as.s = "one"},
        {.name = "value_strings", .type = ATTRIBUTE_STRINGS, .count = 2, .as.strings = words},
        {.name = "value_ints", .type = ATTRIBUTE_INTS, .count = 0}};
    const clg_dtype dtypes[] = {CLG_INT64,  CLG_INT64,  CLG_FLOAT32, CLG_FLOAT32,
                                CLG_STRING, CLG_STRING, CLG_INT64};
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        op_case k;
        op_case_start(&k, "Constant", 13, 0, 1);
        assert_ok(node_add_attribute(k.graph, 0, &forms[i]));
        assert_ok(op_case_infer(&k));
        assert_int_equal(k.outputs[0].dtype, dtypes[i]);
        const tensor *t = k.outputs[0].known;
        assert_int_equal(t->n_elements, i == 6 ? 0 : forms[i].count > 1 && i != 4 ? 2 : 1);
        assert_int_equal(t->dims.rank, i % 2 || i == 6 ? 1 : 0);
        if (i < 4) assert_int_equal(tensor_get_int(t, 0), 7);
        if (i == 1 || i == 3) assert_int_equal(tensor_get_int(t, 1), -8);
        if (i == 4 || i == 5) assert_string_equal(tensor_get_string(t, 0), "one");
        if (i == 5) assert_string_equal(tensor_get_string(t, 1), "two");
        op_case_end(&k);
    }
}

/* Checks that the output shares the attribute's tensor, however large it is. */
TEST(constant__shares_its_tensor)
{
    op_case k;
    tensor *t;
    shape large = {.rank = 1, .dims = {OP_MAX_KNOWN_ELEMENTS + 1}};
    op_case_start(&k, "Constant", 9, 0, 1);
    assert_ok(tensor_create(CLG_UINT8, &large, &t));
    assert_ok(node_set_tensor(k.graph, 0, "value", t));
    assert_ok(op_case_infer(&k));
    assert_ptr_equal(k.outputs[0].known, t);
    tensor_free(t);
    op_case_end(&k);
}

TEST(constant__has_one_value)
{
    op_case k;
    op_case_start(&k, "Constant", 13, 0, 1);
    assert_ok(node_set_int(k.graph, 0, "value_int", 1));
    assert_ok(node_set_float(k.graph, 0, "value_float", 1));
    assert_error(op_case_infer(&k), CLG_ERROR_INVALID_MODEL, "must have one value, not 2");
    op_case_end(&k);
    op_case_start(&k, "Constant", 11, 0, 1);
    assert_ok(node_set_int(k.graph, 0, "value_int", 1)); /* since opset 12 */
    assert_error(op_case_infer(&k), CLG_ERROR_UNSUPPORTED_ATTRIBUTE, "'value_int'");
    op_case_end(&k);
}

TEST(fill__of_zeros_and_of_values)
{
    op_case k;
    tensor *seven;
    shape one = {.rank = 1, .dims = {1}};
    op_case_start(&k, "ConstantOfShape", 9, 1, 1);
    op_case_content(&k, 0, CLG_INT64, LIST(2, 3));
    assert_ok(op_case_infer(&k));
    assert_int_equal(k.outputs[0].dtype, CLG_FLOAT32);
    op_case_expect_dims(&k, LIST(2, 3));
    op_case_expect_content(&k, LIST(0, 0, 0, 0, 0, 0));
    assert_ok(tensor_create(CLG_INT16, &one, &seven));
    tensor_set_int(seven, 0, 7);
    assert_ok(node_set_tensor(k.graph, 0, "value", seven));
    tensor_free(seven);
    assert_ok(op_case_infer(&k));
    assert_int_equal(k.outputs[0].dtype, CLG_INT16);
    op_case_expect_content(&k, LIST(7, 7, 7, 7, 7, 7));
    op_case_end(&k);
}

TEST(fill__shapes)
{
    op_case k;
    op_case_start(&k, "ConstantOfShape", 9, 1, 1);
    op_case_content(&k, 0, CLG_INT64, 0, NULL);
    assert_ok(op_case_infer(&k)); /* no axes: a scalar */
    op_case_expect_dims(&k, 0, NULL);
    op_case_end(&k);
    op_case_start(&k, "ConstantOfShape", 9, 1, 1);
    op_case_dims(&k, 0, CLG_INT64, LIST(3)); /* three axes of unknown length */
    assert_ok(op_case_infer(&k));
    assert_int_equal(k.needs, 1);
    op_case_expect_dims(&k, LIST(U, U, U));
    op_case_dims(&k, 0, CLG_INT64, LIST(9));
    assert_error(op_case_infer(&k), CLG_ERROR_SHAPE, "9 axes");
    op_case_content(&k, 0, CLG_INT64, LIST(4, -1));
    assert_error(op_case_infer(&k), CLG_ERROR_SHAPE, "a dimension of -1");
    op_case_end(&k);
    tensor *two;
    shape pair = {.rank = 1, .dims = {2}};
    op_case_start(&k, "ConstantOfShape", 9, 1, 1);
    assert_ok(tensor_create(CLG_INT16, &pair, &two));
    assert_ok(node_set_tensor(k.graph, 0, "value", two));
    tensor_free(two);
    op_case_content(&k, 0, CLG_INT64, LIST(4));
    assert_error(op_case_infer(&k), CLG_ERROR_INVALID_MODEL, "one number as its value, not 2");
    op_case_end(&k);
}

TEST(fill__lowers_to_a_fill)
{
    op_case k;
    arena memory = {0};
    lower_context c;
    tensor *seven;
    shape one = {.rank = 0};
    op_case_start(&k, "ConstantOfShape", 9, 1, 1);
    assert_ok(tensor_create(CLG_INT16, &one, &seven));
    tensor_set_int(seven, 0, 7);
    assert_ok(node_set_tensor(k.graph, 0, "value", seven));
    tensor_free(seven);
    op_case_content(&k, 0, CLG_INT64, LIST(100, 100));
    assert_ok(op_case_infer(&k));
    assert_null(k.outputs[0].known);
    lower_operand inputs[1] = {op_case_operand(&k.inputs[0])};
    op_case_lower(&k, inputs, &memory, &c);
    const step *s = c.build.candidates->steps;
    assert_int_equal(s->kind, STEP_FILL);
    assert_int_equal(s->size_bytes, 20000);
    assert_int_equal(s->pattern_bytes, 2);
    assert_memory_equal(s->pattern, "\7\0", 2);
    arena_deinit(&memory);
    op_case_end(&k);
}
