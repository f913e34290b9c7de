/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests the session option `precision`: the accuracy of fp16 compared with fp32, its memory use,
 * and the values that it must not change.
 */
/* ctest: label quick */
#include "support/fixtures/sized_data.h"
#include "support/unit.h"

#include "support/fixtures/onnx_writer.h"
#include "support/fixtures/pocl_context.h"

#include <math.h>
#include <string.h>

#define ROWS 7
#define DEPTH 300
#define COLUMNS 90

/* Creates y = Relu(x w), with weights between -1 and 1 except for the first, which is `first`. */
static clg_model *layer(float first)
{
    static float w[DEPTH * COLUMNS];
    const int64_t x_dims[] = {ROWS, DEPTH}, w_dims[] = {DEPTH, COLUMNS};
    ow_model m = {.ir_version = 8, .opset = 17};
    clg_model *model;
    for (size_t i = 0; i < DEPTH * COLUMNS; i++) w[i] = sinf((float)i * 0.37f);
    w[0] = first;
    ow_input(&m, "x", CLG_FLOAT32, 2, x_dims, NULL);
    ow_initializer(&m, ow_tensor_raw("w", CLG_FLOAT32, 2, w_dims, w, sizeof w));
    ow_simple_node(&m, "MatMul", "product", "x,w", "p");
    ow_simple_node(&m, "Relu", "relu", "p", "y");
    ow_output(&m, "y", CLG_FLOAT32);
    assert_ok(ow_load(&m, &model));
    return model;
}

static clg_session *open_session(clg_model *model, clg_precision precision, const char *keep)
{
    clg_session_options options = CLG_SESSION_OPTIONS_INIT;
    const int64_t dims[] = {ROWS, DEPTH};
    static float x[ROWS * DEPTH];
    clg_session *session;
    for (size_t i = 0; i < ROWS * DEPTH; i++) x[i] = cosf((float)i * 0.61f);
    options.precision = precision;
    options.keep_fp32 = &keep;
    options.n_keep_fp32 = keep != NULL;
    assert_ok(clg_session_create(context, model, &options, &session));
    assert_ok(sized_input(session, "x", CLG_FLOAT32, 2, dims, x));
    assert_ok(clg_session_run(session));
    return session;
}

static void read_output(clg_session *session, float y[ROWS * COLUMNS])
{
    clg_value *value;
    assert_ok(clg_session_get_output(session, "y", &value));
    assert_int_equal(clg_value_dtype(value), CLG_FLOAT32);
    memcpy(y, clg_value_data(value), ROWS * COLUMNS * sizeof *y);
    clg_value_free(value);
}

static void run(clg_model *model, clg_precision precision, const char *keep,
                float y[ROWS * COLUMNS])
{
    clg_session *session = open_session(model, precision, keep);
    read_output(session, y);
    clg_session_free(session);
}

static float largest_difference(const float *a, const float *b)
{
    float largest = 0.0f;
    for (size_t i = 0; i < ROWS * COLUMNS; i++) largest = fmaxf(largest, fabsf(a[i] - b[i]));
    return largest;
}

TEST(precision__rounds_what_is_stored)
{
    static float whole[ROWS * COLUMNS], half[ROWS * COLUMNS], kept[ROWS * COLUMNS];
    clg_model *model = layer(0.5f);
    run(model, CLG_PRECISION_FP32, NULL, whole);
    run(model, CLG_PRECISION_FP16, NULL, half);
    run(model, CLG_PRECISION_FP16, "prod*", kept);
    /* Each of 300 products has two factors with a rounding error of at most 2^-11; the sum, below
     * 32, is rounded once. */
    const float bound = 300.0f * 2.0f * 0x1p-11f + 32.0f * 0x1p-11f;
    const float difference = largest_difference(whole, half);
    assert_true(difference > 0.0f && difference < bound);
    assert_memory_equal(whole, kept, sizeof whole);
    clg_model_free(model);
}

TEST(precision__saturates)
{
    static float limit[ROWS * COLUMNS], beyond[ROWS * COLUMNS];
    clg_model *at = layer(65504.0f), *over = layer(1e30f);
    run(at, CLG_PRECISION_FP16, NULL, limit);
    run(over, CLG_PRECISION_FP16, NULL, beyond);
    assert_memory_equal(limit, beyond, sizeof limit);
    clg_model_free(at);
    clg_model_free(over);
}

static uint64_t weight_bytes(clg_model *model, clg_precision precision)
{
    clg_memory_estimate memory = {.struct_size = sizeof memory};
    clg_session *session = open_session(model, precision, NULL);
    assert_ok(clg_session_memory(session, &memory));
    clg_session_free(session);
    return memory.weight_bytes;
}

TEST(precision__fp16_takes_half_the_bytes_of_weights)
{
    clg_model *model = layer(0.5f);
    const uint64_t whole = weight_bytes(model, CLG_PRECISION_FP32),
                   half = weight_bytes(model, CLG_PRECISION_FP16);
    assert_true(half < whole / 2 + 4096);
    clg_model_free(model);
}

TEST(precision__says_what_it_is)
{
    static const clg_precision requested[] = {CLG_PRECISION_FP32, CLG_PRECISION_FP16,
                                              CLG_PRECISION_AUTO},
                               is[] = {CLG_PRECISION_FP32, CLG_PRECISION_FP16, CLG_PRECISION_FP32};
    clg_model *model = layer(0.5f);
    for (size_t i = 0; i < 3; i++) { /* the device is a CPU */
        clg_session *session = open_session(model, requested[i], NULL), *clone;
        assert_int_equal(clg_session_precision(session), is[i]);
        assert_ok(clg_session_clone(session, &clone));
        assert_int_equal(clg_session_precision(clone), is[i]);
        clg_session_free(clone);
        clg_session_free(session);
    }
    assert_int_equal(clg_session_precision(NULL), CLG_PRECISION_FP32);
    clg_model_free(model);
}

TEST(precision__refuses_nonsense)
{
    clg_session_options options = CLG_SESSION_OPTIONS_INIT;
    clg_model *model = layer(0.5f);
    clg_session *session;
    options.precision = (clg_precision)3;
    assert_error(clg_session_create(context, model, &options, &session), CLG_ERROR_INVALID_ARGUMENT,
                 "there is no precision 3");
    options.precision = CLG_PRECISION_FP16;
    options.n_keep_fp32 = 1;
    assert_error(clg_session_create(context, model, &options, &session), CLG_ERROR_INVALID_ARGUMENT,
                 "keep_fp32 is NULL");
    clg_model_free(model);
}

TEST_GROUP(open_context, close_context)
