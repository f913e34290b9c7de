/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests the pass that eliminates common subexpressions.
 */
#include "support/cases/pass_case.h"

#include <string.h>

TEST(common__equal_nodes_are_one)
{
    pass_case m = pass_case_start();
    value_id x = pass_case_input(&m, "x", 2, (int64_t[]){2, 3});
    value_id a = pass_case_node(&m, "Exp", 1, &x, "a"), b = pass_case_node(&m, "Exp", 1, &x, "b");
    value_id c = pass_case_node(&m, "Log", 1, &a, "c"), d = pass_case_node(&m, "Log", 1, &b, "d");
    value_id y = pass_case_node(&m, "Add", 2, (value_id[]){c, d}, "y");
    graph *g = pass_case_run_only(&m, y, "common");
    assert_int_equal(pass_case_count(g, "Exp"), 1);
    assert_int_equal(pass_case_count(g, "Log"), 1); /* equal once their inputs are merged */
    const node *sum = pass_case_find(g, "Add");
    assert_int_equal(sum->inputs[0], sum->inputs[1]);
    graph_free(g);
}

/* Adds two nodes with the same operator and input, whose attribute is `first` and `second`, and
 * returns how many of them remain after the pass. */
static size_t count_with(const char *op, const char *attribute, float first, float second)
{
    pass_case m = pass_case_start();
    value_id x = pass_case_input(&m, "x", 2, (int64_t[]){2, 3});
    value_id a = pass_case_node(&m, op, 1, &x, "a");
    assert_ok(node_set_float(m.graph, pass_case_last(&m), attribute, first));
    value_id b = pass_case_node(&m, op, 1, &x, "b");
    assert_ok(node_set_float(m.graph, pass_case_last(&m), attribute, second));
    graph *g =
        pass_case_run_only(&m, pass_case_node(&m, "Add", 2, (value_id[]){a, b}, "y"), "common");
    const size_t n = pass_case_count(g, op);
    graph_free(g);
    return n;
}

TEST(common__attributes_make_a_difference)
{
    assert_int_equal(count_with("Elu", "alpha", 0.5f, 0.5f), 1);
    assert_int_equal(count_with("Elu", "alpha", 0.5f, 0.25f), 2);
}

TEST(common__inputs_and_their_order_do)
{
    pass_case m = pass_case_start();
    value_id x = pass_case_input(&m, "x", 1, (int64_t[]){3}),
             z = pass_case_input(&m, "z", 1, (int64_t[]){3});
    value_id a = pass_case_node(&m, "Sub", 2, (value_id[]){x, z}, "a"),
             b = pass_case_node(&m, "Sub", 2, (value_id[]){z, x}, "b");
    graph *g =
        pass_case_run_only(&m, pass_case_node(&m, "Mul", 2, (value_id[]){a, b}, "y"), "common");
    assert_int_equal(pass_case_count(g, "Sub"), 2);
    graph_free(g);
}

TEST(common__outputs_keep_their_node)
{
    pass_case m = pass_case_start();
    value_id x = pass_case_input(&m, "x", 1, (int64_t[]){3});
    value_id a = pass_case_node(&m, "Exp", 1, &x, "a"), b = pass_case_node(&m, "Exp", 1, &x, "b");
    assert_ok(graph_add_output(m.graph, a));
    graph *g = pass_case_run_only(&m, b, "common");
    assert_int_equal(pass_case_count(g, "Exp"), 2);
    graph_free(g);
}

TEST(common__draws_differ)
{
    pass_case m = pass_case_start();
    value_id x = pass_case_input(&m, "x", 1, (int64_t[]){3});
    value_id a = pass_case_node(&m, "RandomUniformLike", 1, &x, "a"),
             b = pass_case_node(&m, "RandomUniformLike", 1, &x, "b");
    graph *g =
        pass_case_run_only(&m, pass_case_node(&m, "Sub", 2, (value_id[]){a, b}, "y"), "common");
    assert_int_equal(pass_case_count(g, "RandomUniformLike"), 2);
    graph_free(g);
}
