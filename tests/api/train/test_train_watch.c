/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests the warning that names parameters without a gradient in the first ten steps.
 */
#include "support/unit.h"

#include "support/fixtures/graph_text.h"
#include "support/fixtures/pocl_context.h"
#include "support/fixtures/train/trainer_setup.h"
#include "support/literals.h"
#include "support/scratch.h"

#include <clgraph/train.h>

#include <string.h>

TEST_GROUP(open_context, close_context)

enum { ROWS = 4, WIDTH = 3, STEPS = 10 };

/* Relu of a negative number has no gradient, and x is all zeros in most steps: so has w. */
#define MODEL                                                                                      \
    "x: f64[N,3]; w = f64[3]; dead = f64[3]; gone = f64[3]; a = Mul(x, w); e = Exp(dead); "        \
    "f = Exp(gone); s = Add(e, f); o = Neg(s); r = Relu(o); y = Add(a, r); out y"

typedef struct warnings {
    int n;
    char last[512];
} warnings;

static void take(void *user, clg_log_level level, const char *message)
{
    warnings *w = user;
    if (level != CLG_LOG_WARNING || !strstr(message, "all-zero gradient")) return;
    w->n++;
    strncpy(w->last, message, sizeof w->last - 1);
}

static clg_trainer *open_trainer(uint32_t accumulate)
{
    trainer_setup s = trainer_setup_of(CLG_LOSS_MSE);
    s.train.accumulate = accumulate;
    return trainer_setup_open(&s, context, graph_text_model(15, MODEL));
}

static void step(clg_trainer *t, double x)
{
    clg_value *v, *target;
    assert_ok(clg_value_create(CLG_FLOAT64, 2, DIMS(ROWS, WIDTH), &v));
    assert_ok(clg_value_create(CLG_FLOAT64, 2, DIMS(ROWS, WIDTH), &target));
    for (int i = 0; i < ROWS * WIDTH; i++) {
        ((double *)clg_value_data(v))[i] = i == 5 ? x : 0;
        ((double *)clg_value_data(target))[i] = 7;
    }
    assert_ok(clg_trainer_set_input(t, "x", v));
    assert_ok(clg_trainer_set_input(t, "target", target));
    assert_ok(clg_trainer_step(t, NULL));
    clg_value_free(v);
    clg_value_free(target);
}

/* Makes steps, of which step `at` has an x that is not 0; returns the warnings. */
static warnings watch(clg_trainer *t, int n_steps, int at)
{
    warnings w = {0};
    clg_set_log(take, &w, CLG_LOG_WARNING);
    for (int n = 0; n < n_steps; n++) {
        assert_int_equal(w.n, n >= STEPS);
        step(t, n == at ? 1 : 0);
    }
    clg_set_log(NULL, NULL, CLG_LOG_ERROR);
    return w;
}

TEST(train_watch__names_parameters_without_a_gradient)
{
    for (int at = 0; at < STEPS; at += STEPS - 1) {
        clg_trainer *t = open_trainer(1);
        const warnings w = watch(t, STEPS + 5, at);
        assert_int_equal(w.n, 1);
        assert_non_null(strstr(w.last, "2 of 3 parameters"));
        assert_non_null(strstr(w.last, "first 10 steps: 'dead', 'gone'"));
        clg_trainer_free(t);
    }
    clg_trainer *t = open_trainer(1);
    const warnings w = watch(t, STEPS, -1);
    assert_int_equal(w.n, 1);
    assert_non_null(strstr(w.last, "3 of 3 parameters"));
    clg_trainer_free(t);
}

/* Not after a load: steps that nobody looked at may have had one. */
TEST(train_watch__is_of_the_first_steps)
{
    warnings w = {0};
    const char *path = scratch_path("some.npz");
    clg_trainer *t = open_trainer(1);
    step(t, 0);
    assert_ok(clg_trainer_save(t, path));
    clg_trainer_free(t);
    t = open_trainer(1);
    assert_ok(clg_trainer_load(t, path));
    clg_set_log(take, &w, CLG_LOG_WARNING);
    for (int n = 0; n < STEPS + 2; n++) step(t, 0);
    clg_set_log(NULL, NULL, CLG_LOG_ERROR);
    assert_int_equal(w.n, 0);
    clg_trainer_free(t);
}
