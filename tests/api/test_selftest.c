/* SPDX-License-Identifier: Apache-2.0
 *
 * Self-tests of kernels before their first use, behind a driver that miscompiles one of them (layers/opencl_wrong.c): the
 * wrong way is found, told of once and not used, the model's answer is right by another one, the verdict outlives the
 * context, and another driver version is tested anew. Without self-tests the same model's answer is wrong.
 */
/* ctest: timeout 900 */
#include "support/unit.h"

#include "support/ocl_platforms.h"
#include "support/scratch.h"

#include <clgraph/inspect.h>
#include <clgraph/opencl.h>

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAMES(...) ((const char *const[]){__VA_ARGS__})
#define DIMS(...) ((const int64_t[]){__VA_ARGS__})

/* Ragged in every direction for tiles of 16 channels and 4x4 pixels. */
enum { CHANNELS = 21, SIDE = 23, PIXELS = SIDE * SIDE, N = CHANNELS * PIXELS };

static float weights[CHANNELS * CHANNELS * 9], x[N];
static double expected_conv[N], expected_product[N];

/* ---- what drivers do wrong --------------------------------------------------------------------------- */

typedef struct fault {
    const char *in, *from, *to;
} fault;

static const fault none = {NULL, NULL, NULL};
/* What is left of a line behind its last whole vector is one too large. */
static const fault winograd = {"#define P_M 4\n", "r[c] = line[i + c];",
                               "r[c] = line[i + c] + (float)(width - i < P_VEC);"};
/* A coefficient of the transforms is a little off. */
static const fault imprecise = {"#define P_M 4\n", "m[0] += sum_a + sum_b;",
                                "m[0] += sum_a + 1.001f * sum_b;"};
/* All tiled kernels of the wide class give twice as much. */
static const fault everywhere = {"finish_row", "v = alpha *", "v = 2 * alpha *"};
/* Of a sum of more than 256 terms, the wide class's products keep the last block alone. */
static const fault deep = {"gemm_pack_b", "k0 == 0);", "k0 >= 0);"};
/* The last tile of the wide class's products is missing, of those with 37 rows. */
static const fault of_37_rows = {"gemm_pack_b", "const int tiles = (m + tile_m - 1) / tile_m;",
                                 "const int tiles = (m + tile_m - 1) / tile_m - (m == 37);"};
/* The last row of CLBlast's ragged products is all sevens. */
static const fault clblast = {
    "XgemmDirect", "if ((idm + _mi) < kSizeM && (idn + _ni) < kSizeN) {",
    "if ((idm + _mi) < kSizeM && (idn + _ni) < kSizeN) {\n"
    "    if ((idm + _mi) + 1 == kSizeM) {\n"
    "      cgm[((c_transpose) ? (idm + _mi)*c_ld + (idn + _ni) : (idn + _ni)*c_ld + (idm + _mi)) + "
    "c_offset] = 7;\n"
    "      return;\n"
    "    }\n"};

/* What CLBlast takes for dense batches in one call leaves the second product out. */
static const fault clblast_batches = {
    "XgemmDirectStridedBatchedNN", "const int c_offset_batch = c_offset + c_stride * batch;",
    "const int c_offset_batch = c_offset + c_stride * batch; if (batch == 1) return;"};

/* The kernel that CLBlast takes for large products alone is off in every sixteenth line. */
static const fault clblast_large = {"XgemmDirect", "realM xval = c_value;",
                                    "realM xval = c_value + (realM)(idn % 16 == 3 ? 1.0f : 0.0f);"};

static void set_or_clear(const char *name, const char *value)
{
    assert_int_equal(value ? setenv(name, value, 1) : unsetenv(name), 0);
}

static void driver_is(const fault *f, const char *version)
{
    set_or_clear("CLG_WRONG_IN", f->in);
    set_or_clear("CLG_WRONG_FROM", f->from);
    set_or_clear("CLG_WRONG_TO", f->to);
    set_or_clear("CLG_WRONG_DRIVER", version);
}

/* ---- the log ----------------------------------------------------------------------------------------------- */

static int n_warnings;
static char warning[1024];

static void listen(void *user, clg_log_level level, const char *message)
{
    (void)user;
    if (level > CLG_LOG_WARNING || !strstr(message, "gives wrong results")) return;
    n_warnings++;
    (void)snprintf(warning, sizeof warning, "%s", message);
}

/* ---- the models -------------------------------------------------------------------------------------------- */

/* w NULL: an input. alpha is for Gemm. */
static clg_model *model_of(const char *op_type, size_t rank, const int64_t *x_dims,
                           const int64_t *w_dims, const float *w, float alpha)
{
    clg_builder *g;
    clg_model *m;
    assert_ok(clg_builder_create(13, &g));
    assert_ok(clg_builder_input(g, "x", CLG_FLOAT32, rank, x_dims, NULL));
    if (w)
        assert_ok(clg_builder_constant(g, "w", CLG_FLOAT32, rank, w_dims, w));
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

/* y = Conv(x, w), 3x3 with padding. */
static clg_model *convolution(void)
{
    return model_of("Conv", 4, DIMS(1, CHANNELS, SIDE, SIDE), DIMS(CHANNELS, CHANNELS, 3, 3),
                    weights, 1);
}

/* y = x w: [529,21] by [21,21]. */
static clg_model *product(void)
{
    return model_of("MatMul", 2, DIMS(PIXELS, CHANNELS), DIMS(CHANNELS, CHANNELS), weights, 1);
}

static double tap(int channel, int row, int col, const float *w)
{
    double sum = 0;
    for (int k = 0; k < 9; k++) {
        const int r = row + k / 3 - 1, c = col + k % 3 - 1;
        if (r >= 0 && r < SIDE && c >= 0 && c < SIDE)
            sum += (double)w[k] * (double)x[(channel * SIDE + r) * SIDE + c];
    }
    return sum;
}

static void expect(void)
{
    for (int i = 0; i < (int)(sizeof weights / sizeof *weights); i++)
        weights[i] = (float)(i * 7 % 23 - 11) / 64;
    for (int i = 0; i < N; i++) x[i] = (float)(i * 5 % 31 - 15) / 16;
    for (int i = 0; i < N; i++) {
        const int o = i / PIXELS, row = i % PIXELS / SIDE, col = i % SIDE;
        for (int c = 0; c < CHANNELS; c++)
            expected_conv[i] += tap(c, row, col, weights + (o * CHANNELS + c) * 9);
        for (int c = 0; c < CHANNELS; c++)
            expected_product[i] += (double)x[i / CHANNELS * CHANNELS + c] *
                                   (double)weights[c * CHANNELS + i % CHANNELS];
    }
}

/* ---- running --------------------------------------------------------------------------------------------------- */

static clg_context *open_context(const char *store, clg_selftest selftest)
{
    clg_context_options options = CLG_CONTEXT_OPTIONS_INIT;
    clg_context *context;
    options.profiling = true;
    options.cache_dir = scratch_path(store);
    options.selftest = selftest;
    assert_ok(clg_context_create("pocl", &options, &context));
    return context;
}

typedef struct given {
    const char *name;
    size_t rank;
    const int64_t *dims;
    const float *data;
} given;

#define WAY_BYTES 64

/* Runs the model by a way, if it is used, and tells which was; its first n_y numbers of "y". */
static clg_status run_by(clg_context *context, clg_model *model, clg_kernel_class kernels,
                         const char *preferred, const given *inputs, size_t n_inputs,
                         char way[WAY_BYTES], float *y, size_t n_y)
{
    clg_session_options options = CLG_SESSION_OPTIONS_INIT;
    clg_session *session;
    clg_step_profile *steps;
    clg_value *value;
    size_t n;
    options.kernels = kernels;
    options.preferred_ways = &preferred;
    options.n_preferred_ways = 1;
    assert_ok(clg_session_create(context, model, &options, &session));
    for (size_t i = 0; i < n_inputs; i++)
        assert_ok(clg_session_set_input_data(session, inputs[i].name, CLG_FLOAT32, inputs[i].rank,
                                             inputs[i].dims, inputs[i].data));
    const clg_status status = clg_session_run(session);
    if (status == CLG_OK) {
        assert_ok(clg_session_get_output(session, "y", &value));
        if (n_y) memcpy(y, clg_value_data(value), n_y * sizeof *y);
        clg_value_free(value);
        assert_ok(clg_session_profile(session, &steps, &n));
        assert_true(n > 0);
        (void)snprintf(way, WAY_BYTES, "%s", steps[n - 1].way);
        clg_session_profile_free(steps, n);
    }
    clg_session_free(session);
    return status;
}

static double worst_of(const float *y, const double *expected, size_t n)
{
    double worst = 0;
    for (size_t i = 0; i < n; i++) worst = fmax(worst, fabs((double)y[i] - expected[i]));
    return worst;
}

typedef struct answer {
    char way[WAY_BYTES];
    double worst;
} answer;

/* The model by a way, if it is used, and how far the result is from what it should be. */
static clg_status run(clg_context *context, clg_model *model, clg_kernel_class kernels,
                      const char *preferred, const double *expected, answer *out)
{
    static float y[N];
    const given image = {"x", 4, DIMS(1, CHANNELS, SIDE, SIDE), x},
                matrix = {"x", 2, DIMS(PIXELS, CHANNELS), x};
    const clg_status status =
        run_by(context, model, kernels, preferred, expected == expected_conv ? &image : &matrix, 1,
               out->way, y, N);
    if (status == CLG_OK) out->worst = worst_of(y, expected, N);
    return status;
}

#define RIGHT 1e-4 /* sums of about 5, by Winograd's rounding too */

static void expect_right(clg_context *context, clg_model *model, const char *preferred,
                         bool is_used, answer *out)
{
    assert_ok(run(context, model, CLG_KERNELS_WIDE, preferred, expected_conv, out));
    if (out->worst > RIGHT) fail_msg("by %s: off by %g", out->way, out->worst);
    assert_int_equal(strcmp(out->way, preferred) == 0, is_used);
}

/* ---- tests ----------------------------------------------------------------------------------------------------- */

static void selftest__a_sound_driver_passes(void **state)
{
    (void)state;
    answer a;
    n_warnings = 0;
    driver_is(&none, NULL);
    clg_context *context = open_context("sound", CLG_SELFTEST_ON);
    clg_model *model = convolution();
    expect_right(context, model, "winograd_4x4", true, &a);
    expect_right(context, model, "winograd_2x2", true, &a);
    expect_right(context, model, "conv_wide", true, &a);
    assert_int_equal(n_warnings, 0);
    clg_model_free(model);
    clg_context_free(context);
}

static void finds_and_keeps(const fault *f, const char *store)
{
    clg_counters before = CLG_COUNTERS_INIT, after = CLG_COUNTERS_INIT;
    answer a;
    n_warnings = 0;
    driver_is(f, NULL);
    clg_model *model = convolution();
    clg_context *context = open_context(store, CLG_SELFTEST_ON);
    expect_right(context, model, "winograd_4x4", false, &a);
    assert_int_equal(n_warnings, 1);
    assert_non_null(strstr(warning, "'winograd_4x4'"));
    assert_non_null(strstr(warning, "winograd_wide"));
    assert_non_null(strstr(warning, clg_context_device(context)->name));
    assert_non_null(strstr(warning, clg_context_device(context)->driver));
    expect_right(context, model, "winograd_4x4", false, &a);
    clg_context_free(context);

    context = open_context(store, CLG_SELFTEST_ON); /* of another process, for all it knows */
    assert_ok(clg_context_counters(context, &before));
    expect_right(context, model, "winograd_4x4", false, &a);
    assert_ok(clg_context_counters(context, &after));
    assert_int_equal(after.programs_compiled, before.programs_compiled);
    assert_int_equal(after.kernels_launched - before.kernels_launched, 2); /* packing and run */
    assert_int_equal(n_warnings, 1);
    clg_context_free(context);

    driver_is(f, ".1");
    context = open_context(store, CLG_SELFTEST_ON);
    expect_right(context, model, "winograd_4x4", false, &a);
    assert_int_equal(n_warnings, 2); /* another driver is tested anew */
    clg_context_free(context);

    driver_is(&none, ".2");
    context = open_context(store, CLG_SELFTEST_ON);
    expect_right(context, model, "winograd_4x4", true, &a);
    assert_int_equal(n_warnings, 2); /* and may be right again */
    clg_context_free(context);

    driver_is(f, NULL);
    context = open_context(store, CLG_SELFTEST_OFF);
    assert_ok(run(context, model, CLG_KERNELS_WIDE, "winograd_4x4", expected_conv, &a));
    assert_string_equal(a.way, "winograd_4x4");
    if (!(a.worst > RIGHT)) fail_msg("nothing is wrong without self-tests: off by %g", a.worst);
    assert_int_equal(n_warnings, 2);
    clg_context_free(context);
    clg_model_free(model);
}

static void selftest__finds_a_ragged_corner(void **state)
{
    (void)state;
    finds_and_keeps(&winograd, "ragged");
}

static void selftest__finds_what_is_a_little_off(void **state)
{
    (void)state;
    finds_and_keeps(&imprecise, "imprecise");
}

static void selftest__no_way_left_is_an_error(void **state)
{
    (void)state;
    answer a;
    n_warnings = 0;
    driver_is(&everywhere, NULL);
    clg_context *context = open_context("everywhere", CLG_SELFTEST_ON);
    clg_model *model = convolution();
    assert_int_equal(run(context, model, CLG_KERNELS_WIDE, "conv_wide", expected_conv, &a),
                     CLG_ERROR_UNSUPPORTED_DEVICE);
    assert_non_null(strstr(clg_last_error(), "every way to compute it gives wrong results"));
    assert_non_null(strstr(clg_last_error(), "'node'"));
    assert_int_equal(n_warnings, 3);
    clg_context_free(context);
    driver_is(&none, ".1"); /* a newer driver */
    context = open_context("everywhere", CLG_SELFTEST_ON);
    expect_right(context, model, "conv_wide", true, &a);
    clg_model_free(model);
    clg_context_free(context);
}

static void selftest__finds_clblast_wrong(void **state)
{
    (void)state;
    answer a;
    n_warnings = 0;
    driver_is(&clblast, NULL);
    clg_model *model = product();
    clg_context *context = open_context("clblast", CLG_SELFTEST_ON);
    assert_ok(run(context, model, CLG_KERNELS_SIMT, "blas", expected_product, &a));
    assert_string_equal(a.way, "gemm_simt");
    if (a.worst > RIGHT) fail_msg("off by %g", a.worst);
    assert_int_equal(n_warnings, 1);
    assert_non_null(strstr(warning, "CLBlast"));
    clg_context_free(context);
    context = open_context("clblast", CLG_SELFTEST_OFF);
    assert_ok(run(context, model, CLG_KERNELS_SIMT, "blas", expected_product, &a));
    assert_string_equal(a.way, "blas");
    if (!(a.worst > RIGHT)) fail_msg("nothing is wrong without self-tests: off by %g", a.worst);
    clg_context_free(context);
    clg_model_free(model);
}

enum { LARGE_FROM = 256, MOST_OF_LARGE = 4100 * 64 };

/* CLBlast's parameters for CPUs put "large" where PoCL takes seconds for a product. */
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

/* The largest error of y = a b, [m,k] by [k,n], with CLBlast where it is used. */
static double run_large(clg_context *context, int m, int k, int n, char way[WAY_BYTES])
{
    static float a[MOST_OF_LARGE], b[MOST_OF_LARGE], y[MOST_OF_LARGE];
    static double expected[MOST_OF_LARGE];
    for (int i = 0; i < m * k; i++) a[i] = (float)(i * 5 % 31 - 15) / 16;
    for (int i = 0; i < k * n; i++) b[i] = (float)(i * 7 % 23 - 11) / 64;
    memset(expected, 0, sizeof expected);
    for (int i = 0; i < m * k; i++)
        for (int j = 0; j < n; j++)
            expected[i / k * n + j] += (double)a[i] * (double)b[i % k * n + j];
    clg_model *model = model_of("MatMul", 2, DIMS(m, k), DIMS(k, n), b, 1);
    assert_ok(run_by(context, model, CLG_KERNELS_SIMT, "blas", &(given){"x", 2, DIMS(m, k), a}, 1,
                     way, y, (size_t)(m * n)));
    clg_model_free(model);
    return worst_of(y, expected, (size_t)(m * n));
}

/* CLBlast has kernels of its own for large products, and from which size on it does not tell. */
static void selftest__finds_clblast_wrong_where_it_is_large(void **state)
{
    (void)state;
    answer a;
    char way[WAY_BYTES];
    n_warnings = 0;
    driver_is(&clblast_large, NULL);
    clg_model *model = product();
    clg_context *context = open_context("large", CLG_SELFTEST_OFF);
    lower_clblast_s_threshold(context);
    if (!(run_large(context, 320, 320, 320, way) > 0.5))
        fail_msg("nothing is wrong without self-tests");
    assert_string_equal(way, "blas");
    if (!(run_large(context, 4100, 64, 64, way) > 0.5)) fail_msg("long sides are not large");
    assert_string_equal(way, "blas");
    clg_context_free(context);
    context = open_context("large", CLG_SELFTEST_ON);
    lower_clblast_s_threshold(context);
    assert_ok(run(context, model, CLG_KERNELS_SIMT, "blas", expected_product, &a));
    assert_string_equal(a.way, "blas"); /* the other kernel is right */
    assert_true(a.worst < RIGHT);
    assert_int_equal(n_warnings, 0);
    assert_true(run_large(context, 320, 320, 320, way) < 0.01);
    assert_string_equal(way, "gemm_simt");
    assert_int_equal(n_warnings, 1);
    assert_true(run_large(context, 4100, 64, 64, way) < 0.01); /* long sides, a class of its own */
    assert_string_equal(way, "gemm_simt");
    assert_int_equal(n_warnings, 2);
    clg_model_free(model);
    clg_context_free(context);
}

/* The way of y = alpha x w, [m,k] by [k,n], all ones; it is no matter what is in y. */
static void expect_way(clg_context *context, float alpha, int64_t m, int64_t k, int64_t n,
                       const char *expected)
{
    float ones[64];
    char way[WAY_BYTES];
    for (int i = 0; i < 64; i++) ones[i] = 1;
    clg_model *model = model_of("Gemm", 2, DIMS(m, k), DIMS(k, n), ones, alpha);
    assert_ok(run_by(context, model, CLG_KERNELS_WIDE, "gemm_wide",
                     &(given){"x", 2, DIMS(m, k), ones}, 1, way, NULL, 0));
    assert_string_equal(way, expected);
    clg_model_free(model);
}

static void selftest__a_node_s_numbers_do_not_count(void **state)
{
    (void)state;
    static const float alphas[] = {3e38f, 1e-38f, NAN};
    driver_is(&none, ".4");
    n_warnings = 0;
    for (size_t i = 0; i < sizeof alphas / sizeof *alphas; i++) {
        assert_ok(clg_cache_clear(scratch_path("numbers"), NULL));
        clg_context *context = open_context("numbers", CLG_SELFTEST_ON);
        expect_way(context, alphas[i], 7, 3, 5, "gemm_wide");
        clg_context_free(context);
    }
    assert_int_equal(n_warnings, 0);
}

static void selftest__a_tiny_node_stands_for_large_ones(void **state)
{
    (void)state;
    driver_is(&deep, NULL);
    n_warnings = 0;
    clg_context *context = open_context("tiny", CLG_SELFTEST_ON);
    expect_way(context, 1, 1, 4, 1, "blas");
    expect_way(context, 1, 2, 4, 8, "blas"); /* narrow enough to be the same kernel */
    assert_int_equal(n_warnings, 1);
    expect_way(context, 1, 1, 1, 64, "blas");
    assert_int_equal(n_warnings, 2);
    clg_context_free(context);
}

/* Whether y = x w is by CLBlast; shapes of x and w, of rank 3, none of them a constant. */
static bool is_by_clblast(clg_context *context, const int64_t *x_dims, const int64_t *w_dims)
{
    const given both[] = {{"x", 3, x_dims, x}, {"w", 3, w_dims, x}};
    char way[WAY_BYTES];
    clg_model *model = model_of("MatMul", 3, x_dims, w_dims, NULL, 1);
    assert_ok(run_by(context, model, CLG_KERNELS_SIMT, "blas", both, 2, way, NULL, 0));
    clg_model_free(model);
    return strcmp(way, "blas") == 0;
}

static void selftest__tells_batches_in_one_call_from_a_call_for_each(void **state)
{
    (void)state;
    driver_is(&clblast_batches, NULL);
    n_warnings = 0;
    clg_context *context = open_context("batches", CLG_SELFTEST_ON);
    assert_true(is_by_clblast(context, DIMS(1, 7, 5), DIMS(3, 5, 9))); /* a repeats: call by call */
    assert_int_equal(n_warnings, 0);
    assert_false(is_by_clblast(context, DIMS(3, 7, 5), DIMS(3, 5, 9)));
    assert_int_equal(n_warnings, 1);
    assert_true(is_by_clblast(context, DIMS(1, 7, 5), DIMS(3, 5, 9)));
    clg_context_free(context);
}

/* ---- reports --------------------------------------------------------------------------------------------------- */

static clg_status report(clg_context *context, size_t *out_passed, size_t *out_failed)
{
    clg_selftest_case *cases;
    size_t n;
    *out_passed = *out_failed = 0;
    CLG_TRY(clg_context_selftest(context, CLG_KERNELS_WIDE, false, NULL, NULL, &cases, &n));
    for (size_t i = 0; i < n; i++) {
        if (strcmp(cases[i].op_type, "MatMul") != 0 || !strstr(cases[i].problem, "[277,45]c"))
            continue;
        if (strcmp(cases[i].way, "gemm_wide") == 0) ++*(cases[i].passed ? out_passed : out_failed);
    }
    clg_selftest_free(cases, n);
    return CLG_OK;
}

/* Two products share a variant, which is wrong for one of them: not for the last. */
static void selftest__a_report_trusts_what_is_right_in_all_cases(void **state)
{
    (void)state;
    size_t n_passed, n_failed;
    answer a;
    driver_is(&of_37_rows, NULL);
    clg_model *model = product();
    for (int turn = 0; turn < 2; turn++) { /* in this context, and in another one by the store */
        clg_context *context = open_context("report", CLG_SELFTEST_ON);
        if (turn == 0) {
            assert_ok(report(context, &n_passed, &n_failed));
            assert_int_equal(n_passed, 1);
            assert_int_equal(n_failed, 1);
        }
        assert_ok(run(context, model, CLG_KERNELS_WIDE, "gemm_wide", expected_product, &a));
        assert_string_equal(a.way, "blas");
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

static void selftest__reports_can_be_cancelled_and_refused(void **state)
{
    (void)state;
    clg_selftest_case *cases;
    size_t n;
    driver_is(&none, NULL);
    clg_context *context = open_context("cancelled", CLG_SELFTEST_ON);
    assert_error(clg_context_selftest(context, CLG_KERNELS_WIDE, false, a_few, NULL, &cases, &n),
                 CLG_ERROR_CANCELLED, "cancelled");
    assert_null(cases);
    assert_int_equal(n, 0);
    assert_error(clg_context_selftest(context, (clg_kernel_class)7, false, NULL, NULL, &cases, &n),
                 CLG_ERROR_INVALID_ARGUMENT, "no kernel class 7");
    assert_error(clg_context_selftest(NULL, CLG_KERNELS_WIDE, false, NULL, NULL, &cases, &n),
                 CLG_ERROR_INVALID_ARGUMENT, "context");
    assert_error(clg_context_selftest(context, CLG_KERNELS_WIDE, false, NULL, NULL, &cases, NULL),
                 CLG_ERROR_INVALID_ARGUMENT, "out_n_cases");
    clg_selftest_free(NULL, 0);
    clg_context_free(context);
}

static void selftest__the_environment_decides_where_code_does_not(void **state)
{
    (void)state;
    static const struct {
        const char *word;
        clg_selftest given;
        bool tested;
    } cases[] = {{"off", CLG_SELFTEST_DEFAULT, false},
                 {"off", CLG_SELFTEST_ON, true},
                 {"on", CLG_SELFTEST_DEFAULT, true},
                 {NULL, CLG_SELFTEST_DEFAULT, true},
                 {"on", CLG_SELFTEST_OFF, false}};
    answer a;
    clg_model *model = convolution();
    driver_is(&winograd, ".3");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        set_or_clear("CLG_SELFTEST", cases[i].word);
        clg_context *context = open_context("environment", cases[i].given);
        assert_ok(run(context, model, CLG_KERNELS_WIDE, "winograd_4x4", expected_conv, &a));
        if ((strcmp(a.way, "winograd_4x4") != 0) != cases[i].tested) fail_msg("case %zu", i);
        clg_context_free(context);
    }
    unsetenv("CLG_SELFTEST");
    clg_model_free(model);
}

static int begin(void **state)
{
    (void)state;
    unsetenv("CLG_SELFTEST");
    assert_int_equal(setenv("OPENCL_LAYERS", CLG_TEST_BUILD_DIR "/tests/layers/opencl_wrong.so", 1),
                     0);
    ocl_platforms_show_pocl();
    clg_set_log(listen, NULL, CLG_LOG_WARNING);
    expect();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(selftest__a_sound_driver_passes),
        cmocka_unit_test(selftest__finds_a_ragged_corner),
        cmocka_unit_test(selftest__finds_what_is_a_little_off),
        cmocka_unit_test(selftest__no_way_left_is_an_error),
        cmocka_unit_test(selftest__finds_clblast_wrong),
        cmocka_unit_test(selftest__finds_clblast_wrong_where_it_is_large),
        cmocka_unit_test(selftest__a_node_s_numbers_do_not_count),
        cmocka_unit_test(selftest__a_tiny_node_stands_for_large_ones),
        cmocka_unit_test(selftest__tells_batches_in_one_call_from_a_call_for_each),
        cmocka_unit_test(selftest__a_report_trusts_what_is_right_in_all_cases),
        cmocka_unit_test(selftest__reports_can_be_cancelled_and_refused),
        cmocka_unit_test(selftest__the_environment_decides_where_code_does_not),
    };
    return cmocka_run_group_tests(tests, begin, NULL);
}
