/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares the gradients of Conv and ConvTranspose with sums in double over all windows and
 * elements of a window, in float32 and float16, at sizes that leave remainders in vectors, tiles
 * and images taken together. That the rules which add them are right is the subject of
 * tests/ops/gradient.
 *
 * Tolerance, relative to the larger of the result and the square root of the number of its terms:
 * float32 4e-6, data gradients of Conv that Winograd's filtering may compute 4e-5; float16 2e-3,
 * for the rounding of the result and of a few partial sums.
 */
#include "support/cases/run_node.h"
#include "support/fixtures/graph_text.h"
#include "support/fixtures/sized_data.h"
#include "support/platform.h"

#include "session/exec/model.h"
#include "tensor/tensor.h"

#include <clgraph/inspect.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAX_AXES = 3, TEXT_BYTES = 512 };

/* An axis: lengths of the larger map and of the smaller one, whose elements are windows of k
 * elements of the larger one, d apart, from o * s - p on. */
typedef struct axis {
    int64_t large, small, k, s, d, p;
} axis;

typedef struct grad_case {
    int n_axes;
    axis axes[MAX_AXES];
    int64_t images, groups, m, c; /* channels of a group in the smaller and the larger map */
    const char *attributes;
} grad_case;

/* The three operands of which each gradient is a sum of products of the two others. */
enum { SMALL, LARGE, WEIGHT, N_OPERANDS };

typedef struct grad_run {
    const grad_case *c;
    clg_dtype dtype;
    const char *op;
    int inputs[2], result; /* of SMALL, LARGE, WEIGHT */
    shape dims[N_OPERANDS];
    int64_t n[N_OPERANDS];
    double *numbers[N_OPERANDS], *want;
    double scale;
} grad_run;

/* ---- reference ------------------------------------------------------------------------------- */

/* Returns the element of the larger map's plane that element `tap` of window `window` is, or -1. */
static int64_t element_of(const grad_case *c, int64_t window, int64_t tap)
{
    int64_t at = 0, stride = 1;
    for (int i = c->n_axes - 1; i >= 0; i--) {
        const axis *a = &c->axes[i];
        const int64_t o = window % a->small * a->s + tap % a->k * a->d - a->p;
        if (o < 0 || o >= a->large) return -1;
        at += o * stride;
        stride *= a->large;
        window /= a->small;
        tap /= a->k;
    }
    return at;
}

static int64_t count(const grad_case *c, int what)
{
    int64_t n = 1;
    for (int i = 0; i < c->n_axes; i++)
        n *= what == SMALL ? c->axes[i].small : what == LARGE ? c->axes[i].large : c->axes[i].k;
    return n;
}

static void expect(grad_run *r)
{
    const grad_case *c = r->c;
    const int64_t windows = count(c, SMALL), elements = count(c, LARGE), taps = count(c, WEIGHT);
    const double *first = r->numbers[r->inputs[0]], *second = r->numbers[r->inputs[1]];
    for (int64_t i = 0; i < c->images * c->groups * c->m * c->c; i++) {
        const int64_t channel = i % c->c, row = i / c->c % (c->groups * c->m),
                      image = i / c->c / (c->groups * c->m), group = row / c->m;
        for (int64_t k = 0; k < windows * taps; k++) {
            const int64_t element = element_of(c, k / taps, k % taps);
            if (element < 0) continue;
            const int64_t at[N_OPERANDS] = {
                (image * c->groups * c->m + row) * windows + k / taps,
                ((image * c->groups + group) * c->c + channel) * elements + element,
                (row * c->c + channel) * taps + k % taps};
            r->want[at[r->result]] += first[at[r->inputs[0]]] * second[at[r->inputs[1]]];
        }
    }
    const int64_t n_terms = r->result == SMALL   ? c->c * taps
                            : r->result == LARGE ? c->m * taps
                                                 : c->images * windows;
    r->scale = sqrt((double)n_terms);
}

/* ---- running --------------------------------------------------------------------------------- */

static clg_model *model_of(const grad_run *r)
{
    static char text[TEXT_BYTES];
    char dims[N_OPERANDS][64];
    for (int i = 0; i < N_OPERANDS; i++) {
        size_t n = 0;
        for (int d = 0; d < r->dims[i].rank; d++)
            n += (size_t)snprintf(dims[i] + n, sizeof dims[i] - n, "%s%lld", d > 0 ? "," : "",
                                  (long long)r->dims[i].dims[d]);
    }
    const char *dtype = r->dtype == CLG_FLOAT16 ? "f16" : "f32";
    (void)snprintf(text, sizeof text,
                   "a: %s[%s]; b: %s[%s]; d = [%s]; y = clgraph.%s(a, b, d) %s; "
                   "out y",
                   dtype, dims[r->inputs[0]], dtype, dims[r->inputs[1]], dims[r->result], r->op,
                   r->c->attributes);
    return graph_text_model(18, text);
}

static void set_input(clg_session *session, const grad_run *r, const char *name, int operand)
{
    tensor *made;
    assert_ok(tensor_create(r->dtype, &r->dims[operand], &made));
    for (int64_t i = 0; i < made->n_elements; i++)
        tensor_set_float(made, i, r->numbers[operand][i]);
    assert_ok(sized_input(session, name, r->dtype, (size_t)r->dims[operand].rank,
                          r->dims[operand].dims, made->data));
    tensor_free(made);
}

static void run_once(clg_session *session, const char *place, tensor *got)
{
    if (clg_session_run(session) != CLG_OK) fail_msg("on %s: %s", place, clg_last_error());
    assert_ok(clg_session_get_output_data(session, "y", got->data, got->size_bytes));
}

/* Returns whether Winograd's filtering may compute the gradient. */
static bool may_filter(const grad_run *r)
{
    const grad_case *c = r->c;
    if (strcmp(r->op, "ConvDataGrad") != 0 || strstr(c->attributes, "winograd=0")) return false;
    for (int i = 0; i < c->n_axes; i++)
        if (c->axes[i].k != 3 || c->axes[i].s != 1 || c->axes[i].d != 1) return false;
    return c->n_axes == 2 && c->groups == 1;
}

static double tolerance_of(const grad_run *r)
{
    if (r->dtype == CLG_FLOAT16) return 2e-3;
    return may_filter(r) ? 4e-5 : 4e-6;
}

static void run_case(clg_context *context, const clg_session_options *options, const char *place,
                     void *user)
{
    const grad_run *r = user;
    const double tolerance = tolerance_of(r);
    clg_model *model = model_of(r);
    clg_session *session;
    tensor *got, *again;
    assert_ok(clg_session_create(context, model, options, &session));
    set_input(session, r, "a", r->inputs[0]);
    set_input(session, r, "b", r->inputs[1]);
    assert_ok(tensor_create(r->dtype, &r->dims[r->result], &got));
    assert_ok(tensor_create(r->dtype, &r->dims[r->result], &again));
    run_once(session, place, got);
    for (int64_t i = 0; i < got->n_elements; i++) {
        const double x = tensor_get_float(got, i), want = r->want[i];
        if (!(fabs(x - want) <= tolerance * fmax(fabs(want), r->scale)))
            fail_msg("%s %s on %s: element %lld is %.9g where %.9g is right", r->op,
                     r->c->attributes, place, (long long)i, x, want);
    }
    run_once(session, place, again); /* the order of sums is fixed */
    assert_memory_equal(got->data, again->data, got->size_bytes);
    tensor_free(again);
    tensor_free(got);
    clg_session_free(session);
    clg_model_free(model);
}

static void check(const grad_case *c, const char *op, int first, int second, int result)
{
    static const clg_dtype dtypes[] = {CLG_FLOAT32, CLG_FLOAT16};
    grad_run r = {.c = c, .op = op, .inputs = {first, second}, .result = result};
    r.dims[SMALL] = (shape){.rank = 2 + c->n_axes, .dims = {c->images, c->groups * c->m}};
    r.dims[LARGE] = (shape){.rank = 2 + c->n_axes, .dims = {c->images, c->groups * c->c}};
    r.dims[WEIGHT] = (shape){.rank = 2 + c->n_axes, .dims = {c->groups * c->m, c->c}};
    for (int i = 0; i < c->n_axes; i++) {
        r.dims[SMALL].dims[2 + i] = c->axes[i].small;
        r.dims[LARGE].dims[2 + i] = c->axes[i].large;
        r.dims[WEIGHT].dims[2 + i] = c->axes[i].k;
    }
    for (int i = 0; i < N_OPERANDS; i++) {
        r.n[i] = run_node_count(r.dims[i].rank, r.dims[i].dims);
        r.numbers[i] = run_node_random(r.n[i]);
    }
    r.want = run_node_zeros(r.n[result]);
    expect(&r);
    for (size_t i = 0; i < COUNT(dtypes); i++) {
        r.dtype = dtypes[i];
        run_node_each_case(run_case, &r);
    }
}

static const grad_case convs[] = {
    {2, {{13, 13, 3, 1, 1, 1}, {19, 19, 3, 1, 1, 1}}, 2, 1, 37, 5, "pads=[1,1,1,1]"},
    /* elements at the ends that no window has */
    {2,
     {{14, 4, 3, 3, 1, 0}, {17, 8, 2, 2, 3, 1}},
     3,
     1,
     5,
     7,
     "strides=[3,2] dilations=[1,3] "
     "pads=[0,1,0,1]"},
    {2,
     {{9, 4, 3, 2, 1, 0}, {11, 9, 2, 1, 2, 0}},
     2,
     3,
     5,
     3,
     "group=3 strides=[2,1] "
     "dilations=[1,2]"},
    {2, {{7, 7, 1, 1, 1, 0}, {9, 9, 1, 1, 1, 0}}, 2, 1, 19, 21, ""},
    {2, {{7, 4, 1, 2, 1, 0}, {9, 3, 1, 4, 1, 0}}, 2, 2, 3, 5, "group=2 strides=[2,4]"},
    {1, {{53, 51, 5, 1, 1, 1}}, 3, 1, 11, 3, "pads=[1,1]"},
    {3,
     {{4, 3, 2, 1, 1, 0}, {5, 3, 3, 2, 1, 1}, {7, 7, 1, 1, 1, 0}},
     2,
     1,
     5,
     3,
     "strides=[1,2,1] pads=[0,1,0,0,1,0]"},
    /* depthwise: rows of vectors and parts of them; strides; more elements than sums at a time */
    {2, {{7, 7, 3, 1, 1, 1}, {45, 45, 3, 1, 1, 1}}, 2, 19, 1, 1, "group=19 pads=[1,1,1,1]"},
    {2, {{9, 4, 3, 2, 1, 0}, {23, 11, 3, 2, 1, 0}}, 3, 5, 3, 1, "group=5 strides=[2,2]"},
    {1, {{67, 25, 19, 2, 1, 0}}, 2, 5, 1, 1, "group=5 strides=[2]"},
    {3,
     {{3, 2, 2, 1, 1, 0}, {5, 3, 3, 1, 1, 0}, {6, 2, 3, 2, 2, 1}},
     2,
     7,
     2,
     1,
     "group=7 strides=[1,1,2] dilations=[1,1,2] pads=[0,0,1,0,0,0]"},
};

TEST(conv_grad__data)
{
    for (size_t i = 0; i < COUNT(convs); i++)
        check(&convs[i], "ConvDataGrad", SMALL, WEIGHT, LARGE);
}

TEST(conv_grad__weights)
{
    for (size_t i = 0; i < COUNT(convs); i++)
        check(&convs[i], "ConvFilterGrad", LARGE, SMALL, WEIGHT);
}

/* The convolution with the rotated weight, by each implementation; the sum of windows, where some
 * see padding alone. */
TEST(conv_grad__data_by_a_convolution)
{
    static const grad_case cases[] = {
        {2, {{13, 13, 3, 1, 1, 1}, {19, 19, 3, 1, 1, 1}}, 2, 1, 37, 5, "pads=[1,1,1,1] winograd=0"},
        {2,
         {{13, 13, 3, 1, 1, 1}, {19, 17, 3, 1, 1, 0}},
         3,
         1,
         35,
         21,
         "pads=[1,0,1,0] winograd=2"},
        {2, {{13, 15, 3, 1, 1, 2}, {19, 19, 3, 1, 1, 1}}, 2, 1, 5, 37, "pads=[2,1,2,1] winograd=4"},
        {2, {{9, 13, 3, 1, 1, 3}, {7, 7, 3, 1, 1, 1}}, 2, 1, 5, 7, "pads=[3,1,3,1]"},
        {2,
         {{11, 7, 3, 1, 2, 0}, {9, 10, 4, 1, 1, 2}},
         2,
         3,
         19,
         5,
         "group=3 dilations=[2,1] pads=[0,2,0,2]"},
        {3,
         {{4, 3, 2, 1, 1, 0}, {5, 5, 3, 1, 1, 1}, {7, 7, 3, 1, 1, 1}},
         2,
         1,
         5,
         7,
         "pads=[0,1,1,0,1,1]"},
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        check(&cases[i], "ConvDataGrad", SMALL, WEIGHT, LARGE);
}

/* Products of some images each, the last with fewer; long sums, which GPUs divide, also where those
 * of the last images are not divisible as the others. */
TEST(conv_grad__weights_of_images_in_parts)
{
    static const grad_case cases[] = {
        {2, {{6, 6, 3, 1, 1, 1}, {7, 7, 3, 1, 1, 1}}, 5, 1, 17, 5, "pads=[1,1,1,1] together=2"},
        {2, {{6, 5, 2, 1, 1, 0}, {7, 7, 1, 1, 1, 0}}, 3, 2, 3, 5, "group=2 together=1"},
        {2, {{31, 31, 3, 1, 1, 1}, {37, 37, 3, 1, 1, 1}}, 3, 1, 5, 3, "pads=[1,1,1,1] together=2"},
        {2, {{31, 31, 3, 1, 1, 1}, {35, 35, 3, 1, 1, 1}}, 2, 2, 5, 3, "group=2 pads=[1,1,1,1]"},
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        check(&cases[i], "ConvFilterGrad", LARGE, SMALL, WEIGHT);
}

TEST(conv_grad__data_of_images_in_parts)
{
    static const grad_case cases[] = {
        {2,
         {{6, 6, 3, 1, 1, 1}, {7, 4, 3, 2, 1, 1}},
         5,
         1,
         17,
         5,
         "strides=[1,2] pads=[1,1,1,1] together=2"},
        {2,
         {{7, 4, 1, 2, 1, 0}, {9, 3, 1, 4, 1, 0}},
         3,
         2,
         7,
         5,
         "group=2 strides=[2,4] together=1"},
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        check(&cases[i], "ConvDataGrad", SMALL, WEIGHT, LARGE);
}

/* Sums of nothing are 0. */
TEST(conv_grad__without_images_or_channels)
{
    static const grad_case cases[] = {
        {1, {{9, 7, 3, 1, 1, 0}}, 0, 1, 3, 5, ""},
        {1, {{9, 7, 3, 1, 1, 0}}, 0, 3, 1, 1, "group=3"},
        {1, {{9, 7, 3, 1, 1, 0}}, 2, 1, 0, 5, ""},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        check(&cases[i], "ConvFilterGrad", LARGE, SMALL, WEIGHT);
        check(&cases[i], "ConvDataGrad", SMALL, WEIGHT, LARGE);
    }
}

static const grad_case transposed[] = {
    {2, {{13, 13, 3, 1, 1, 1}, {19, 19, 3, 1, 1, 1}}, 2, 1, 37, 5, "pads=[1,1,1,1]"},
    {2,
     {{16, 7, 3, 2, 1, 0}, {19, 9, 4, 2, 1, 1}},
     2,
     1,
     5,
     7,
     "strides=[2,2] "
     "output_padding=[1,1] "
     "pads=[0,1,0,1]"},
    {2,
     {{9, 4, 3, 2, 1, 0}, {11, 9, 2, 1, 2, 0}},
     2,
     3,
     5,
     3,
     "group=3 strides=[2,1] "
     "dilations=[1,2]"},
    {2, {{7, 7, 1, 1, 1, 0}, {9, 9, 1, 1, 1, 0}}, 2, 1, 19, 21, ""},
    /* larger than all windows */
    {1, {{31, 9, 5, 2, 1, 0}}, 3, 1, 11, 3, "strides=[2] output_shape=[31]"},
    {2, {{9, 9, 3, 1, 1, 1}, {45, 45, 3, 1, 1, 1}}, 2, 19, 1, 1, "group=19 pads=[1,1,1,1]"},
    {3,
     {{4, 3, 2, 1, 1, 0}, {5, 3, 3, 2, 1, 1}, {7, 7, 1, 1, 1, 0}},
     2,
     1,
     5,
     3,
     "strides=[1,2,1] pads=[0,1,0,0,1,0]"},
};

TEST(conv_grad__data_of_transposed)
{
    for (size_t i = 0; i < COUNT(transposed); i++)
        check(&transposed[i], "ConvTransposeDataGrad", LARGE, WEIGHT, SMALL);
}

TEST(conv_grad__weights_of_transposed)
{
    for (size_t i = 0; i < COUNT(transposed); i++)
        check(&transposed[i], "ConvTransposeFilterGrad", SMALL, LARGE, WEIGHT);
}

/* The shape that is asked for must give a convolution whose output has the gradient's shape. */
TEST(conv_grad__refuses_other_shapes)
{
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"a: f32[1,2,5]; b: f32[2,3,3]; d = [1,3,8]; y = clgraph.ConvDataGrad(a, b, d); out y",
         "output is [1,2,6], its gradient [1,2,5]"},
        {"a: f32[1,2,5]; b: f32[2,3,3]; d = [2,3,7]; y = clgraph.ConvDataGrad(a, b, d); out y",
         "output is [2,2,5], its gradient [1,2,5]"},
        {"a: f32[1,3,7]; b: f32[1,2,5]; d = [2,3,2]; y = clgraph.ConvFilterGrad(a, b, d); out y",
         "output is [1,2,6], its gradient [1,2,5]"},
        {"a: f32[1,3,7]; b: f32[1,2,5]; d = [2,3,-3]; y = clgraph.ConvFilterGrad(a, b, d); out y",
         "a dimension of its result is negative"},
        {"a: f32[1,3,7]; b: f32[1,2,5]; d = [2,3]; y = clgraph.ConvFilterGrad(a, b, d); out y",
         "must be equal"},
        {"a: f32[1,3,7]; b: f32[2,3,3]; d = [1,2,4]; y = clgraph.ConvTransposeDataGrad(a, b, d); "
         "out y",
         "output is [1,3,6], its gradient [1,3,7]"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        clg_model *model = NULL;
        assert_int_equal(model_create(graph_text_read(18, cases[i].text), false, &model),
                         CLG_ERROR_SHAPE);
        if (!strstr(clg_last_error(), cases[i].words))
            fail_msg("%s: %s", cases[i].text, clg_last_error());
    }
}

/* Without self-tests: with them, kernels of the other class stand in for those that give wrong
 * results. */
static int open_places(void **state)
{
    assert_true(platform_set_env("CLG_SELFTEST", "off"));
    return run_node_open(state);
}

TEST_GROUP(open_places, run_node_close)
