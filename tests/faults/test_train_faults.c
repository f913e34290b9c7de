/* SPDX-License-Identifier: Apache-2.0
 *
 * Fails each allocation and each OpenCL call of a trainer in turn: while it is created, in steps
 * and evaluations, and while parameters are read. A call that fails leaves the parameters as they
 * were, or updated, where only the result could not be given; the next step is right.
 */
#include "support/unit.h"

#include "support/fakes/failing_alloc.h"
#include "support/fixtures/faulty/faulty_contexts.h"
#include "support/fixtures/graph_text.h"
#include "support/fixtures/train/linear_model.h"
#include "support/fixtures/train/trainer_setup.h"
#include "support/literals.h"
#include "support/scratch.h"

#include <clgraph/opencl.h>

#include <math.h>
#include <string.h>

static clg_context *context;
static clg_model *model;
static clg_value *inputs[2], *targets[2]; /* by batch */

static int open_group(void **state)
{
    (void)state;
    if (faulty_contexts_open(1, &context) != 0) return -1;
    model = linear_model(CLG_FLOAT64);
    for (int i = 0; i < 2; i++) {
        inputs[i] = linear_numbers(CLG_FLOAT64, 2, DIMS(LINEAR_ROWS, LINEAR_IN),
                                   LINEAR_ROWS * LINEAR_IN, linear_x, i);
        targets[i] = linear_numbers(CLG_FLOAT64, 2, DIMS(LINEAR_ROWS, LINEAR_OUT),
                                    LINEAR_ROWS * LINEAR_OUT, linear_target, i);
    }
    return 0;
}

static int close_group(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        clg_value_free(inputs[i]);
        clg_value_free(targets[i]);
    }
    clg_model_free(model);
    return faulty_contexts_close(1, &context);
}

TEST_GROUP(open_group, close_group)

/* With momentum, a norm and two batches a step, so that all sessions of a trainer are there. */
static clg_status create(clg_trainer **out_trainer)
{
    clg_loss_options loss = CLG_LOSS_OPTIONS_INIT;
    clg_optimizer_options optimizer = CLG_OPTIMIZER_OPTIONS_INIT;
    clg_train_options options = CLG_TRAIN_OPTIONS_INIT;
    loss.kind = CLG_LOSS_MSE;
    optimizer.momentum = 0.5;
    options.loss = &loss;
    options.optimizer = &optimizer;
    options.clip_norm = 1e6;
    options.accumulate = 2;
    return clg_trainer_create(context, model, &options, out_trainer);
}

static clg_trainer *open_trainer(void)
{
    clg_trainer *t;
    assert_ok(create(&t));
    return t;
}

static clg_status create_and_free(void *user)
{
    clg_trainer *t;
    (void)user;
    const clg_status status = create(&t);
    assert_int_equal(status == CLG_OK, t != NULL);
    clg_trainer_free(t);
    return status;
}

TEST(train_faults__each_allocation_of_a_creation)
{
    clg_trainer_free(open_trainer()); /* what the context keeps is there */
    assert_true(fault_loop(create_and_free, NULL) > 300);
}

TEST(train_faults__each_opencl_call_of_a_creation)
{
    clg_trainer *t;
    for (long n = 0;; n++) {
        faults.arm(n, CL_OUT_OF_HOST_MEMORY);
        const clg_status status = create(&t);
        const bool has_fired = faults.has_fired();
        faults.arm(-1, 0);
        assert_int_equal(status == CLG_OK, t != NULL);
        if (status != CLG_OK) assert_true(has_fired && error_text()[0]);
        clg_trainer_free(t);
        if (!has_fired) break;
    }
}

/* ---- steps ----------------------------------------------------------------------------------- */

static clg_status whole_step(clg_trainer *t, clg_train_stats *stats)
{
    clg_status status = CLG_OK;
    for (int batch = 0; batch < 2 && status == CLG_OK; batch++) {
        status = clg_trainer_set_input(t, "x", inputs[batch]);
        if (status == CLG_OK) status = clg_trainer_set_input(t, "target", targets[batch]);
        if (status == CLG_OK) status = clg_trainer_step(t, stats);
    }
    return status;
}

/* Makes steps with a failure in each, and one without after it, which is right for the parameters
 * that it began with. */
static void fail_each_of_steps(void (*arm)(size_t n), bool (*has_failed)(void))
{
    clg_trainer *t = open_trainer();
    size_t n_failed = 0;
    clg_train_stats stats = CLG_TRAIN_STATS_INIT;
    assert_ok(whole_step(t, &stats));
    for (size_t n = 0;; n++) {
        double before[LINEAR_ALL], g[LINEAR_ALL] = {0};
        clg_train_stats after = CLG_TRAIN_STATS_INIT;
        double loss;
        arm(n);
        clg_status status = whole_step(t, &stats);
        if (status == CLG_OK) status = clg_trainer_evaluate(t, &loss);
        const bool failed = has_failed();
        arm(SIZE_MAX);
        if (status != CLG_OK) assert_true(failed && error_text()[0]);
        if (!failed) break;
        n_failed += status != CLG_OK;
        linear_read(t, before);
        loss = linear_gradient(before, 0, 0.5, g) / 2;
        loss += linear_gradient(before, 1, 0.5, g) / 2;
        assert_ok(whole_step(t, &after));
        assert_true(fabs(after.loss - loss) <= 1e-12 * (1 + loss));
    }
    assert_true(n_failed > 5);
    clg_trainer_free(t);
}

TEST(train_faults__each_allocation_of_a_step)
{
    fail_each_of_steps(failing_alloc_arm, failing_alloc_has_failed);
}

static void arm_call(size_t n) { faults.arm(n == SIZE_MAX ? -1 : (long)n, CL_OUT_OF_HOST_MEMORY); }
static bool call_has_failed(void) { return faults.has_fired(); }

TEST(train_faults__each_opencl_call_of_a_step) { fail_each_of_steps(arm_call, call_has_failed); }

/* ---- updates that run with the next step ----------------------------------------------------- */

/* Fails each call of steps without a norm in turn. However a step fails, the parameters are those
 * after as many updates as there are steps. */
static void fail_each_of_updates(void (*arm)(size_t n), bool (*has_failed)(void))
{
    trainer_setup s = trainer_setup_of(CLG_LOSS_MSE);
    s.schedule.rate = 0.125;
    clg_trainer *t = trainer_setup_open(&s, context, linear_model(CLG_FLOAT64));
    double p[LINEAR_ALL];
    size_t n_failed = 0;
    assert_ok(clg_trainer_set_input(t, "x", inputs[0]));
    assert_ok(clg_trainer_set_input(t, "target", targets[0]));
    linear_read(t, p);
    for (size_t n = 0;; n++) {
        const uint64_t before = clg_trainer_n_steps(t);
        double now[LINEAR_ALL];
        arm(n);
        clg_status status = clg_trainer_step(t, NULL);
        if (status == CLG_OK) status = clg_trainer_step(t, NULL);
        const bool failed = has_failed();
        arm(SIZE_MAX);
        if (status != CLG_OK) assert_true(failed && error_text()[0]);
        n_failed += status != CLG_OK;
        for (uint64_t k = before; k < clg_trainer_n_steps(t); k++) {
            double g[LINEAR_ALL] = {0};
            (void)linear_gradient(p, 0, 1, g);
            for (int i = 0; i < LINEAR_ALL; i++) p[i] -= 0.125 * g[i];
        }
        linear_read(t, now);
        for (int i = 0; i < LINEAR_ALL; i++)
            assert_true(fabs(now[i] - p[i]) <= 1e-12 * (1 + fabs(p[i])));
        memcpy(p, now, sizeof p);
        if (!failed) break;
    }
    assert_true(n_failed > 5);
    clg_trainer_free(t);
}

TEST(train_faults__each_allocation_of_an_update)
{
    fail_each_of_updates(failing_alloc_arm, failing_alloc_has_failed);
}

TEST(train_faults__each_opencl_call_of_an_update)
{
    fail_each_of_updates(arm_call, call_has_failed);
}

/* ---- results --------------------------------------------------------------------------------- */

static clg_status read_and_free(void *user)
{
    clg_value *v;
    const clg_status status = clg_trainer_get_parameter(user, "weight", &v);
    assert_int_equal(status == CLG_OK, v != NULL);
    clg_value_free(v);
    return status;
}

static clg_status model_and_free(void *user)
{
    clg_model *m;
    const clg_status status = clg_trainer_model(user, &m);
    assert_int_equal(status == CLG_OK, m != NULL);
    clg_model_free(m);
    return status;
}

static clg_status save(void *user) { return clg_trainer_save(user, scratch_path("good.npz")); }
static clg_status load(void *user) { return clg_trainer_load(user, scratch_path("good.npz")); }

TEST(train_faults__each_allocation_of_a_checkpoint)
{
    clg_trainer *t = open_trainer();
    clg_train_stats stats = CLG_TRAIN_STATS_INIT;
    double before[LINEAR_ALL], after[LINEAR_ALL];
    assert_ok(whole_step(t, &stats));
    linear_read(t, before);
    assert_true(fault_loop(save, t) > 20);
    assert_ok(whole_step(t, &stats));
    assert_true(fault_loop(load, t) > 20);
    linear_read(t, after);
    assert_memory_equal(before, after, sizeof before);
    clg_trainer_free(t);
}

static clg_status predict_and_free(void *user)
{
    clg_session *s;
    const clg_status status = clg_trainer_session(user, &s);
    assert_int_equal(status == CLG_OK, s != NULL);
    clg_session_free(s);
    return status;
}

/* ---- losses that are not finite -------------------------------------------------------------- */

TEST(train_faults__each_allocation_of_a_diagnosis)
{
    double before[LINEAR_ALL], after[LINEAR_ALL];
    clg_trainer *t = open_trainer();
    clg_train_stats stats = CLG_TRAIN_STATS_INIT;
    assert_ok(whole_step(t, &stats));
    clg_value *bad = linear_numbers(CLG_FLOAT64, 2, DIMS(LINEAR_ROWS, LINEAR_IN),
                                    LINEAR_ROWS * LINEAR_IN, linear_x, 0);
    for (int i = 0; i < LINEAR_ROWS * LINEAR_IN; i++) ((double *)clg_value_data(bad))[i] = 1e200;
    assert_ok(clg_trainer_set_input(t, "x", bad));
    clg_value_free(bad);
    linear_read(t, before);
    assert_error(clg_trainer_step(t, NULL), CLG_ERROR_DATA, "of step 2 is inf");
    for (size_t n = 0;; n++) {
        failing_alloc_arm(n);
        const clg_status status = clg_trainer_step(t, NULL);
        const bool failed = failing_alloc_has_failed();
        failing_alloc_arm(SIZE_MAX);
        assert_true(status != CLG_OK && error_text()[0]); /* with or without the cause */
        if (!failed) break;
    }
    assert_error(clg_trainer_step(t, NULL), CLG_ERROR_DATA, "of step 2 is inf");
    linear_read(t, after);
    assert_memory_equal(before, after, sizeof before);
    assert_ok(whole_step(t, &stats));
    assert_int_equal(stats.step, 2);
    clg_trainer_free(t);
}

/* ---- statistics ------------------------------------------------------------------------------ */

/* A failure in a step leaves the running statistics as they were, or the whole step done. */
static void fail_each_of_statistics(void (*arm)(size_t n), bool (*has_failed)(void))
{
    clg_value *v, *x = linear_numbers(CLG_FLOAT64, 2, DIMS(LINEAR_ROWS, LINEAR_IN),
                                      LINEAR_ROWS * LINEAR_IN, linear_x, 0);
    trainer_setup s = trainer_setup_of(CLG_LOSS_MSE);
    s.train.accumulate = 2;
    s.train.batchnorm = CLG_FORM_TRAINING;
    clg_trainer *t = trainer_setup_open(
        &s, context,
        graph_text_model(15, "x: f64[N,3]; s = f64[3]; b = f64[3]; m = f64[3]; v = f64[3]; "
                             "y = BatchNormalization(x, s, b, m, v); out y"));
    assert_ok(clg_trainer_set_input(t, "x", x));
    assert_ok(clg_trainer_set_input(t, "target", x));
    size_t n_failed = 0;
    for (size_t n = 0;; n++) {
        const double before[LINEAR_IN] = {7, 8, 9};
        double after[LINEAR_IN];
        assert_ok(clg_value_create(CLG_FLOAT64, 1, DIMS(LINEAR_IN), &v));
        memcpy(clg_value_data(v), before, sizeof before);
        assert_ok(clg_trainer_set_parameter(t, "m", v));
        clg_value_free(v);
        const uint64_t n_steps = clg_trainer_n_steps(t);
        arm(n);
        clg_status status = clg_trainer_step(t, NULL);
        if (status == CLG_OK) status = clg_trainer_step(t, NULL);
        const bool failed = has_failed();
        arm(SIZE_MAX);
        assert_ok(clg_trainer_get_parameter(t, "m", &v));
        memcpy(after, clg_value_data(v), sizeof after);
        clg_value_free(v);
        const bool is_changed = memcmp(before, after, sizeof before) != 0;
        if (clg_trainer_n_steps(t) > n_steps) assert_true(is_changed);
        if (status == CLG_ERROR_OUT_OF_HOST_MEMORY && !is_changed)
            assert_int_equal(clg_trainer_n_steps(t), n_steps);
        n_failed += status != CLG_OK;
        if (!failed) break;
    }
    assert_true(n_failed > 5);
    clg_value_free(x);
    clg_trainer_free(t);
}

TEST(train_faults__each_allocation_of_statistics)
{
    fail_each_of_statistics(failing_alloc_arm, failing_alloc_has_failed);
}

TEST(train_faults__each_opencl_call_of_statistics)
{
    fail_each_of_statistics(arm_call, call_has_failed);
}

TEST(train_faults__each_allocation_of_results)
{
    clg_trainer *t = open_trainer();
    assert_true(fault_loop(read_and_free, t) > 1);
    assert_true(fault_loop(model_and_free, t) > 10);
    assert_true(fault_loop(predict_and_free, t) > 10);
    clg_trainer_free(t);
}
