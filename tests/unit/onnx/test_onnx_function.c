/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests functions that a model defines: calls are replaced by the nodes of the function, and
 * invalid functions and calls are rejected.
 */
#include "support/unit.h"

#include "onnx/onnx.h"
#include "support/bytes.h"
#include "support/fixtures/onnx_writer.h"

#include <stdio.h>
#include <string.h>

enum {
    NAME = 1,
    INPUT = 4,
    OUTPUT = 5,
    ATTRIBUTE = 6,
    NODE = 7,
    OPSET = 9,
    DOMAIN = 10,
    DEFAULT = 11
};
enum { MODEL_FUNCTION = 25 };

/* Writes a function of the domain "my". inputs and outputs are names separated by commas. */
static ow_bytes function(const char *name, const char *inputs, const char *outputs, int64_t opset)
{
    ow_bytes f = {0}, import = {0}, mine = {0};
    char names[200];
    const char *lists[] = {inputs, outputs};
    ow_put_string(&f, NAME, name);
    for (int k = 0; k < 2; k++) {
        (void)snprintf(names, sizeof names, "%s", lists[k]);
        for (char *at = strtok(names, ","); at; at = strtok(NULL, ","))
            ow_put_string(&f, k ? OUTPUT : INPUT, at);
    }
    ow_put_string(&import, 1, "");
    ow_put_int(&import, 2, opset);
    ow_put_message(&f, OPSET, import);
    ow_put_string(&mine, 1, "my");
    ow_put_int(&mine, 2, 1);
    ow_put_message(&f, OPSET, mine);
    ow_put_string(&f, DOMAIN, "my");
    return f;
}

static void body(ow_bytes *f, const char *op, const char *inputs, const char *outputs)
{
    ow_put_message(f, NODE, ow_node(op, "", inputs, outputs));
}

/* Writes a node of the domain "my". */
static ow_bytes call(const char *op, const char *name, const char *inputs, const char *outputs)
{
    ow_bytes n = ow_node(op, name, inputs, outputs);
    ow_put_string(&n, 7, "my");
    return n;
}

/* Adds an attribute that takes the value of the call's attribute `reference`. */
static void refer(ow_bytes *node, const char *name, const char *reference, int type)
{
    ow_bytes a = {0};
    ow_put_string(&a, 1, name);
    ow_put_int(&a, 20, type);
    ow_put_string(&a, 21, reference);
    ow_put_message(node, 5, a);
}

static ow_model start(void)
{
    ow_model m = {.ir_version = 8, .opset = 17};
    ow_opset(&m, "my", 1);
    ow_input(&m, "x", CLG_FLOAT32, 1, (const int64_t[]){4}, NULL);
    return m;
}

static void add(ow_model *m, ow_bytes f) { ow_put_message(&m->extra, MODEL_FUNCTION, f); }

static clg_status try_load(ow_model *m, graph **out_graph)
{
    ow_bytes file = ow_finish(m);
    clg_status status = onnx_load_memory(file.data, file.n, 0, NULL, out_graph);
    if (status == CLG_OK) status = graph_check(*out_graph);
    if (status != CLG_OK) {
        graph_free(*out_graph);
        *out_graph = NULL;
    }
    ow_free(&file);
    return status;
}

static graph *load(ow_model *m)
{
    graph *g;
    assert_ok(try_load(m, &g));
    return g;
}

static void expect_node(const graph *g, size_t i, const char *op, const char *input,
                        const char *output)
{
    assert_true(i < g->n_nodes);
    const node *n = &g->nodes[i];
    assert_string_equal(n->op_type, op);
    assert_string_equal(g->values[n->inputs[0]].name, input);
    assert_string_equal(g->values[n->outputs[0]].name, output);
}

/* ---- calls ----------------------------------------------------------------------------------- */

TEST(functions__become_the_nodes_of_their_body)
{
    ow_model m = start();
    ow_bytes f = function("twice", "a", "c", 11);
    body(&f, "Neg", "a", "b");
    body(&f, "Exp", "b", "c");
    add(&m, f);
    ow_add_node(&m, call("twice", "first", "x", "y"));
    ow_add_node(&m, call("twice", "", "y", "z"));
    ow_output(&m, "z", CLG_FLOAT32);
    graph *g = load(&m);
    assert_int_equal(g->n_nodes, 4);
    expect_node(g, 0, "Neg", "x", "first::b");
    expect_node(g, 1, "Exp", "first::b", "y");
    expect_node(g, 2, "Neg", "y", "z::b");
    expect_node(g, 3, "Exp", "z::b", "z");
    for (size_t i = 0; i < 4; i++) assert_int_equal(g->nodes[i].opset, 11);
    graph_free(g);
}

TEST(functions__names_do_not_clash)
{
    ow_model m = start();
    ow_bytes f = function("twice", "a", "c", 13);
    body(&f, "Neg", "a", "x"); /* the graph has a value of that name, too */
    body(&f, "Exp", "x", "c");
    add(&m, f);
    ow_simple_node(&m, "Abs", "", "x", "n::x");
    ow_add_node(&m, call("twice", "n", "n::x", "y"));
    ow_add_node(&m, call("twice", "n", "y", "z"));
    ow_output(&m, "z", CLG_FLOAT32);
    graph *g = load(&m);
    assert_int_equal(g->n_nodes, 5);
    for (size_t i = 1; i < 5; i++)
        assert_int_equal(g->nodes[i].inputs[0], g->nodes[i - 1].outputs[0]);
    graph_free(g);
}

TEST(functions__call_functions)
{
    ow_model m = start();
    ow_bytes outer = function("outer", "a", "c", 13), inner = function("inner", "a", "c", 14);
    ow_put_message(&outer, NODE, call("inner", "deep", "a", "b"));
    body(&outer, "Exp", "b", "c");
    body(&inner, "Neg", "a", "b");
    body(&inner, "Abs", "b", "c");
    add(&m, outer);
    add(&m, inner);
    ow_add_node(&m, call("outer", "n", "x", "y"));
    ow_output(&m, "y", CLG_FLOAT32);
    graph *g = load(&m);
    assert_int_equal(g->n_nodes, 3);
    expect_node(g, 0, "Neg", "x", "n::deep::b");
    expect_node(g, 1, "Abs", "n::deep::b", "n::b");
    expect_node(g, 2, "Exp", "n::b", "y");
    assert_int_equal(g->nodes[0].opset, 14);
    assert_int_equal(g->nodes[2].opset, 13);
    graph_free(g);
}

TEST(functions__inputs_and_outputs_may_be_left_out)
{
    ow_model m = start();
    ow_bytes f = function("clip", "a,low,high", "b,c", 13);
    body(&f, "Clip", "a,low,high", "b");
    body(&f, "Neg", "b", "c");
    add(&m, f);
    ow_add_node(&m, call("clip", "one", "x,,x", "y"));
    ow_add_node(&m, call("clip", "two", "x", ",z"));
    ow_output(&m, "y", CLG_FLOAT32);
    ow_output(&m, "z", CLG_FLOAT32);
    graph *g = load(&m);
    assert_int_equal(g->n_nodes, 4);
    assert_int_equal(g->nodes[0].n_inputs, 3);
    assert_true(g->nodes[0].inputs[1] == VALUE_NONE);
    assert_int_equal(g->nodes[2].n_inputs, 1);
    expect_node(g, 3, "Neg", "two::b", "z");
    graph_free(g);
}

TEST(functions__may_give_back_an_input)
{
    ow_model m = start();
    ow_bytes f = function("both", "a", "a,b", 13);
    body(&f, "Neg", "a", "b");
    add(&m, f);
    ow_add_node(&m, call("both", "n", "x", "y,z"));
    ow_output(&m, "y", CLG_FLOAT32);
    ow_output(&m, "z", CLG_FLOAT32);
    graph *g = load(&m);
    assert_int_equal(g->n_nodes, 2);
    expect_node(g, 1, "Identity", "x", "y");
    graph_free(g);
}

/* Checks a call of a function in a branch, and branches in a function. */
TEST(functions__in_branches_and_branches_in_functions)
{
    ow_model m = start(), then_ = {0}, else_ = {0}, inside = {0};
    ow_bytes f = function("neg", "a", "b", 13), choice = ow_node("If", "", "c", "b");
    ow_bytes g_ = function("choose", "c,a", "b", 13), top = ow_node("If", "", "c", "z");
    body(&f, "Neg", "a", "b");
    ow_simple_node(&then_, "Exp", "", "a", "t");
    ow_output(&then_, "t", CLG_FLOAT32);
    ow_add_node(&else_, call("neg", "n", "a", "e"));
    ow_output(&else_, "e", CLG_FLOAT32);
    ow_attribute_graph(&choice, "then_branch", then_.graph);
    ow_attribute_graph(&choice, "else_branch", else_.graph);
    ow_put_message(&g_, NODE, choice);
    add(&m, f);
    add(&m, g_);
    ow_input(&m, "c", CLG_BOOL, 0, NULL, NULL);
    ow_add_node(&inside, call("choose", "k", "c,x", "r"));
    ow_output(&inside, "r", CLG_FLOAT32);
    ow_attribute_graph(&top, "then_branch", inside.graph);
    inside = (ow_model){0};
    ow_simple_node(&inside, "Abs", "", "x", "r");
    ow_output(&inside, "r", CLG_FLOAT32);
    ow_attribute_graph(&top, "else_branch", inside.graph);
    ow_add_node(&m, top);
    ow_output(&m, "z", CLG_FLOAT32);
    graph *g = load(&m);
    const graph *branch = node_attribute(&g->nodes[0], "then_branch")->as.graph;
    assert_int_equal(branch->n_nodes, 1);
    assert_string_equal(branch->nodes[0].op_type, "If");
    assert_string_equal(branch->nodes[0].name, "k");
    const graph *inner = node_attribute(&branch->nodes[0], "else_branch")->as.graph;
    expect_node(inner, 0, "Neg", "a", "e");
    graph_free(g);
}

/* ---- attributes ------------------------------------------------------------------------------ */

/* Writes the function softmax(a), whose axis is the attribute "along" of the call. has_default: it
 * is 3 when the call omits it. */
static ow_bytes softmax(bool has_default)
{
    ow_bytes f = function("softmax", "a", "b", 13), n = ow_node("Softmax", "", "a", "b");
    refer(&n, "axis", "along", 2);
    ow_put_message(&f, NODE, n);
    if (has_default) {
        ow_bytes a = {0};
        ow_put_string(&a, 1, "along");
        ow_put_int(&a, 3, 3);
        ow_put_int(&a, 20, 2);
        ow_put_message(&f, DEFAULT, a);
    } else {
        ow_put_string(&f, ATTRIBUTE, "along");
    }
    return f;
}

TEST(functions__attributes_come_from_the_call)
{
    for (int form = 0; form < 4; form++) {
        ow_model m = start();
        const bool has_default = form & 1, given = form & 2;
        ow_bytes n = call("softmax", "n", "x", "y");
        if (given) ow_attribute_int(&n, "along", 0);
        add(&m, softmax(has_default));
        ow_add_node(&m, n);
        ow_output(&m, "y", CLG_FLOAT32);
        graph *g = load(&m);
        assert_int_equal(node_int(&g->nodes[0], "axis", -7), given ? 0 : has_default ? 3 : -7);
        graph_free(g);
    }
}

TEST(functions__attributes_go_through_calls)
{
    ow_model m = start();
    ow_bytes f = function("outer", "a", "b", 13), inner = call("softmax", "", "a", "b"),
             n = call("outer", "n", "x", "y");
    refer(&inner, "along", "where", 2);
    ow_put_message(&f, NODE, inner);
    ow_put_string(&f, ATTRIBUTE, "where");
    ow_attribute_int(&n, "where", -1);
    add(&m, f);
    add(&m, softmax(true));
    ow_add_node(&m, n);
    ow_output(&m, "y", CLG_FLOAT32);
    graph *g = load(&m);
    assert_int_equal(node_int(&g->nodes[0], "axis", -7), -1);
    graph_free(g);
}

/* ---- functions and calls that are rejected --------------------------------------------------- */

static void expect_refused(ow_bytes f, ow_bytes n, const char *words)
{
    graph *g;
    ow_model m = start();
    add(&m, f);
    ow_add_node(&m, n);
    ow_output(&m, "y", CLG_FLOAT32);
    assert_error(try_load(&m, &g), CLG_ERROR_INVALID_MODEL, words);
}

TEST(functions__that_do_not_fit_are_refused)
{
    ow_bytes f = function("f", "a", "b", 13);
    ow_put_message(&f, NODE, call("f", "", "a", "b"));
    expect_refused(f, call("f", "n", "x", "y"), "calls itself");
    f = function("f", "a", "b", 13);
    body(&f, "Neg", "a", "b");
    expect_refused(f, call("f", "n", "x,x", "y"), "1 inputs, and the call 2");
    f = function("f", "a", "b", 13);
    body(&f, "Neg", "a", "b");
    expect_refused(f, call("f", "n", "x", "y,z"), "1 outputs, and the call 2");
    f = function("f", "a", "b", 13);
    body(&f, "Neg", "x", "b"); /* x is a value of the graph, not of the function */
    expect_refused(f, call("f", "n", "x", "y"), "n::x");
    f = function("f", "a", "b", 13);
    body(&f, "Neg", "a", "a");
    expect_refused(f, call("f", "n", "x", "y"), "which is an input");
    f = function("f", "a", "b", 13);
    body(&f, "Neg", "a", "c");
    expect_refused(f, call("f", "n", "x", "y"), "'y'");
    f = function("f", "a,a", "b", 13);
    expect_refused(f, call("f", "n", "x,x", "y"), "two inputs");
    ow_bytes n = call("softmax", "n", "x", "y");
    ow_attribute_int(&n, "axis", 0);
    expect_refused(softmax(false), n, "no attribute 'axis'");
    n = call("softmax", "n", "x", "y");
    ow_attribute_int(&n, "along", 0);
    ow_attribute_int(&n, "along", 1);
    expect_refused(softmax(true), n, "'along' twice");
}

TEST(functions__defined_twice_are_refused)
{
    graph *g;
    ow_model m = start();
    add(&m, softmax(true));
    add(&m, softmax(true));
    assert_error(try_load(&m, &g), CLG_ERROR_INVALID_MODEL, "my.softmax twice");
}

/* Checks that 40 functions, each calling the next one twice, are rejected. */
TEST(functions__that_multiply_are_refused)
{
    graph *g;
    ow_model m = start();
    for (int i = 0; i < 40; i++) {
        char name[16], next[16];
        (void)snprintf(name, sizeof name, "f%d", i);
        (void)snprintf(next, sizeof next, "f%d", i + 1);
        ow_bytes f = function(name, "a", "c", 13);
        ow_put_message(&f, NODE, call(next, "", "a", "b"));
        ow_put_message(&f, NODE, call(next, "", "b", "c"));
        add(&m, f);
    }
    ow_bytes last = function("f40", "a", "b", 13);
    body(&last, "Neg", "a", "b");
    add(&m, last);
    ow_add_node(&m, call("f0", "n", "x", "y"));
    ow_output(&m, "y", CLG_FLOAT32);
    assert_error(try_load(&m, &g), CLG_ERROR_INVALID_MODEL, "too large");
}

/* Checks that a model of n calls, y0, y1.. = f(x), is rejected as too large. */
static void expect_too_large(ow_bytes f, int n)
{
    graph *g;
    ow_model m = start();
    add(&m, f);
    for (int i = 0; i < n; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "y%d", i);
        ow_add_node(&m, call("f", "", "x", name));
    }
    ow_output(&m, "y0", CLG_FLOAT32);
    assert_error(try_load(&m, &g), CLG_ERROR_INVALID_MODEL, "too large");
}

/* Checks that many calls of a function with many attributes are rejected: reading the function for
 * each call would take very long. */
TEST(functions__that_are_much_work_are_refused)
{
    ow_bytes f = function("f", "a", "b", 13);
    body(&f, "Neg", "a", "b");
    for (int i = 0; i < 5000; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "a%d", i);
        ow_put_string(&f, ATTRIBUTE, name);
    }
    expect_too_large(f, 5000);
}

/* Checks calls of a function whose one node has thousands of outputs, each of few bytes. */
TEST(functions__with_many_values_are_refused)
{
    ow_bytes f = function("f", "a", "b", 13), split = ow_node("Split", "", "a", "b");
    for (int i = 0; i < 5000; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "v%d", i);
        ow_put_string(&split, 2, name);
    }
    ow_put_message(&f, NODE, split);
    expect_too_large(f, 200);
}

static void survive(void *user, const uint8_t *data, size_t n)
{
    (void)user;
    graph *g;
    if (onnx_load_memory(data, n, 0, NULL, &g) != CLG_OK) return;
    (void)graph_check(g);
    graph_free(g);
}

TEST(functions__survive_damage)
{
    ow_model m = start();
    ow_bytes n = call("softmax", "n", "x", "y");
    ow_attribute_int(&n, "along", 0);
    add(&m, softmax(true));
    ow_add_node(&m, n);
    ow_output(&m, "y", CLG_FLOAT32);
    ow_bytes file = ow_finish(&m);
    bytes_each_prefix(file.data, file.n, survive, NULL);
    bytes_each_damage(file.data, file.n, survive, NULL);
    ow_free(&file);
}
