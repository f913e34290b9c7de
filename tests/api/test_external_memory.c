/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests sessions of models whose weights are in memory of the application's: right results at any
 * address, uploads that are reported, and a release when the last of model and sessions is freed.
 */
#include "support/unit.h"

#include "support/fixtures/onnx_writer.h"
#include "support/fixtures/pocl_context.h"
#include "support/fixtures/sized_data.h"
#include "support/literals.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

TEST_GROUP(open_context, close_context)

enum { ROWS = 3, N = 300, WEIGHT_BYTES = N * N * 4 };

typedef struct application {
    char *memory; /* `shift` bytes, then the weight */
    size_t shift;
    uint64_t unloaded_bytes;
    int n_released;
} application;

static clg_status give(void *user, const char *location, uint64_t offset_bytes,
                       uint64_t length_bytes, const void **out_data)
{
    const application *a = user;
    assert_string_equal(location, "weights");
    assert_int_equal(length_bytes, WEIGHT_BYTES);
    *out_data = a->memory + a->shift + offset_bytes;
    return CLG_OK;
}

static void release(void *user)
{
    application *a = user;
    free(a->memory);
    a->memory = NULL;
    a->n_released++;
}

static void unload(void *user, const void *data, size_t size_bytes)
{
    application *a = user;
    const char *at = data, *start = a->memory + a->shift;
    assert_true(at >= start && size_bytes <= (size_t)(start + WEIGHT_BYTES - at));
    a->unloaded_bytes += size_bytes;
}

static float weight(size_t k, size_t i) { return (float)((k * 7 + i * 3) % 29) / 16 - 1; }

/* Loads y = x * w. The memory is of exactly the size needed, for the address sanitizer. */
static clg_model *load(application *a, size_t shift)
{
    clg_model_options options = CLG_MODEL_OPTIONS_INIT;
    clg_model *model;
    ow_model m = {.ir_version = 8, .opset = 13};
    *a = (application){.memory = malloc(shift + WEIGHT_BYTES), .shift = shift};
    for (size_t k = 0; k < N; k++) {
        for (size_t i = 0; i < N; i++) {
            const float w = weight(k, i);
            memcpy(a->memory + shift + (k * N + i) * 4, &w, 4);
        }
    }
    options.external_data = give;
    options.external_release = release;
    options.external_unload = unload;
    options.external_user = a;
    ow_input(&m, "x", CLG_FLOAT32, 2, (const int64_t[]){ROWS, N}, NULL);
    ow_initializer(&m, ow_tensor_external("w", CLG_FLOAT32, 2, (const int64_t[]){N, N}, "weights",
                                          NULL, NULL));
    ow_simple_node(&m, "MatMul", "", "x,w", "y");
    ow_output(&m, "y", CLG_FLOAT32);
    ow_bytes file = ow_finish(&m);
    assert_ok(clg_model_load_memory(file.data, file.n, &options, &model));
    ow_free(&file);
    return model;
}

static void run(clg_session *s)
{
    static float x[ROWS * N], y[ROWS * N];
    for (size_t i = 0; i < ROWS * N; i++) x[i] = (float)(i % 13) / 8 - 0.75f;
    assert_ok(sized_input(s, "x", CLG_FLOAT32, 2, DIMS(ROWS, N), x));
    assert_ok(clg_session_run(s));
    assert_ok(clg_session_get_output_data(s, "y", y, sizeof y));
    for (size_t r = 0; r < ROWS; r++) {
        for (size_t i = 0; i < N; i++) {
            double sum = 0;
            for (size_t k = 0; k < N; k++) sum += (double)x[r * N + k] * (double)weight(k, i);
            assert_true(fabs((double)y[r * N + i] - sum) <= 1e-6 * N); /* products are below 1 */
        }
    }
}

TEST(external__weights_are_uploaded_from_the_callers_memory)
{
    for (size_t shift = 0; shift < 8; shift += 3) {
        application a;
        clg_session *s;
        clg_model *model = load(&a, shift);
        assert_int_equal(a.unloaded_bytes, 0);
        assert_ok(clg_session_create(context, model, NULL, &s));
        run(s);
        assert_true(a.unloaded_bytes >= WEIGHT_BYTES);
        clg_model_free(model);
        assert_int_equal(a.n_released, 0);
        run(s);
        clg_session_free(s);
        assert_int_equal(a.n_released, 1);
    }
}

TEST(external__the_model_outlives_its_sessions)
{
    application a;
    clg_session *s;
    clg_model *model = load(&a, 0);
    for (int i = 0; i < 2; i++) {
        assert_ok(clg_session_create(context, model, NULL, &s));
        run(s);
        clg_session_free(s);
        assert_int_equal(a.n_released, 0);
    }
    clg_model_free(model);
    assert_int_equal(a.n_released, 1);
}
