/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests groups of pointwise operators that are fused into one kernel, without a device: generated
 * kernels, NDRanges, writing and reading attributes, invalid clgraph.Pointwise nodes, arithmetic on
 * the host.
 */
#include "support/cases/op_case.h"

#include "ops/pointwise/pointwise.h"
#include "tensor/tensor.h"

#include <string.h>

#define COUNT(list) (sizeof(list) / sizeof(list)[0])

/* ---- the table ------------------------------------------------------------------------------- */

TEST(pointwise_group__names_are_unique)
{
    for (size_t i = 0; i < n_pointwise_defs; i++)
        assert_ptr_equal(pointwise_find(pointwise_defs[i].name), &pointwise_defs[i]);
    assert_null(pointwise_find("Nothing"));
}

/* Checks that the generator can expand every $ token in the expressions of the table. */
TEST(pointwise_group__expressions_are_understood)
{
    static const clg_dtype dtypes[] = {CLG_FLOAT32, CLG_INT32, CLG_UINT8, CLG_BOOL};
    for (size_t i = 0; i < n_pointwise_defs; i++) {
        const pointwise_def *def = &pointwise_defs[i];
        for (size_t d = 0; d < COUNT(dtypes); d++) {
            pointwise_group g = {0};
            pointwise_register r, operands[3] = {0};
            strbuf t;
            if (def->flags & POINTWISE_CAST || !pointwise_expression(def, dtypes[d])) continue;
            for (int k = 0; k < 3; k++) {
                const bool is_condition = k == 0 && def->flags & POINTWISE_KIND_OF_B;
                assert_ok(
                    pointwise_add_input(&g, is_condition ? CLG_BOOL : dtypes[d], &operands[k]));
            }
            assert_ok(pointwise_add(&g, def->name, operands, (float[]){1, 2}, &r));
            assert_ok(pointwise_add_output(&g, r));
            const pointwise_layout layout = {.rank = 1, .n_patterns = 1};
            strbuf_init(&t, 0);
            pointwise_text(&g, &layout, &t);
            assert_ok(t.status);
            const char *kernel = strstr(strbuf_data(&t), "__kernel");
            assert_non_null(kernel);
            if (strchr(kernel, '$') || strstr(kernel, " ? ;"))
                fail_msg("%s: %s", def->name, kernel);
            strbuf_deinit(&t);
        }
    }
}

/* ---- lowering -------------------------------------------------------------------------------- */

/* Returns the single step of `a op b` for operands of these shapes. */
static const step *lower_pair(op_case *k, arena *memory, clg_kernel_class kernels, int rank_a,
                              const int64_t *a, int rank_b, const int64_t *b)
{
    static device_caps caps = {.vector_width = 16, .compute_units = 2};
    lower_operand inputs[2];
    op_case_dims(k, 0, CLG_FLOAT32, rank_a, a);
    op_case_dims(k, 1, CLG_FLOAT32, rank_b, b);
    assert_ok(op_case_infer(k));
    for (int i = 0; i < 2; i++) inputs[i] = op_case_operand(&k->inputs[i]);
    const lower_operand output = op_case_operand(&k->outputs[0]);
    lower_context c = {.node = k->node,
                       .row = k->node->op,
                       .inputs = inputs,
                       .outputs = &output,
                       .n_inputs = 2,
                       .n_outputs = 1,
                       .caps = &caps,
                       .kernel_class = kernels,
                       .memory = memory};
    assert_ok(ops_lower_node(&c));
    assert_non_null(c.build.candidates);
    return c.build.candidates->steps;
}

/* Checks that the kernel's text does not depend on sizes in either kernel class, but depends on the
 * pattern of strides. */
TEST(pointwise_group__text_knows_no_sizes)
{
    static const clg_kernel_class classes[] = {CLG_KERNELS_SIMD, CLG_KERNELS_SIMT};
    for (size_t i = 0; i < COUNT(classes); i++) {
        op_case k;
        arena memory = {0};
        op_case_start(&k, "Mul", 13, 2, 1);
        const step *small = lower_pair(&k, &memory, classes[i], LIST(2, 3, 40), LIST(3, 1));
        const step *large = lower_pair(&k, &memory, classes[i], LIST(8, 512, 5000), LIST(512, 1));
        const step *dense = lower_pair(&k, &memory, classes[i], LIST(70), LIST(70));
        assert_string_equal(small->kernel.body, large->kernel.body);
        assert_string_equal(small->kernel.prelude, large->kernel.prelude);
        assert_string_not_equal(small->kernel.body, dense->kernel.body);
        assert_true(large->global[0] < 65536 || classes[i] == CLG_KERNELS_SIMT);
        assert_string_equal(dense->label, "pointwise Mul");
        /* Beyond 31 bits, the prelude selects 64-bit indices. */
        const step *huge =
            lower_pair(&k, &memory, classes[i], LIST(70000, 70000), LIST(70000, 70000));
        assert_string_equal(huge->kernel.body, dense->kernel.body);
        assert_non_null(strstr(huge->kernel.prelude, "P_INDEX 64"));
        arena_deinit(&memory);
        op_case_end(&k);
    }
}

/* Checks that a cast to the same dtype, and Clip without bounds, are views. */
TEST(pointwise_group__nothing_to_do_is_a_view)
{
    op_case k;
    arena memory = {0};
    lower_context c;
    op_case_start(&k, "Cast", 13, 1, 1);
    assert_ok(node_set_int(k.graph, 0, "to", CLG_FLOAT16));
    op_case_dims(&k, 0, CLG_FLOAT16, LIST(3, 4));
    assert_ok(op_case_infer(&k));
    lower_operand in = op_case_operand(&k.inputs[0]);
    in.strides[0] = 100;
    in.dense = false;
    op_case_lower(&k, &in, &memory, &c);
    assert_true(c.is_view);
    assert_int_equal(c.views[0].strides[0], 100);
    arena_deinit(&memory);
    op_case_end(&k);
}

/* ---- attributes ------------------------------------------------------------------------------ */

static void make_group(pointwise_group *g)
{
    pointwise_register a, b, r;
    *g = (pointwise_group){0};
    assert_ok(pointwise_add_input(g, CLG_FLOAT32, &a));
    assert_ok(pointwise_add_input(g, CLG_FLOAT32, &b));
    assert_ok(pointwise_add(g, "Add", (pointwise_register[]){a, b}, NULL, &r));
    assert_ok(pointwise_add(g, "LeakyRelu", &r, (float[]){0.5f}, &r));
    assert_ok(pointwise_add_output(g, r));
    assert_ok(pointwise_add_cast(g, r, CLG_INT32, &r));
    assert_ok(pointwise_add_output(g, r));
}

static void make_node(op_case *k, const pointwise_group *g)
{
    op_case_start(k, "Pointwise", 13, 2, 2);
    k->node->domain = "clgraph";
    k->node->opset = 1;
    if (g) assert_ok(pointwise_write(g, k->graph, 0));
    op_case_dims(k, 0, CLG_FLOAT32, LIST(3, 1));
    op_case_dims(k, 1, CLG_FLOAT32, LIST(1, 4));
}

TEST(pointwise_group__written_and_read)
{
    pointwise_group g, back;
    op_case k;
    strbuf label;
    make_group(&g);
    make_node(&k, &g);
    assert_ok(pointwise_read(k.node, g.inputs, &back));
    assert_int_equal(back.n_instructions, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_ptr_equal(back.instructions[i].def, g.instructions[i].def);
        assert_int_equal(back.instructions[i].dtype, g.instructions[i].dtype);
        assert_int_equal(back.instructions[i].operands[0], g.instructions[i].operands[0]);
    }
    assert_true(back.scalars[0] == 0.5f);
    assert_int_equal(back.outputs[1], g.outputs[1]);
    strbuf_init(&label, 0);
    pointwise_label(&back, &label);
    assert_string_equal(strbuf_data(&label), "Add+LeakyRelu+Cast");
    strbuf_deinit(&label);
    assert_ok(op_case_infer(&k));
    op_case_expect_dims(&k, LIST(3, 4));
    assert_int_equal(k.outputs[1].dtype, CLG_INT32);
    op_case_end(&k);
}

/* Checks that invalid attributes of a Pointwise node, which a model file may contain, are rejected
 * before a kernel is generated. */
TEST(pointwise_group__strangers_are_refused)
{
    static const struct {
        const char *op;
        int64_t wiring[5], output;
    } bad[] = {
        {"Nothing", {0, 1, -1, CLG_FLOAT32, 0}, 16},     /* no such operator */
        {"Add", {0, 2, -1, CLG_FLOAT32, 0}, 16},         /* no such input */
        {"Add", {0, 16, -1, CLG_FLOAT32, 0}, 16},        /* the result of the operation itself */
        {"Add", {0, -1, -1, CLG_FLOAT32, 0}, 16},        /* an operand is missing */
        {"Add", {0, 1, -1, CLG_INT32, 0}, 16},           /* another dtype */
        {"Add", {0, 1, -1, CLG_STRING, 0}, 16},          /* a dtype without arithmetic */
        {"Add", {0, 1, -1, CLG_FLOAT32, 7}, 16},         /* an index beyond the scalars */
        {"LeakyRelu", {0, -1, -1, CLG_FLOAT32, 0}, 16},  /* too few scalars */
        {"BitwiseNot", {0, -1, -1, CLG_FLOAT32, 0}, 16}, /* not for floats */
        {"Add", {0, 1, -1, CLG_FLOAT32, 0}, 17},         /* no such result */
        {"Add", {0, 1, -1, CLG_FLOAT32, 0}, -1},
    };
    for (size_t i = 0; i < COUNT(bad); i++) {
        op_case k;
        make_node(&k, NULL);
        const int64_t outputs[] = {bad[i].output, 0};
        const graph_attribute ops = {
            .name = "ops", .type = ATTRIBUTE_STRINGS, .count = 1, .as.strings = &bad[i].op};
        assert_ok(node_add_attribute(k.graph, 0, &ops));
        assert_ok(node_set_ints(k.graph, 0, "wiring", 5, bad[i].wiring));
        assert_ok(node_set_ints(k.graph, 0, "outputs", 2, outputs));
        const clg_status status = op_case_infer(&k);
        if (status != CLG_ERROR_INVALID_MODEL) fail_msg("case %zu gave %s", i, status_name(status));
        op_case_end(&k);
    }
}

TEST(pointwise_group__full)
{
    pointwise_group g = {0};
    pointwise_register r;
    for (int i = 0; i < POINTWISE_MAX_INPUTS; i++)
        assert_ok(pointwise_add_input(&g, CLG_FLOAT32, &r));
    assert_error(pointwise_add_input(&g, CLG_FLOAT32, &r), CLG_ERROR_UNSUPPORTED_OPERATOR,
                 "inputs");
    r = 0;
    for (int i = 0; i < POINTWISE_MAX_INSTRUCTIONS; i++)
        assert_ok(pointwise_add(&g, "Neg", &r, NULL, &r));
    assert_error(pointwise_add(&g, "Neg", &r, NULL, &r), CLG_ERROR_UNSUPPORTED_OPERATOR,
                 "instructions");
    assert_int_equal(g.n_instructions, POINTWISE_MAX_INSTRUCTIONS);
}

/* ---- host arithmetic ------------------------------------------------------------------------- */

static void eval_pair(const char *op, clg_dtype dtype, int n, const int64_t *a, const int64_t *b,
                      const int64_t *right)
{
    op_case k;
    op_case_start(&k, op, 13, 2, 1);
    op_case_content(&k, 0, dtype, n, a);
    op_case_content(&k, 1, dtype, n, b);
    assert_ok(op_case_infer(&k));
    op_case_expect_content(&k, n, right);
    op_case_end(&k);
}

TEST(pointwise_group__eval)
{
    const int64_t a[] = {7, -7, INT64_MAX, INT64_MIN}, b[] = {2, 2, 1, -1}, zero[] = {0, 0, 0, 0};
    eval_pair("Add", CLG_INT64, 4, a, b, (int64_t[]){9, -5, INT64_MIN, INT64_MAX});
    eval_pair("Div", CLG_INT64, 4, a, b, (int64_t[]){3, -3, INT64_MAX, INT64_MIN});
    eval_pair("Div", CLG_INT64, 4, a, zero, zero);
    eval_pair("Mod", CLG_INT64, 4, a, b, (int64_t[]){1, 1, 0, 0});
    eval_pair("Mod", CLG_INT64, 4, a, zero, zero);
    eval_pair("Mul", CLG_INT8, 2, (int64_t[]){100, -100}, (int64_t[]){2, 2}, (int64_t[]){-56, 56});
    eval_pair("Sub", CLG_UINT8, 2, (int64_t[]){1, 200}, (int64_t[]){2, 100}, (int64_t[]){255, 100});
    eval_pair("Max", CLG_INT32, 2, (int64_t[]){1, -5}, (int64_t[]){0, -4}, (int64_t[]){1, -4});
    eval_pair("Less", CLG_INT64, 4, a, b, (int64_t[]){0, 1, 0, 1});
    eval_pair("Pow", CLG_INT64, 4, (int64_t[]){3, -2, 1, 5}, (int64_t[]){4, 3, -7, -1},
              (int64_t[]){81, -8, 1, 0});
    eval_pair("Div", CLG_FLOAT32, 2, (int64_t[]){1, 9}, (int64_t[]){4, 3}, (int64_t[]){0, 3});
}

/* Checks what is not computed on the host: uint64, since results may have more than 53 bits, and
 * Erf. */
TEST(pointwise_group__eval_declines)
{
    op_case k;
    op_case_start(&k, "Add", 13, 2, 1);
    op_case_content(&k, 0, CLG_UINT64, 1, (int64_t[]){1});
    op_case_content(&k, 1, CLG_UINT64, 1, (int64_t[]){1});
    assert_ok(op_case_infer(&k));
    assert_null(k.outputs[0].known);
    op_case_end(&k);
    op_case_start(&k, "Erf", 13, 1, 1);
    op_case_content(&k, 0, CLG_FLOAT32, 1, (int64_t[]){1});
    assert_ok(op_case_infer(&k));
    assert_null(k.outputs[0].known);
    op_case_end(&k);
}

TEST(pointwise_group__eval_casts)
{
    op_case k;
    op_case_start(&k, "Cast", 13, 1, 1);
    assert_ok(node_set_int(k.graph, 0, "to", CLG_INT8));
    op_case_content(&k, 0, CLG_INT64, 3, (int64_t[]){200, -129, 5});
    assert_ok(op_case_infer(&k));
    op_case_expect_content(&k, 3, (int64_t[]){-56, 127, 5});
    op_case_content(&k, 0, CLG_FLOAT32, 3, (int64_t[]){200, -1290, 5});
    assert_ok(op_case_infer(&k));
    op_case_expect_content(&k, 3, (int64_t[]){127, -128, 5});
    op_case_end(&k);
}

/* ---- shapes ---------------------------------------------------------------------------------- */

TEST(pointwise_group__shapes)
{
    op_case k;
    op_case_start(&k, "Where", 16, 3, 1);
    op_case_dims(&k, 0, CLG_BOOL, LIST(3, 1, 1));
    op_case_dims(&k, 1, CLG_FLOAT32, LIST(U, 1));
    op_case_dims(&k, 2, CLG_FLOAT32, LIST(5));
    assert_ok(op_case_infer(&k));
    op_case_expect_dims(&k, LIST(3, U, 5));
    assert_int_equal(k.outputs[0].dtype, CLG_FLOAT32);
    op_case_dims(&k, 2, CLG_FLOAT32, LIST(2, 2, 5));
    assert_error(op_case_infer(&k), CLG_ERROR_SHAPE, "broadcast");
    op_case_end(&k);
    op_case_start(&k, "PRelu", 16, 2, 1);
    op_case_dims(&k, 0, CLG_FLOAT32, LIST(4, 1));
    op_case_dims(&k, 1, CLG_FLOAT32, LIST(4, 3));
    assert_error(op_case_infer(&k), CLG_ERROR_SHAPE, "slope");
    op_case_end(&k);
    op_case_start(&k, "Greater", 13, 2, 1);
    op_case_dims(&k, 0, CLG_FLOAT32, LIST(4));
    op_case_dims(&k, 1, CLG_FLOAT32, LIST(1));
    assert_ok(op_case_infer(&k));
    assert_int_equal(k.outputs[0].dtype, CLG_BOOL);
    op_case_end(&k);
    op_case_start(&k, "CastLike", 15, 2, 1);
    op_case_dims(&k, 0, CLG_FLOAT32, LIST(4));
    op_case_dims(&k, 1, CLG_INT8, LIST(3));
    assert_ok(op_case_infer(&k));
    op_case_expect_dims(&k, LIST(4));
    assert_int_equal(k.outputs[0].dtype, CLG_INT8);
    op_case_end(&k);
}
