/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests the counts of right predictions, of steps and of evaluations, against loops over y = x + b
 * in double: with several targets a row, equal scores, and an index that does not count.
 */
#include "support/unit.h"

#include "support/fixtures/graph_text.h"
#include "support/fixtures/pocl_context.h"
#include "support/fixtures/train/trainer_setup.h"
#include "support/literals.h"

#include <clgraph/train.h>

#include <math.h>
#include <string.h>

TEST_GROUP(open_context, close_context)

enum { ROWS = 30, CLASSES = 5, PIXELS = 3, SCORES = ROWS * CLASSES * PIXELS };

#define FLAT "x: f64[N,5]; b = f64[5]; y = Add(x, b); out y"
#define DEEP "x: f64[N,5,3]; b = f64[5,1]; y = Add(x, b); out y"

typedef struct trial {
    clg_loss kind;
    int pixels; /* 1: FLAT */
    bool has_ignore_index, step_metrics;
    uint32_t accumulate;
    clg_kernel_class kernels;
} trial;

static clg_trainer *open_trainer(const trial *k)
{
    trainer_setup s = trainer_setup_of(k->kind);
    s.loss.has_ignore_index = k->has_ignore_index;
    s.loss.ignore_index = 2;
    s.schedule.rate = 0.5;
    s.session.kernels = k->kernels;
    s.train.step_metrics = k->step_metrics;
    s.train.accumulate = k->accumulate;
    return trainer_setup_open(&s, context, graph_text_model(18, k->pixels == 1 ? FLAT : DEEP));
}

/* Whole numbers, of which many are equal. */
static double x_of(int batch, int i) { return (batch * 5 + i * i * 7) % 11; }
static int64_t target_of(int batch, int i) { return (batch + i * 3 + i / 4) % CLASSES; }

static void set_batch(clg_trainer *t, const trial *k, int batch)
{
    clg_value *x, *target;
    const size_t rank = k->pixels == 1 ? 2 : 3;
    assert_ok(clg_value_create(CLG_FLOAT64, rank, DIMS(ROWS, CLASSES, PIXELS), &x));
    assert_ok(clg_value_create(CLG_INT64, rank - 1, DIMS(ROWS, PIXELS), &target));
    for (int i = 0; i < ROWS * CLASSES * k->pixels; i++)
        ((double *)clg_value_data(x))[i] = x_of(batch, i);
    for (int i = 0; i < ROWS * k->pixels; i++)
        ((int64_t *)clg_value_data(target))[i] = target_of(batch, i);
    assert_ok(clg_trainer_set_input(t, "x", x));
    assert_ok(clg_trainer_set_input(t, "target", target));
    clg_value_free(x);
    clg_value_free(target);
}

/* Adds the counts of a batch with the parameters as they are. */
static void count(clg_trainer *t, const trial *k, int batch, uint64_t *n_right, uint64_t *n_counted)
{
    clg_value *v;
    double b[CLASSES];
    assert_ok(clg_trainer_get_parameter(t, "b", &v));
    memcpy(b, clg_value_data(v), sizeof b);
    clg_value_free(v);
    for (int i = 0; i < ROWS * k->pixels; i++) {
        const int row = i / k->pixels, pixel = i % k->pixels;
        int best = 0;
        double y[CLASSES];
        for (int c = 0; c < CLASSES; c++) {
            y[c] = x_of(batch, (row * CLASSES + c) * k->pixels + pixel) + b[c];
            if (y[c] > y[best]) best = c;
        }
        const int64_t target = target_of(batch, i);
        if (k->has_ignore_index && target == 2) continue;
        *n_right += best == target;
        *n_counted += 1;
    }
}

static void check(const trial *k)
{
    clg_trainer *t = open_trainer(k);
    const int n_batches = k->accumulate > 1 ? (int)k->accumulate : 1;
    clg_value *zeros;
    assert_ok(clg_value_create(CLG_FLOAT64, k->pixels == 1 ? 1 : 2, DIMS(CLASSES, 1), &zeros));
    memset(clg_value_data(zeros), 0, CLASSES * sizeof(double));
    assert_ok(clg_trainer_set_parameter(t, "b", zeros));
    clg_value_free(zeros);
    for (int n = 0; n < 4; n++) {
        clg_train_stats stats = CLG_TRAIN_STATS_INIT;
        clg_measures measures = CLG_MEASURES_INIT;
        uint64_t n_right = 0, n_counted = 0, n_step_right = 0, n_step_counted = 0;
        double loss;
        set_batch(t, k, 10 + n);
        count(t, k, 10 + n, &n_right, &n_counted);
        assert_true(n_right > 0 && n_right < n_counted);
        assert_ok(clg_trainer_measure(t, &measures));
        assert_int_equal(measures.n_right, n_right);
        assert_int_equal(measures.n_counted, n_counted);
        assert_ok(clg_trainer_evaluate(t, &loss));
        assert_true(loss == measures.loss);
        for (int i = 0; i < n_batches; i++) {
            set_batch(t, k, n * n_batches + i);
            if (k->step_metrics) count(t, k, n * n_batches + i, &n_step_right, &n_step_counted);
            assert_ok(clg_trainer_step(t, &stats));
        }
        assert_int_equal(stats.n_right, n_step_right);
        assert_int_equal(stats.n_counted, n_step_counted);
    }
    clg_trainer_free(t);
}

TEST(train_metrics__right_predictions)
{
    check(&(trial){.kind = CLG_LOSS_CROSS_ENTROPY, .pixels = 1, .step_metrics = true});
    check(&(trial){.kind = CLG_LOSS_CROSS_ENTROPY, .pixels = 1, .kernels = CLG_KERNELS_SIMT});
    check(&(trial){.kind = CLG_LOSS_CROSS_ENTROPY,
                   .pixels = PIXELS,
                   .has_ignore_index = true,
                   .step_metrics = true,
                   .accumulate = 3});
    check(&(trial){.kind = CLG_LOSS_NLL,
                   .pixels = PIXELS,
                   .has_ignore_index = true,
                   .step_metrics = true,
                   .kernels = CLG_KERNELS_SIMT});
}

TEST(train_metrics__are_of_classes)
{
    clg_measures measures = CLG_MEASURES_INIT;
    clg_value *v;
    const trial k = {.kind = CLG_LOSS_MSE, .pixels = 1, .step_metrics = true};
    clg_trainer *t = open_trainer(&k);
    assert_ok(clg_value_create(CLG_FLOAT64, 2, DIMS(ROWS, CLASSES), &v));
    for (int i = 0; i < ROWS * CLASSES; i++) ((double *)clg_value_data(v))[i] = x_of(0, i);
    assert_ok(clg_trainer_set_input(t, "x", v));
    assert_ok(clg_trainer_set_input(t, "target", v));
    clg_value_free(v);
    measures.n_counted = 7;
    assert_ok(clg_trainer_measure(t, &measures));
    assert_true(measures.loss > 0);
    assert_int_equal(measures.n_counted, 0);
    clg_trainer_free(t);
}
