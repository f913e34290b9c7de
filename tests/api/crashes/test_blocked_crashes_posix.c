/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests drivers whose compiler crashes on a kernel for channel-blocked feature maps (simulated by
 * layers/opencl_crashing.c). Only the operators that the pass `blocked` makes of convolutions have
 * these kernels; each must have another one.
 */
/* ctest: timeout 600 */
#include "support/fixtures/ocl_platforms.h"
#include "support/fixtures/sized_data.h"
#include "support/unit.h"

#include "support/fakes/crashing_driver.h"
#include "support/fixtures/build_session.h"
#include "support/literals.h"

#include "session/exec/exec.h"

#include <clgraph/inspect.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Adds a convolution of n channels with a kernel of k x k. */
static void add_conv(clg_builder *g, const char *x, const char *y, int64_t n, int64_t k,
                     int64_t groups)
{
    static float numbers[64 * 64 * 9];
    char w[16];
    const int64_t dims[] = {n, n / groups, k, k}, pads[] = {k / 2, k / 2, k / 2, k / 2};
    for (int64_t i = 0; i < n * (n / groups) * k * k; i++)
        numbers[i] = (float)(i * i % 13 - 6) / 64;
    snprintf(w, sizeof w, "%s weight", y);
    assert_ok(sized_constant(g, w, CLG_FLOAT32, 4, dims, numbers));
    assert_ok(clg_builder_node(g, NULL, "Conv", y, 2, (const char *[]){x, w}, 1, &y));
    assert_ok(clg_builder_attribute_ints(g, "pads", 4, pads));
    assert_ok(clg_builder_attribute_int(g, "group", groups));
}

enum { MAP_CHANNELS = 64, MAP_SIDE = 28, MAP = MAP_CHANNELS * MAP_SIDE * MAP_SIDE };

/* Computes a 3x3, a 1x1, a depthwise and a 3x3 convolution, and sets y. disabled: passes that do
 * not run. *out_plan: the plan's text, which the caller frees by clg_text_free. */
static void run_maps(const char *store, name_list disabled, float *y, char **out_plan)
{
    static float x[MAP];
    for (int i = 0; i < MAP; i++) x[i] = (float)(i % 29 - 14) / 8;
    clg_session_options options = CLG_SESSION_OPTIONS_INIT;
    options.kernels = CLG_KERNELS_SIMD;
    options.disabled_passes = disabled.names;
    options.n_disabled_passes = disabled.count;
    clg_context *context = cd_context(store, NULL);
    clg_builder *g = start_graph();
    assert_ok(
        clg_builder_input(g, "x", CLG_FLOAT32, 4, DIMS(1, MAP_CHANNELS, MAP_SIDE, MAP_SIDE), NULL));
    add_conv(g, "x", "a", MAP_CHANNELS, 3, 1);
    add_conv(g, "a", "b", MAP_CHANNELS, 1, 1);
    add_conv(g, "b", "c", MAP_CHANNELS, 3, MAP_CHANNELS);
    add_conv(g, "c", "y", MAP_CHANNELS, 3, 1);
    assert_ok(clg_builder_output(g, "y"));
    clg_session *s = build_session(context, g, &options);
    assert_ok(sized_input(s, "x", CLG_FLOAT32, 4, DIMS(1, MAP_CHANNELS, MAP_SIDE, MAP_SIDE), x));
    assert_ok(clg_session_run(s));
    assert_ok(clg_session_get_output_data(s, "y", y, MAP * sizeof *y));
    assert_ok(clg_session_plan_text(s, out_plan));
    clg_session_free(s);
    clg_context_free(context);
}

/* Checks y and the plan where the compiler crashes on programs whose source contains `in`. store: a
 * new cache folder. */
static void expect_maps(const char *store, const char *in, name_list disabled)
{
    static float sound[MAP], y[MAP];
    char *plan;
    cd_dies(NULL, NULL, NULL, NULL);
    run_maps("sound", disabled, sound, &plan);
    const bool is_blocked = strstr(plan, "BlockedConv") != NULL; /* else blocks do not pay here */
    assert_null(strstr(plan, "conv_blocked_direct"));
    clg_text_free(plan);
    cd_dies(in, "build", "abort", NULL);
    run_maps(store, disabled, y, &plan);
    assert_true(!is_blocked || (strstr(plan, "conv_blocked_direct") && cd_n_crashes() > 0));
    clg_text_free(plan);
    for (int k = 0; k < MAP; k++) assert_true(fabsf(y[k] - sound[k]) <= 1e-3f);
}

static const char *const no_others[] = {"winograd", "expand"};

TEST(blocked_crash__of_convolutions)
{
    expect_maps("whole", "void conv_blocked(", (name_list){no_others, 2});
}

TEST(blocked_crash__of_depthwise_convolutions)
{
    expect_maps("depthwise", "void conv_depthwise_blocked(", (name_list){no_others, 2});
}

/* The kernels of a 1x1 convolution alone and with a depthwise one have these register tiles. */
TEST(blocked_crash__of_all_with_tiles)
{
    expect_maps("tiles", "#define P_NRV 2\n", (name_list){NULL, 0});
}

TEST_GROUP(cd_begin, NULL)

int main(void) { return test_run_all(); }
