/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests the self-tests of CLBlast's GEMM kernels. CLBlast chooses among several and does not report
 * which; each must be tested before the first GEMM that may use it. The driver miscompiles one of
 * them (support/fakes/wrong_driver.h).
 */
/* ctest: timeout 900 */
#include "support/unit.h"

#include "support/fakes/wrong_driver.h"
#include "support/literals.h"

#include <clgraph/opencl.h>

#include <dlfcn.h>
#include <string.h>

/* ---- driver faults --------------------------------------------------------------------------- */

/* CLBlast's GEMMs whose sizes are no multiples of its tiles return 7 in the last row. */
static const wd_fault clblast = {
    "XgemmDirect", "if ((idm + _mi) < kSizeM && (idn + _ni) < kSizeN) {",
    "if ((idm + _mi) < kSizeM && (idn + _ni) < kSizeN) {\n"
    "    if ((idm + _mi) + 1 == kSizeM) {\n"
    "      cgm[((c_transpose) ? (idm + _mi)*c_ld + (idn + _ni) : (idn + _ni)*c_ld + (idm + _mi)) + "
    "c_offset] = 7;\n"
    "      return;\n"
    "    }\n"};

/* CLBlast's batched call for dense batches omits the second GEMM. */
static const wd_fault clblast_batches = {
    "XgemmDirectStridedBatchedNN", "const int c_offset_batch = c_offset + c_stride * batch;",
    "const int c_offset_batch = c_offset + c_stride * batch; if (batch == 1) return;"};

/* CLBlast's kernel for large GEMMs is wrong in every sixteenth line. */
static const wd_fault clblast_large = {
    "XgemmDirect", "realM xval = c_value;",
    "realM xval = c_value + (realM)(idn % 16 == 3 ? 1.0f : 0.0f);"};

/* ---- tests ----------------------------------------------------------------------------------- */

TEST(selftest__finds_clblast_wrong)
{
    wd_answer a;
    wd_warnings = 0;
    wd_driver_is(&clblast, NULL);
    clg_model *model = wd_gemm();
    clg_context *context = wd_context("clblast", CLG_SELFTEST_ON);
    assert_ok(wd_run(context, model, CLG_KERNELS_SIMT, "blas", wd_gemms, &a));
    assert_string_equal(a.impl, "gemm_simt");
    if (a.worst > WD_RIGHT) fail_msg("off by %g", a.worst);
    assert_int_equal(wd_warnings, 1);
    assert_non_null(strstr(wd_warning, "CLBlast"));
    clg_context_free(context);
    context = wd_context("clblast", CLG_SELFTEST_OFF);
    assert_ok(wd_run(context, model, CLG_KERNELS_SIMT, "blas", wd_gemms, &a));
    assert_string_equal(a.impl, "blas");
    if (!(a.worst > WD_RIGHT)) fail_msg("nothing is wrong without self-tests: off by %g", a.worst);
    clg_context_free(context);
    clg_model_free(model);
}

enum { LARGE_FROM = 256, LARGE_SHARE = 4100 * 64 };

/* Lowers the size from which CLBlast uses its kernel for large GEMMs: with CLBlast's parameters for
 * CPUs, a GEMM above the original threshold would take seconds on PoCL. */
static void lower_clblast_s_threshold(clg_context *context)
{
    int (*override)(cl_device_id, const char *, int, size_t, const char **, const size_t *);
    const char *names[] = {"XGEMM_MIN_INDIRECT_SIZE"};
    const size_t values[] = {LARGE_FROM};
    void *library = dlopen("libclblast.so.1", RTLD_NOW);
    if (!library) {
        fail_msg("%s", dlerror());
        return;
    }
    void *address = dlsym(library, "CLBlastOverrideParameters");
    assert_non_null(address);
    memcpy(&override, &address, sizeof address);
    assert_int_equal(
        override(clg_context_opencl_device(context), "GemmRoutine", 32, 1, names, values), 0);
    assert_int_equal(dlclose(library), 0);
}

/* Returns the largest error of y = a b, [m,k] by [k,n], computed by CLBlast where it is used. */
static double run_large(clg_context *context, int m, int k, int n, char impl[WD_IMPL_BYTES])
{
    static float a[LARGE_SHARE], b[LARGE_SHARE], y[LARGE_SHARE];
    static double expected[LARGE_SHARE];
    for (int i = 0; i < m * k; i++) a[i] = (float)(i * 5 % 31 - 15) / 16;
    for (int i = 0; i < k * n; i++) b[i] = (float)(i * 7 % 23 - 11) / 64;
    memset(expected, 0, sizeof expected);
    for (int i = 0; i < m * k; i++)
        for (int j = 0; j < n; j++)
            expected[i / k * n + j] += (double)a[i] * (double)b[i % k * n + j];
    clg_model *model = wd_model("MatMul", 2, DIMS(m, k), DIMS(k, n), b, 1);
    assert_ok(wd_run_by(context, model, CLG_KERNELS_SIMT, "blas",
                        &(wd_input){"x", 2, DIMS(m, k), a}, 1, impl, y, (size_t)(m * n)));
    clg_model_free(model);
    return wd_worst_of(y, expected, (size_t)(m * n));
}

/* CLBlast switches to other kernels for large GEMMs, from a size that it does not report. */
TEST(selftest__finds_clblast_wrong_where_it_is_large)
{
    wd_answer a;
    char impl[WD_IMPL_BYTES];
    wd_warnings = 0;
    wd_driver_is(&clblast_large, NULL);
    clg_model *model = wd_gemm();
    clg_context *context = wd_context("large", CLG_SELFTEST_OFF);
    lower_clblast_s_threshold(context);
    if (!(run_large(context, 320, 320, 320, impl) > 0.5))
        fail_msg("nothing is wrong without self-tests");
    assert_string_equal(impl, "blas");
    if (!(run_large(context, 4100, 64, 64, impl) > 0.5)) fail_msg("long sides are not large");
    assert_string_equal(impl, "blas");
    clg_context_free(context);
    context = wd_context("large", CLG_SELFTEST_ON);
    lower_clblast_s_threshold(context);
    assert_ok(wd_run(context, model, CLG_KERNELS_SIMT, "blas", wd_gemms, &a));
    assert_string_equal(a.impl, "blas"); /* the other kernel is right */
    assert_true(a.worst < WD_RIGHT);
    assert_int_equal(wd_warnings, 0);
    assert_true(run_large(context, 320, 320, 320, impl) < 0.01);
    assert_string_equal(impl, "gemm_simt");
    assert_int_equal(wd_warnings, 1);
    /* Elongated shapes are tested as a separate class. */
    assert_true(run_large(context, 4100, 64, 64, impl) < 0.01);
    assert_string_equal(impl, "gemm_simt");
    assert_int_equal(wd_warnings, 2);
    clg_model_free(model);
    clg_context_free(context);
}

/* Returns whether CLBlast computes y = x w, where x and w are inputs of rank 3, not constants. */
static bool is_by_clblast(clg_context *context, const int64_t *x_dims, const int64_t *w_dims)
{
    const wd_input both[] = {{"x", 3, x_dims, wd_x}, {"w", 3, w_dims, wd_x}};
    char impl[WD_IMPL_BYTES];
    clg_model *model = wd_model("MatMul", 3, x_dims, w_dims, NULL, 1);
    assert_ok(wd_run_by(context, model, CLG_KERNELS_SIMT, "blas", both, 2, impl, NULL, 0));
    clg_model_free(model);
    return strcmp(impl, "blas") == 0;
}

TEST(selftest__separates_batches_in_one_call_from_a_call_for_each)
{
    wd_driver_is(&clblast_batches, NULL);
    wd_warnings = 0;
    clg_context *context = wd_context("batches", CLG_SELFTEST_ON);
    /* The batches share x, so that CLBlast is called for each of them. */
    assert_true(is_by_clblast(context, DIMS(1, 7, 5), DIMS(3, 5, 9)));
    assert_int_equal(wd_warnings, 0);
    assert_false(is_by_clblast(context, DIMS(3, 7, 5), DIMS(3, 5, 9)));
    assert_int_equal(wd_warnings, 1);
    assert_true(is_by_clblast(context, DIMS(1, 7, 5), DIMS(3, 5, 9)));
    clg_context_free(context);
}

TEST_GROUP(wd_begin, NULL)
