/* SPDX-License-Identifier: Apache-2.0
 *
 * The self-test reference of RNN, GRU and LSTM. Each number is carried with its error scale: what
 * rounding adds at a step, and what the errors of its operands become. In products of the state
 * with R, the operands' errors are summed as independent ones, by their squares; the sum of their
 * magnitudes would grow so fast from step to step that wrong results would pass.
 */
#include "ops/recurrent/recurrent.h"
#include "session/selftest/selftest.h"

#include <math.h>

/* ---- numbers with errors --------------------------------------------------------------------- */

/* A number and its error scale. */
typedef struct number {
    double v, scale;
} number;

static number plus(number a, number b) { return (number){a.v + b.v, a.scale + b.scale}; }

static number times(number a, number b)
{
    return (number){a.v * b.v, fabs(a.v) * b.scale + fabs(b.v) * a.scale + fabs(a.v * b.v)};
}

/* Returns 1 - a. */
static number complement(number a) { return (number){1 - a.v, a.scale + fabs(1 - a.v)}; }

/* The codes of recurrent_activation. */
enum {
    RELU,
    TANH,
    SIGMOID,
    AFFINE,
    LEAKY_RELU,
    THRESHOLDED_RELU,
    SCALED_TANH,
    HARD_SIGMOID,
    ELU,
    SOFTSIGN,
    SOFTPLUS
};

static double activation(const recurrent_activation *f, double x)
{
    const double alpha = (double)f->alpha, beta = (double)f->beta;
    switch (f->code) {
    case RELU: return (x + fabs(x)) / 2;
    case TANH: return tanh(x);
    case SIGMOID: return x < 0 ? exp(x) / (1 + exp(x)) : 1 / (1 + exp(-x));
    case AFFINE: return alpha * x + beta;
    case LEAKY_RELU: return x < 0 ? alpha * x : x;
    case THRESHOLDED_RELU: return x >= alpha ? x : 0;
    case SCALED_TANH: return alpha * tanh(beta * x);
    case HARD_SIGMOID: return fmax(0, fmin(1, alpha * x + beta));
    case ELU: return x < 0 ? alpha * (exp(x) - 1) : x;
    case SOFTSIGN: return x / (1 + fabs(x));
    case SOFTPLUS: return fmax(x, 0) + log1p(exp(-fabs(x)));
    default: return NAN;
    }
}

/* One sequence of the batch in one direction. */
typedef struct sequence {
    const lower_context *lc;
    const double *const *in;
    recurrent_desc desc;
    int64_t length, batch, inputs, hidden, width; /* width: gates * hidden */
    int64_t direction, entry;                     /* entry: index in the batch */
    double bound;                                 /* of an error of scale 1 */
    number *from_input, *from_state; /* [gates][hidden]: X W + Wb and H R + Rb of a step */
    number *h, *reset, *c;           /* [hidden]: Ht, r * Ht, Ct */
} sequence;

/* What is added to the scale of each activation's result: tiny results may underflow. */
#define UNDERFLOW (1.0 / 64)
/* States that exceed this limit, as with Relu in place of Sigmoid, soon overflow; what follows is
 * not compared. */
#define MAX_STATE 1e4

/* Returns activation `which` (0 f, 1 g, 2 h) of the clipped x. Its error is what the result changes
 * by when x changes by its error, which is right also where the activation has a kink or jump. */
static number activate(const sequence *s, int which, number x)
{
    const recurrent_activation *f = &s->desc.activations[s->direction][which];
    const double clip = (double)s->desc.clip, around = s->bound * x.scale;
    const double y = activation(f, fmax(-clip, fmin(clip, x.v))),
                 below = activation(f, fmax(-clip, fmin(clip, x.v - around))),
                 above = activation(f, fmax(-clip, fmin(clip, x.v + around)));
    const double change = fmax(fabs(above - y), fabs(below - y)) / s->bound;
    const double addend = f->code == AFFINE || f->code == HARD_SIGMOID ? fabs((double)f->beta) : 0;
    return (number){y, change + fabs(y) + addend + UNDERFLOW};
}

/* ---- sums of gates --------------------------------------------------------------------------- */

/* Sets from_input to X W + Wb for the input vector x. */
static void sum_inputs(const sequence *s, const double *x)
{
    const double *w = s->in[IN_W] + s->direction * s->width * s->inputs;
    const double *bias = s->in[IN_B] ? s->in[IN_B] + s->direction * 2 * s->width : NULL;
    for (int64_t g = 0; g < s->width; g++) {
        number *to = &s->from_input[g];
        *to = bias ? (number){bias[g], fabs(bias[g])} : (number){0, 0};
        for (int64_t k = s->inputs - 1; k >= 0; k--) {
            const double term = x[k] * w[g * s->inputs + k];
            to->v += term;
            to->scale += fabs(term);
        }
    }
}

/* Sets gates first .. end - 1 of from_state to h R + Rb. */
static void sum_states(const sequence *s, int64_t first, int64_t end, const number *h)
{
    const double *r = s->in[IN_R] + s->direction * s->width * s->hidden;
    const double *bias = s->in[IN_B] ? s->in[IN_B] + (s->direction * 2 + 1) * s->width : NULL;
    for (int64_t g = first * s->hidden; g < end * s->hidden; g++) {
        number *to = &s->from_state[g];
        double squares = 0;
        *to = bias ? (number){bias[g], fabs(bias[g])} : (number){0, 0};
        for (int64_t k = s->hidden - 1; k >= 0; k--) {
            const double weight = r[g * s->hidden + k], error = weight * h[k].scale;
            to->v += weight * h[k].v;
            to->scale += fabs(weight * h[k].v);
            squares += error * error;
        }
        to->scale += sqrt(squares);
    }
}

static number gate(const sequence *s, int64_t g, int64_t unit)
{
    return plus(s->from_input[g * s->hidden + unit], s->from_state[g * s->hidden + unit]);
}

/* ---- cells ----------------------------------------------------------------------------------- */

/* Returns peephole weight `which` (0 i, 1 o, 2 f) times the cell state; 0 without peepholes. */
static number peephole(const sequence *s, int which, int64_t unit)
{
    if (!s->in[IN_P]) return (number){0, 0};
    const double *p = s->in[IN_P] + (s->direction * 3 + which) * s->hidden;
    return times((number){p[unit], 0}, s->c[unit]);
}

/* Computes one step of LSTM: gates i, o, f, c. */
static void step_lstm(const sequence *s)
{
    sum_states(s, 0, 4, s->h);
    for (int64_t u = 0; u < s->hidden; u++) {
        const number i = activate(s, 0, plus(gate(s, 0, u), peephole(s, 0, u)));
        const number f = s->desc.coupled ? complement(i)
                                         : activate(s, 0, plus(gate(s, 2, u), peephole(s, 2, u)));
        const number update = activate(s, 1, gate(s, 3, u));
        s->c[u] = plus(times(f, s->c[u]), times(i, update));
        const number o = activate(s, 0, plus(gate(s, 1, u), peephole(s, 1, u)));
        s->h[u] = times(o, activate(s, 2, s->c[u]));
    }
}

/* Computes one step of GRU: gates z, r, h. */
static void step_gru(const sequence *s)
{
    const bool linear = s->desc.cell == CELL_GRU_LINEAR;
    sum_states(s, 0, linear ? 3 : 2, s->h);
    for (int64_t u = 0; u < s->hidden; u++) {
        const number r = activate(s, 0, gate(s, 1, u));
        number *of_hidden = &s->from_state[2 * s->hidden + u];
        if (linear) *of_hidden = times(r, *of_hidden);
        s->reset[u] = times(r, s->h[u]);
    }
    if (!linear) sum_states(s, 2, 3, s->reset);
    for (int64_t u = 0; u < s->hidden; u++) {
        const number z = activate(s, 0, gate(s, 0, u)), h = activate(s, 1, gate(s, 2, u));
        s->h[u] = plus(times(complement(z), h), times(z, s->h[u]));
    }
}

static void step_rnn(const sequence *s)
{
    sum_states(s, 0, 1, s->h);
    for (int64_t u = 0; u < s->hidden; u++) s->h[u] = activate(s, 0, gate(s, 0, u));
}

static void advance(const sequence *s, const double *x)
{
    sum_inputs(s, x);
    if (s->desc.cell == CELL_LSTM)
        step_lstm(s);
    else if (s->desc.cell == CELL_RNN)
        step_rnn(s);
    else
        step_gru(s);
}

/* ---- sequences ------------------------------------------------------------------------------- */

/* Returns the index of the sequence's state in Y_h, Y_c and the initial states. */
static int64_t state_index(const sequence *s)
{
    const int64_t row = s->desc.batch_first ? s->entry * s->desc.n_dirs + s->direction
                                            : s->direction * s->batch + s->entry;
    return row * s->hidden;
}

/* Returns the index of the sequence's time t in X. */
static int64_t input_index(const sequence *s, int64_t t)
{
    const int64_t row = s->desc.batch_first ? s->entry * s->length + t : t * s->batch + s->entry;
    return row * s->inputs;
}

/* Returns the index of the sequence's time t in Y. */
static int64_t output_index(const sequence *s, int64_t t)
{
    const int64_t n_dirs = s->desc.n_dirs;
    const int64_t row = s->desc.batch_first ? (s->entry * s->length + t) * n_dirs + s->direction
                                            : (t * n_dirs + s->direction) * s->batch + s->entry;
    return row * s->hidden;
}

/* Stores a state as outputs; without `determined`, any output is right. */
static void store(const selftest_expected *to, int64_t at, const number *from, int64_t n,
                  bool determined)
{
    for (int64_t u = 0; to->y && u < n; u++) {
        to->y[at + u] = from[u].v;
        to->scale[at + u] = determined ? from[u].scale : NAN;
    }
}

/* Returns whether all states are within MAX_STATE. */
static bool is_moderate(const sequence *s)
{
    for (int64_t u = 0; u < s->hidden; u++)
        if (!(fabs(s->h[u].v) <= MAX_STATE && fabs(s->c[u].v) <= MAX_STATE)) return false;
    return true;
}

static void run_sequence(const sequence *s, const selftest_expected out[3])
{
    const bool reverse = s->direction == 1 || s->desc.direction == DIRECTION_REVERSE;
    const int64_t steps = s->in[IN_LENS] ? (int64_t)s->in[IN_LENS][s->entry] : s->length;
    const int64_t state = state_index(s);
    const double *h = s->in[IN_H0] ? s->in[IN_H0] + state : NULL,
                 *c = s->in[IN_C0] ? s->in[IN_C0] + state : NULL;
    bool determined = true;
    for (int64_t u = 0; u < s->hidden; u++) {
        s->h[u] = (number){h ? h[u] : 0, 0};
        s->c[u] = (number){c ? c[u] : 0, 0};
    }
    for (int64_t i = 0; i < steps && i < s->length; i++) {
        const int64_t t = reverse ? steps - 1 - i : i;
        advance(s, s->in[IN_X] + input_index(s, t));
        determined = determined && is_moderate(s);
        store(&out[0], output_index(s, t), s->h, s->hidden, determined);
    }
    store(&out[1], state, s->h, s->hidden, determined);
    store(&out[2], state, s->c, s->hidden, determined);
}

/* The number of products that the reference may sum; more take more than a second. */
#define MAX_TERMS 5e8

/* Returns the bound of an error of scale 1. */
static double bound_of(clg_dtype dtype)
{
    return dtype == CLG_FLOAT64 ? 1e-13 : dtype == CLG_FLOAT32 ? 4e-6 : 2e-3;
}

static bool allocate(sequence *s)
{
    const size_t width = (size_t)s->width + 1, hidden = (size_t)s->hidden + 1;
    s->from_input = arena_alloc(s->lc->memory, width, sizeof(number));
    s->from_state = arena_alloc(s->lc->memory, width, sizeof(number));
    s->h = arena_alloc(s->lc->memory, hidden, sizeof(number));
    s->reset = arena_alloc(s->lc->memory, hidden, sizeof(number));
    s->c = arena_alloc(s->lc->memory, hidden, sizeof(number));
    return s->from_input && s->from_state && s->h && s->reset && s->c;
}

/* Marks the outputs of a sequence that is not computed: they are only checked for NaNs. */
static void pass_over(const sequence *s, const selftest_expected out[3])
{
    for (int64_t u = 0; u < s->hidden; u++) {
        for (int k = 1; k < 3; k++)
            if (out[k].y) out[k].scale[state_index(s) + u] = HUGE_VAL;
        for (int64_t t = 0; out[0].y && t < s->length; t++)
            out[0].scale[output_index(s, t) + u] = HUGE_VAL;
    }
}

/* Reads attributes and sizes. */
static clg_status read_sequences(const lower_context *lc, sequence *s)
{
    CLG_TRY(recurrent_read(lc->node, &s->desc));
    const shape *x = &lc->inputs[IN_X].dims;
    s->length = x->dims[s->desc.batch_first ? 1 : 0];
    s->batch = x->dims[s->desc.batch_first ? 0 : 1];
    s->inputs = x->dims[2];
    s->hidden = lc->inputs[IN_R].dims.dims[2];
    s->width = s->desc.n_gates * s->hidden;
    return allocate(s) ? CLG_OK : CLG_ERROR_OUT_OF_HOST_MEMORY;
}

/* Computes Y, which is 0 after the end of a sequence, Y_h and Y_c. Of a large batch, only some
 * sequences are computed, including the last one. */
clg_status selftest_recurrent(const lower_context *lc, const double *const *in,
                              const selftest_expected *out)
{
    const double *inputs[IN_P + 1] = {NULL};
    selftest_expected outputs[3] = {{NULL, NULL}, {NULL, NULL}, {NULL, NULL}};
    for (size_t i = 0; i < lc->n_inputs && i <= IN_P; i++) inputs[i] = in[i];
    for (size_t k = 0; k < lc->n_outputs && k < 3; k++) outputs[k] = out[k];
    sequence s = {.lc = lc, .in = inputs, .bound = bound_of(lc->inputs[IN_X].dtype)};
    CLG_TRY(read_sequences(lc, &s));
    const double terms =
        (double)(s.desc.n_dirs * s.length) * (double)s.width * (double)(s.hidden + s.inputs);
    if (terms > MAX_TERMS)
        return error_set(CLG_ERROR_NOT_FOUND, "a sequence is too long for the reference");
    const int64_t distance = 1 + (int64_t)(terms * (double)s.batch / MAX_TERMS);
    for (s.direction = 0; s.direction < s.desc.n_dirs; s.direction++)
        for (s.entry = 0; s.entry < s.batch; s.entry++) {
            if ((s.batch - 1 - s.entry) % distance == 0)
                run_sequence(&s, outputs);
            else
                pass_over(&s, outputs);
        }
    return CLG_OK;
}

/* ---- contents -------------------------------------------------------------------------------- */

/* Returns a random weight of a sum of n terms, a multiple of a power of two, in a range that
 * shrinks with n. So the sums are moderate, and errors of the state do not grow from step to step:
 * the bound on them remains small. */
static double weight_at(const selftest_problem *p, int64_t n, uint64_t random)
{
    const double wanted = sqrt(3 / fmax(3, (double)n));
    return (p->low + (p->high - p->low) * (double)(random % 65) / 64) * exp2(floor(log2(wanted)));
}

/* Gives the lengths of sequences (the whole length, one less, and so on down to 1), and the weights
 * W and R. */
bool selftest_length_contents(const selftest_problem *p, size_t input, int64_t at, uint64_t random,
                              double *out)
{
    if (p->inputs[input].known) return false;
    if (input == IN_W || input == IN_R) {
        *out = weight_at(p, p->inputs[input].dims.dims[2], random);
        return true;
    }
    if (input != IN_LENS) return false;
    const int64_t length = p->inputs[IN_X].dims.dims[node_int(&p->node, "layout", 0)];
    *out = (double)(length > 0 ? length - at % length : 0);
    return true;
}
