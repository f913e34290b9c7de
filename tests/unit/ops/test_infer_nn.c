/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests shape inference of matrix products, convolutions, pooling, normalisations and resizing, and
 * the errors for invalid shapes.
 */
#include "support/unit.h"

#include "ops/core/op.h"

#include <string.h>

#define U DIM_UNKNOWN
#define DIMS(...)                                                                                  \
    ((shape){.rank = (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)),                    \
             .dims = {__VA_ARGS__}})

/* A node under test: its inputs, their values where they are known, and its outputs. */
typedef struct trial {
    graph *graph;
    node_id n;
    value_fact inputs[6], outputs[6];
    tensor *contents[6];
} trial;

static trial t;

static void start(const char *domain, const char *op_type, int64_t opset, size_t n_inputs,
                  size_t n_outputs)
{
    value_id in[6], out[6];
    t = (trial){0};
    assert_ok(graph_create("test", &t.graph));
    assert_ok(graph_set_opset(t.graph, "", opset));
    for (size_t i = 0; i < n_inputs; i++) assert_ok(graph_add_value(t.graph, "", &in[i]));
    for (size_t i = 0; i < n_outputs; i++) assert_ok(graph_add_value(t.graph, "", &out[i]));
    assert_ok(graph_add_node(t.graph, domain, op_type, "here", n_inputs, in, n_outputs, out, &t.n));
}

static void finish(void)
{
    for (size_t i = 0; i < 6; i++) tensor_free(t.contents[i]);
    graph_free(t.graph);
}

static void input(size_t i, clg_dtype dtype, shape dims) { fact_set(&t.inputs[i], dtype, &dims); }

static void give(size_t i, clg_dtype dtype, size_t n, const double *numbers)
{
    const shape dims = DIMS((int64_t)n);
    input(i, dtype, dims);
    assert_ok(tensor_create(dtype, &dims, &t.contents[i]));
    for (size_t k = 0; k < n; k++) tensor_set_float(t.contents[i], (int64_t)k, numbers[k]);
    t.inputs[i].known = t.contents[i];
}

#define INTS(name, ...)                                                                            \
    assert_ok(node_set_ints(t.graph, t.n, name,                                                    \
                            sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t),                    \
                            (int64_t[]){__VA_ARGS__}))
#define INT(name, value) assert_ok(node_set_int(t.graph, t.n, name, value))
#define STRING(name, value) assert_ok(node_set_string(t.graph, t.n, name, value))

static clg_status infer(void)
{
    uint32_t needs;
    CLG_TRY(ops_resolve(t.graph));
    return ops_infer_node(&t.graph->nodes[t.n], t.inputs, t.outputs, &needs);
}

static void expect(shape wanted)
{
    char got[SHAPE_TEXT_BYTES], want[SHAPE_TEXT_BYTES];
    assert_ok(infer());
    assert_string_equal(shape_text(&t.outputs[0].dims, got), shape_text(&wanted, want));
    finish();
}

static void refuse(clg_status status, const char *words)
{
    assert_error(infer(), status, words);
    assert_non_null(strstr(error_text(), "'here'"));
    finish();
}

/* ---- GEMMs ----------------------------------------------------------------------------------- */

static void gemm(shape a, shape b)
{
    start("", "Gemm", 13, 2, 1);
    input(0, CLG_FLOAT32, a);
    input(1, CLG_FLOAT32, b);
}

TEST(infer_nn__gemm)
{
    gemm(DIMS(2, 3), DIMS(3, 5));
    expect(DIMS(2, 5));
    gemm(DIMS(3, 2), DIMS(5, 3));
    INT("transA", 1);
    INT("transB", 1);
    expect(DIMS(2, 5));
    gemm(DIMS(U, 3), DIMS(3, 5));
    expect(DIMS(U, 5));
    gemm(DIMS(2, 0), DIMS(0, 5));
    expect(DIMS(2, 5));
    gemm(DIMS(2, 3), DIMS(4, 5));
    refuse(CLG_ERROR_SHAPE, "A has 3 columns and B 4 rows");
    gemm(DIMS(2, 3, 1), DIMS(3, 5));
    refuse(CLG_ERROR_SHAPE, "must be matrices");
    start("", "Gemm", 13, 3, 1);
    input(0, CLG_FLOAT32, DIMS(2, 3));
    input(1, CLG_FLOAT32, DIMS(3, 5));
    input(2, CLG_FLOAT32, DIMS(4, 5));
    refuse(CLG_ERROR_SHAPE, "[4,5] does not broadcast");
}

static void matmul(shape a, shape b)
{
    start("", "MatMul", 13, 2, 1);
    input(0, CLG_FLOAT32, a);
    input(1, CLG_FLOAT32, b);
}

TEST(infer_nn__matmul)
{
    matmul(DIMS(2, 3), DIMS(3, 5));
    expect(DIMS(2, 5));
    matmul(DIMS(3), DIMS(3, 5));
    expect(DIMS(5));
    matmul(DIMS(2, 3), DIMS(3));
    expect(DIMS(2));
    matmul(DIMS(3), DIMS(3));
    expect(shape_scalar());
    matmul(DIMS(7, 1, 2, 3), DIMS(4, 3, 5));
    expect(DIMS(7, 4, 2, 5));
    matmul(DIMS(4, 2, 3), DIMS(3));
    expect(DIMS(4, 2));
    matmul(DIMS(U, 2, 3), DIMS(4, 3, 5));
    expect(DIMS(4, 2, 5));
    matmul(DIMS(2, 3), DIMS(4, 5));
    refuse(CLG_ERROR_SHAPE, "A has 3 columns and B 4 rows");
    matmul(DIMS(2, 2, 3), DIMS(3, 3, 5));
    refuse(CLG_ERROR_SHAPE, "do not broadcast");
    matmul(shape_scalar(), DIMS(3, 5));
    refuse(CLG_ERROR_SHAPE, "scalar");
}

TEST(infer_nn__fused)
{
    start("clgraph", "FusedGemm", 13, 3, 1);
    input(0, CLG_FLOAT32, DIMS(2, 3));
    input(1, CLG_FLOAT32, DIMS(3, 5));
    input(2, CLG_FLOAT32, DIMS(5));
    STRING("activation", "Relu");
    expect(DIMS(2, 5));
    start("clgraph", "FusedMatMul", 13, 2, 1);
    STRING("activation", "Sinh");
    refuse(CLG_ERROR_UNSUPPORTED_ATTRIBUTE, "'Sinh', which cannot be fused");
    start("clgraph", "FusedMatMul", 13, 3, 1);
    input(0, CLG_FLOAT32, DIMS(2, 3));
    input(1, CLG_FLOAT32, DIMS(3, 5));
    input(2, CLG_FLOAT32, DIMS(4));
    refuse(CLG_ERROR_SHAPE, "4 elements for 5 columns");
}

/* ---- convolutions and pools ------------------------------------------------------------------ */

static void conv(shape x, shape w)
{
    start("", "Conv", 13, 2, 1);
    input(0, CLG_FLOAT32, x);
    input(1, CLG_FLOAT32, w);
}

TEST(infer_nn__conv)
{
    conv(DIMS(1, 3, 224, 224), DIMS(64, 3, 7, 7));
    INTS("strides", 2, 2);
    INTS("pads", 3, 3, 3, 3);
    expect(DIMS(1, 64, 112, 112));
    conv(DIMS(2, 4, 10), DIMS(6, 2, 3));
    INT("group", 2);
    INTS("dilations", 2);
    expect(DIMS(2, 6, 6));
    conv(DIMS(1, 1, 5, 6, 7), DIMS(1, 1, 2, 3, 4));
    INTS("pads", 1, 0, 0, 0, 0, 1);
    expect(DIMS(1, 1, 5, 4, 5));
    conv(DIMS(1, 1, 7, 8), DIMS(1, 1, 3, 3));
    STRING("auto_pad", "SAME_LOWER");
    INTS("strides", 2, 3);
    expect(DIMS(1, 1, 4, 3));
    conv(DIMS(1, 1, 7, 8), DIMS(1, 1, 3, 3));
    STRING("auto_pad", "VALID");
    expect(DIMS(1, 1, 5, 6));
    conv(DIMS(U, 3, U, 8), DIMS(4, 3, 3, 3));
    expect(DIMS(U, 4, U, 6));
    conv(DIMS(0, 3, 8, 8), DIMS(4, 3, 3, 3));
    expect(DIMS(0, 4, 6, 6));
}

TEST(infer_nn__conv_refuses)
{
    conv(DIMS(1, 3, 8, 8), DIMS(4, 2, 3, 3));
    refuse(CLG_ERROR_SHAPE, "3 channels where 1 groups of 2");
    conv(DIMS(1, 4, 8, 8), DIMS(3, 2, 3, 3));
    INT("group", 2);
    refuse(CLG_ERROR_SHAPE, "3 output channels are not divisible into 2 groups");
    conv(DIMS(1, 3, 2, 8), DIMS(4, 3, 3, 3));
    refuse(CLG_ERROR_SHAPE, "a window of 3 does not fit spatial axis 0 of size 2");
    conv(DIMS(1, 3, 8, 8), DIMS(4, 3, 3, 3));
    INTS("kernel_shape", 5, 3);
    refuse(CLG_ERROR_SHAPE, "kernel_shape says 5 where the weight has 3");
    conv(DIMS(1, 3, 8, 8), DIMS(4, 3, 3, 3));
    INTS("pads", 1, 1, 1);
    refuse(CLG_ERROR_SHAPE, "pads has 3 values");
    conv(DIMS(1, 3, 8, 8), DIMS(4, 3, 3, 3));
    INTS("strides", 0, 1);
    refuse(CLG_ERROR_INVALID_MODEL, "'strides' has the element 0");
    conv(DIMS(1, 3, 8, 8), DIMS(4, 3, 3, 3));
    INTS("dilations", INT64_MAX, 1);
    refuse(CLG_ERROR_INVALID_MODEL, "'dilations' has the element 9223372036854775807");
    conv(DIMS(1, 3, 8, 8), DIMS(4, 3, 3, 3));
    STRING("auto_pad", "SAME");
    refuse(CLG_ERROR_UNSUPPORTED_ATTRIBUTE, "'auto_pad' is 'SAME'");
    conv(DIMS(1, 3, 8, 8, 8, 8), DIMS(4, 3, 3, 3, 3, 3));
    refuse(CLG_ERROR_UNSUPPORTED_ATTRIBUTE, "over 4 axes");
    conv(DIMS(1, 3), DIMS(4, 3));
    refuse(CLG_ERROR_SHAPE, "rank 2");
    conv(DIMS(1, 3, 8), DIMS(4, 3, 3, 3));
    refuse(CLG_ERROR_SHAPE, "rank 3 and the weight 4");
    conv(DIMS(1, 3, 8, 8), DIMS(4, 3, 3, 3));
    INT("group", 0);
    refuse(CLG_ERROR_INVALID_MODEL, "'group' is 0");
}

static void pool(const char *op_type, shape x)
{
    start("", op_type, 19, 1, 1);
    input(0, CLG_FLOAT32, x);
}

TEST(infer_nn__pool)
{
    pool("MaxPool", DIMS(1, 64, 112, 112));
    INTS("kernel_shape", 3, 3);
    INTS("strides", 2, 2);
    INTS("pads", 1, 1, 1, 1);
    expect(DIMS(1, 64, 56, 56));
    pool("MaxPool", DIMS(1, 1, 4, 4));
    INTS("kernel_shape", 3, 3);
    INTS("strides", 2, 2);
    INT("ceil_mode", 1);
    expect(DIMS(1, 1, 2, 2));
    /* The third window would start in the padding at the end. */
    pool("AveragePool", DIMS(1, 1, 2));
    INTS("kernel_shape", 1);
    INTS("strides", 2);
    INTS("pads", 0, 1);
    INT("ceil_mode", 1);
    expect(DIMS(1, 1, 1));
    pool("LpPool", DIMS(1, 2, 5, 6, 7));
    INTS("kernel_shape", 2, 2, 2);
    INTS("dilations", 2, 1, 1);
    expect(DIMS(1, 2, 3, 5, 6));
    pool("MaxPool", DIMS(1, 1, 4, 4));
    refuse(CLG_ERROR_INVALID_MODEL, "lacks the attribute 'kernel_shape'");
    pool("MaxPool", DIMS(1, 1, 4, 4));
    INTS("kernel_shape", 3);
    refuse(CLG_ERROR_SHAPE, "kernel_shape has 1 values where the input requires 2");
}

/* ---- softmax and normalisation --------------------------------------------------------------- */

TEST(infer_nn__softmax)
{
    start("", "Softmax", 13, 1, 1);
    input(0, CLG_FLOAT32, DIMS(2, U, 4));
    expect(DIMS(2, U, 4));
    start("", "LogSoftmax", 13, 1, 1);
    input(0, CLG_FLOAT32, DIMS(2, 3));
    INT("axis", 2);
    refuse(CLG_ERROR_SHAPE, "axis does not fit an input of rank 2");
    start("", "Softmax", 13, 1, 1);
    input(0, CLG_INT32, DIMS(2, 3));
    refuse(CLG_ERROR_UNSUPPORTED_DTYPE, "int32");
}

static void batch_norm(int64_t opset, size_t n_outputs)
{
    start("", "BatchNormalization", opset, 5, n_outputs);
    input(0, CLG_FLOAT32, DIMS(2, 3, 4, 5));
    for (size_t i = 1; i < 5; i++) input(i, CLG_FLOAT32, DIMS(3));
}

TEST(infer_nn__norm)
{
    batch_norm(15, 1);
    expect(DIMS(2, 3, 4, 5));
    batch_norm(15, 3);
    INT("training_mode", 1);
    expect(DIMS(2, 3, 4, 5));
    batch_norm(6, 1);
    refuse(CLG_ERROR_UNSUPPORTED_ATTRIBUTE, "is_test 0 and none of the outputs of training");
    batch_norm(9, 1);
    input(2, CLG_FLOAT32, DIMS(4));
    refuse(CLG_ERROR_SHAPE, "input 2 has 4 elements for 3 channels");
    start("", "LayerNormalization", 17, 2, 3);
    input(0, CLG_FLOAT32, DIMS(2, 3, 4));
    input(1, CLG_FLOAT32, DIMS(3, 4));
    INT("axis", 1);
    assert_ok(infer());
    assert_int_equal(t.outputs[1].dims.rank, 3);
    assert_int_equal(t.outputs[1].dims.dims[0], 2);
    assert_int_equal(t.outputs[1].dims.dims[1], 1);
    expect(DIMS(2, 3, 4));
    start("", "GroupNormalization", 21, 3, 1);
    input(0, CLG_FLOAT32, DIMS(2, 6, 4));
    input(1, CLG_FLOAT32, DIMS(6));
    input(2, CLG_FLOAT32, DIMS(6));
    INT("num_groups", 4);
    refuse(CLG_ERROR_SHAPE, "6 channels are not divisible into 4 groups");
}

/* ---- resizing -------------------------------------------------------------------------------- */

static void resize(int64_t opset, shape x)
{
    start("", "Resize", opset, 4, 1);
    /* roi and scales are omitted; graph_add_node keeps inner VALUE_NONEs. */
    t.graph->nodes[t.n].inputs[1] = VALUE_NONE;
    t.graph->nodes[t.n].inputs[2] = VALUE_NONE;
    input(0, CLG_FLOAT32, x);
}

TEST(infer_nn__resize)
{
    resize(13, DIMS(1, 1, 4, 4));
    give(3, CLG_INT64, 4, (double[]){1, 1, 7, 9});
    expect(DIMS(1, 1, 7, 9));
    resize(18, DIMS(1, 1, 2, 4));
    give(3, CLG_INT64, 2, (double[]){1, 3});
    INTS("axes", 2, -1);
    STRING("keep_aspect_ratio_policy", "not_larger");
    expect(DIMS(1, 1, 1, 2));
    resize(18, DIMS(1, 1, 2, 4));
    give(3, CLG_INT64, 2, (double[]){3, 1});
    INTS("axes", 3, 2);
    STRING("keep_aspect_ratio_policy", "not_smaller");
    expect(DIMS(1, 1, 2, 3));
    start("", "Upsample", 9, 2, 1);
    input(0, CLG_FLOAT32, DIMS(1, 1, 2, 3));
    give(1, CLG_FLOAT32, 4, (double[]){1, 1, 2, 1.7});
    expect(DIMS(1, 1, 4, 5));
    /* The values of sizes are unknown, as when a model is only inspected. */
    resize(13, DIMS(1, 1, 4, 4));
    input(3, CLG_INT64, DIMS(4));
    expect(DIMS(U, U, U, U));
}

TEST(infer_nn__resize_refuses)
{
    resize(13, DIMS(1, 1, 4, 4));
    give(3, CLG_INT64, 3, (double[]){1, 7, 9});
    refuse(CLG_ERROR_SHAPE, "sizes does not have one number for each axis");
    resize(13, DIMS(1, 1, 4, 4));
    give(3, CLG_INT64, 4, (double[]){1, 1, -7, 9});
    refuse(CLG_ERROR_SHAPE, "no axis can be resized to");
    resize(18, DIMS(1, 1, 4, 4));
    give(3, CLG_INT64, 2, (double[]){7, 9});
    INTS("axes", 2, 2);
    refuse(CLG_ERROR_SHAPE, "an axis twice");
    resize(13, DIMS(1, 1, 4, 4));
    STRING("mode", "lanczos");
    refuse(CLG_ERROR_UNSUPPORTED_ATTRIBUTE, "'mode' is 'lanczos'");
    start("", "Upsample", 9, 2, 1);
    input(0, CLG_FLOAT32, DIMS(1, 1, 2, 3));
    give(1, CLG_FLOAT32, 4, (double[]){1, 1, 2, 0});
    refuse(CLG_ERROR_SHAPE, "not positive");
    start("", "Resize", 13, 1, 1);
    input(0, CLG_FLOAT32, DIMS(1, 1, 2, 3));
    refuse(CLG_ERROR_INVALID_MODEL, "neither scales nor sizes");
}
