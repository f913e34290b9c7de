/* SPDX-License-Identifier: Apache-2.0
 *
 * Corpora of the targets onnx and run: models with functions of their own.
 */
#include "corpus.h"

#include <string.h>

enum {
    FUNCTION_NAME = 1,
    FUNCTION_INPUT = 4,
    FUNCTION_OUTPUT = 5,
    FUNCTION_ATTRIBUTE = 6,
    FUNCTION_NODE = 7,
    FUNCTION_OPSET = 9,
    FUNCTION_DOMAIN = 10,
    FUNCTION_DEFAULT = 11
};
enum { MODEL_FUNCTION = 25, NODE_ATTRIBUTE = 5, NODE_DOMAIN = 7 };

static ow_bytes function(const char *name)
{
    ow_bytes f = {0}, import = {0}, mine = {0};
    ow_put_string(&f, FUNCTION_NAME, name);
    ow_put_string(&f, FUNCTION_INPUT, "a");
    ow_put_string(&f, FUNCTION_INPUT, "b");
    ow_put_string(&f, FUNCTION_OUTPUT, "c");
    ow_put_string(&import, 1, "");
    ow_put_int(&import, 2, 17);
    ow_put_message(&f, FUNCTION_OPSET, import);
    ow_put_string(&mine, 1, "my");
    ow_put_int(&mine, 2, 1);
    ow_put_message(&f, FUNCTION_OPSET, mine);
    ow_put_string(&f, FUNCTION_DOMAIN, "my");
    return f;
}

static ow_bytes call(const char *op, const char *inputs, const char *outputs)
{
    ow_bytes n = ow_node(op, "", inputs, outputs);
    ow_put_string(&n, NODE_DOMAIN, "my");
    return n;
}

/* Adds an attribute that refers to one of the function. */
static void refer(ow_bytes *node, const char *name, const char *reference, int type)
{
    ow_bytes a = {0};
    ow_put_string(&a, 1, name);
    ow_put_int(&a, 20, type);
    ow_put_string(&a, 21, reference);
    ow_put_message(node, NODE_ATTRIBUTE, a);
}

static void finish(const char *name, ow_bytes inner, ow_bytes outer, ow_bytes node)
{
    ow_model m = {.ir_version = 8, .opset = 17};
    ow_input(&m, "x", CLG_FLOAT32, 2, (const int64_t[]){2, 3}, NULL);
    ow_opset(&m, "my", 1);
    ow_add_node(&m, node);
    ow_output(&m, "y", CLG_FLOAT32);
    if (inner.n) ow_put_message(&m.extra, MODEL_FUNCTION, inner);
    if (outer.n) ow_put_message(&m.extra, MODEL_FUNCTION, outer);
    ow_bytes b = ow_finish(&m);
    corpus_file("run", name, b.data, b.n);
    corpus_bytes("onnx", name, b);
}

void corpus_functions(void)
{
    ow_bytes inner = function("Inner"), outer = function("Outer");
    ow_bytes leaky = ow_node("LeakyRelu", "", "a", "l");
    refer(&leaky, "alpha", "slope", 1);
    ow_put_message(&inner, FUNCTION_NODE, leaky);
    ow_put_message(&inner, FUNCTION_NODE, ow_node("Add", "", "l,b", "c"));
    ow_put_string(&inner, FUNCTION_ATTRIBUTE, "slope");
    ow_bytes first = call("Inner", "a,b", "t");
    refer(&first, "slope", "tilt", 1);
    ow_put_message(&outer, FUNCTION_NODE, first);
    ow_put_message(&outer, FUNCTION_NODE, call("Inner", "t,a", "c"));
    ow_bytes preset = {0};
    ow_put_string(&preset, 1, "tilt");
    ow_put_float(&preset, 2, 0.25f);
    ow_put_int(&preset, 20, 1);
    ow_put_message(&outer, FUNCTION_DEFAULT, preset);
    ow_bytes node = call("Outer", "x,x", "y");
    ow_attribute_float(&node, "tilt", 0.5f);
    finish("functions.onnx", inner, outer, node);

    inner = function("Inner"); /* the body of an If, an omitted input, unused names */
    ow_bytes g = {0}, choice = ow_node("If", "", "k", "c");
    ow_put_message(&g, 1, ow_node("Identity", "", "a", "r"));
    ow_put_string(&g, 2, "branch");
    ow_put_message(&g, 12, ow_value_info("r", CLG_FLOAT32, SIZE_MAX, NULL, NULL));
    ow_attribute_graph(&choice, "then_branch", g);
    g = (ow_bytes){0};
    ow_put_message(&g, 1, ow_node("Neg", "", "a", "r"));
    ow_put_string(&g, 2, "branch");
    ow_put_message(&g, 12, ow_value_info("r", CLG_FLOAT32, SIZE_MAX, NULL, NULL));
    ow_attribute_graph(&choice, "else_branch", g);
    ow_bytes constant = ow_node("Constant", "", NULL, "k");
    const uint8_t yes = 1;
    ow_attribute_tensor(&constant, "value", ow_tensor_raw("", CLG_BOOL, 0, NULL, &yes, 1));
    ow_put_message(&inner, FUNCTION_NODE, constant);
    ow_put_message(&inner, FUNCTION_NODE, choice);
    finish("function_if.onnx", inner, (ow_bytes){0}, call("Inner", "x", "y"));

    inner = function("Inner"); /* calls itself */
    ow_put_message(&inner, FUNCTION_NODE, call("Inner", "a,b", "c"));
    finish("function_recursive.onnx", inner, (ow_bytes){0}, call("Inner", "x,x", "y"));

    inner = function("Inner");
    outer = function("Inner"); /* twice the same */
    ow_put_message(&inner, FUNCTION_NODE, ow_node("Add", "", "a,b", "c"));
    finish("function_twice.onnx", inner, outer, call("Inner", "x,x", "y"));

    inner = function("Inner"); /* more inputs and outputs than it has */
    ow_put_message(&inner, FUNCTION_NODE, ow_node("Add", "", "a,b", "c"));
    finish("function_many.onnx", inner, (ow_bytes){0}, call("Inner", "x,x,x", "y,z"));

    finish("function_missing.onnx", (ow_bytes){0}, (ow_bytes){0}, call("Inner", "x,x", "y"));
}
