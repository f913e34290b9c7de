/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests clg_model_add_loss: each loss against its definition in long double, in float64 and
 * float32; what is taken in place of probabilities; names; refusals.
 */
#include "support/unit.h"

#include "support/fixtures/build_session.h"
#include "support/fixtures/pocl_context.h"
#include "support/fixtures/sized_data.h"
#include "support/literals.h"

#include <clgraph/train.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

TEST_GROUP(open_context, close_context)

enum { ROWS = 6, CLASSES = 5, PIXELS = 3, MAX = ROWS * CLASSES * PIXELS };

/* ---- models ---------------------------------------------------------------------------------- */

/* y is the result of an operator on x; NULL: 2 x. rank 2: [n,CLASSES], 3: [n,CLASSES,PIXELS]. */
static clg_model *model_of(clg_dtype dtype, size_t rank, const char *op_type)
{
    clg_model *m;
    clg_builder *g = start_graph();
    assert_ok(clg_builder_input(g, "x", dtype, rank, DIMS(-1, CLASSES, PIXELS), NULL));
    assert_ok(clg_builder_node(g, "", "Add", NULL, 2, NAMES("x", "x"), 1, NAMES("twice")));
    if (op_type) {
        assert_ok(clg_builder_node(g, "", op_type, NULL, 1, NAMES("twice"), 1, NAMES("y")));
        if (strcmp(op_type, "Softmax") == 0) assert_ok(clg_builder_attribute_int(g, "axis", 1));
        assert_ok(clg_builder_output(g, "y"));
    } else {
        assert_ok(clg_builder_output(g, "twice"));
    }
    assert_ok(clg_builder_build(g, &m));
    clg_builder_free(g);
    return m;
}

typedef struct loss_case {
    clg_dtype dtype;
    size_t rank;
    const char *op_type;
    clg_loss_options options;
    long double y[MAX], t[MAX]; /* what the loss takes, and targets */
    int64_t classes[MAX];
} loss_case;

static double x_of(int i)
{
    return 0.25 * ((i * 37) % 29) - 3.5 + (i == 4 ? 20 : i == 7 ? -20 : 0);
}

static loss_case *new_case(clg_loss kind, clg_dtype dtype, size_t rank)
{
    loss_case *c = calloc(1, sizeof *c);
    assert_non_null(c);
    c->dtype = dtype;
    c->rank = rank;
    c->options = (clg_loss_options)CLG_LOSS_OPTIONS_INIT;
    c->options.kind = kind;
    for (int i = 0; i < MAX; i++) {
        c->y[i] = 2 * x_of(i);
        c->t[i] = 0.125 * ((i * 11) % 9);
        c->classes[i] = (i * 7) % CLASSES;
    }
    return c;
}

static int per_row(const loss_case *c) { return CLASSES * (c->rank == 3 ? PIXELS : 1); }

static void set_numbers(clg_session *s, const char *name, const loss_case *c, bool is_x)
{
    double doubles[MAX];
    float floats[MAX];
    const int64_t dims[] = {ROWS, CLASSES, PIXELS};
    for (int i = 0; i < MAX; i++) {
        doubles[i] = is_x ? x_of(i) : (double)c->t[i];
        floats[i] = (float)doubles[i];
    }
    assert_ok(sized_input(s, name, c->dtype, c->rank, dims,
                          c->dtype == CLG_FLOAT64 ? (void *)doubles : (void *)floats));
}

/* Compares the loss with `expected`, and frees the case. */
static void check(loss_case *c, bool has_classes, long double expected)
{
    clg_model *m = model_of(c->dtype, c->rank, c->op_type), *with_loss;
    clg_session *s;
    clg_value *v;
    const long double tolerance = c->dtype == CLG_FLOAT64 ? 1e-13L : 1e-6L;
    assert_ok(clg_model_add_loss(m, &c->options, &with_loss));
    clg_model_free(m);
    assert_int_equal(clg_model_n_outputs(with_loss), 1);
    assert_string_equal(clg_model_output(with_loss, 0)->name, "loss");
    assert_int_equal(clg_model_output(with_loss, 0)->rank, 0);
    assert_ok(clg_session_create(context, with_loss, NULL, &s));
    clg_model_free(with_loss);
    set_numbers(s, "x", c, true);
    if (has_classes)
        assert_ok(sized_input(s, "target", CLG_INT64, c->rank - 1, DIMS(ROWS, PIXELS), c->classes));
    else if (c->options.kind != CLG_LOSS_OUTPUT)
        set_numbers(s, "target", c, false);
    assert_ok(clg_session_run(s));
    assert_ok(clg_session_get_output(s, "loss", &v));
    const long double got =
        c->dtype == CLG_FLOAT64 ? *(double *)clg_value_data(v) : *(float *)clg_value_data(v);
    if (!(fabsl(got - expected) <= tolerance * (1 + fabsl(expected))))
        fail_msg("loss %d is %.17Lg, not %.17Lg", (int)c->options.kind, got, expected);
    clg_value_free(v);
    clg_session_free(s);
    free(c);
}

/* ---- losses of numbers ----------------------------------------------------------------------- */

typedef long double (*term)(long double y, long double t);

static long double squared(long double y, long double t) { return (y - t) * (y - t); }
static long double distance(long double y, long double t) { return fabsl(y - t); }
static long double huber(long double y, long double t) /* delta 0.75 */
{
    const long double d = fabsl(y - t);
    return d <= 0.75L ? d * d / 2 : 0.75L * (d - 0.375L);
}
static long double binary(long double y, long double t)
{
    return -t * -log1pl(expl(-y)) - (1 - t) * (-y - log1pl(expl(-y)));
}

TEST(loss__of_numbers)
{
    static const struct {
        clg_loss kind;
        term of;
        const char *op_type;
    } rows[] = {{CLG_LOSS_MSE, squared, NULL},
                {CLG_LOSS_L1, distance, NULL},
                {CLG_LOSS_HUBER, huber, NULL},
                {CLG_LOSS_BCE_WITH_LOGITS, binary, NULL},
                {CLG_LOSS_BCE_WITH_LOGITS, binary, "Sigmoid"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int k = 0; k < 4; k++) {
            loss_case *c = new_case(rows[i].kind, k % 2 ? CLG_FLOAT32 : CLG_FLOAT64, k < 2 ? 2 : 3);
            long double sum = 0;
            const int n = ROWS * per_row(c);
            c->op_type = rows[i].op_type;
            c->options.delta = 0.75F;
            for (int e = 0; e < n; e++) sum += rows[i].of(c->y[e], c->t[e]);
            check(c, false, sum / n);
        }
}

/* ---- losses of classes ----------------------------------------------------------------------- */

/* Returns the logarithm of the probability of class k at (row, pixel). */
static long double log_softmax(const loss_case *c, int row, int pixel, int64_t k)
{
    const int step = c->rank == 3 ? PIXELS : 1, at = row * per_row(c) + pixel;
    long double sum = 0;
    for (int i = 0; i < CLASSES; i++) sum += expl(c->y[at + i * step] - c->y[at]);
    return c->y[at + k * step] - c->y[at] - logl(sum);
}

static long double weight_of(const loss_case *c, int64_t k)
{
    return c->options.weights ? (long double)c->options.weights[k] : 1;
}

static long double cross_entropy(const loss_case *c)
{
    const int n_pixels = c->rank == 3 ? PIXELS : 1;
    const long double e = (long double)c->options.label_smoothing;
    long double sum = 0, n = 0;
    for (int row = 0; row < ROWS; row++)
        for (int pixel = 0; pixel < n_pixels; pixel++) {
            const int64_t target = c->classes[row * n_pixels + pixel];
            if (c->options.has_ignore_index && target == c->options.ignore_index) continue;
            n += weight_of(c, target);
            sum -= (1 - e) * weight_of(c, target) * log_softmax(c, row, pixel, target);
            for (int k = 0; k < CLASSES; k++)
                sum -= e / CLASSES * weight_of(c, k) * log_softmax(c, row, pixel, k);
        }
    return sum / n;
}

TEST(loss__cross_entropy)
{
    for (int k = 0; k < 16; k++) {
        loss_case *c =
            new_case(CLG_LOSS_CROSS_ENTROPY, k % 2 ? CLG_FLOAT32 : CLG_FLOAT64, k & 2 ? 3 : 2);
        if (k & 4) c->op_type = "Softmax";
        if (k & 8) c->options.label_smoothing = 0.25F;
        check(c, true, cross_entropy(c));
    }
    for (int k = 0; k < 2; k++) {
        loss_case *c = new_case(CLG_LOSS_CROSS_ENTROPY, CLG_FLOAT64, k ? 3 : 2);
        c->options.has_ignore_index = true;
        c->options.ignore_index = 2;
        check(c, true, cross_entropy(c));
    }
}

static const float some_weights[CLASSES] = {0.5F, 2, 0, 1, 0.125F};

TEST(loss__weights_of_classes)
{
    for (int k = 0; k < 12; k++) {
        loss_case *c =
            new_case(CLG_LOSS_CROSS_ENTROPY, k % 2 ? CLG_FLOAT32 : CLG_FLOAT64, k & 2 ? 3 : 2);
        c->options.weights = some_weights;
        c->options.n_weights = CLASSES;
        if (k & 4) c->options.label_smoothing = 0.25F;
        if (k & 8) c->options.has_ignore_index = true;
        c->options.ignore_index = 2;
        check(c, true, cross_entropy(c));
    }
}

TEST(loss__nll)
{
    for (int k = 0; k < 4; k++) {
        loss_case *c = new_case(CLG_LOSS_NLL, k % 2 ? CLG_FLOAT32 : CLG_FLOAT64, k < 2 ? 2 : 3);
        const int n = ROWS * (c->rank == 3 ? PIXELS : 1), step = c->rank == 3 ? PIXELS : 1;
        long double sum = 0, weights = 0;
        if (k & 2) c->options.weights = some_weights;
        c->options.n_weights = k & 2 ? CLASSES : 0;
        for (int i = 0; i < n; i++) {
            const long double weight = weight_of(c, c->classes[i]);
            sum -= weight * c->y[i / step * per_row(c) + (int)c->classes[i] * step + i % step];
            weights += weight;
        }
        check(c, true, sum / weights);
    }
}

/* ---- names and refusals ---------------------------------------------------------------------- */

TEST(loss__names_that_the_model_has)
{
    clg_builder *g = start_graph();
    clg_model *m, *with_loss;
    clg_loss_options o = CLG_LOSS_OPTIONS_INIT;
    assert_ok(clg_builder_input(g, "target", CLG_FLOAT32, 2, DIMS(-1, 3), NAMES("rows", NULL)));
    assert_ok(clg_builder_node(g, "", "Neg", NULL, 1, NAMES("target"), 1, NAMES("loss")));
    assert_ok(clg_builder_node(g, "", "Exp", NULL, 1, NAMES("loss"), 1, NAMES("other")));
    assert_ok(clg_builder_output(g, "other"));
    assert_ok(clg_builder_build(g, &m));
    clg_builder_free(g);
    o.kind = CLG_LOSS_MSE;
    o.output = "loss"; /* not an output of the model */
    assert_ok(clg_model_add_loss(m, &o, &with_loss));
    assert_int_equal(clg_model_n_inputs(with_loss), 2);
    const clg_port *target = clg_model_input(with_loss, 1);
    assert_string_equal(target->name, "target_2");
    assert_int_equal(target->rank, 2);
    assert_int_equal(target->dims[1], 3);
    assert_string_equal(clg_model_output(with_loss, 0)->name, "loss_2");
    clg_model_free(with_loss);
    o.target = "wanted";
    assert_ok(clg_model_add_loss(m, &o, &with_loss));
    assert_string_equal(clg_model_input(with_loss, 1)->name, "wanted");
    clg_model_free(with_loss);
    clg_model_free(m);
}

static void expect_refused(const char *op_type, const clg_loss_options *o, clg_status status,
                           const char *words)
{
    clg_model *m = model_of(CLG_FLOAT32, 2, op_type), *out;
    assert_error(clg_model_add_loss(m, o, &out), status, words);
    assert_null(out);
    clg_model_free(m);
}

/* [n,CLASSES,2] and a Softmax along an axis; pixels: the last size. */
static clg_status add_after_softmax(const char *op_type, int64_t opset, int64_t axis,
                                    int64_t pixels, const clg_loss_options *o)
{
    clg_model *m, *out = NULL;
    clg_builder *g;
    assert_ok(clg_builder_create(opset, &g));
    assert_ok(clg_builder_input(g, "x", CLG_FLOAT32, 3, DIMS(-1, CLASSES, pixels), NULL));
    assert_ok(clg_builder_node(g, "", op_type, NULL, 1, NAMES("x"), 1, NAMES("y")));
    if (axis != 9) assert_ok(clg_builder_attribute_int(g, "axis", axis));
    assert_ok(clg_builder_output(g, "y"));
    assert_ok(clg_builder_build(g, &m));
    clg_builder_free(g);
    const clg_status status = clg_model_add_loss(m, o, &out);
    clg_model_free(out);
    clg_model_free(m);
    return status;
}

TEST(loss__softmax_over_other_axes)
{
    static const struct {
        int64_t opset, axis, pixels; /* axis 9: the default */
        bool is_right;
    } cases[] = {{13, 1, 2, true},  {13, -2, 2, true}, {13, 2, 2, false},  {13, 9, 2, false},
                 {13, 9, 1, false}, {13, 0, 2, false}, {11, 9, 2, false},  {11, 9, 1, true},
                 {11, 1, 1, true},  {11, 2, 2, false}, {11, 9, -1, false}, {11, 0, 1, false}};
    clg_loss_options o = CLG_LOSS_OPTIONS_INIT;
    for (size_t i = 0; i < 2 * sizeof cases / sizeof *cases; i++) {
        const size_t k = i / 2;
        const char *op_type = i % 2 ? "LogSoftmax" : "Softmax";
        o.kind = i % 2 ? CLG_LOSS_NLL : CLG_LOSS_CROSS_ENTROPY;
        const clg_status status =
            add_after_softmax(op_type, cases[k].opset, cases[k].axis, cases[k].pixels, &o);
        if (cases[k].is_right) {
            assert_ok(status);
        } else {
            assert_error(status, CLG_ERROR_INVALID_ARGUMENT, op_type);
            assert_error(status, CLG_ERROR_INVALID_ARGUMENT, "are axis 1");
        }
    }
}

TEST(loss__refuses)
{
    clg_loss_options o = CLG_LOSS_OPTIONS_INIT;
    o.kind = (clg_loss)77;
    expect_refused(NULL, &o, CLG_ERROR_INVALID_ARGUMENT, "unknown loss 77");
    o.kind = CLG_LOSS_OUTPUT;
    expect_refused(NULL, &o, CLG_ERROR_SHAPE, "several elements");
    o.kind = CLG_LOSS_NLL;
    expect_refused("Softmax", &o, CLG_ERROR_INVALID_ARGUMENT, "probabilities of a Softmax");
    o.kind = CLG_LOSS_MSE;
    o.output = "nobody";
    expect_refused(NULL, &o, CLG_ERROR_NOT_FOUND, "'nobody'");
    o.output = NULL;
    o.has_ignore_index = true;
    expect_refused(NULL, &o, CLG_ERROR_INVALID_ARGUMENT, "mse has no ignore_index");
    o.has_ignore_index = false;
    o.label_smoothing = 0.5F;
    expect_refused(NULL, &o, CLG_ERROR_INVALID_ARGUMENT, "label_smoothing is of cross-entropy");
    o.kind = CLG_LOSS_CROSS_ENTROPY;
    o.label_smoothing = 1.5F;
    expect_refused(NULL, &o, CLG_ERROR_INVALID_ARGUMENT, "label_smoothing is 1.5");
    o.label_smoothing = 0;
    o.kind = CLG_LOSS_HUBER;
    o.delta = 0;
    expect_refused(NULL, &o, CLG_ERROR_INVALID_ARGUMENT, "delta is 0");
    o.kind = CLG_LOSS_MSE;
    o.weights = some_weights;
    expect_refused(NULL, &o, CLG_ERROR_INVALID_ARGUMENT, "weights has 0 elements");
    o.n_weights = CLASSES;
    expect_refused(NULL, &o, CLG_ERROR_INVALID_ARGUMENT, "mse has no weights");
    o.kind = CLG_LOSS_NLL;
    o.n_weights = CLASSES - 1;
    expect_refused(NULL, &o, CLG_ERROR_SHAPE, "5 classes, and the loss 4 weights");
    o.weights = (const float[CLASSES]){1, 1, -1};
    expect_refused(NULL, &o, CLG_ERROR_INVALID_ARGUMENT, "the weight of class 2 is -1");
    o.kind = CLG_LOSS_MSE;
    o.weights = NULL;
    o.n_weights = 0;
    expect_refused("ArgMax", &o, CLG_ERROR_UNSUPPORTED_DTYPE, "'y'");
}
