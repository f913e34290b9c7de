/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests graph passes: what they rewrite, and what they must not change. The graphs are made in
 * code; tests/api compares results on devices.
 */
#include "support/cases/pass_case.h"

#include "base/strbuf.h"

#include <stdio.h>
#include <string.h>

/* Adds a 3x3 Conv from 4 to 6 channels of x [2,4,8,8]. */
static value_id add_conv(pass_case *m)
{
    value_id x = pass_case_input(m, "x", 4, (int64_t[]){2, 4, 8, 8}),
             w = pass_case_constant(m, "w", 4, (int64_t[]){6, 4, 3, 3});
    return pass_case_node(m, "Conv", 2, (value_id[]){x, w}, "conv");
}

static value_id add_norm(pass_case *m, value_id x, int64_t channels)
{
    value_id in[5] = {x};
    const char *const names[] = {"", "scale", "bias", "mean", "var"};
    for (int i = 1; i < 5; i++) in[i] = pass_case_constant(m, names[i], 1, &channels);
    return pass_case_node(m, "BatchNormalization", 5, in, "norm");
}

/* ---- unused nodes and identities ------------------------------------------------------------- */

TEST(passes__nodes_that_nobody_reads_go)
{
    pass_case m = pass_case_start();
    value_id x = pass_case_input(&m, "x", 1, (int64_t[]){3});
    value_id y = pass_case_node(&m, "Relu", 1, &x, "y");
    value_id unused = pass_case_node(&m, "Exp", 1, &x, "unused");
    pass_case_node(&m, "Log", 1, &unused, "unused too");
    graph *g = pass_case_run(&m, y, NULL, 0);
    assert_int_equal(g->n_nodes, 1);
    assert_string_equal(g->nodes[0].op_type, "Relu");
    graph_free(g);
}

TEST(passes__identity_is_bypassed_but_outputs_stay)
{
    pass_case m = pass_case_start();
    value_id x = pass_case_input(&m, "x", 1, (int64_t[]){3});
    value_id a = pass_case_node(&m, "Identity", 1, &x, "a");
    value_id b = pass_case_node(&m, "Dropout", 1, &a, "b");
    value_id c = pass_case_node(&m, "Relu", 1, &b, "c");
    value_id d = pass_case_node(&m, "Identity", 1, &c, "d");
    graph *g = pass_case_run(&m, d, NULL, 0);
    assert_int_equal(pass_case_count(g, "Dropout"), 0);
    assert_int_equal(pass_case_count(g, "Relu"), 1);
    assert_true(pass_case_find(g, "Relu")->inputs[0] == g->inputs[0]);
    assert_string_equal(g->values[g->outputs[0]].name, "d");
    assert_true(g->values[g->outputs[0]].producer != NODE_NONE);
    graph_free(g);
}

TEST(passes__casts_to_the_same_dtype_are_bypassed)
{
    pass_case m = pass_case_start();
    value_id x = pass_case_input(&m, "x", 1, (int64_t[]){3});
    value_id a = pass_case_node(&m, "Cast", 1, &x, "a");
    assert_ok(node_set_int(m.graph, pass_case_last(&m), "to", CLG_FLOAT32));
    value_id b = pass_case_node(&m, "Relu", 1, &a, "b"), c = pass_case_node(&m, "Cast", 1, &b, "c");
    assert_ok(node_set_int(m.graph, pass_case_last(&m), "to", CLG_INT32));
    graph *g = pass_case_run_only(&m, c, "identity");
    assert_int_equal(pass_case_count(g, "Cast"), 1);
    assert_true(pass_case_find(g, "Relu")->inputs[0] == g->inputs[0]);
    graph_free(g);
}

/* ---- Concat ---------------------------------------------------------------------------------- */

TEST(passes__concat_begins_with_an_earlier_one)
{
    pass_case m = pass_case_start();
    value_id x[4];
    char name[16];
    for (int i = 0; i < 4; i++) {
        (void)snprintf(name, sizeof name, "x%d", i);
        x[i] = pass_case_input(&m, name, 1, (int64_t[]){3});
    }
    value_id two = pass_case_node(&m, "Concat", 2, x, "two"),
             three = pass_case_node(&m, "Concat", 3, x, "three"),
             other = pass_case_node(&m, "Concat", 2, x + 1, "other"),
             four = pass_case_node(&m, "Concat", 4, x, "four");
    const value_id all[] = {two, three, other, four};
    for (int i = 0; i < 4; i++) assert_ok(node_set_int(m.graph, (node_id)i, "axis", 0));
    value_id joined = pass_case_node(&m, "Concat", 4, all, "joined");
    assert_ok(node_set_int(m.graph, 4, "axis", 0));
    graph *g = pass_case_run(&m, joined, NULL, 0);
    assert_int_equal(g->nodes[0].n_inputs, 2);
    assert_int_equal(g->nodes[1].n_inputs, 2);
    assert_int_equal(g->nodes[1].inputs[0], g->nodes[0].outputs[0]);
    assert_int_equal(g->nodes[1].inputs[1], g->inputs[2]);
    assert_int_equal(g->nodes[2].inputs[0], g->inputs[1]);
    assert_int_equal(g->nodes[3].n_inputs, 2);
    assert_int_equal(g->nodes[3].inputs[0], g->nodes[1].outputs[0]);
    assert_int_equal(g->nodes[3].inputs[1], g->inputs[3]);
    graph_free(g);
}

/* ---- BatchNormalization ---------------------------------------------------------------------- */

TEST(passes__batchnorm_goes_into_conv)
{
    pass_case m = pass_case_start();
    graph *g = pass_case_run(&m, add_norm(&m, add_conv(&m), 6), NULL, 0);
    assert_int_equal(pass_case_count(g, "BatchNormalization"), 0);
    const node *conv = pass_case_find(g, "FusedConv");
    assert_non_null(conv);
    assert_int_equal(conv->n_inputs, 3);
    assert_string_equal(g->values[conv->outputs[0]].name, "norm");
    graph_free(g);
}

/* Of a ConvTranspose the second dimension of the weight is that of output channels. */
TEST(passes__batchnorm_goes_into_convtranspose)
{
    for (int64_t groups = 1; groups <= 2; groups++) {
        pass_case m = pass_case_start();
        const value_id x = pass_case_input(&m, "x", 4, (int64_t[]){1, 4, 5, 5});
        const value_id w = pass_case_constant(&m, "w", 4, (int64_t[]){4, 6 / groups, 3, 3});
        const value_id y = pass_case_node(&m, "ConvTranspose", 2, (value_id[]){x, w}, "y");
        assert_ok(node_set_int(m.graph, pass_case_last(&m), "group", groups));
        graph *g = pass_case_run_only(&m, add_norm(&m, y, 6), "batchnorm");
        const node *n = pass_case_find(g, "ConvTranspose");
        assert_int_equal(n->n_inputs, groups == 1 ? 3 : 2);
        assert_string_equal(g->values[n->outputs[0]].name, groups == 1 ? "norm" : "y");
        graph_free(g);
    }
}

/* ---- ConvTranspose of one pixel -------------------------------------------------------------- */

TEST(passes__convtranspose_of_one_pixel_is_gemm)
{
    const struct {
        int64_t side, pad, dilation, group;
        const char *auto_pad;
        bool is_gemm;
    } rows[] = {{1, 0, 1, 1, "VALID", true},  {1, 0, 1, 1, "SAME_UPPER", false},
                {2, 0, 1, 1, "VALID", false}, {1, 1, 1, 1, "NOTSET", false},
                {1, 0, 2, 1, "VALID", false}, {1, 0, 1, 2, "VALID", false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const int64_t pad = rows[i].pad, dilation = rows[i].dilation;
        pass_case m = pass_case_start();
        const value_id x = pass_case_input(&m, "x", 4, (int64_t[]){-1, 4, rows[i].side, 1});
        const value_id w = pass_case_constant(&m, "w", 4, (int64_t[]){4, 6 / rows[i].group, 3, 5});
        const value_id bias = pass_case_constant(&m, "bias", 1, (int64_t[]){6});
        const value_id y = pass_case_node(&m, "ConvTranspose", 3, (value_id[]){x, w, bias}, "y");
        const node_id n = pass_case_last(&m);
        assert_ok(node_set_int(m.graph, n, "group", rows[i].group));
        assert_ok(node_set_string(m.graph, n, "auto_pad", rows[i].auto_pad));
        assert_ok(node_set_ints(m.graph, n, "pads", 4, (int64_t[]){pad, pad, pad, pad}));
        assert_ok(node_set_ints(m.graph, n, "dilations", 2, (int64_t[]){dilation, 1}));
        graph *g = pass_case_run_only(&m, y, "one_pixel");
        assert_int_equal(pass_case_count(g, "Gemm"), rows[i].is_gemm);
        assert_int_equal(pass_case_count(g, "ConvTranspose"), !rows[i].is_gemm);
        assert_string_equal(g->values[g->outputs[0]].name, "y");
        graph_free(g);
    }
}

TEST(passes__batchnorm_stays_apart_when_conv_is_read_twice)
{
    pass_case m = pass_case_start();
    value_id conv = add_conv(&m), norm = add_norm(&m, conv, 6);
    value_id sum = pass_case_node(&m, "Add", 2, (value_id[]){conv, norm}, "sum");
    graph *g = pass_case_run(&m, sum, NULL, 0);
    assert_int_equal(pass_case_find(g, "FusedConv")->n_inputs, 2);
    assert_int_equal(pass_case_count(g, "Pointwise"), 1);
    graph_free(g);
}

TEST(passes__batchnorm_stays_apart_when_its_input_is_an_output)
{
    pass_case m = pass_case_start();
    value_id conv = add_conv(&m), norm = add_norm(&m, conv, 6);
    assert_ok(graph_add_output(m.graph, conv));
    graph *g = pass_case_run(&m, norm, NULL, 0);
    assert_int_equal(pass_case_find(g, "FusedConv")->n_inputs, 2);
    assert_int_equal(pass_case_count(g, "BatchNormalization"), 0);
    assert_int_equal(pass_case_count(g, "Pointwise"), 1);
    graph_free(g);
}

/* ---- pointwise groups ------------------------------------------------------------------------ */

/* a = Exp(x), y = Neg(a) * Neg(a), where `is_read` adds z = Abs(a). */
static graph *group_of_two(int64_t n, bool is_read)
{
    pass_case m = pass_case_start();
    value_id x = pass_case_input(&m, "x", 1, &n);
    value_id a = pass_case_node(&m, "Exp", 1, &x, "a");
    value_id b = pass_case_node(&m, "Neg", 1, &a, "b");
    value_id y = pass_case_node(&m, "Mul", 2, (value_id[]){b, b}, "y");
    assert_ok(graph_add_output(m.graph, a));
    if (is_read) assert_ok(graph_add_output(m.graph, pass_case_node(&m, "Softmax", 1, &a, "z")));
    return pass_case_run_only(&m, y, "pointwise");
}

TEST(passes__a_group_has_the_outputs_of_the_graph)
{
    graph *g = group_of_two(7, false);
    assert_int_equal(g->n_nodes, 1);
    const node *fused = pass_case_find(g, "Pointwise");
    assert_int_equal(fused->n_outputs, 2);
    assert_string_equal(g->values[fused->outputs[0]].name, "y");
    assert_string_equal(g->values[fused->outputs[1]].name, "a");
    graph_free(g);
}

/* Outside of the group; or of a shape that may differ from the group's. */
TEST(passes__a_group_has_no_output_that_others_read_or_may_not_fit)
{
    for (int is_read = 0; is_read < 2; is_read++) {
        graph *g = group_of_two(is_read ? 7 : -1, is_read);
        assert_int_equal(pass_case_count(g, "Exp"), 1);
        assert_int_equal(pass_case_find(g, "Pointwise")->n_outputs, 1);
        graph_free(g);
    }
}

TEST(passes__a_disabled_pass_does_nothing)
{
    pass_case m = pass_case_start();
    const char *const off[] = {"batchnorm"};
    graph *g = pass_case_run(&m, add_norm(&m, add_conv(&m), 6), off, 1);
    assert_int_equal(pass_case_count(g, "BatchNormalization"), 1);
    graph_free(g);
}

TEST(passes__an_unknown_name_is_refused)
{
    pass_case m = pass_case_start();
    const char *const off[] = {"batchnorms"};
    pass_options options = {.kernel_class = CLG_KERNELS_SIMD, .disabled = {off, 1}};
    graph *g;
    assert_error(passes_run(m.graph, &options, &g), CLG_ERROR_INVALID_ARGUMENT, "batchnorms");
    assert_null(g);
    graph_free(m.graph);
}

/* ---- epilogues ------------------------------------------------------------------------------- */

TEST(passes__matmul_takes_bias_and_activation)
{
    pass_case m = pass_case_start();
    value_id x = pass_case_input(&m, "x", 3, (int64_t[]){-1, 5, 4}),
             w = pass_case_constant(&m, "w", 2, (int64_t[]){4, 6});
    value_id b = pass_case_constant(&m, "b", 1, (int64_t[]){6});
    value_id y = pass_case_node(&m, "MatMul", 2, (value_id[]){x, w}, "y");
    value_id z = pass_case_node(&m, "Add", 2, (value_id[]){b, y}, "z");
    value_id r = pass_case_node(&m, "Relu", 1, &z, "r");
    graph *g = pass_case_run(&m, r, NULL, 0);
    assert_int_equal(g->n_nodes, 1);
    const node *fused = pass_case_find(g, "FusedMatMul");
    assert_non_null(fused);
    assert_string_equal(fused->domain, "clgraph");
    assert_string_equal(node_string(fused, "activation", ""), "Relu");
    assert_int_equal(fused->n_inputs, 3);
    graph_free(g);
}

TEST(passes__a_bias_of_another_shape_is_not_a_bias)
{
    pass_case m = pass_case_start();
    value_id x = pass_case_input(&m, "x", 2, (int64_t[]){5, 4}),
             w = pass_case_constant(&m, "w", 2, (int64_t[]){4, 6});
    value_id b = pass_case_constant(&m, "b", 2, (int64_t[]){5, 1});
    value_id y = pass_case_node(&m, "MatMul", 2, (value_id[]){x, w}, "y");
    graph *g = pass_case_run(&m, pass_case_node(&m, "Add", 2, (value_id[]){y, b}, "z"), NULL, 0);
    assert_int_equal(pass_case_count(g, "Add"), 1);
    assert_int_equal(pass_case_count(g, "MatMul"), 1);
    graph_free(g);
}

TEST(passes__conv_takes_a_channel_bias_residual_and_relu)
{
    pass_case m = pass_case_start();
    value_id conv = add_conv(&m), other = pass_case_input(&m, "other", 4, (int64_t[]){2, 6, 6, 6});
    value_id bias = pass_case_constant(&m, "bias", 3, (int64_t[]){6, 1, 1});
    value_id a = pass_case_node(&m, "Add", 2, (value_id[]){conv, bias}, "a");
    value_id b = pass_case_node(&m, "Add", 2, (value_id[]){other, a}, "b");
    value_id r = pass_case_node(&m, "Relu", 1, &b, "r");
    graph *g = pass_case_run(&m, r, NULL, 0);
    const node *fused = pass_case_find(g, "FusedConv");
    assert_non_null(fused);
    assert_int_equal(fused->n_inputs, 4);
    assert_int_equal(pass_case_count(g, "Add"), 0);
    assert_int_equal(pass_case_count(g, "Relu"), 0);
    graph_free(g);
}

/* Runs Where(y > z, result, other) with what `wrong` says. */
typedef enum wrong_mask { MASK_RIGHT, MASK_BROADCASTS, MASK_OF_ONE, MASK_OTHER_ONE } wrong_mask;

static graph *run_mask(const char *op, wrong_mask wrong)
{
    pass_case m = pass_case_start();
    const bool is_conv = strcmp(op, "Conv") == 0;
    const size_t rank = is_conv ? 4 : 2;
    const int64_t rows = wrong == MASK_BROADCASTS ? 1 : 5;
    const value_id x = pass_case_input(&m, "x", rank, (int64_t[]){5, 4, 3, 3}),
                   w = pass_case_constant(&m, "w", rank,
                                          is_conv ? (int64_t[]){6, 4, 1, 1} : (int64_t[]){4, 6}),
                   y = pass_case_input(&m, "y", rank, (int64_t[]){rows, 6, 3, 3});
    value_id zero, one;
    assert_ok(graph_add_number(m.graph, CLG_FLOAT32, 0, &zero));
    assert_ok(graph_add_number(m.graph, CLG_FLOAT32, 1, &one));
    const value_id result = pass_case_node(&m, op, 2, (value_id[]){x, w}, "result");
    const value_id is_positive = pass_case_node(
        &m, "Greater", 2, (value_id[]){y, wrong == MASK_OF_ONE ? one : zero}, "positive");
    const value_id inputs[] = {is_positive, result, wrong == MASK_OTHER_ONE ? one : zero};
    return pass_case_run_only(&m, pass_case_node(&m, "Where", 3, inputs, "masked"), "epilogue");
}

TEST(passes__matmul_and_gemm_take_the_gradient_of_relu)
{
    static const struct {
        const char *op, *fused;
    } ops[] = {{"MatMul", "FusedMatMul"}, {"Gemm", "FusedGemm"}};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        for (wrong_mask wrong = MASK_RIGHT; wrong <= MASK_OTHER_ONE; wrong++) {
            graph *g = run_mask(ops[i].op, wrong);
            const node *fused = pass_case_find(g, ops[i].fused);
            assert_int_equal(fused != NULL, wrong == MASK_RIGHT);
            assert_int_equal(pass_case_count(g, "Where"), wrong != MASK_RIGHT);
            if (fused) assert_int_equal(node_int(fused, "residual_mask", 0), 1);
            if (fused) assert_int_equal(fused->n_inputs, 4);
            graph_free(g);
        }
    graph *g = run_mask("Conv", MASK_RIGHT);
    assert_int_equal(pass_case_count(g, "Where"), 1);
    graph_free(g);
}

TEST(passes__a_residual_that_broadcasts_stays)
{
    pass_case m = pass_case_start();
    value_id conv = add_conv(&m), other = pass_case_input(&m, "other", 4, (int64_t[]){2, 6, 1, 1});
    graph *g =
        pass_case_run(&m, pass_case_node(&m, "Add", 2, (value_id[]){conv, other}, "b"), NULL, 0);
    assert_int_equal(pass_case_count(g, "Add"), 1);
    graph_free(g);
}

/* Checks the fusion of residual additions when the batch is unknown: a residual derived from the
 * same input has the same batch and is fused; another one may be broadcast and is not. */
TEST(passes__a_residual_of_any_batch)
{
    for (int same = 0; same < 2; same++) {
        pass_case m = pass_case_start();
        const int64_t dims[] = {-1, 6, 8, 8};
        const value_id x = pass_case_input(&m, "x", 4, dims), z = pass_case_input(&m, "z", 4, dims),
                       w = pass_case_constant(&m, "w", 4, (int64_t[]){6, 6, 1, 1}),
                       by_channel = pass_case_constant(&m, "c", 3, (int64_t[]){6, 1, 1});
        const value_id conv = pass_case_node(&m, "Conv", 2, (value_id[]){x, w}, "conv");
        const value_id from = same ? x : z;
        const value_id relu = pass_case_node(&m, "Relu", 1, &from, "relu");
        const value_id scaled = pass_case_node(&m, "Mul", 2, (value_id[]){relu, by_channel}, "s");
        const value_id both = pass_case_node(&m, "Concat", 2, (value_id[]){scaled, scaled}, "both");
        assert_ok(node_set_int(m.graph, pass_case_last(&m), "axis", 1));
        const value_id v = pass_case_constant(&m, "v", 4, (int64_t[]){6, 12, 1, 1});
        const value_id other = pass_case_node(&m, "Conv", 2, (value_id[]){both, v}, "other");
        const value_id add = pass_case_node(&m, "Add", 2, (value_id[]){conv, other}, "add");
        graph *g = pass_case_run_only(&m, add, "epilogue");
        assert_int_equal(pass_case_count(g, "Add"), !same);
        assert_int_equal(pass_case_count(g, "FusedConv"), same);
        graph_free(g);
    }
}

TEST(passes__clip_bounds_come_from_constants_only)
{
    pass_case m = pass_case_start();
    value_id conv = add_conv(&m), low = pass_case_constant(&m, "low", 0, NULL),
             high = pass_case_input(&m, "high", 0, NULL);
    graph *g = pass_case_run(&m, pass_case_node(&m, "Clip", 3, (value_id[]){conv, low, high}, "c"),
                             NULL, 0);
    assert_int_equal(pass_case_count(g, "Clip"), 1);
    graph_free(g);
    m = pass_case_start();
    conv = add_conv(&m);
    low = pass_case_constant(&m, "low", 0, NULL);
    g = pass_case_run(&m, pass_case_node(&m, "Clip", 2, (value_id[]){conv, low}, "c"), NULL, 0);
    assert_int_equal(pass_case_count(g, "Clip"), 0);
    assert_true(node_float(pass_case_find(g, "FusedConv"), "activation_alpha", 0) == 1.0f);
    graph_free(g);
}

/* ---- Winograd's filtering -------------------------------------------------------------------- */

TEST(passes__only_plain_3x3_convolutions_may_be_filtered)
{
    const char *const off[] = {"winograd"};
    for (int i = 0; i < 3; i++) {
        pass_case m = pass_case_start();
        value_id y = add_conv(&m);
        if (i == 2)
            assert_ok(node_set_ints(m.graph, (node_id)(m.graph->n_nodes - 1), "strides", 2,
                                    (int64_t[]){1, 2}));
        graph *g = pass_case_run(&m, y, off, i == 1);
        assert_int_equal(pass_case_count(g, "FusedConv"), i == 0);
        if (i == 0) assert_int_equal(node_int(pass_case_find(g, "FusedConv"), "winograd", 0), 1);
        graph_free(g);
    }
}

TEST(passes__convolutions_with_weights_that_change_may_be_filtered)
{
    pass_case m = pass_case_start();
    const value_id in[] = {pass_case_input(&m, "x", 4, (int64_t[]){2, 4, 8, 8}),
                           pass_case_input(&m, "w", 4, (int64_t[]){6, 4, 3, 3})};
    graph *g = pass_case_run_only(&m, pass_case_node(&m, "Conv", 2, in, "conv"), "winograd");
    const node *filtered = pass_case_find(g, "FusedConv");
    assert_non_null(filtered);
    assert_int_equal(node_int(filtered, "winograd", 0), 1);
    graph_free(g);
}

TEST(passes__convolutions_of_stride_2_may_be_filtered)
{
    static const struct {
        int64_t window[2], strides[2];
        bool may;
    } cases[] = {{{7, 7}, {2, 2}, true},  {{5, 6}, {2, 2}, true}, {{7, 7}, {1, 1}, false},
                 {{7, 7}, {2, 1}, false}, {{3, 3}, {2, 2}, true}, {{7, 9}, {2, 2}, false},
                 {{3, 5}, {2, 2}, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pass_case m = pass_case_start();
        const int64_t *window = cases[i].window;
        const value_id in[] = {
            pass_case_input(&m, "x", 4, (int64_t[]){2, 3, 32, 32}),
            pass_case_constant(&m, "w", 4, (int64_t[]){6, 3, window[0], window[1]})};
        const value_id y = pass_case_node(&m, "Conv", 2, in, "conv");
        assert_ok(node_set_ints(m.graph, pass_case_last(&m), "strides", 2, cases[i].strides));
        graph *g = pass_case_run_only(&m, y, "winograd");
        assert_int_equal(pass_case_count(g, "FusedConv"), cases[i].may);
        graph_free(g);
    }
}

TEST(passes__data_gradients_may_be_filtered)
{
    pass_case m = pass_case_start();
    const value_id in[] = {pass_case_input(&m, "g", 4, (int64_t[]){2, 6, 6, 6}),
                           pass_case_input(&m, "w", 4, (int64_t[]){6, 4, 3, 3}),
                           pass_case_ints(&m, "d", 4, (int64_t[]){2, 4, 8, 8})};
    const value_id dx = pass_case_node(&m, "ConvDataGrad", 3, in, "dx");
    node *n = &m.graph->nodes[pass_case_last(&m)];
    n->domain = DOMAIN_INTERNAL;
    n->opset = graph_opset(m.graph, DOMAIN_INTERNAL);
    graph *g = pass_case_run_only(&m, dx, "winograd");
    const node *filtered = pass_case_find(g, "ConvDataGrad");
    assert_non_null(filtered);
    assert_int_equal(node_int(filtered, "winograd", 0), 1);
    graph_free(g);
}

static value_id as_half(pass_case *m, value_id x, const char *out)
{
    const value_id y = pass_case_node(m, "Cast", 1, &x, out);
    assert_ok(node_set_int(m->graph, pass_case_last(m), "to", CLG_FLOAT16));
    return y;
}

TEST(passes__convolutions_of_float16_may_be_filtered)
{
    pass_case m = pass_case_start();
    const value_id x = pass_case_input(&m, "x", 4, (int64_t[]){2, 4, 8, 8}),
                   w = pass_case_constant(&m, "w", 4, (int64_t[]){6, 4, 3, 3}),
                   in[] = {as_half(&m, x, "x16"), as_half(&m, w, "w16")};
    graph *g = pass_case_run_only(&m, pass_case_node(&m, "Conv", 2, in, "conv"), "winograd");
    const node *filtered = pass_case_find(g, "FusedConv");
    assert_non_null(filtered);
    assert_int_equal(node_int(filtered, "winograd", 0), 1);
    graph_free(g);
}
