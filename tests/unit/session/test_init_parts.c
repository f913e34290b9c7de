/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests how the init plan is divided into parts, groups of nodes that are connected by shared
 * values, and that this takes steps linear in the size of the graph.
 */
#include "support/unit.h"

#include "base/memory.h"
#include "base/work_count.h"
#include "session/exec/exec.h"

#include <stdio.h>

/* Sets the fields of an exec that exec_find_init reads and writes. */
static void start(session_exec *e)
{
    *e = (session_exec){.refs = {0}};
    assert_ok(graph_create("parts", &e->graph));
    assert_ok(graph_set_opset(e->graph, "", 13));
}

/* Runs exec_find_init; returns the steps from node to node that it took to find parts. */
static size_t find(session_exec *e)
{
    assert_ok(ops_resolve(e->graph));
    e->node_is_init = arena_alloc(&e->memory, e->graph->n_nodes + 1, sizeof *e->node_is_init);
    e->n_readers = arena_alloc(&e->memory, e->graph->n_values + 1, sizeof *e->n_readers);
    assert_true(e->node_is_init && e->n_readers);
    const size_t before = work_count();
    assert_ok(exec_find_init(e));
    return work_count() - before;
}

static void end(session_exec *e)
{
    arena_deinit(&e->memory);
    graph_free(e->graph);
}

static value_id constant(session_exec *e, const char *name, int64_t n)
{
    const shape dims = {.rank = 1, .dims = {n}};
    tensor *t;
    value_id v;
    assert_ok(tensor_create(CLG_FLOAT32, &dims, &t));
    assert_ok(graph_add_constant(e->graph, name, t, &v));
    tensor_free(t);
    return v;
}

static value_id node_of(session_exec *e, const char *op, size_t n_inputs, const value_id *inputs)
{
    char name[32];
    value_id v;
    node_id n;
    (void)snprintf(name, sizeof name, "n%zu", e->graph->n_nodes);
    assert_ok(graph_add_value(e->graph, name, &v));
    assert_ok(graph_add_node(e->graph, "", op, name, n_inputs, inputs, 1, &v, &n));
    return v;
}

TEST(parts__are_nodes_that_share_values)
{
    session_exec e;
    start(&e);
    const value_id small = constant(&e, "small", 3), large = constant(&e, "large", 20000);
    const value_id a = node_of(&e, "Neg", 1, &small), b = node_of(&e, "Abs", 1, &small);
    (void)node_of(&e, "Neg", 1, &large);
    (void)node_of(&e, "Abs", 1, &large);
    (void)node_of(&e, "Add", 2, (value_id[]){b, a});
    (void)node_of(&e, "Exp", 1, &small);
    (void)find(&e);
    static const node_id expected[] = {0, 0, 2, 2, 0, 5};
    for (node_id n = 0; n < e.graph->n_nodes; n++) assert_int_equal(e.init_parts[n], expected[n]);
    end(&e);
}

/* Finds the only part of a graph in which Adds join each node of a chain with the one before it.
 * The last nodes are joined first, which makes the longest path to the part's first node. Returns
 * the steps. */
static size_t find_chain(size_t n_links)
{
    value_id *results = memory_alloc(n_links * sizeof *results);
    session_exec e;
    start(&e);
    const value_id small = constant(&e, "small", 1);
    for (size_t i = 0; i < n_links; i++) results[i] = node_of(&e, "Neg", 1, &small);
    for (size_t i = n_links; --i > 0;)
        (void)node_of(&e, "Add", 2, (value_id[]){results[i], results[i - 1]});
    for (size_t i = 0; i < n_links; i++) (void)node_of(&e, "Abs", 1, &results[i]);
    const size_t n_steps = find(&e);
    for (node_id n = 0; n < e.graph->n_nodes; n++) assert_int_equal(e.init_parts[n], 0);
    memory_free(results);
    end(&e);
    return n_steps;
}

/* Paths are halved when they are walked; else each of the last nodes would walk the whole chain. */
TEST(parts__of_a_long_chain_are_found_at_once)
{
    enum { N = 60000 };
    const size_t n = find_chain(N);
    print_message("%zu steps for a chain of %d\n", n, N);
    assert_true(n >= N);
    assert_true(n <= (size_t)16 * N);
}
