/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests the pass that fuses attention where dimensions are open: their number of heads, or what is
 * broadcast. With known dimensions api.pass_patterns tests it, and computes.
 */
#include "support/cases/pass_case.h"

/* Runs the pass on MatMul(Softmax(Div(MatMul(q, t), 1) [+ mask]), v), whose result is y. mask NULL:
 * none. */
static graph *fuse(pass_case *m, value_id q, value_id t, value_id v, const int64_t *mask)
{
    value_id scores = pass_case_node(m, "MatMul", 2, (value_id[]){q, t}, "scores");
    const value_id number = pass_case_constant(m, "one", 0, NULL);
    scores = pass_case_node(m, "Div", 2, (value_id[]){scores, number}, "scaled");
    if (mask) {
        const value_id in_mask = pass_case_input(m, "mask", 3, mask);
        scores = pass_case_node(m, "Add", 2, (value_id[]){scores, in_mask}, "masked");
    }
    const value_id p = pass_case_node(m, "Softmax", 1, &scores, "p");
    return pass_case_run_only(m, pass_case_node(m, "MatMul", 2, (value_id[]){p, v}, "y"),
                              "attention");
}

/* The three of one input of these dimensions. */
static graph *fuse_one(const int64_t *dims, const int64_t *mask)
{
    pass_case m = pass_case_start();
    const value_id x = pass_case_input(&m, "x", 3, dims);
    const value_id q = pass_case_node(&m, "Relu", 1, &x, "q"),
                   k = pass_case_node(&m, "Abs", 1, &x, "k"),
                   v = pass_case_node(&m, "Neg", 1, &x, "v");
    const value_id t = pass_case_node(&m, "Transpose", 1, &k, "t");
    assert_ok(node_set_ints(m.graph, pass_case_last(&m), "perm", 3, (int64_t[]){0, 2, 1}));
    return fuse(&m, q, t, v, mask);
}

/* The three as inputs. */
static graph *fuse_three(const int64_t *q, const int64_t *t, const int64_t *v)
{
    pass_case m = pass_case_start();
    const value_id in_q = pass_case_input(&m, "q", 3, q), in_t = pass_case_input(&m, "t", 3, t),
                   in_v = pass_case_input(&m, "v", 3, v);
    return fuse(&m, in_q, in_t, in_v, NULL);
}

/* As PyTorch's MultiheadAttention is exported with an open batch: [batch * heads, positions, d]. */
TEST(attention__open_heads_are_a_batch)
{
    graph *g = fuse_one((int64_t[]){-1, -1, 8}, NULL);
    const node *n = pass_case_find(g, "Attention");
    assert_non_null(n);
    assert_int_equal(node_int(n, "q_num_heads", 0), 1);
    assert_int_equal(node_int(n, "kv_num_heads", 0), 1);
    assert_string_equal(g->values[n->inputs[0]].name, "q");
    assert_string_equal(g->values[n->inputs[1]].name, "k"); /* transposed twice */
    assert_string_equal(g->values[n->inputs[2]].name, "v");
    assert_string_equal(g->values[n->outputs[0]].name, "y");
    assert_int_equal(pass_case_count(g, "Softmax"), 0);
    graph_free(g);
}

/* MatMul broadcasts a batch of one, which each of these may be in a run. */
TEST(attention__open_heads_must_be_the_same)
{
    graph *g = fuse_three((int64_t[]){-1, -1, 8}, (int64_t[]){-1, 8, -1}, (int64_t[]){-1, -1, 8});
    assert_int_equal(pass_case_count(g, "Attention"), 0);
    graph_free(g);
}

/* Returns whether a mask of these dimensions is taken with open heads. */
static bool takes_mask(const int64_t *mask)
{
    graph *g = fuse_one((int64_t[]){-1, 7, 8}, mask);
    const bool taken = pass_case_count(g, "Attention") == 1;
    graph_free(g);
    return taken;
}

TEST(attention__masks_of_open_heads_are_for_all_of_them)
{
    assert_true(takes_mask((int64_t[]){1, 7, 7}));
    assert_true(takes_mask((int64_t[]){1, 1, 7}));
    assert_false(takes_mask((int64_t[]){-1, 7, 7}));
    assert_false(takes_mask((int64_t[]){4, 7, 7}));
}

TEST(attention__known_and_open_heads_do_not_mix)
{
    graph *g = fuse_three((int64_t[]){-1, 5, 8}, (int64_t[]){4, 8, 7}, (int64_t[]){-1, 7, 8});
    assert_int_equal(pass_case_count(g, "Attention"), 0);
    graph_free(g);
    g = fuse_three((int64_t[]){4, 5, 8}, (int64_t[]){4, 8, 7}, (int64_t[]){4, 7, 8});
    assert_int_equal(node_int(pass_case_find(g, "Attention"), "q_num_heads", 0), 4);
    graph_free(g);
}
