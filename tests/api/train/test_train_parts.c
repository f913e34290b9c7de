/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests batches that are computed in parts: their steps are those of whole batches, checkpoints go
 * on with any number of parts, and what has no such parts is refused with its reason.
 */
#include "support/unit.h"

#include "support/fixtures/graph_text.h"
#include "support/fixtures/pocl_context.h"
#include "support/fixtures/train/linear_model.h"
#include "support/fixtures/train/trainer_setup.h"
#include "support/literals.h"
#include "support/scratch.h"

#include <clgraph/train.h>

#include <math.h>
#include <string.h>

TEST_GROUP(open_context, close_context)

enum { STEPS = 3 };

/* ---- steps ----------------------------------------------------------------------------------- */

static clg_trainer *open_linear(uint32_t accumulate, uint32_t parts)
{
    trainer_setup s = trainer_setup_of(CLG_LOSS_MSE);
    s.optimizer.kind = CLG_OPTIMIZER_SGD;
    s.optimizer.momentum = 0.5;
    s.schedule.rate = 0.125;
    s.train.clip_norm = 0.5;
    s.train.accumulate = accumulate;
    s.train.parts = parts;
    return trainer_setup_open(&s, context, linear_model(CLG_FLOAT64));
}

static void set_rows(clg_trainer *t, const char *name, int width, double (*of)(int, int), int batch,
                     int first, int n)
{
    clg_value *v;
    assert_ok(clg_value_create(CLG_FLOAT64, 2, DIMS(n, width), &v));
    for (int i = 0; i < n * width; i++)
        ((double *)clg_value_data(v))[i] = of(batch, first * width + i);
    assert_ok(clg_trainer_set_input(t, name, v));
    clg_value_free(v);
}

/* Makes a step of `accumulate` batches, each in n_parts parts. */
static void step(clg_trainer *t, int n, int accumulate, int n_parts, double *out_loss)
{
    clg_train_stats stats = CLG_TRAIN_STATS_INIT;
    const uint64_t before = clg_trainer_n_steps(t);
    for (int k = 0; k < accumulate * n_parts; k++) {
        const int batch = n * accumulate + k / n_parts, rows = LINEAR_ROWS / n_parts;
        assert_int_equal(clg_trainer_n_steps(t), before);
        set_rows(t, "x", LINEAR_IN, linear_x, batch, k % n_parts * rows, rows);
        set_rows(t, "target", LINEAR_OUT, linear_target, batch, k % n_parts * rows, rows);
        assert_ok(clg_trainer_step(t, &stats));
    }
    assert_int_equal(clg_trainer_n_steps(t), before + 1);
    *out_loss = stats.loss;
}

static void read_weights(clg_trainer *t, double out[LINEAR_WEIGHTS])
{
    clg_value *v;
    assert_ok(clg_trainer_get_parameter(t, "weight", &v));
    assert_ok(clg_value_read(v, out, LINEAR_WEIGHTS * sizeof *out));
    clg_value_free(v);
}

/* 1e-12: a few roundings of float64 at numbers around 1. */
static void expect_near(const double *a, const double *b, int n)
{
    for (int i = 0; i < n; i++) assert_true(fabs(a[i] - b[i]) <= 1e-12);
}

TEST(parts__make_the_steps_of_whole_batches)
{
    for (int accumulate = 1; accumulate <= 2; accumulate++) {
        double whole[LINEAR_WEIGHTS], parts[LINEAR_WEIGHTS], start[LINEAR_WEIGHTS], losses[2];
        clg_trainer *a = open_linear((uint32_t)accumulate, 0),
                    *b = open_linear((uint32_t)accumulate, LINEAR_ROWS);
        assert_ok(clg_trainer_check_parts(a));
        read_weights(a, start);
        for (int n = 0; n < STEPS; n++) {
            step(a, n, accumulate, 1, &losses[0]);
            step(b, n, accumulate, LINEAR_ROWS, &losses[1]);
            expect_near(&losses[0], &losses[1], 1);
        }
        read_weights(a, whole);
        read_weights(b, parts);
        expect_near(whole, parts, LINEAR_WEIGHTS);
        assert_true(fabs(whole[0] - start[0]) > 1e-3);
        clg_trainer_free(a);
        clg_trainer_free(b);
    }
}

/* ---- checkpoints ----------------------------------------------------------------------------- */

TEST(parts__are_not_in_checkpoints)
{
    double whole[LINEAR_WEIGHTS], cut[LINEAR_WEIGHTS], loss;
    const char *path = scratch_path("parts.npz");
    clg_trainer *t = open_linear(2, 0);
    for (int n = 0; n < 4; n++) step(t, n, 2, 1, &loss);
    read_weights(t, whole);
    clg_trainer_free(t);
    /* one part, five, one, five: each loads what the other saved */
    for (int n = 0; n < 4; n++) {
        const int n_parts = n % 2 == 0 ? 1 : LINEAR_ROWS;
        t = open_linear(2, (uint32_t)n_parts);
        if (n > 0) assert_ok(clg_trainer_load(t, path));
        step(t, n, 2, n_parts, &loss);
        assert_ok(clg_trainer_save(t, path));
        read_weights(t, cut);
        clg_trainer_free(t);
    }
    expect_near(whole, cut, LINEAR_WEIGHTS);
    t = open_linear(2 * LINEAR_ROWS, 1);
    assert_error(clg_trainer_load(t, path), CLG_ERROR_INVALID_ARGUMENT,
                 "it has 'accumulate 2', the trainer 'accumulate 10'");
    clg_trainer_free(t);
}

TEST(parts__of_a_step_are_limited)
{
    clg_trainer *t;
    trainer_setup s = trainer_setup_of(CLG_LOSS_MSE);
    s.train.accumulate = 65536;
    s.train.parts = 65536;
    assert_error(trainer_setup_create(&s, context, linear_model(CLG_FLOAT32), &t),
                 CLG_ERROR_INVALID_ARGUMENT, "accumulate is 65536 and parts 65536");
    s.train.parts = 65535;
    assert_ok(trainer_setup_create(&s, context, linear_model(CLG_FLOAT32), &t));
    clg_trainer_free(t);
    assert_error(clg_trainer_check_parts(NULL), CLG_ERROR_INVALID_ARGUMENT, "trainer");
}

/* ---- what has parts -------------------------------------------------------------------------- */

#define LINEAR "x: f32[N,3]; w = f32[3,4]; h = MatMul(x, w); "
#define NORMALISED "x: f32[N,3]; s = f32[3]; b = f32[3]; m = f32[3]; v = f32[3]; "
#define TRAINS "c = true; y = Dropout(h, _, c); out y"
#define DROPS_NOT "y = Dropout(h); out y"

TEST(parts__are_refused_by_the_form_of_training)
{
    static const struct {
        const char *text;
        clg_train_form dropout, batchnorm;
        const char *words; /* NULL: accepted */
    } cases[] = {
        {LINEAR DROPS_NOT, CLG_FORM_MODEL, CLG_FORM_MODEL, NULL},
        {LINEAR DROPS_NOT, CLG_FORM_PREDICTION, CLG_FORM_MODEL, NULL},
        {LINEAR DROPS_NOT, CLG_FORM_TRAINING, CLG_FORM_MODEL, "it trains"},
        {LINEAR TRAINS, CLG_FORM_MODEL, CLG_FORM_MODEL, "it trains"},
        {LINEAR TRAINS, CLG_FORM_PREDICTION, CLG_FORM_MODEL, NULL},
        {LINEAR "out h", CLG_FORM_TRAINING, CLG_FORM_TRAINING, NULL},
        {NORMALISED "y = BatchNormalization(x, s, b, m, v); out y", CLG_FORM_MODEL, CLG_FORM_MODEL,
         NULL},
        {NORMALISED "y = BatchNormalization(x, s, b, m, v); out y", CLG_FORM_MODEL,
         CLG_FORM_TRAINING, "of a part"},
        {NORMALISED "y, p, q = BatchNormalization(x, s, b, m, v) training_mode=1; out y",
         CLG_FORM_MODEL, CLG_FORM_MODEL, "of a part"},
        {NORMALISED "y, p, q = BatchNormalization(x, s, b, m, v) training_mode=1; out y",
         CLG_FORM_MODEL, CLG_FORM_PREDICTION, NULL},
        {"x: f32[N,3]; w = f32[3]; h = ReduceMean(x) axes=[0]; y = Mul(h, w); out y",
         CLG_FORM_MODEL, CLG_FORM_MODEL, "ReduceMean"},
        {"x: f32[N,3]; w = f32[3]; r = RandomNormalLike(x); h = Mul(r, w); y = Add(h, x); out y",
         CLG_FORM_MODEL, CLG_FORM_MODEL, "RandomNormalLike"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        trainer_setup s = trainer_setup_of(CLG_LOSS_MSE);
        s.train.dropout = cases[i].dropout;
        s.train.batchnorm = cases[i].batchnorm;
        clg_trainer *t = trainer_setup_open(&s, context, graph_text_model(15, cases[i].text));
        if (cases[i].words)
            assert_error(clg_trainer_check_parts(t), CLG_ERROR_UNSUPPORTED_OPERATOR,
                         cases[i].words);
        else
            assert_ok(clg_trainer_check_parts(t));
        clg_trainer_free(t);
    }
}

/* Statistics that are frozen leave a BatchNormalization in the form of prediction. */
TEST(parts__of_frozen_statistics)
{
    trainer_setup s = trainer_setup_of(CLG_LOSS_MSE);
    s.train.batchnorm = CLG_FORM_TRAINING;
    s.freeze = "m";
    clg_trainer *t = trainer_setup_open(
        &s, context,
        graph_text_model(15, NORMALISED "y = BatchNormalization(x, s, b, m, v); out y"));
    assert_ok(clg_trainer_check_parts(t));
    clg_trainer_free(t);
}

TEST(parts__are_refused_by_the_loss)
{
    static const float weights[] = {1, 2, 3, 4};
    for (int i = 0; i < 4; i++) {
        static const char *const words[] = {NULL, "not ignored", "weights of classes",
                                            "own loss need not be"};
        trainer_setup s = trainer_setup_of(CLG_LOSS_CROSS_ENTROPY);
        s.loss.has_ignore_index = i == 1;
        s.loss.weights = i == 2 ? weights : NULL;
        s.loss.n_weights = i == 2 ? 4 : 0;
        if (i == 3) s.loss.kind = CLG_LOSS_OUTPUT;
        clg_trainer *t = trainer_setup_open(
            &s, context,
            graph_text_model(15, i < 3 ? LINEAR "out h" : LINEAR "y = ReduceMean(h); out y"));
        if (words[i])
            assert_error(clg_trainer_check_parts(t), CLG_ERROR_UNSUPPORTED_OPERATOR, words[i]);
        else
            assert_ok(clg_trainer_check_parts(t));
        clg_trainer_free(t);
    }
}
