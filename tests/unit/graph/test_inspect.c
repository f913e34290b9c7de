/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests reports about models that need no device: statistics, lists of nodes with whether they run
 * on the device or the host, FLOPs, memory; also for unsupported models. Expected FLOPs are counted
 * by hand.
 */
#include "support/fakes/failing_alloc.h"
#include "support/fixtures/onnx_writer.h"
#include "support/scratch.h"
#include "support/unit.h"

#include <clgraph/inspect.h>

#include <string.h>

/* Returns the path of a model: x [N,3,8,8] -> Conv 5x3x3x3 with bias -> Relu -> Flatten -> Gemm
 * 320x10 -> y; the Shape of x is an output too. */
static const char *small_model(void)
{
    static const float zeros[320 * 10];
    ow_model m = {.ir_version = 8, .opset = 13};
    ow_input(&m, "x", CLG_FLOAT32, 4, (int64_t[]){-1, 3, 8, 8}, "N");
    ow_initializer(&m, ow_tensor_raw("w", CLG_FLOAT32, 4, (int64_t[]){5, 3, 3, 3}, zeros, 540));
    ow_initializer(&m, ow_tensor_raw("b", CLG_FLOAT32, 1, (int64_t[]){5}, zeros, 20));
    ow_initializer(&m, ow_tensor_raw("g", CLG_FLOAT32, 2, (int64_t[]){320, 10}, zeros, 12800));
    ow_initializer(&m, ow_tensor_raw("axes", CLG_INT64, 1, (int64_t[]){1}, (int64_t[]){0}, 8));
    ow_bytes conv = ow_node("Conv", "conv", "x,w,b", "c");
    ow_attribute_ints(&conv, "pads", 4, (int64_t[]){1, 1, 1, 1});
    ow_add_node(&m, conv);
    ow_simple_node(&m, "Relu", "relu", "c", "r");
    ow_simple_node(&m, "Flatten", "flat", "r", "f");
    ow_simple_node(&m, "Gemm", "", "f,g", "y");
    ow_simple_node(&m, "Shape", "shape", "x", "s");
    ow_simple_node(&m, "Neg", "constant", "b", "n");
    ow_output(&m, "y", CLG_FLOAT32);
    ow_output(&m, "s", CLG_INT64);
    ow_output(&m, "n", CLG_FLOAT32);
    ow_bytes file = ow_finish(&m);
    const char *path = scratch_file("small.onnx", file.data, file.n);
    ow_free(&file);
    return path;
}

static clg_model *load(const char *path)
{
    clg_model *m;
    assert_ok(clg_model_load_file(path, NULL, &m));
    return m;
}

TEST(info__counts_parameters)
{
    clg_model *m = load(small_model());
    clg_model_info info = CLG_MODEL_INFO_INIT;
    assert_ok(clg_model_get_info(m, &info));
    assert_int_equal(info.ir_version, 8);
    assert_int_equal(info.opset, 13);
    assert_int_equal(info.n_nodes, 6);
    assert_int_equal(info.n_parameters, 135 + 5 + 3200);
    assert_int_equal(info.parameter_bytes, 4 * (135 + 5 + 3200) + 8);
    assert_string_equal(info.unsupported, "");
    assert_string_equal(info.missing_data, "");
    assert_error(clg_model_get_info(m, NULL), CLG_ERROR_INVALID_ARGUMENT, "out_info");
    assert_error(clg_model_get_info(NULL, &info), CLG_ERROR_INVALID_ARGUMENT, "model");
    clg_model_free(m);
}

TEST(flops__are_those_of_the_definition)
{
    clg_model *m = load(small_model());
    double flops, eight;
    assert_ok(clg_model_flops(m, NULL, 0, &flops));
    double conv = 2.0 * 5 * 64 * 27 + 5 * 64, relu = 5 * 64, gemm = 2.0 * 320 * 10, neg = 5;
    assert_true(flops == conv + relu + gemm + neg);
    clg_shape_override shape = {"x", 4, {8, 3, 8, 8}};
    assert_ok(clg_model_flops(m, &shape, 1, &eight));
    assert_true(eight == 8 * (conv + relu + gemm) + neg);
    shape.dims[1] = 4;
    assert_error(clg_model_flops(m, &shape, 1, &eight), CLG_ERROR_SHAPE, "'x' is declared as");
    shape = (clg_shape_override){"z", 1, {1}};
    assert_error(clg_model_flops(m, &shape, 1, &eight), CLG_ERROR_NOT_FOUND, "'z'");
    assert_error(clg_model_flops(m, NULL, 1, &eight), CLG_ERROR_INVALID_ARGUMENT, "shapes");
    clg_model_free(m);
}

TEST(node_estimates__add_up_to_those_of_the_model)
{
    clg_model *m = load(small_model());
    clg_node_info *nodes;
    clg_node_estimate *estimates;
    size_t n, n_nodes;
    double flops, sum = 0;
    const clg_shape_override shape = {"x", 4, {8, 3, 8, 8}};
    assert_ok(clg_model_flops(m, &shape, 1, &flops));
    assert_ok(clg_model_nodes(m, &nodes, &n_nodes));
    assert_ok(clg_model_node_estimates(m, &shape, 1, &estimates, &n));
    assert_int_equal(n, n_nodes);
    for (size_t i = 0; i < n; i++) {
        sum += estimates[i].flops;
        assert_int_equal(estimates[i].n_outputs, nodes[i].n_outputs);
        assert_string_equal(estimates[i].outputs[0].name, nodes[i].outputs[0]);
    }
    assert_true(sum == flops);
    assert_string_equal(nodes[0].op_type, "Conv");
    const clg_port *y = estimates[0].outputs;
    assert_int_equal(y->dtype, CLG_FLOAT32);
    assert_int_equal(y->rank, 4);
    assert_true(y->dims[0] == 8 && y->dims[1] == 5 && y->dims[2] == 8 && y->dims[3] == 8);
    assert_int_equal(estimates[0].n_parameters, 135 + 5);
    assert_int_equal(estimates[0].parameter_bytes, 4 * (135 + 5));
    clg_node_estimate_list_free(estimates, n);
    clg_node_estimate_list_free(NULL, 0);
    clg_node_list_free(nodes, n_nodes);
    assert_error(clg_model_node_estimates(m, NULL, 1, &estimates, &n), CLG_ERROR_INVALID_ARGUMENT,
                 "shapes");
    assert_null(estimates);
    clg_model_free(m);
}

/* Returns the FLOPs of a model of one node. */
static double flops_of(const char *op_type, const char *inputs, const int64_t (*dims)[4],
                       const int *ranks)
{
    ow_model m = {.ir_version = 8, .opset = 13};
    char name[2] = "a";
    size_t n = 0;
    for (const char *at = inputs; *at; at++) {
        if (*at == ',') continue;
        name[0] = *at;
        ow_input(&m, name, CLG_FLOAT32, (size_t)ranks[n], dims[n], NULL);
        n++;
    }
    ow_bytes node = ow_node(op_type, "n", inputs, "y");
    if (strstr(op_type, "Pool") && strncmp(op_type, "Global", 6) != 0) {
        ow_attribute_ints(&node, "kernel_shape", 2, (int64_t[]){2, 3});
    }
    ow_add_node(&m, node);
    ow_output(&m, "y", CLG_FLOAT32);
    clg_model *model;
    double flops;
    assert_ok(ow_load(&m, &model));
    assert_ok(clg_model_flops(model, NULL, 0, &flops));
    clg_model_free(model);
    return flops;
}

TEST(flops__has_a_formula_for_each_kind)
{
    const int64_t nchw[3][4] = {{2, 4, 6, 6}, {4, 3, 3, 3}, {3}};
    const int64_t matrices[2][4] = {{7, 5, 3}, {3, 2}};
    const int64_t pair[2][4] = {{4, 1}, {1, 5}};
    assert_true(flops_of("ConvTranspose", "a,b", nchw, (int[]){4, 4}) == 2.0 * 288 * 27);
    assert_true(flops_of("MatMul", "a,b", matrices, (int[]){3, 2}) == 2.0 * 7 * 5 * 2 * 3);
    assert_true(flops_of("MaxPool", "a", nchw, (int[]){4}) == 2.0 * 4 * 5 * 4 * 6);
    assert_true(flops_of("GlobalAveragePool", "a", nchw, (int[]){4}) == 288);
    assert_true(flops_of("Softmax", "a", nchw, (int[]){4}) == 5 * 288);
    assert_true(flops_of("Add", "a,b", pair, (int[]){2, 2}) == 20);
    assert_true(flops_of("ReduceSum", "a", nchw, (int[]){4}) == 288);
    assert_true(flops_of("Transpose", "a", nchw, (int[]){4}) == 0);
    assert_true(flops_of("Identity", "a", nchw, (int[]){4}) == 0);
}

TEST(memory__follows_lifetimes)
{
    clg_model *m = load(small_model());
    clg_memory_estimate e = CLG_MEMORY_ESTIMATE_INIT;
    clg_shape_override shape = {"x", 4, {2, 3, 8, 8}};
    assert_ok(clg_model_memory(m, &shape, 1, &e));
    assert_int_equal(e.weight_bytes, 4 * (135 + 5 + 3200) + 8);
    assert_int_equal(e.slab_bytes, 2 * 2 * 320 * 4); /* c and r; f is a view of r */
    assert_int_equal(e.live_bytes, e.slab_bytes);
    assert_int_equal(e.io_bytes, 4 * (2 * 192 + 2 * 10 + 5) + 8 * 4);
    assert_int_equal(e.largest_buffer_bytes, 12800);
    clg_model_free(m);
}

static const clg_node_info *node_named(const clg_node_info *nodes, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(nodes[i].name, name) == 0) return &nodes[i];
    }
    fail_msg("no node '%s'", name);
    return NULL;
}

TEST(nodes__have_places)
{
    clg_model *m = load(small_model());
    clg_node_info *nodes;
    size_t n;
    assert_ok(clg_model_nodes(m, &nodes, &n));
    clg_model_free(m); /* the list stays valid */
    assert_int_equal(n, 6);
    assert_int_equal(node_named(nodes, n, "conv")->place, CLG_PLACE_DEVICE);
    assert_int_equal(node_named(nodes, n, "constant")->place, CLG_PLACE_LOAD);
    assert_int_equal(node_named(nodes, n, "shape")->place, CLG_PLACE_SHAPE);
    const clg_node_info *gemm = node_named(nodes, n, "y"); /* unnamed: has its output's name */
    assert_string_equal(gemm->op_type, "Gemm");
    assert_true(gemm->supported);
    assert_int_equal(gemm->n_outputs, 1);
    assert_string_equal(gemm->outputs[0], "y");
    assert_int_equal(gemm->n_inputs, 2);
    assert_string_equal(gemm->inputs[0], "f");
    assert_string_equal(gemm->inputs[1], "g");
    clg_node_list_free(nodes, n);
    clg_node_list_free(NULL, 0);
}

/* Makes a model with an unknown operator, Frobnicate, between two known ones. */
static ow_bytes odd_model(void)
{
    ow_model m = {.ir_version = 8, .opset = 13};
    ow_input(&m, "x", CLG_FLOAT32, 2, (int64_t[]){2, 3}, NULL);
    ow_simple_node(&m, "Relu", "relu", "x", "a");
    ow_simple_node(&m, "Frobnicate", "frob", "a", "b");
    ow_simple_node(&m, "Relu", "again", "b", "y");
    ow_output(&m, "y", CLG_FLOAT32);
    return ow_finish(&m);
}

TEST(unsupported__can_be_looked_at)
{
    ow_bytes file = odd_model();
    const char *path = scratch_file("odd.onnx", file.data, file.n);
    ow_free(&file);
    clg_model *m;
    clg_model_options options = CLG_MODEL_OPTIONS_INIT;
    clg_model_info info = CLG_MODEL_INFO_INIT;
    clg_node_info *nodes;
    size_t n;
    double flops;
    assert_error(clg_model_load_file(path, &options, &m), CLG_ERROR_UNSUPPORTED_OPERATOR,
                 "Frobnicate");
    assert_null(m);
    options.allow_unsupported = true;
    assert_ok(clg_model_load_file(path, &options, &m));
    assert_int_equal(clg_model_input(m, 0)->dims[1], 3);
    assert_ok(clg_model_get_info(m, &info));
    assert_non_null(strstr(info.unsupported, "Frobnicate"));
    assert_ok(clg_model_flops(m, NULL, 0, &flops));
    assert_true(flops == 6); /* of the first Relu: later shapes are unknown */
    assert_ok(clg_model_nodes(m, &nodes, &n));
    assert_false(node_named(nodes, n, "frob")->supported);
    assert_true(node_named(nodes, n, "again")->supported);
    clg_node_list_free(nodes, n);
    clg_model_free(m);
    assert_ok(clg_model_file_nodes(path, &nodes, &n));
    assert_int_equal(n, 3);
    assert_false(node_named(nodes, n, "frob")->supported);
    assert_true(node_named(nodes, n, "frob")->reason[0] != '\0');
    clg_node_list_free(nodes, n);
    assert_error(clg_model_file_nodes("nowhere.onnx", &nodes, &n), CLG_ERROR_IO, "nowhere.onnx");
    assert_null(nodes);
}

/* Makes a model with an unknown operator and, after it, a LabelEncoder whose keys are of a type
 * that is not read. */
static ow_model unread_model(void)
{
    ow_model m = {.ir_version = 8, .opset = 13};
    ow_bytes label = ow_node("LabelEncoder", "label", "x", "c"), keys = {0};
    ow_put_string(&keys, 1, "keys_strings");
    ow_put_message(&label, 5, keys);
    ow_put_string(&label, 7, "ai.onnx.ml");
    ow_opset(&m, "ai.onnx.ml", 4);
    ow_input(&m, "x", CLG_FLOAT32, 2, (int64_t[]){2, 3}, NULL);
    ow_simple_node(&m, "Frobnicate", "frob", "x", "b");
    ow_add_node(&m, label);
    ow_output(&m, "c", CLG_FLOAT32);
    return m;
}

/* Checks that nodes after the first unsupported one are checked before their attributes are read.
 */
TEST(unsupported__hides_nothing_unchecked)
{
    ow_model m = unread_model();
    ow_bytes file = ow_finish(&m);
    clg_model *model;
    clg_node_info *nodes;
    size_t n;
    double flops;
    clg_model_options options = CLG_MODEL_OPTIONS_INIT;
    options.allow_unsupported = true;
    assert_ok(clg_model_load_memory(file.data, file.n, &options, &model));
    assert_ok(clg_model_flops(model, NULL, 0, &flops));
    assert_true(flops == 0);
    assert_ok(clg_model_nodes(model, &nodes, &n));
    assert_false(node_named(nodes, n, "label")->supported);
    assert_non_null(strstr(node_named(nodes, n, "label")->reason, "keys_strings"));
    clg_node_list_free(nodes, n);
    clg_model_free(model);
    ow_free(&file);
    m = unread_model();
    ow_simple_node(&m, "Conv", "conv", NULL, "d");
    file = ow_finish(&m);
    assert_error(clg_model_load_memory(file.data, file.n, &options, &model),
                 CLG_ERROR_INVALID_MODEL, "'conv' (Conv, opset 13) has 0 inputs");
    ow_free(&file);
}

/* Checks that attributes are validated when the nodes of a file are listed, although those nodes
 * are not resolved. */
TEST(file_nodes__checks_see_their_row)
{
    ow_model m = {.ir_version = 8, .opset = 13};
    ow_input(&m, "x", CLG_FLOAT32, 3, (int64_t[]){5, 1, 2}, NULL);
    ow_input(&m, "w", CLG_FLOAT32, 3, (int64_t[]){1, 4, 2}, NULL);
    ow_input(&m, "r", CLG_FLOAT32, 3, (int64_t[]){1, 4, 1}, NULL);
    ow_bytes good = ow_node("LSTM", "good", "x,w,r", "y"),
             bad = ow_node("LSTM", "bad", "x,w,r", "z");
    ow_attribute_int(&good, "hidden_size", 1);
    ow_attribute_int(&bad, "hidden_size", 1);
    ow_attribute_string(&bad, "direction", "sideways");
    ow_add_node(&m, good);
    ow_add_node(&m, bad);
    ow_output(&m, "y", CLG_FLOAT32);
    ow_bytes file = ow_finish(&m);
    const char *path = scratch_file("recurrent.onnx", file.data, file.n);
    ow_free(&file);
    clg_node_info *nodes;
    size_t n;
    assert_ok(clg_model_file_nodes(path, &nodes, &n));
    assert_true(node_named(nodes, n, "good")->supported);
    assert_false(node_named(nodes, n, "bad")->supported);
    assert_non_null(strstr(node_named(nodes, n, "bad")->reason, "sideways"));
    clg_node_list_free(nodes, n);
}

TEST(file_nodes__may_lack_what_their_checks_read)
{
    ow_model m = {.ir_version = 8, .opset = 13};
    ow_input(&m, "c", CLG_BOOL, 0, NULL, NULL);
    ow_add_node(&m, ow_node("If", "choice", "c", "y"));
    ow_output(&m, "y", CLG_FLOAT32);
    ow_bytes file = ow_finish(&m);
    const char *path = scratch_file("branches.onnx", file.data, file.n);
    ow_free(&file);
    clg_node_info *nodes;
    size_t n;
    assert_ok(clg_model_file_nodes(path, &nodes, &n));
    assert_false(node_named(nodes, n, "choice")->supported);
    assert_non_null(strstr(node_named(nodes, n, "choice")->reason, "then_branch"));
    clg_node_list_free(nodes, n);
}

TEST(dot__is_a_graph)
{
    clg_model *m = load(small_model());
    char *text;
    assert_ok(clg_model_dot(m, &text));
    assert_int_equal(strncmp(text, "digraph", 7), 0);
    assert_non_null(strstr(text, "conv"));
    clg_text_free(text);
    clg_text_free(NULL);
    clg_model_free(m);
}

TEST(operators__are_listed)
{
    clg_operator_info *rows;
    size_t n, n_conv = 0;
    assert_ok(clg_operator_list(&rows, &n));
    assert_true(n > 50);
    for (size_t i = 0; i < n; i++) {
        assert_string_not_equal(rows[i].domain, "clgraph");
        assert_true(rows[i].since >= 1);
        assert_true(rows[i].until == 0 || rows[i].until >= rows[i].since);
        assert_true(rows[i].place[0] != '\0');
        if (strcmp(rows[i].name, "Conv") != 0) continue;
        n_conv++;
        assert_string_equal(rows[i].place, "device");
        assert_non_null(strstr(rows[i].dtypes, "T: "));
        assert_non_null(strstr(rows[i].dtypes, "float32"));
    }
    assert_true(n_conv >= 1);
    clg_operator_list_free(rows, n);
    clg_operator_list_free(NULL, 0);
}

static clg_status inspect_once(void *user)
{
    clg_model *m = NULL;
    clg_node_info *nodes = NULL, *all = NULL;
    clg_operator_info *rows = NULL;
    size_t n = 0, n_all = 0, n_rows = 0;
    char *text = NULL;
    double flops;
    clg_memory_estimate e = CLG_MEMORY_ESTIMATE_INIT;
    clg_model_options options = CLG_MODEL_OPTIONS_INIT;
    options.allow_unsupported = true;
    clg_status status = clg_model_load_file(user, &options, &m);
    if (status == CLG_OK) status = clg_model_nodes(m, &nodes, &n);
    if (status == CLG_OK) status = clg_model_file_nodes(user, &all, &n_all);
    if (status == CLG_OK) status = clg_model_flops(m, NULL, 0, &flops);
    if (status == CLG_OK) status = clg_model_memory(m, NULL, 0, &e);
    if (status == CLG_OK) status = clg_model_dot(m, &text);
    if (status == CLG_OK) status = clg_operator_list(&rows, &n_rows);
    clg_operator_list_free(rows, n_rows);
    clg_text_free(text);
    clg_node_list_free(all, n_all);
    clg_node_list_free(nodes, n);
    clg_model_free(m);
    return status;
}

TEST(inspect__survives_every_failed_allocation)
{
    ow_bytes file = odd_model();
    const char *path = scratch_file("faulty.onnx", file.data, file.n);
    ow_free(&file);
    assert_true(fault_loop_alone(inspect_once, (void *)(uintptr_t)path) > 50);
}
