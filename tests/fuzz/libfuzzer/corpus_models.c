/* SPDX-License-Identifier: Apache-2.0
 *
 * Corpora of the targets onnx and run: small models, each of other parts of the format.
 */
#include "corpus.h"

#include <string.h>

static const int64_t two[] = {2}, two_three[] = {2, 3}, three_two[] = {3, 2},
                     image[] = {1, 2, 5, 5}, filter[] = {3, 2, 3, 3}, any_three[] = {-1, 3};
static const float numbers[64] = {1, -2, 3, 0.5f, -0.25f, 6, 7, -8};

static ow_model begin(void) { return (ow_model){.ir_version = 8, .opset = 17}; }

/* Finishes a model; it joins the corpora of both targets. */
static void finish(ow_model *m, const char *name)
{
    ow_bytes b = ow_finish(m);
    corpus_file("run", name, b.data, b.n);
    corpus_bytes("onnx", name, b);
}

static void input(ow_model *m, const char *name, size_t rank, const int64_t *dims)
{
    ow_input(m, name, CLG_FLOAT32, rank, dims, "N");
}

static void weight(ow_model *m, const char *name, size_t rank, const int64_t *dims)
{
    size_t n = 1;
    for (size_t i = 0; i < rank; i++) n *= (size_t)dims[i];
    ow_initializer(m, ow_tensor_raw(name, CLG_FLOAT32, rank, dims, numbers, n * sizeof(float)));
}

static void integers(ow_model *m, const char *name, size_t n, const int64_t *values)
{
    const int64_t dims[] = {(int64_t)n};
    ow_bytes t = ow_tensor(name, CLG_INT64, 1, dims);
    ow_put_packed_ints(&t, 7, n, values);
    ow_initializer(m, t);
}

static void layers(void)
{
    ow_model m = begin();
    input(&m, "x", 2, two_three);
    weight(&m, "w", 2, three_two);
    weight(&m, "b", 1, two);
    ow_bytes gemm = ow_node("Gemm", "dense", "x,w,b", "h");
    ow_attribute_float(&gemm, "alpha", 0.5f);
    ow_add_node(&m, gemm);
    ow_simple_node(&m, "Relu", "relu", "h", "r");
    ow_bytes softmax = ow_node("Softmax", "soft", "r", "y");
    ow_attribute_int(&softmax, "axis", -1);
    ow_add_node(&m, softmax);
    ow_output(&m, "y", CLG_FLOAT32);
    finish(&m, "dense.onnx");

    m = begin();
    input(&m, "x", 4, image);
    weight(&m, "w", 4, filter);
    ow_bytes conv = ow_node("Conv", "conv", "x,w", "c");
    ow_attribute_ints(&conv, "pads", 4, (const int64_t[]){1, 1, 1, 1});
    ow_attribute_ints(&conv, "strides", 2, (const int64_t[]){2, 2});
    ow_add_node(&m, conv);
    ow_bytes pool = ow_node("MaxPool", "pool", "c", "p");
    ow_attribute_ints(&pool, "kernel_shape", 2, (const int64_t[]){2, 2});
    ow_attribute_string(&pool, "auto_pad", "SAME_UPPER");
    ow_add_node(&m, pool);
    ow_simple_node(&m, "GlobalAveragePool", "", "p", "y");
    ow_output(&m, "y", CLG_FLOAT32);
    finish(&m, "conv.onnx");
}

static void movement(void)
{
    ow_model m = begin();
    input(&m, "x", 2, any_three);
    integers(&m, "axes", 1, (const int64_t[]){0});
    integers(&m, "starts", 1, (const int64_t[]){1});
    integers(&m, "ends", 1, (const int64_t[]){INT64_MAX});
    integers(&m, "shape", 2, (const int64_t[]){-1, 1});
    ow_simple_node(&m, "Slice", "slice", "x,starts,ends", "s");
    ow_simple_node(&m, "Unsqueeze", "", "s,axes", "u");
    ow_bytes transpose = ow_node("Transpose", "", "u", "t");
    ow_attribute_ints(&transpose, "perm", 3, (const int64_t[]){2, 0, 1});
    ow_add_node(&m, transpose);
    ow_simple_node(&m, "Reshape", "", "t,shape", "r");
    ow_bytes concat = ow_node("Concat", "", "r,r", "y");
    ow_attribute_int(&concat, "axis", 1);
    ow_add_node(&m, concat);
    ow_simple_node(&m, "Shape", "", "y", "z");
    ow_output(&m, "y", CLG_FLOAT32);
    ow_output(&m, "z", CLG_INT64);
    finish(&m, "movement.onnx");

    m = begin();
    input(&m, "x", 2, two_three);
    ow_bytes constant = ow_node("Constant", "", NULL, "k");
    ow_attribute_tensor(&constant, "value",
                        ow_tensor_raw("", CLG_FLOAT32, 1, two, numbers, 2 * sizeof(float)));
    ow_add_node(&m, constant);
    ow_bytes list = ow_node("Constant", "", NULL, "l");
    ow_attribute_floats(&list, "value_floats", 3, numbers);
    ow_add_node(&m, list);
    ow_simple_node(&m, "Mul", "", "x,l", "p");
    ow_bytes sum = ow_node("ReduceMean", "", "p", "q");
    ow_attribute_ints(&sum, "axes", 1, (const int64_t[]){1});
    ow_attribute_int(&sum, "keepdims", 0);
    ow_add_node(&m, sum);
    ow_simple_node(&m, "Add", "", "q,k", "y");
    ow_simple_node(&m, "NonZero", "", "x", "n");
    ow_output(&m, "y", CLG_FLOAT32);
    ow_output(&m, "n", CLG_INT64);
    finish(&m, "constants.onnx");
}

/* A graph for an attribute, of one node. */
static ow_bytes branch(const char *op, const char *inputs, const char *output)
{
    ow_bytes g = {0};
    ow_put_message(&g, 1, ow_node(op, "", inputs, output));
    ow_put_string(&g, 2, "branch");
    ow_put_message(&g, 12, ow_value_info(output, CLG_FLOAT32, SIZE_MAX, NULL, NULL));
    return g;
}

static void control(void)
{
    ow_model m = begin();
    input(&m, "x", 1, two);
    ow_input(&m, "c", CLG_BOOL, 0, NULL, NULL);
    ow_bytes node = ow_node("If", "choice", "c", "y");
    ow_attribute_graph(&node, "then_branch", branch("Neg", "x", "t"));
    ow_attribute_graph(&node, "else_branch", branch("Exp", "x", "e"));
    ow_add_node(&m, node);
    ow_output(&m, "y", CLG_FLOAT32);
    finish(&m, "if.onnx");

    m = begin();
    input(&m, "x", 1, two);
    const int64_t trips = 3;
    ow_initializer(&m, ow_tensor_raw("n", CLG_INT64, 0, NULL, &trips, sizeof trips));
    ow_bytes g = {0};
    ow_put_message(&g, 1, ow_node("Identity", "", "cond", "again"));
    ow_put_message(&g, 1, ow_node("Add", "", "v,x", "w"));
    ow_put_string(&g, 2, "body");
    ow_put_message(&g, 11, ow_value_info("i", CLG_INT64, 0, NULL, NULL));
    ow_put_message(&g, 11, ow_value_info("cond", CLG_BOOL, 0, NULL, NULL));
    ow_put_message(&g, 11, ow_value_info("v", CLG_FLOAT32, 1, two, NULL));
    ow_put_message(&g, 12, ow_value_info("again", CLG_BOOL, 0, NULL, NULL));
    ow_put_message(&g, 12, ow_value_info("w", CLG_FLOAT32, 1, two, NULL));
    node = ow_node("Loop", "loop", "n,,x", "y");
    ow_attribute_graph(&node, "body", g);
    ow_add_node(&m, node);
    ow_output(&m, "y", CLG_FLOAT32);
    finish(&m, "loop.onnx");
}

static void external(const char *name, const char *location, const char *offset, const char *length)
{
    ow_model m = begin();
    input(&m, "x", 2, two_three);
    ow_initializer(&m,
                   ow_tensor_external("w", CLG_FLOAT32, 2, two_three, location, offset, length));
    ow_simple_node(&m, "Add", "", "x,w", "y");
    ow_output(&m, "y", CLG_FLOAT32);
    corpus_bytes("onnx", name, ow_finish(&m));
}

static void types(void)
{
    ow_model m = begin();
    ow_bytes s = ow_info("s", ow_type_list(OW_SEQUENCE, ow_type_tensor(CLG_FLOAT32)));
    ow_put_message(&m.graph, 11, s);
    ow_put_message(
        &m.graph, 11,
        ow_info("o",
                ow_type_list(OW_OPTIONAL, ow_type_list(OW_SEQUENCE, ow_type_tensor(CLG_INT64)))));
    ow_put_message(&m.graph, 11, ow_info("m", ow_type_map(CLG_INT64, ow_type_tensor(CLG_FLOAT32))));
    ow_simple_node(&m, "SequenceLength", "", "s", "n");
    ow_simple_node(&m, "OptionalHasElement", "", "o", "h");
    ow_output(&m, "n", CLG_INT64);
    ow_output(&m, "h", CLG_BOOL);
    finish(&m, "types.onnx");

    m = begin();
    ow_input(&m, "x", CLG_STRING, 1, two, NULL);
    ow_opset(&m, "ai.onnx.ml", 3);
    ow_bytes labels = ow_node("LabelEncoder", "", "x", "y");
    static const char *const keys[] = {"a", "b"};
    ow_attribute_strings(&labels, "keys_strings", 2, keys);
    ow_attribute_ints(&labels, "values_int64s", 2, (const int64_t[]){1, 2});
    ow_put_string(&labels, 7, "ai.onnx.ml");
    ow_add_node(&m, labels);
    ow_output(&m, "y", CLG_INT64);
    finish(&m, "labels.onnx");

    m = begin();
    ow_bytes sparse = {0};
    ow_put_message(&sparse, 1, ow_tensor_raw("p", CLG_FLOAT32, 1, two, numbers, 8));
    ow_put_message(&m.graph, 15, sparse);
    ow_simple_node(&m, "Neg", "", "p", "y");
    ow_output(&m, "y", CLG_FLOAT32);
    finish(&m, "sparse.onnx");
}

/* Models that are invalid, or old. */
static void odd(void)
{
    ow_model m = {.ir_version = 2};
    input(&m, "x", 1, two);
    ow_simple_node(&m, "NoSuchOperator", "odd\n\1name", "x,,missing", "y,z");
    ow_output(&m, "y", 0);
    ow_put_string(&m.extra, 2, "producer");
    ow_put_string(&m.extra, 3, "1.0");
    finish(&m, "unknown.onnx");

    m = (ow_model){.ir_version = 99, .opset = 999};
    input(&m, "x", SIZE_MAX, NULL);
    ow_simple_node(&m, "Relu", "", "y", "x");
    ow_simple_node(&m, "Relu", "", "x", "y");
    ow_output(&m, "y", CLG_FLOAT32);
    finish(&m, "cycle.onnx");

    m = begin();
    input(&m, "x", 1, two);
    ow_bytes clip = ow_node("Clip", "", "x", "y");
    ow_bytes bare = {0}; /* no type: as in IR 1 */
    ow_put_string(&bare, 1, "min");
    ow_put_float(&bare, 2, 0.5f);
    ow_put_message(&clip, 5, bare);
    ow_add_node(&m, clip);
    ow_bytes info = ow_value_info("y", CLG_FLOAT32, 1, two, NULL);
    ow_put_message(&m.graph, 13, info);
    ow_output(&m, "y", CLG_FLOAT32);
    m.opset = 6;
    finish(&m, "old.onnx");
    corpus_text("onnx", "text.onnx", "this is no model");
    corpus_text("onnx", "empty.onnx", "");
}

void corpus_models(void)
{
    layers();
    movement();
    control();
    types();
    odd();
    external("external.onnx", "weights.bin", "8", "24");
    external("external_all.onnx", "weights.bin", NULL, NULL);
    external("external_beyond.onnx", "weights.bin", "250", "24");
    external("external_missing.onnx", "other.weights.bin", "0", NULL);
    external("external_outside.onnx", "../weights.bin", "0", NULL);
    external("external_memory.onnx", "w.bin", "0", NULL);
}
