/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests checkpoints of trainers: a training that is cut after any of its steps goes on with the
 * same bits; another trainer, a damaged or incomplete file are refused, and change nothing.
 */
#include "support/unit.h"

#include "support/fixtures/pocl_context.h"
#include "support/fixtures/train/linear_model.h"
#include "support/fixtures/train/trainer_setup.h"
#include "support/literals.h"
#include "support/scratch.h"

#include <clgraph/inspect.h>
#include <clgraph/train.h>

#include <string.h>

TEST_GROUP(open_context, close_context)

enum { STEPS = 6 };

static trainer_setup usual(clg_optimizer kind)
{
    trainer_setup s = trainer_setup_of(CLG_LOSS_MSE);
    s.optimizer.kind = kind;
    s.optimizer.momentum = kind == CLG_OPTIMIZER_ADAM ? 0 : 0.75;
    s.optimizer.dampening = kind == CLG_OPTIMIZER_SGD ? 0.25 : 0;
    s.schedule.kind = CLG_SCHEDULE_COSINE;
    s.schedule.rate = 0.125;
    s.schedule.total_steps = 2 * STEPS;
    return s;
}

static clg_trainer *open_trainer(trainer_setup *s, clg_dtype dtype)
{
    return trainer_setup_open(s, context, linear_model(dtype));
}

static void step(clg_trainer *t, int n)
{
    linear_set_batch(t, CLG_FLOAT32, n);
    assert_ok(clg_trainer_step(t, NULL));
}

static void read_bits(clg_trainer *t, float out[LINEAR_ALL])
{
    clg_value *v;
    assert_ok(clg_trainer_get_parameter(t, "weight", &v));
    assert_ok(clg_value_read(v, out, LINEAR_WEIGHTS * sizeof *out));
    clg_value_free(v);
    assert_ok(clg_trainer_get_parameter(t, "bias", &v));
    assert_ok(clg_value_read(v, out + LINEAR_WEIGHTS, LINEAR_OUT * sizeof *out));
    clg_value_free(v);
}

/* Cuts a training after each of its steps, and goes on in a new trainer. */
static void cut_each(clg_optimizer kind, int n_steps)
{
    float whole[LINEAR_ALL], cut[LINEAR_ALL];
    const char *path = scratch_path("cut.npz");
    trainer_setup s = usual(kind);
    s.optimizer.centered = kind == CLG_OPTIMIZER_RMSPROP;
    s.schedule.total_steps = 2 * (uint64_t)n_steps;
    s.train.clip_norm = 0.5;
    clg_trainer *t = open_trainer(&s, CLG_FLOAT32);
    for (int n = 0; n < n_steps; n++) step(t, n);
    read_bits(t, whole);
    clg_trainer_free(t);
    for (int at = 0; at <= n_steps; at++) {
        t = open_trainer(&s, CLG_FLOAT32);
        for (int n = 0; n < at; n++) step(t, n);
        assert_ok(clg_trainer_save(t, path));
        clg_trainer_free(t);
        t = open_trainer(&s, CLG_FLOAT32);
        step(t, 50); /* what it has done is forgotten */
        assert_ok(clg_trainer_load(t, path));
        for (int n = at; n < n_steps; n++) step(t, n);
        read_bits(t, cut);
        assert_memory_equal(whole, cut, sizeof whole);
        clg_trainer_free(t);
    }
}

TEST(checkpoint__goes_on_with_the_same_bits)
{
    cut_each(CLG_OPTIMIZER_SGD, STEPS);
    cut_each(CLG_OPTIMIZER_ADAM, 50);
    cut_each(CLG_OPTIMIZER_RMSPROP, STEPS);
}

/* Others read it as arrays of their names. */
TEST(checkpoint__is_a_npz_of_named_arrays)
{
    clg_npz_reader *r;
    const char *path = scratch_path("names.npz");
    trainer_setup s = usual(CLG_OPTIMIZER_ADAM);
    clg_trainer *t = open_trainer(&s, CLG_FLOAT32);
    const char *const names[] = {
        "parameter/weight", "parameter/bias", "state1/weight", "state1/bias", "state2/weight",
        "state2/bias",      "step",           "skipped",       "settings"};
    assert_ok(clg_trainer_save(t, path));
    clg_trainer_free(t);
    assert_ok(clg_npz_reader_open(path, &r));
    assert_int_equal(clg_npz_reader_n_arrays(r), 9);
    for (size_t i = 0; i < 9; i++) assert_string_equal(clg_npz_reader_name(r, i), names[i]);
    clg_npz_reader_free(r);
}

/* ---- refusals -------------------------------------------------------------------------------- */

/* Loads the file into a trainer that refuses it, and stays as it is. */
static void expect_refused(clg_trainer *t, const char *path, clg_status status, const char *words)
{
    float before[LINEAR_ALL], after[LINEAR_ALL];
    read_bits(t, before);
    assert_error(clg_trainer_load(t, path), status, words);
    read_bits(t, after);
    assert_memory_equal(before, after, sizeof before);
}

TEST(checkpoint__of_other_options)
{
    const char *path = scratch_path("other.npz");
    trainer_setup s = usual(CLG_OPTIMIZER_SGD);
    s.train.data_settings = "batch 5\nrows 5\n";
    clg_trainer *t = open_trainer(&s, CLG_FLOAT32);
    step(t, 0);
    assert_ok(clg_trainer_save(t, path));
    clg_trainer_free(t);
    for (int i = 0; i < 5; i++) {
        static const char *const words[] = {"it has 'optimizer.momentum 0.75', the trainer "
                                            "'optimizer.momentum 0.5'",
                                            "'schedule.rate 0.0625'", "'clip_norm 2'", "'loss 5'",
                                            "it has 'rows 5', the trainer 'rows 7'"};
        trainer_setup other = usual(CLG_OPTIMIZER_SGD);
        if (i == 0) other.optimizer.momentum = 0.5;
        if (i == 1) other.schedule.rate = 0.0625;
        if (i == 2) other.train.clip_norm = 2;
        if (i == 3) other.loss.kind = CLG_LOSS_L1;
        other.train.data_settings = i == 4 ? "batch 5\nrows 7\n" : s.train.data_settings;
        t = open_trainer(&other, CLG_FLOAT32);
        expect_refused(t, path, CLG_ERROR_INVALID_ARGUMENT, words[i]);
        clg_trainer_free(t);
    }
}

/* A checkpoint of all parameters is not one of a part of them: what is frozen would stay as it
 * is. */
TEST(checkpoint__of_other_parameters)
{
    const char *path = scratch_path("all.npz");
    trainer_setup s = usual(CLG_OPTIMIZER_SGD);
    clg_trainer *t = open_trainer(&s, CLG_FLOAT32);
    step(t, 0);
    assert_ok(clg_trainer_save(t, path));
    clg_trainer_free(t);
    s.freeze = "bias";
    t = open_trainer(&s, CLG_FLOAT32);
    assert_error(clg_trainer_load(t, path), CLG_ERROR_INVALID_ARGUMENT,
                 "it has 'parameter/bias', which is not trained here");
    assert_ok(clg_trainer_save(t, path));
    clg_trainer_free(t);
    s = usual(CLG_OPTIMIZER_SGD);
    t = open_trainer(&s, CLG_FLOAT32);
    expect_refused(t, path, CLG_ERROR_INVALID_ARGUMENT, "'parameter/bias' is missing");
    clg_trainer_free(t);
}

/* Writes a checkpoint whose array `i` is replaced; value NULL: left out. */
static void write_changed(const char *from, const char *to, const char *name, clg_value *value)
{
    char **names;
    clg_value **values;
    size_t n, n_kept = 0;
    const char *kept_names[16];
    clg_value *kept[16];
    assert_ok(clg_npz_load(from, &names, &values, &n));
    assert_true(n <= 16);
    for (size_t i = 0; i < n; i++) {
        const bool changes = strcmp(names[i], name) == 0;
        if (changes && !value) continue;
        kept_names[n_kept] = names[i];
        kept[n_kept++] = changes ? value : values[i];
    }
    assert_ok(clg_npz_save(to, kept_names, kept, n_kept));
    clg_npz_free(names, values, n);
}

TEST(checkpoint__that_is_incomplete_or_of_other_shapes)
{
    const char *path = scratch_path("good.npz"), *changed = scratch_path("changed.npz");
    trainer_setup s = usual(CLG_OPTIMIZER_SGD);
    int64_t negative = -3;
    clg_value *v;
    clg_trainer *t = open_trainer(&s, CLG_FLOAT32);
    step(t, 0);
    assert_ok(clg_trainer_save(t, path));
    static const char *const names[] = {"parameter/bias", "state1/weight", "step", "settings"};
    for (size_t i = 0; i < 4; i++) {
        write_changed(path, changed, names[i], NULL);
        expect_refused(t, changed, CLG_ERROR_INVALID_ARGUMENT, "is missing");
    }
    assert_ok(clg_value_create(CLG_FLOAT32, 1, DIMS(LINEAR_OUT + 1), &v));
    write_changed(path, changed, "parameter/bias", v);
    expect_refused(t, changed, CLG_ERROR_INVALID_ARGUMENT, "is float32[3], not float32[2]");
    clg_value_free(v);
    assert_ok(clg_value_create(CLG_FLOAT64, 1, DIMS(LINEAR_OUT), &v));
    write_changed(path, changed, "state1/bias", v);
    expect_refused(t, changed, CLG_ERROR_INVALID_ARGUMENT, "is float64[2], not float32[2]");
    clg_value_free(v);
    assert_ok(clg_value_create(CLG_INT64, 0, NULL, &v));
    assert_ok(clg_value_write(v, &negative, sizeof negative));
    write_changed(path, changed, "step", v);
    expect_refused(t, changed, CLG_ERROR_INVALID_ARGUMENT, "step is -3");
    clg_value_free(v);
    expect_refused(t, "/nonexistent/checkpoint.npz", CLG_ERROR_IO, "checkpoint.npz");
    assert_ok(clg_trainer_load(t, path));
    clg_trainer_free(t);
}

/* What was saved in the middle of a step is the end of the step before. */
TEST(checkpoint__in_the_middle_of_a_step)
{
    float whole[LINEAR_ALL], cut[LINEAR_ALL];
    const char *path = scratch_path("middle.npz");
    trainer_setup s = usual(CLG_OPTIMIZER_SGD);
    s.train.accumulate = 3;
    clg_trainer *t = open_trainer(&s, CLG_FLOAT32);
    for (int n = 0; n < 5; n++) step(t, n); /* one step, and two batches */
    assert_ok(clg_trainer_save(t, path));
    step(t, 5);
    read_bits(t, whole);
    step(t, 50); /* a batch that loading drops */
    assert_ok(clg_trainer_load(t, path));
    assert_int_equal(clg_trainer_n_steps(t), 1);
    for (int n = 3; n < 6; n++) step(t, n);
    read_bits(t, cut);
    assert_memory_equal(whole, cut, sizeof whole);
    clg_trainer_free(t);
}
