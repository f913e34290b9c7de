/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests the pass for precision fp16: which nodes are converted to float16 (matrix products and the
 * nodes after them), and which stay in float32.
 */
#include "support/cases/pass_case.h"

#include <math.h>
#include <string.h>

/* Returns the dtype of the first output of the first node with operator `op`. */
static clg_dtype gives(graph *g, const char *op)
{
    value_fact *facts;
    const node *n = pass_case_find(g, op);
    assert_non_null(n);
    assert_ok(ops_infer_graph(g, NULL, &facts));
    const clg_dtype dtype = facts[n->outputs[0]].dtype;
    ops_facts_free(facts, g->n_values);
    return dtype;
}

static clg_dtype output_dtype(graph *g)
{
    value_fact *facts;
    assert_ok(ops_infer_graph(g, NULL, &facts));
    const clg_dtype dtype = facts[g->outputs[0]].dtype;
    ops_facts_free(facts, g->n_values);
    return dtype;
}

/* Adds a MatMul of x [4,5] and w [5,6]. */
static value_id product(pass_case *m)
{
    const value_id in[] = {pass_case_input(m, "x", 2, (int64_t[]){4, 5}),
                           pass_case_constant(m, "w", 2, (int64_t[]){5, 6})};
    return pass_case_node(m, "MatMul", 2, in, "p");
}

TEST(fp16__begins_with_a_matmul)
{
    pass_case m = pass_case_start();
    graph *g = pass_case_run_fp16(&m, product(&m), NULL);
    assert_int_equal(gives(g, "MatMul"), CLG_FLOAT16);
    assert_int_equal(output_dtype(g), CLG_FLOAT32);
    assert_string_equal(g->values[g->outputs[0]].name, "p");
    assert_int_equal(pass_case_count(g, "Cast"), 3); /* x, w and the product */
    assert_int_equal(pass_case_count(g, "Clip"), 2); /* of x and w, which saturate */
    graph_free(g);
}

TEST(fp16__is_requested)
{
    pass_case m = pass_case_start();
    graph *g = pass_case_run_only(&m, product(&m), "fp16");
    assert_int_equal(gives(g, "MatMul"), CLG_FLOAT32);
    assert_int_equal(g->n_nodes, 1);
    graph_free(g);
}

TEST(fp16__goes_through_what_follows)
{
    pass_case m = pass_case_start();
    value_id y = product(&m), two = pass_case_constant(&m, "two", 1, (int64_t[]){6});
    y = pass_case_node(&m, "Add", 2, (value_id[]){y, two}, "sum");
    y = pass_case_node(&m, "Relu", 1, &y, "r");
    y = pass_case_node(&m, "Transpose", 1, &y, "t");
    y = pass_case_node(&m, "Exp", 1, &y, "e");
    y = pass_case_node(&m, "Neg", 1, &y, "y");
    graph *g = pass_case_run_fp16(&m, y, NULL);
    static const char *const fp16_ops[] = {"MatMul", "Add", "Relu", "Transpose"};
    for (size_t i = 0; i < sizeof fp16_ops / sizeof *fp16_ops; i++)
        assert_int_equal(gives(g, fp16_ops[i]), CLG_FLOAT16);
    assert_int_equal(gives(g, "Exp"), CLG_FLOAT32);
    assert_int_equal(gives(g, "Neg"), CLG_FLOAT32);
    assert_int_equal(pass_case_count(g, "Cast"), 4); /* x, w, two; one before Exp, none between */
    graph_free(g);
}

/* Checks that the sum of a product and a float32 value stays float32, and so do nodes that no GEMM
 * precedes. */
TEST(fp16__does_not_spread_backwards)
{
    pass_case m = pass_case_start();
    value_id other = pass_case_input(&m, "other", 2, (int64_t[]){4, 6});
    other = pass_case_node(&m, "Neg", 1, &other, "n");
    value_id y = pass_case_node(&m, "Add", 2, (value_id[]){product(&m), other}, "y");
    graph *g = pass_case_run_fp16(&m, y, NULL);
    assert_int_equal(gives(g, "MatMul"), CLG_FLOAT16);
    assert_int_equal(gives(g, "Neg"), CLG_FLOAT32);
    assert_int_equal(gives(g, "Add"), CLG_FLOAT32);
    graph_free(g);
}

static clg_dtype of_sum_with(float number)
{
    pass_case m = pass_case_start();
    tensor *t;
    value_id c;
    const shape scalar = shape_scalar();
    assert_ok(tensor_create(CLG_FLOAT32, &scalar, &t));
    tensor_set_float(t, 0, (double)number);
    assert_ok(graph_add_constant(m.graph, "c", t, &c));
    tensor_free(t);
    graph *g = pass_case_run_fp16(
        &m, pass_case_node(&m, "Add", 2, (value_id[]){product(&m), c}, "y"), NULL);
    const clg_dtype dtype = gives(g, "Add");
    graph_free(g);
    return dtype;
}

TEST(fp16__spares_numbers_out_of_range)
{
    assert_int_equal(of_sum_with(0.5f), CLG_FLOAT16);
    assert_int_equal(of_sum_with(0.0f), CLG_FLOAT16);
    assert_int_equal(of_sum_with(-65504.0f), CLG_FLOAT16);
    assert_int_equal(of_sum_with(-INFINITY), CLG_FLOAT16);
    assert_int_equal(of_sum_with(1e-5f), CLG_FLOAT32);
    assert_int_equal(of_sum_with(-3.4e38f), CLG_FLOAT32);
}

TEST(fp16__stays_away_from_names)
{
    static const char *const patterns[] = {"MatMul", "Mat*", "*"};
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        pass_case m = pass_case_start();
        graph *g = pass_case_run_fp16(&m, product(&m), patterns[i]);
        assert_int_equal(gives(g, "MatMul"), CLG_FLOAT32);
        assert_int_equal(g->n_nodes, 1);
        graph_free(g);
    }
    pass_case m = pass_case_start();
    graph *g = pass_case_run_fp16(&m, product(&m), "Conv*");
    assert_int_equal(gives(g, "MatMul"), CLG_FLOAT16);
    graph_free(g);
}

/* Checks that values that depend on constants only are computed in float32 and converted after. */
TEST(fp16__follows_constants)
{
    pass_case m = pass_case_start();
    const value_id a = pass_case_constant(&m, "a", 2, (int64_t[]){5, 5}),
                   w = pass_case_constant(&m, "w", 2, (int64_t[]){5, 6});
    const value_id weights = pass_case_node(&m, "MatMul", 2, (value_id[]){a, w}, "weights");
    value_id x = pass_case_input(&m, "x", 4, (int64_t[]){1, 1, 4, 5});
    x = pass_case_node(&m, "MatMul", 2, (value_id[]){x, weights}, "y");
    graph *g = pass_case_run_fp16(&m, x, NULL);
    size_t n_fp16 = 0, n_wholes = 0;
    value_fact *facts;
    assert_ok(ops_infer_graph(g, NULL, &facts));
    for (size_t i = 0; i < g->n_nodes; i++) {
        if (strcmp(g->nodes[i].op_type, "MatMul") != 0) continue;
        const bool is_half = facts[g->nodes[i].outputs[0]].dtype == CLG_FLOAT16;
        is_half ? n_fp16++ : n_wholes++;
    }
    ops_facts_free(facts, g->n_values);
    assert_int_equal(n_fp16, 1);
    assert_int_equal(n_wholes, 1);
    graph_free(g);
}
