/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares transposed convolutions that the pass `blocked` computes in channel-blocked layout, one
 * convolution for each phase, with the same in NCHW, which test_convtranspose.c compares with sums
 * in double. The network is a convolution, the transposed one, BatchNormalization, a
 * convolution and Relu, with channels that leave a block partly filled. Windows whose phases are no
 * convolutions stay as they are.
 */
#include "support/fixtures/pocl_context.h"
#include "support/fixtures/sized_data.h"
#include "support/unit.h"

#include <clgraph/inspect.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { IN = 203, OUT = 43, BATCH = 2, MAX_MAP = BATCH * OUT * 32 * 32 };

#define PHASES "conv_blocked_phases"
#define DIRECT "conv_blocked_direct"
/* Of the largest element; sums have up to IN * 25 terms. */
#define TOLERANCE 2e-5

/* A transposed convolution of a map of h x w; is_blocked: whether its phases are convolutions. */
typedef struct upscaling {
    int64_t h, w, kernel[2], strides[2], pads[4], dilations[2], extra[2], groups;
    bool is_blocked;
} upscaling;

static const upscaling cases[] = {
    {5, 7, {4, 4}, {2, 2}, {1, 1, 1, 1}, {1, 1}, {0, 0}, 1, true},
    {4, 9, {5, 3}, {3, 2}, {1, 0, 0, 2}, {1, 1}, {1, 1}, 1, true},
    {6, 5, {3, 3}, {1, 1}, {1, 2, 0, 1}, {1, 1}, {0, 0}, 1, true},
    {7, 13, {2, 2}, {2, 2}, {0, 0, 0, 0}, {1, 1}, {0, 0}, 1, true},
    {3, 5, {5, 5}, {2, 2}, {2, 2, 2, 2}, {1, 1}, {1, 0}, 1, true},
    {1, 17, {4, 6}, {4, 1}, {0, 3, 0, 1}, {1, 1}, {3, 0}, 1, true},
    {5, 4, {3, 3}, {2, 2}, {2, 1, 1, 1}, {1, 1}, {0, 0}, 1, false}, /* a pad beyond the phases */
    {5, 4, {3, 3}, {2, 2}, {1, 1, 1, 1}, {2, 1}, {0, 0}, 1, false}, /* dilated */
    {5, 4, {1, 3}, {2, 2}, {0, 1, 0, 1}, {1, 1}, {0, 0}, 1, false}, /* pixels of no window */
};

static void add(clg_builder *b, const char *op, const char *out, size_t n, const char *const *in)
{
    assert_ok(clg_builder_node(b, NULL, op, out, n, in, 1, &out));
}

static float wave(int64_t i, double size)
{
    return (float)(size * sin((double)(i * i % 1009 + i)));
}

static void constant(clg_builder *b, const char *name, size_t rank, const int64_t *dims,
                     double middle, double size)
{
    static float numbers[IN * OUT * 25];
    int64_t n = 1;
    for (size_t i = 0; i < rank; i++) n *= dims[i];
    assert_true(n <= (int64_t)(sizeof numbers / sizeof *numbers));
    for (int64_t i = 0; i < n; i++)
        numbers[i] = (float)middle + wave(i + (int64_t)strlen(name), size);
    assert_ok(sized_constant(b, name, CLG_FLOAT32, rank, dims, numbers));
}

static clg_model *make_network(const upscaling *t)
{
    static const char *const normal[] = {"up", "scale", "shift", "mean", "variance"};
    const int64_t x[] = {-1, 3, t->h, t->w}, stem[] = {IN, 3, 3, 3}, same[] = {1, 1, 1, 1};
    const int64_t weight[] = {IN, OUT, t->kernel[0], t->kernel[1]}, out = OUT;
    const int64_t last[] = {OUT, OUT, 3, 3};
    clg_builder *b;
    clg_model *m;
    assert_ok(clg_builder_create(13, &b));
    assert_ok(clg_builder_input(b, "x", CLG_FLOAT32, 4, x, NULL));
    constant(b, "stem weight", 4, stem, 0, 0.3);
    add(b, "Conv", "stem", 2, (const char *[]){"x", "stem weight"});
    assert_ok(clg_builder_attribute_ints(b, "pads", 4, same));
    constant(b, "weight", 4, weight, 0, 0.05);
    constant(b, "bias", 1, &out, 0, 0.5);
    add(b, "ConvTranspose", "up", 3, (const char *[]){"stem", "weight", "bias"});
    assert_ok(clg_builder_attribute_ints(b, "kernel_shape", 2, t->kernel));
    assert_ok(clg_builder_attribute_ints(b, "strides", 2, t->strides));
    assert_ok(clg_builder_attribute_ints(b, "pads", 4, t->pads));
    assert_ok(clg_builder_attribute_ints(b, "dilations", 2, t->dilations));
    assert_ok(clg_builder_attribute_ints(b, "output_padding", 2, t->extra));
    for (int i = 1; i < 5; i++) constant(b, normal[i], 1, &out, i % 3 == 1 ? 1 : 0.2, 0.1);
    add(b, "BatchNormalization", "normal", 5, normal);
    constant(b, "last weight", 4, last, 0, 0.1);
    add(b, "Conv", "last", 2, (const char *[]){"normal", "last weight"});
    assert_ok(clg_builder_attribute_ints(b, "pads", 4, same));
    add(b, "Relu", "y", 1, (const char *[]){"last"});
    assert_ok(clg_builder_output(b, "y"));
    assert_ok(clg_builder_build(b, &m));
    clg_builder_free(b);
    return m;
}

static int64_t outputs_of(const upscaling *t, int i)
{
    return t->strides[i] * ((i == 0 ? t->h : t->w) - 1) + t->extra[i] +
           (t->kernel[i] - 1) * t->dilations[i] + 1 - t->pads[i] - t->pads[2 + i];
}

/* Runs the network, and sets y. Returns whether a node was computed by `impl`. */
static bool run(clg_model *m, const upscaling *t, const clg_session_options *options,
                const char *impl, float *y)
{
    static float x[BATCH * 3 * 13 * 17];
    const int64_t dims[] = {BATCH, 3, t->h, t->w};
    const size_t n = (size_t)(BATCH * OUT * outputs_of(t, 0) * outputs_of(t, 1));
    clg_session *s;
    char *plan;
    assert_true(n <= MAX_MAP);
    for (int64_t i = 0; i < BATCH * 3 * t->h * t->w; i++) x[i] = wave(7 * i, 1);
    assert_ok(clg_session_create(context, m, options, &s));
    assert_ok(sized_input(s, "x", CLG_FLOAT32, 4, dims, x));
    assert_ok(clg_session_run(s));
    assert_ok(clg_session_get_output_data(s, "y", y, n * sizeof *y));
    assert_ok(clg_session_plan_text(s, &plan));
    const bool is_used = strstr(plan, impl) != NULL;
    clg_text_free(plan);
    clg_session_free(s);
    return is_used;
}

static void check(const upscaling *t, int at)
{
    static const char *const off[] = {"blocked", "batchnorm"}, *const last[] = {DIRECT};
    static float blocked[MAX_MAP], direct[MAX_MAP], plain[MAX_MAP], simt[MAX_MAP];
    clg_session_options o = CLG_SESSION_OPTIONS_INIT;
    clg_model *m = make_network(t);
    double largest = 0;
    o.kernels = CLG_KERNELS_SIMD;
    const bool has_phases = run(m, t, &o, PHASES, blocked);
    if (has_phases != t->is_blocked) fail_msg("case %d is%s blocked", at, has_phases ? "" : " not");
    o.preferred_impls = last;
    o.n_preferred_impls = 1;
    assert_int_equal(run(m, t, &o, DIRECT, direct), has_phases);
    assert_false(run(m, t, &o, PHASES, direct));
    o.n_preferred_impls = 0;
    o.disabled_passes = off;
    o.n_disabled_passes = 2;
    assert_false(run(m, t, &o, PHASES, plain));
    o.n_disabled_passes = 0;
    o.kernels = CLG_KERNELS_SIMT;
    assert_false(run(m, t, &o, PHASES, simt));
    const int64_t n = BATCH * OUT * outputs_of(t, 0) * outputs_of(t, 1);
    for (int64_t i = 0; i < n; i++) largest = fmax(largest, fabs((double)plain[i]));
    assert_true(largest > 0.1);
    for (int64_t i = 0; i < n; i++)
        if (!(fabs((double)blocked[i] - (double)plain[i]) <= TOLERANCE * largest) ||
            !(fabs((double)direct[i] - (double)plain[i]) <= TOLERANCE * largest) ||
            !(fabs((double)simt[i] - (double)plain[i]) <= TOLERANCE * largest))
            fail_msg("case %d, element %lld: %g in blocks, %g without tiles, %g by simt, %g plain",
                     at, (long long)i, (double)blocked[i], (double)direct[i], (double)simt[i],
                     (double)plain[i]);
    clg_model_free(m);
}

TEST(convtranspose_blocked__phases)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) check(&cases[i], (int)i);
}

TEST_GROUP(open_context, close_context)
