/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements wrong_driver.h: configures the layer, and runs models on PoCL with simulated
 * miscompilation.
 */
#include "support/fakes/wrong_driver.h"
#include "support/fixtures/sized_data.h"

#include "support/fixtures/ocl_platforms.h"
#include "support/literals.h"
#include "support/platform.h"
#include "support/scratch.h"
#include "support/unit.h"

#include <clgraph/inspect.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Not multiples of 16 channels or of 4x4 pixels, so that tiles at the borders are partial. */
enum { CHANNELS = 21, SIDE = 23, PIXELS = SIDE * SIDE };
_Static_assert(WD_N == CHANNELS * PIXELS, "the images' size");

static float weights[CHANNELS * CHANNELS * 9];
float wd_x[WD_N];
double wd_conv[WD_N], wd_gemms[WD_N];
const wd_fault wd_no_fault = {NULL, NULL, NULL};

/* ---- the driver ------------------------------------------------------------------------------ */

void wd_set_or_clear(const char *name, const char *value)
{
    assert_true(platform_set_env(name, value));
}

void wd_driver_is(const wd_fault *f, const char *version)
{
    wd_set_or_clear("CLG_WRONG_IN", f->in);
    wd_set_or_clear("CLG_WRONG_FROM", f->from);
    wd_set_or_clear("CLG_WRONG_TO", f->to);
    wd_set_or_clear("CLG_WRONG_DRIVER", version);
}

/* ---- the log --------------------------------------------------------------------------------- */

int wd_warnings;
char wd_warning[1024];

static void listen(void *user, clg_log_level level, const char *message)
{
    (void)user;
    if (level > CLG_LOG_WARNING || !strstr(message, "gives wrong results")) return;
    wd_warnings++;
    (void)snprintf(wd_warning, sizeof wd_warning, "%s", message);
}

/* ---- the models ------------------------------------------------------------------------------ */

clg_model *wd_model(const char *op_type, size_t rank, const int64_t *x_dims, const int64_t *w_dims,
                    const float *w, float alpha)
{
    clg_builder *g;
    clg_model *m;
    assert_ok(clg_builder_create(13, &g));
    assert_ok(clg_builder_input(g, "x", CLG_FLOAT32, rank, x_dims, NULL));
    if (w)
        assert_ok(sized_constant(g, "w", CLG_FLOAT32, rank, w_dims, w));
    else
        assert_ok(clg_builder_input(g, "w", CLG_FLOAT32, rank, w_dims, NULL));
    assert_ok(clg_builder_node(g, NULL, op_type, "node", 2, NAMES("x", "w"), 1, NAMES("y")));
    if (strcmp(op_type, "Conv") == 0)
        assert_ok(clg_builder_attribute_ints(g, "pads", 4, DIMS(1, 1, 1, 1)));
    if (strcmp(op_type, "Gemm") == 0) assert_ok(clg_builder_attribute_float(g, "alpha", alpha));
    assert_ok(clg_builder_output(g, "y"));
    assert_ok(clg_builder_build(g, &m));
    clg_builder_free(g);
    return m;
}

clg_model *wd_convolution(void)
{
    return wd_model("Conv", 4, DIMS(1, CHANNELS, SIDE, SIDE), DIMS(CHANNELS, CHANNELS, 3, 3),
                    weights, 1);
}

clg_model *wd_gemm(void)
{
    return wd_model("MatMul", 2, DIMS(PIXELS, CHANNELS), DIMS(CHANNELS, CHANNELS), weights, 1);
}

static double tap(int channel, int row, int col, const float *w)
{
    double sum = 0;
    for (int k = 0; k < 9; k++) {
        const int r = row + k / 3 - 1, c = col + k % 3 - 1;
        if (r >= 0 && r < SIDE && c >= 0 && c < SIDE)
            sum += (double)w[k] * (double)wd_x[(channel * SIDE + r) * SIDE + c];
    }
    return sum;
}

static void expect(void)
{
    for (int i = 0; i < (int)(sizeof weights / sizeof *weights); i++)
        weights[i] = (float)(i * 7 % 23 - 11) / 64;
    for (int i = 0; i < WD_N; i++) wd_x[i] = (float)(i * 5 % 31 - 15) / 16;
    for (int i = 0; i < WD_N; i++) {
        const int o = i / PIXELS, row = i % PIXELS / SIDE, col = i % SIDE;
        for (int c = 0; c < CHANNELS; c++)
            wd_conv[i] += tap(c, row, col, weights + (o * CHANNELS + c) * 9);
        for (int c = 0; c < CHANNELS; c++)
            wd_gemms[i] += (double)wd_x[i / CHANNELS * CHANNELS + c] *
                           (double)weights[c * CHANNELS + i % CHANNELS];
    }
}

/* ---- running --------------------------------------------------------------------------------- */

clg_context *wd_context(const char *store, clg_selftest selftest)
{
    clg_context_options options = CLG_CONTEXT_OPTIONS_INIT;
    clg_context *context;
    options.profiling = true;
    options.cache_dir = scratch_path(store);
    options.selftest = selftest;
    assert_ok(clg_context_create(ocl_platforms_test_device(), &options, &context));
    return context;
}

clg_status wd_run_by(clg_context *context, clg_model *model, clg_kernel_class kernels,
                     const char *preferred, const wd_input *inputs, size_t n_inputs,
                     char impl[WD_IMPL_BYTES], float *y, size_t n_y)
{
    clg_session_options options = CLG_SESSION_OPTIONS_INIT;
    clg_session *session;
    clg_step_profile *steps;
    clg_value *value;
    size_t n;
    options.kernels = kernels;
    options.preferred_impls = &preferred;
    options.n_preferred_impls = 1;
    assert_ok(clg_session_create(context, model, &options, &session));
    for (size_t i = 0; i < n_inputs; i++)
        assert_ok(sized_input(session, inputs[i].name, CLG_FLOAT32, inputs[i].rank, inputs[i].dims,
                              inputs[i].data));
    const clg_status status = clg_session_run(session);
    if (status == CLG_OK) {
        assert_ok(clg_session_get_output(session, "y", &value));
        if (n_y) memcpy(y, clg_value_data(value), n_y * sizeof *y);
        clg_value_free(value);
        assert_ok(clg_session_profile(session, &steps, &n));
        assert_true(n > 0);
        (void)snprintf(impl, WD_IMPL_BYTES, "%s", steps[n - 1].impl);
        clg_session_profile_free(steps, n);
    }
    clg_session_free(session);
    return status;
}

double wd_worst_of(const float *y, const double *expected, size_t n)
{
    double worst = 0;
    for (size_t i = 0; i < n; i++) worst = fmax(worst, fabs((double)y[i] - expected[i]));
    return worst;
}

clg_status wd_run(clg_context *context, clg_model *model, clg_kernel_class kernels,
                  const char *preferred, const double *expected, wd_answer *out)
{
    static float y[WD_N];
    const wd_input image = {"x", 4, DIMS(1, CHANNELS, SIDE, SIDE), wd_x},
                   matrix = {"x", 2, DIMS(PIXELS, CHANNELS), wd_x};
    const clg_status status =
        wd_run_by(context, model, kernels, preferred, expected == wd_conv ? &image : &matrix, 1,
                  out->impl, y, WD_N);
    if (status == CLG_OK) out->worst = wd_worst_of(y, expected, WD_N);
    return status;
}

int wd_begin(void **state)
{
    (void)state;
    wd_set_or_clear("CLG_SELFTEST", NULL);
    wd_set_or_clear("OPENCL_LAYERS",
                    CLG_TEST_BUILD_DIR "/tests/layers/opencl_wrong.so:" CLG_TEST_BUILD_DIR
                                       "/tests/layers/opencl_device.so");
    ocl_platforms_show_pocl();
    clg_set_log(listen, NULL, CLG_LOG_WARNING);
    expect();
    return 0;
}
