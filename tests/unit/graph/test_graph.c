/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests graphs: adding nodes and values, finding them, attributes, editing, copying, printing.
 */
#include "support/fakes/failing_alloc.h"
#include "support/unit.h"

#include "base/strbuf.h"
#include "base/work_count.h"
#include "graph/graph_internal.h"

#include <stdio.h>
#include <string.h>

static graph *make(void)
{
    graph *g;
    assert_ok(graph_create("test", &g));
    assert_ok(graph_set_opset(g, "", 13));
    return g;
}

static value_id add_input(graph *g, const char *name)
{
    value_id v;
    assert_ok(graph_add_value(g, name, &v));
    assert_ok(graph_add_input(g, v));
    return v;
}

/* Adds a node that has one output; the node is named like the output. */
static value_id add_node(graph *g, const char *op_type, const char *output, size_t n_inputs,
                         const value_id *inputs)
{
    value_id v;
    node_id n;
    assert_ok(graph_add_value(g, output, &v));
    assert_ok(graph_add_node(g, "", op_type, output, n_inputs, inputs, 1, &v, &n));
    return v;
}

static tensor *numbers(float first, int64_t n)
{
    shape s = {.rank = 1, .dims = {n}};
    tensor *t;
    assert_ok(tensor_create(CLG_FLOAT32, &s, &t));
    for (int64_t i = 0; i < n; i++) tensor_set_float(t, i, first + (double)i);
    return t;
}

static void expect_value_text(const graph *g, value_id v, const char *expected)
{
    char text[VALUE_TEXT_BYTES];
    assert_string_equal(value_text(g, v, text), expected);
}

TEST(graph__every_value_can_be_named_in_a_message)
{
    graph *g = make();
    char text[NODE_TEXT_BYTES];
    value_id unread, weight, made;
    node_id n;
    const value_id x = add_input(g, "x");
    tensor *t = numbers(1, 2);
    assert_ok(graph_add_constant(g, "", t, &weight));
    assert_ok(graph_add_value(g, "", &made));
    assert_ok(graph_add_value(g, "", &unread));
    assert_ok(graph_add_node(g, "", "Add", "sum", 2, (value_id[]){x, weight}, 1, &made, &n));
    expect_value_text(g, x, "'x'");
    expect_value_text(g, weight, "input 1 of node 'sum' (Add, opset 13)");
    expect_value_text(g, made, "output 0 of node 'sum' (Add, opset 13)");
    expect_value_text(g, unread, "an unnamed value");
    expect_value_text(g, VALUE_NONE, "an unnamed value");
    assert_ok(graph_add_node(g, "", "Neg", "", 1, &made, 1, &unread, &n));
    assert_string_equal(node_text(&g->nodes[n], text), "an unnamed node (Neg, opset 13)");
    tensor_free(t);
    graph_free(g);
}

TEST(graph__values_and_names)
{
    graph *g = make();
    value_id a, b, unnamed, again;
    assert_ok(graph_add_value(g, "a", &a));
    assert_ok(graph_add_value(g, "", &unnamed));
    assert_ok(graph_add_value(g, NULL, &b));
    assert_error(graph_add_value(g, "a", &again), CLG_ERROR_INVALID_MODEL,
                 "two values have the name 'a'");
    assert_int_equal(again, VALUE_NONE);
    assert_int_equal(g->n_values, 3);
    assert_int_equal(graph_find_value(g, "a"), a);
    assert_int_equal(graph_find_value(g, "b"), VALUE_NONE);
    assert_int_equal(graph_find_value(g, ""), VALUE_NONE);
    assert_false(value_is_defined(&g->values[a]));
    assert_int_equal(g->values[a].dims.rank, RANK_UNKNOWN);
    graph_free(g);
    graph_free(NULL);
}

TEST(graph__many_values_and_outputs)
{
    graph *g = make();
    for (int i = 0; i < 1000; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "v%d", i);
        value_id v = add_input(g, name);
        assert_ok(graph_add_output(g, v));
    }
    assert_int_equal(g->n_inputs, 1000);
    for (value_id i = 0; i < 1000; i++) {
        assert_int_equal(g->inputs[i], i);
        assert_int_equal(g->outputs[i], i);
    }
    graph_free(g);
}

TEST(graph__opsets)
{
    graph *g = make();
    assert_ok(graph_set_opset(g, "ai.onnx", 15));
    assert_int_equal(g->n_opsets, 1);
    assert_int_equal(graph_opset(g, ""), 15);
    assert_int_equal(graph_opset(g, DOMAIN_INTERNAL), 1);
    assert_error(graph_set_opset(g, "x", 0), CLG_ERROR_INVALID_MODEL, "version 0");
    clg_status status = CLG_OK;
    for (int i = 0; i < 100 && status == CLG_OK; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "d%d", i);
        status = graph_set_opset(g, name, 1);
    }
    assert_int_equal(status, CLG_ERROR_INVALID_MODEL);
    graph_free(g);
}

TEST(graph__constants_keep_their_tensor)
{
    graph *g = make();
    tensor *t = numbers(1, 3);
    value_id v, open;
    assert_ok(graph_add_constant(g, "w", t, &v));
    tensor_free(t);
    assert_int_equal(g->values[v].dtype, CLG_FLOAT32);
    assert_int_equal(g->values[v].dims.dims[0], 3);
    assert_true(tensor_get_float(g->values[v].constant, 2) == 3);
    t = numbers(5, 1);
    assert_ok(graph_add_value(g, "later", &open)); /* used before it is defined */
    assert_ok(graph_add_constant(g, "later", t, &v));
    assert_int_equal(v, open);
    assert_error(graph_add_constant(g, "later", t, &v), CLG_ERROR_INVALID_MODEL, "'later'");
    assert_error(graph_add_input(g, open), CLG_ERROR_INVALID_MODEL, "'later'");
    tensor_free(t);
    graph_free(g);
}

TEST(graph__a_value_has_one_giver)
{
    graph *g = make();
    value_id x = add_input(g, "x"), fresh;
    value_id y = add_node(g, "Neg", "y", 1, &x);
    node_id n;
    assert_ok(graph_add_value(g, "fresh", &fresh));
    assert_error(graph_add_node(g, "", "Abs", "abs", 1, &x, 2, (value_id[]){fresh, y}, &n),
                 CLG_ERROR_INVALID_MODEL,
                 "node 'abs' (Abs, opset 13) writes 'y', which something else gives already");
    assert_false(value_is_defined(&g->values[fresh])); /* the failed call changed nothing */
    assert_error(graph_add_node(g, "", "Abs", "", 1, &x, 2, (value_id[]){fresh, fresh}, &n),
                 CLG_ERROR_INVALID_MODEL, "the node of 'fresh' (Abs, opset 13) writes 'fresh'");
    assert_error(graph_add_node(g, "", "Abs", "", 1, &y, 1, &x, &n), CLG_ERROR_INVALID_MODEL,
                 "'x'");
    assert_int_equal(g->n_nodes, 1);
    graph_free(g);
}

TEST(graph__attributes)
{
    graph *g = make();
    value_id x = add_input(g, "x");
    (void)add_node(g, "Op", "y", 1, &x);
    tensor *t = numbers(7, 1), *other = numbers(8, 1);
    const char *const strings[2] = {"a", "bc"};
    graph_attribute a = {
        .name = "list", .type = ATTRIBUTE_STRINGS, .count = 2, .as.strings = strings};
    assert_ok(node_add_attribute(g, 0, &a));
    assert_error(node_add_attribute(g, 0, &a), CLG_ERROR_INVALID_MODEL, "'list' is given twice");
    assert_ok(node_set_int(g, 0, "i", 1));
    assert_ok(node_set_int(g, 0, "i", 2)); /* replaces the value */
    assert_ok(node_set_float(g, 0, "f", 0.5f));
    assert_ok(node_set_string(g, 0, "s", "text"));
    assert_ok(node_set_ints(g, 0, "is", 0, NULL));
    assert_ok(node_set_floats(g, 0, "fs", 2, (float[]){1, 2}));
    assert_ok(node_set_tensor(g, 0, "t", t));
    assert_ok(node_set_tensor(g, 0, "t", other));
    tensor_free(t);
    tensor_free(other);
    const node *n = &g->nodes[0];
    size_t count;
    assert_int_equal(n->n_attributes, 7);
    assert_int_equal(node_int(n, "i", 9), 2);
    assert_int_equal(node_int(n, "f", 9), 9); /* of another type: the default is returned */
    assert_true(node_float(n, "f", 0) == 0.5f);
    assert_string_equal(node_string(n, "s", ""), "text");
    assert_non_null(node_ints(n, "is", &count)); /* not NULL, though the list is empty */
    assert_int_equal(count, 0);
    assert_null(node_ints(n, "absent", &count));
    assert_true(node_floats(n, "fs", &count)[1] == 2);
    assert_true(tensor_get_float(node_attribute(n, "t")->as.tensor, 0) == 8);
    assert_string_equal(node_attribute(n, "list")->as.strings[1], "bc");
    clg_status status = CLG_OK;
    for (int i = 0; i < 1000 && status == CLG_OK; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "a%d", i);
        status = node_set_int(g, 0, name, i);
    }
    assert_int_equal(status, CLG_ERROR_INVALID_MODEL);
    assert_int_equal(node_int(&g->nodes[0], "a99", 0), 99);
    graph_free(g);
}

/* Makes a = Abs(x) and y = If(x), whose subgraph captures a and computes Neg(a). */
static graph *make_with_subgraph(void)
{
    graph *g = make(), *sub;
    value_id x = add_input(g, "x"), a = add_node(g, "Abs", "a", 1, &x), captured, inner;
    g->values[x].dtype = CLG_FLOAT32;
    g->values[x].dims = (shape){.rank = 2, .dims = {DIM_UNKNOWN, 3}};
    g->values[x].dim_names[0] = arena_strdup(&g->memory, "N");
    value_id y = add_node(g, "If", "y", 1, &x);
    assert_ok(graph_create("", &sub));
    assert_ok(graph_set_opset(sub, "", 13));
    assert_ok(graph_add_outer(sub, "a", a, &captured));
    inner = add_node(sub, "Neg", "inner", 1, &captured);
    assert_ok(graph_add_output(sub, inner));
    assert_ok(node_add_attribute(
        g, g->values[y].producer,
        &(graph_attribute){.name = "b", .type = ATTRIBUTE_GRAPH, .as.graph = sub}));
    assert_ok(graph_add_output(g, y));
    return g;
}

TEST(graph__clone_is_deep)
{
    graph *g = make_with_subgraph(), *copy;
    tensor *t = numbers(1, 2);
    value_id w;
    assert_ok(graph_add_constant(g, "w", t, &w));
    tensor_free(t);
    strbuf before, after;
    strbuf_init(&before, 0);
    strbuf_init(&after, 0);
    graph_dump(g, &before);
    assert_ok(graph_clone(g, &copy));
    graph_free(g);
    graph_dump(copy, &after);
    assert_string_equal(strbuf_data(&before), strbuf_data(&after));
    assert_int_equal(graph_find_value(copy, "w"), w);
    assert_ok(graph_check(copy));
    strbuf_deinit(&before);
    strbuf_deinit(&after);
    graph_free(copy);
}

TEST(graph__edits_reach_captures)
{
    graph *g = make_with_subgraph();
    value_id x = graph_find_value(g, "x"), a = graph_find_value(g, "a");
    uint32_t *counts;
    assert_ok(graph_count_uses(g, &counts));
    assert_int_equal(counts[a], 1);
    assert_int_equal(counts[x], 2);
    assert_int_equal(counts[graph_find_value(g, "y")], 1);
    memory_free(counts);
    assert_ok(graph_replace_uses(g, a, x));
    graph_remove_node(g, g->values[a].producer);
    assert_ok(graph_compact(g));
    assert_int_equal(g->n_nodes, 1);
    assert_int_equal(g->values[graph_find_value(g, "y")].producer, 0);
    assert_int_equal(g->values[a].producer, NODE_NONE);
    assert_int_equal(node_attribute(&g->nodes[0], "b")->as.graph->values[0].outer, x);
    assert_ok(graph_check(g));
    graph_free(g);
}

TEST(graph__unused_values_are_dropped)
{
    graph *g = make_with_subgraph();
    tensor *t = numbers(1, 2);
    value_id x = graph_find_value(g, "x"), a = graph_find_value(g, "a"), w, kept;
    (void)add_input(g, "unused");
    assert_ok(graph_add_constant(g, "w", t, &w));
    assert_ok(graph_add_constant(g, "kept", t, &kept));
    const value_id b = add_node(g, "Add", "b", 2, (value_id[]){a, kept});
    assert_ok(graph_add_output(g, b));
    assert_ok(graph_replace_uses(g, a, x));
    graph_remove_node(g, g->values[a].producer);
    assert_ok(graph_compact(g));
    const size_t n_values = g->n_values;
    assert_ok(graph_drop_values(g));
    assert_int_equal(g->n_values, n_values - 2); /* a and w */
    assert_int_equal(graph_find_value(g, "a"), VALUE_NONE);
    assert_int_equal(graph_find_value(g, "w"), VALUE_NONE);
    x = graph_find_value(g, "x");
    assert_int_equal(g->inputs[0], x);
    assert_string_equal(g->values[graph_find_value(g, "unused")].name, "unused");
    assert_int_equal(g->inputs[1], graph_find_value(g, "unused"));
    const node *sum = &g->nodes[g->values[graph_find_value(g, "b")].producer];
    assert_int_equal(sum->inputs[0], x);
    assert_int_equal(sum->inputs[1], graph_find_value(g, "kept"));
    const node *branch = &g->nodes[g->values[graph_find_value(g, "y")].producer];
    assert_int_equal(node_attribute(branch, "b")->as.graph->values[0].outer, x);
    assert_ok(graph_check(g));
    graph_free(g);
    assert_false(refcount_is_shared(&t->refs));
    tensor_free(t);
}

static const tensor *constant_of(graph *g, tensor *t)
{
    value_id v;
    assert_ok(graph_add_constant(g, "", t, &v));
    tensor_free(t);
    return g->values[v].constant;
}

TEST(graph__equal_constants_share_a_tensor)
{
    graph *g = make();
    const tensor *first = constant_of(g, numbers(2, 3)), *other = constant_of(g, numbers(1, 3));
    const tensor *longer = constant_of(g, numbers(2, 4));
    (void)constant_of(g, numbers(2, 3));
    tensor *matrix = numbers(2, 3);
    matrix->dims = (shape){.rank = 2, .dims = {1, 3}};
    const tensor *shaped = constant_of(g, matrix);
    tensor *ints = numbers(2, 3);
    ints->dtype = CLG_INT32; /* of the same bytes */
    const tensor *typed = constant_of(g, ints);
    enum { LARGE = (1 << 16) / sizeof(float) + 1 };
    const tensor *large[2] = {constant_of(g, numbers(2, LARGE)), constant_of(g, numbers(2, LARGE))};
    assert_ok(graph_share_constants(g));
    const tensor *now[] = {first, other, longer, first, shaped, typed, large[0], large[1]};
    for (size_t i = 0; i < sizeof now / sizeof *now; i++)
        assert_ptr_equal(g->values[g->n_values - sizeof now / sizeof *now + i].constant, now[i]);
    graph_free(g);
}

/* Checks, on a chain whose values are also all inputs of one node, that the time of replacing every
 * value is that of the uses: by counting them. */
TEST(graph__replacing_uses_visits_no_others)
{
    enum { N = 100000 };
    graph *g = make();
    value_id *values = memory_zalloc(N + 1, sizeof *values);
    values[0] = add_input(g, "x");
    for (size_t i = 0; i < N; i++) values[i + 1] = add_node(g, "Identity", "", 1, &values[i]);
    value_id sum = add_node(g, "Sum", "", N, values + 1);
    assert_ok(graph_add_output(g, sum));
    const size_t before = work_count();
    for (size_t i = 0; i < N; i++) assert_ok(graph_replace_uses(g, values[i + 1], values[0]));
    const size_t n_visited = work_count() - before;
    assert_true(n_visited >= N); /* else nobody counts them */
    assert_true(n_visited <= (size_t)2 * N);
    for (size_t i = 0; i < N; i++) {
        assert_int_equal(g->nodes[i].inputs[0], values[0]);
        assert_int_equal(g->nodes[N].inputs[i], values[0]);
    }
    assert_ok(graph_check(g));
    graph_free(g);
    memory_free(values);
}

/* Checks that uses that arise after the first replacement are replaced, too: of new nodes, changed
 * inputs and new captures. */
TEST(graph__later_uses_are_replaced)
{
    graph *g = make();
    const value_id x = add_input(g, "x"), y = add_input(g, "y");
    const value_id a = add_node(g, "Old", "a", 1, &x);
    assert_ok(graph_replace_uses(g, y, x)); /* makes the index */
    const value_id b = add_node(g, "New", "b", 1, &y);
    graph_set_input(g, g->values[a].producer, 0, y);
    assert_ok(graph_replace_uses(g, y, b));
    assert_int_equal(g->nodes[g->values[a].producer].inputs[0], b);
    assert_int_equal(g->nodes[g->values[b].producer].inputs[0], b);
    graph_set_input(g, g->values[b].producer, 0, x);
    graph *body;
    value_id outer;
    assert_ok(graph_create("body", &body));
    assert_ok(graph_add_outer(body, "b", b, &outer));
    assert_ok(graph_add_output(body, outer));
    assert_ok(node_add_attribute(
        g, g->values[a].producer,
        &(graph_attribute){.name = "body", .type = ATTRIBUTE_GRAPH, .as.graph = body}));
    assert_ok(graph_replace_uses(g, b, x));
    assert_int_equal(body->values[outer].outer, x);
    assert_int_equal(g->nodes[g->values[a].producer].inputs[0], x);
    graph_free(g);
}

TEST(graph__a_removed_node_frees_its_outputs)
{
    graph *g = make();
    value_id x = add_input(g, "x"), y = add_node(g, "Old", "y", 1, &x);
    node_id n;
    assert_ok(graph_add_output(g, y));
    graph_remove_node(g, 0);
    assert_ok(graph_add_node(g, DOMAIN_INTERNAL, "New", "new", 1, &x, 1, &y, &n));
    assert_ok(graph_check(g));
    assert_int_equal(g->n_nodes, 1);
    assert_string_equal(g->nodes[0].op_type, "New");
    assert_int_equal(g->nodes[0].opset, 1);
    graph_free(g);
}

TEST(graph__dump)
{
    graph *g = make_with_subgraph();
    strbuf t;
    strbuf_init(&t, 0);
    graph_dump(g, &t);
    assert_string_equal(strbuf_data(&t), "graph 'test', opset 13\n"
                                         "  input x: float32 [N,3]\n"
                                         "  a = Abs(x) 'a'\n"
                                         "  y = If(x) {b=graph of 1 nodes} 'y'\n"
                                         "    b:\n"
                                         "      inner = Neg(a) 'inner'\n"
                                         "      output inner\n"
                                         "  output y\n");
    strbuf_deinit(&t);
    graph_dump_dot(g, &t);
    assert_non_null(strstr(strbuf_data(&t), "n0 [label=\"Abs\\na\"]"));
    assert_non_null(strstr(strbuf_data(&t), "i0 -> n0 [label=\"x\"]"));
    strbuf_deinit(&t);
    graph_free(g);
}

TEST(graph__dot_escapes_names)
{
    graph *g = make();
    value_id x = add_input(g, "a\"b\\");
    assert_ok(graph_add_output(g, x));
    g->values[x].dtype = CLG_FLOAT32;
    g->values[x].dims = (shape){.rank = 1, .dims = {DIM_UNKNOWN}};
    g->values[x].dim_names[0] = "\"";
    strbuf t;
    strbuf_init(&t, 0);
    graph_dump_dot(g, &t);
    assert_non_null(strstr(strbuf_data(&t), "label=\"a\\\"b\\\\: float32 [\\\"]\""));
    strbuf_deinit(&t);
    graph_free(g);
}

TEST(names__are_made_printable)
{
    char shown[NAME_TEXT_BYTES], long_name[300];
    assert_string_equal(name_text("conv1/weights:0", shown), "conv1/weights:0");
    assert_string_equal(name_text("gr\xc3\xbc\xc3\x9f"
                                  "e \xe2\x82\xac \xf0\x9f\x98\x80",
                                  shown),
                        "gr\xc3\xbc\xc3\x9f"
                        "e \xe2\x82\xac \xf0\x9f\x98\x80");
    assert_string_equal(name_text("a\n\x1b\x7f\xc2\x85", shown), "a????");
    assert_string_equal(name_text("\xff\xc3x\xc0\x80\xed\xa0\x80\xe2\x82", shown), "??x???????");
    memset(long_name, 'x', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = '\0';
    assert_int_equal(strlen(name_text(long_name, shown)), NAME_TEXT_BYTES - 1);
    assert_string_equal(shown + NAME_TEXT_BYTES - 4, "...");
    for (size_t i = 0; i + 1 < sizeof long_name; i++) long_name[i] = i % 2 ? '\xbc' : '\xc3';
    (void)name_text(long_name, shown); /* truncated between characters */
    assert_string_equal(shown + strlen(shown) - 5, "\xc3\xbc...");
    assert_string_equal(operator_text("com.example", "Op", shown), "com.example.Op");
    assert_string_equal(operator_text("", "Op", shown), "Op");
}

static clg_status build_and_edit(void *user)
{
    (void)user;
    graph *g, *copy = NULL;
    value_id x, y;
    node_id n;
    tensor *t = NULL;
    shape s = {.rank = 1, .dims = {2}};
    CLG_TRY(graph_create("g", &g));
    clg_status status = graph_set_opset(g, "", 13);
    if (status == CLG_OK) status = tensor_create(CLG_FLOAT32, &s, &t);
    if (status == CLG_OK) status = graph_add_constant(g, "x", t, &x);
    for (int i = 0; i < 20 && status == CLG_OK; i++) {
        status = graph_add_value(g, "", &y);
        if (status == CLG_OK) status = graph_add_node(g, "", "Neg", "n", 1, &x, 1, &y, &n);
        if (status == CLG_OK) status = node_set_tensor(g, n, "t", t);
        if (status == CLG_OK) status = node_set_string(g, n, "t", "s");
    }
    if (status == CLG_OK) status = graph_add_output(g, y);
    if (status == CLG_OK) graph_remove_node(g, 3);
    if (status == CLG_OK) status = graph_clone(g, &copy);
    if (status == CLG_OK) status = graph_check(copy);
    tensor_free(t);
    graph_free(g);
    graph_free(copy);
    return status;
}

TEST(graph__survives_every_failed_allocation)
{
    assert_true(fault_loop_alone(build_and_edit, NULL) > 10);
}
