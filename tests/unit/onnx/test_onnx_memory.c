/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests external data from memory of the application's (clg_model_options.external_data): what the
 * callback is asked for, what it may answer, that data is not copied, and when it is released.
 */
#include "support/fakes/failing_alloc.h"
#include "support/fixtures/onnx_writer.h"
#include "support/scratch.h"
#include "support/unit.h"

#include "onnx/onnx.h"
#include "session/exec/model.h"

#include <stdlib.h>
#include <string.h>

/* The application: its memory, what it was asked for, and what it answers. */
typedef struct application {
    const char *bytes; /* for every tensor, from the offset asked for on */
    clg_status answer;
    char location[64];
    uint64_t offset_bytes, length_bytes; /* of the last call */
    int n_calls, n_released;
    int fail_at; /* the call that fails; 0: all do if answer says so */
    bool fails_in_library;
} application;

static clg_status give(void *user, const char *location, uint64_t offset_bytes,
                       uint64_t length_bytes, const void **out_data)
{
    application *a = user;
    assert_int_equal(a->n_released, 0);
    assert_true(strlen(location) < sizeof a->location);
    memcpy(a->location, location, strlen(location) + 1);
    a->offset_bytes = offset_bytes;
    a->length_bytes = length_bytes;
    *out_data = a->bytes ? a->bytes + offset_bytes % 64 : NULL;
    if (++a->n_calls != a->fail_at && a->fail_at > 0) return CLG_OK;
    if (a->fails_in_library) {
        clg_model *model;
        return clg_model_load_file("/no/such/file", NULL, &model);
    }
    return a->answer;
}

static void release(void *user) { ((application *)user)->n_released++; }

static clg_model_options options_of(application *a)
{
    clg_model_options options = CLG_MODEL_OPTIONS_INIT;
    options.external_data = give;
    options.external_release = release;
    options.external_user = a;
    return options;
}

/* Returns a model with initializers w0 to w{n - 1}, floats [2], all at this place. */
static ow_bytes model_of(int n, const char *location, const char *offset, const char *length)
{
    static const int64_t two[] = {2};
    char name[] = "w0";
    ow_model m = {.ir_version = 8, .opset = 13};
    for (int i = 0; i < n; i++, name[1]++) {
        ow_initializer(&m, ow_tensor_external(name, CLG_FLOAT32, 1, two, location, offset, length));
        ow_output(&m, name, 0);
    }
    return ow_finish(&m);
}

static clg_status load(application *a, ow_bytes file, clg_model **out_model)
{
    const clg_model_options options = options_of(a);
    const clg_status status = clg_model_load_memory(file.data, file.n, &options, out_model);
    ow_free(&file);
    return status;
}

static const tensor *weight(const clg_model *model, const char *name)
{
    return model->graph->values[graph_find_value(model->graph, name)].constant;
}

static const float four[16] = {1, 2, 3, 4};

TEST(memory__data_is_not_copied_and_released_once)
{
    application a = {.bytes = (const char *)four};
    clg_model *model;
    assert_ok(load(&a, model_of(2, "anything: ../../at all", "8", "8"), &model));
    assert_int_equal(a.n_calls, 2);
    assert_string_equal(a.location, "anything: ../../at all");
    assert_int_equal(a.offset_bytes, 8);
    assert_int_equal(a.length_bytes, 8);
    assert_ptr_equal(weight(model, "w1")->data, &four[2]);
    tensor *held = tensor_retain((tensor *)(uintptr_t)weight(model, "w0"));
    clg_model_free(model);
    assert_int_equal(a.n_released, 0);
    assert_true(tensor_get_float(held, 1) == 4);
    tensor_free(held);
    assert_int_equal(a.n_released, 1);
}

TEST(memory__absent_entries_have_their_defaults)
{
    application a = {.bytes = (const char *)four};
    clg_model *model;
    assert_ok(load(&a, model_of(1, "x", NULL, NULL), &model));
    assert_int_equal(a.offset_bytes, 0);
    assert_int_equal(a.length_bytes, 8);
    clg_model_free(model);
    a = (application){.bytes = (const char *)four};
    assert_ok(load(&a, model_of(1, "x", "9223372036854775807", "8"), &model));
    assert_true(a.offset_bytes == INT64_MAX);
    clg_model_free(model);
    assert_int_equal(a.n_released, 1);
}

/* A model without external data: nothing is asked for, and the memory is released at once. */
TEST(memory__that_nothing_refers_to_is_released_by_loading)
{
    application a = {0};
    static const int64_t none[] = {0, 3};
    clg_model *model;
    ow_model m = {.ir_version = 8, .opset = 13};
    ow_initializer(&m, ow_tensor_raw("w", CLG_FLOAT32, 1, (const int64_t[]){1}, four, 4));
    ow_output(&m, "w", 0);
    assert_ok(load(&a, ow_finish(&m), &model));
    assert_int_equal(a.n_calls, 0);
    assert_int_equal(a.n_released, 1);
    clg_model_free(model);
    a = (application){0};
    m = (ow_model){.ir_version = 8, .opset = 13};
    ow_initializer(&m, ow_tensor_external("w", CLG_FLOAT32, 2, none, "x", "0", "0"));
    ow_output(&m, "w", 0);
    assert_ok(load(&a, ow_finish(&m), &model));
    assert_int_equal(a.n_calls, 0);
    clg_model_free(model);
    assert_int_equal(a.n_released, 1);
}

static void expect_refused(application *a, ow_bytes file, clg_status status, const char *words)
{
    clg_model *model;
    assert_error(load(a, file, &model), status, words);
    assert_null(model);
    assert_int_equal(a->n_released, 1); /* before the call returned */
}

TEST(memory__wrong_lengths_are_refused_before_the_callback)
{
    application a = {.bytes = (const char *)four};
    expect_refused(&a, model_of(1, "x", "0", "4"), CLG_ERROR_INVALID_MODEL,
                   "tensor 'w0': external data of 4 bytes for a tensor of 8");
    assert_int_equal(a.n_calls, 0);
    a.n_released = 0;
    expect_refused(&a, model_of(1, "x", "-1", "8"), CLG_ERROR_INVALID_MODEL, "offset");
    assert_int_equal(a.n_calls, 0);
}

TEST(memory__errors_of_the_callback_are_passed_on)
{
    application a = {.answer = CLG_ERROR_CANCELLED};
    expect_refused(&a, model_of(1, "x", "0", "8"), CLG_ERROR_CANCELLED,
                   "tensor 'w0': the callback for external data gave CLG_ERROR_CANCELLED");
    a = (application){.answer = (clg_status)77};
    expect_refused(&a, model_of(1, "x", "0", "8"), CLG_ERROR_INVALID_ARGUMENT,
                   "gave 77, which is not a status");
    a = (application){.bytes = (const char *)four, .fails_in_library = true, .fail_at = 2};
    expect_refused(&a, model_of(3, "x", "0", "8"), CLG_ERROR_IO, "/no/such/file");
    assert_int_equal(a.n_calls, 2); /* the memory of the first is given up, too */
    a = (application){0};
    expect_refused(&a, model_of(1, "x", "16", "8"), CLG_ERROR_INVALID_ARGUMENT,
                   "no pointer for 8 bytes at offset 16 of 'x'");
}

/* A callback that succeeds leaves the caller's last error as it was, whatever failed inside. */
TEST(memory__success_does_not_change_the_last_error)
{
    application a = {.bytes = (const char *)four};
    clg_model *model;
    (void)error_set(CLG_ERROR_DATA, "an earlier error");
    assert_ok(load(&a, model_of(1, "x", "0", "8"), &model));
    assert_string_equal(clg_last_error(), "an earlier error");
    clg_model_free(model);
}

TEST(memory__is_released_when_an_argument_is_invalid)
{
    application a = {0};
    clg_model_options options = options_of(&a);
    clg_model *model;
    assert_error(clg_model_load_memory(NULL, 0, &options, &model), CLG_ERROR_INVALID_ARGUMENT,
                 "clg_model_load_memory: data is NULL");
    assert_int_equal(a.n_released, 1);
    assert_error(clg_model_load_memory("", 1, &options, NULL), CLG_ERROR_INVALID_ARGUMENT,
                 "clg_model_load_memory: out_model is NULL");
    assert_int_equal(a.n_released, 2);
    assert_error(clg_model_load_file(NULL, &options, &model), CLG_ERROR_INVALID_ARGUMENT,
                 "clg_model_load_file: path is NULL");
    assert_int_equal(a.n_released, 3);
    options.struct_size = 1;
    assert_error(clg_model_load_memory("", 1, &options, &model), CLG_ERROR_INVALID_ARGUMENT,
                 "struct_size");
    assert_int_equal(a.n_released, 3); /* the options were not read */
}

/* A caller that was compiled with the struct as it was before. */
TEST(memory__options_of_earlier_versions_still_work)
{
    application a = {0};
    clg_model_options options = options_of(&a);
    clg_model *model;
    ow_bytes file = model_of(1, "x", "0", "8");
    options.struct_size = offsetof(clg_model_options, external_data);
    options.allow_external_data_missing = true;
    assert_ok(clg_model_load_memory(file.data, file.n, &options, &model));
    assert_non_null(model->graph->values[graph_find_value(model->graph, "w0")].missing_file);
    assert_int_equal(a.n_calls + a.n_released, 0);
    clg_model_free(model);
    ow_free(&file);
}

/* No file is accessed: one that is beside the model has other data, and location may lead out. */
TEST(memory__comes_before_files)
{
    application a = {.bytes = (const char *)four};
    clg_model_options options = options_of(&a);
    clg_model *model;
    (void)scratch_file("data", &four[2], 8);
    ow_bytes file = model_of(1, "data", "0", "8");
    const char *path = scratch_file("model.onnx", file.data, file.n);
    ow_free(&file);
    assert_ok(clg_model_load_file(path, &options, &model));
    assert_true(tensor_get_float(weight(model, "w0"), 0) == 1);
    clg_model_free(model);
    assert_int_equal(a.n_released, 1);
}

/* Constants of nodes may be external, too; addresses may be odd. */
TEST(memory__serves_attributes_at_any_address)
{
    char bytes[80] = "";
    application a = {.bytes = bytes};
    clg_model *model;
    ow_model m = {.ir_version = 8, .opset = 13};
    ow_bytes node = ow_node("Constant", "", NULL, "y");
    ow_attribute_tensor(
        &node, "value",
        ow_tensor_external("", CLG_FLOAT64, 1, (const int64_t[]){2}, "x", "3", NULL));
    ow_add_node(&m, node);
    ow_output(&m, "y", 0);
    memcpy(bytes + 3, (const double[]){1.5, -2}, 16);
    assert_ok(load(&a, ow_finish(&m), &model));
    const tensor *t = node_attribute(&model->graph->nodes[0], "value")->as.tensor;
    assert_ptr_equal(t->data, bytes + 3);
    assert_true(tensor_get_float(t, 1) == -2);
    clg_model_free(model);
    assert_int_equal(a.n_released, 1);
}

static clg_status load_and_free(void *user)
{
    application *a = user;
    clg_model *model;
    *a = (application){.bytes = (const char *)four};
    const clg_status status = load(a, model_of(3, "x", "0", "8"), &model);
    clg_model_free(model);
    assert_int_equal(a->n_released, 1);
    return status;
}

TEST(memory__failing_allocations)
{
    application a;
    (void)fault_loop_alone(load_and_free, &a);
}
