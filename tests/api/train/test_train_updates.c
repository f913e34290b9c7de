/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests that nobody sees that an update may be in flight after a step: each function that reads or
 * changes what an update gives finds it done, a training gives the same bits whether somebody looks
 * after each step or only at the end, and a step that fails has no update. Sessions that have to
 * run alone do so meanwhile.
 */
#include "support/unit.h"

#include "support/fixtures/graph_text.h"
#include "support/fixtures/pocl_context.h"
#include "support/fixtures/train/linear_model.h"
#include "support/fixtures/train/trainer_setup.h"
#include "support/literals.h"
#include "support/scratch.h"

#include "train/trainer.h"

#include <clgraph/inspect.h>

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

TEST_GROUP(open_context, close_context)

enum { N_STEPS = 4 };

/* What looks at a training after a step, or changes it to what it is. */
typedef void (*look)(clg_trainer *t);

static void no_look(clg_trainer *t) { (void)t; }

static void look_at_parameter(clg_trainer *t)
{
    double p[LINEAR_ALL];
    linear_read(t, p);
}

static void look_at_gradient(clg_trainer *t)
{
    clg_value *v;
    assert_ok(clg_trainer_get_gradient(t, clg_trainer_parameter(t, 0)->name, &v));
    clg_value_free(v);
}

static void look_at_loss(clg_trainer *t)
{
    double loss;
    assert_ok(clg_trainer_evaluate(t, &loss));
}

static void look_at_model(clg_trainer *t)
{
    clg_model *m;
    assert_ok(clg_trainer_model(t, &m));
    clg_model_free(m);
}

static void set_what_is(clg_trainer *t)
{
    clg_value *v;
    assert_ok(clg_trainer_get_parameter(t, "bias", &v));
    assert_ok(clg_trainer_set_parameter(t, "bias", v));
    clg_value_free(v);
}

static void save_and_load(clg_trainer *t)
{
    assert_ok(clg_trainer_save(t, scratch_path("updates.npz")));
    assert_ok(clg_trainer_load(t, scratch_path("updates.npz")));
}

static void make_session(clg_trainer *t)
{
    clg_session *s;
    assert_ok(clg_trainer_session(t, &s));
    clg_session_free(s);
}

static clg_trainer *open_trainer(uint32_t n_batches, double clip_norm)
{
    trainer_setup s = trainer_setup_of(CLG_LOSS_MSE);
    s.optimizer.kind = CLG_OPTIMIZER_ADAM;
    s.schedule.kind = CLG_SCHEDULE_LINEAR;
    s.schedule.rate = 0.25;
    s.schedule.total_steps = N_STEPS;
    s.train.accumulate = n_batches;
    s.train.clip_norm = clip_norm;
    return trainer_setup_open(&s, context, linear_model(CLG_FLOAT64));
}

static void train(uint32_t n_batches, double clip_norm, look after, double out[LINEAR_ALL])
{
    clg_trainer *t = open_trainer(n_batches, clip_norm);
    for (int n = 0; n < N_STEPS * (int)n_batches; n++) {
        linear_set_batch(t, CLG_FLOAT64, n % 3);
        assert_ok(clg_trainer_step(t, NULL));
        after(t);
    }
    linear_read(t, out);
    clg_trainer_free(t);
}

TEST(train_updates__same_bits_whoever_looks)
{
    static const look looks[] = {look_at_parameter, look_at_gradient, look_at_loss, look_at_model,
                                 set_what_is,       save_and_load,    make_session};
    for (uint32_t n_batches = 1; n_batches <= 2; n_batches++) {
        double want[LINEAR_ALL], got[LINEAR_ALL];
        train(n_batches, 0, no_look, want);
        for (size_t i = 0; i < sizeof looks / sizeof *looks; i++) {
            if (n_batches > 1 && looks[i] == save_and_load) continue; /* drops the first batch */
            train(n_batches, 0, looks[i], got);
            assert_memory_equal(want, got, sizeof want);
        }
        train(n_batches, 1e9, no_look, got); /* a norm, which is an output of the update */
        assert_memory_equal(want, got, sizeof want);
    }
}

/* Each function finds the last update done. */
static void see_update(look first)
{
    double start[LINEAR_ALL], now[LINEAR_ALL], g[LINEAR_ALL] = {0};
    trainer_setup s = trainer_setup_of(CLG_LOSS_MSE);
    s.schedule.rate = 0.25;
    clg_trainer *t = trainer_setup_open(&s, context, linear_model(CLG_FLOAT64));
    linear_read(t, start);
    linear_set_batch(t, CLG_FLOAT64, 1);
    assert_ok(clg_trainer_step(t, NULL));
    (void)linear_gradient(start, 1, 1, g);
    first(t);
    linear_read(t, now);
    for (int i = 0; i < LINEAR_ALL; i++)
        assert_true(fabs(now[i] - (start[i] - 0.25 * g[i])) <= 1e-12 * (1 + fabs(start[i])));
    clg_trainer_free(t);
}

TEST(train_updates__each_function_finds_the_update_done)
{
    see_update(no_look);
    see_update(look_at_loss);
    see_update(save_and_load);
    see_update(make_session);
}

TEST(train_updates__losses_are_those_of_the_updated_parameters)
{
    double p[LINEAR_ALL], loss, want, g[LINEAR_ALL] = {0};
    clg_train_stats stats = CLG_TRAIN_STATS_INIT;
    clg_trainer *t = open_trainer(1, 0);
    for (int n = 0; n < 3; n++) {
        linear_set_batch(t, CLG_FLOAT64, n);
        assert_ok(clg_trainer_step(t, &stats));
        assert_ok(clg_trainer_evaluate(t, &loss)); /* before anybody reads parameters */
        linear_read(t, p);
        want = linear_gradient(p, n, 0, g);
        assert_true(fabs(loss - want) <= 1e-12 * (1 + want));
    }
    clg_trainer_free(t);
}

static void set_rows(clg_trainer *t, const char *name, size_t rank, int64_t rows, int64_t size)
{
    clg_value *v;
    const int64_t *dims = rank == 2 ? DIMS(rows, size) : DIMS(rows, 1, size / 8, 8);
    assert_ok(clg_value_create(CLG_FLOAT32, rank, dims, &v));
    for (int64_t i = 0; i < rows * size; i++)
        ((float *)clg_value_data(v))[i] = 0.125f * (float)((i * 5 + rows) % 9);
    assert_ok(clg_trainer_set_input(t, name, v));
    clg_value_free(v);
}

/* A batch of another size is planned while an update is due: the same bits as when it is not. */
TEST(train_updates__batches_of_other_sizes)
{
    static const int64_t rows[] = {33, 33, 5, 33, 1, 17, 5};
    float want[16 * 2], got[16 * 2];
    clg_value *v;
    for (int looks = 0; looks < 2; looks++) {
        trainer_setup s = trainer_setup_of(CLG_LOSS_MSE);
        s.freeze = "f*";
        clg_trainer *t = trainer_setup_open(
            &s, context,
            graph_text_model(
                15, "x: f32[N,1,8,8]; first = f32[8,1,5,5]; frozen = f32[16,8,3,3]; w = f32[16,2]; "
                    "a = Conv(x, first); h = Conv(a, frozen); p = GlobalAveragePool(h); q = "
                    "Flatten(p); "
                    "y = MatMul(q, w); out y"));
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            set_rows(t, "x", 4, rows[i], 64);
            set_rows(t, "target", 2, rows[i], 2);
            assert_ok(clg_trainer_step(t, NULL));
            if (looks) look_at_gradient(t);
        }
        assert_ok(clg_trainer_get_parameter(t, "w", &v));
        memcpy(looks ? want : got, clg_value_data(v), sizeof want);
        clg_value_free(v);
        clg_trainer_free(t);
    }
    assert_memory_equal(want, got, sizeof want);
}

/* From the third step on the update is in flight when a step returns, until somebody looks; and not
 * where a session reads parameters. */
TEST(train_updates__are_in_flight_after_a_step)
{
    static const look looks[] = {look_at_parameter, look_at_gradient, look_at_loss,
                                 look_at_model,     set_what_is,      save_and_load};
    clg_trainer *t = open_trainer(1, 0);
    linear_set_batch(t, CLG_FLOAT64, 0);
    for (int n = 0; n < 2; n++) assert_ok(clg_trainer_step(t, NULL));
    for (size_t i = 0; i < sizeof looks / sizeof *looks; i++) {
        assert_ok(clg_trainer_step(t, NULL));
        assert_true(t->is_updating);
        looks[i](t);
        assert_false(t->is_updating);
    }
    make_session(t);
    assert_ok(clg_trainer_step(t, NULL));
    assert_false(t->is_updating);
    clg_trainer_free(t);
}

/* ---- faults ---------------------------------------------------------------------------------- */

enum { CLASS_ROWS = 6, N_CLASSES = 3 };

#define CLASSES                                                                                    \
    "x: f32[N,3]; w = f32[3]; b = f32[3]; m = f32[3]; v = f32[3]; a = Mul(x, w); "                 \
    "y, p, q = BatchNormalization(a, w, b, m, v) training_mode=1; out y"
static const char *const class_names[] = {"w", "b", "m", "v"};

/* Sets a batch whose first target is the class `first`. */
static void set_classes(clg_trainer *t, int batch, int64_t first)
{
    clg_value *x, *target;
    assert_ok(clg_value_create(CLG_FLOAT32, 2, DIMS(CLASS_ROWS, 3), &x));
    assert_ok(clg_value_create(CLG_INT64, 1, DIMS(CLASS_ROWS), &target));
    for (int i = 0; i < CLASS_ROWS * 3; i++)
        ((float *)clg_value_data(x))[i] = 0.25f * (float)((i * 7 + batch) % 5);
    for (int i = 0; i < CLASS_ROWS; i++)
        ((int64_t *)clg_value_data(target))[i] = i == 0 ? first : (i + batch) % N_CLASSES;
    assert_ok(clg_trainer_set_input(t, "x", x));
    assert_ok(clg_trainer_set_input(t, "target", target));
    clg_value_free(x);
    clg_value_free(target);
}

static void read_classes(clg_trainer *t, float out[4][3])
{
    for (size_t i = 0; i < 4; i++) {
        clg_value *v;
        assert_ok(clg_trainer_get_parameter(t, class_names[i], &v));
        memcpy(out[i], clg_value_data(v), sizeof out[i]);
        clg_value_free(v);
    }
}

/* A label that is not a class: parameters, states and statistics stay, and the training goes on
 * as if that step had not been. */
static void check_label(clg_kernel_class kernels, int64_t label)
{
    float want[4][3], before[4][3], got[4][3];
    for (int fails = 0; fails < 2; fails++) {
        trainer_setup s = trainer_setup_of(CLG_LOSS_CROSS_ENTROPY);
        s.optimizer.kind = CLG_OPTIMIZER_ADAM;
        s.schedule.rate = 0.125;
        s.session.kernels = kernels;
        clg_trainer *t = trainer_setup_open(&s, context, graph_text_model(15, CLASSES));
        for (int n = 0; n < 6; n++) {
            if (fails && n == 4) {
                read_classes(t, before);
                set_classes(t, n, label);
                assert_error(clg_trainer_step(t, NULL), CLG_ERROR_DATA, "");
                read_classes(t, got);
                assert_memory_equal(before, got, sizeof got);
                set_classes(t, n, label); /* again, with an update in flight before it */
                assert_error(clg_trainer_step(t, NULL), CLG_ERROR_DATA, "");
            }
            set_classes(t, n, n % N_CLASSES);
            assert_ok(clg_trainer_step(t, NULL));
            if (n >= 3) assert_true(t->is_updating);
        }
        read_classes(t, fails ? got : want);
        clg_trainer_free(t);
    }
    assert_memory_equal(want, got, sizeof got);
}

TEST(train_updates__none_after_a_fault)
{
    check_label(CLG_KERNELS_SIMD, N_CLASSES);
    check_label(CLG_KERNELS_SIMT, -1);
}

/* ---- beside an update in flight -------------------------------------------------------------- */

static const struct {
    const char *op;
    double (*of)(double);
} functions[] = {{"Sqrt", sqrt}, {"Exp", exp},     {"Sin", sin},   {"Cos", cos},
                 {"Abs", fabs},  {"Floor", floor}, {"Tanh", tanh}, {"Log", log}};

/* Runs a model whose kernel is new to the driver: PoCL before version 4 must run it alone. */
static void run_new_kernel(int n)
{
    char text[64];
    const float x[4] = {0.5f, 1, 2.25f, 4};
    clg_session *s;
    clg_value *v;
    (void)snprintf(text, sizeof text, "x: f32[4]; y = %s(x); out y", functions[n].op);
    clg_model *m = graph_text_model(15, text);
    assert_ok(clg_session_create(context, m, NULL, &s));
    clg_model_free(m);
    assert_ok(clg_session_set_input_data(s, "x", CLG_FLOAT32, 1, DIMS(4), x, sizeof x));
    assert_ok(clg_session_run(s));
    assert_ok(clg_session_get_output(s, "y", &v));
    const float *y = clg_value_data(v);
    for (int i = 0; i < 4; i++)
        assert_true(fabs((double)y[i] - functions[n].of((double)x[i])) <= 1e-4);
    clg_value_free(v);
    clg_session_free(s);
}

static void *run_in_thread(void *user)
{
    run_new_kernel(*(const int *)user);
    return NULL;
}

/* Sessions run in this thread and in another one between steps. */
TEST(train_updates__other_sessions_run_meanwhile)
{
    double want[LINEAR_ALL], got[LINEAR_ALL];
    for (int others = 0; others < 2; others++) {
        clg_trainer *t = open_trainer(1, 0);
        for (int n = 0; n < 8; n++) {
            linear_set_batch(t, CLG_FLOAT64, n % 3);
            assert_ok(clg_trainer_step(t, NULL));
            if (!others || n < 2) continue;
            assert_true(t->is_updating);
            pthread_t id;
            if (n % 2 == 0) {
                run_new_kernel(n);
            } else {
                assert_int_equal(pthread_create(&id, NULL, run_in_thread, &n), 0);
                assert_int_equal(pthread_join(id, NULL), 0);
            }
        }
        linear_read(t, others ? got : want);
        clg_trainer_free(t);
    }
    assert_memory_equal(want, got, sizeof want);
}

/* A trainer is freed with an update that nobody asked for; a model made before keeps its bits. */
TEST(train_updates__a_trainer_may_be_freed_after_a_step)
{
    clg_trainer *t = open_trainer(1, 0);
    linear_set_batch(t, CLG_FLOAT64, 0);
    assert_ok(clg_trainer_step(t, NULL));
    clg_trainer_free(t);
}
