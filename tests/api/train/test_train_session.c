/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests sessions of a trainer: they give what the model gives with the parameters as they are now,
 * after steps, changes and loads, in the form of prediction, and without a copy.
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

enum { ROWS = 4, IN = 3, OUT = 2, N = ROWS * OUT };

/* With an output besides that of the loss, a parameter that only the loss depends on, statistics
 * and a Dropout. */
#define MODEL                                                                                      \
    "x: f64[N,3]; w = f64[3,2]; s = f64[2]; b = f64[2]; m = f64[2]; v = f64[2]; c = true; "        \
    "k = f64[2]; h = MatMul(x, w); n, p, q = BatchNormalization(h, s, b, m, v) training_mode=1; "  \
    "y = Dropout(n, _, c); scaled = Mul(y, k); out h y"

static clg_trainer *open_trainer(void)
{
    clg_value *v;
    trainer_setup s = trainer_setup_of(CLG_LOSS_MSE);
    s.loss.output = "scaled";
    s.schedule.rate = 0.125;
    clg_trainer *t = trainer_setup_open(&s, context, graph_text_model(15, MODEL));
    assert_ok(clg_value_create(CLG_FLOAT64, 1, DIMS(OUT), &v));
    ((double *)clg_value_data(v))[0] = 1;
    ((double *)clg_value_data(v))[1] = 0.5;
    assert_ok(clg_trainer_set_parameter(t, "v", v));
    clg_value_free(v);
    return t;
}

static clg_value *numbers(int columns, int first)
{
    clg_value *v;
    assert_ok(clg_value_create(CLG_FLOAT64, 2, DIMS(ROWS, columns), &v));
    for (int i = 0; i < ROWS * columns; i++)
        ((double *)clg_value_data(v))[i] = 0.25 * ((first + i * 5) % 9) - 1;
    return v;
}

static void step(clg_trainer *t, int n)
{
    clg_value *x = numbers(IN, n), *target = numbers(OUT, n + 1);
    assert_ok(clg_trainer_set_input(t, "x", x));
    assert_ok(clg_trainer_set_input(t, "target", target));
    assert_ok(clg_trainer_step(t, NULL));
    clg_value_free(x);
    clg_value_free(target);
}

static void read_numbers(clg_trainer *t, const char *name, double *out, size_t n)
{
    clg_value *v;
    assert_ok(clg_trainer_get_parameter(t, name, &v));
    memcpy(out, clg_value_data(v), n * sizeof *out);
    clg_value_free(v);
}

/* Compares y of a session with the parameters of the trainer. */
static void check(clg_session *s, clg_trainer *t)
{
    double w[IN * OUT], scale[OUT], bias[OUT], mean[OUT], variance[OUT];
    clg_value *x = numbers(IN, 40), *y;
    assert_ok(clg_session_set_input(s, "x", x));
    assert_ok(clg_session_run(s));
    assert_ok(clg_session_get_output(s, "y", &y));
    read_numbers(t, "w", w, IN * OUT); /* only now, since the trainer may have work to end */
    read_numbers(t, "s", scale, OUT);
    read_numbers(t, "b", bias, OUT);
    read_numbers(t, "m", mean, OUT);
    read_numbers(t, "v", variance, OUT);
    for (int i = 0; i < N; i++) {
        double h = 0;
        const int o = i % OUT;
        for (int k = 0; k < IN; k++)
            h += ((double *)clg_value_data(x))[i / OUT * IN + k] * w[k * OUT + o];
        const double want = scale[o] * (h - mean[o]) / sqrt(variance[o] + (double)1e-5f) + bias[o];
        assert_true(fabs(((double *)clg_value_data(y))[i] - want) <= 1e-12 * (1 + fabs(want)));
    }
    clg_value_free(x);
    clg_value_free(y);
}

TEST(train_session__predicts_with_parameters_as_they_are)
{
    clg_session *s;
    clg_trainer *t = open_trainer();
    assert_ok(clg_trainer_session(t, &s));
    check(s, t);
    for (int n = 0; n < 3; n++) {
        step(t, n);
        check(s, t);
    }
    clg_value *w;
    assert_ok(clg_value_create(CLG_FLOAT64, 2, DIMS(IN, OUT), &w));
    for (int i = 0; i < IN * OUT; i++) ((double *)clg_value_data(w))[i] = i;
    assert_ok(clg_trainer_set_parameter(t, "w", w));
    clg_value_free(w);
    check(s, t);
    clg_session_free(s);
    clg_trainer_free(t);
}

TEST(train_session__outlives_the_trainer)
{
    clg_session *s, *other;
    clg_value *x = numbers(IN, 3), *first, *second;
    clg_trainer *t = open_trainer();
    step(t, 0);
    assert_ok(clg_trainer_session(t, &s));
    assert_ok(clg_trainer_session(t, &other));
    clg_trainer_free(t);
    for (int i = 0; i < 2; i++) {
        clg_session *each = i == 0 ? s : other;
        assert_ok(clg_session_set_input(each, "x", x));
        assert_ok(clg_session_run(each));
        assert_ok(clg_session_get_output(each, "y", i == 0 ? &first : &second));
        clg_session_free(each);
    }
    assert_memory_equal(clg_value_data(first), clg_value_data(second), N * sizeof(double));
    clg_value_free(first);
    clg_value_free(second);
    clg_value_free(x);
}
