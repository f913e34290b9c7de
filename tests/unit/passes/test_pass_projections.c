/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests the pass that merges MatMuls of one input into one GEMM: which it merges, and which it does
 * not. tests/api/test_pass_patterns.c compares results on devices.
 */
#include "support/cases/pass_case.h"

#include <string.h>

enum { BATCH = 2, PLACES = 5, WIDTH = 8, HEADS = 2 };

static value_id image(pass_case *m, const char *name)
{
    return pass_case_input(m, name, 3, (int64_t[]){BATCH, PLACES, WIDTH});
}

static value_id times(pass_case *m, value_id x, const char *weights, int64_t columns,
                      const char *out)
{
    const value_id w = pass_case_constant(m, weights, 2, (int64_t[]){WIDTH, columns});
    return pass_case_node(m, "MatMul", 2, (value_id[]){x, w}, out);
}

static value_id plus(pass_case *m, value_id x, const char *bias, int64_t columns, const char *out)
{
    const value_id b = pass_case_constant(m, bias, 1, &columns);
    return pass_case_node(m, "Add", 2, (value_id[]){x, b}, out);
}

static value_id attention(pass_case *m, value_id q, value_id k, value_id v)
{
    const value_id y = pass_case_node(m, "Attention", 3, (value_id[]){q, k, v}, "y");
    const node_id n = pass_case_last(m);
    m->graph->nodes[n].opset = 23;
    assert_ok(node_set_int(m->graph, n, "q_num_heads", HEADS));
    assert_ok(node_set_int(m->graph, n, "kv_num_heads", HEADS));
    return y;
}

static const int64_t *parts(const graph *g, size_t n_parts)
{
    const node *split = pass_case_find(g, "Split");
    assert_non_null(split);
    assert_int_equal(split->n_outputs, n_parts);
    const tensor *t = g->values[split->inputs[1]].constant;
    assert_non_null(t);
    assert_int_equal(t->n_elements, n_parts);
    return t->data;
}

TEST(projections__of_one_input_are_one)
{
    pass_case m = pass_case_start();
    const value_id x = image(&m, "x");
    const value_id q = plus(&m, times(&m, x, "wq", 8, "xq"), "bq", 8, "q"),
                   k = plus(&m, times(&m, x, "wk", 8, "xk"), "bk", 8, "k"),
                   v = plus(&m, times(&m, x, "wv", 12, "xv"), "bv", 12, "v");
    graph *g = pass_case_run(&m, attention(&m, q, k, v), NULL, 0);
    assert_int_equal(pass_case_count(g, "FusedMatMul"), 1);
    assert_int_equal(pass_case_count(g, "MatMul"), 0);
    assert_int_equal(pass_case_count(g, "Concat"), 2); /* weights, biases */
    assert_memory_equal(parts(g, 3), ((int64_t[]){8, 8, 12}), 3 * sizeof(int64_t));
    const node *split = pass_case_find(g, "Split"), *read = pass_case_find(g, "Attention");
    assert_memory_equal(read->inputs, split->outputs, 3 * sizeof *read->inputs);
    graph_free(g);
}

/* Checks that keys and values computed from one input are merged although queries come from another
 * input, and although the values pass through a Reshape to a shape computed by their own Shape
 * node. */
TEST(projections__through_reshapes)
{
    pass_case m = pass_case_start();
    const value_id q = times(&m, image(&m, "x"), "wq", 8, "q"), z = image(&m, "z");
    const value_id k = times(&m, z, "wk", 8, "k"), v = times(&m, z, "wv", 8, "v");
    const value_id dims = pass_case_node(&m, "Shape", 1, &v, "dims");
    const value_id same = pass_case_node(&m, "Reshape", 2, (value_id[]){v, dims}, "same");
    graph *g = pass_case_run_only(&m, attention(&m, q, k, same), "projections");
    assert_int_equal(pass_case_count(g, "MatMul"), 2);
    (void)parts(g, 2);
    graph_free(g);
}

/* Returns how many of two MatMuls remain after the pass when `change` is applied to the result of
 * the second one. */
static size_t left_with(value_id (*change)(pass_case *m, value_id x, value_id v))
{
    pass_case m = pass_case_start();
    const value_id x = image(&m, "x");
    const value_id k = times(&m, x, "wk", 8, "k"), v = times(&m, x, "wv", 8, "v");
    const value_id q = image(&m, "q"), changed = change(&m, x, v);
    graph *g = pass_case_run_only(&m, attention(&m, q, k, changed), "projections");
    const size_t n = pass_case_count(g, "MatMul");
    assert_int_equal(pass_case_count(g, "Split"), n == 1);
    graph_free(g);
    return n;
}

static value_id nothing(pass_case *m, value_id x, value_id v)
{
    (void)m, (void)x;
    return v;
}

static value_id is_an_output(pass_case *m, value_id x, value_id v)
{
    (void)x;
    assert_ok(graph_add_output(m->graph, v));
    return v;
}

static value_id softmax_reads_too(pass_case *m, value_id x, value_id v)
{
    (void)x;
    assert_ok(graph_add_output(m->graph, pass_case_node(m, "Softmax", 1, &v, "s")));
    return v;
}

static value_id softmax_between(pass_case *m, value_id x, value_id v)
{
    (void)x;
    return pass_case_node(m, "Softmax", 1, &v, "s");
}

static value_id of_another_input(pass_case *m, value_id x, value_id v)
{
    (void)x, (void)v;
    return times(m, image(m, "z"), "wz", 8, "xz");
}

static value_id weights_are_computed(pass_case *m, value_id x, value_id v)
{
    (void)v;
    const value_id w = pass_case_input(m, "w", 2, (int64_t[]){WIDTH, 8});
    return pass_case_node(m, "MatMul", 2, (value_id[]){x, w}, "xw");
}

TEST(projections__others_stay)
{
    assert_int_equal(left_with(nothing), 1);
    assert_int_equal(left_with(is_an_output), 2);
    assert_int_equal(left_with(softmax_reads_too), 2);
    assert_int_equal(left_with(softmax_between), 2);
    assert_int_equal(left_with(of_another_input), 2);
    assert_int_equal(left_with(weights_are_computed), 2);
}

/* Checks that GEMMs with a bias are not merged with one without. */
TEST(projections__alike_ones_become_one)
{
    pass_case m = pass_case_start();
    const value_id x = image(&m, "x");
    const value_id q = plus(&m, times(&m, x, "wq", 8, "xq"), "bq", 8, "q"),
                   k = times(&m, x, "wk", 8, "k"),
                   v = plus(&m, times(&m, x, "wv", 8, "xv"), "bv", 8, "v");
    graph *g = pass_case_run(&m, attention(&m, q, k, v), NULL, 0);
    assert_int_equal(pass_case_count(g, "FusedMatMul"), 1);
    assert_int_equal(pass_case_count(g, "MatMul"), 1);
    (void)parts(g, 2);
    graph_free(g);
}
