/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests the pass `nbits`: names, weights with several readers, and graphs that it must not change.
 * tests/ops/quant/test_nbits_qdq.c compares results on devices.
 */
#include "support/cases/pass_case.h"

#include <string.h>

#define K 32
#define N 8

static value_id add_constant(pass_case *m, clg_dtype dtype, int rank, const int64_t *dims)
{
    shape s;
    tensor *t;
    value_id v;
    assert_ok(shape_make((size_t)rank, dims, &s));
    assert_ok(tensor_create(dtype, &s, &t));
    for (int64_t i = 0; i < t->n_elements; i++) tensor_set_float(t, i, (double)(i % 7));
    assert_ok(graph_add_constant(m->graph, "", t, &v));
    tensor_free(t);
    return v;
}

/* Starts a case of opset 21 with weights int4 [K,N] in blocks of 16, dequantised as "w". */
static pass_case start(clg_dtype scale, value_id *out_weights)
{
    pass_case m = pass_case_start();
    assert_ok(graph_set_opset(m.graph, "", 21));
    const value_id in[2] = {add_constant(&m, CLG_INT4, 2, (int64_t[]){K, N}),
                            add_constant(&m, scale, 2, (int64_t[]){K / 16, N})};
    *out_weights = pass_case_node(&m, "DequantizeLinear", 2, in, "w");
    assert_ok(node_set_int(m.graph, pass_case_last(&m), "axis", 0));
    assert_ok(node_set_int(m.graph, pass_case_last(&m), "block_size", 16));
    return m;
}

static value_id add_input(pass_case *m, const char *name)
{
    return pass_case_input(m, name, 2, (int64_t[]){-1, K});
}

TEST(nbits__keeps_names_and_sizes)
{
    value_id w;
    pass_case m = start(CLG_FLOAT32, &w);
    const value_id in[2] = {add_input(&m, "x"), w};
    graph *g = pass_case_run_only(&m, pass_case_node(&m, "MatMul", 2, in, "y"), "nbits");
    const node *n = pass_case_find(g, "MatMulNBits");
    assert_non_null(n);
    assert_string_equal(n->label, "MatMul");
    assert_string_equal(g->values[n->outputs[0]].name, "y");
    assert_int_equal(node_int(n, "N", 0), N);
    assert_int_equal(node_int(n, "K", 0), K);
    assert_int_equal(node_int(n, "bits", 0), 4);
    assert_int_equal(node_int(n, "block_size", 0), 16);
    assert_int_equal(n->n_inputs, 3); /* zero points in the middle of the range */
    assert_int_equal(pass_case_count(g, "DequantizeLinear"), 0);
    graph_free(g);
}

/* Two products share the packed weights; another reader keeps the dequantised ones. */
TEST(nbits__packs_once)
{
    value_id w;
    pass_case m = start(CLG_FLOAT32, &w);
    const value_id a[2] = {add_input(&m, "x"), w}, b[2] = {add_input(&m, "z"), w};
    assert_ok(graph_add_output(m.graph, pass_case_node(&m, "MatMul", 2, a, "p")));
    assert_ok(graph_add_output(m.graph, pass_case_node(&m, "MatMul", 2, b, "q")));
    graph *g = pass_case_run_only(&m, pass_case_node(&m, "Relu", 1, &w, "y"), "nbits");
    assert_int_equal(pass_case_count(g, "MatMulNBits"), 2);
    assert_int_equal(pass_case_count(g, "PackNBits"), 1);
    assert_int_equal(pass_case_count(g, "DequantizeLinear"), 1);
    graph_free(g);
}

/* A single block that is longer than K does not make the packed weights longer. */
TEST(nbits__long_blocks_are_cut)
{
    pass_case m = pass_case_start();
    assert_ok(graph_set_opset(m.graph, "", 21));
    const value_id in[2] = {add_constant(&m, CLG_INT4, 2, (int64_t[]){K, N}),
                            add_constant(&m, CLG_FLOAT32, 2, (int64_t[]){1, N})};
    const value_id w = pass_case_node(&m, "DequantizeLinear", 2, in, "w");
    assert_ok(node_set_int(m.graph, pass_case_last(&m), "axis", 0));
    assert_ok(node_set_int(m.graph, pass_case_last(&m), "block_size", 1 << 30));
    const value_id product[2] = {add_input(&m, "x"), w};
    graph *g = pass_case_run_only(&m, pass_case_node(&m, "MatMul", 2, product, "y"), "nbits");
    const node *n = pass_case_find(g, "MatMulNBits"), *packed = pass_case_find(g, "PackNBits");
    assert_non_null(n);
    assert_non_null(packed);
    assert_int_equal(node_int(n, "block_size", 0), K);
    assert_int_equal(node_int(packed, "length", 0), K);
    graph_free(g);
}

static void expect_none(pass_case *m, const char *op, size_t n, const value_id *inputs)
{
    graph *g = pass_case_run_only(m, pass_case_node(m, op, n, inputs, "y"), "nbits");
    assert_int_equal(pass_case_count(g, "MatMulNBits"), 0);
    assert_int_equal(pass_case_count(g, "PackNBits"), 0);
    assert_int_equal(pass_case_count(g, "DequantizeLinear"), 1);
    graph_free(g);
}

TEST(nbits__leaves_weights_on_the_left)
{
    value_id w;
    pass_case m = start(CLG_FLOAT32, &w);
    expect_none(&m, "MatMul", 2, (value_id[]){w, pass_case_input(&m, "x", 2, (int64_t[]){N, -1})});
}

TEST(nbits__leaves_other_dtypes)
{
    value_id w;
    pass_case m = start(CLG_FLOAT16, &w); /* float16 weights: MatMul of float16 */
    const value_id x = add_input(&m, "x");
    m.graph->values[x].dtype = CLG_FLOAT16;
    graph *g =
        pass_case_run_only(&m, pass_case_node(&m, "MatMul", 2, (value_id[]){x, w}, "y"), "nbits");
    assert_int_equal(pass_case_count(g, "MatMulNBits"), 1);
    graph_free(g);
    m = start(CLG_BFLOAT16, &w);
    const value_id z = add_input(&m, "x");
    m.graph->values[z].dtype = CLG_BFLOAT16;
    expect_none(&m, "MatMul", 2, (value_id[]){z, w});
}

/* Gemm with another alpha, and with a C that is not a row. */
TEST(nbits__leaves_gemm_that_scales)
{
    for (int i = 0; i < 2; i++) {
        value_id w;
        pass_case m = start(CLG_FLOAT32, &w);
        const value_id in[3] = {add_input(&m, "x"), w,
                                pass_case_constant(&m, "c", 2, (int64_t[]){1, N})};
        const value_id y = pass_case_node(&m, "Gemm", i == 0 ? 2 : 3, in, "y");
        if (i == 0) assert_ok(node_set_float(m.graph, pass_case_last(&m), "alpha", 2.0f));
        graph *g = pass_case_run_only(&m, y, "nbits");
        assert_int_equal(pass_case_count(g, "Gemm"), 1);
        graph_free(g);
    }
}

/* Weights that are an input of the graph. */
TEST(nbits__leaves_weights_that_vary)
{
    pass_case m = pass_case_start();
    assert_ok(graph_set_opset(m.graph, "", 21));
    const value_id q = pass_case_input(&m, "q", 2, (int64_t[]){K, N});
    m.graph->values[q].dtype = CLG_INT8;
    const value_id in[2] = {q, add_constant(&m, CLG_FLOAT32, 1, (int64_t[]){N})};
    const value_id w = pass_case_node(&m, "DequantizeLinear", 2, in, "w");
    expect_none(&m, "MatMul", 2, (value_id[]){add_input(&m, "x"), w});
}

/* Runs all passes on x w + a constant of shape `dims`; returns the inputs of the MatMulNBits. */
static size_t inputs_with_bias(size_t rank, const int64_t *dims)
{
    value_id w;
    pass_case m = start(CLG_FLOAT32, &w);
    const value_id in[2] = {add_input(&m, "x"), w}, y = pass_case_node(&m, "MatMul", 2, in, "y"),
                   bias = pass_case_constant(&m, "b", rank, dims);
    graph *g = pass_case_run(&m, pass_case_node(&m, "Add", 2, (value_id[]){bias, y}, "z"), NULL, 0);
    const node *n = pass_case_find(g, "MatMulNBits");
    assert_non_null(n);
    const size_t n_inputs = n->n_inputs;
    if (n_inputs == 6) {
        assert_string_equal(g->values[n->outputs[0]].name, "z");
        assert_int_equal(n->inputs[4], VALUE_NONE);
        assert_int_equal(pass_case_count(g, "Add"), 0);
    }
    graph_free(g);
    return n_inputs;
}

/* A row that is added becomes the bias, input 5; a number and a matrix do not. */
TEST(nbits__takes_a_bias)
{
    assert_int_equal(inputs_with_bias(1, (int64_t[]){N}), 6);
    assert_int_equal(inputs_with_bias(2, (int64_t[]){1, N}), 6);
    assert_int_equal(inputs_with_bias(1, (int64_t[]){1}), 3);
    assert_int_equal(inputs_with_bias(2, (int64_t[]){5, N}), 3);
}

/* Adds GatherBlockQuantized of a Reshape of [4,2,8] bytes to `dims`, which has two axes. */
static graph *gather_table(const int64_t dims[2], int64_t out_from[3])
{
    pass_case m = pass_case_start();
    const value_id packed = add_constant(&m, CLG_UINT8, 3, (int64_t[]){4, 2, 8});
    const value_id wanted = pass_case_ints(&m, "dims", 2, dims);
    const value_id table = pass_case_node(&m, "Reshape", 2, (value_id[]){packed, wanted}, "t");
    const value_id ids = pass_case_input(&m, "ids", 1, (int64_t[]){3});
    m.graph->values[ids].dtype = CLG_INT64;
    const value_id scales = add_constant(&m, CLG_FLOAT32, 2, (int64_t[]){dims[0], 8 / dims[0]});
    const value_id y =
        pass_case_node(&m, "GatherBlockQuantized", 3, (value_id[]){table, ids, scales}, "y");
    const node_id n = pass_case_last(&m);
    assert_ok(graph_set_opset(m.graph, "com.microsoft", 1));
    m.graph->nodes[n].domain = "com.microsoft";
    m.graph->nodes[n].opset = 1;
    assert_ok(node_set_int(m.graph, n, "block_size", 16));
    graph *g = pass_case_run_only(&m, y, "nbits");
    const node *gather = pass_case_find(g, "GatherBlockQuantized");
    assert_non_null(gather);
    memcpy(out_from, g->values[gather->inputs[0]].dims.dims, 3 * sizeof *out_from);
    return g;
}

/* The embedding reads the constant of the last MatMulNBits, not a copy; not so where the rows are
 * others. */
TEST(nbits__shares_the_embedding)
{
    int64_t from[3];
    graph *g = gather_table((int64_t[]){4, 16}, from);
    assert_int_equal(pass_case_count(g, "Reshape"), 0);
    assert_int_equal(from[2], 8);
    graph_free(g);
    g = gather_table((int64_t[]){8, 8}, from);
    assert_int_equal(pass_case_count(g, "Reshape"), 1);
    graph_free(g);
}
