/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests implementation choices that are based on measurements, in the public interface. Profiles
 * must report each node's implementation and problem key; sessions must follow added choices and
 * their own preferences; all implementations must give the same results; and a context must load
 * the choices that another one stored.
 */
#include "support/fixtures/sized_data.h"
#include "support/unit.h"

#include "support/fixtures/ocl_platforms.h"
#include "support/scratch.h"

#include <clgraph/inspect.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAMES(...) ((const char *const[]){__VA_ARGS__})
#define DIMS(...) ((const int64_t[]){__VA_ARGS__})

enum { CHANNELS = 16, SIDE = 24, N = CHANNELS * SIDE * SIDE };

/* Creates y = Conv(x, w): [1,16,24,24] by [16,16,3,3], which has three implementations on devices
 * of the SIMD class. */
static clg_model *convolution(void)
{
    static float w[CHANNELS * CHANNELS * 9];
    clg_builder *g;
    clg_model *m;
    for (size_t i = 0; i < sizeof w / sizeof *w; i++) w[i] = (float)((int)(i * 7 % 23) - 11) / 64;
    assert_ok(clg_builder_create(13, &g));
    assert_ok(clg_builder_input(g, "x", CLG_FLOAT32, 4, DIMS(1, CHANNELS, SIDE, SIDE), NULL));
    assert_ok(sized_constant(g, "w", CLG_FLOAT32, 4, DIMS(CHANNELS, CHANNELS, 3, 3), w));
    assert_ok(clg_builder_node(g, NULL, "Conv", "conv", 2, NAMES("x", "w"), 1, NAMES("y")));
    assert_ok(clg_builder_attribute_ints(g, "pads", 4, DIMS(1, 1, 1, 1)));
    assert_ok(clg_builder_output(g, "y"));
    assert_ok(clg_builder_build(g, &m));
    clg_builder_free(g);
    return m;
}

static clg_context *open_context(void)
{
    clg_context_options options = CLG_CONTEXT_OPTIONS_INIT;
    clg_context *context;
    options.profiling = true;
    options.cache_dir = scratch_path("store");
    assert_ok(clg_context_create(ocl_platforms_test_device(), &options, &context));
    return context;
}

/* Runs the model, and copies y and the profile entry of the convolution. out_impl: 64 bytes;
 * out_problem, out_impls: 512 bytes, or NULL; out_y: N elements, or NULL. */
static void run(clg_context *context, clg_model *model, const char *preferred, char *out_impl,
                char *out_problem, char *out_impls, float *out_y)
{
    static float x[N];
    clg_session_options options = CLG_SESSION_OPTIONS_INIT;
    clg_session *session;
    clg_step_profile *steps;
    clg_value *y;
    size_t n, at;
    options.kernels = CLG_KERNELS_SIMD;
    options.preferred_impls = &preferred;
    options.n_preferred_impls = preferred != NULL;
    for (int i = 0; i < N; i++) x[i] = (float)((i * 5 % 31) - 15) / 16;
    assert_ok(clg_session_create(context, model, &options, &session));
    assert_ok(sized_input(session, "x", CLG_FLOAT32, 4, DIMS(1, CHANNELS, SIDE, SIDE), x));
    assert_ok(clg_session_run(session));
    assert_ok(clg_session_get_output(session, "y", &y));
    if (out_y) memcpy(out_y, clg_value_data(y), N * sizeof(float));
    clg_value_free(y);
    assert_ok(clg_session_profile(session, &steps, &n));
    for (at = 0; at < n && !steps[at].problem; at++) {}
    assert_true(at < n);
    (void)snprintf(out_impl, 64, "%s", steps[at].impl);
    if (out_problem) (void)snprintf(out_problem, 512, "%s", steps[at].problem);
    if (out_impls) (void)snprintf(out_impls, 512, "%s", steps[at].impls);
    clg_session_profile_free(steps, n);
    clg_session_free(session);
}

static int only_pocl(void **state)
{
    (void)state;
    ocl_platforms_show_pocl();
    return 0;
}

TEST(measured__every_implementation_gives_the_same)
{
    clg_context *context = open_context();
    clg_model *model = convolution();
    static float expected[N], y[N];
    char impl[64], impls[512], *rest = impls, *name;
    int n = 0;
    run(context, model, NULL, impl, NULL, impls, expected);
    assert_non_null(strstr(impls, impl));
    while ((name = strsep(&rest, " ")) != NULL) {
        run(context, model, name, impl, NULL, NULL, y);
        assert_string_equal(impl, name);
        for (int i = 0; i < N; i++)
            if (fabsf(y[i] - expected[i]) > 1e-4f) /* Winograd's rounding, of sums of about 5 */
                fail_msg("%s: element %d is %g, not %g", name, i, (double)y[i],
                         (double)expected[i]);
        n++;
    }
    assert_true(n >= 3);
    clg_model_free(model);
    clg_context_free(context);
}

TEST(measured__sessions_follow_and_the_store_keeps)
{
    clg_context *context = open_context();
    clg_model *model = convolution();
    char estimated[64], impl[64], problem[512], impls[512], lines[1200], *text;
    run(context, model, NULL, estimated, problem, impls, NULL);
    const char *other = strncmp(impls, "conv_simd", 9) == 0 && strcmp(estimated, "conv_simd") != 0
                            ? "conv_simd"
                        : strcmp(estimated, "winograd_2x2") == 0 ? "winograd_4x4"
                                                                 : "winograd_2x2";
    (void)snprintf(lines, sizeof lines, "clgraph choices 1\n%s\t%s\n", other, problem);
    assert_ok(clg_context_add_choices(context, lines));
    run(context, model, NULL, impl, NULL, NULL, NULL);
    assert_string_equal(impl, other);
    run(context, model, estimated, impl, NULL, NULL, NULL);
    assert_string_equal(impl, estimated);
    clg_context_free(context);

    context = open_context(); /* reads the stored choices, as another process does */
    run(context, model, NULL, impl, NULL, NULL, NULL);
    assert_string_equal(impl, other);
    assert_ok(clg_context_choices(context, &text));
    assert_string_equal(text, lines);
    clg_text_free(text);
    clg_model_free(model);
    clg_context_free(context);
}

TEST(measured__what_is_refused)
{
    clg_context *context = open_context();
    clg_session_options options = CLG_SESSION_OPTIONS_INIT;
    clg_model *model = convolution();
    clg_session *session;
    char *text;
    assert_int_equal(clg_context_add_choices(context, "choices\n"), CLG_ERROR_INVALID_ARGUMENT);
    assert_int_equal(clg_context_add_choices(context, NULL), CLG_ERROR_INVALID_ARGUMENT);
    assert_int_equal(clg_context_add_choices(NULL, "clgraph choices 1\n"),
                     CLG_ERROR_INVALID_ARGUMENT);
    assert_int_equal(clg_context_choices(NULL, &text), CLG_ERROR_INVALID_ARGUMENT);
    assert_int_equal(clg_context_choices(context, NULL), CLG_ERROR_INVALID_ARGUMENT);
    options.n_preferred_impls = 1;
    assert_int_equal(clg_session_create(context, model, &options, &session),
                     CLG_ERROR_INVALID_ARGUMENT);
    const char *unknown = "winograd";
    options.preferred_impls = &unknown;
    assert_int_equal(clg_session_create(context, model, &options, &session),
                     CLG_ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(clg_last_error(), "'winograd'"));
    clg_model_free(model);
    clg_context_free(context);
}

TEST(measured__names_of_implementations_are_sorted)
{
    const char *before = "", *name;
    size_t n = 0;
    bool has_winograd = false;
    for (; (name = clg_implementation_name(n)) != NULL; n++, before = name) {
        assert_true(strcmp(before, name) < 0);
        has_winograd |= strcmp(name, "winograd_4x4") == 0;
    }
    assert_true(has_winograd);
    assert_true(n > 100);
    assert_null(clg_implementation_name(SIZE_MAX));
}

TEST_GROUP(only_pocl, NULL)
