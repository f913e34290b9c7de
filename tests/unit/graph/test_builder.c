/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests models and builders through the public functions: inputs and outputs of models, and errors,
 * which are reported when the model is built and leave nothing partly created.
 */
#include "support/fakes/failing_alloc.h"
#include "support/fixtures/onnx_writer.h"
#include "support/fixtures/sized_data.h"
#include "support/scratch.h"
#include "support/unit.h"

#include "session/exec/model.h"

#include <string.h>

static clg_builder *make(void)
{
    clg_builder *b;
    assert_ok(clg_builder_create(13, &b));
    return b;
}

TEST(builder__makes_a_model)
{
    clg_builder *b = make();
    clg_model *m, *again;
    const char *const names[3] = {"N", NULL, ""};
    const int64_t wanted[2] = {0, -1};
    assert_ok(clg_builder_node(b, NULL, "Reshape", "r", 2, (const char *[]){"x", "to"}, 1,
                               (const char *[]){"y"}));
    assert_ok(clg_builder_input(b, "x", CLG_FLOAT32, 3, (int64_t[]){-5, 3, 4}, names));
    assert_ok(sized_constant(b, "to", CLG_INT64, 1, (int64_t[]){2}, wanted));
    assert_ok(clg_builder_output(b, "y"));
    assert_ok(clg_builder_build(b, &m));
    assert_int_equal(clg_model_n_inputs(m), 1);
    assert_int_equal(clg_model_n_outputs(m), 1);
    const clg_port *x = clg_model_input(m, 0), *y = clg_model_output(m, 0);
    assert_string_equal(x->name, "x");
    assert_int_equal(x->dtype, CLG_FLOAT32);
    assert_int_equal(x->rank, 3);
    assert_true(x->dims[0] < 0);
    assert_string_equal(x->dim_names[0], "N");
    assert_string_equal(x->dim_names[1], "");
    assert_int_equal(x->dims[2], 4);
    assert_int_equal(y->rank, 2);
    assert_true(y->dims[0] < 0);
    assert_int_equal(y->dims[1], 12);
    assert_int_equal(y->dtype, CLG_FLOAT32);
    assert_null(clg_model_input(m, 1));
    assert_null(clg_model_output(m, 1));
    /* Extending the builder does not change the first model. */
    assert_ok(clg_builder_node(b, "", "Flatten", NULL, 1, (const char *[]){"y"}, 1,
                               (const char *[]){"z"}));
    assert_ok(clg_builder_attribute_int(b, "axis", 0));
    assert_ok(clg_builder_output(b, "z"));
    assert_ok(clg_builder_build(b, &again));
    clg_builder_free(b);
    assert_int_equal(clg_model_n_outputs(m), 1);
    assert_int_equal(clg_model_n_outputs(again), 2);
    clg_model_free(m);
    clg_model_free(again);
}

TEST(builder__takes_every_attribute)
{
    clg_builder *b = make();
    clg_model *m;
    assert_error(clg_builder_attribute_int(b, "axis", 1), CLG_ERROR_INVALID_ARGUMENT,
                 "no node yet");
    assert_ok(clg_builder_node(b, NULL, "Constant", "i", 0, NULL, 1, (const char *[]){"i"}));
    assert_ok(clg_builder_attribute_ints(b, "value_ints", 2, (int64_t[]){1, 2}));
    assert_ok(clg_builder_node(b, NULL, "Constant", "f", 0, NULL, 1, (const char *[]){"f"}));
    assert_ok(clg_builder_attribute_floats(b, "value_floats", 1, (float[]){1}));
    assert_ok(clg_builder_node(b, NULL, "Constant", "g", 0, NULL, 1, (const char *[]){"g"}));
    assert_ok(clg_builder_attribute_float(b, "value_float", 1));
    assert_error(clg_builder_attribute_float(b, "value_float", 1), CLG_ERROR_INVALID_MODEL,
                 "twice");
    assert_ok(clg_builder_node(b, NULL, "Constant", "s", 0, NULL, 1, (const char *[]){"s"}));
    assert_ok(clg_builder_attribute_string(b, "value_string", "text"));
    assert_ok(clg_builder_node(b, NULL, "Constant", "t", 0, NULL, 1, (const char *[]){"t"}));
    assert_ok(clg_builder_attribute_strings(b, "value_strings", 2, (const char *[]){"a", "b"}));
    const char *const outputs[5] = {"i", "f", "g", "s", "t"};
    const clg_dtype dtypes[5] = {CLG_INT64, CLG_FLOAT32, CLG_FLOAT32, CLG_STRING, CLG_STRING};
    for (size_t i = 0; i < 5; i++) assert_ok(clg_builder_output(b, outputs[i]));
    assert_ok(clg_builder_build(b, &m));
    for (size_t i = 0; i < 5; i++) assert_int_equal(clg_model_output(m, i)->dtype, dtypes[i]);
    assert_int_equal(clg_model_output(m, 0)->dims[0], 2);
    clg_model_free(m);
    clg_builder_free(b);
}

TEST(builder__refuses_bad_arguments)
{
    clg_builder *b;
    clg_model *m;
    const int64_t two[1] = {2}, negative[1] = {-2}, huge[2] = {INT64_MAX, 2};
    assert_error(clg_builder_create(0, &b), CLG_ERROR_INVALID_ARGUMENT, "opset");
    assert_null(b);
    assert_error(clg_builder_create(13, NULL), CLG_ERROR_INVALID_ARGUMENT, "out_builder is NULL");
    assert_error(clg_builder_build(NULL, &m), CLG_ERROR_INVALID_ARGUMENT, "builder is NULL");
    b = make();
    assert_error(clg_builder_input(b, "", CLG_FLOAT32, 1, two, NULL), CLG_ERROR_INVALID_ARGUMENT,
                 "name is empty");
    assert_error(clg_builder_input(b, "x", (clg_dtype)99, 1, two, NULL), CLG_ERROR_INVALID_ARGUMENT,
                 "99 is not a dtype");
    assert_error(clg_builder_input(b, "x", CLG_FLOAT32, 9, two, NULL), CLG_ERROR_INVALID_ARGUMENT,
                 "rank");
    assert_error(clg_builder_input(b, "x", CLG_FLOAT32, 2, huge, NULL), CLG_ERROR_INVALID_ARGUMENT,
                 "'x'");
    assert_error(clg_builder_input(b, "x", CLG_FLOAT32, 1, NULL, NULL), CLG_ERROR_INVALID_ARGUMENT,
                 "dimensions");
    assert_error(sized_constant(b, "w", CLG_FLOAT32, 1, negative, two), CLG_ERROR_INVALID_ARGUMENT,
                 "negative");
    assert_error(sized_constant(b, "w", CLG_FLOAT32, 1, two, NULL), CLG_ERROR_INVALID_ARGUMENT,
                 "data is NULL");
    assert_error(sized_constant(b, "w", CLG_STRING, 1, two, two), CLG_ERROR_UNSUPPORTED_DTYPE,
                 "'w'");
    assert_error(clg_builder_node(b, "clgraph", "Op", "", 0, NULL, 0, NULL),
                 CLG_ERROR_INVALID_ARGUMENT, "clgraph");
    assert_error(clg_builder_node(b, NULL, "Op", "", 1, NULL, 0, NULL), CLG_ERROR_INVALID_ARGUMENT,
                 "inputs is NULL");
    assert_error(clg_builder_node(b, NULL, "", "", 0, NULL, 0, NULL), CLG_ERROR_INVALID_ARGUMENT,
                 "op_type is empty");
    clg_builder_free(b);
    clg_builder_free(NULL);
}

TEST(builder__a_failed_call_changes_nothing)
{
    clg_builder *b = make();
    clg_model *m;
    assert_ok(clg_builder_input(b, "x", CLG_FLOAT32, 1, (int64_t[]){2}, NULL));
    assert_error(clg_builder_input(b, "x", CLG_INT64, 1, (int64_t[]){3}, NULL),
                 CLG_ERROR_INVALID_MODEL, "'x'");
    assert_ok(clg_builder_node(b, NULL, "Identity", "one", 1, (const char *[]){"x"}, 1,
                               (const char *[]){"y"}));
    assert_error(clg_builder_node(b, NULL, "Identity", "two", 1, (const char *[]){"fresh"}, 1,
                                  (const char *[]){"y"}),
                 CLG_ERROR_INVALID_MODEL, "node 'two' (Identity, opset 13) writes 'y'");
    assert_ok(clg_builder_output(b, "y"));
    assert_ok(clg_builder_build(b, &m));
    assert_int_equal(clg_model_input(m, 0)->dtype, CLG_FLOAT32);
    assert_int_equal(m->graph->n_nodes, 1);
    clg_model_free(m);
    clg_builder_free(b);
}

TEST(builder__faults_are_reported_at_build)
{
    clg_builder *b = make();
    clg_model *m;
    assert_error(clg_builder_build(b, &m), CLG_ERROR_INVALID_MODEL, "no outputs");
    assert_null(m);
    assert_ok(clg_builder_input(b, "x", CLG_FLOAT32, 1, (int64_t[]){5}, NULL));
    assert_ok(clg_builder_output(b, "y"));
    assert_error(clg_builder_build(b, &m), CLG_ERROR_INVALID_MODEL,
                 "the output 'y' is given by no node");
    assert_ok(clg_builder_node(b, NULL, "Reshape", "r", 2, (const char *[]){"x", "to"}, 1,
                               (const char *[]){"y"}));
    assert_error(clg_builder_build(b, &m), CLG_ERROR_INVALID_MODEL,
                 "node 'r' (Reshape, opset 13) reads 'to'");
    assert_ok(sized_constant(b, "to", CLG_INT64, 1, (int64_t[]){2}, (int64_t[]){2, 3}));
    assert_error(clg_builder_build(b, &m), CLG_ERROR_SHAPE, "node 'r' (Reshape, opset 13)");
    assert_ok(clg_builder_node(b, "com.example", "Gizmo", "g", 1, (const char *[]){"x"}, 1,
                               (const char *[]){"z"}));
    assert_error(clg_builder_build(b, &m), CLG_ERROR_UNSUPPORTED_OPERATOR,
                 "com.example.Gizmo (opset 1: node 'g')");
    clg_builder_free(b);
}

/* ---- models ---------------------------------------------------------------------------------- */

static ow_bytes reshape_model(clg_dtype output_dtype)
{
    ow_model m = {.ir_version = 8, .opset = 13};
    ow_input(&m, "x", CLG_FLOAT32, 2, (int64_t[]){-1, 4}, "batch");
    ow_initializer(&m, ow_tensor_raw("to", CLG_INT64, 1, (int64_t[]){1}, (int64_t[]){-1}, 8));
    ow_simple_node(&m, "Reshape", "r", "x,to", "y");
    ow_put_message(&m.graph, 12, ow_value_info("y", (int)output_dtype, 1, (int64_t[]){-1}, "flat"));
    return ow_finish(&m);
}

TEST(model__loads_from_memory_and_file)
{
    clg_model *m;
    ow_bytes file = reshape_model(CLG_FLOAT32);
    assert_ok(clg_model_load_memory(file.data, file.n, NULL, &m));
    assert_string_equal(clg_model_input(m, 0)->dim_names[0], "batch");
    assert_string_equal(clg_model_output(m, 0)->dim_names[0],
                        "flat"); /* the declared name, since inference finds none */
    clg_model_free(m);
    const char *path = scratch_file("model.onnx", file.data, file.n);
    clg_model_options options = {.struct_size = sizeof options};
    assert_ok(clg_model_load_file(path, &options, &m));
    assert_int_equal(clg_model_n_inputs(m), 1);
    assert_ok(model_require_data(m));
    clg_model_free(m);
    ow_free(&file);
    clg_model_free(NULL);
    assert_int_equal(clg_model_n_inputs(NULL), 0);
    assert_null(clg_model_input(NULL, 0));
}

TEST(model__errors)
{
    clg_model *m;
    ow_bytes file = reshape_model(CLG_INT64);
    assert_error(clg_model_load_memory(file.data, file.n, NULL, &m), CLG_ERROR_INVALID_MODEL,
                 "the output 'y' is declared as int64, but its node gives float32");
    assert_null(m);
    const char *path = scratch_file("wrong.onnx", file.data, file.n);
    assert_error(clg_model_load_file(path, NULL, &m), CLG_ERROR_INVALID_MODEL, "wrong.onnx");
    ow_free(&file);
    assert_error(clg_model_load_file(scratch_path("absent.onnx"), NULL, &m), CLG_ERROR_IO,
                 "absent.onnx");
    assert_error(clg_model_load_file(NULL, NULL, &m), CLG_ERROR_INVALID_ARGUMENT, "path is NULL");
    assert_error(clg_model_load_memory(NULL, 4, NULL, &m), CLG_ERROR_INVALID_ARGUMENT,
                 "data is NULL");
}

TEST(model__without_its_data_can_be_looked_at)
{
    clg_model *m;
    ow_model w = {.ir_version = 8, .opset = 13};
    ow_initializer(
        &w, ow_tensor_external("w", CLG_FLOAT32, 1, (int64_t[]){2}, "absent.bin", NULL, NULL));
    ow_simple_node(&w, "Flatten", "f", "w", "y");
    ow_output(&w, "y", CLG_FLOAT32);
    ow_bytes file = ow_finish(&w);
    const char *path = scratch_file("bare.onnx", file.data, file.n);
    ow_free(&file);
    clg_model_options options = {.struct_size = sizeof options,
                                 .allow_external_data_missing = true};
    assert_error(clg_model_load_file(path, NULL, &m), CLG_ERROR_IO, "absent.bin");
    assert_ok(clg_model_load_file(path, &options, &m));
    assert_int_equal(clg_model_output(m, 0)->dims[0], 2);
    assert_error(model_require_data(m), CLG_ERROR_NOT_FOUND,
                 "the data of 'w' is in the file 'absent.bin'");
    clg_model_free(m);
}

static clg_status build_once(void *user)
{
    (void)user;
    clg_builder *b;
    clg_model *m = NULL;
    CLG_TRY(clg_builder_create(13, &b));
    clg_status status =
        clg_builder_input(b, "x", CLG_FLOAT32, 2, (int64_t[]){-1, 3}, (const char *[]){"N", "C"});
    if (status == CLG_OK) {
        status = sized_constant(b, "to", CLG_INT64, 1, (int64_t[]){2}, (int64_t[]){3, -1});
    }
    if (status == CLG_OK) {
        status = clg_builder_node(b, NULL, "Reshape", "r", 2, (const char *[]){"x", "to"}, 1,
                                  (const char *[]){"y"});
    }
    if (status == CLG_OK) status = clg_builder_attribute_int(b, "allowzero", 0);
    if (status == CLG_OK) status = clg_builder_output(b, "y");
    if (status == CLG_OK) status = clg_builder_build(b, &m);
    clg_model_free(m);
    clg_builder_free(b);
    return status == CLG_ERROR_UNSUPPORTED_ATTRIBUTE
               ? CLG_OK
               : status; /* allowzero is newer than opset 13 */
}

static clg_status load_once(void *user)
{
    const ow_bytes *file = user;
    clg_model *m;
    clg_status status = clg_model_load_memory(file->data, file->n, NULL, &m);
    clg_model_free(m);
    return status;
}

TEST(model__survives_every_failed_allocation)
{
    ow_bytes file = reshape_model(CLG_FLOAT32);
    failing_alloc_install();
    assert_true(fault_loop(build_once, NULL) > 10);
    assert_true(fault_loop(load_once, &file) > 10);
    failing_alloc_remove();
    ow_free(&file);
}
