/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests the self-tests of 8-bit GEMMs and convolutions, under a driver that miscompiles the tiled
 * kernels (layers/opencl_wrong.c). The wrong implementation must be reported and not used, and the
 * plain one must compute the right result. With self-tests disabled, the result is wrong.
 */
/* ctest: timeout 900 */
#include "support/fixtures/sized_data.h"
#include "support/unit.h"

#include "support/fixtures/ocl_platforms.h"
#include "support/scratch.h"

#include <clgraph/inspect.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAMES(...) ((const char *const[]){__VA_ARGS__})
#define DIMS(...) ((const int64_t[]){__VA_ARGS__})

/* Sizes of the GEMM x [M,K] times w [K,N], or of the convolution of an image of K channels and 1 x
 * M pixels with weights [N,K,1,TAPS]. Sums are int32. */
enum { M = 19, K = 21, N = 17, TAPS = 3 };

static uint8_t x_bytes[M * K], zero = 113;
static int8_t weights[K * N * TAPS];

typedef struct wrong_kernel {
    const char *op_type, *impl;
    const char *in, *from, *to; /* in programs that contain `in`, `from` becomes `to` */
} wrong_kernel;

static const wrong_kernel kernels[] = {
    /* ignores the zero point of each column of w */
    {"MatMulInteger", "qgemm_simt", "TILE_M", "(uint)right_zero * (uint)left_sum", "0"},
    /* pads with 0 in place of the zero point */
    {"ConvInteger", "qconv_simt", "TILE_M", ": border)", ": 0)"},
};

static void set_or_clear(const char *name, const char *value)
{
    assert_int_equal(value ? setenv(name, value, 1) : unsetenv(name), 0);
}

static int n_warnings;

static void listen(void *user, clg_log_level level, const char *message)
{
    (void)user;
    n_warnings += level <= CLG_LOG_WARNING && strstr(message, "gives wrong results") != NULL;
}

static clg_model *model_of(const wrong_kernel *f)
{
    const bool conv = strcmp(f->op_type, "ConvInteger") == 0;
    clg_builder *g;
    clg_model *m;
    assert_ok(clg_builder_create(13, &g));
    assert_ok(clg_builder_input(g, "x", CLG_UINT8, conv ? 4 : 2,
                                conv ? DIMS(1, K, 1, M) : DIMS(M, K), NULL));
    assert_ok(sized_constant(g, "w", CLG_INT8, conv ? 4 : 2,
                             conv ? DIMS(N, K, 1, TAPS) : DIMS(K, N), weights));
    assert_ok(sized_constant(g, "x_zero", CLG_UINT8, 0, NULL, &zero));
    assert_ok(sized_constant(g, "w_zero", CLG_INT8, 1, DIMS(N), weights));
    assert_ok(clg_builder_node(g, NULL, f->op_type, "node", 4, NAMES("x", "w", "x_zero", "w_zero"),
                               1, NAMES("y")));
    if (conv) assert_ok(clg_builder_attribute_ints(g, "pads", 4, DIMS(0, 1, 0, 1)));
    assert_ok(clg_builder_output(g, "y"));
    assert_ok(clg_builder_build(g, &m));
    clg_builder_free(g);
    return m;
}

/* Returns y[row,column] of the GEMM, or y[column,row] of the convolution. */
static int64_t expected(bool conv, int row, int column)
{
    int64_t sum = 0;
    for (int k = 0; k < K; k++) {
        for (int t = 0; t < (conv ? TAPS : 1); t++) {
            const int at = row + t - 1;
            if (conv && (at < 0 || at >= M)) continue;
            const int x = conv ? x_bytes[k * M + at] : x_bytes[row * K + k];
            const int w = conv ? weights[(column * K + k) * TAPS + t] : weights[k * N + column];
            sum += (int64_t)(x - zero) * (w - weights[column]);
        }
    }
    return sum;
}

/* Runs the model and writes the name of the implementation that it used to `impl`. Returns whether
 * the result is right. */
static bool run(const wrong_kernel *f, clg_selftest selftest, const char *store, char impl[64])
{
    const bool conv = strcmp(f->op_type, "ConvInteger") == 0;
    clg_context_options how = CLG_CONTEXT_OPTIONS_INIT;
    clg_session_options options = CLG_SESSION_OPTIONS_INIT;
    clg_context *context;
    clg_session *session;
    clg_step_profile *steps;
    clg_value *y;
    size_t n;
    bool right = true;
    how.profiling = true;
    how.cache_dir = scratch_path(store);
    how.selftest = selftest;
    options.kernels = CLG_KERNELS_SIMT;
    assert_ok(clg_context_create(ocl_platforms_test_device(), &how, &context));
    clg_model *model = model_of(f);
    assert_ok(clg_session_create(context, model, &options, &session));
    assert_ok(sized_input(session, "x", CLG_UINT8, conv ? 4 : 2,
                          conv ? DIMS(1, K, 1, M) : DIMS(M, K), x_bytes));
    assert_ok(clg_session_run(session));
    assert_ok(clg_session_get_output(session, "y", &y));
    for (int i = 0; i < M * N; i++) {
        const int row = conv ? i % M : i / N, column = conv ? i / M : i % N;
        right = right && ((const int32_t *)clg_value_data(y))[i] == expected(conv, row, column);
    }
    clg_value_free(y);
    assert_ok(clg_session_profile(session, &steps, &n));
    assert_true(n > 0);
    (void)snprintf(impl, 64, "%s", steps[n - 1].impl);
    clg_session_profile_free(steps, n);
    clg_session_free(session);
    clg_model_free(model);
    clg_context_free(context);
    return right;
}

static void check(const wrong_kernel *f)
{
    char impl[64];
    n_warnings = 0;
    assert_true(run(f, CLG_SELFTEST_ON, "sound", impl));
    assert_string_equal(impl, f->impl);
    assert_int_equal(n_warnings, 0);
    set_or_clear("CLG_WRONG_IN", f->in);
    set_or_clear("CLG_WRONG_FROM", f->from);
    set_or_clear("CLG_WRONG_TO", f->to);
    assert_true(run(f, CLG_SELFTEST_ON, f->impl, impl));
    assert_string_not_equal(impl, f->impl);
    assert_int_equal(n_warnings, 1);
    assert_false(run(f, CLG_SELFTEST_OFF, f->impl, impl));
    assert_string_equal(impl, f->impl);
    set_or_clear("CLG_WRONG_IN", NULL);
}

TEST(selftest_quantized__finds_a_wrong_gemm) { check(&kernels[0]); }

TEST(selftest_quantized__finds_convolutions_wrong) { check(&kernels[1]); }

static int begin(void **state)
{
    (void)state;
    unsetenv("CLG_SELFTEST");
    assert_int_equal(setenv("OPENCL_LAYERS", CLG_TEST_BUILD_DIR "/tests/layers/opencl_wrong.so", 1),
                     0);
    ocl_platforms_show_pocl();
    clg_set_log(listen, NULL, CLG_LOG_WARNING);
    for (int i = 0; i < M * K; i++) x_bytes[i] = (uint8_t)(i * 37 % 251);
    for (int i = 0; i < K * N * TAPS; i++) weights[i] = (int8_t)(i * 29 % 253 - 126);
    return 0;
}

TEST_GROUP(begin, NULL)
