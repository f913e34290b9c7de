/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests the GEMM kernels for matrix units, emulated on PoCL. They must be available where the
 * device has such a unit, but not used by default; used where a session prefers them and their
 * self-test passes; and rejected under a driver that miscompiles them (layers/opencl_wrong.c).
 */
#include "support/fixtures/sized_data.h"
#include "support/unit.h"

#include "support/fakes/driver_faults.h"
#include "support/fixtures/ocl_platforms.h"

#include "session/context_handle.h"

#include <clgraph/inspect.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { M = 67, N = 35, K = 53 };

static uint16_t a[M * K], a_transposed[K * M], b[K * N];
static double y[M * N];

static void fill(void)
{
    for (int i = 0; i < M * K; i++)
        a_transposed[i % K * M + i / K] = a[i] = half_from_float((float)(i * 7 % 23 - 11) / 16);
    for (int i = 0; i < K * N; i++) b[i] = half_from_float((float)(i * 5 % 31 - 15) / 16);
    for (int i = 0; i < M * N; i++) {
        for (int k = 0; k < K; k++)
            y[i] +=
                (double)half_to_float(a[i / N * K + k]) * (double)half_to_float(b[k * N + i % N]);
    }
}

/* Describes how the model computes y = a b: the operator type and its two inputs. */
typedef struct problem {
    const char *op_type;
    struct {
        size_t rank;
        int64_t dims[4];
        const uint16_t *data;
    } in[2];
} problem;

static const problem product = {"MatMul", {{2, {M, K}, a}, {2, {K, N}, b}}};
/* as a 1x1 transposed convolution of an image of N x 1 pixels */
static const problem spreading = {"ConvTranspose",
                                  {{4, {1, K, N, 1}, b}, {4, {K, M, 1, 1}, a_transposed}}};

/* com.microsoft's operator, for which there is no reference: the projections of 19 tokens. Its y is
 * not a b. */
static const problem projections = {"Attention", {{3, {1, 19, 16}, a}, {2, {16, 48}, b}}};

static const char *const names[2] = {"first", "second"};

static clg_model *model_of(const problem *p)
{
    clg_builder *g;
    clg_model *m;
    assert_ok(clg_builder_create(13, &g));
    for (int i = 0; i < 2; i++)
        assert_ok(clg_builder_input(g, names[i], CLG_FLOAT16, p->in[i].rank, p->in[i].dims, NULL));
    assert_ok(clg_builder_node(g, p == &projections ? "com.microsoft" : NULL, p->op_type, "node", 2,
                               names, 1, (const char *[]){"y"}));
    if (p == &projections) assert_ok(clg_builder_attribute_int(g, "num_heads", 1));
    assert_ok(clg_builder_output(g, "y"));
    assert_ok(clg_builder_build(g, &m));
    clg_builder_free(g);
    return m;
}

static int n_passed, n_wrong;

static void listen(void *user, clg_log_level level, const char *message)
{
    (void)user;
    (void)level;
    const bool ours = strstr(message, "'gemm_matrix'") != NULL;
    n_passed += ours && strstr(message, "passed its self-test");
    n_wrong += ours && strstr(message, "gives wrong results");
}

static clg_context *open_context(clg_selftest selftest, bool with_unit)
{
    clg_context_options options = CLG_CONTEXT_OPTIONS_INIT;
    clg_context *context;
    options.profiling = true;
    options.cache_dir = "";
    options.selftest = selftest;
    assert_ok(clg_context_create(ocl_platforms_test_device(), &options, &context));
    if (with_unit) assert_ok(ocl_context_emulate_matrix(context->current->ocl));
    n_passed = n_wrong = 0;
    return context;
}

typedef struct answer {
    char impl[32], impls[64];
    double worst;
} answer;

static answer run(clg_context *context, const problem *p, const char *preferred)
{
    clg_session_options options = CLG_SESSION_OPTIONS_INIT;
    clg_model *model = model_of(p);
    clg_session *session;
    clg_step_profile *steps;
    clg_value *value;
    answer result = {.worst = 0};
    size_t n;
    options.kernels = CLG_KERNELS_SIMT;
    options.preferred_impls = &preferred;
    options.n_preferred_impls = preferred ? 1 : 0;
    assert_ok(clg_session_create(context, model, &options, &session));
    for (int i = 0; i < 2; i++)
        assert_ok(sized_input(session, names[i], CLG_FLOAT16, p->in[i].rank, p->in[i].dims,
                              p->in[i].data));
    assert_ok(clg_session_run(session));
    assert_ok(clg_session_get_output(session, "y", &value));
    for (int i = 0; i < M * N && p != &projections; i++)
        result.worst = fmax(result.worst, fabs(clg_value_get_double(value, i) - y[i]));
    clg_value_free(value);
    assert_ok(clg_session_profile(session, &steps, &n));
    assert_true(n > 0);
    (void)snprintf(result.impl, sizeof result.impl, "%s", steps[0].impl);
    (void)snprintf(result.impls, sizeof result.impls, "%s", steps[0].impls ? steps[0].impls : "");
    clg_session_profile_free(steps, n);
    clg_session_free(session);
    clg_model_free(model);
    return result;
}

#define RIGHT 0.02 /* tolerance for sums of at most 30, rounded to float16's 11 bits */

static void fault_is(const char *in, const char *from, const char *to)
{
    assert_int_equal(in ? setenv("CLG_WRONG_IN", in, 1) : unsetenv("CLG_WRONG_IN"), 0);
    assert_int_equal(from ? setenv("CLG_WRONG_FROM", from, 1) : unsetenv("CLG_WRONG_FROM"), 0);
    assert_int_equal(to ? setenv("CLG_WRONG_TO", to, 1) : unsetenv("CLG_WRONG_TO"), 0);
}

TEST(matrix__is_not_taken_unasked)
{
    fault_is(NULL, NULL, NULL);
    clg_context *without = open_context(CLG_SELFTEST_ON, false);
    assert_false(clg_context_device(without)->matrix);
    answer got = run(without, &product, "gemm_matrix");
    assert_string_equal(got.impl, "gemm_simt");
    assert_string_equal(got.impls, "gemm_simt gemm_simt_quads");
    clg_context_free(without);

    clg_context *with = open_context(CLG_SELFTEST_ON, true);
    assert_false(clg_context_device(with)->matrix); /* an emulated unit does not count */
    got = run(with, &product, NULL);
    assert_string_equal(got.impl, "gemm_simt");
    assert_string_equal(got.impls, "gemm_simt gemm_simt_quads gemm_matrix");
    assert_true(got.worst < RIGHT);
    clg_context_free(with);
}

TEST(matrix__is_taken_once_it_has_passed)
{
    fault_is(NULL, NULL, NULL);
    clg_context *context = open_context(CLG_SELFTEST_ON, true);
    const answer got = run(context, &product, "gemm_matrix");
    assert_string_equal(got.impl, "gemm_matrix");
    assert_true(got.worst < RIGHT);
    assert_int_equal(n_passed, 1);
    clg_context_free(context);
}

/* Where there is no self-test, the unit is used only if these are off. */
TEST(matrix__is_not_taken_without_a_test)
{
    fault_is(NULL, NULL, NULL);
    for (int on = 0; on < 2; on++) {
        clg_context *context = open_context(on ? CLG_SELFTEST_ON : CLG_SELFTEST_OFF, true);
        if (!on && driver_miscompiles_emulated_unit(clg_context_device(context))) {
            print_message("left out without self-tests: this driver miscompiles the unit\n");
            clg_context_free(context);
            continue;
        }
        const answer got = run(context, &projections, "gemm_matrix");
        assert_int_equal(strcmp(got.impl, "gemm_matrix") == 0, !on);
        assert_int_equal(n_passed + n_wrong, 0);
        clg_context_free(context);
    }
}

/* ConvTranspose is a GEMM and a scatter, which are tested together. */
TEST(matrix__is_tested_in_other_operators)
{
    fault_is(NULL, NULL, NULL);
    static const struct {
        clg_selftest selftest;
        int n_passed;
    } cases[] = {{CLG_SELFTEST_ON, 1}, {CLG_SELFTEST_OFF, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        clg_context *context = open_context(cases[i].selftest, true);
        if (driver_miscompiles_emulated_unit(clg_context_device(context))) {
            print_message("left out: this driver miscompiles the unit\n");
            clg_context_free(context);
            continue;
        }
        const answer got = run(context, &spreading, "gemm_matrix");
        assert_string_equal(got.impl, "gemm_matrix");
        if (!(got.worst < RIGHT)) fail_msg("by %s: off by %g", got.impl, got.worst);
        assert_int_equal(n_passed, cases[i].n_passed);
        assert_int_equal(n_wrong, 0);
        clg_context_free(context);
    }
}

/* Injects faults of a matrix unit: another layout of the fragments; and one product missing from
 * the sums of one row. */
TEST(matrix__a_wrong_unit_is_not_used)
{
    static const char *const faults[][2] = {
        {"(col * 4 + quad) * UNIT_B + right", "(col * 4 + quad) * UNIT_B + 1 - right"},
        {"for (int k = 0; k < UNIT_K; ++k) {", "for (int k = 0; k < UNIT_K - (row == 13); ++k) {"}};
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        fault_is("gemm_matrix", faults[i][0], faults[i][1]);
        clg_context *context = open_context(CLG_SELFTEST_ON, true);
        answer got = run(context, &product, "gemm_matrix");
        assert_string_equal(got.impl, "gemm_simt");
        assert_true(got.worst < RIGHT);
        assert_int_equal(n_wrong, 1);
        clg_context_free(context);

        context = open_context(CLG_SELFTEST_OFF, true);
        got = run(context, &product, "gemm_matrix");
        assert_string_equal(got.impl, "gemm_matrix");
        if (got.worst < RIGHT) fail_msg("fault %zu changes nothing: off by %g", i, got.worst);
        clg_context_free(context);
    }
}

static int begin(void **state)
{
    (void)state;
    unsetenv("CLG_SELFTEST");
    assert_int_equal(setenv("OPENCL_LAYERS", CLG_TEST_BUILD_DIR "/tests/layers/opencl_wrong.so", 1),
                     0);
    ocl_platforms_show_pocl();
    clg_set_log(listen, NULL, CLG_LOG_INFO);
    fill();
    return 0;
}

TEST_GROUP(begin, NULL)
