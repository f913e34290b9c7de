/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests operators that return views, without a device: shapes, errors, known values, strides.
 */
#include "support/cases/op_case.h"

#include <string.h>

/* ---- Reshape, Flatten ------------------------------------------------------------------------ */

#define REFUSED (-2)

typedef struct reshape_case {
    int rank;
    int64_t from[4];
    int n;
    int64_t to[5];
    int64_t result[5]; /* result[0] is REFUSED where an error is expected */
    bool allow_zero;
} reshape_case;

TEST(reshape__cases)
{
    const reshape_case cases[] = {
        {3, {2, 3, 4}, 2, {6, 4}, {6, 4}, false},
        {3, {2, 3, 4}, 2, {-1, 4}, {6, 4}, false},
        {3, {2, 3, 4}, 3, {0, -1, 0}, {2, 3, 4}, false},
        {3, {2, 3, 4}, 2, {0, -1}, {2, 12}, false},
        {3, {2, 3, 4}, 1, {-1}, {24}, false},
        {1, {1}, 0, {0}, {0}, false},
        {2, {2, 3}, 4, {1, 2, 1, 3}, {1, 2, 1, 3}, false},
        {2, {0, 3}, 2, {0, -1}, {0, 3}, false},
        {2, {0, 3}, 2, {3, 0}, {3, 0}, true},
        {2, {0, 3}, 1, {0}, {0}, true},
        {2, {0, 3}, 3, {2, 5, -1}, {2, 5, 0}, false},
        {3, {U, 3, 4}, 2, {0, -1}, {U, 12}, false},
        {3, {U, 3, 4}, 2, {-1, 12}, {U, 12}, false},
        {3, {U, 3, 4}, 2, {5, 7}, {5, 7}, false},
        {3, {U, 3, 4}, 3, {0, 4, 3}, {U, 4, 3}, false},
        {3, {2, 3, 4}, 2, {5, 5}, {REFUSED}, false},
        {3, {2, 3, 4}, 2, {-1, 5}, {REFUSED}, false},
        {3, {2, 3, 4}, 2, {-1, -1}, {REFUSED}, false},
        {3, {2, 3, 4}, 2, {-2, 12}, {REFUSED}, false},
        {1, {4}, 2, {4, 0}, {REFUSED}, false},
        {2, {0, 3}, 2, {0, -1}, {REFUSED}, true},
        {3, {2, 3, 4}, 2, {0, 5}, {REFUSED}, false},
        {1, {4}, 2, {INT64_MAX, INT64_MAX}, {REFUSED}, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const reshape_case *r = &cases[i];
        op_case k;
        op_case_start(&k, "Reshape", 14, 2, 1);
        if (r->allow_zero) assert_ok(node_set_int(k.graph, 0, "allowzero", 1));
        op_case_dims(&k, 0, CLG_FLOAT32, r->rank, r->from);
        op_case_content(&k, 1, CLG_INT64, r->n, r->to);
        clg_status status = op_case_infer(&k);
        if (r->result[0] == REFUSED && r->n > 0) {
            if (status != CLG_ERROR_SHAPE) fail_msg("case %zu gave %s", i, status_name(status));
        } else {
            if (status != CLG_OK) fail_msg("case %zu: %s", i, error_text());
            op_case_expect_dims(&k, r->n, r->result);
        }
        op_case_end(&k);
    }
}

TEST(reshape__without_the_numbers)
{
    op_case k;
    op_case_start(&k, "Reshape", 13, 2, 1);
    op_case_dims(&k, 0, CLG_FLOAT32, LIST(4));
    op_case_dims(&k, 1, CLG_INT64, LIST(3));
    assert_ok(op_case_infer(&k));
    assert_int_equal(k.needs, 2);
    op_case_expect_dims(&k, LIST(U, U, U));
    op_case_dims(&k, 1, CLG_INT64, LIST(U));
    assert_ok(op_case_infer(&k));
    assert_int_equal(k.outputs[0].dims.rank, RANK_UNKNOWN);
    op_case_dims(&k, 1, CLG_FLOAT32, LIST(3));
    assert_error(op_case_infer(&k), CLG_ERROR_UNSUPPORTED_DTYPE,
                 "input 1 is float32; supported are int64");
    op_case_end(&k);
}

TEST(reshape__keeps_known_content)
{
    op_case k;
    op_case_start(&k, "Reshape", 13, 2, 1);
    op_case_content(&k, 0, CLG_INT32, LIST(1, 2, 3, 4));
    op_case_content(&k, 1, CLG_INT64, LIST(2, 2));
    assert_ok(op_case_infer(&k));
    op_case_expect_dims(&k, LIST(2, 2));
    op_case_expect_content(&k, LIST(1, 2, 3, 4));
    assert_ptr_equal(k.outputs[0].known->data, k.inputs[0].known->data); /* shared, not copied */
    op_case_end(&k);
}

TEST(flatten__cases)
{
    const struct {
        int64_t axis;
        int64_t dims[2];
    } cases[] = {{0, {1, 24}}, {1, {2, 12}}, {2, {6, 4}},
                 {3, {24, 1}}, {-1, {6, 4}}, {-3, {1, 24}}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        op_case k;
        op_case_start(&k, "Flatten", 13, 1, 1);
        assert_ok(node_set_int(k.graph, 0, "axis", cases[i].axis));
        op_case_dims(&k, 0, CLG_FLOAT32, LIST(2, 3, 4));
        assert_ok(op_case_infer(&k));
        op_case_expect_dims(&k, 2, cases[i].dims);
        op_case_end(&k);
    }
    op_case k;
    op_case_start(&k, "Flatten", 9, 1, 1);
    op_case_dims(&k, 0, CLG_FLOAT32, LIST(U, 3, 4));
    assert_ok(op_case_infer(&k)); /* the default axis is 1 */
    op_case_expect_dims(&k, LIST(U, 12));
    op_case_dims(&k, 0, CLG_FLOAT32, 0, NULL);
    assert_error(op_case_infer(&k), CLG_ERROR_SHAPE, "axis is 1, outside of 0..0");
    op_case_end(&k);
}

/* ---- Squeeze, Unsqueeze ---------------------------------------------------------------------- */

TEST(squeeze__axes_as_attribute_and_input)
{
    op_case k;
    op_case_start(&k, "Squeeze", 11, 1, 1);
    op_case_dims(&k, 0, CLG_FLOAT32, LIST(1, 3, 1, 1));
    assert_ok(op_case_infer(&k));
    op_case_expect_dims(&k, LIST(3));
    assert_ok(node_set_ints(k.graph, 0, "axes", 2, (int64_t[]){0, -1}));
    assert_ok(op_case_infer(&k));
    op_case_expect_dims(&k, LIST(3, 1));
    op_case_end(&k);
    op_case_start(&k, "Squeeze", 13, 2, 1);
    op_case_dims(&k, 0, CLG_FLOAT32, LIST(1, U, U));
    op_case_content(&k, 1, CLG_INT64, LIST(1)); /* an unknown dimension may turn out to be 1 */
    assert_ok(op_case_infer(&k));
    op_case_expect_dims(&k, LIST(1, U));
    op_case_end(&k);
    op_case_start(&k, "Squeeze", 13, 1, 1);
    op_case_dims(&k, 0, CLG_FLOAT32, LIST(1, U));
    assert_ok(op_case_infer(&k)); /* the number of dimensions of 1 is unknown */
    assert_int_equal(k.outputs[0].dims.rank, RANK_UNKNOWN);
    op_case_end(&k);
}

TEST(squeeze__faults)
{
    op_case k;
    op_case_start(&k, "Squeeze", 13, 2, 1);
    op_case_dims(&k, 0, CLG_FLOAT32, LIST(1, 3));
    op_case_content(&k, 1, CLG_INT64, LIST(1));
    assert_error(op_case_infer(&k), CLG_ERROR_SHAPE, "axis 1 has length 3");
    op_case_content(&k, 1, CLG_INT64, LIST(0, -2));
    assert_error(op_case_infer(&k), CLG_ERROR_SHAPE, "axis 0 is given twice");
    op_case_content(&k, 1, CLG_INT64, LIST(2));
    assert_error(op_case_infer(&k), CLG_ERROR_SHAPE, "node 'n' (Squeeze, opset 13): axes is 2");
    op_case_end(&k);
}

TEST(unsqueeze__cases)
{
    op_case k;
    op_case_start(&k, "Unsqueeze", 11, 1, 1);
    op_case_dims(&k, 0, CLG_FLOAT32, LIST(2, U));
    assert_ok(node_set_ints(k.graph, 0, "axes", 3, (int64_t[]){4, 0, -3}));
    assert_ok(op_case_infer(&k));
    op_case_expect_dims(&k, LIST(1, 2, 1, U, 1));
    assert_ok(node_set_ints(k.graph, 0, "axes", 2, (int64_t[]){1, 1}));
    assert_error(op_case_infer(&k), CLG_ERROR_SHAPE, "twice");
    assert_ok(node_set_ints(k.graph, 0, "axes", 7, (int64_t[]){0, 1, 2, 3, 4, 5, 6}));
    assert_error(op_case_infer(&k), CLG_ERROR_SHAPE, "9 axes");
    assert_ok(node_set_ints(k.graph, 0, "axes", 1, (int64_t[]){4}));
    assert_error(op_case_infer(&k), CLG_ERROR_SHAPE, "axes is 4");
    op_case_end(&k);
    op_case_start(&k, "Unsqueeze", 13, 2, 1);
    op_case_content(&k, 0, CLG_INT64, LIST(5));
    op_case_content(&k, 1, CLG_INT64, LIST(0));
    assert_ok(op_case_infer(&k));
    op_case_expect_dims(&k, LIST(1, 1));
    op_case_expect_content(&k, LIST(5));
    op_case_end(&k);
}

/* ---- Dropout --------------------------------------------------------------------------------- */

TEST(dropout__passes_on)
{
    op_case k;
    op_case_start(&k, "Dropout", 9, 1, 2);
    op_case_dims(&k, 0, CLG_FLOAT32, LIST(2, U));
    assert_ok(op_case_infer(&k));
    assert_int_equal(k.outputs[1].dtype, CLG_FLOAT32);
    op_case_end(&k);
    op_case_start(&k, "Dropout", 13, 1, 2);
    op_case_content(&k, 0, CLG_FLOAT32, LIST(5, 6));
    assert_ok(op_case_infer(&k));
    op_case_expect_content(&k, LIST(5, 6));
    assert_int_equal(k.outputs[1].dtype, CLG_BOOL);
    assert_int_equal(tensor_get_int(k.outputs[1].known, 1), 1);
    op_case_end(&k);
}

TEST(dropout__trains)
{
    op_case k;
    op_case_start(&k, "Dropout", 13, 3, 1);
    op_case_dims(&k, 0, CLG_FLOAT32, LIST(4));
    op_case_dims(&k, 1, CLG_FLOAT32, 0, NULL);
    op_case_dims(&k, 2, CLG_BOOL, 0, NULL);
    assert_ok(op_case_infer(&k));
    assert_int_equal(k.needs, 1u << 2);
    op_case_content(&k, 2, CLG_BOOL, LIST(1));
    assert_ok(op_case_infer(&k));
    assert_int_equal(k.needs, 1u << 1);
    op_case_content(&k, 1, CLG_FLOAT32, LIST(1));
    assert_error(op_case_infer(&k), CLG_ERROR_DATA, "ratio");
    op_case_content(&k, 1, CLG_FLOAT32, LIST(0));
    assert_ok(op_case_infer(&k)); /* nothing is dropped */
    op_case_content(&k, 2, CLG_BOOL, LIST(0));
    assert_ok(op_case_infer(&k));
    op_case_expect_dims(&k, LIST(4));
    op_case_end(&k);
}

/* ---- lowering -------------------------------------------------------------------------------- */

TEST(views__keep_strides_of_axes)
{
    op_case k;
    arena memory = {0};
    lower_context c;
    op_case_start(&k, "Unsqueeze", 13, 2, 1);
    op_case_dims(&k, 0, CLG_FLOAT32, LIST(2, 1, 3));
    op_case_content(&k, 1, CLG_INT64, LIST(0, 2));
    assert_ok(op_case_infer(&k));
    lower_operand inputs[2] = {op_case_operand(&k.inputs[0]), op_case_operand(&k.inputs[1])};
    inputs[0].dense = false; /* a strided slice of a larger tensor */
    inputs[0].strides[0] = 100;
    inputs[0].strides[1] = 50;
    inputs[0].strides[2] = 7;
    op_case_lower(&k, inputs, &memory, &c);
    assert_true(c.is_view);
    assert_int_equal(c.views[0].offset_elems, 0);
    op_case_expect_dims(&k, LIST(1, 2, 1, 1, 3));
    assert_int_equal(c.views[0].strides[1], 100);
    assert_int_equal(c.views[0].strides[4], 7);
    arena_deinit(&memory);
    op_case_end(&k);
    op_case_start(&k, "Squeeze", 11, 1, 1);
    op_case_dims(&k, 0, CLG_FLOAT32, LIST(1, 4, 1, 5));
    assert_ok(op_case_infer(&k));
    inputs[0] = op_case_operand(&k.inputs[0]);
    inputs[0].strides[1] = 80;
    inputs[0].strides[3] = 2;
    op_case_lower(&k, inputs, &memory, &c);
    assert_int_equal(c.views[0].strides[0], 80);
    assert_int_equal(c.views[0].strides[1], 2);
    arena_deinit(&memory);
    op_case_end(&k);
}

/* Checks the strides of a Reshape of a strided tensor; wanted NULL: no view is possible, it needs a
 * copy. */
static void check_reshaped(int rank, const int64_t *dims, const int64_t *strides, int to_rank,
                           const int64_t *to, const int64_t *wanted)
{
    op_case k;
    arena memory = {0};
    lower_context c;
    op_case_start(&k, "Reshape", 13, 2, 1);
    op_case_dims(&k, 0, CLG_FLOAT32, rank, dims);
    op_case_content(&k, 1, CLG_INT64, to_rank, to);
    assert_ok(op_case_infer(&k));
    lower_operand inputs[2] = {op_case_operand(&k.inputs[0]), op_case_operand(&k.inputs[1])};
    inputs[0].dense = false;
    memcpy(inputs[0].strides, strides, (size_t)rank * sizeof *strides);
    assert_int_equal(lower_takes(k.node->op, 0, &inputs[0], &k.outputs[0].dims), wanted != NULL);
    if (wanted) {
        op_case_lower(&k, inputs, &memory, &c);
        assert_true(c.is_view);
        assert_int_equal(c.views[0].offset_elems, 0);
        for (int i = 0; i < to_rank; i++) assert_int_equal(c.views[0].strides[i], wanted[i]);
        arena_deinit(&memory);
    }
    op_case_end(&k);
}

#define NUMBERS(...) ((const int64_t[]){__VA_ARGS__})

TEST(reshape__is_a_view_where_strides_allow)
{
    const int64_t *const heads = NUMBERS(2304, 64, 1);
    check_reshaped(LIST(197, 1, 768), NUMBERS(2304, 2304, 1), LIST(197, 12, 64), heads);
    check_reshaped(LIST(197, 12, 64), heads, LIST(1, 197, 768), NUMBERS(453888, 2304, 1));
    check_reshaped(LIST(197, 12, 64), heads, LIST(2364, 64), NULL);
    check_reshaped(LIST(12, 197, 64), NUMBERS(64, 2304, 1), LIST(12, 12608), NULL);
    check_reshaped(LIST(4, 6, 5), NUMBERS(60, 10, 2), LIST(8, 15), NUMBERS(30, 2));
    check_reshaped(LIST(4, 6, 5), NUMBERS(60, 10, 2), LIST(120, 1), NUMBERS(2, 1));
    check_reshaped(LIST(4, 6, 5), NUMBERS(61, 10, 2), LIST(12, 10), NULL);
    check_reshaped(LIST(4, 6, 5), NUMBERS(61, 10, 2), LIST(2, 2, 30), NUMBERS(122, 61, 2));
    check_reshaped(LIST(4, 6), NUMBERS(0, 1), LIST(2, 2, 3, 2), NUMBERS(0, 0, 2, 1));
    check_reshaped(LIST(1, 1), NUMBERS(9, 5), LIST(1, 1, 1), NUMBERS(1, 1, 1));
    check_reshaped(LIST(0, 6), NUMBERS(7, 1), LIST(0, 3), NULL);
}

TEST(dropout__lowers_with_its_mask)
{
    op_case k;
    arena memory = {0};
    lower_context c;
    op_case_start(&k, "Dropout", 9, 1, 2);
    op_case_dims(&k, 0, CLG_FLOAT32, LIST(3));
    assert_ok(op_case_infer(&k));
    lower_operand inputs[1] = {op_case_operand(&k.inputs[0])};
    op_case_lower(&k, inputs, &memory, &c);
    const step *copy = c.build.candidates->steps, *fill = copy->next;
    assert_int_equal(copy->kind, STEP_COPY);
    assert_int_equal(copy->size_bytes, 12);
    assert_int_equal(fill->to.index, 1);
    assert_memory_equal(fill->pattern, "\0\0\x80\x3f", 4);
    arena_deinit(&memory);
    op_case_end(&k);
    op_case_start(&k, "Dropout", 13, 1, 1);
    op_case_dims(&k, 0, CLG_FLOAT32, LIST(3));
    assert_ok(op_case_infer(&k));
    op_case_lower(&k, inputs, &memory, &c);
    assert_true(c.is_view);
    arena_deinit(&memory);
    op_case_end(&k);
}
