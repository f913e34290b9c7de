/* SPDX-License-Identifier: Apache-2.0
 *
 * RNN, GRU and LSTM against ONNX's equations in double, step by step and unit by unit, with another order of the gates'
 * work than the kernels have.
 *
 * Tolerances: float32 sums of up to 150 products of size 1/4 through a dozen steps of bounded functions: 1e-5. float16
 * keeps the input's part of the sums, of size up to 4, in half: 1e-2. float64: 1e-12.
 */
/* ctest: timeout 900 */
#include "support/run_node.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_LIST 6

enum {
    BIAS = 1,
    LENS = 2,
    H0 = 4,
    C0 = 8,
    PEEP = 16,
    NO_Y = 32,
    NO_Y_H = 64,
    NO_Y_C = 128,
    COMPUTED = 256, /* weights are inputs, not constants */
    ALL = BIAS | LENS | H0 | C0 | PEEP
};

typedef struct activation {
    const char *name;
    double alpha, beta; /* NAN: it has none */
} activation;

typedef struct recurrent_case {
    const char *op_type;
    int64_t opset;
    clg_dtype dtype;
    int64_t length, batch, input, hidden;
    const char *direction; /* NULL: left out */
    bool batch_first;
    int parts;
    double clip; /* 0: none */
    bool input_forget, linear;
    const activation *activations; /* f, g, h of each direction; NULL: the defaults */
    bool default_numbers;          /* alpha and beta are not written down */
    bool heavy;
} recurrent_case;

/* The case with its data. */
typedef struct recurrent_data {
    const recurrent_case *k;
    int64_t gates, dirs;
    int n_activations;
    double *x, *w, *r, *b, *lens, *h0, *c0, *p, *y, *y_h, *y_c;
} recurrent_data;

/* ---- the reference ------------------------------------------------------------------------------------- */

static double apply(const activation *a, double x, double clip)
{
    const char *name = a->name;
    const double alpha = (double)(float)a->alpha, beta = (double)(float)a->beta;
    if (clip > 0 && x > clip) x = clip;
    if (clip > 0 && x < -clip) x = -clip;
    if (strcmp(name, "Relu") == 0) return x > 0 || isnan(x) ? x : 0;
    if (strcmp(name, "Tanh") == 0) return 1 - 2 / (exp(2 * x) + 1);
    if (strcmp(name, "Sigmoid") == 0) return 0.5 + 0.5 * tanh(x / 2);
    if (strcmp(name, "Affine") == 0) return alpha * x + beta;
    if (strcmp(name, "LeakyRelu") == 0) return x >= 0 ? x : alpha * x;
    if (strcmp(name, "ThresholdedRelu") == 0) return x >= alpha ? x : 0;
    if (strcmp(name, "ScaledTanh") == 0) return alpha * (1 - 2 / (exp(2 * beta * x) + 1));
    if (strcmp(name, "HardSigmoid") == 0) return fmin(fmax(alpha * x + beta, 0), 1);
    if (strcmp(name, "Elu") == 0) return x >= 0 ? x : alpha * (exp(x) - 1);
    if (strcmp(name, "Softsign") == 0) return x / (1 + fabs(x));
    assert_string_equal(name, "Softplus");
    return log(1 + exp(x));
}

static const activation *activation_of(const recurrent_data *d, int64_t dir, int which)
{
    static const activation tanh_1[] = {{"Tanh", NAN, NAN}};
    static const activation sigmoid_tanh_2[] = {
        {"Sigmoid", NAN, NAN}, {"Tanh", NAN, NAN}, {"Tanh", NAN, NAN}};
    if (d->k->activations) return &d->k->activations[dir * d->n_activations + which];
    return d->n_activations == 1 ? tanh_1 : &sigmoid_tanh_2[which];
}

/* Xt W + Wb of a gate's unit. */
static double input_part(const recurrent_data *d, int64_t dir, int64_t gate, int64_t u, int64_t b,
                         int64_t t)
{
    const recurrent_case *k = d->k;
    const int64_t row = gate * k->hidden + u, n_rows = d->gates * k->hidden;
    const double *x = d->x + (k->batch_first ? b * k->length + t : t * k->batch + b) * k->input;
    const double *w = d->w + (dir * n_rows + row) * k->input;
    double sum = k->parts & BIAS ? d->b[dir * 2 * n_rows + row] : 0;
    for (int64_t i = 0; i < k->input; i++) sum += x[i] * w[i];
    return sum;
}

/* Ht-1 R + Rb of a gate's unit. */
static double state_part(const recurrent_data *d, int64_t dir, int64_t gate, int64_t u,
                         const double *h)
{
    const recurrent_case *k = d->k;
    const int64_t row = gate * k->hidden + u, n_rows = d->gates * k->hidden;
    const double *r = d->r + (dir * n_rows + row) * k->hidden;
    double sum = k->parts & BIAS ? d->b[dir * 2 * n_rows + n_rows + row] : 0;
    for (int64_t i = 0; i < k->hidden; i++) sum += h[i] * r[i];
    return sum;
}

static double sum_of(const recurrent_data *d, int64_t dir, int64_t gate, int64_t u, int64_t b,
                     int64_t t, const double *h)
{
    return input_part(d, dir, gate, u, b, t) + state_part(d, dir, gate, u, h);
}

static void lstm_step(const recurrent_data *d, int64_t dir, int64_t b, int64_t t, const double *h,
                      double *next, double *c)
{
    const recurrent_case *k = d->k;
    const activation *f = activation_of(d, dir, 0), *g = activation_of(d, dir, 1),
                     *last = activation_of(d, dir, 2);
    for (int64_t u = 0; u < k->hidden; u++) {
        const double *p = d->p + dir * 3 * k->hidden + u;
        const bool peep = (k->parts & PEEP) != 0;
        const double before = c[u];
        const double forget =
            sum_of(d, dir, 2, u, b, t, h) + (peep ? p[2 * k->hidden] * before : 0);
        const double in =
            apply(f, sum_of(d, dir, 0, u, b, t, h) + (peep ? p[0] * before : 0), k->clip);
        c[u] = (k->input_forget ? 1 - in : apply(f, forget, k->clip)) * before +
               in * apply(g, sum_of(d, dir, 3, u, b, t, h), k->clip);
        const double out = sum_of(d, dir, 1, u, b, t, h) + (peep ? p[k->hidden] * c[u] : 0);
        next[u] = apply(f, out, k->clip) * apply(last, c[u], k->clip);
    }
}

static void gru_step(const recurrent_data *d, int64_t dir, int64_t b, int64_t t, const double *h,
                     double *next, double *reset)
{
    const recurrent_case *k = d->k;
    const activation *f = activation_of(d, dir, 0), *g = activation_of(d, dir, 1);
    for (int64_t u = 0; u < k->hidden; u++) {
        reset[u] = apply(f, sum_of(d, dir, 1, u, b, t, h), k->clip);
        if (!k->linear) reset[u] *= h[u];
    }
    for (int64_t u = 0; u < k->hidden; u++) {
        const double z = apply(f, sum_of(d, dir, 0, u, b, t, h), k->clip);
        const double part =
            k->linear ? reset[u] * state_part(d, dir, 2, u, h) : state_part(d, dir, 2, u, reset);
        next[u] = z * h[u] + (1 - z) * apply(g, input_part(d, dir, 2, u, b, t) + part, k->clip);
    }
}

static void one_sequence(const recurrent_data *d, int64_t dir, int64_t b, double *h, double *next,
                         double *c)
{
    const recurrent_case *k = d->k;
    const bool reverse = dir == 1 || (k->direction && strcmp(k->direction, "reverse") == 0);
    const int64_t length = k->parts & LENS ? (int64_t)d->lens[b] : k->length;
    const int64_t at = (k->batch_first ? b * d->dirs + dir : dir * k->batch + b) * k->hidden;
    for (int64_t u = 0; u < k->hidden; u++) {
        h[u] = k->parts & H0 ? d->h0[at + u] : 0;
        c[u] = k->parts & C0 ? d->c0[at + u] : 0;
    }
    for (int64_t s = 0; s < length; s++) {
        const int64_t t = reverse ? length - 1 - s : s;
        if (d->gates == 4)
            lstm_step(d, dir, b, t, h, next, c);
        else if (d->gates == 3)
            gru_step(d, dir, b, t, h, next, c);
        for (int64_t u = 0; u < k->hidden && d->gates == 1; u++)
            next[u] = apply(activation_of(d, dir, 0), sum_of(d, dir, 0, u, b, t, h), k->clip);
        const int64_t line = k->batch_first ? (b * k->length + t) * d->dirs + dir
                                            : (t * d->dirs + dir) * k->batch + b;
        for (int64_t u = 0; u < k->hidden; u++) d->y[line * k->hidden + u] = h[u] = next[u];
    }
    for (int64_t u = 0; u < k->hidden; u++) {
        d->y_h[at + u] = h[u];
        d->y_c[at + u] = c[u];
    }
}

/* ---- running ------------------------------------------------------------------------------------------- */

static double *scaled(int64_t n, double factor)
{
    double *numbers = run_node_random(n);
    for (int64_t i = 0; i < n; i++) numbers[i] *= factor;
    return numbers;
}

static recurrent_data make_data(const recurrent_case *k)
{
    const bool lstm = strcmp(k->op_type, "LSTM") == 0, gru = strcmp(k->op_type, "GRU") == 0;
    recurrent_data d = {.k = k, .gates = lstm ? 4 : gru ? 3 : 1, .dirs = 1};
    if (k->direction && strcmp(k->direction, "bidirectional") == 0) d.dirs = 2;
    d.n_activations = lstm ? 3 : gru ? 2 : 1;
    const int64_t rows = d.dirs * d.gates * k->hidden, state = d.dirs * k->batch * k->hidden;
    d.x = run_node_random(k->length * k->batch * k->input);
    d.w = scaled(rows * k->input, 0.25);
    d.r = scaled(rows * k->hidden, k->hidden > 1000 ? 1.0 / 64 : 0.25);
    d.b = run_node_random(2 * rows);
    d.lens = run_node_zeros(k->batch);
    d.h0 = run_node_random(state);
    d.c0 = run_node_random(state);
    d.p = run_node_random(3 * d.dirs * k->hidden);
    /* Full, empty, and what lies between. */
    for (int64_t b = 0; b < k->batch; b++) d.lens[b] = (double)((k->length + b) % (k->length + 1));
    d.y = run_node_zeros(k->length * state);
    d.y_h = run_node_zeros(state);
    d.y_c = run_node_zeros(state);
    double *h = run_node_zeros(3 * k->hidden);
    for (int64_t dir = 0; dir < d.dirs; dir++)
        for (int64_t b = 0; b < k->batch; b++)
            one_sequence(&d, dir, b, h, h + k->hidden, h + 2 * k->hidden);
    return d;
}

static void write_activations(const recurrent_data *d, run_node *r, const char **names)
{
    double alphas[MAX_LIST], betas[MAX_LIST];
    size_t n_alphas = 0, n_betas = 0;
    const size_t n = (size_t)(d->dirs * d->n_activations);
    if (!d->k->activations) return;
    for (size_t i = 0; i < n; i++) {
        const activation *a = &d->k->activations[i];
        names[i] = a->name;
        if (!isnan(a->alpha)) alphas[n_alphas++] = a->alpha;
        if (!isnan(a->beta)) betas[n_betas++] = a->beta;
    }
    run_node_strings(r, "activations", n, names);
    if (d->k->default_numbers) return;
    if (n_alphas > 0) run_node_floats(r, "activation_alpha", n_alphas, alphas);
    if (n_betas > 0) run_node_floats(r, "activation_beta", n_betas, betas);
}

static void optional_input(run_node *r, bool there, clg_dtype dtype, int rank, const int64_t *dims,
                           const double *numbers)
{
    if (there)
        run_node_input(r, dtype, rank, dims, numbers);
    else
        run_node_absent(r);
}

static void write_node(const recurrent_data *d, run_node *r, const char **names)
{
    const recurrent_case *k = d->k;
    const int64_t rows = d->gates * k->hidden, dirs = d->dirs, first = k->batch_first;
    const int64_t x[] = {first ? k->batch : k->length, first ? k->length : k->batch, k->input};
    const int64_t state[] = {first ? k->batch : dirs, first ? dirs : k->batch, k->hidden};
    void (*weight)(run_node *, clg_dtype, int, const int64_t *, const double *) =
        k->parts & COMPUTED ? run_node_input : run_node_constant;
    run_node_start(r, NULL, k->op_type, k->opset);
    r->heavy = k->heavy;
    run_node_input(r, k->dtype, 3, x, d->x);
    weight(r, k->dtype, 3, (int64_t[]){dirs, rows, k->input}, d->w);
    weight(r, k->dtype, 3, (int64_t[]){dirs, rows, k->hidden}, d->r);
    if (k->parts & BIAS)
        weight(r, k->dtype, 2, (int64_t[]){dirs, 2 * rows}, d->b);
    else
        run_node_absent(r);
    optional_input(r, k->parts & LENS, CLG_INT32, 1, (int64_t[]){k->batch}, d->lens);
    optional_input(r, k->parts & H0, k->dtype, 3, state, d->h0);
    if (d->gates == 4) {
        optional_input(r, k->parts & C0, k->dtype, 3, state, d->c0);
        optional_input(r, k->parts & PEEP, k->dtype, 2, (int64_t[]){dirs, 3 * k->hidden}, d->p);
        if (k->input_forget) run_node_int(r, "input_forget", 1);
    }
    run_node_int(r, "hidden_size", k->hidden);
    if (k->direction) run_node_string(r, "direction", k->direction);
    if (k->opset >= 14) run_node_int(r, "layout", first);
    if (k->clip > 0) run_node_float(r, "clip", k->clip);
    if (d->gates == 3) run_node_int(r, "linear_before_reset", k->linear);
    write_activations(d, r, names);
}

static void check(const recurrent_case *k)
{
    run_node r;
    const char *names[MAX_LIST];
    const recurrent_data d = make_data(k);
    const int64_t first = k->batch_first;
    const int64_t y[] = {first ? k->batch : k->length, first ? k->length : d.dirs,
                         first ? d.dirs : k->batch, k->hidden};
    const int64_t state[] = {first ? k->batch : d.dirs, first ? d.dirs : k->batch, k->hidden};
    write_node(&d, &r, names);
    run_node_expect(&r, k->parts & NO_Y ? CLG_DTYPE_NONE : k->dtype, 4, y, d.y);
    run_node_expect(&r, k->parts & NO_Y_H ? CLG_DTYPE_NONE : k->dtype, 3, state, d.y_h);
    if (d.gates == 4)
        run_node_expect(&r, k->parts & NO_Y_C ? CLG_DTYPE_NONE : k->dtype, 3, state, d.y_c);
    run_node_check(&r, k->dtype == CLG_FLOAT16 ? 1e-2 : k->dtype == CLG_FLOAT64 ? 1e-12 : 1e-5);
}

static recurrent_case usual(const char *op_type)
{
    return (recurrent_case){.op_type = op_type,
                            .opset = 14,
                            .dtype = CLG_FLOAT32,
                            .length = 5,
                            .batch = 5,
                            .input = 7,
                            .hidden = 37,
                            .parts = BIAS};
}

static const char *const op_types[] = {"RNN", "GRU", "GRU", "LSTM"};

static recurrent_case usual_of(int i)
{
    recurrent_case k = usual(op_types[i]);
    k.linear = i == 2;
    return k;
}

/* ---- tests ------------------------------------------------------------------------------------------------ */

static void recurrent__directions_and_layouts(void **state)
{
    (void)state;
    static const char *const directions[] = {"forward", "reverse", "bidirectional"};
    for (int op = 0; op < 4; op++) {
        for (int i = 0; i < 6; i++) {
            recurrent_case k = usual_of(op);
            k.direction = directions[i % 3];
            k.batch_first = i >= 3;
            k.parts = i % 2 ? ALL : BIAS;
            k.heavy = i % 2 != op % 2;
            check(&k);
        }
        recurrent_case k = usual_of(op);
        k.heavy = true;
        k.opset = 7;
        check(&k);
        k.opset = 22;
        k.batch_first = true;
        check(&k);
    }
}

static void recurrent__every_input_and_output_may_be_left_out(void **state)
{
    (void)state;
    static const int parts[] = {0,
                                LENS,
                                H0,
                                C0,
                                PEEP,
                                BIAS | NO_Y,
                                LENS | NO_Y,
                                NO_Y_H | NO_Y_C,
                                ALL | NO_Y_C,
                                ALL | COMPUTED,
                                COMPUTED,
                                ALL | NO_Y | NO_Y_H};
    for (int op = 0; op < 4; op++) {
        for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
            recurrent_case k = usual_of(op);
            if (op < 3 && (parts[i] & NO_Y) && (parts[i] & NO_Y_H)) continue;
            k.parts = parts[i];
            k.direction = i % 2 ? "bidirectional" : "reverse";
            k.batch_first = i % 3 == 1;
            k.heavy = (int)i % 4 != op;
            check(&k);
        }
    }
}

static void recurrent__sizes(void **state)
{
    (void)state;
    static const int64_t sizes[][4] = {/* length, batch, input, hidden */
                                       {0, 2, 3, 37},   {1, 1, 1, 1},    {2, 1, 1, 5},
                                       {3, 4, 0, 16},   {9, 1, 3, 33},   {2, 13, 2, 7},
                                       {12, 2, 64, 65}, {3, 26, 1, 100}, {4, 3, 17, 129}};
    for (int op = 0; op < 4; op++) {
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            recurrent_case k = usual_of(op);
            k.length = sizes[i][0];
            k.batch = sizes[i][1];
            k.input = sizes[i][2];
            k.hidden = sizes[i][3];
            k.direction = "bidirectional";
            k.parts = i % 2 ? BIAS : ALL;
            k.heavy = i > 4;
            check(&k);
        }
    }
}

/* All functions that ONNX names; a second direction with other functions is a launch of its own. */
static void recurrent__activations(void **state)
{
    (void)state;
    static const activation all[12] = {{"LeakyRelu", 0.125, NAN},
                                       {"ScaledTanh", 1.5, 0.5},
                                       {"Softsign", NAN, NAN},
                                       {"HardSigmoid", 0.25, 0.375},
                                       {"ThresholdedRelu", 0.25, NAN},
                                       {"Elu", 0.5, NAN},
                                       {"Sigmoid", NAN, NAN},
                                       {"Affine", 0.5, 0.25},
                                       {"Softplus", NAN, NAN},
                                       {"Relu", NAN, NAN},
                                       {"Tanh", NAN, NAN},
                                       {"HardSigmoid", 0.5, 0.25}};
    static const activation defaults[] = {
        {"LeakyRelu", 0.01, NAN},  {"Affine", 1, 0}, {"ThresholdedRelu", 1, NAN},
        {"HardSigmoid", 0.2, 0.5}, {"Elu", 1, NAN},  {"Tanh", NAN, NAN}};
    recurrent_case k = usual("LSTM");
    k.length = 3;
    k.direction = "bidirectional";
    k.parts = ALL;
    k.activations = all;
    check(&k);
    k.activations = all + 6;
    check(&k);
    k.activations = defaults;
    k.default_numbers = true;
    check(&k);
    k = usual("GRU");
    k.length = 3;
    k.direction = "bidirectional";
    k.activations = all;
    check(&k);
    /* The same functions with other numbers. */
    static const activation numbers[] = {{"HardSigmoid", 0.25, 0.375}, {"HardSigmoid", 0.5, 0.25}};
    k.op_type = "RNN";
    k.activations = numbers;
    check(&k);
}

static void recurrent__clip_and_input_forget(void **state)
{
    (void)state;
    for (int op = 0; op < 4; op++) {
        recurrent_case k = usual_of(op);
        k.clip = 0.25;
        k.parts = ALL;
        check(&k);
        if (op < 3) continue;
        k.input_forget = true;
        check(&k);
        k.clip = 0;
        check(&k);
    }
}

static void recurrent__dtypes(void **state)
{
    (void)state;
    for (int op = 0; op < 4; op++) {
        recurrent_case k = usual_of(op);
        k.parts = ALL;
        k.direction = "bidirectional";
        k.dtype = CLG_FLOAT16;
        check(&k);
        k.dtype = CLG_FLOAT64;
        check(&k);
    }
}

/* The input's part of the gates would take more memory than is allowed for it: launches take some steps each. */
static void recurrent__time_in_chunks(void **state)
{
    (void)state;
    static const char *const directions[] = {"forward", "reverse", "bidirectional"};
    for (int i = 0; i < 3; i++) {
        recurrent_case k = usual(i == 1 ? "GRU" : "LSTM");
        k.length = 5;
        k.batch = 5000;
        k.input = 1;
        k.hidden = 64;
        k.direction = directions[i];
        k.batch_first = i == 1;
        k.parts = LENS | (i == 2 ? NO_Y : 0);
        k.heavy = true;
        check(&k);
    }
}

/* More hidden units than local memory has room for. */
static void recurrent__large_states(void **state)
{
    (void)state;
    for (int op = 0; op < 2; op++) {
        recurrent_case k = usual_of(op);
        k.dtype = CLG_FLOAT64;
        k.length = 2;
        k.batch = 1;
        k.input = 1;
        k.hidden = op == 0 ? 2053 : 2050;
        k.parts = H0;
        k.heavy = true;
        check(&k);
    }
}

/* Within its own sequence, nowhere else. */
static void recurrent__nan_and_infinity(void **state)
{
    (void)state;
    static const double x[] = {0, 0, 0, NAN, INFINITY, 0, 0, 0, 0}, w[] = {1}, r[] = {1};
    static const double y[] = {0, 0, 0, NAN, 1, 0, NAN, 0.76159415595576489, 0};
    run_node n;
    run_node_start(&n, NULL, "RNN", 14);
    run_node_input(&n, CLG_FLOAT32, 3, (int64_t[]){3, 3, 1}, x);
    run_node_constant(&n, CLG_FLOAT32, 3, (int64_t[]){1, 1, 1}, w);
    run_node_constant(&n, CLG_FLOAT32, 3, (int64_t[]){1, 1, 1}, r);
    run_node_expect(&n, CLG_FLOAT32, 4, (int64_t[]){3, 1, 3, 1}, y);
    run_node_check(&n, 1e-6);
}

/* ---- errors ------------------------------------------------------------------------------------------------- */

static void recurrent__bad_lengths_are_told(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        run_node r;
        const char *names[MAX_LIST];
        recurrent_case k = usual("GRU");
        k.parts = LENS;
        const recurrent_data d = make_data(&k);
        d.lens[3] = i == 0 ? 6 : -1;
        write_node(&d, &r, names);
        run_node_expect(&r, CLG_FLOAT32, 4, (int64_t[]){5, 1, 5, 37}, d.y);
        run_node_refused(&r, CLG_ERROR_DATA, i == 0 ? "6" : "-1");
    }
}

static void refused(const recurrent_case *k, const int64_t *r_dims, const char *words)
{
    run_node n;
    const char *names[MAX_LIST];
    const recurrent_data d = make_data(k);
    write_node(&d, &n, names);
    if (r_dims) memcpy(n.inputs[2].dims, r_dims, 3 * sizeof *r_dims);
    if (r_dims) n.inputs[2].n = r_dims[0] * r_dims[1] * r_dims[2];
    run_node_expect(&n, k->dtype, 0, NULL, NULL);
    run_node_refused(&n, r_dims ? CLG_ERROR_SHAPE : CLG_ERROR_INVALID_MODEL, words);
}

static void recurrent__refuses_what_is_none(void **state)
{
    (void)state;
    static const activation scaled_tanh[] = {{"ScaledTanh", NAN, NAN}};
    recurrent_case k = usual("RNN");
    k.direction = "sideways";
    refused(&k, NULL, "sideways");
    k = usual("RNN");
    refused(&k, (int64_t[]){1, 37, 36}, "hidden units");
    refused(&k, (int64_t[]){1, 36, 37}, "hidden units");
    k.activations = scaled_tanh;
    refused(&k, NULL, "ScaledTanh");
}

static void one_attribute(const char *name, int64_t i, double f, const char *const *strings,
                          clg_status status, const char *words)
{
    run_node r;
    run_node_start(&r, NULL, "LSTM", 14);
    run_node_input(&r, CLG_FLOAT32, 3, (int64_t[]){1, 1, 1}, run_node_zeros(1));
    run_node_constant(&r, CLG_FLOAT32, 3, (int64_t[]){1, 4, 1}, run_node_zeros(4));
    run_node_constant(&r, CLG_FLOAT32, 3, (int64_t[]){1, 4, 1}, run_node_zeros(4));
    if (strings)
        run_node_strings(&r, name, 3, strings);
    else if (f != 0)
        run_node_float(&r, name, f);
    else
        run_node_int(&r, name, i);
    run_node_expect(&r, CLG_FLOAT32, 0, NULL, NULL);
    run_node_refused(&r, status, words);
}

static void recurrent__refuses_attributes(void **state)
{
    (void)state;
    static const char *const unknown[] = {"Sigmoid", "Tanh", "Mish"};
    one_attribute("layout", 2, 0, NULL, CLG_ERROR_INVALID_MODEL, "layout 2");
    one_attribute("clip", 0, -1, NULL, CLG_ERROR_INVALID_MODEL, "clip");
    one_attribute("hidden_size", 2, 0, NULL, CLG_ERROR_SHAPE, "hidden units");
    one_attribute("hidden_size", 0, 0, NULL, CLG_ERROR_INVALID_MODEL, "hidden_size");
    one_attribute("activations", 0, 0, unknown, CLG_ERROR_UNSUPPORTED_ATTRIBUTE, "Mish");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recurrent__directions_and_layouts),
        cmocka_unit_test(recurrent__every_input_and_output_may_be_left_out),
        cmocka_unit_test(recurrent__sizes),
        cmocka_unit_test(recurrent__activations),
        cmocka_unit_test(recurrent__clip_and_input_forget),
        cmocka_unit_test(recurrent__dtypes),
        cmocka_unit_test(recurrent__time_in_chunks),
        cmocka_unit_test(recurrent__large_states),
        cmocka_unit_test(recurrent__nan_and_infinity),
        cmocka_unit_test(recurrent__bad_lengths_are_told),
        cmocka_unit_test(recurrent__refuses_what_is_none),
        cmocka_unit_test(recurrent__refuses_attributes),
    };
    return cmocka_run_group_tests(tests, run_node_open, run_node_close);
}
