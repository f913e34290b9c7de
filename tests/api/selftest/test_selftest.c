/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests the self-tests that run before the first use of a kernel, under a driver that miscompiles a
 * kernel (support/fakes/wrong_driver.h). The wrong implementation must be detected, reported once
 * and not used; another one must compute the model correctly; the outcome must be cached beyond the
 * context's lifetime; and another driver version must be tested again. With self-tests disabled,
 * the same model's result is wrong.
 */
/* ctest: timeout 900 */
#include "support/unit.h"

#include "support/fakes/wrong_driver.h"
#include "support/literals.h"
#include "support/scratch.h"

#include <clgraph/inspect.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- driver faults --------------------------------------------------------------------------- */

/* In the Winograd kernel, elements after the last whole vector of a line are too large by one. */
static const wd_fault winograd = {"#define P_M 4\n", "r[c] = line[i + c];",
                                  "r[c] = line[i + c] + (float)(width - i < P_VEC);"};
/* One coefficient of the Winograd transforms is too large by 0.1 %. */
static const wd_fault imprecise = {"#define P_M 4\n", "m[0] += sum_a + sum_b;",
                                   "m[0] += sum_a + 1.001f * sum_b;"};
/* All tiled kernels of the SIMD class return twice the correct result. */
static const wd_fault everywhere = {"epilogue_finish", "v = alpha *", "v = 2 * alpha *"};
/* GEMMs of the SIMD class keep only the last block of k, where k exceeds 256. */
static const wd_fault deep = {"P_B_PACKED", "k0 == 0);", "k0 >= 0);"};
/* GEMMs of the SIMD class with m = 37 omit the last tile of rows. */
static const wd_fault of_37_rows = {"P_B_PACKED", "NR, tiles = (m + tile_m - 1) / tile_m;",
                                    "NR, tiles = (m + tile_m - 1) / tile_m - (m == 37);"};

/* ---- tests ----------------------------------------------------------------------------------- */

static void expect_right(clg_context *context, clg_model *model, const char *preferred,
                         bool is_used, wd_answer *out)
{
    assert_ok(wd_run(context, model, CLG_KERNELS_SIMD, preferred, wd_conv, out));
    if (out->worst > WD_RIGHT) fail_msg("by %s: off by %g", out->impl, out->worst);
    assert_int_equal(strcmp(out->impl, preferred) == 0, is_used);
}

TEST(selftest__a_sound_driver_passes)
{
    wd_answer a;
    wd_warnings = 0;
    wd_driver_is(&wd_no_fault, NULL);
    clg_context *context = wd_context("sound", CLG_SELFTEST_ON);
    clg_model *model = wd_convolution();
    expect_right(context, model, "winograd_4x4", true, &a);
    expect_right(context, model, "winograd_2x2", true, &a);
    expect_right(context, model, "conv_simd", true, &a);
    assert_int_equal(wd_warnings, 0);
    clg_model_free(model);
    clg_context_free(context);
}

/* Checks what the cache says of the context's device: some kernels passed, n_failed did not. */
static void expect_counts(const clg_context *context, const char *store, size_t n_failed)
{
    size_t passed = 9, failed = 9;
    const clg_device_info *device = clg_context_device(context);
    assert_ok(clg_device_selftests(device, scratch_path(store), &passed, &failed));
    assert_true(passed > 0);
    assert_int_equal(failed, n_failed);
    assert_ok(clg_device_selftests(device, scratch_path("nothing here"), &passed, &failed));
    assert_int_equal(passed + failed, 0);
    assert_ok(clg_device_selftests(device, "", &passed, &failed));
    assert_int_equal(passed + failed, 0);
    clg_device_info gone = *device;
    gone.selector = "99:0";
    assert_error(clg_device_selftests(&gone, NULL, &passed, &failed), CLG_ERROR_NO_DEVICE, "99:0");
    assert_error(clg_device_selftests(NULL, NULL, &passed, &failed), CLG_ERROR_INVALID_ARGUMENT,
                 "device");
    assert_error(clg_device_selftests(device, NULL, NULL, &failed), CLG_ERROR_INVALID_ARGUMENT,
                 "out_n_passed");
}

static void finds_and_keeps(const wd_fault *f, const char *store)
{
    clg_counters before = CLG_COUNTERS_INIT, after = CLG_COUNTERS_INIT;
    wd_answer a;
    wd_warnings = 0;
    wd_driver_is(f, NULL);
    clg_model *model = wd_convolution();
    clg_context *context = wd_context(store, CLG_SELFTEST_ON);
    expect_right(context, model, "winograd_4x4", false, &a);
    assert_int_equal(wd_warnings, 1);
    assert_non_null(strstr(wd_warning, "'winograd_4x4'"));
    assert_non_null(strstr(wd_warning, "winograd_simd"));
    assert_non_null(strstr(wd_warning, clg_context_device(context)->name));
    assert_non_null(strstr(wd_warning, clg_context_device(context)->driver));
    expect_right(context, model, "winograd_4x4", false, &a);
    expect_counts(context, store, 1);
    clg_context_free(context);

    context = wd_context(store, CLG_SELFTEST_ON); /* stands for another process */
    assert_ok(clg_context_counters(context, &before));
    expect_right(context, model, "winograd_4x4", false, &a);
    assert_ok(clg_context_counters(context, &after));
    assert_int_equal(after.programs_compiled, before.programs_compiled);
    assert_int_equal(after.kernels_launched - before.kernels_launched, 2); /* packing and run */
    assert_int_equal(wd_warnings, 1);
    clg_context_free(context);

    wd_driver_is(f, ".1");
    context = wd_context(store, CLG_SELFTEST_ON);
    expect_right(context, model, "winograd_4x4", false, &a);
    assert_int_equal(wd_warnings, 2); /* another driver is tested again */
    clg_context_free(context);

    wd_driver_is(&wd_no_fault, ".2");
    context = wd_context(store, CLG_SELFTEST_ON);
    expect_right(context, model, "winograd_4x4", true, &a);
    assert_int_equal(wd_warnings, 2); /* and may pass */
    expect_counts(context, store, 0);
    clg_context_free(context);

    wd_driver_is(f, NULL);
    context = wd_context(store, CLG_SELFTEST_OFF);
    assert_ok(wd_run(context, model, CLG_KERNELS_SIMD, "winograd_4x4", wd_conv, &a));
    assert_string_equal(a.impl, "winograd_4x4");
    if (!(a.worst > WD_RIGHT)) fail_msg("nothing is wrong without self-tests: off by %g", a.worst);
    assert_int_equal(wd_warnings, 2);
    clg_context_free(context);
    clg_model_free(model);
}

TEST(selftest__finds_a_ragged_corner) { finds_and_keeps(&winograd, "ragged"); }

TEST(selftest__finds_what_is_a_little_off) { finds_and_keeps(&imprecise, "imprecise"); }

TEST(selftest__no_implementation_left_is_an_error)
{
    wd_answer a;
    wd_warnings = 0;
    wd_driver_is(&everywhere, NULL);
    clg_context *context = wd_context("everywhere", CLG_SELFTEST_ON);
    clg_model *model = wd_convolution();
    assert_int_equal(wd_run(context, model, CLG_KERNELS_SIMD, "conv_simd", wd_conv, &a),
                     CLG_ERROR_UNSUPPORTED_DEVICE);
    assert_non_null(strstr(clg_last_error(), "every implementation of it gives wrong results"));
    assert_non_null(strstr(clg_last_error(), "'node'"));
    assert_true(wd_warnings >= 4); /* simpler kernels are tried, too */
    clg_context_free(context);
    wd_driver_is(&wd_no_fault, ".1"); /* a newer driver */
    context = wd_context("everywhere", CLG_SELFTEST_ON);
    expect_right(context, model, "conv_simd", true, &a);
    clg_model_free(model);
    clg_context_free(context);
}

/* Checks which implementation computes y = alpha x w, [m,k] by [k,n], of ones; does not check y. */
static void expect_impl(clg_context *context, float alpha, int64_t m, int64_t k, int64_t n,
                        const char *expected)
{
    float ones[64];
    char impl[WD_IMPL_BYTES];
    for (int i = 0; i < 64; i++) ones[i] = 1;
    clg_model *model = wd_model("Gemm", 2, DIMS(m, k), DIMS(k, n), ones, alpha);
    assert_ok(wd_run_by(context, model, CLG_KERNELS_SIMD, "gemm_simd",
                        &(wd_input){"x", 2, DIMS(m, k), ones}, 1, impl, NULL, 0));
    assert_string_equal(impl, expected);
    clg_model_free(model);
}

TEST(selftest__a_node_s_numbers_do_not_count)
{
    static const float alphas[] = {3e38f, 1e-38f, NAN};
    wd_driver_is(&wd_no_fault, ".4");
    wd_warnings = 0;
    for (size_t i = 0; i < sizeof alphas / sizeof *alphas; i++) {
        assert_ok(clg_cache_clear(scratch_path("numbers"), NULL));
        clg_context *context = wd_context("numbers", CLG_SELFTEST_ON);
        expect_impl(context, alphas[i], 7, 3, 5, "gemm_simd");
        clg_context_free(context);
    }
    assert_int_equal(wd_warnings, 0);
}

TEST(selftest__a_tiny_node_stands_for_large_ones)
{
    wd_driver_is(&deep, NULL);
    wd_warnings = 0;
    clg_context *context = wd_context("tiny", CLG_SELFTEST_ON);
    expect_impl(context, 1, 1, 4, 1, "blas");
    expect_impl(context, 1, 2, 4, 4, "blas"); /* narrower than any vector: the same kernel */
    assert_int_equal(wd_warnings, 1);
    expect_impl(context, 1, 1, 1, 64, "blas");
    assert_int_equal(wd_warnings, 2);
    clg_context_free(context);
}

/* ---- reports --------------------------------------------------------------------------------- */

static clg_status report(clg_context *context, size_t *out_passed, size_t *out_failed)
{
    clg_selftest_case *cases;
    size_t n;
    *out_passed = *out_failed = 0;
    CLG_TRY(clg_context_selftest(context, CLG_KERNELS_SIMD, false, NULL, NULL, &cases, &n));
    for (size_t i = 0; i < n; i++) {
        if (strcmp(cases[i].op_type, "MatMul") != 0 || !strstr(cases[i].problem, "[277,45]c"))
            continue;
        if (strcmp(cases[i].impl, "gemm_simd") == 0) ++*(cases[i].passed ? out_passed : out_failed);
    }
    clg_selftest_free(cases, n);
    return CLG_OK;
}

/* Two GEMMs use the same kernel variant, which computes the first of them wrongly. */
TEST(selftest__a_report_trusts_what_is_right_in_all_cases)
{
    size_t n_passed, n_failed;
    wd_answer a;
    wd_driver_is(&of_37_rows, NULL);
    clg_model *model = wd_gemm();
    for (int round = 0; round < 2; round++) { /* in this context, then in another, from the cache */
        clg_context *context = wd_context("report", CLG_SELFTEST_ON);
        if (round == 0) {
            assert_ok(report(context, &n_passed, &n_failed));
            assert_int_equal(n_passed, 1);
            assert_int_equal(n_failed, 1);
        }
        assert_ok(wd_run(context, model, CLG_KERNELS_SIMD, "gemm_simd", wd_gemms, &a));
        assert_string_equal(a.impl, "blas");
        clg_context_free(context);
    }
    clg_model_free(model);
}

static bool a_few(void *user, const char *what, size_t done, size_t total)
{
    (void)user;
    assert_string_equal(what, "testing kernels");
    assert_true(total > 10);
    return done < 3;
}

TEST(selftest__reports_can_be_cancelled_and_refused)
{
    clg_selftest_case *cases;
    size_t n;
    wd_driver_is(&wd_no_fault, NULL);
    clg_context *context = wd_context("cancelled", CLG_SELFTEST_ON);
    assert_error(clg_context_selftest(context, CLG_KERNELS_SIMD, false, a_few, NULL, &cases, &n),
                 CLG_ERROR_CANCELLED, "cancelled");
    assert_null(cases);
    assert_int_equal(n, 0);
    assert_error(clg_context_selftest(context, (clg_kernel_class)7, false, NULL, NULL, &cases, &n),
                 CLG_ERROR_INVALID_ARGUMENT, "no kernel class 7");
    assert_error(clg_context_selftest(NULL, CLG_KERNELS_SIMD, false, NULL, NULL, &cases, &n),
                 CLG_ERROR_INVALID_ARGUMENT, "context");
    assert_error(clg_context_selftest(context, CLG_KERNELS_SIMD, false, NULL, NULL, &cases, NULL),
                 CLG_ERROR_INVALID_ARGUMENT, "out_n_cases");
    clg_selftest_free(NULL, 0);
    clg_context_free(context);
}

TEST(selftest__the_environment_decides_where_code_does_not)
{
    static const struct {
        const char *word;
        clg_selftest given;
        bool tested;
    } cases[] = {{"off", CLG_SELFTEST_DEFAULT, false},
                 {"off", CLG_SELFTEST_ON, true},
                 {"on", CLG_SELFTEST_DEFAULT, true},
                 {NULL, CLG_SELFTEST_DEFAULT, true},
                 {"on", CLG_SELFTEST_OFF, false}};
    wd_answer a;
    clg_model *model = wd_convolution();
    wd_driver_is(&winograd, ".3");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        wd_set_or_clear("CLG_SELFTEST", cases[i].word);
        clg_context *context = wd_context("environment", cases[i].given);
        assert_ok(wd_run(context, model, CLG_KERNELS_SIMD, "winograd_4x4", wd_conv, &a));
        if ((strcmp(a.impl, "winograd_4x4") != 0) != cases[i].tested) fail_msg("case %zu", i);
        clg_context_free(context);
    }
    unsetenv("CLG_SELFTEST");
    clg_model_free(model);
}

TEST_GROUP(wd_begin, NULL)
