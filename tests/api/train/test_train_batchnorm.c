/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests BatchNormalization in training: running statistics against their recurrence in double,
 * where the variance is the mean of squares less the square of the mean; in which form steps and
 * evaluations compute; which statistics are left alone; checkpoints and exported models.
 */
#include "support/unit.h"

#include "support/fixtures/graph_text.h"
#include "support/fixtures/pocl_context.h"
#include "support/fixtures/train/trainer_setup.h"
#include "support/literals.h"
#include "support/scratch.h"

#include <clgraph/inspect.h>
#include <clgraph/train.h>

#include <math.h>
#include <string.h>

TEST_GROUP(open_context, close_context)

enum { ROWS = 5, CHANNELS = 3, PIXELS = 4, N = ROWS * CHANNELS * PIXELS, STEPS = 4 };

#define MOMENTUM 0.75
#define INPUTS "x: f64[N,3,4]; s = f64[3]; b = f64[3]; m = f64[3]; v = f64[3]; "
#define PREDICTION INPUTS "y = BatchNormalization(x, s, b, m, v) momentum=0.75; out y"
#define TRAINING                                                                                   \
    INPUTS                                                                                         \
    "y, p, q = BatchNormalization(x, s, b, m, v) momentum=0.75 training_mode=1; out y"

typedef struct trial {
    const char *text;
    int64_t opset;
    clg_train_form form;
    bool population;
    uint32_t accumulate;
    clg_kernel_class kernels;
    const char *freeze;
} trial;

static clg_trainer *open_trainer(const trial *k)
{
    trainer_setup s = trainer_setup_of(CLG_LOSS_MSE);
    s.session.kernels = k->kernels;
    s.train.batchnorm = k->form;
    s.train.population_variance = k->population;
    s.train.accumulate = k->accumulate;
    s.freeze = k->freeze;
    return trainer_setup_open(&s, context, graph_text_model(k->opset ? k->opset : 15, k->text));
}

/* ---- data ------------------------------------------------------------------------------------ */

static double x_of(int batch, int i) { return 0.25 * ((batch * 11 + i * 7) % 23) - 2; }
static double target_of(int batch, int i) { return 0.5 * ((batch * 3 + i * 5) % 7) - 1.5; }

static void set(clg_trainer *t, const char *name, double (*of)(int, int), int batch, int rows)
{
    clg_value *v;
    assert_ok(clg_value_create(CLG_FLOAT64, 3, DIMS(rows, CHANNELS, PIXELS), &v));
    for (int i = 0; i < rows * CHANNELS * PIXELS; i++)
        ((double *)clg_value_data(v))[i] = of(batch, i);
    assert_ok(clg_trainer_set_input(t, name, v));
    clg_value_free(v);
}

static void set_batch(clg_trainer *t, int batch)
{
    set(t, "x", x_of, batch, ROWS);
    set(t, "target", target_of, batch, ROWS);
}

static void step(clg_trainer *t, int batch)
{
    set_batch(t, batch);
    assert_ok(clg_trainer_step(t, NULL));
}

static void read_channels(clg_trainer *t, const char *name, double out[CHANNELS])
{
    clg_value *v;
    assert_ok(clg_trainer_get_parameter(t, name, &v));
    memcpy(out, clg_value_data(v), CHANNELS * sizeof *out);
    clg_value_free(v);
}

static void write_channels(clg_trainer *t, const char *name, const double values[CHANNELS])
{
    clg_value *v;
    assert_ok(clg_value_create(CLG_FLOAT64, 1, DIMS(CHANNELS), &v));
    memcpy(clg_value_data(v), values, CHANNELS * sizeof *values);
    assert_ok(clg_trainer_set_parameter(t, name, v));
    clg_value_free(v);
}

static void expect_near(const double *got, const double *want)
{
    for (int c = 0; c < CHANNELS; c++)
        if (!(fabs(got[c] - want[c]) <= 1e-12))
            fail_msg("channel %d is %.17g, not %.17g", c, got[c], want[c]);
}

static void batch_moments(int batch, int c, double *mean, double *variance)
{
    double sum = 0, squares = 0;
    for (int r = 0; r < ROWS; r++)
        for (int p = 0; p < PIXELS; p++) {
            const double x = x_of(batch, (r * CHANNELS + c) * PIXELS + p);
            sum += x;
            squares += x * x;
        }
    *mean = sum / (ROWS * PIXELS);
    *variance = squares / (ROWS * PIXELS) - *mean * *mean;
}

/* Updates running statistics by a batch. */
static void follow(int batch, bool population, double mean[CHANNELS], double variance[CHANNELS])
{
    const double n = ROWS * PIXELS, rest = 1 - MOMENTUM;
    for (int c = 0; c < CHANNELS; c++) {
        double m, v;
        batch_moments(batch, c, &m, &v);
        mean[c] = mean[c] * MOMENTUM + m * rest;
        variance[c] = variance[c] * MOMENTUM + v * (population ? 1 : n / (n - 1)) * rest;
    }
}

/* Returns the mean squared error of a batch, where the statistics are these, or the batch's own. */
static double loss_of(clg_trainer *t, int batch, const double *mean, const double *variance)
{
    double s[CHANNELS], b[CHANNELS], sum = 0;
    read_channels(t, "s", s);
    read_channels(t, "b", b);
    for (int i = 0; i < N; i++) {
        const int c = i / PIXELS % CHANNELS;
        double m, v;
        batch_moments(batch, c, &m, &v);
        if (mean) m = mean[c];
        if (variance) v = variance[c];
        const double y = s[c] * (x_of(batch, i) - m) / sqrt(v + (double)1e-5f) + b[c];
        sum += (y - target_of(batch, i)) * (y - target_of(batch, i));
    }
    return sum / N;
}

/* ---- running statistics ---------------------------------------------------------------------- */

static const double ones[CHANNELS] = {1, 0.5, 2};

/* Follows the statistics of a training, step by step, and the loss of an evaluation after each. */
static void check_statistics(const trial *k)
{
    double mean[CHANNELS], variance[CHANNELS], got[CHANNELS], loss;
    const int n_batches = k->accumulate > 1 ? (int)k->accumulate : 1;
    clg_trainer *t = open_trainer(k);
    write_channels(t, "v", ones);
    read_channels(t, "m", mean);
    read_channels(t, "v", variance);
    expect_near(variance, ones);
    for (int n = 0; n < STEPS; n++) {
        double before[CHANNELS];
        clg_train_stats stats = CLG_TRAIN_STATS_INIT;
        for (int i = 0; i < n_batches; i++) {
            if (i > 0) { /* not before the step is done */
                read_channels(t, "m", before);
                expect_near(before, got);
            } else {
                read_channels(t, "m", got);
            }
            set_batch(t, n * n_batches + i);
            const double want = loss_of(t, n * n_batches + i, NULL, NULL);
            assert_ok(clg_trainer_step(t, &stats));
            if (n_batches == 1) assert_true(fabs(stats.loss - want) <= 1e-12 * (1 + want));
            follow(n * n_batches + i, k->population, mean, variance);
        }
        read_channels(t, "m", got);
        expect_near(got, mean);
        read_channels(t, "v", got);
        expect_near(got, variance);
        set_batch(t, 9);
        assert_ok(clg_trainer_evaluate(t, &loss));
        const double want = loss_of(t, 9, mean, variance);
        assert_true(fabs(loss - want) <= 1e-12 * (1 + want));
    }
    clg_trainer_free(t);
}

TEST(train_batchnorm__statistics_of_nodes_in_training_mode)
{
    const trial trials[] = {
        {.text = TRAINING, .kernels = CLG_KERNELS_SIMD},
        {.text = TRAINING, .kernels = CLG_KERNELS_SIMT, .population = true},
        {.text = TRAINING, .kernels = CLG_KERNELS_SIMT, .accumulate = 2},
        {.text = TRAINING, .kernels = CLG_KERNELS_SIMD, .accumulate = 3, .population = true},
        {.text = INPUTS "y, p, q = BatchNormalization(x, s, b, m, v) momentum=0.75; out y",
         .opset = 9},
        /* without outputs of the new statistics */
        {.text = INPUTS "y = BatchNormalization(x, s, b, m, v) momentum=0.75 training_mode=1; "
                        "out y"}};
    for (size_t i = 0; i < sizeof trials / sizeof *trials; i++) check_statistics(&trials[i]);
}

TEST(train_batchnorm__statistics_of_nodes_in_the_form_of_prediction)
{
    trial k = {.text = PREDICTION, .form = CLG_FORM_TRAINING};
    check_statistics(&k);
    k.opset = 7;
    check_statistics(&k);
    k.opset = 9;
    k.accumulate = 2;
    k.kernels = CLG_KERNELS_SIMT;
    check_statistics(&k);
}

/* ---- forms ----------------------------------------------------------------------------------- */

/* Checks that a trainer has no statistics, and that its step uses the model's. */
static void check_fixed(const trial *k)
{
    clg_value *v;
    clg_train_stats stats = CLG_TRAIN_STATS_INIT;
    clg_model *m;
    double loss;
    clg_trainer *t = open_trainer(k);
    assert_error(clg_trainer_get_parameter(t, "m", &v), CLG_ERROR_NOT_FOUND, "no parameter \'m\'");
    set_batch(t, 0);
    assert_ok(clg_trainer_evaluate(t, &loss));
    assert_ok(clg_trainer_step(t, &stats));
    assert_true(fabs(stats.loss - loss) <= 1e-12 * (1 + loss));
    assert_ok(clg_trainer_model(t, &m));
    clg_model_free(m);
    clg_trainer_free(t);
}

#define POSITIVE "x: f64[N,3,4]; s = f64[3]; b = f64[3]; m = f64[3]; q = f64[3]; v = Mul(q, q); "

TEST(train_batchnorm__statistics_stay_where_nothing_asks_for_others)
{
    check_fixed(&(trial){.text = POSITIVE "y = BatchNormalization(x, s, b, m, v); out y"});
    check_fixed(&(trial){.text = POSITIVE "y = BatchNormalization(x, s, b, m, v); out y",
                         .form = CLG_FORM_TRAINING,
                         .freeze = "m"});
    check_fixed(
        &(trial){.text = POSITIVE "y = BatchNormalization(x, s, b, m, v) training_mode=1; out y",
                 .form = CLG_FORM_PREDICTION});
}

/* A frozen node in training mode uses the batch's statistics, as its file says. */
TEST(train_batchnorm__frozen_statistics_of_a_node_in_training_mode)
{
    clg_value *v;
    clg_train_stats stats = CLG_TRAIN_STATS_INIT;
    clg_trainer *t = open_trainer(&(trial){.text = TRAINING, .freeze = "v"});
    assert_error(clg_trainer_get_parameter(t, "m", &v), CLG_ERROR_NOT_FOUND, "no parameter \'m\'");
    set_batch(t, 2);
    const double want = loss_of(t, 2, NULL, NULL);
    assert_ok(clg_trainer_step(t, &stats));
    assert_true(fabs(stats.loss - want) <= 1e-12 * (1 + want));
    clg_trainer_free(t);
}

/* Two nodes with the same statistics: the second one moves what the first one left. */
TEST(train_batchnorm__statistics_of_two_nodes)
{
    double mean[CHANNELS], variance[CHANNELS], got[CHANNELS];
    clg_trainer *t =
        open_trainer(&(trial){.text = INPUTS "y = BatchNormalization(x, s, b, m, v) momentum=0.75; "
                                             "z = BatchNormalization(x, s, b, m, v) momentum=0.75; "
                                             "r = Add(y, z); out r",
                              .form = CLG_FORM_TRAINING});
    read_channels(t, "m", mean);
    read_channels(t, "v", variance);
    for (int n = 0; n < 2; n++) {
        step(t, n);
        follow(n, false, mean, variance);
        follow(n, false, mean, variance);
        read_channels(t, "m", got);
        expect_near(got, mean);
        read_channels(t, "v", got);
        expect_near(got, variance);
    }
    clg_trainer_free(t);
}

/* Exporters merge initializers with equal numbers: training parts them. */
TEST(train_batchnorm__merged_initializers)
{
    double first[CHANNELS], second[CHANNELS], mean[CHANNELS];
    clg_model *m;
    clg_trainer *t = open_trainer(
        &(trial){.text = "x: f64[N,3,4]; s = f64[3]; b = f64[3]; m = Identity(b); v = Identity(s); "
                         "y = BatchNormalization(x, s, b, m, v) momentum=0.75; "
                         "z = BatchNormalization(y, s, b, b, s) momentum=0.75; out z",
                 .form = CLG_FORM_TRAINING});
    assert_int_equal(clg_trainer_n_parameters(t), 2);
    read_channels(t, "b", mean);
    step(t, 0);
    read_channels(t, "m", first);
    read_channels(t, "b_2", second);
    for (int c = 0; c < CHANNELS; c++) assert_true(first[c] != second[c]);
    follow(0, false, mean, (double[CHANNELS]){0});
    expect_near(first, mean);
    assert_ok(clg_trainer_model(t, &m));
    assert_int_equal(clg_model_n_initializers(m), 6);
    clg_model_free(m);
    clg_trainer_free(t);
}

TEST(train_batchnorm__one_value_has_no_variance)
{
    const trial k = {.text = "x: f64[N,3]; s = f64[3]; b = f64[3]; m = f64[3]; v = f64[3]; "
                             "y = BatchNormalization(x, s, b, m, v); out y",
                     .form = CLG_FORM_TRAINING};
    trial other = k;
    clg_value *v;
    double got[CHANNELS];
    other.population = true;
    for (int i = 0; i < 2; i++) {
        clg_trainer *t = open_trainer(i == 0 ? &k : &other);
        write_channels(t, "v", ones);
        assert_ok(clg_value_create(CLG_FLOAT64, 2, DIMS(1, CHANNELS), &v));
        memset(clg_value_data(v), 0, CHANNELS * sizeof(double));
        assert_ok(clg_trainer_set_input(t, "x", v));
        assert_ok(clg_trainer_set_input(t, "target", v));
        clg_value_free(v);
        if (i == 0) {
            assert_error(clg_trainer_step(t, NULL), CLG_ERROR_SHAPE, "batch is too small");
        } else {
            assert_ok(clg_trainer_step(t, NULL));
        }
        read_channels(t, "v", got);
        for (int c = 0; c < CHANNELS; c++)
            assert_true(fabs(got[c] - ones[c] * (i == 0 ? 1 : (double)0.9f)) <= 1e-12);
        clg_trainer_free(t);
    }
}

/* No value has no variance of a sample either: the batch is empty. */
TEST(train_batchnorm__no_value_has_no_variance)
{
    const trial k = {.text = "x: f64[N,3]; s = f64[3]; b = f64[3]; m = f64[3]; v = f64[3]; "
                             "y = BatchNormalization(x, s, b, m, v); out y",
                     .form = CLG_FORM_TRAINING};
    clg_trainer *t = open_trainer(&k);
    clg_value *v;
    double got[CHANNELS];
    write_channels(t, "v", ones);
    assert_ok(clg_value_create(CLG_FLOAT64, 2, DIMS(0, CHANNELS), &v));
    assert_ok(clg_trainer_set_input(t, "x", v));
    assert_ok(clg_trainer_set_input(t, "target", v));
    clg_value_free(v);
    assert_error(clg_trainer_step(t, NULL), CLG_ERROR_SHAPE, "batch is too small");
    read_channels(t, "v", got);
    for (int c = 0; c < CHANNELS; c++) assert_true(got[c] == ones[c]);
    clg_trainer_free(t);
}

/* ---- results --------------------------------------------------------------------------------- */

TEST(train_batchnorm__the_exported_model_has_its_form)
{
    clg_model *m;
    clg_session *s;
    clg_node_info *nodes;
    size_t n_nodes;
    clg_value *x, *y;
    double mean[CHANNELS], variance[CHANNELS], scale[CHANNELS], bias[CHANNELS];
    clg_trainer *t = open_trainer(&(trial){.text = PREDICTION, .form = CLG_FORM_TRAINING});
    write_channels(t, "v", ones);
    for (int n = 0; n < 3; n++) step(t, n);
    read_channels(t, "m", mean);
    read_channels(t, "v", variance);
    read_channels(t, "s", scale);
    read_channels(t, "b", bias);
    assert_ok(clg_trainer_model(t, &m));
    clg_trainer_free(t);
    assert_ok(clg_model_nodes(m, &nodes, &n_nodes));
    assert_int_equal(n_nodes, 1);
    assert_string_equal(nodes[0].op_type, "BatchNormalization");
    clg_node_list_free(nodes, n_nodes);
    assert_ok(clg_session_create(context, m, NULL, &s));
    assert_ok(clg_value_create(CLG_FLOAT64, 3, DIMS(ROWS, CHANNELS, PIXELS), &x));
    for (int i = 0; i < N; i++) ((double *)clg_value_data(x))[i] = x_of(5, i);
    assert_ok(clg_session_set_input(s, "x", x));
    assert_ok(clg_session_run(s));
    assert_ok(clg_session_get_output(s, "y", &y));
    for (int i = 0; i < N; i++) {
        const int c = i / PIXELS % CHANNELS;
        const double want =
            scale[c] * (x_of(5, i) - mean[c]) / sqrt(variance[c] + (double)1e-5f) + bias[c];
        assert_true(fabs(((double *)clg_value_data(y))[i] - want) <= 1e-12);
    }
    clg_value_free(x);
    clg_value_free(y);
    clg_session_free(s);
    clg_model_free(m);
}

TEST(train_batchnorm__checkpoints_go_on_with_the_same_bits)
{
    static const char *const names[] = {"s", "b", "m", "v"};
    const char *path = scratch_path("cut.npz");
    for (uint32_t accumulate = 1; accumulate <= 2; accumulate++) {
        const trial k = {.text = PREDICTION, .form = CLG_FORM_TRAINING, .accumulate = accumulate};
        double whole[4][CHANNELS], got[CHANNELS];
        clg_trainer *t = open_trainer(&k);
        for (int n = 0; n < 6; n++) step(t, n);
        for (int i = 0; i < 4; i++) read_channels(t, names[i], whole[i]);
        clg_trainer_free(t);
        for (int at = 0; at <= 6; at += 2) {
            t = open_trainer(&k);
            for (int n = 0; n < at; n++) step(t, n);
            assert_ok(clg_trainer_save(t, path));
            clg_trainer_free(t);
            t = open_trainer(&k);
            step(t, 50); /* is forgotten */
            assert_ok(clg_trainer_load(t, path));
            for (int n = at; n < 6; n++) step(t, n);
            for (int i = 0; i < 4; i++) {
                read_channels(t, names[i], got);
                assert_memory_equal(got, whole[i], sizeof got);
            }
            clg_trainer_free(t);
        }
    }
}

/* A file may leave the first output out. */
TEST(train_batchnorm__without_its_output)
{
    clg_trainer *t = NULL;
    trainer_setup s = trainer_setup_of(CLG_LOSS_MSE);
    s.train.batchnorm = CLG_FORM_TRAINING;
    clg_model *m = graph_text_model(
        15, "x: f64[N,3]; s = f64[3]; b = f64[3]; m = f64[3]; v = f64[3]; w = f64[3]; "
            "_, p, q = BatchNormalization(x, s, b, m, v) training_mode=1; y = Mul(x, w); out y");
    const clg_status status = trainer_setup_create(&s, context, m, &t);
    if (status == CLG_OK) assert_int_equal(clg_trainer_n_parameters(t), 1);
    clg_trainer_free(t);
}

TEST(train_batchnorm__refuses)
{
    clg_trainer *t;
    trainer_setup s = trainer_setup_of(CLG_LOSS_MSE);
    s.train.batchnorm = (clg_train_form)3;
    assert_error(trainer_setup_create(&s, context, graph_text_model(15, PREDICTION), &t),
                 CLG_ERROR_INVALID_ARGUMENT, "batchnorm is 3");
    t = open_trainer(&(trial){.text = PREDICTION, .form = CLG_FORM_TRAINING});
    clg_value *v;
    assert_ok(clg_value_create(CLG_FLOAT64, 1, DIMS(CHANNELS), &v));
    assert_error(clg_trainer_set_input(t, "m", v), CLG_ERROR_INVALID_ARGUMENT, "not an input");
    assert_error(clg_trainer_get_gradient(t, "m", &(clg_value *){NULL}), CLG_ERROR_NOT_FOUND,
                 "no parameter 'm'");
    clg_value_free(v);
    clg_trainer_free(t);
}
