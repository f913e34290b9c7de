/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests trainers on y = x weight + bias with the mean squared error, whose gradients are written
 * out here in double: each optimizer against its recurrence, element by element, in both classes of
 * kernels and in float64; clipping, accumulation, patterns, and what a trainer gives back.
 */
#include "support/unit.h"

#include "support/fixtures/graph_text.h"
#include "support/fixtures/pocl_context.h"
#include "support/fixtures/train/linear_model.h"
#include "support/fixtures/train/trainer_setup.h"
#include "support/literals.h"

#include <clgraph/inspect.h>
#include <clgraph/train.h>

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

TEST_GROUP(open_context, close_context)

enum { STEPS = 7 };

/* ---- trainers -------------------------------------------------------------------------------- */

typedef struct trial {
    clg_dtype dtype;
    clg_kernel_class kernels;
    clg_optimizer_options optimizer;
    double clip_value, clip_norm;
    uint32_t accumulate;
    const char *freeze;
} trial;

static trial trial_of(clg_optimizer kind)
{
    trial k = {.dtype = CLG_FLOAT64,
               .kernels = CLG_KERNELS_SIMD,
               .optimizer = CLG_OPTIMIZER_OPTIONS_INIT,
               .accumulate = 1};
    k.optimizer.kind = kind;
    return k;
}

static clg_trainer *open_trainer(const trial *k)
{
    trainer_setup s = trainer_setup_of(CLG_LOSS_MSE);
    s.optimizer = k->optimizer;
    s.schedule.rate = 0.125;
    s.session.kernels = k->kernels;
    s.train.clip_value = k->clip_value;
    s.train.clip_norm = k->clip_norm;
    s.train.accumulate = k->accumulate;
    s.freeze = k->freeze;
    return trainer_setup_open(&s, context, linear_model(k->dtype));
}

static double element(const clg_value *v, int i)
{
    return clg_value_dtype(v) == CLG_FLOAT64 ? ((double *)clg_value_data(v))[i]
                                             : (double)((float *)clg_value_data(v))[i];
}

/* Reads weight and bias, or their gradients. */
static void read_all(clg_trainer *t,
                     clg_status (*get)(clg_trainer *t, const char *name, clg_value **out),
                     double out[LINEAR_ALL])
{
    clg_value *v;
    assert_ok(get(t, "weight", &v));
    for (int i = 0; i < LINEAR_WEIGHTS; i++) out[i] = element(v, i);
    clg_value_free(v);
    assert_ok(get(t, "bias", &v));
    for (int i = 0; i < LINEAR_OUT; i++) out[LINEAR_WEIGHTS + i] = element(v, i);
    clg_value_free(v);
}

static void expect_near(const double got[LINEAR_ALL], const double want[LINEAR_ALL],
                        double tolerance)
{
    for (int i = 0; i < LINEAR_ALL; i++)
        if (!(fabs(got[i] - want[i]) <= tolerance))
            fail_msg("element %d is %.17g, not %.17g", i, got[i], want[i]);
}

/* ---- optimizers, one element at a time ------------------------------------------------------- */

typedef struct element_state {
    double first, second, third;
} element_state;

static double adam_change(const clg_optimizer_options *o, double rate, int n, double g,
                          element_state *s)
{
    const double eps = o->epsilon < 0 ? 1e-8 : o->epsilon;
    s->first += (1 - o->beta1) * (g - s->first);
    s->second += (1 - o->beta2) * (g * g - s->second);
    const double mean = s->first / (1 - pow(o->beta1, n + 1));
    const double squares = s->second / (1 - pow(o->beta2, n + 1));
    return rate * mean / (sqrt(squares) + eps);
}

static double rmsprop_change(const clg_optimizer_options *o, double rate, double g,
                             element_state *s)
{
    const double eps = o->epsilon < 0 ? 1e-8 : o->epsilon;
    s->first += (1 - o->alpha) * (g * g - s->first);
    double variance = s->first;
    if (o->centered) {
        s->second += (1 - o->alpha) * (g - s->second);
        variance -= s->second * s->second;
    }
    const double scaled = g / (sqrt(variance) + eps);
    if (o->momentum == 0) return rate * scaled;
    s->third = o->momentum * s->third + scaled;
    return rate * s->third;
}

static double sgd_change(const clg_optimizer_options *o, double rate, int n, double g,
                         element_state *s)
{
    if (o->momentum == 0) return rate * g;
    s->first = n == 0 ? g : o->momentum * s->first + (1 - o->dampening) * g;
    return rate * (o->nesterov ? g + o->momentum * s->first : s->first);
}

/* Updates a parameter by step n, from 0 on. */
static void reference_update(const clg_optimizer_options *o, double rate, int n, double g,
                             element_state *s, double *x)
{
    const double eps = o->epsilon < 0 ? 1e-10 : o->epsilon;
    const double with_decay = g + o->weight_decay * *x;
    switch (o->kind) {
    case CLG_OPTIMIZER_ADAM: *x -= adam_change(o, rate, n, with_decay, s); break;
    case CLG_OPTIMIZER_ADAMW:
        *x -= rate * o->weight_decay * *x + adam_change(o, rate, n, g, s);
        break;
    case CLG_OPTIMIZER_ADAGRAD:
        s->first += with_decay * with_decay;
        *x -= rate / (1 + n * o->rate_decay) * with_decay / (sqrt(s->first) + eps);
        break;
    case CLG_OPTIMIZER_RMSPROP: *x -= rmsprop_change(o, rate, with_decay, s); break;
    default: *x -= sgd_change(o, rate, n, with_decay, s);
    }
}

/* Trains, and compares loss, gradients and parameters of each step with the reference. */
static void check(const trial *k)
{
    const double tolerance = k->dtype == CLG_FLOAT64 ? 1e-12 : 2e-5;
    double p[LINEAR_ALL], got[LINEAR_ALL];
    element_state states[LINEAR_ALL] = {{0}};
    clg_trainer *t = open_trainer(k);
    for (int i = 0; i < LINEAR_ALL; i++) p[i] = linear_start(i);
    for (int step = 0; step < STEPS; step++) {
        clg_train_stats stats = CLG_TRAIN_STATS_INIT;
        double g[LINEAR_ALL] = {0}, loss = 0, norm = 0;
        for (uint32_t b = 0; b < k->accumulate; b++) {
            const int batch = step * (int)k->accumulate + (int)b;
            loss += linear_gradient(p, batch, 1.0 / k->accumulate, g) / k->accumulate;
            linear_set_batch(t, k->dtype, batch);
            assert_ok(clg_trainer_step(t, &stats));
            assert_int_equal(stats.step, b + 1 < k->accumulate ? step : step + 1);
        }
        assert_true(fabs(stats.loss - loss) <= tolerance && stats.rate == 0.125);
        for (int i = 0; i < LINEAR_ALL; i++) {
            if (k->clip_value > 0) g[i] = fmin(fmax(g[i], -k->clip_value), k->clip_value);
            norm += g[i] * g[i];
        }
        norm = sqrt(norm);
        if (k->clip_norm > 0) assert_true(fabs(stats.gradient_norm - norm) <= tolerance);
        if (k->clip_norm == 0) assert_true(isnan(stats.gradient_norm));
        const double by = k->clip_norm > 0 ? fmin(1, k->clip_norm / (norm + 1e-6)) : 1;
        for (int i = 0; i < LINEAR_ALL; i++)
            reference_update(&k->optimizer, 0.125, step, g[i] * by, &states[i], &p[i]);
        read_all(t, clg_trainer_get_parameter, got);
        expect_near(got, p, tolerance);
    }
    clg_trainer_free(t);
}

/* In float64 and float32, in both classes of kernels. */
static void check_everywhere(trial k)
{
    for (int kernels = CLG_KERNELS_SIMD; kernels <= CLG_KERNELS_SIMT; kernels++)
        for (int single = 0; single < 2; single++) {
            k.kernels = (clg_kernel_class)kernels;
            k.dtype = single ? CLG_FLOAT32 : CLG_FLOAT64;
            check(&k);
        }
}

TEST(trainer__sgd)
{
    trial k = trial_of(CLG_OPTIMIZER_SGD);
    check_everywhere(k);
    k.optimizer.weight_decay = 0.0625;
    check(&k);
    k.optimizer.momentum = 0.75;
    check_everywhere(k);
    k.optimizer.dampening = 0.25;
    check(&k);
    k.optimizer.dampening = 0;
    k.optimizer.nesterov = true;
    check(&k);
}

TEST(trainer__adam_and_adamw)
{
    for (int kind = CLG_OPTIMIZER_ADAM; kind <= CLG_OPTIMIZER_ADAMW; kind++) {
        trial k = trial_of((clg_optimizer)kind);
        check_everywhere(k);
        k.optimizer.weight_decay = 0.0625;
        k.optimizer.beta1 = 0.75;
        k.optimizer.beta2 = 0.875;
        k.optimizer.epsilon = 0.03125;
        check(&k);
    }
}

TEST(trainer__adagrad)
{
    trial k = trial_of(CLG_OPTIMIZER_ADAGRAD);
    check_everywhere(k);
    k.optimizer.weight_decay = 0.0625;
    k.optimizer.rate_decay = 0.25;
    k.optimizer.epsilon = 0;
    check(&k);
}

TEST(trainer__rmsprop)
{
    trial k = trial_of(CLG_OPTIMIZER_RMSPROP);
    k.optimizer.epsilon = 0.03125;
    check_everywhere(k);
    for (int centered = 0; centered < 2; centered++) {
        k.optimizer.centered = centered;
        k.optimizer.momentum = 0;
        check(&k);
        k.optimizer.momentum = 0.5;
        k.optimizer.weight_decay = 0.0625;
        check(&k);
    }
}

TEST(trainer__gradients_are_cut_and_scaled)
{
    trial k = trial_of(CLG_OPTIMIZER_SGD);
    k.clip_value = 0.125;
    check_everywhere(k);
    k.clip_norm = 0.25;
    check(&k);
    k.clip_value = 0;
    check_everywhere(k);
    k.clip_norm = 1e6; /* never reached */
    check(&k);
}

TEST(trainer__batches_of_a_step_are_averaged)
{
    for (uint32_t n = 2; n <= 3; n++) {
        trial k = trial_of(CLG_OPTIMIZER_ADAM);
        k.accumulate = n;
        check(&k);
        k.clip_norm = 0.25;
        check(&k);
    }
}

/* ---- what a trainer gives -------------------------------------------------------------------- */

TEST(trainer__gradients_are_those_of_the_step)
{
    const trial k = trial_of(CLG_OPTIMIZER_SGD);
    double p[LINEAR_ALL], g[LINEAR_ALL] = {0}, got[LINEAR_ALL];
    clg_trainer *t = open_trainer(&k);
    read_all(t, clg_trainer_get_gradient, got);
    for (int i = 0; i < LINEAR_ALL; i++) assert_true(got[i] == 0);
    for (int i = 0; i < LINEAR_ALL; i++) p[i] = linear_start(i);
    const double loss = linear_gradient(p, 0, 1, g);
    linear_set_batch(t, k.dtype, 0);
    double evaluated;
    assert_ok(clg_trainer_evaluate(t, &evaluated));
    assert_true(fabs(evaluated - loss) <= 1e-12);
    read_all(t, clg_trainer_get_parameter, got); /* as before */
    for (int i = 0; i < LINEAR_ALL; i++) assert_true(got[i] == p[i]);
    assert_ok(clg_trainer_step(t, NULL));
    read_all(t, clg_trainer_get_gradient, got);
    expect_near(got, g, 1e-12);
    clg_trainer_free(t);
}

TEST(trainer__lists_its_parameters)
{
    trial k = trial_of(CLG_OPTIMIZER_SGD);
    clg_value *v;
    clg_trainer *t = open_trainer(&k);
    assert_int_equal(clg_trainer_n_parameters(t), 2); /* "unused" is none */
    assert_string_equal(clg_trainer_parameter(t, 0)->name, "weight");
    assert_int_equal(clg_trainer_parameter(t, 0)->dims[0], LINEAR_IN);
    assert_string_equal(clg_trainer_parameter(t, 1)->name, "bias");
    assert_null(clg_trainer_parameter(t, 2));
    assert_error(clg_trainer_get_parameter(t, "unused", &v), CLG_ERROR_NOT_FOUND, "'unused'");
    clg_trainer_free(t);
    k.freeze = "b*s";
    t = open_trainer(&k);
    assert_int_equal(clg_trainer_n_parameters(t), 1);
    linear_set_batch(t, k.dtype, 0);
    assert_ok(clg_trainer_step(t, NULL));
    assert_error(clg_trainer_get_parameter(t, "bias", &v), CLG_ERROR_NOT_FOUND, "'bias'");
    clg_trainer_free(t);
}

/* Settings of operators are no parameters, numbers without a dimension where they are named. */
TEST(trainer__constants_of_formulas_are_no_parameters)
{
    static const char *const all = "*";
    clg_model *m = graph_text_model(
        15, "x: f32[2,3]; w = f32[3,4]; s = f32[]; low = f32[]; r = f32[]; z = f32[]; "
            "h = MatMul(x, w); p = Mul(h, s); q = Clip(p, low); d = Dropout(q, r); "
            "k = [0,1,0,1]; y = Pad(d, k, z); out y");
    for (int named = 0; named < 2; named++) {
        clg_trainer *t;
        clg_loss_options loss = CLG_LOSS_OPTIONS_INIT;
        clg_train_options options = CLG_TRAIN_OPTIONS_INIT;
        loss.kind = CLG_LOSS_MSE;
        options.loss = &loss;
        options.train = &all;
        options.n_train = (size_t)named;
        assert_ok(clg_trainer_create(context, m, &options, &t));
        assert_int_equal(clg_trainer_n_parameters(t), 1 + named);
        assert_string_equal(clg_trainer_parameter(t, 0)->name, "w");
        if (named) assert_string_equal(clg_trainer_parameter(t, 1)->name, "s");
        clg_trainer_free(t);
    }
    clg_model_free(m);
}

TEST(trainer__parameters_can_be_set)
{
    const trial k = trial_of(CLG_OPTIMIZER_SGD);
    double got[LINEAR_ALL];
    clg_trainer *t = open_trainer(&k);
    clg_value *v = linear_numbers(CLG_FLOAT64, 1, DIMS(LINEAR_OUT), LINEAR_OUT, linear_target, 3);
    assert_ok(clg_trainer_set_parameter(t, "bias", v));
    read_all(t, clg_trainer_get_parameter, got);
    for (int i = 0; i < LINEAR_OUT; i++)
        assert_true(got[LINEAR_WEIGHTS + i] == linear_target(3, i));
    for (int i = 0; i < LINEAR_WEIGHTS; i++) assert_true(got[i] == linear_start(i));
    assert_error(clg_trainer_set_parameter(t, "weight", v), CLG_ERROR_SHAPE, "'weight'");
    clg_value_free(v);
    v = linear_numbers(CLG_FLOAT32, 1, DIMS(LINEAR_OUT), LINEAR_OUT, linear_target, 3);
    assert_error(clg_trainer_set_parameter(t, "bias", v), CLG_ERROR_INVALID_ARGUMENT, "float64");
    assert_error(clg_trainer_set_input(t, "bias", v), CLG_ERROR_INVALID_ARGUMENT, "a parameter");
    clg_value_free(v);
    clg_trainer_free(t);
}

/* The trained model is that of the caller's with other initializers. */
TEST(trainer__gives_the_trained_model)
{
    const trial k = trial_of(CLG_OPTIMIZER_ADAM);
    double p[LINEAR_ALL], got[LINEAR_ROWS * LINEAR_OUT];
    clg_model *m;
    clg_session *s;
    clg_trainer *t = open_trainer(&k);
    for (int step = 0; step < 3; step++) {
        linear_set_batch(t, k.dtype, step);
        assert_ok(clg_trainer_step(t, NULL));
    }
    read_all(t, clg_trainer_get_parameter, p);
    assert_ok(clg_trainer_model(t, &m));
    clg_trainer_free(t);
    assert_int_equal(clg_model_n_inputs(m), 1);
    assert_ok(clg_session_create(context, m, NULL, &s));
    clg_model_free(m);
    clg_value *x = linear_numbers(CLG_FLOAT64, 2, DIMS(LINEAR_ROWS, LINEAR_IN),
                                  LINEAR_ROWS * LINEAR_IN, linear_x, 0);
    assert_ok(clg_session_set_input(s, "x", x));
    clg_value_free(x);
    assert_ok(clg_session_run(s));
    assert_ok(clg_session_get_output_data(s, "y", got, sizeof got));
    for (int r = 0; r < LINEAR_ROWS; r++)
        for (int o = 0; o < LINEAR_OUT; o++) {
            double y = p[LINEAR_WEIGHTS + o];
            for (int i = 0; i < LINEAR_IN; i++)
                y += linear_x(0, r * LINEAR_IN + i) * p[i * LINEAR_OUT + o];
            assert_true(fabs(got[r * LINEAR_OUT + o] - y) <= 1e-12);
        }
    clg_session_free(s);
}

TEST(trainer__same_bits_in_each_run)
{
    double first[LINEAR_ALL], other[LINEAR_ALL];
    for (int run = 0; run < 5; run++) {
        trial k = trial_of(CLG_OPTIMIZER_ADAMW);
        k.dtype = CLG_FLOAT32;
        k.clip_norm = 0.25;
        clg_trainer *t = open_trainer(&k);
        for (int step = 0; step < STEPS; step++) {
            linear_set_batch(t, k.dtype, step);
            assert_ok(clg_trainer_step(t, NULL));
        }
        read_all(t, clg_trainer_get_parameter, run == 0 ? first : other);
        if (run > 0) assert_memory_equal(first, other, sizeof first);
        clg_trainer_free(t);
    }
}

/* Batches of other sizes, and a step that fails in between: it changes nothing, and drops the
 * batches of its step. */
typedef struct canceller {
    clg_trainer *trainer;
    atomic_bool stop;
} canceller;

static void *cancel_now_and_then(void *argument)
{
    canceller *c = argument;
    while (!atomic_load(&c->stop)) {
        clg_trainer_cancel(c->trainer);
        (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    return NULL;
}

/* Batches that are cancelled and given again leave no trace, also in the middle of a step. */
TEST(trainer__cancelled_batches_are_computed_again)
{
    trial k = trial_of(CLG_OPTIMIZER_ADAM);
    double want[LINEAR_ALL], got[LINEAR_ALL];
    pthread_t other;
    k.accumulate = 3;
    clg_trainer *undisturbed = open_trainer(&k);
    canceller c = {.trainer = open_trainer(&k)};
    assert_int_equal(pthread_create(&other, NULL, cancel_now_and_then, &c), 0);
    for (int batch = 0; batch < 10 * STEPS * 3; batch++) {
        linear_set_batch(undisturbed, k.dtype, batch % 5);
        linear_set_batch(c.trainer, k.dtype, batch % 5);
        assert_ok(clg_trainer_step(undisturbed, NULL));
        clg_status status;
        while ((status = clg_trainer_step(c.trainer, NULL)) == CLG_ERROR_CANCELLED) {}
        assert_ok(status);
    }
    atomic_store(&c.stop, true);
    assert_int_equal(pthread_join(other, NULL), 0);
    assert_int_equal(clg_trainer_n_steps(c.trainer), clg_trainer_n_steps(undisturbed));
    read_all(undisturbed, clg_trainer_get_parameter, want);
    read_all(c.trainer, clg_trainer_get_parameter, got);
    assert_memory_equal(want, got, sizeof want);
    clg_trainer_free(c.trainer);
    clg_trainer_free(undisturbed);
    clg_trainer_cancel(NULL);
}

TEST(trainer__goes_on_after_a_failure)
{
    trial k = trial_of(CLG_OPTIMIZER_SGD);
    double p[LINEAR_ALL], got[LINEAR_ALL], g[LINEAR_ALL] = {0};
    k.accumulate = 2;
    clg_trainer *t = open_trainer(&k);
    for (int i = 0; i < LINEAR_ALL; i++) p[i] = linear_start(i);
    linear_set_batch(t, k.dtype, 5);
    assert_ok(clg_trainer_step(t, NULL));
    clg_value *x = linear_numbers(CLG_FLOAT64, 2, DIMS(LINEAR_ROWS - 1, LINEAR_IN),
                                  (LINEAR_ROWS - 1) * LINEAR_IN, linear_x, 0);
    assert_ok(clg_trainer_set_input(t, "x", x));
    clg_value_free(x);
    assert_error(clg_trainer_step(t, NULL), CLG_ERROR_SHAPE, "");
    read_all(t, clg_trainer_get_parameter, got);
    expect_near(got, p, 0);
    for (int batch = 0; batch < 2; batch++) {
        linear_set_batch(t, k.dtype, batch);
        assert_ok(clg_trainer_step(t, NULL));
        (void)linear_gradient(p, batch, 0.5, g);
    }
    for (int i = 0; i < LINEAR_ALL; i++) p[i] -= 0.125 * g[i];
    read_all(t, clg_trainer_get_parameter, got);
    expect_near(got, p, 1e-12);
    clg_trainer_free(t);
}

/* ---- refusals -------------------------------------------------------------------------------- */

static void expect_refused(const clg_train_options *options, clg_status status, const char *words)
{
    clg_trainer *t;
    clg_model *m = linear_model(CLG_FLOAT32);
    assert_error(clg_trainer_create(context, m, options, &t), status, words);
    assert_null(t);
    clg_model_free(m);
}

TEST(trainer__refuses)
{
    clg_loss_options loss = CLG_LOSS_OPTIONS_INIT;
    clg_optimizer_options optimizer = CLG_OPTIMIZER_OPTIONS_INIT;
    clg_session_options session = CLG_SESSION_OPTIONS_INIT;
    clg_train_options o = CLG_TRAIN_OPTIONS_INIT;
    loss.kind = CLG_LOSS_MSE;
    o.loss = &loss;
    o.optimizer = &optimizer;
    o.session = &session;
    const char *nothing = "nothing*", *all = "*";
    o.train = &nothing;
    o.n_train = 1;
    expect_refused(&o, CLG_ERROR_INVALID_ARGUMENT, "no initializer is called 'nothing*'");
    o.n_train = 0;
    o.freeze = &all;
    o.n_freeze = 1;
    expect_refused(&o, CLG_ERROR_INVALID_ARGUMENT, "no parameters");
    o.freeze = NULL;
    expect_refused(&o, CLG_ERROR_INVALID_ARGUMENT, "freeze is NULL");
    o.n_freeze = 0;
    o.clip_norm = -1;
    expect_refused(&o, CLG_ERROR_INVALID_ARGUMENT, "clip_norm is -1");
    o.clip_norm = 0;
    o.clip_value = (double)NAN;
    expect_refused(&o, CLG_ERROR_INVALID_ARGUMENT, "clip_value is");
    o.clip_value = 0;
    session.precision = CLG_PRECISION_FP16;
    expect_refused(&o, CLG_ERROR_INVALID_ARGUMENT, "CLG_PRECISION_FP32 only");
    session.precision = CLG_PRECISION_FP32;
    optimizer.kind = (clg_optimizer)17;
    expect_refused(&o, CLG_ERROR_INVALID_ARGUMENT, "unknown optimizer 17");
    optimizer.kind = CLG_OPTIMIZER_SGD;
    optimizer.momentum = 1;
    expect_refused(&o, CLG_ERROR_INVALID_ARGUMENT, "momentum is 1");
    optimizer.momentum = 0;
    optimizer.nesterov = true;
    expect_refused(&o, CLG_ERROR_INVALID_ARGUMENT, "nesterov needs momentum");
    optimizer.nesterov = false;
    optimizer.epsilon = (double)NAN;
    expect_refused(&o, CLG_ERROR_INVALID_ARGUMENT, "epsilon is");
    optimizer.epsilon = 1;
    loss.kind = CLG_LOSS_OUTPUT; /* y has several elements */
    expect_refused(&o, CLG_ERROR_SHAPE, "has several elements");
}
