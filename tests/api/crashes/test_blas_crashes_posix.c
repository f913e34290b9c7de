/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests drivers whose compiler crashes, hangs, or takes all memory on CLBlast's kernels (simulated
 * by layers/opencl_crashing.c): CLBlast is first tried in a compile helper process, this process
 * survives, and clgraph's own kernels are used. Also tests that warm starts (with a filled cache)
 * start no helper, neither for CLBlast nor for kernels.
 */
/* ctest: timeout 1500 */
#include "support/fixtures/ocl_platforms.h"
#include "support/unit.h"

#include "support/fakes/crashing_driver.h"
#include "support/fakes/wrong_driver.h"
#include "support/literals.h"
#include "support/scratch.h"

#include <clgraph/inspect.h>

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Names in the source of CLBlast's programs: in that of both GEMMs, and only in that of the batched
 * one. */
#define ANY_GEMM "XgemmDirect"
#define BATCHED_GEMM "XgemmDirectStridedBatched"

/* Checks that a MatMul for which CLBlast is preferred is right, and whether CLBlast computed it. */
static void expect_gemm(clg_context *context, bool is_blas)
{
    wd_answer a;
    clg_model *m = wd_gemm();
    assert_ok(wd_run(context, m, CLG_KERNELS_SIMD, "blas", wd_gemms, &a));
    assert_true(a.worst <= WD_RIGHT);
    assert_int_equal(strcmp(a.impl, "blas") == 0, is_blas);
    clg_model_free(m);
}

/* Checks that a batch of two matrix products, [2,5,7] by [2,7,3], is right, and whether CLBlast
 * computed it. */
static void expect_batch(clg_context *context, bool is_blas)
{
    float x[2 * 5 * 7], w[2 * 7 * 3], y[2 * 5 * 3];
    char impl[WD_IMPL_BYTES];
    for (int i = 0; i < 70; i++) x[i] = (float)(i * 5 % 11 - 5);
    for (int i = 0; i < 42; i++) w[i] = (float)(i * 3 % 7 - 3);
    clg_model *m = wd_model("MatMul", 3, DIMS(2, 5, 7), DIMS(2, 7, 3), NULL, 1);
    const wd_input inputs[] = {{"x", 3, DIMS(2, 5, 7), x}, {"w", 3, DIMS(2, 7, 3), w}};
    assert_ok(wd_run_by(context, m, CLG_KERNELS_SIMD, "blas", inputs, 2, impl, y, 30));
    for (int i = 0; i < 30; i++) {
        float sum = 0;
        for (int k = 0; k < 7; k++) sum += x[i / 3 * 7 + k] * w[i / 15 * 21 + k * 3 + i % 3];
        assert_true(y[i] == sum);
    }
    assert_int_equal(strcmp(impl, "blas") == 0, is_blas);
    clg_model_free(m);
}

/* Returns the number of cache entries whose description contains a text. */
static size_t n_listed(const char *store, const char *text)
{
    clg_cache_entry *entries;
    size_t n, n_found = 0;
    assert_ok(clg_cache_list(scratch_path(store), &entries, &n));
    for (size_t i = 0; i < n; i++) n_found += strstr(entries[i].what, text) != NULL;
    clg_cache_list_free(entries, n);
    return n_found;
}

/* Makes the driver fail (by: abort, fault, exit, kill, ...) at "build" or "launch" of CLBlast's
 * kernels. Creates three contexts one after another, as three processes would: the first meets the
 * failure; the second avoids it if it is remembered in the cache; the third tries again, after the
 * record was removed. */
static void die_by(const char *at, const char *by, bool is_remembered)
{
    char store[64];
    size_t n_removed;
    (void)snprintf(store, sizeof store, "store %s %s", at, by);
    cd_limit_s = strcmp(by, "loop") == 0 ? 5 : 0;
    cd_dies(ANY_GEMM, at, by, NULL);
    clg_context *context = cd_context(store, NULL);
    expect_gemm(context, false);
    long n = cd_n_crashes();
    assert_true(n > 0);
    assert_true(cd_crash_lines > 0);
    assert_non_null(strstr(cd_last_line, "CLBlast's Sgemm"));
    assert_non_null(strstr(cd_last_line, "driver '"));
    expect_gemm(context, false);
    assert_int_equal(cd_n_crashes(), n); /* not tried again in this context */
    clg_context_free(context);
    assert_int_equal(n_listed(store, "compiler crash on CLBlast's Sgemm"), is_remembered);

    context = cd_context(store, NULL);
    expect_gemm(context, false);
    assert_int_equal(cd_n_crashes() == n, is_remembered);
    clg_context_free(context);

    n = cd_n_crashes();
    assert_ok(clg_cache_remove(scratch_path(store), "*: compiler crash*", &n_removed));
    assert_int_equal(n_removed > 0, is_remembered);
    cd_limit_s = 0;
    if (!is_remembered) return;
    context = cd_context(store, NULL);
    expect_gemm(context, false);
    assert_true(cd_n_crashes() > n);
    clg_context_free(context);
}

TEST(blas_crash__abort_in_launch) { die_by("launch", "abort", true); }
TEST(blas_crash__abort_in_build) { die_by("build", "abort", true); }
TEST(blas_crash__fault_in_build) { die_by("build", "fault", true); }
TEST(blas_crash__exit_in_launch) { die_by("launch", "exit", true); }
TEST(blas_crash__killed) { die_by("build", "kill", false); }
TEST(blas_crash__endless_loop) { die_by("build", "loop", false); }
TEST(blas_crash__all_memory) { die_by("build", "memory", false); }
TEST(blas_crash__error_in_build) { die_by("build", "error", false); }

TEST(blas_crash__once_is_not_enough)
{
    cd_dies(ANY_GEMM, "build", "abort", "1");
    clg_context *context = cd_context("once", NULL);
    expect_gemm(context, true);
    assert_true(cd_n_crashes() > 0);
    assert_int_equal(cd_crash_lines, 0);
    clg_context_free(context);
}

TEST(blas_crash__of_batches_alone)
{
    cd_dies(BATCHED_GEMM, "build", "abort", NULL);
    clg_context *context = cd_context("batches", NULL);
    expect_gemm(context, true);
    assert_int_equal(cd_n_crashes(), 0);
    expect_batch(context, false);
    assert_int_equal(cd_n_crashes(), 2);
    assert_non_null(strstr(cd_last_line, "CLBlast's SgemmStridedBatched"));
    expect_gemm(context, true);
    clg_context_free(context);
}

/* Without self-tests, the crash happens while a run is prepared. */
TEST(blas_crash__met_by_a_run)
{
    clg_context_options options = CLG_CONTEXT_OPTIONS_INIT;
    clg_context *context;
    cd_dies(ANY_GEMM, "launch", "abort", NULL);
    options.profiling = true;
    options.cache_dir = "";
    options.selftest = CLG_SELFTEST_OFF;
    assert_ok(clg_context_create(ocl_platforms_test_device(), &options, &context));
    expect_gemm(context, false);
    assert_int_equal(cd_n_crashes(), 2);
    expect_batch(context, false);
    clg_context_free(context);
}

TEST(blas_trial__without_a_helper)
{
    cd_dies(NULL, NULL, NULL, NULL);
    clg_context *context = cd_context("off", "off");
    expect_gemm(context, true);
    const int n = cd_here_lines;
    assert_true(n > 0);
    expect_gemm(context, true);
    assert_int_equal(cd_here_lines, n); /* logged once */
    clg_context_free(context);
}

TEST(blas_trial__warm_starts_start_no_helper)
{
    cd_dies(NULL, NULL, NULL, NULL);
    clg_context *context = cd_context("warm", NULL);
    expect_gemm(context, true);
    expect_batch(context, true);
    assert_true(cd_each_helper(getpid(), NULL) > 0);
    clg_context_free(context);
    assert_true(n_listed("warm", "CLBlast's Sgemm compiles") > 0);
    assert_true(n_listed("warm", "CLBlast's SgemmStridedBatched compiles") > 0);
    assert_int_equal(cd_each_helper(getpid(), NULL), 0);
    context = cd_context("warm", NULL);
    expect_gemm(context, true);
    expect_batch(context, true);
    assert_int_equal(cd_each_helper(getpid(), NULL), 0);
    clg_context_free(context);
}

/* Before each test: sets the default time limit for compiles, since CLBlast's programs take long
 * where PoCL's cache is empty. */
static int begin(void **state)
{
    cd_limit_s = 0;
    return cd_begin(state);
}

TEST_GROUP(begin, NULL)
