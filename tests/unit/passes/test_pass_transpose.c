/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests the pass that removes Transposes that cancel out.
 */
#include "support/cases/pass_case.h"

#include "base/work_count.h"

#include <string.h>

static const int64_t to_last[] = {0, 2, 3, 1}, to_first[] = {0, 3, 1, 2};

static value_id transposed(pass_case *m, value_id x, const int64_t *perm, const char *out)
{
    value_id y = pass_case_node(m, "Transpose", 1, &x, out);
    if (perm) assert_ok(node_set_ints(m->graph, pass_case_last(m), "perm", 4, perm));
    return y;
}

static value_id image(pass_case *m, const char *name)
{
    return pass_case_input(m, name, 4, (int64_t[]){2, 3, 5, 7});
}

TEST(transpose__two_in_a_row_are_one_or_none)
{
    pass_case m = pass_case_start();
    value_id a = transposed(&m, image(&m, "x"), to_last, "a");
    value_id b = transposed(&m, a, to_last, "b"), c = transposed(&m, a, to_first, "c");
    value_id y = pass_case_node(&m, "Exp", 1, &b, "y"), z = pass_case_node(&m, "Exp", 1, &c, "z");
    assert_ok(graph_add_output(m.graph, y));
    graph *g = pass_case_run_only(&m, z, "transpose");
    assert_int_equal(pass_case_count(g, "Transpose"), 1);
    size_t n;
    const int64_t *perm = node_ints(pass_case_find(g, "Transpose"), "perm", &n);
    assert_int_equal(n, 4);
    assert_memory_equal(perm, ((int64_t[]){0, 3, 1, 2}), 4 * sizeof *perm); /* as to_last twice */
    graph_free(g);
}

TEST(transpose__reversals_without_attribute)
{
    pass_case m = pass_case_start();
    value_id a = transposed(&m, image(&m, "x"), NULL, "a"), b = transposed(&m, a, NULL, "b");
    graph *g = pass_case_run_only(&m, pass_case_node(&m, "Exp", 1, &b, "y"), "transpose");
    assert_int_equal(pass_case_count(g, "Transpose"), 0);
    graph_free(g);
}

/* Runs the pass on a Transpose, then the nodes that `make` adds, then a Transpose with perm `back`.
 * Returns how many Transposes remain. */
static size_t left_around(value_id (*make)(pass_case *m, value_id x), const int64_t *back,
                          bool back_is_output)
{
    pass_case m = pass_case_start();
    value_id inside = make(&m, transposed(&m, image(&m, "x"), to_last, "a"));
    value_id b = transposed(&m, inside, back, "b");
    if (!back_is_output) b = pass_case_node(&m, "Softplus", 1, &b, "y");
    graph *g = pass_case_run_only(&m, b, "transpose");
    const size_t n = pass_case_count(g, "Transpose");
    graph_free(g);
    return n;
}

static value_id chain(pass_case *m, value_id x)
{
    value_id r = pass_case_node(m, "Relu", 1, &x, "r"), s = pass_case_constant(m, "s", 0, NULL);
    value_id p = pass_case_node(m, "Mul", 2, (value_id[]){s, r}, "p");
    return pass_case_node(m, "Add", 2, (value_id[]){p, x}, "sum");
}

static value_id with_a_row(pass_case *m, value_id x)
{
    value_id row = pass_case_constant(m, "row", 1, (int64_t[]){3});
    return pass_case_node(m, "Add", 2, (value_id[]){x, row}, "sum");
}

static value_id with_another_input(pass_case *m, value_id x)
{
    value_id z = pass_case_input(m, "z", 4, (int64_t[]){2, 5, 7, 3});
    return pass_case_node(m, "Add", 2, (value_id[]){x, z}, "sum");
}

static value_id read_by_another(pass_case *m, value_id x)
{
    value_id r = pass_case_node(m, "Relu", 1, &x, "r");
    assert_ok(graph_add_output(m->graph, pass_case_node(m, "Exp", 1, &r, "other")));
    return r;
}

static value_id no_pointwise(pass_case *m, value_id x)
{
    return pass_case_node(m, "Softmax", 1, &x, "s");
}

TEST(transpose__islands_of_pointwise_operators)
{
    assert_int_equal(left_around(chain, to_first, false), 0);
    assert_int_equal(left_around(chain, to_first, true), 0);
    assert_int_equal(left_around(chain, to_last, false), 2); /* not the inverse */
    assert_int_equal(left_around(with_a_row, to_first, false), 2);
    assert_int_equal(left_around(with_another_input, to_first, false), 2);
    assert_int_equal(left_around(read_by_another, to_first, false), 2);
    assert_int_equal(left_around(no_pointwise, to_first, false), 2);
}

TEST(transpose__an_island_of_two_inputs_and_outputs)
{
    pass_case m = pass_case_start();
    value_id a = transposed(&m, image(&m, "x"), to_last, "a"),
             b = transposed(&m, image(&m, "z"), to_last, "b");
    value_id sum = pass_case_node(&m, "Add", 2, (value_id[]){a, b}, "sum");
    value_id r = pass_case_node(&m, "Relu", 1, &sum, "r");
    value_id c = transposed(&m, sum, to_first, "c"), d = transposed(&m, r, to_first, "d");
    assert_ok(graph_add_output(m.graph, c));
    graph *g = pass_case_run_only(&m, pass_case_node(&m, "Softmax", 1, &d, "y"), "transpose");
    assert_int_equal(pass_case_count(g, "Transpose"), 0);
    assert_string_equal(g->values[g->outputs[0]].name, "c");
    const node *add = pass_case_find(g, "Add");
    assert_int_equal(add->inputs[0], g->inputs[0]);
    assert_int_equal(add->inputs[1], g->inputs[1]);
    graph_free(g);
}

/* Adds n sums in a zigzag: each of two neighbours among n + 1 results of Relu, of which the first
 * one's input is x and that of the others is t. Each sum goes through a Transpose to an output. */
static void zigzag(pass_case *m, value_id x, value_id t, size_t n)
{
    value_id *r = memory_zalloc(n + 1, sizeof *r), *sums = memory_zalloc(n, sizeof *sums);
    for (size_t i = 0; i <= n; i++) r[i] = pass_case_node(m, "Relu", 1, i == 0 ? &x : &t, "");
    for (size_t i = 0; i < n; i++) sums[i] = pass_case_node(m, "Add", 2, &r[i], "");
    for (size_t i = 0; i < n; i++)
        assert_ok(graph_add_output(m->graph, transposed(m, sums[i], to_first, "")));
    memory_free(r);
    memory_free(sums);
}

/* A node that does not fit takes all others of a zigzag with it, one after another: each is looked
 * at a few times, once for itself and for its neighbours. */
TEST(transpose__long_zigzags_take_linear_time)
{
    enum { N = 40000 };
    pass_case m = pass_case_start();
    value_id z = pass_case_input(&m, "z", 4, (int64_t[]){2, 5, 7, 3});
    value_id t = transposed(&m, image(&m, "x"), to_last, "t");
    zigzag(&m, z, t, N);
    value_id whole = transposed(&m, pass_case_node(&m, "Relu", 1, &t, "r"), to_first, "whole");
    const value_id y = pass_case_node(&m, "Exp", 1, &whole, "y");
    const size_t before = work_count();
    graph *g = pass_case_run_only(&m, y, "transpose");
    const size_t n_looks = work_count() - before;
    assert_true(n_looks >= 3 * N); /* there are 3 N nodes */
    assert_true(n_looks <= 32 * N);
    /* that of the zigzag's sums, and of x for them; not those around the last Relu */
    assert_int_equal(pass_case_count(g, "Transpose"), N + 1);
    graph_free(g);
}
