/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests steps whose loss or gradients are not finite: what the message names, that nothing has
 * changed, and that a training that skips such a step is, bit for bit, the one without it.
 */
#include "support/unit.h"

#include "support/fixtures/graph_text.h"
#include "support/fixtures/pocl_context.h"
#include "support/fixtures/train/trainer_setup.h"
#include "support/literals.h"
#include "support/scratch.h"

#include <clgraph/train.h>

#include <math.h>
#include <string.h>

TEST_GROUP(open_context, close_context)

enum { ROWS = 4, WIDTH = 3, N = ROWS * WIDTH };

/* Finite for the usual x. */
#define GROWTH                                                                                     \
    "x: f64[N,3]; w = f64[3]; h = Mul(x, w); e = Exp(h); d = Sub(e, e); y = Add(d, h); out y"
/* Its slope at 0 is infinite. */
#define ROOT "x: f64[N,3]; w = f64[3]; a = Mul(x, w); y = Sqrt(a); out y"
#define NORMALISED                                                                                 \
    "x: f64[N,3]; w = f64[3]; b = f64[3]; m = f64[3]; v = f64[3]; a = Mul(x, w); "                 \
    "n, p, q = BatchNormalization(x, w, b, m, v) training_mode=1; r = Sqrt(a); y = Add(n, r); "    \
    "out y"

typedef struct trial {
    const char *text;
    clg_on_nan on_nan;
    clg_optimizer kind;
    double clip_norm;
    uint32_t accumulate;
    clg_kernel_class kernels;
} trial;

static clg_trainer *open_trainer(const trial *k)
{
    trainer_setup s = trainer_setup_of(CLG_LOSS_MSE);
    s.optimizer.kind = k->kind;
    s.optimizer.momentum = k->kind == CLG_OPTIMIZER_SGD ? 0.5 : 0;
    s.optimizer.dampening = k->kind == CLG_OPTIMIZER_SGD ? 0.25 : 0;
    s.schedule.rate = 0.125;
    s.session.kernels = k->kernels;
    s.train.clip_norm = k->clip_norm;
    s.train.accumulate = k->accumulate;
    s.train.on_nan = k->on_nan;
    return trainer_setup_open(&s, context, graph_text_model(15, k->text));
}

/* ---- data ------------------------------------------------------------------------------------ */

static double x_of(int batch, int i) { return 0.125 * (1 + (batch * 5 + i * 7) % 11); }

/* Sets a batch whose x has the number `odd` at one place. */
static void set_odd(clg_trainer *t, int batch, double odd)
{
    clg_value *x, *target;
    assert_ok(clg_value_create(CLG_FLOAT64, 2, DIMS(ROWS, WIDTH), &x));
    assert_ok(clg_value_create(CLG_FLOAT64, 2, DIMS(ROWS, WIDTH), &target));
    for (int i = 0; i < N; i++) {
        ((double *)clg_value_data(x))[i] = x_of(batch, i);
        ((double *)clg_value_data(target))[i] = 0.25 * (i % 5);
    }
    ((double *)clg_value_data(x))[N / 2] = odd;
    assert_ok(clg_trainer_set_input(t, "x", x));
    assert_ok(clg_trainer_set_input(t, "target", target));
    clg_value_free(x);
    clg_value_free(target);
}

static void set_usual(clg_trainer *t, int batch) { set_odd(t, batch, x_of(batch, N / 2)); }

static void read_numbers(clg_trainer *t, const char *name, double out[WIDTH])
{
    clg_value *v;
    assert_ok(clg_trainer_get_parameter(t, name, &v));
    memcpy(out, clg_value_data(v), WIDTH * sizeof *out);
    clg_value_free(v);
}

static void write_numbers(clg_trainer *t, const char *name, double a, double b, double c)
{
    clg_value *v;
    assert_ok(clg_value_create(CLG_FLOAT64, 1, DIMS(WIDTH), &v));
    memcpy(clg_value_data(v), (double[WIDTH]){a, b, c}, WIDTH * sizeof(double));
    assert_ok(clg_trainer_set_parameter(t, name, v));
    clg_value_free(v);
}

/* ---- failures -------------------------------------------------------------------------------- */

/* Makes a step that fails with these words, between two that do not. */
static void check_failure(const trial *k, double odd, const char *words)
{
    double before[WIDTH], after[WIDTH];
    clg_trainer *t = open_trainer(k);
    write_numbers(t, "w", 1, 0.5, 2);
    set_usual(t, 0);
    assert_ok(clg_trainer_step(t, NULL));
    read_numbers(t, "w", before);
    set_odd(t, 1, odd);
    assert_error(clg_trainer_step(t, NULL), CLG_ERROR_DATA, words);
    assert_non_null(strstr(clg_last_error(), "of step 2 is "));
    assert_non_null(strstr(clg_last_error(), "at a rate of 0.125"));
    read_numbers(t, "w", after);
    assert_memory_equal(before, after, sizeof before);
    assert_int_equal(clg_trainer_n_steps(t), 1);
    set_usual(t, 1);
    assert_ok(clg_trainer_step(t, NULL));
    read_numbers(t, "w", after);
    assert_true(isfinite(after[0]) && after[0] != before[0]);
    clg_trainer_free(t);
}

TEST(train_nan__names_the_first_value_that_is_not_finite)
{
    const trial k = {.text = GROWTH, .kernels = CLG_KERNELS_SIMD};
    trial simt = k;
    simt.kernels = CLG_KERNELS_SIMT;
    check_failure(&k, (double)NAN, "the input 'x'");
    check_failure(&k, (double)INFINITY, "the input 'x'");
    check_failure(&k, 1e6, "'e', of the node of 'e' (Exp, opset 15); the first NaN is 'd'");
    check_failure(&simt, 1e6, "'e', of the node of 'e' (Exp, opset 15)");
    clg_trainer *t = open_trainer(&k);
    set_usual(t, 0);
    write_numbers(t, "w", 1, (double)NAN, 1);
    assert_error(clg_trainer_step(t, NULL), CLG_ERROR_DATA, "the parameter 'w'");
    clg_trainer_free(t);
}

TEST(train_nan__gradients)
{
    const trial k = {.text = ROOT, .clip_norm = 10, .kernels = CLG_KERNELS_SIMD};
    trial simt = k;
    simt.kernels = CLG_KERNELS_SIMT;
    check_failure(&k, 0, "the first value that is not finite is the gradient of 'w'");
    check_failure(&simt, 0, "the norm of the gradients of step 2 is ");
}

TEST(train_nan__of_the_second_batch_of_a_step)
{
    double before[WIDTH], after[WIDTH];
    clg_trainer *t = open_trainer(&(trial){.text = GROWTH, .accumulate = 2});
    read_numbers(t, "w", before);
    set_usual(t, 0);
    assert_ok(clg_trainer_step(t, NULL));
    set_odd(t, 1, (double)NAN);
    assert_error(clg_trainer_step(t, NULL), CLG_ERROR_DATA, "of step 1 is ");
    for (int n = 0; n < 2; n++) { /* the first batch was dropped */
        read_numbers(t, "w", after);
        assert_memory_equal(before, after, sizeof before);
        set_usual(t, n);
        assert_ok(clg_trainer_step(t, NULL));
    }
    read_numbers(t, "w", after);
    assert_memory_not_equal(before, after, sizeof before);
    clg_trainer_free(t);
}

/* ---- skipped steps --------------------------------------------------------------------------- */

/* Compares a training with a bad batch after n of 5, which is saved and loaded after it, with one
 * without that batch. */
static void check_skip(const trial *k, int n, double odd)
{
    static const char *const names[] = {"w", "b", "m", "v"};
    const size_t n_names = strstr(k->text, "BatchNormalization") ? 4 : 1;
    const char *path = scratch_path("skipped.npz");
    double want[4][WIDTH], got[WIDTH];
    clg_train_stats stats = CLG_TRAIN_STATS_INIT;
    for (int skips = 0; skips < 2; skips++) {
        clg_trainer *t = open_trainer(k);
        write_numbers(t, "w", 1, 0.5, 2);
        for (int batch = 0; batch < 5; batch++) {
            if (skips && batch == n) {
                set_odd(t, batch, odd);
                assert_ok(clg_trainer_step(t, &stats));
                assert_int_equal(stats.step, n + 1);
                assert_int_equal(stats.skipped, 1);
                assert_ok(clg_trainer_save(t, path));
                clg_trainer_free(t);
                t = open_trainer(k);
                assert_ok(clg_trainer_load(t, path));
            }
            set_usual(t, batch);
            assert_ok(clg_trainer_step(t, &stats));
        }
        assert_int_equal(stats.step, 5 + skips);
        assert_int_equal(stats.skipped, skips);
        for (size_t i = 0; i < n_names; i++) {
            read_numbers(t, names[i], skips ? got : want[i]);
            if (skips) assert_memory_equal(got, want[i], sizeof got);
        }
        clg_trainer_free(t);
    }
}

TEST(train_nan__a_skipped_step_leaves_no_trace)
{
    trial k = {.text = GROWTH, .on_nan = CLG_ON_NAN_SKIP};
    check_skip(&k, 0, 1e6);
    check_skip(&k, 3, (double)NAN);
    k.kind = CLG_OPTIMIZER_ADAM;
    check_skip(&k, 0, (double)NAN);
    k.clip_norm = 0.5;
    check_skip(&k, 2, 1e6);
}

TEST(train_nan__skips_by_the_norm_of_the_gradients)
{
    trial k = {.text = ROOT, .on_nan = CLG_ON_NAN_SKIP, .clip_norm = 10};
    check_skip(&k, 0, 0);
    check_skip(&k, 2, 0);
    k.kind = CLG_OPTIMIZER_ADAM;
    k.kernels = CLG_KERNELS_SIMT;
    check_skip(&k, 2, 0);
    k.text = NORMALISED; /* statistics of the step are dropped too */
    check_skip(&k, 2, 0);
    k.clip_norm = 0;
    check_skip(&k, 2, (double)NAN);
}
