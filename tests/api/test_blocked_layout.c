/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares networks that the pass `blocked` converts to channel-blocked layout with the same
 * networks in NCHW. Results must be equal within TOLERANCE for several batch sizes; outputs and
 * kept intermediate values must be in NCHW order.
 */
#include "support/fixtures/sized_data.h"
#include "support/unit.h"

#include "support/fixtures/pocl_context.h"

#include <clgraph/inspect.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#define TOLERANCE 2e-5

enum { SIDE = 29, CLASSES = 40 };

/* ---- a network ------------------------------------------------------------------------------- */

static void add(clg_builder *b, const char *op, const char *out, size_t n, const char *const *in)
{
    assert_ok(clg_builder_node(b, NULL, op, out, n, in, 1, &out));
}

/* Adds a constant of sine waves, of magnitude up to `size`. */
static void waves(clg_builder *b, const char *name, size_t rank, const int64_t *dims, double size)
{
    static float numbers[64 * 64 * 9];
    int64_t n = 1;
    for (size_t i = 0; i < rank; i++) n *= dims[i];
    assert_true(n <= (int64_t)(sizeof numbers / sizeof *numbers));
    for (int64_t i = 0; i < n; i++)
        numbers[i] = (float)(size * sin((double)(i * i % 1009 + i) + (double)strlen(name)));
    assert_ok(sized_constant(b, name, CLG_FLOAT32, rank, dims, numbers));
}

static void grouped_conv(clg_builder *b, const char *x, int64_t in, int64_t out, int64_t side,
                         int64_t stride, int64_t groups, const char *name)
{
    char weight[32], bias[32];
    (void)snprintf(weight, sizeof weight, "%s weight", name);
    (void)snprintf(bias, sizeof bias, "%s bias", name);
    waves(b, weight, 4, (int64_t[]){out, in / groups, side, side},
          sqrt(3.0 * (double)groups / (double)(in * side * side)));
    waves(b, bias, 1, &out, 0.5);
    add(b, "Conv", name, 3, (const char *[]){x, weight, bias});
    const int64_t pad = side / 2, pads[] = {pad, pad, pad, pad}, strides[] = {stride, stride};
    assert_ok(clg_builder_attribute_ints(b, "pads", 4, pads));
    assert_ok(clg_builder_attribute_ints(b, "strides", 2, strides));
    assert_ok(clg_builder_attribute_int(b, "group", groups));
}

static void conv(clg_builder *b, const char *x, int64_t in, int64_t out, int64_t side,
                 int64_t stride, const char *name)
{
    grouped_conv(b, x, in, out, side, stride, 1, name);
}

static void pool(clg_builder *b, const char *op, const char *x, int64_t stride, const char *name)
{
    const int64_t kernel[] = {3, 3}, strides[] = {stride, stride}, pads[] = {1, 1, 1, 1};
    add(b, op, name, 1, &x);
    assert_ok(clg_builder_attribute_ints(b, "kernel_shape", 2, kernel));
    assert_ok(clg_builder_attribute_ints(b, "strides", 2, strides));
    assert_ok(clg_builder_attribute_ints(b, "pads", 4, pads));
}

static void normalise(clg_builder *b, const char *x, int64_t channels, const char *name)
{
    static const char *const parts[] = {"scale", "shift", "mean", "variance"};
    char names[4][40];
    const char *in[5] = {x};
    for (int i = 0; i < 4; i++) {
        (void)snprintf(names[i], sizeof names[i], "%s %s", name, parts[i]);
        float numbers[256];
        for (int64_t k = 0; k < channels; k++)
            numbers[k] =
                (float)(i % 3 == 0 ? 1 + 0.5 * sin((double)k) : 0.5 * cos((double)(k + i)));
        assert_ok(sized_constant(b, names[i], CLG_FLOAT32, 1, &channels, numbers));
        in[i + 1] = names[i];
    }
    add(b, "BatchNormalization", name, 5, in);
}

/* Builds a stem, a residual block, a block of branches with every kind of node that may have
 * channel-blocked inputs, and one node that may not. */
static clg_model *make_network(void)
{
    clg_builder *b;
    clg_model *m;
    const int64_t dims[] = {-1, 3, SIDE, SIDE};
    assert_ok(clg_builder_create(13, &b));
    assert_ok(clg_builder_input(b, "x", CLG_FLOAT32, 4, dims, NULL));
    conv(b, "x", 3, 32, 7, 2, "stem");
    add(b, "Relu", "positive", 1, (const char *[]){"stem"});
    pool(b, "MaxPool", "positive", 1, "largest");
    conv(b, "largest", 32, 32, 3, 1, "inner");
    add(b, "Relu", "inner positive", 1, (const char *[]){"inner"});
    conv(b, "inner positive", 32, 32, 3, 1, "outer");
    add(b, "Add", "residual", 2, (const char *[]){"outer", "largest"});
    add(b, "Relu", "block", 1, (const char *[]){"residual"});
    conv(b, "block", 32, 16, 1, 1, "left");
    pool(b, "AveragePool", "block", 1, "smooth");
    add(b, "LeakyRelu", "leaky", 1, (const char *[]){"smooth"});
    conv(b, "leaky", 32, 48, 3, 1, "right");
    add(b, "Concat", "branches", 2, (const char *[]){"left", "right"});
    assert_ok(clg_builder_attribute_int(b, "axis", 1));
    normalise(b, "branches", 64, "normal");
    add(b, "GlobalAveragePool", "means", 1, (const char *[]){"normal"});
    add(b, "Sigmoid", "gate", 1, (const char *[]){"means"});
    add(b, "Mul", "excited", 2, (const char *[]){"normal", "gate"});
    waves(b, "by channel", 3, (const int64_t[]){64, 1, 1}, 1);
    add(b, "Mul", "scaled", 2, (const char *[]){"excited", "by channel"});
    conv(b, "scaled", 64, 24, 1, 1, "narrow"); /* 1.5 blocks, where blocks are of 16 */
    grouped_conv(b, "narrow", 24, 24, 5, 1, 24, "alone");
    add(b, "Relu", "alone, positive", 1, (const char *[]){"alone"});
    grouped_conv(b, "alone, positive", 24, 24, 3, 2, 24, "small");
    conv(b, "small", 24, 24, 1, 1, "mixed");
    add(b, "Add", "sum", 2, (const char *[]){"mixed", "small"});
    pool(b, "MaxPool", "sum", 1, "largest sum");
    conv(b, "largest sum", 24, CLASSES, 3, 1, "last");
    add(b, "Softmax", "y", 1, (const char *[]){"last"});
    assert_ok(clg_builder_attribute_int(b, "axis", 3));
    add(b, "GlobalMaxPool", "z", 1, (const char *[]){"last"});
    assert_ok(clg_builder_output(b, "y"));
    assert_ok(clg_builder_output(b, "z"));
    assert_ok(clg_builder_output(b, "block"));
    assert_ok(clg_builder_build(b, &m));
    clg_builder_free(b);
    return m;
}

/* ---- running --------------------------------------------------------------------------------- */

static const char *const blocked[] = {"blocked"};

static clg_session *make_session(clg_model *m, bool in_blocks)
{
    clg_session_options o = CLG_SESSION_OPTIONS_INIT;
    clg_session *s;
    o.disabled_passes = blocked;
    o.n_disabled_passes = in_blocks ? 0 : 1;
    assert_ok(clg_session_create(context, m, &o, &s));
    return s;
}

static void run(clg_session *s, int64_t batch)
{
    static float x[5 * 3 * SIDE * SIDE];
    const int64_t dims[] = {batch, 3, SIDE, SIDE};
    for (int64_t i = 0; i < batch * 3 * SIDE * SIDE; i++)
        x[i] = (float)cos((double)(i % 719) * (double)(batch + i % 31));
    assert_ok(sized_input(s, "x", CLG_FLOAT32, 4, dims, x));
    assert_ok(clg_session_run(s));
}

/* Checks that an output of n elements is equal in two sessions, within TOLERANCE. */
static void expect_same(clg_session *a, clg_session *b, const char *name, int64_t n)
{
    static float mine[5 * 64 * 15 * 15], plain[5 * 64 * 15 * 15];
    assert_true(n * (int64_t)sizeof *mine <= (int64_t)sizeof mine);
    assert_ok(clg_session_get_output_data(a, name, mine, (size_t)n * sizeof *mine));
    assert_ok(clg_session_get_output_data(b, name, plain, (size_t)n * sizeof *plain));
    for (int64_t i = 0; i < n; i++)
        if (!(fabsf(mine[i] - plain[i]) <= TOLERANCE * (1 + fabsf(plain[i]))))
            fail_msg("%s, element %lld: %g in blocks, %g without", name, (long long)i,
                     (double)mine[i], (double)plain[i]);
}

static int steps_of(clg_session *s, const char *op)
{
    char *plan;
    int n = 0;
    assert_ok(clg_session_plan_text(s, &plan));
    for (const char *at = plan; (at = strstr(at, op)) != NULL; at += strlen(op)) n++;
    clg_text_free(plan);
    return n;
}

TEST(blocked_maps__give_the_same_numbers)
{
    clg_model *m = make_network();
    clg_session *in_blocks = make_session(m, true), *plain = make_session(m, false);
    for (int64_t batch = 1; batch <= 5; batch += 2) {
        run(in_blocks, batch);
        run(plain, batch);
        expect_same(in_blocks, plain, "y", batch * CLASSES * 8 * 8);
        expect_same(in_blocks, plain, "z", batch * CLASSES);
        expect_same(in_blocks, plain, "block", batch * 32 * 15 * 15);
    }
    assert_int_equal(steps_of(in_blocks, " BlockedConv "), 9);
    assert_true(steps_of(in_blocks, "conv_expand_blocked") > 0); /* "narrow", "alone" */
    assert_int_equal(steps_of(in_blocks, " Transpose "),
                     2); /* layout conversions: of "block", and of "last" for Softmax */
    assert_int_equal(steps_of(plain, " BlockedConv "), 0);
    clg_session_free(in_blocks);
    clg_session_free(plain);
    clg_model_free(m);
}

/* Kept values have the layout (NCHW) and names of the original model, and do not break the nodes
 * that consume them. */
TEST(blocked_maps__kept_values)
{
    /* Values that are no feature maps: if those were kept, the blocked layout would not pay off. */
    static const char *const names[] = {"means", "gate"};
    clg_model *m = make_network();
    clg_session *in_blocks = make_session(m, true), *plain = make_session(m, false);
    assert_ok(clg_session_keep_values(in_blocks, names, 2));
    assert_ok(clg_session_keep_values(plain, names, 2));
    run(in_blocks, 2);
    run(plain, 2);
    for (int i = 0; i < 2; i++) expect_same(in_blocks, plain, names[i], 2 * 64);
    expect_same(in_blocks, plain, "y", 2 * CLASSES * 8 * 8);
    assert_int_equal(steps_of(in_blocks, " BlockedConv "), 9);
    clg_session_free(in_blocks);
    clg_session_free(plain);
    clg_model_free(m);
}

/* The length of a bias may be unknown until the run, but kernels access M elements of it. */
TEST(blocked_maps__a_bias_of_another_length_is_refused)
{
    clg_builder *b;
    clg_model *m;
    const int64_t dims[] = {-1, 3, SIDE, SIDE}, any = -1, one = 1, right = 64;
    static const float bias[64] = {0.5f};
    assert_ok(clg_builder_create(13, &b));
    assert_ok(clg_builder_input(b, "x", CLG_FLOAT32, 4, dims, NULL));
    assert_ok(clg_builder_input(b, "bias", CLG_FLOAT32, 1, &any, NULL));
    conv(b, "x", 3, 64, 3, 1, "stem");
    waves(b, "w", 4, (int64_t[]){64, 64, 1, 1}, 0.1);
    add(b, "Conv", "points", 3, (const char *[]){"stem", "w", "bias"});
    grouped_conv(b, "points", 64, 64, 3, 1, 64, "alone");
    add(b, "GlobalAveragePool", "y", 1, (const char *[]){"alone"});
    assert_ok(clg_builder_output(b, "y"));
    assert_ok(clg_builder_build(b, &m));
    clg_builder_free(b);
    clg_session *s = make_session(m, true);
    assert_ok(sized_input(s, "bias", CLG_FLOAT32, 1, &right, bias));
    run(s, 1);
    assert_true(steps_of(s, "conv_expand_blocked") > 0);
    assert_ok(sized_input(s, "bias", CLG_FLOAT32, 1, &one, bias));
    assert_error(clg_session_run(s), CLG_ERROR_SHAPE, "the bias has 1 elements for 64");
    clg_session_free(s);
    clg_model_free(m);
}

TEST_GROUP(open_context, close_context)
