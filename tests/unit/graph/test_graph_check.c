/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests which graphs graph_check rejects, its messages, and its topological order of nodes.
 */
#include "support/unit.h"

#include "graph/graph.h"

#include <stdio.h>
#include <string.h>

static graph *make(void)
{
    graph *g;
    assert_ok(graph_create("test", &g));
    assert_ok(graph_set_opset(g, "", 13));
    return g;
}

static value_id value_of(graph *g, const char *name)
{
    value_id v = graph_find_value(g, name);
    if (v == VALUE_NONE) assert_ok(graph_add_value(g, name, &v));
    return v;
}

static void input(graph *g, const char *name) { assert_ok(graph_add_input(g, value_of(g, name))); }

static void output(graph *g, const char *name)
{
    assert_ok(graph_add_output(g, value_of(g, name)));
}

/* Adds a node with up to two inputs and one output, `result`; the node is named like the output. */
static void link_node(graph *g, const char *result, const char *a, const char *b)
{
    value_id inputs[2] = {value_of(g, a), b ? value_of(g, b) : VALUE_NONE},
             out = value_of(g, result);
    node_id n;
    assert_ok(graph_add_node(g, "", "Op", result, 2, inputs, 1, &out, &n));
}

TEST(check__names_a_cycle)
{
    graph *g = make();
    input(g, "x");
    link_node(g, "a", "x", "c");
    link_node(g, "b", "a", NULL);
    link_node(g, "c", "b", NULL);
    link_node(g, "y", "c", NULL);
    output(g, "y");
    assert_error(graph_check(g), CLG_ERROR_INVALID_MODEL, "the graph has a cycle");
    assert_error(graph_check(g), CLG_ERROR_INVALID_MODEL,
                 "node 'b' (Op, opset 13) -> node 'c' (Op, opset 13) -> node 'a' (Op, opset 13) -> "
                 "node 'b'");
    assert_null(strstr(error_text(), "'y'"));
    graph_free(g);
}

TEST(check__names_a_node_that_reads_itself)
{
    graph *g = make();
    link_node(g, "a", "a", NULL);
    output(g, "a");
    assert_error(graph_check(g), CLG_ERROR_INVALID_MODEL, "node 'a' (Op, opset 13) -> node 'a'");
    graph_free(g);
}

TEST(check__shortens_long_cycles)
{
    graph *g = make();
    char from[16], to[16];
    for (int i = 0; i < 1000; i++) {
        (void)snprintf(from, sizeof from, "v%d", i);
        (void)snprintf(to, sizeof to, "v%d", (i + 1) % 1000);
        link_node(g, to, from, NULL);
    }
    output(g, "v0");
    assert_error(graph_check(g), CLG_ERROR_INVALID_MODEL, "994 more");
    graph_free(g);
}

TEST(check__names_a_missing_input)
{
    graph *g = make();
    link_node(g, "y", "nowhere", NULL);
    output(g, "y");
    assert_error(
        graph_check(g), CLG_ERROR_INVALID_MODEL,
        "node 'y' (Op, opset 13) reads 'nowhere', which no node, input or initializer gives");
    graph_free(g);
}

TEST(check__outputs)
{
    graph *g = make();
    input(g, "x");
    assert_error(graph_check(g), CLG_ERROR_INVALID_MODEL, "no outputs");
    output(g, "x"); /* an input may be an output */
    assert_ok(graph_check(g));
    output(g, "x"); /* and an output may be listed twice */
    assert_ok(graph_check(g));
    graph_free(g);
    g = make();
    output(g, "nothing");
    assert_error(graph_check(g), CLG_ERROR_INVALID_MODEL,
                 "the output 'nothing' is given by no node");
    graph_free(g);
}

TEST(check__domains_are_imported)
{
    graph *g = make();
    value_id y = value_of(g, "y");
    node_id n;
    assert_ok(graph_add_node(g, "com.example", "Op", "n", 0, NULL, 1, &y, &n));
    output(g, "y");
    assert_error(graph_check(g), CLG_ERROR_INVALID_MODEL,
                 "'com.example', of which the model imports no version");
    graph_free(g);
    assert_ok(graph_create("", &g));
    y = value_of(g, "y");
    assert_ok(graph_add_node(g, "", "Op", "n", 0, NULL, 1, &y, &n));
    output(g, "y");
    assert_error(graph_check(g), CLG_ERROR_INVALID_MODEL, "'ai.onnx', of which");
    graph_free(g);
}

TEST(check__operators_have_a_type)
{
    graph *g = make();
    value_id y = value_of(g, "y");
    node_id n;
    assert_ok(graph_add_node(g, "", "", "n", 0, NULL, 1, &y, &n));
    output(g, "y");
    assert_error(graph_check(g), CLG_ERROR_INVALID_MODEL, "no operator type");
    graph_free(g);
}

/* Checks that nodes that are already in topological order keep their order, and that a node listed
 * after a consumer of its output is moved directly before that consumer. */
TEST(check__sorts_and_is_stable)
{
    graph *g = make();
    input(g, "x");
    link_node(g, "p", "x", NULL);
    link_node(g, "late", "z", "p");
    link_node(g, "q", "x", NULL);
    link_node(g, "z", "q", NULL);
    link_node(g, "r", "x", NULL);
    output(g, "late");
    assert_ok(graph_check(g));
    const char *expected[] = {"p", "q", "z", "late", "r"};
    for (size_t i = 0; i < 5; i++) {
        assert_string_equal(g->nodes[i].name, expected[i]);
        assert_int_equal(g->values[g->nodes[i].outputs[0]].producer, i);
    }
    assert_ok(graph_check(g));
    for (size_t i = 0; i < 5; i++) assert_string_equal(g->nodes[i].name, expected[i]);
    graph_free(g);
}

TEST(check__sorts_a_long_chain)
{
    const int n = 200000;
    graph *g = make();
    char from[16], to[16];
    for (int i = n; i > 0; i--) { /* the last node is added first */
        (void)snprintf(from, sizeof from, "v%d", i - 1);
        (void)snprintf(to, sizeof to, "v%d", i);
        link_node(g, to, from, NULL);
    }
    input(g, "v0");
    (void)snprintf(to, sizeof to, "v%d", n);
    output(g, to);
    assert_ok(graph_check(g));
    assert_string_equal(g->nodes[0].name, "v1");
    graph_free(g);
}

/* Adds a node with a subgraph that reads `outer` of g. */
static graph *add_subgraph_node(graph *g, const char *result, const char *outer)
{
    graph *sub;
    value_id captured, inner;
    node_id n;
    link_node(g, result, "x", NULL);
    assert_ok(graph_create("", &sub));
    assert_ok(graph_set_opset(sub, "", 13));
    assert_ok(graph_add_outer(sub, outer, value_of(g, outer), &captured));
    assert_ok(graph_add_value(sub, "inner", &inner));
    assert_ok(graph_add_node(sub, "", "Neg", "", 1, &captured, 1, &inner, &n));
    assert_ok(graph_add_output(sub, inner));
    n = g->values[graph_find_value(g, result)].producer;
    assert_ok(node_add_attribute(
        g, n, &(graph_attribute){.name = "body", .type = ATTRIBUTE_GRAPH, .as.graph = sub}));
    return sub;
}

TEST(check__captures_count_as_inputs)
{
    graph *g = make();
    input(g, "x");
    (void)add_subgraph_node(g, "loop", "later");
    link_node(g, "later", "x", NULL);
    output(g, "loop");
    assert_ok(graph_check(g));
    assert_string_equal(g->nodes[0].name, "later");
    graph_free(g);
    g = make();
    input(g, "x");
    (void)add_subgraph_node(g, "loop", "later");
    link_node(g, "later", "loop", NULL);
    output(g, "later");
    assert_error(graph_check(g), CLG_ERROR_INVALID_MODEL, "cycle");
    graph_free(g);
}

TEST(check__captures_must_be_there)
{
    graph *g = make();
    input(g, "x");
    (void)add_subgraph_node(g, "loop", "absent");
    output(g, "loop");
    assert_error(graph_check(g), CLG_ERROR_INVALID_MODEL,
                 "a subgraph reads 'absent', which nothing around it gives");
    graph_free(g);
    g = make();
    value_id v;
    assert_ok(graph_add_outer(g, "v", 0, &v)); /* invalid: the main graph has none around it */
    output(g, "v");
    assert_error(graph_check(g), CLG_ERROR_INVALID_MODEL, "nothing around it gives");
    graph_free(g);
}

TEST(check__looks_into_subgraphs)
{
    graph *g = make();
    input(g, "x");
    graph *sub = add_subgraph_node(g, "loop", "x");
    link_node(sub, "bad", "nowhere", NULL);
    output(sub, "inner"); /* for the second time, which bodies of loops may do */
    output(g, "loop");
    assert_error(graph_check(g), CLG_ERROR_INVALID_MODEL, "reads 'nowhere'");
    graph_free(g);
}

TEST(check__depth_is_bounded)
{
    graph *g = make(), *at = g;
    for (int i = 0; i <= GRAPH_MAX_DEPTH; i++) {
        if (i == 0) input(at, "x");
        at = add_subgraph_node(at, "y", "x");
    }
    output(g, "y");
    assert_error(graph_check(g), CLG_ERROR_INVALID_MODEL, "deeper than 64");
    graph_free(g);
}
