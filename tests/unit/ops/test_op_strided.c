/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests operators that move data, without a device: shapes with and without known values of inputs,
 * which results are views, values computed on the host, errors.
 */
#include "support/cases/op_case.h"

#include "ops/lowering/grid.h"

#include <string.h>

#define COUNT(list) (sizeof(list) / sizeof(list)[0])

/* ---- merging dimensions ---------------------------------------------------------------------- */

TEST(grid__merges_contiguous_dimensions)
{
    arena memory = {0};
    const shape dims = {.rank = 5, .dims = {2, 1, 3, 4, 5}};
    grid_dims *g = grid_create(&memory, &dims, 2);
    assert_non_null(g);
    grid_set_strides(g, 0, (int64_t[]){60, 60, 20, 5, 1});
    grid_set_strides(g, 1, (int64_t[]){0, 0, 4, 1, 0});
    assert_true(grid_is_dense(g, 0));
    grid_collapse(g);
    assert_int_equal(g->rank, 3);
    assert_int_equal(g->dims[1], 12);
    assert_int_equal(g->strides[0][1], 5);
    assert_int_equal(g->strides[1][1], 1);
    assert_int_equal(grid_n_elements(g), 120);
    assert_false(grid_needs_64_bits(g));
    g->strides[1][0] = INT64_C(3000000000);
    assert_true(grid_needs_64_bits(g));
    arena_deinit(&memory);
}

/* ---- views ----------------------------------------------------------------------------------- */

/* Lowers the node, with input 0 placed as `in` says (NULL: dense), and checks whether the result is
 * a view, and the offset and strides of a view. */
static void expect_view(op_case *k, const lower_operand *in, bool is_view, int64_t offset, int rank,
                        const int64_t *strides)
{
    arena memory = {0};
    device_caps caps = {.vector_width = 16, .compute_units = 2};
    lower_operand inputs[OP_CASE_INPUTS];
    lower_context c;
    assert_ok(op_case_infer(k));
    for (size_t i = 0; i < k->node->n_inputs; i++) inputs[i] = op_case_operand(&k->inputs[i]);
    if (in) inputs[0] = *in;
    for (size_t i = 0; i < k->node->n_outputs; i++) k->lowered[i] = op_case_operand(&k->outputs[i]);
    c = (lower_context){.node = k->node,
                        .row = k->node->op,
                        .inputs = inputs,
                        .outputs = k->lowered,
                        .n_inputs = k->node->n_inputs,
                        .n_outputs = k->node->n_outputs,
                        .caps = &caps,
                        .kernel_class = CLG_KERNELS_SIMD,
                        .memory = &memory};
    assert_ok(ops_lower_node(&c));
    assert_int_equal(c.is_view, is_view);
    if (is_view) {
        const size_t last = k->node->n_outputs - 1;
        assert_int_equal(c.views[last].offset_elems, offset);
        for (int i = 0; i < rank; i++)
            if (k->outputs[last].dims.dims[i] != 1)
                assert_int_equal(c.views[last].strides[i], strides[i]);
    } else {
        assert_non_null(c.build.candidates->steps);
    }
    arena_deinit(&memory);
}

TEST(transpose__views)
{
    static const struct {
        int64_t dims[4], perm[4];
        bool is_view;
        int64_t strides[4];
    } cases[] = {
        {{2, 3, 4, 64}, {0, 2, 1, 3}, true, {768, 64, 256, 1}}, /* long contiguous runs: a view */
        {{2, 3, 4, 5}, {0, 2, 1, 3}, false, {0}},               /* short ones: a copy */
        {{2, 3, 4, 5}, {0, 1, 3, 2}, false, {0}},
        {{1, 3, 1, 5}, {2, 1, 0, 3}, true, {1, 5, 1, 1}}, /* only axes of length 1 move */
        {{1, 3, 4, 1}, {1, 0, 3, 2}, true, {4, 1, 1, 1}},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        op_case k;
        op_case_start(&k, "Transpose", 13, 1, 1);
        assert_ok(node_set_ints(k.graph, 0, "perm", 4, cases[i].perm));
        op_case_dims(&k, 0, CLG_FLOAT32, 4, cases[i].dims);
        expect_view(&k, NULL, cases[i].is_view, 0, 4, cases[i].strides);
        op_case_end(&k);
    }
}

TEST(slice__views)
{
    for (int reverse = 0; reverse < 2; reverse++) {
        op_case k;
        op_case_start(&k, "Slice", 13, 5, 1);
        op_case_dims(&k, 0, CLG_FLOAT32, LIST(6, 10));
        op_case_content(&k, 1, CLG_INT64, LIST(reverse ? -2 : 1));
        op_case_content(&k, 2, CLG_INT64, LIST(reverse ? 0 : 5));
        op_case_content(&k, 3, CLG_INT64, LIST(-2));
        op_case_content(&k, 4, CLG_INT64, LIST(reverse ? -2 : 2));
        /* The input is itself a view: its rows are 50 elements apart. */
        lower_operand in = {
            .dtype = CLG_FLOAT32, .dims = {.rank = 2, .dims = {6, 10}}, .strides = {50, 1}};
        expect_view(&k, &in, !reverse, 50, 2, (int64_t[]){100, 1});
        op_case_expect_dims(&k, LIST(2, 10));
        op_case_end(&k);
    }
}

TEST(split__views)
{
    op_case k;
    op_case_start(&k, "Split", 18, 1, 3);
    assert_ok(node_set_int(k.graph, 0, "axis", 1));
    assert_ok(node_set_int(k.graph, 0, "num_outputs", 3));
    op_case_dims(&k, 0, CLG_FLOAT32, LIST(4, 8));
    expect_view(&k, NULL, true, 6, 2, (int64_t[]){8, 1});
    assert_int_equal(k.outputs[2].dims.dims[1], 2);
    op_case_end(&k);
}

TEST(expand__views)
{
    op_case k;
    op_case_start(&k, "Expand", 13, 2, 1);
    op_case_dims(&k, 0, CLG_FLOAT32, LIST(3, 1));
    op_case_content(&k, 1, CLG_INT64, LIST(2, 1, 4));
    expect_view(&k, NULL, true, 0, 3, (int64_t[]){0, 1, 0});
    op_case_expect_dims(&k, LIST(2, 3, 4));
    op_case_end(&k);
}

TEST(gather__known_index_is_a_view)
{
    op_case k;
    op_case_start(&k, "Gather", 13, 2, 1);
    assert_ok(node_set_int(k.graph, 0, "axis", 1));
    op_case_dims(&k, 0, CLG_FLOAT32, LIST(2, 5, 3));
    op_case_content(&k, 1, CLG_INT64, LIST(-1));
    expect_view(&k, NULL, true, 12, 3, (int64_t[]){15, 3, 1});
    op_case_expect_dims(&k, LIST(2, 1, 3));
    op_case_end(&k);
}

/* ---- shapes ---------------------------------------------------------------------------------- */

/* Checks which inputs inference needs the values of, to compute the shape: bit i of `needs` is
 * input i. */
TEST(strided__needs)
{
    static const struct {
        const char *op;
        size_t n_inputs;
        uint32_t needs;
    } cases[] = {{"Slice", 3, 6}, {"Expand", 2, 2}, {"Tile", 2, 2},
                 {"Pad", 2, 2},   {"Range", 3, 7},  {"OneHot", 3, 2}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        op_case k;
        op_case_start(&k, cases[i].op, 13, cases[i].n_inputs, 1);
        op_case_dims(&k, 0, CLG_INT64, 1, (int64_t[]){1});
        for (size_t n = 1; n < cases[i].n_inputs; n++)
            op_case_dims(&k, n, CLG_INT64, LIST(n == 2 && i == 5 ? 2 : 1));
        assert_ok(op_case_infer(&k));
        if (k.needs != cases[i].needs) fail_msg("%s needs %u", cases[i].op, k.needs);
        op_case_end(&k);
    }
}

TEST(strided__unknown_dims)
{
    op_case k;
    op_case_start(&k, "Concat", 13, 2, 1);
    assert_ok(node_set_int(k.graph, 0, "axis", -1));
    op_case_dims(&k, 0, CLG_FLOAT32, LIST(U, 3));
    op_case_dims(&k, 1, CLG_FLOAT32, LIST(7, 4));
    assert_ok(op_case_infer(&k));
    op_case_expect_dims(&k, LIST(7, 7));
    op_case_dims(&k, 1, CLG_FLOAT32, LIST(7, U));
    assert_ok(op_case_infer(&k));
    op_case_expect_dims(&k, LIST(7, U));
    op_case_end(&k);
    op_case_start(&k, "Slice", 13, 3, 1);
    op_case_dims(&k, 0, CLG_FLOAT32, LIST(U, 5));
    op_case_content(&k, 1, CLG_INT64, LIST(0, 1));
    op_case_content(&k, 2, CLG_INT64, LIST(2, 3));
    assert_ok(op_case_infer(&k));
    op_case_expect_dims(&k, LIST(U, 2));
    op_case_end(&k);
    /* what is not known yet says the rank at least */
    op_case_start(&k, "Slice", 13, 3, 1);
    op_case_dims(&k, 0, CLG_FLOAT32, LIST(4, 5));
    op_case_content(&k, 1, CLG_INT64, LIST(0, 1));
    op_case_dims(&k, 2, CLG_INT64, LIST(2));
    assert_ok(op_case_infer(&k));
    op_case_expect_dims(&k, LIST(U, U));
    op_case_end(&k);
    op_case_start(&k, "Expand", 13, 2, 1);
    op_case_dims(&k, 0, CLG_FLOAT32, LIST(4, 5));
    op_case_dims(&k, 1, CLG_INT64, LIST(3));
    assert_ok(op_case_infer(&k));
    op_case_expect_dims(&k, LIST(U, U, U));
    op_case_dims(&k, 1, CLG_INT64, LIST(1));
    assert_ok(op_case_infer(&k));
    op_case_expect_dims(&k, LIST(U, U));
    op_case_end(&k);
    op_case_start(&k, "ReduceMean", 13, 1, 1);
    assert_ok(node_set_ints(k.graph, 0, "axes", 1, (int64_t[]){-2}));
    assert_ok(node_set_int(k.graph, 0, "keepdims", 0));
    op_case_dims(&k, 0, CLG_FLOAT32, LIST(U, 5, 2));
    assert_ok(op_case_infer(&k));
    op_case_expect_dims(&k, LIST(U, 2));
    op_case_end(&k);
}

/* ---- contents -------------------------------------------------------------------------------- */

TEST(strided__eval)
{
    op_case k;
    op_case_start(&k, "Slice", 13, 5, 1);
    op_case_content(&k, 0, CLG_INT64, LIST(3, 1, 4, 1, 5));
    op_case_content(&k, 1, CLG_INT64, LIST(-1));
    op_case_content(&k, 2, CLG_INT64, LIST(INT64_MIN));
    op_case_content(&k, 3, CLG_INT64, LIST(0));
    op_case_content(&k, 4, CLG_INT64, LIST(-2));
    assert_ok(op_case_infer(&k));
    op_case_expect_content(&k, LIST(5, 4, 3));
    op_case_end(&k);
    op_case_start(&k, "Concat", 13, 3, 1);
    assert_ok(node_set_int(k.graph, 0, "axis", 0));
    for (size_t i = 0; i < 3; i++) op_case_content(&k, i, CLG_INT64, LIST((int64_t)i, 7));
    assert_ok(op_case_infer(&k));
    op_case_expect_content(&k, LIST(0, 7, 1, 7, 2, 7));
    op_case_end(&k);
    op_case_start(&k, "Gather", 13, 2, 1);
    op_case_content(&k, 0, CLG_INT64, LIST(2, 3, 5, 7));
    op_case_content(&k, 1, CLG_INT64, LIST(-1, 0));
    assert_ok(op_case_infer(&k));
    op_case_expect_content(&k, LIST(7, 2));
    op_case_content(&k, 1, CLG_INT64, LIST(4));
    assert_error(op_case_infer(&k), CLG_ERROR_DATA, "out of range");
    op_case_end(&k);
    op_case_start(&k, "ReduceProd", 13, 1, 1);
    op_case_content(&k, 0, CLG_INT64, LIST(2, 3, 5));
    assert_ok(op_case_infer(&k));
    op_case_expect_content(&k, LIST(30));
    op_case_end(&k);
    op_case_start(&k, "Tile", 13, 2, 1);
    op_case_content(&k, 0, CLG_INT64, LIST(2, 3));
    op_case_content(&k, 1, CLG_INT64, LIST(2));
    assert_ok(op_case_infer(&k));
    op_case_expect_content(&k, LIST(2, 3, 2, 3));
    op_case_end(&k);
}

TEST(strided__eval_split)
{
    op_case k;
    op_case_start(&k, "Split", 13, 2, 2);
    op_case_content(&k, 0, CLG_INT64, LIST(2, 3, 5));
    op_case_content(&k, 1, CLG_INT64, LIST(1, 2));
    assert_ok(op_case_infer(&k));
    op_case_expect_content(&k, LIST(2));
    assert_int_equal(tensor_get_int(k.outputs[1].known, 1), 5);
    op_case_end(&k);
}

/* ---- errors ---------------------------------------------------------------------------------- */

TEST(strided__absurd_numbers)
{
    op_case k;
    op_case_start(&k, "Tile", 13, 2, 1);
    op_case_dims(&k, 0, CLG_FLOAT32, LIST(1000000));
    op_case_content(&k, 1, CLG_INT64, LIST(INT64_MAX / 2));
    assert_error(op_case_infer(&k), CLG_ERROR_SHAPE, "large");
    op_case_content(&k, 1, CLG_INT64, LIST(-1));
    assert_error(op_case_infer(&k), CLG_ERROR_SHAPE, "negative");
    op_case_end(&k);
    op_case_start(&k, "Pad", 13, 2, 1);
    op_case_dims(&k, 0, CLG_FLOAT32, LIST(4));
    op_case_content(&k, 1, CLG_INT64, LIST(INT64_MIN, INT64_MAX));
    assert_error(op_case_infer(&k), CLG_ERROR_SHAPE, "pads");
    op_case_content(&k, 1, CLG_INT64, LIST(INT64_MAX, 1));
    assert_error(op_case_infer(&k), CLG_ERROR_SHAPE, "padded");
    op_case_content(&k, 1, CLG_INT64, LIST(-3, -2));
    assert_error(op_case_infer(&k), CLG_ERROR_SHAPE, "padded");
    op_case_content(&k, 1, CLG_INT64, LIST(1));
    assert_error(op_case_infer(&k), CLG_ERROR_SHAPE, "pads");
    op_case_end(&k);
    op_case_start(&k, "Expand", 13, 2, 1);
    op_case_dims(&k, 0, CLG_FLOAT32, LIST(4));
    op_case_content(&k, 1, CLG_INT64, LIST(-1, 4));
    assert_error(op_case_infer(&k), CLG_ERROR_SHAPE, "negative");
    op_case_end(&k);
    op_case_start(&k, "Range", 13, 3, 1);
    op_case_content(&k, 0, CLG_INT64, LIST(INT64_MIN));
    op_case_content(&k, 1, CLG_INT64, LIST(INT64_MAX));
    op_case_content(&k, 2, CLG_INT64, LIST(1));
    assert_error(op_case_infer(&k), CLG_ERROR_SHAPE, "too many");
    op_case_end(&k);
}
