/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests Dropout in training: y = Dropout(x w) with x = 1 and the mean of y^2 as the loss, of which
 * the gradient of w shows what was dropped. Which elements these are follows from the seed, the
 * step and the batch alone.
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

enum { WIDTH = 64, MANY = 50 };

#define INPUTS "x: f64[N,1]; w = f64[1,64]; c = true; h = MatMul(x, w); "
#define ACTIVE INPUTS "y = Dropout(h, _, c); out y"
#define INACTIVE INPUTS "y = Dropout(h) ratio=0.25; out y"

typedef struct trial {
    const char *text;
    int64_t opset;
    clg_train_form form;
    uint64_t seed;
    double rate; /* of learning */
    uint32_t accumulate;
    clg_kernel_class kernels;
} trial;

static clg_status create(const trial *k, clg_trainer **out_trainer)
{
    trainer_setup s = trainer_setup_of(CLG_LOSS_MSE);
    s.schedule.rate = k->rate;
    s.session.kernels = k->kernels;
    s.train.dropout = k->form;
    s.train.seed = k->seed;
    s.train.accumulate = k->accumulate;
    return trainer_setup_create(&s, context, graph_text_model(k->opset ? k->opset : 13, k->text),
                                out_trainer);
}

static void set(clg_trainer *t, const char *name, int width, double number)
{
    clg_value *v;
    assert_ok(clg_value_create(CLG_FLOAT64, 2, DIMS(1, width), &v));
    for (int i = 0; i < width; i++) ((double *)clg_value_data(v))[i] = number;
    assert_ok(clg_trainer_set_input(t, name, v));
    clg_value_free(v);
}

/* Opens a trainer whose weights are 1 to 2. */
static clg_trainer *open_trainer(const trial *k)
{
    clg_trainer *t;
    clg_value *w;
    assert_ok(create(k, &t));
    assert_ok(clg_value_create(CLG_FLOAT64, 2, DIMS(1, WIDTH), &w));
    for (int i = 0; i < WIDTH; i++) ((double *)clg_value_data(w))[i] = 1 + i / (double)WIDTH;
    assert_ok(clg_trainer_set_parameter(t, "w", w));
    clg_value_free(w);
    set(t, "x", 1, 1);
    set(t, "target", WIDTH, 0);
    return t;
}

static void read_all(clg_trainer *t,
                     clg_status (*get)(clg_trainer *t, const char *name, clg_value **out),
                     double out[WIDTH])
{
    clg_value *v;
    assert_ok(get(t, "w", &v));
    memcpy(out, clg_value_data(v), WIDTH * sizeof *out);
    clg_value_free(v);
}

/* Makes a step and returns its loss; sets kept[i] to whether element i was kept, checked to be
 * scaled by 1 / (1 - ratio). Returns the number of those that were. */
static int kept_of(clg_trainer *t, double ratio, bool kept[WIDTH])
{
    double w[WIDTH], g[WIDTH], loss = 0;
    int n = 0;
    clg_train_stats stats = CLG_TRAIN_STATS_INIT;
    read_all(t, clg_trainer_get_parameter, w);
    assert_ok(clg_trainer_step(t, &stats));
    read_all(t, clg_trainer_get_gradient, g);
    for (int i = 0; i < WIDTH; i++) {
        const double y = w[i] / (1 - ratio), slope = 2 * y / (1 - ratio) / WIDTH;
        kept[i] = g[i] != 0;
        assert_true(!kept[i] || fabs(g[i] - slope) <= 1e-12);
        loss += kept[i] ? y * y / WIDTH : 0;
        n += kept[i];
    }
    assert_true(fabs(stats.loss - loss) <= 1e-12 * (1 + loss));
    return n;
}

/* Follows steps without learning; returns how many elements were kept. */
static int count_kept(const trial *k, double ratio, bool kept[MANY][WIDTH])
{
    int n = 0;
    clg_trainer *t = open_trainer(k);
    for (int s = 0; s < MANY; s++) n += kept_of(t, ratio, kept[s]);
    clg_trainer_free(t);
    return n;
}

TEST(train_dropout__drops_what_the_ratio_says)
{
    /* 5 deviations of a binomial distribution of MANY * WIDTH = 3200 numbers */
    const struct {
        trial trial;
        double ratio;
        int min, max;
    } rows[] = {{{.text = ACTIVE, .kernels = CLG_KERNELS_SIMD}, 0.5, 1458, 1742},
                {{.text = ACTIVE, .kernels = CLG_KERNELS_SIMT, .opset = 22}, 0.5, 1458, 1742},
                {{.text = ACTIVE, .opset = 12, .form = CLG_FORM_TRAINING}, 0.5, 1458, 1742},
                {{.text = INACTIVE, .opset = 7, .form = CLG_FORM_TRAINING}, 0.25, 2277, 2523},
                {{.text = INACTIVE, .opset = 10, .form = CLG_FORM_TRAINING}, 0.25, 2277, 2523},
                {{.text = INACTIVE, .opset = 6}, 0.25, 2277, 2523},
                {{.text = INPUTS "k = Constant() value_int=1; t = Cast(k) to=9; "
                                 "y = Dropout(h, _, t) seed=3; out y"},
                 0.5,
                 1458,
                 1742}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bool kept[MANY][WIDTH];
        assert_between((uintmax_t)count_kept(&rows[i].trial, rows[i].ratio, kept),
                       (uintmax_t)rows[i].min, (uintmax_t)rows[i].max);
        for (int s = 1; s < MANY; s++) assert_memory_not_equal(kept[0], kept[s], sizeof kept[0]);
    }
}

TEST(train_dropout__follows_from_the_seed)
{
    bool first[MANY][WIDTH], again[MANY][WIDTH], other[MANY][WIDTH], simt[MANY][WIDTH];
    trial k = {.text = INPUTS "y = Dropout(h, _, c) seed=3; out y", .seed = 7};
    (void)count_kept(&k, 0.5, first);
    for (int run = 0; run < 4; run++) {
        (void)count_kept(&k, 0.5, again);
        assert_memory_equal(first, again, sizeof first);
    }
    k.kernels = CLG_KERNELS_SIMT;
    (void)count_kept(&k, 0.5, simt);
    assert_memory_equal(first, simt, sizeof first);
    k.seed = UINT64_C(7) << 32;
    (void)count_kept(&k, 0.5, other);
    for (int s = 0; s < MANY; s++) assert_memory_not_equal(first[s], other[s], sizeof first[s]);
}

TEST(train_dropout__two_nodes_drop_different_elements)
{
    double g[WIDTH];
    int n = 0;
    clg_trainer *t = open_trainer(
        &(trial){.text = INPUTS "y = Dropout(h, _, c); z = Dropout(y, _, c); out z", .rate = 0});
    for (int s = 0; s < MANY; s++) {
        assert_ok(clg_trainer_step(t, NULL));
        read_all(t, clg_trainer_get_gradient, g);
        for (int i = 0; i < WIDTH; i++) n += g[i] != 0;
    }
    assert_between((uintmax_t)n, 677, 923); /* a quarter of 3200, 5 deviations */
    clg_trainer_free(t);
}

/* ---- without --------------------------------------------------------------------------------- */

static void check_whole(const trial *k)
{
    bool kept[WIDTH];
    double w[WIDTH], loss, want = 0;
    clg_trainer *t = open_trainer(k);
    read_all(t, clg_trainer_get_parameter, w);
    for (int i = 0; i < WIDTH; i++) want += w[i] * w[i] / WIDTH;
    assert_int_equal(kept_of(t, 0, kept), WIDTH);
    assert_ok(clg_trainer_evaluate(t, &loss));
    assert_true(fabs(loss - want) <= 1e-12);
    clg_trainer_free(t);
}

TEST(train_dropout__drops_nothing_where_it_is_off)
{
    check_whole(&(trial){.text = INACTIVE, .opset = 7});
    check_whole(&(trial){.text = INPUTS "y = Dropout(h); out y"});
    check_whole(&(trial){.text = ACTIVE, .form = CLG_FORM_PREDICTION});
    check_whole(&(trial){.text = INACTIVE, .opset = 6, .form = CLG_FORM_PREDICTION});
}

TEST(train_dropout__evaluation_drops_nothing)
{
    double w[WIDTH], loss, want = 0;
    clg_trainer *t = open_trainer(&(trial){.text = ACTIVE});
    read_all(t, clg_trainer_get_parameter, w);
    for (int i = 0; i < WIDTH; i++) want += w[i] * w[i] / WIDTH;
    for (int n = 0; n < 3; n++) {
        assert_ok(clg_trainer_evaluate(t, &loss));
        assert_true(fabs(loss - want) <= 1e-12);
        assert_ok(clg_trainer_step(t, NULL));
    }
    clg_trainer_free(t);
}

/* training_mode is an input of the model, which decided forms do not read. */
TEST(train_dropout__training_mode_as_an_input)
{
    bool kept[WIDTH];
    clg_trainer *t;
    trial k = {.text = "x: f64[N,1]; c: b[]; w = f64[1,64]; h = MatMul(x, w); "
                       "y = Dropout(h, _, c); out y"};
    assert_error(create(&k, &t), CLG_ERROR_UNSUPPORTED_OPERATOR, "training_mode is not known");
    k.form = CLG_FORM_TRAINING;
    t = open_trainer(&k);
    assert_between((uintmax_t)kept_of(t, 0.5, kept), 12, 52);
    clg_trainer_free(t);
    k.form = CLG_FORM_PREDICTION;
    t = open_trainer(&k);
    assert_int_equal(kept_of(t, 0, kept), WIDTH);
    clg_trainer_free(t);
}

/* ---- results --------------------------------------------------------------------------------- */

TEST(train_dropout__checkpoints_go_on_with_the_same_bits)
{
    double whole[WIDTH], cut[WIDTH];
    const char *path = scratch_path("cut.npz");
    for (uint32_t accumulate = 1; accumulate <= 2; accumulate++) {
        const trial k = {.text = ACTIVE, .rate = 0.5, .accumulate = accumulate, .seed = 1};
        clg_trainer *t = open_trainer(&k);
        for (int n = 0; n < 6; n++) assert_ok(clg_trainer_step(t, NULL));
        read_all(t, clg_trainer_get_parameter, whole);
        clg_trainer_free(t);
        for (int at = 0; at <= 6; at += 2) {
            t = open_trainer(&k);
            for (int n = 0; n < at; n++) assert_ok(clg_trainer_step(t, NULL));
            assert_ok(clg_trainer_save(t, path));
            clg_trainer_free(t);
            t = open_trainer(&k);
            assert_ok(clg_trainer_load(t, path));
            for (int n = at; n < 6; n++) assert_ok(clg_trainer_step(t, NULL));
            read_all(t, clg_trainer_get_parameter, cut);
            assert_memory_equal(whole, cut, sizeof whole);
            clg_trainer_free(t);
        }
    }
    clg_trainer *other = open_trainer(&(trial){.text = ACTIVE, .rate = 0.5, .seed = 2});
    assert_error(clg_trainer_load(other, path), CLG_ERROR_INVALID_ARGUMENT, "accumulate");
    clg_trainer_free(other);
}

TEST(train_dropout__the_exported_model_is_as_it_was)
{
    clg_model *m;
    clg_node_info *nodes;
    size_t n_nodes;
    clg_trainer *t =
        open_trainer(&(trial){.text = INACTIVE, .opset = 7, .form = CLG_FORM_TRAINING});
    assert_ok(clg_trainer_step(t, NULL));
    assert_ok(clg_trainer_model(t, &m));
    clg_trainer_free(t);
    assert_ok(clg_model_nodes(m, &nodes, &n_nodes));
    assert_int_equal(n_nodes, 2);
    assert_string_equal(nodes[1].op_type, "Dropout");
    assert_int_equal(nodes[1].opset, 7);
    assert_int_equal(nodes[1].n_inputs, 1);
    clg_node_list_free(nodes, n_nodes);
    clg_model_free(m);
}

static void count_warnings(void *user, clg_log_level level, const char *message)
{
    if (level == CLG_LOG_WARNING && strstr(message, "has no Dropout")) ++*(int *)user;
}

TEST(train_dropout__warns_where_there_is_none)
{
    int n = 0;
    clg_set_log(count_warnings, &n, CLG_LOG_WARNING);
    clg_trainer_free(open_trainer(&(trial){.text = INPUTS "y = Neg(h); out y"}));
    clg_trainer_free(open_trainer(&(trial){.text = ACTIVE, .form = CLG_FORM_TRAINING}));
    assert_int_equal(n, 0);
    clg_trainer_free(
        open_trainer(&(trial){.text = INPUTS "y = Neg(h); out y", .form = CLG_FORM_TRAINING}));
    assert_int_equal(n, 1);
    clg_set_log(NULL, NULL, CLG_LOG_ERROR);
}

TEST(train_dropout__refuses)
{
    clg_trainer *t;
    assert_error(create(&(trial){.text = ACTIVE, .form = (clg_train_form)-1}, &t),
                 CLG_ERROR_INVALID_ARGUMENT, "dropout is -1");
    assert_error(create(&(trial){.text = INPUTS "y, m = Dropout(h); z = Add(y, m); out z",
                                 .opset = 7,
                                 .form = CLG_FORM_TRAINING},
                        &t),
                 CLG_ERROR_UNSUPPORTED_OPERATOR, "its mask is not bool");
}
