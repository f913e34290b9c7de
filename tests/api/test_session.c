/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests sessions in the public interface: every way to set inputs and get outputs, outputs linked
 * to inputs, clones, asynchronous runs, changing shapes, and errors.
 */
/* ctest: label quick */
#include "support/fixtures/sized_data.h"
#include "support/unit.h"

#include "support/fixtures/build_session.h"
#include "support/fixtures/pocl_context.h"
#include "support/literals.h"

#include <clgraph/inspect.h>

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Creates y = Relu(x W + b), x: [rows,3], y: [rows,2]. */
static clg_model *affine_model(void)
{
    static const float w[] = {1, -1, 2, 0.5f, -3, 1}, b[] = {0.25f, -0.5f};
    clg_builder *g = start_graph();
    clg_model *m;
    assert_ok(clg_builder_input(g, "x", CLG_FLOAT32, 2, DIMS(-1, 3), NAMES("rows", NULL)));
    assert_ok(sized_constant(g, "w", CLG_FLOAT32, 2, DIMS(3, 2), w));
    assert_ok(sized_constant(g, "b", CLG_FLOAT32, 1, DIMS(2), b));
    assert_ok(
        clg_builder_node(g, NULL, "Gemm", "affine", 3, NAMES("x", "w", "b"), 1, NAMES("sum")));
    assert_ok(clg_builder_node(g, NULL, "Relu", "relu", 1, NAMES("sum"), 1, NAMES("y")));
    assert_ok(clg_builder_output(g, "y"));
    assert_ok(clg_builder_build(g, &m));
    clg_builder_free(g);
    return m;
}

static void expect_affine(const float *x, const float *y, int rows)
{
    static const double w[] = {1, -1, 2, 0.5, -3, 1}, b[] = {0.25, -0.5};
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < 2; c++) {
            double want = b[c];
            for (int k = 0; k < 3; k++) want += (double)x[r * 3 + k] * w[k * 2 + c];
            if (want < 0) want = 0;
            assert_true(fabs((double)y[r * 2 + c] - want) <= 1e-5 * (1 + fabs(want)));
        }
}

static clg_session *affine_session(clg_kernel_class kernels)
{
    clg_model *m = affine_model();
    clg_session *s;
    clg_session_options options = CLG_SESSION_OPTIONS_INIT;
    options.kernels = kernels;
    assert_ok(clg_session_create(context, m, &options, &s));
    clg_model_free(m); /* the session keeps it */
    return s;
}

static void fill(float *x, int n, int seed)
{
    for (int i = 0; i < n; i++) x[i] = sinf((float)(i * 7 + seed));
}

/* ---- shapes ---------------------------------------------------------------------------------- */

TEST(session__shapes_change_without_compiling)
{
    clg_session *s = affine_session(CLG_KERNELS_AUTO);
    float x[3 * 50], y[2 * 50];
    clg_counters before = CLG_COUNTERS_INIT, after = CLG_COUNTERS_INIT;
    for (int pass = 0; pass < 2; pass++)
        for (int rows = 1; rows <= 50; rows += 7) {
            fill(x, rows * 3, rows);
            assert_ok(sized_input(s, "x", CLG_FLOAT32, 2, DIMS(rows, 3), x));
            assert_ok(clg_session_run(s));
            assert_ok(clg_session_get_output_data(s, "y", y, (size_t)rows * 2 * sizeof *y));
            expect_affine(x, y, rows);
            if (pass == 0 && rows == 1) assert_ok(clg_context_counters(context, &before));
        }
    assert_ok(clg_context_counters(context, &after));
    assert_int_equal(after.programs_compiled, before.programs_compiled);
    assert_int_equal(after.weights_packed, before.weights_packed);
    assert_int_equal(after.plans_made - before.plans_made, 7);
    clg_session_free(s);
}

TEST(session__no_rows_give_no_rows)
{
    clg_session *s = affine_session(CLG_KERNELS_AUTO);
    clg_value *y;
    assert_ok(sized_input(s, "x", CLG_FLOAT32, 2, DIMS(0, 3), NULL));
    assert_ok(clg_session_run(s));
    assert_ok(clg_session_get_output(s, "y", &y));
    assert_int_equal(clg_value_rank(y), 2);
    assert_int_equal(clg_value_dims(y)[0], 0);
    assert_int_equal(clg_value_dims(y)[1], 2);
    clg_value_free(y);
    clg_session_free(s);
}

TEST(session__both_classes_agree_and_repeat_their_bits)
{
    float x[3 * 33], first[2 * 33], again[2 * 33];
    fill(x, 3 * 33, 5);
    for (int kernels = CLG_KERNELS_SIMD; kernels <= CLG_KERNELS_SIMT; kernels++) {
        clg_session *s = affine_session(kernels);
        assert_ok(sized_input(s, "x", CLG_FLOAT32, 2, DIMS(33, 3), x));
        assert_ok(clg_session_run(s));
        assert_ok(clg_session_get_output_data(s, "y", first, sizeof first));
        expect_affine(x, first, 33);
        for (int i = 0; i < 5; i++) {
            assert_ok(clg_session_run(s));
            assert_ok(clg_session_get_output_data(s, "y", again, sizeof again));
            assert_memory_equal(first, again, sizeof first);
        }
        clg_session_free(s);
    }
}

/* ---- inputs and outputs ---------------------------------------------------------------------- */

TEST(session__mapped_inputs)
{
    clg_session *s = affine_session(CLG_KERNELS_AUTO);
    float x[3 * 9], y[2 * 9];
    for (int i = 0; i < 3; i++) {
        void *mapped;
        fill(x, 3 * 9, i);
        assert_ok(clg_session_map_input(s, "x", 2, DIMS(9, 3), &mapped));
        memcpy(mapped, x, sizeof x);
        assert_ok(clg_session_run(s));
        assert_ok(clg_session_get_output_data(s, "y", y, sizeof y));
        expect_affine(x, y, 9);
    }
    memset(y, 0, sizeof y);
    assert_ok(clg_session_run(s)); /* the mapped data are kept */
    assert_ok(clg_session_get_output_data(s, "y", y, sizeof y));
    expect_affine(x, y, 9);
    clg_session_free(s);
}

TEST(session__device_values_in_and_out)
{
    clg_session *s = affine_session(CLG_KERNELS_AUTO);
    float x[3 * 4], y[2 * 4], bound[2 * 4] = {0};
    clg_value *in, *out, *device_y, *host_y;
    fill(x, 12, 1);
    assert_ok(clg_value_create_device(context, CLG_FLOAT32, 2, DIMS(4, 3), &in));
    assert_ok(clg_value_write(in, x, sizeof x));
    assert_null(clg_value_data(in));
    assert_ok(clg_session_set_input(s, "x", in));
    assert_ok(clg_session_run(s));
    assert_ok(clg_session_get_output_device(s, "y", &device_y));
    assert_ok(clg_value_read(device_y, y, sizeof y));
    expect_affine(x, y, 4);
    clg_value_free(device_y);

    assert_ok(clg_value_create_device(context, CLG_FLOAT32, 2, DIMS(4, 2), &out));
    assert_ok(clg_session_bind_output(s, "y", out));
    fill(x, 12, 2);
    assert_ok(clg_value_write(in, x, sizeof x));
    assert_ok(clg_session_run(s));
    assert_ok(clg_value_read(out, y, sizeof y));
    expect_affine(x, y, 4);

    assert_ok(sized_wrap(CLG_FLOAT32, 2, DIMS(4, 2), bound, NULL, NULL, &host_y));
    assert_ok(clg_session_bind_output(s, "y", host_y));
    assert_ok(clg_session_run(s));
    expect_affine(x, bound, 4);
    assert_ok(clg_session_bind_output(s, "y", NULL));
    assert_ok(clg_session_run(s));
    assert_ok(clg_session_get_output_data(s, "y", y, sizeof y));
    expect_affine(x, y, 4);
    clg_value_free(host_y);
    clg_value_free(out);
    clg_value_free(in);
    clg_session_free(s);
}

TEST(session__results_outlive_the_next_run)
{
    clg_session *s = affine_session(CLG_KERNELS_AUTO);
    float a[6], b[6];
    clg_value *first, *second;
    fill(a, 6, 1);
    fill(b, 6, 2);
    assert_ok(sized_input(s, "x", CLG_FLOAT32, 2, DIMS(2, 3), a));
    assert_ok(clg_session_run(s));
    assert_ok(clg_session_get_output(s, "y", &first));
    assert_ok(sized_input(s, "x", CLG_FLOAT32, 2, DIMS(2, 3), b));
    assert_ok(clg_session_run(s));
    assert_ok(clg_session_get_output(s, "y", &second));
    clg_session_free(s);
    expect_affine(a, clg_value_data(first), 2);
    expect_affine(b, clg_value_data(second), 2);
    clg_value_free(first);
    clg_value_free(second);
}

/* Creates state_out = state + x, y = state_out * 2. */
static clg_session *accumulator(void)
{
    static const float two = 2;
    clg_builder *g = start_graph();
    assert_ok(clg_builder_input(g, "x", CLG_FLOAT32, 1, DIMS(5), NULL));
    assert_ok(clg_builder_input(g, "state", CLG_FLOAT32, 1, DIMS(5), NULL));
    assert_ok(sized_constant(g, "two", CLG_FLOAT32, 0, NULL, &two));
    assert_ok(
        clg_builder_node(g, NULL, "Add", "add", 2, NAMES("state", "x"), 1, NAMES("state_out")));
    assert_ok(clg_builder_node(g, NULL, "Mul", "mul", 2, NAMES("state_out", "two"), 1, NAMES("y")));
    assert_ok(clg_builder_output(g, "state_out"));
    assert_ok(clg_builder_output(g, "y"));
    return build_session(context, g, NULL);
}

TEST(session__linked_state_stays_on_the_device)
{
    clg_session *s = accumulator();
    const float x[5] = {1, 2, 3, 4, 5}, zero[5] = {0};
    float y[5], out[5];
    assert_ok(sized_input(s, "x", CLG_FLOAT32, 1, DIMS(5), x));
    assert_ok(sized_input(s, "state", CLG_FLOAT32, 1, DIMS(5), zero));
    assert_ok(clg_session_link(s, "state_out", "state"));
    for (int step = 1; step <= 10; step++) {
        assert_ok(clg_session_run(s));
        assert_ok(clg_session_get_output_data(s, "y", y, sizeof y));
        assert_ok(clg_session_get_output_data(s, "state_out", out, sizeof out));
        for (int i = 0; i < 5; i++) {
            assert_true(out[i] == x[i] * (float)step);
            assert_true(y[i] == 2 * x[i] * (float)step);
        }
    }
    assert_ok(clg_session_link(s, NULL, "state"));
    assert_ok(sized_input(s, "state", CLG_FLOAT32, 1, DIMS(5), zero));
    assert_ok(clg_session_run(s));
    assert_ok(clg_session_get_output_data(s, "state_out", out, sizeof out));
    assert_memory_equal(out, x, sizeof out);
    clg_session_free(s);
}

/* ---- concurrent sessions --------------------------------------------------------------------- */

static void *run_clone(void *argument)
{
    clg_session *s = argument;
    for (int i = 0; i < 30; i++) {
        float x[3 * 20], y[2 * 20];
        fill(x, 60, i);
        if (sized_input(s, "x", CLG_FLOAT32, 2, DIMS(20, 3), x) != CLG_OK ||
            clg_session_run(s) != CLG_OK ||
            clg_session_get_output_data(s, "y", y, sizeof y) != CLG_OK)
            return s;
        double want = 0.25 + (double)x[57] + 2 * (double)x[58] - 3 * (double)x[59];
        if (!(fabs((double)y[38] - (want < 0 ? 0 : want)) <= 1e-4)) return s;
    }
    return NULL;
}

TEST(session__clones_run_side_by_side)
{
    enum { N = 4 };
    clg_session *s[N];
    pthread_t threads[N];
    clg_counters before = CLG_COUNTERS_INIT, after = CLG_COUNTERS_INIT;
    s[0] = affine_session(CLG_KERNELS_AUTO);
    assert_ok(clg_context_counters(context, &before));
    for (int i = 1; i < N; i++) assert_ok(clg_session_clone(s[0], &s[i]));
    for (int i = 0; i < N; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, run_clone, s[i]), 0);
    for (int i = 0; i < N; i++) {
        void *bad;
        pthread_join(threads[i], &bad);
        assert_null(bad);
    }
    assert_ok(clg_context_counters(context, &after));
    assert_true(after.plans_made - before.plans_made <= 1);
    for (int i = 0; i < N; i++) clg_session_free(s[i]);
}

TEST(session__asynchronous_runs)
{
    clg_session *s = affine_session(CLG_KERNELS_AUTO);
    float x[3 * 8], y[2 * 8];
    assert_error(clg_session_wait(s), CLG_ERROR_INVALID_ARGUMENT, "no asynchronous run");
    for (int i = 0; i < 20; i++) {
        fill(x, 24, i);
        assert_ok(sized_input(s, "x", CLG_FLOAT32, 2, DIMS(8, 3), x));
        assert_ok(clg_session_run_async(s));
        assert_error(clg_session_run(s), CLG_ERROR_BUSY, "another request");
        assert_ok(clg_session_wait(s));
        assert_ok(clg_session_get_output_data(s, "y", y, sizeof y));
        expect_affine(x, y, 8);
    }
    assert_ok(clg_session_set_input(s, "x", NULL));
    assert_ok(clg_session_run_async(s));
    assert_error(clg_session_wait(s), CLG_ERROR_NOT_FOUND,
                 "'x' is not set"); /* reported to the thread that waits */
    fill(x, 24, 1);
    assert_ok(sized_input(s, "x", CLG_FLOAT32, 2, DIMS(8, 3), x));
    assert_ok(clg_session_run_async(s));
    clg_session_free(s); /* freeing while a run is in progress is allowed */
}

static bool say_no(void *user, const char *what, size_t done, size_t total)
{
    (void)what;
    (void)done;
    (void)total;
    ++*(int *)user;
    return false;
}

TEST(session__progress_can_cancel)
{
    clg_model *m = affine_model();
    clg_session *s;
    int calls = 0;
    clg_session_options options = CLG_SESSION_OPTIONS_INIT;
    const char *const off[] = {
        "epilogue"}; /* other options than before, so that no exec is reused */
    options.disabled_passes = off;
    options.n_disabled_passes = 1;
    options.progress = say_no;
    options.progress_user = &calls;
    assert_error(clg_session_create(context, m, &options, &s), CLG_ERROR_CANCELLED, "cancelled");
    assert_null(s);
    assert_true(calls > 0);
    options.progress = NULL;
    assert_ok(clg_session_create(context, m, &options, &s));
    assert_error(clg_session_prepare(s, say_no, &calls), CLG_ERROR_CANCELLED, "cancelled");
    assert_ok(clg_session_prepare(s, NULL, NULL));
    clg_session_free(s);
    clg_model_free(m);
}

TEST(session__prepared_sessions_compile_nothing)
{
    clg_session *s = affine_session(CLG_KERNELS_SIMT);
    clg_counters before = CLG_COUNTERS_INIT, after = CLG_COUNTERS_INIT;
    clg_memory_estimate memory = CLG_MEMORY_ESTIMATE_INIT;
    float x[12], y[8];
    fill(x, 12, 9);
    assert_ok(clg_session_set_input_shape(s, "x", 2, DIMS(4, 3)));
    assert_ok(clg_session_prepare(s, NULL, NULL));
    assert_ok(clg_session_memory(s, &memory));
    assert_int_equal(memory.io_bytes, sizeof x + sizeof y);
    assert_true(memory.weight_bytes > 0);
    assert_true(memory.live_bytes <= memory.slab_bytes);
    assert_ok(clg_context_counters(context, &before));
    assert_ok(sized_input(s, "x", CLG_FLOAT32, 2, DIMS(4, 3), x));
    assert_ok(clg_session_run(s));
    assert_ok(clg_session_get_output_data(s, "y", y, sizeof y));
    assert_ok(clg_context_counters(context, &after));
    assert_int_equal(after.programs_compiled, before.programs_compiled);
    assert_int_equal(after.programs_loaded, before.programs_loaded);
    assert_int_equal(after.plans_made, before.plans_made);
    expect_affine(x, y, 4);
    clg_session_free(s);
}

/* ---- passes ---------------------------------------------------------------------------------- */

TEST(session__passes_do_not_change_answers)
{
    const char *const all[] = {"identity", "batchnorm", "epilogue", "dead"};
    float x[3 * 17], with[2 * 17], without[2 * 17];
    clg_model *m = affine_model();
    fill(x, 3 * 17, 4);
    for (int round = 0; round < 2; round++) {
        clg_session *s;
        clg_session_options options = CLG_SESSION_OPTIONS_INIT;
        options.disabled_passes = all;
        options.n_disabled_passes = round ? 4 : 0;
        assert_ok(clg_session_create(context, m, &options, &s));
        assert_ok(sized_input(s, "x", CLG_FLOAT32, 2, DIMS(17, 3), x));
        assert_ok(clg_session_run(s));
        assert_ok(clg_session_get_output_data(s, "y", round ? without : with, sizeof with));
        clg_session_free(s);
    }
    expect_affine(x, with, 17);
    for (int i = 0; i < 34; i++) assert_true(fabsf(with[i] - without[i]) <= 1e-5f);
    clg_model_free(m);
}

TEST(session__kept_values_can_be_read)
{
    clg_session *s = affine_session(CLG_KERNELS_AUTO);
    float x[6], sum[4], y[4];
    fill(x, 6, 8);
    assert_ok(sized_input(s, "x", CLG_FLOAT32, 2, DIMS(2, 3), x));
    assert_error(clg_session_keep_values(s, NAMES("nowhere"), 1), CLG_ERROR_NOT_FOUND, "nowhere");
    assert_ok(clg_session_keep_values(s, NAMES("sum"), 1));
    assert_ok(clg_session_run(s));
    assert_ok(clg_session_get_output_data(s, "sum", sum, sizeof sum));
    assert_ok(clg_session_get_output_data(s, "y", y, sizeof y));
    expect_affine(x, y, 2);
    for (int i = 0; i < 4; i++) assert_true(y[i] == (sum[i] < 0 ? 0 : sum[i]));
    clg_session_free(s);
}

/* ---- rejected inputs ------------------------------------------------------------------------- */

TEST(session__wrong_inputs_are_refused)
{
    clg_session *s = affine_session(CLG_KERNELS_AUTO);
    float x[12] = {0};
    clg_value *out;
    clg_session *none;
    assert_error(clg_session_run(s), CLG_ERROR_NOT_FOUND, "'x' is not set");
    assert_error(sized_input(s, "z", CLG_FLOAT32, 2, DIMS(4, 3), x), CLG_ERROR_NOT_FOUND, "'x'");
    assert_error(sized_input(s, "x", CLG_INT32, 2, DIMS(4, 3), x), CLG_ERROR_UNSUPPORTED_DTYPE,
                 "int32");
    assert_error(sized_input(s, "x", CLG_FLOAT32, 2, DIMS(3, 4), x), CLG_ERROR_SHAPE, "[3,4]");
    assert_error(sized_input(s, "x", CLG_FLOAT32, 1, DIMS(12), x), CLG_ERROR_SHAPE, "[12]");
    assert_error(sized_input(s, "x", CLG_FLOAT32, 2, DIMS(-4, 3), x), CLG_ERROR_INVALID_ARGUMENT,
                 "negative");
    assert_error(sized_input(s, "x", CLG_FLOAT32, 2, DIMS(INT64_MAX, 3), x),
                 CLG_ERROR_INVALID_ARGUMENT, "more elements than");
    assert_error(clg_session_get_output(s, "q", &out), CLG_ERROR_NOT_FOUND, "'y'");
    assert_error(clg_session_get_output(s, "y", &out), CLG_ERROR_NOT_FOUND, "nothing ran");
    assert_error(clg_session_create(NULL, NULL, NULL, &none), CLG_ERROR_INVALID_ARGUMENT,
                 "context");
    assert_null(none);
    clg_session_free(s);
}

TEST(session__more_memory_than_there_is)
{
    clg_session *s = affine_session(CLG_KERNELS_AUTO);
    const int64_t rows = INT64_C(1) << 40;
    assert_ok(clg_session_set_input_shape(s, "x", 2, DIMS(rows, 3)));
    assert_error(clg_session_prepare(s, NULL, NULL), CLG_ERROR_OUT_OF_DEVICE_MEMORY, "bytes");
    clg_session_free(s);
}

TEST_GROUP(open_context, close_context)
