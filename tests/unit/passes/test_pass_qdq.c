/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests the passes for DequantizeLinear and QuantizeLinear: names of values, values with several
 * consumers, and graphs that must not change. tests/ops/quant/test_qdq.c compares results on
 * devices.
 */
#include "support/cases/pass_case.h"

#include <math.h>
#include <string.h>

#define SIDE 6 /* height and width of x [1,4,6,6] */

static value_id add_constant(pass_case *m, clg_dtype dtype, int rank, int64_t side, double number)
{
    shape dims = {.rank = rank};
    tensor *t;
    value_id v;
    for (int i = 0; i < rank; i++) dims.dims[i] = side;
    assert_ok(tensor_create(dtype, &dims, &t));
    for (int64_t i = 0; i < t->n_elements; i++) tensor_set_float(t, i, number);
    assert_ok(graph_add_constant(m->graph, "", t, &v));
    tensor_free(t);
    return v;
}

static value_id add_input(pass_case *m, const char *name, clg_dtype dtype, int rank, int64_t side)
{
    const int64_t dims[] = {1, 4, side, side};
    const value_id v = pass_case_input(m, name, (size_t)rank, dims + 4 - rank);
    m->graph->values[v].dtype = dtype;
    return v;
}

/* Adds QuantizeLinear or DequantizeLinear with one scale, and a zero point of 3. */
static value_id quantize(pass_case *m, const char *op, value_id x, clg_dtype dtype, double scale,
                         const char *out)
{
    const value_id in[3] = {x, add_constant(m, CLG_FLOAT32, 0, 1, scale),
                            add_constant(m, dtype, 0, 1, 3)};
    return pass_case_node(m, op, 3, in, out);
}

#define DOWN(m, x, scale, out) quantize(m, "DequantizeLinear", x, CLG_UINT8, scale, out)
#define UP(m, x, scale, out) quantize(m, "QuantizeLinear", x, CLG_UINT8, scale, out)

/* Adds "conv", a Conv of `reals` with constant, dequantised 4x4x4x4 weights. */
static value_id add_conv(pass_case *m, value_id reals)
{
    const value_id w =
        quantize(m, "DequantizeLinear", add_constant(m, CLG_INT8, 4, 4, 2), CLG_INT8, 0.25, "w");
    return pass_case_node(m, "Conv", 2, (value_id[]){reals, w}, "conv");
}

TEST(qdq__keeps_names)
{
    pass_case m = pass_case_start();
    const value_id x = add_input(&m, "x", CLG_UINT8, 4, SIDE);
    graph *g =
        pass_case_run_only(&m, UP(&m, add_conv(&m, DOWN(&m, x, 0.5, "r")), 0.75, "y"), "qdq");
    assert_int_equal(g->n_nodes, 1);
    assert_string_equal(g->nodes[0].op_type, "QLinearConv");
    assert_string_equal(g->nodes[0].label, "Conv");
    assert_string_equal(g->values[g->nodes[0].outputs[0]].name, "y");
    assert_int_equal(g->nodes[0].inputs[0], g->inputs[0]);
    graph_free(g);
}

TEST(qdq__values_that_others_read_stay)
{
    pass_case m = pass_case_start();
    const value_id x = add_input(&m, "x", CLG_UINT8, 4, SIDE), r = DOWN(&m, x, 0.5, "r");
    const value_id y = UP(&m, add_conv(&m, r), 0.75, "y");
    assert_ok(graph_add_output(m.graph, pass_case_node(&m, "Softmax", 1, &r, "s")));
    graph *g = pass_case_run_only(&m, y, "qdq");
    assert_int_equal(pass_case_count(g, "QLinearConv"), 1);
    assert_int_equal(pass_case_count(g, "DequantizeLinear"), 1);
    graph_free(g);
    /* The float output of Conv has a further consumer: the integer sums are scaled to floats for
     * both. */
    m = pass_case_start();
    const value_id c = add_conv(&m, DOWN(&m, add_input(&m, "x", CLG_UINT8, 4, SIDE), 0.5, "r"));
    assert_ok(graph_add_output(m.graph, c));
    g = pass_case_run_only(&m, UP(&m, c, 0.75, "y"), "qdq");
    assert_int_equal(pass_case_count(g, "ConvInteger"), 1);
    assert_int_equal(pass_case_count(g, "QuantizeLinear"), 1);
    assert_int_equal(pass_case_count(g, "Conv"), 0);
    graph_free(g);
}

TEST(qdq__an_output_that_is_an_input_again)
{
    pass_case m = pass_case_start();
    const value_id x = add_input(&m, "x", CLG_UINT8, 4, SIDE);
    graph *g = pass_case_run_only(&m, UP(&m, DOWN(&m, x, 0.5, "r"), 0.5, "y"), "qdq");
    assert_int_equal(g->n_nodes, 1);
    assert_string_equal(g->nodes[0].op_type, "Identity");
    assert_string_equal(g->values[g->outputs[0]].name, "y");
    graph_free(g);
}

TEST(qdq__scales_that_are_none)
{
    static const double scales[] = {0, -0.5, 1e-30, 1e30, INFINITY, NAN};
    for (size_t i = 0; i < sizeof scales / sizeof *scales; i++) {
        pass_case m = pass_case_start();
        const value_id x = add_input(&m, "x", CLG_UINT8, 4, SIDE);
        graph *g = pass_case_run_only(
            &m, UP(&m, add_conv(&m, DOWN(&m, x, scales[i], "r")), 0.75, "y"), "qdq");
        assert_int_equal(pass_case_count(g, "Conv"), 1);
        assert_int_equal(pass_case_count(g, "DequantizeLinear"), 2);
        graph_free(g);
    }
}

TEST(qdq__scales_that_are_computed)
{
    pass_case m = pass_case_start();
    const value_id x = add_input(&m, "x", CLG_UINT8, 4, SIDE),
                   scale = pass_case_input(&m, "scale", 0, NULL),
                   r = pass_case_node(&m, "DequantizeLinear", 2, (value_id[]){x, scale}, "r");
    graph *g = pass_case_run_only(&m, UP(&m, add_conv(&m, r), 0.75, "y"), "qdq");
    assert_int_equal(pass_case_count(g, "Conv"), 1);
    graph_free(g);
}

/* Checks that a MatMul whose inner dimension is unknown is not converted to integer arithmetic. */
TEST(qdq__sums_of_unknown_length)
{
    for (int known = 0; known < 2; known++) {
        pass_case m = pass_case_start();
        const value_id a = DOWN(&m, add_input(&m, "a", CLG_UINT8, 2, known ? SIDE : -1), 0.5, "ra"),
                       b = DOWN(&m, add_input(&m, "b", CLG_UINT8, 2, known ? SIDE : -1), 0.5, "rb");
        const value_id y = pass_case_node(&m, "MatMul", 2, (value_id[]){a, b}, "product");
        graph *g = pass_case_run_only(&m, UP(&m, y, 0.75, "y"), "qdq");
        assert_int_equal(pass_case_count(g, "MatMul"), !known);
        assert_int_equal(pass_case_count(g, "QLinearMatMul"), known);
        graph_free(g);
    }
}

/* Checks that the nodes of a LayerNormalization of a dequantised value are still recognised: they
 * use the value several times, so DequantizeLinear must not be duplicated before. */
TEST(qdq__layer_normalization_is_still_known)
{
    pass_case m = pass_case_start();
    const int64_t last = -1;
    const value_id x = DOWN(&m, add_input(&m, "x", CLG_UINT8, 4, SIDE), 0.5, "r"),
                   two = add_constant(&m, CLG_FLOAT32, 0, 1, 2),
                   epsilon = add_constant(&m, CLG_FLOAT32, 0, 1, 1e-5);
    value_id mean = pass_case_node(&m, "ReduceMean", 1, &x, "mean");
    assert_ok(node_set_ints(m.graph, pass_case_last(&m), "axes", 1, &last));
    const value_id d = pass_case_node(&m, "Sub", 2, (value_id[]){x, mean}, "d");
    value_id v = pass_case_node(&m, "Pow", 2, (value_id[]){d, two}, "squares");
    v = pass_case_node(&m, "ReduceMean", 1, &v, "variance");
    assert_ok(node_set_ints(m.graph, pass_case_last(&m), "axes", 1, &last));
    v = pass_case_node(&m, "Add", 2, (value_id[]){v, epsilon}, "sum");
    v = pass_case_node(&m, "Sqrt", 1, &v, "deviation");
    v = pass_case_node(&m, "Div", 2, (value_id[]){d, v}, "normal");
    graph *g = pass_case_run(&m, UP(&m, v, 0.01, "y"), NULL, 0);
    assert_int_equal(pass_case_count(g, "LayerNormalization"), 1);
    assert_int_equal(pass_case_count(g, "DequantizeLinear") + pass_case_count(g, "QuantizeLinear"),
                     0);
    graph_free(g);
}

/* Checks that each consumer of a dequantised value gets its own DequantizeLinear, so that both
 * fused chains read bytes. */
TEST(qdq__chains_read_bytes)
{
    pass_case m = pass_case_start();
    const value_id r = DOWN(&m, add_input(&m, "x", CLG_UINT8, 4, SIDE), 0.5, "r");
    value_id a = pass_case_node(&m, "Exp", 1, &r, "a"), b = pass_case_node(&m, "Tanh", 1, &r, "b");
    assert_ok(graph_add_output(m.graph, UP(&m, a, 0.25, "qa")));
    graph *g = pass_case_run(&m, UP(&m, b, 0.01, "qb"), NULL, 0);
    assert_int_equal(g->n_nodes, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_string_equal(g->nodes[i].op_type, "Pointwise");
        assert_int_equal(g->nodes[i].n_inputs, 1);
        assert_int_equal(g->nodes[i].inputs[0], g->inputs[0]);
    }
    graph_free(g);
}
