/* SPDX-License-Identifier: Apache-2.0
 *
 * Computes the reference of recurrent cells. See recurrent_case.h.
 */
#include "support/cases/recurrent_case.h"

#include <math.h>
#include <string.h>

/* ---- the reference --------------------------------------------------------------------------- */

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

/* Returns the input's part of a gate's pre-activation for one hidden unit: Xt W + Wb. */
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

/* Returns the hidden state's part of a gate's pre-activation for one hidden unit: Ht-1 R + Rb. */
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

/* ---- running --------------------------------------------------------------------------------- */

static double *scaled(int64_t n, double factor)
{
    double *numbers = run_node_random(n);
    for (int64_t i = 0; i < n; i++) numbers[i] *= factor;
    return numbers;
}

recurrent_data recurrent_make(const recurrent_case *k)
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
    /* Sequence lengths: the maximum, 0, and in between. */
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
    double alphas[RECURRENT_LIST], betas[RECURRENT_LIST];
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

void recurrent_write(const recurrent_data *d, run_node *r, const char **names)
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

void recurrent_check(const recurrent_case *k)
{
    run_node r;
    const char *names[RECURRENT_LIST];
    const recurrent_data d = recurrent_make(k);
    const int64_t first = k->batch_first;
    const int64_t y[] = {first ? k->batch : k->length, first ? k->length : d.dirs,
                         first ? d.dirs : k->batch, k->hidden};
    const int64_t state[] = {first ? k->batch : d.dirs, first ? d.dirs : k->batch, k->hidden};
    recurrent_write(&d, &r, names);
    run_node_expect(&r, k->parts & NO_Y ? CLG_DTYPE_NONE : k->dtype, 4, y, d.y);
    run_node_expect(&r, k->parts & NO_Y_H ? CLG_DTYPE_NONE : k->dtype, 3, state, d.y_h);
    if (d.gates == 4)
        run_node_expect(&r, k->parts & NO_Y_C ? CLG_DTYPE_NONE : k->dtype, 3, state, d.y_c);
    run_node_check(&r, k->dtype == CLG_FLOAT16 ? 1e-2 : k->dtype == CLG_FLOAT64 ? 1e-12 : 1e-5);
}
