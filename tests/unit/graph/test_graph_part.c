/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests parts of graphs: which inputs and outputs they have, what is copied with them, and names
 * that fit together.
 */
#include "support/unit.h"

#include "support/fakes/failing_alloc.h"
#include "support/fixtures/graph_text.h"

#include <string.h>

/* Returns the part of g that has the nodes first to end - 1 and these outputs. */
static graph *part_of(const graph *g, node_id first, node_id end, const char *const *outputs,
                      size_t n_outputs, const value_id **out_origins)
{
    bool nodes[16] = {false};
    value_id ids[4];
    graph *part;
    assert_in_range(g->n_nodes, end, 16);
    for (node_id i = first; i < end; i++) nodes[i] = true;
    for (size_t i = 0; i < n_outputs; i++) {
        ids[i] = graph_find_value(g, outputs[i]);
        assert_int_not_equal(ids[i], VALUE_NONE);
    }
    assert_ok(graph_part(g, nodes, ids, n_outputs, out_origins, &part));
    return part;
}

/* Checks the names of inputs, and that origins are the values of g with these names. */
static void expect_inputs(const graph *g, const graph *part, const value_id *origins, size_t n,
                          const char *const *names)
{
    assert_int_equal(part->n_inputs, n);
    for (size_t i = 0; i < n; i++) {
        const value *v = &part->values[part->inputs[i]];
        assert_string_equal(v->name, names[i]);
        assert_true(v->is_input && v->producer == NODE_NONE && !v->constant);
        assert_int_equal(origins[i], graph_find_value(g, names[i]));
    }
}

static void expect_outputs(const graph *part, size_t n, const char *const *names)
{
    assert_int_equal(part->n_outputs, n);
    for (size_t i = 0; i < n; i++) {
        assert_string_equal(part->values[part->outputs[i]].name, names[i]);
        assert_true(part->values[part->outputs[i]].is_output);
    }
}

#define LIST(...)                                                                                  \
    (sizeof(const char *[]){__VA_ARGS__} / sizeof(char *)), ((const char *[]){__VA_ARGS__})

TEST(graph_part__has_what_its_nodes_use)
{
    graph *g =
        graph_text_read(13, "x: f32[2,3]; z: f32[2,3]; u: f32[2,3]; w = f32[2,3];"
                            "a = Abs(x); b = Add(a, w); c = Mul(b, z); d = Sub(c, a); out b d");
    const value_id *origins;
    graph *part = part_of(g, 2, 4, (const char *[]){"d"}, 1, &origins);
    expect_inputs(g, part, origins, LIST("z", "b", "a")); /* the model's first */
    expect_outputs(part, LIST("d"));
    assert_int_equal(part->n_nodes, 2);
    assert_string_equal(part->nodes[0].op_type, "Mul");
    assert_int_equal(part->values[graph_find_value(part, "d")].producer, 1);
    assert_false(part->values[graph_find_value(part, "b")].is_output); /* of the whole alone */
    assert_int_equal(graph_find_value(part, "w"), VALUE_NONE);
    assert_int_equal(graph_opset(part, ""), 13);
    assert_ok(graph_check(part));
    graph_free(part);
    part = part_of(g, 0, 2, (const char *[]){"b", "a"}, 2, &origins);
    expect_inputs(g, part, origins, LIST("x"));
    expect_outputs(part, LIST("b", "a"));
    const value_id w = graph_find_value(part, "w"); /* shared, and no input */
    assert_ptr_equal(part->values[w].constant, g->values[graph_find_value(g, "w")].constant);
    assert_ok(graph_check(part));
    graph_free(part);
    graph_free(g);
}

/* What the branches of the If capture are inputs of its part. */
TEST(graph_part__has_what_subgraphs_capture)
{
    graph *g = graph_text_read(13, "x: f32[2]; c: b[];  a = Abs(x); e = Exp(x);"
                                   "y = If(c) then_branch={t = Neg(a); out t} "
                                   "else_branch={f = Add(e, x); out f}; out y");
    const value_id *origins;
    graph *part = part_of(g, 2, 3, (const char *[]){"y"}, 1, &origins);
    expect_inputs(g, part, origins, LIST("x", "c", "a", "e"));
    const graph *branch = part->nodes[0].attributes[0].as.graph;
    assert_ptr_not_equal(branch, g->nodes[2].attributes[0].as.graph);
    for (size_t v = 0; v < branch->n_values; v++)
        if (branch->values[v].is_outer)
            assert_string_equal(part->values[branch->values[v].outer].name, "a");
    assert_ok(graph_check(part));
    graph_free(part);
    graph_free(g);
}

/* An output may be an input or a constant of the whole, which no node of the part uses. */
TEST(graph_part__returns_inputs_and_constants)
{
    graph *g = graph_text_read(13, "x: f32[2]; w = f32[2]; y = Abs(x); out y w");
    const value_id *origins;
    graph *part = part_of(g, 0, 0, (const char *[]){"w", "x"}, 2, &origins);
    expect_inputs(g, part, origins, LIST("x"));
    expect_outputs(part, LIST("w", "x"));
    assert_int_equal(part->n_nodes, 0);
    graph_free(part);
    graph_free(g);
}

/* Adds y = op(x), where y has no name. */
static value_id add_unnamed(graph *g, const char *op_type, value_id x)
{
    value_id v;
    node_id n;
    assert_ok(graph_add_value(g, "", &v));
    assert_ok(graph_add_node(g, "", op_type, "", 1, &x, 1, &v, &n));
    return v;
}

/* A value without a name gets the same one as the output of one part and the input of another. */
TEST(graph_part__names_what_has_no_name)
{
    graph *g = graph_text_read(13, "x: f32[2]; out x");
    const value_id *origins, x = graph_find_value(g, "x");
    const value_id a = add_unnamed(g, "Abs", x), b = add_unnamed(g, "Neg", a);
    value_id taken;
    assert_int_equal(a, 1);
    assert_ok(graph_add_value(g, "value 1", &taken));
    graph *first, *second;
    assert_ok(graph_part(g, (const bool[]){true, false}, &a, 1, &origins, &first));
    assert_ok(graph_part(g, (const bool[]){false, true}, &b, 1, &origins, &second));
    assert_int_equal(origins[0], a);
    expect_outputs(first, LIST("value 1'"));
    assert_string_equal(second->values[second->inputs[0]].name, "value 1'");
    assert_string_equal(second->values[second->outputs[0]].name, "value 2");
    graph_free(first);
    graph_free(second);
    graph_free(g);
}

static clg_status divide(void *user)
{
    const graph *g = user;
    const bool nodes[] = {false, true, true};
    const value_id y = graph_find_value(g, "y"), *origins;
    graph *part;
    const clg_status status = graph_part(g, nodes, &y, 1, &origins, &part);
    assert_int_equal(status == CLG_OK, part != NULL);
    graph_free(part);
    return status;
}

TEST(graph_part__survives_failing_allocations)
{
    failing_alloc_install();
    graph *g = graph_text_read(13, "x: f32[2]; c: b[]; w = f32[2]; a = Abs(x); e = Add(a, w);"
                                   "y = If(c) then_branch={t = Neg(e); out t} "
                                   "else_branch={f = Add(e, a); out f}; out y");
    assert_true(fault_loop(divide, g) > 10);
    graph_free(g);
    failing_alloc_remove();
}
