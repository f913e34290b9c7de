/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests drivers that reject kernels (support/fakes/wrong_driver.h), because the compiler fails or
 * the device lacks registers for the work-items of a group. Another implementation of the node must
 * be used; work-groups must shrink where the kernel allows it; and where no implementation remains,
 * the error must name the kernel. Rejections are not recorded: the next process tries again.
 */
/* ctest: timeout 900 */
#include "support/fixtures/sized_data.h"
#include "support/unit.h"

#include "support/fakes/wrong_driver.h"
#include "support/fixtures/build_session.h"
#include "support/literals.h"

#include <clgraph/inspect.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#define REFUSE "#error \"not with me\"\n__kernel"

static const wd_fault winograd = {"#define P_M 4\n", "__kernel", REFUSE};
static const wd_fault gemm_simt = {"void gemm_simt(", "__kernel", REFUSE};

static int n_refusals;
static char refusal[1024];

static void listen(void *user, clg_log_level level, const char *message)
{
    (void)user;
    if (level > CLG_LOG_WARNING || !strstr(message, "is not used on")) return;
    n_refusals++;
    (void)snprintf(refusal, sizeof refusal, "%s", message);
}

static void expect_conv(clg_context *context, clg_model *m, bool is_winograd)
{
    wd_answer a;
    assert_ok(wd_run(context, m, CLG_KERNELS_SIMD, "winograd_4x4", wd_conv, &a));
    assert_true(a.worst <= WD_RIGHT);
    assert_int_equal(strcmp(a.impl, "winograd_4x4") == 0, is_winograd);
}

TEST(refused__another_implementation_serves)
{
    n_refusals = 0;
    wd_driver_is(&winograd, NULL);
    clg_model *m = wd_convolution();
    for (int process = 1; process <= 2; process++) {
        clg_context *context = wd_context("refused", CLG_SELFTEST_ON);
        expect_conv(context, m, false);
        expect_conv(context, m, false); /* the rejected kernel is not tried again */
        assert_int_equal(n_refusals, process);
        assert_non_null(strstr(refusal, "'winograd_4x4'"));
        assert_non_null(strstr(refusal, "not with me"));
        clg_context_free(context);
    }
    wd_driver_is(&wd_no_fault, NULL); /* the same driver without the fault */
    clg_context *context = wd_context("refused", CLG_SELFTEST_ON);
    expect_conv(context, m, true);
    assert_int_equal(n_refusals, 2);
    clg_context_free(context);
    clg_model_free(m);
}

/* Checks y = Einsum("mk,kn->mn", x, w), which has no reference implementation for a self-test. */
TEST(refused__without_a_self_test_too)
{
    static const float x[6] = {1, 2, 3, 4, 5, 6}, w[12] = {1, 0, 2, 0, 0, 1, 0, 2, 1, 1, 1, 1};
    static const float want[8] = {4, 5, 5, 7, 10, 11, 14, 16};
    clg_session_options options = CLG_SESSION_OPTIONS_INIT;
    float y[8];
    n_refusals = 0;
    wd_driver_is(&gemm_simt, NULL);
    clg_context *context = wd_context("einsum", CLG_SELFTEST_ON);
    options.kernels = CLG_KERNELS_SIMT;
    options.preferred_impls = NAMES("einsum");
    options.n_preferred_impls = 1;
    clg_builder *g = start_graph();
    assert_ok(clg_builder_input(g, "x", CLG_FLOAT32, 2, DIMS(2, 3), NULL));
    assert_ok(sized_constant(g, "w", CLG_FLOAT32, 2, DIMS(3, 4), w));
    assert_ok(clg_builder_node(g, NULL, "Einsum", "sums", 2, NAMES("x", "w"), 1, NAMES("y")));
    assert_ok(clg_builder_attribute_string(g, "equation", "mk,kn->mn"));
    assert_ok(clg_builder_output(g, "y"));
    clg_session *s = build_session(context, g, &options);
    assert_ok(sized_input(s, "x", CLG_FLOAT32, 2, DIMS(2, 3), x));
    assert_ok(clg_session_run(s));
    assert_ok(clg_session_get_output_data(s, "y", y, sizeof y));
    for (int i = 0; i < 8; i++) assert_true(y[i] == want[i]);
    assert_int_equal(n_refusals, 1);
    assert_non_null(strstr(refusal, "'einsum'"));
    clg_session_free(s);
    clg_context_free(context);
}

/* ---- few registers --------------------------------------------------------------------------- */

static clg_session *unary(clg_context *context, const char *op_type)
{
    clg_session_options options = CLG_SESSION_OPTIONS_INIT;
    clg_builder *g = start_graph();
    options.kernels = CLG_KERNELS_SIMT;
    assert_ok(clg_builder_input(g, "x", CLG_FLOAT32, 2, DIMS(-1, -1), NULL));
    assert_ok(clg_builder_node(g, NULL, op_type, "node", 1, NAMES("x"), 1, NAMES("y")));
    assert_ok(clg_builder_output(g, "y"));
    return build_session(context, g, &options);
}

TEST(refused__groups_shrink)
{
    static float x[700], y[700];
    wd_driver_is(&wd_no_fault, NULL);
    clg_context *context = wd_context("shrink", CLG_SELFTEST_ON);
    clg_session *s = unary(context, "Neg");
    for (int i = 0; i < 700; i++) x[i] = (float)i;
    for (int max = 1; max <= 64; max *= 4) {
        char number[16];
        (void)snprintf(number, sizeof number, "%d", max);
        wd_set_or_clear("CLG_KERNEL_ITEMS", number);
        assert_ok(sized_input(s, "x", CLG_FLOAT32, 2, DIMS(7, 96 + max % 5), x));
        assert_ok(clg_session_run(s));
        assert_ok(clg_session_get_output_data(s, "y", y, (size_t)(7 * (96 + max % 5)) * 4));
        for (int i = 0; i < 7 * (96 + max % 5); i++) assert_true(y[i] == -x[i]);
    }
    wd_set_or_clear("CLG_KERNEL_ITEMS", NULL);
    clg_session_free(s);
    clg_context_free(context);
}

TEST(refused__groups_that_cannot_shrink)
{
    static const float x[256];
    float y[256];
    wd_answer a;
    n_refusals = 0;
    wd_driver_is(&wd_no_fault, NULL);
    wd_set_or_clear("CLG_KERNEL_ITEMS", "128");
    clg_context *context = wd_context("registers", CLG_SELFTEST_ON);
    clg_model *m = wd_gemm();
    assert_ok(wd_run(context, m, CLG_KERNELS_SIMT, "gemm_simt", wd_gemms, &a));
    assert_string_equal(a.impl, "blas"); /* CLBlast's groups have 64 work-items */
    assert_true(a.worst <= WD_RIGHT);
    assert_int_equal(n_refusals, 1);
    assert_non_null(strstr(refusal, "in groups of 16 x 16 x 1"));
    wd_set_or_clear("CLG_KERNEL_ITEMS", "4");
    /* a work-group for each row, or kernels of the SIMD class */
    clg_session *s = unary(context, "Softmax");
    assert_ok(sized_input(s, "x", CLG_FLOAT32, 2, DIMS(1, 256), x));
    assert_ok(clg_session_run(s));
    assert_ok(clg_session_get_output_data(s, "y", y, sizeof y));
    for (int i = 0; i < 256; i++) assert_true(fabsf(y[i] - 1.0f / 256) < 1e-7f);
    assert_true(n_refusals >= 2);
    assert_non_null(strstr(refusal, "CL_INVALID_WORK_GROUP_SIZE"));
    wd_set_or_clear("CLG_KERNEL_ITEMS", NULL);
    clg_session_free(s);
    clg_model_free(m);
    clg_context_free(context);
}

/* Runs GEMMs in smaller work-groups than usual, down to one work-item. */
TEST(refused__smaller_groups_serve)
{
    static const struct {
        const char *store, *items, *preferred, *impl;
        int refusals;
    } cases[] = {{"groups", NULL, "gemm_simt_small", "gemm_simt_small", 0},
                 {"groups", NULL, "gemm_simt_alone", "gemm_simt_alone", 0},
                 {"few", "32", "blas", "gemm_simt_alone", 4}}; /* CLBlast, 16 x 16 twice, 8 x 8 */
    wd_answer a;
    wd_driver_is(&wd_no_fault, NULL);
    clg_model *m = wd_gemm();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        n_refusals = 0;
        wd_set_or_clear("CLG_KERNEL_ITEMS", cases[i].items);
        clg_context *context = wd_context(cases[i].store, CLG_SELFTEST_ON);
        assert_ok(wd_run(context, m, CLG_KERNELS_SIMT, cases[i].preferred, wd_gemms, &a));
        assert_string_equal(a.impl, cases[i].impl);
        assert_true(a.worst <= WD_RIGHT);
        assert_int_equal(n_refusals, cases[i].refusals);
        clg_context_free(context);
    }
    wd_set_or_clear("CLG_KERNEL_ITEMS", NULL);
    clg_model_free(m);
}

static int begin(void **state)
{
    const int result = wd_begin(state);
    clg_set_log(listen, NULL, CLG_LOG_WARNING);
    return result;
}

TEST_GROUP(begin, NULL)
