/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs the digits model on all its held-out images, in batches of several sizes, with both classes
 * of kernels and with CLBlast. Classes and accuracy must be equal to PyTorch's, and probabilities
 * within 1e-5 of PyTorch's. Another order of summation changes them by far less (4e-7 in PyTorch
 * itself), a wrong kernel by far more.
 */
#include "support/fixtures/sized_data.h"
#include "support/unit.h"

#include "support/fixtures/pocl_context.h"
#include "support/literals.h"

#include <clgraph/inspect.h>

#include <math.h>
#include <string.h>

#define FOLDER CLG_TEST_SOURCE_DIR "/examples/digits/"

enum { IMAGES = 360, PIXELS = 64, CLASSES = 10 };
static const double tolerance = 1e-5;

static clg_model *model;
static clg_value *images, *labels, *probabilities;

static bool has_shape(const clg_value *v, clg_dtype dtype, size_t n, int64_t elements)
{
    return clg_value_dtype(v) == dtype && clg_value_rank(v) == n &&
           clg_value_dims(v)[0] == IMAGES && clg_value_n_elements(v) == elements;
}

static int open_all(void **state)
{
    if (open_context(state) != 0) return -1;
    clg_status status = clg_model_load_file(FOLDER "digits.onnx", NULL, &model);
    if (status == CLG_OK) status = clg_value_load(FOLDER "heldout.npy", &images);
    if (status == CLG_OK) status = clg_value_load(FOLDER "heldout_labels.npy", &labels);
    if (status == CLG_OK)
        status = clg_value_load(FOLDER "heldout_probabilities.npy", &probabilities);
    if (status != CLG_OK) {
        print_error("%s\n", clg_last_error());
        return -1;
    }
    return has_shape(images, CLG_FLOAT32, 4, IMAGES * PIXELS) &&
                   has_shape(labels, CLG_INT64, 1, IMAGES) &&
                   has_shape(probabilities, CLG_FLOAT32, 2, IMAGES * CLASSES)
               ? 0
               : -1;
}

static int close_all(void **state)
{
    clg_value_free(images);
    clg_value_free(labels);
    clg_value_free(probabilities);
    clg_model_free(model);
    return close_context(state);
}

static int largest(const float *p)
{
    int best = 0;
    for (int k = 1; k < CLASSES; k++)
        if (p[k] > p[best]) best = k;
    return best;
}

static int count_right(const float *p)
{
    const int64_t *truth = clg_value_data(labels);
    int right = 0;
    for (int i = 0; i < IMAGES; i++) right += largest(p + i * CLASSES) == truth[i];
    return right;
}

/* Predicts all images, `batch` at a time. */
static void predict(clg_session *s, int batch, float *out)
{
    const float *x = clg_value_data(images);
    for (int i = 0; i < IMAGES; i += batch) {
        int n = IMAGES - i < batch ? IMAGES - i : batch;
        assert_ok(sized_input(s, "image", CLG_FLOAT32, 4, DIMS(n, 1, 8, 8), x + i * PIXELS));
        assert_ok(clg_session_run(s));
        assert_ok(clg_session_get_output_data(s, "probabilities", out + i * CLASSES,
                                              (size_t)(n * CLASSES) * sizeof *out));
    }
}

static void expect_pytorch(const float *got)
{
    const float *want = clg_value_data(probabilities);
    double worst = 0;
    for (int i = 0; i < IMAGES * CLASSES; i++) {
        const double difference = fabs((double)(got[i] - want[i]));
        if (!(difference <= tolerance))
            fail_msg("probability %d of image %d is %g, PyTorch's %g", i % CLASSES, i / CLASSES,
                     (double)got[i], (double)want[i]);
        worst = fmax(worst, difference);
    }
    for (int i = 0; i < IMAGES; i++)
        if (largest(got + i * CLASSES) != largest(want + i * CLASSES))
            fail_msg("image %d is taken for %d, by PyTorch for %d", i, largest(got + i * CLASSES),
                     largest(want + i * CLASSES));
    print_message("%d of %d right, largest difference of a probability %.1e\n", count_right(got),
                  IMAGES, worst);
    assert_int_equal(count_right(got), count_right(want));
}

static void check(clg_kernel_class kernels, bool no_blas)
{
    static float got[IMAGES * CLASSES], again[IMAGES * CLASSES];
    clg_session *s;
    clg_session_options options = CLG_SESSION_OPTIONS_INIT;
    clg_counters before = CLG_COUNTERS_INIT, after = CLG_COUNTERS_INIT;
    options.kernels = kernels;
    options.no_blas = no_blas;
    options.preferred_impls = (const char *const[]){"blas"};
    options.n_preferred_impls = kernels == CLG_KERNELS_SIMT && !no_blas;
    assert_ok(clg_context_counters(context, &before));
    assert_ok(clg_session_create(context, model, &options, &s));
    for (int i = 0; i < 3; i++) {
        predict(s, (int[]){IMAGES, 7, 1}[i], got);
        expect_pytorch(got);
    }
    predict(s, 1, again);
    assert_memory_equal(got, again, sizeof got); /* the same bits each time */
    assert_ok(clg_context_counters(context, &after));
    assert_true(after.kernels_launched > before.kernels_launched);
    bool has_blas = kernels == CLG_KERNELS_SIMT && !no_blas;
    assert_int_equal(after.blas_calls > before.blas_calls, has_blas);
    clg_session_free(s);
}

TEST(digits__simd) { check(CLG_KERNELS_SIMD, false); }

TEST(digits__simt_with_clblast) { check(CLG_KERNELS_SIMT, false); }

TEST(digits__simt_without_clblast) { check(CLG_KERNELS_SIMT, true); }

TEST(digits__passes_do_not_matter)
{
    static float got[IMAGES * CLASSES];
    const char *const off[] = {"identity", "batchnorm", "epilogue", "dead"};
    for (int i = 0; i < 4; i++) {
        clg_session *s;
        clg_session_options options = CLG_SESSION_OPTIONS_INIT;
        options.disabled_passes = off;
        options.n_disabled_passes = (size_t)i + 1;
        assert_ok(clg_session_create(context, model, &options, &s));
        predict(s, IMAGES, got);
        expect_pytorch(got);
        clg_session_free(s);
    }
}

TEST_GROUP(open_all, close_all)
