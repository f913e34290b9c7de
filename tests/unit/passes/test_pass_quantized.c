/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests the pass that decomposes quantised operators: the Transposes around operators with
 * channels-last inputs, and nodes in branches. tests/ops/quant/test_quantized.c compares results on
 * devices.
 */
#include "support/unit.h"

#include "ops/core/op.h"
#include "passes/passes.h"

#include <string.h>

static value_id add_input(graph *g, const char *name, clg_dtype dtype, size_t rank,
                          const int64_t *dims)
{
    value_id v;
    assert_ok(graph_add_value(g, name, &v));
    g->values[v].dtype = dtype;
    assert_ok(shape_make(rank, dims, &g->values[v].dims));
    return v;
}

static value_id add_pool(graph *g, value_id x)
{
    value_id v;
    node_id n;
    assert_ok(graph_add_value(g, "", &v));
    assert_ok(graph_add_node(g, "com.microsoft", "NhwcMaxPool", "", 1, &x, 1, &v, &n));
    assert_ok(node_set_ints(g, n, "kernel_shape", 2, (int64_t[]){2, 2}));
    return v;
}

static graph *start(void)
{
    graph *g;
    assert_ok(graph_create("test", &g));
    assert_ok(graph_set_opset(g, "", 17));
    assert_ok(graph_set_opset(g, "com.microsoft", 1));
    return g;
}

static graph *run_passes(graph *g)
{
    graph *out;
    const pass_options options = {.kernel_class = CLG_KERNELS_SIMD};
    assert_ok(graph_check(g));
    assert_ok(ops_resolve(g));
    assert_ok(passes_run(g, &options, &out));
    graph_free(g);
    return out;
}

static size_t count(const graph *g, const char *op)
{
    size_t n = 0;
    for (size_t i = 0; i < g->n_nodes; i++) n += strcmp(g->nodes[i].op_type, op) == 0;
    return n;
}

TEST(pass_quantized__transposes_once_there_and_back)
{
    graph *g = start();
    const value_id x = add_input(g, "x", CLG_UINT8, 4, (int64_t[]){1, 8, 8, 3});
    assert_ok(graph_add_input(g, x));
    assert_ok(graph_add_output(g, add_pool(g, add_pool(g, add_pool(g, x)))));
    g = run_passes(g);
    assert_int_equal(count(g, "MaxPool"), 3);
    assert_int_equal(count(g, "Transpose"), 2);
    assert_int_equal(g->n_nodes, 5);
    graph_free(g);
}

/* Checks a quantised operator in a branch: y = c ? NhwcMaxPool(x) : x. */
TEST(pass_quantized__looks_into_branches)
{
    graph *g = start(), *branches[2];
    static const char *const names[] = {"then_branch", "else_branch"};
    const value_id c = add_input(g, "c", CLG_BOOL, 0, NULL),
                   x = add_input(g, "x", CLG_UINT8, 4, (int64_t[]){1, 8, 8, 3});
    value_id y;
    node_id n;
    assert_ok(graph_add_input(g, c));
    assert_ok(graph_add_input(g, x));
    assert_ok(graph_add_value(g, "y", &y));
    assert_ok(graph_add_node(g, "", "If", "", 1, &c, 1, &y, &n));
    assert_ok(graph_add_output(g, y));
    for (int i = 0; i < 2; i++) {
        value_id inner;
        branches[i] = start();
        assert_ok(graph_add_outer(branches[i], "inner", x, &inner));
        assert_ok(graph_add_output(branches[i], add_pool(branches[i], inner)));
        assert_ok(node_add_attribute(g, n,
                                     &(graph_attribute){.name = names[i],
                                                        .type = ATTRIBUTE_GRAPH,
                                                        .as.graph = branches[i]}));
    }
    g = run_passes(g);
    const node *branch = &g->nodes[0];
    assert_string_equal(branch->op_type, "If");
    for (size_t i = 0; i < branch->n_attributes; i++) {
        const graph *body = branch->attributes[i].as.graph;
        assert_int_equal(count(body, "NhwcMaxPool"), 0);
        assert_int_equal(count(body, "MaxPool"), 1);
        assert_int_equal(count(body, "Transpose"), 2);
        for (size_t k = 0; k < body->n_nodes; k++) assert_non_null(body->nodes[k].op);
    }
    graph_free(g);
}
