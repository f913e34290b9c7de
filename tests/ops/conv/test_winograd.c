/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares 3x3 convolutions by Winograd transforms, with tiles of 2x2 or 4x4 outputs, with direct
 * convolution in double. A class of kernels without Winograd implementations computes the same
 * cases with its default kernel.
 *
 * Tolerance, relative to the larger of the result and sqrt(number of terms): with 2x2 tiles 2e-6,
 * as for direct convolution in float32; with 4x4 tiles 8e-6, since the intermediate sums of the
 * transforms are usually a few times, and up to 84 times, as large as the results. float16:
 * 5e-4, slightly more than 2^-11, for the rounding of the result.
 */
/* ctest: timeout 900 */
#include "support/cases/run_node.h"
#include "support/fixtures/sized_data.h"

#include "session/exec/model.h"

#include <clgraph/inspect.h>

#include <math.h>
#include <string.h>

typedef struct filter_case {
    /* Images, channels of input and output, size of the input, and pads in ONNX's order. */
    int64_t n, c, m, h, w, pads[4];
    bool bias, residual;
    const char *activation;
    bool half; /* in float16 */
    /* filled in by the test */
    int64_t side, oh, ow;
    const double *x, *weight, *bias_at, *residual_at;
    double *y;
} filter_case;

static clg_dtype dtype_of(const filter_case *t) { return t->half ? CLG_FLOAT16 : CLG_FLOAT32; }

static double tap(const filter_case *t, int64_t image, int64_t channel, int64_t row, int64_t col)
{
    const bool inside = row >= 0 && row < t->h && col >= 0 && col < t->w;
    return inside ? t->x[((image * t->c + channel) * t->h + row) * t->w + col] : 0;
}

static void expect(filter_case *t)
{
    const int64_t plane = t->oh * t->ow;
    for (int64_t i = 0; i < t->n * t->m * plane; i++) {
        const int64_t o = i / plane % t->m, row = i / t->ow % t->oh, col = i % t->ow;
        double sum = t->bias ? t->bias_at[o] : 0;
        for (int64_t k = 0; k < t->c * 9; k++)
            sum += t->weight[o * t->c * 9 + k] * tap(t, i / plane / t->m, k / 9,
                                                     row - t->pads[0] + k % 9 / 3,
                                                     col - t->pads[1] + k % 3);
        if (t->residual) sum += t->residual_at[i];
        t->y[i] = t->activation && strcmp(t->activation, "Relu") == 0 ? fmax(sum, 0) : sum;
    }
}

static value_id add_value(graph *g, const filter_case *t, const char *name, const int64_t *dims)
{
    value_id v;
    assert_ok(graph_add_value(g, name, &v));
    g->values[v].dtype = dtype_of(t);
    assert_ok(shape_make(4, dims, &g->values[v].dims));
    return v;
}

static value_id add_constant(graph *g, const filter_case *t, const char *name, int rank,
                             const int64_t *dims, const double *numbers)
{
    value_id v;
    shape s;
    tensor *made;
    assert_ok(shape_make((size_t)rank, dims, &s));
    assert_ok(tensor_create(dtype_of(t), &s, &made));
    for (int64_t i = 0; i < made->n_elements; i++) tensor_set_float(made, i, numbers[i]);
    assert_ok(graph_add_constant(g, name, made, &v));
    tensor_free(made);
    return v;
}

static void make_model(const filter_case *t, clg_model **out_model)
{
    graph *g;
    node_id n;
    value_id inputs[4] = {VALUE_NONE, VALUE_NONE, VALUE_NONE, VALUE_NONE}, y;
    const int64_t x_dims[] = {t->n, t->c, t->h, t->w}, y_dims[] = {t->n, t->m, t->oh, t->ow};
    assert_ok(graph_create("", &g));
    assert_ok(graph_set_opset(g, "clgraph", 1));
    inputs[0] = add_value(g, t, "x", x_dims);
    assert_ok(graph_add_input(g, inputs[0]));
    inputs[1] = add_constant(g, t, "w", 4, (const int64_t[]){t->m, t->c, 3, 3}, t->weight);
    if (t->bias) inputs[2] = add_constant(g, t, "b", 1, &t->m, t->bias_at);
    if (t->residual) {
        inputs[3] = add_value(g, t, "r", y_dims);
        assert_ok(graph_add_input(g, inputs[3]));
    }
    y = add_value(g, t, "y", y_dims);
    assert_ok(graph_add_node(g, "clgraph", "FusedConv", "tested", t->residual ? 4 : 3, inputs, 1,
                             &y, &n));
    assert_ok(node_set_ints(g, n, "pads", 4, t->pads));
    assert_ok(node_set_int(g, n, "winograd", t->side));
    if (t->activation) assert_ok(node_set_string(g, n, "activation", t->activation));
    assert_ok(graph_add_output(g, y));
    assert_ok(model_create(g, false, out_model));
}

static void set_input(clg_session *session, const filter_case *t, const char *name,
                      const int64_t dims[4], const double *numbers)
{
    const shape s = {.rank = 4, .dims = {dims[0], dims[1], dims[2], dims[3]}};
    tensor *made;
    assert_ok(tensor_create(dtype_of(t), &s, &made));
    for (int64_t i = 0; i < made->n_elements; i++) tensor_set_float(made, i, numbers[i]);
    assert_ok(sized_input(session, name, dtype_of(t), 4, dims, made->data));
    tensor_free(made);
}

static void check_kernel(clg_session *session, const clg_session_options *options, int64_t side)
{
    char *plan;
    assert_ok(clg_session_plan_text(session, &plan));
    const bool found = strstr(plan, side == 2 ? "winograd_2x2" : "winograd_4x4") != NULL;
    assert_int_equal(found, options->kernels == CLG_KERNELS_SIMD);
    clg_text_free(plan);
}

static void run_case(clg_context *context, const clg_session_options *options, const char *place,
                     void *user)
{
    const filter_case *t = user;
    const int64_t x_dims[] = {t->n, t->c, t->h, t->w}, y_dims[] = {t->n, t->m, t->oh, t->ow};
    const shape s = {.rank = 4, .dims = {t->n, t->m, t->oh, t->ow}};
    const double tolerance = t->half        ? 5e-4
                             : t->side == 2 ? 2e-6
                                            : 8e-6,
                 scale = sqrt(9.0 * (double)t->c);
    clg_model *model;
    clg_session *session;
    tensor *got;
    const bool slow = options->kernels != CLG_KERNELS_SIMD;
    const char *const disabled[] = {"blocked"}; /* tests/ops/conv/test_conv_blocked.c */
    clg_session_options own = *options;
    own.disabled_passes = disabled;
    own.n_disabled_passes = 1;
    if (slow && t->n * t->m * t->c * t->oh * t->ow > 20000) return;
    make_model(t, &model);
    assert_ok(clg_session_create(context, model, &own, &session));
    set_input(session, t, "x", x_dims, t->x);
    if (t->residual) set_input(session, t, "r", y_dims, t->residual_at);
    if (clg_session_run(session) != CLG_OK) fail_msg("on %s: %s", place, clg_last_error());
    check_kernel(session, options, t->side);
    assert_ok(tensor_create(dtype_of(t), &s, &got));
    assert_ok(clg_session_get_output_data(session, "y", got->data, got->size_bytes));
    for (int64_t i = 0; i < got->n_elements; i++) {
        const double x = tensor_get_float(got, i), want = t->y[i];
        if (!(fabs(x - want) <= tolerance * fmax(fabs(want), scale)))
            fail_msg(
                "%lldx%lld tiles on %s, %lld images of %lldx%lldx%lld to %lld: element %lld is "
                "%.9g where %.9g is right",
                (long long)t->side, (long long)t->side, place, (long long)t->n, (long long)t->c,
                (long long)t->h, (long long)t->w, (long long)t->m, (long long)i, x, want);
    }
    tensor_free(got);
    clg_session_free(session);
    clg_model_free(model);
}

static void filter(const filter_case *given)
{
    for (int64_t side = 2; side <= 4; side += 2) {
        filter_case t = *given;
        t.side = side;
        t.oh = t.h + t.pads[0] + t.pads[2] - 2;
        t.ow = t.w + t.pads[1] + t.pads[3] - 2;
        t.x = run_node_random(t.n * t.c * t.h * t.w);
        t.weight = run_node_random(t.m * t.c * 9);
        t.bias_at = run_node_random(t.m);
        t.residual_at = run_node_random(t.n * t.m * t.oh * t.ow);
        t.y = run_node_zeros(t.n * t.m * t.oh * t.ow);
        expect(&t);
        run_node_each(run_case, &t);
    }
}

TEST(winograd__odd_sizes_and_paddings)
{
    static const filter_case cases[] = {
        {.n = 1, .c = 1, .m = 1, .h = 3, .w = 3},
        {.n = 1, .c = 1, .m = 1, .h = 1, .w = 1, .pads = {1, 1, 1, 1}},
        {.n = 1, .c = 2, .m = 3, .h = 4, .w = 9, .pads = {1, 1, 1, 1}, .bias = true},
        {.n = 2, .c = 5, .m = 4, .h = 7, .w = 6, .pads = {0, 1, 2, 0}},
        {.n = 1, .c = 3, .m = 2, .h = 2, .w = 5, .pads = {3, 4, 0, 5}, .bias = true},
        {.n = 1, .c = 4, .m = 5, .h = 12, .w = 12, .pads = {1, 1, 1, 1}},
        {.n = 1, .c = 2, .m = 2, .h = 9, .w = 17, .pads = {0, 0, 0, 0}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) filter(&cases[i]);
}

TEST(winograd__channels_around_a_vector)
{
    static const int64_t counts[][2] = {{15, 31}, {16, 32}, {17, 33}, {33, 16}, {48, 65}};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        filter(&(filter_case){.n = 1,
                              .c = counts[i][0],
                              .m = counts[i][1],
                              .h = 6,
                              .w = 7,
                              .pads = {1, 1, 1, 1},
                              .bias = true});
}

TEST(winograd__blocks_cross_rows_images_and_strips)
{
    static const filter_case cases[] = {
        {.n = 7, .c = 18, .m = 20, .h = 7, .w = 7, .pads = {1, 1, 1, 1}, .bias = true},
        {.n = 3, .c = 17, .m = 33, .h = 14, .w = 14, .pads = {1, 1, 1, 1}},
        {.n = 2, .c = 3, .m = 4, .h = 6, .w = 263, .pads = {1, 1, 1, 1}, .bias = true},
        {.n = 1, .c = 20, .m = 8, .h = 70, .w = 37, .pads = {1, 1, 1, 1}},
        {.n = 1, .c = 560, .m = 40, .h = 13, .w = 13, .pads = {1, 1, 1, 1}, .bias = true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) filter(&cases[i]);
}

#define FULL_EPILOGUE                                                                              \
    {                                                                                              \
        .n = 2, .c = 9, .m = 19, .h = 10, .w = 11, .pads = {1, 1, 1, 1}, .bias = true,             \
        .residual = true, .activation = "Relu"                                                     \
    }

TEST(winograd__residual_and_activation)
{
    static const filter_case cases[] = {
        FULL_EPILOGUE,
        {.n = 1, .c = 3, .m = 5, .h = 8, .w = 21, .pads = {1, 1, 1, 1}, .residual = true},
        {.n = 1, .c = 3, .m = 5, .h = 5, .w = 5, .pads = {1, 1, 0, 0}, .activation = "Relu"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) filter(&cases[i]);
}

/* The weights of all input channels are transformed in parts: with more channels than one part has,
 * and with one channel in the second part. */
TEST(winograd__float16)
{
    static const filter_case cases[] = {
        {.n = 1, .c = 1, .m = 1, .h = 3, .w = 3},
        {.n = 2, .c = 17, .m = 33, .h = 7, .w = 9, .pads = {1, 1, 1, 1}, .bias = true},
        {.n = 1, .c = 560, .m = 40, .h = 13, .w = 13, .pads = {1, 1, 1, 1}, .bias = true},
        {.n = 1, .c = 257, .m = 31, .h = 5, .w = 6, .pads = {0, 1, 2, 0}},
        FULL_EPILOGUE,
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        filter_case t = cases[i];
        t.half = true;
        filter(&t);
    }
}

TEST_GROUP(run_node_open, run_node_close)
