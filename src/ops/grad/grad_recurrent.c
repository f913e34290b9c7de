/* SPDX-License-Identifier: Apache-2.0
 *
 * The rules of RNN, GRU and LSTM: the cells of all time steps, unrolled, by their equations. The
 * number of steps must be known.
 *
 * Gates are in ONNX's order: i for RNN, i o f c for LSTM, z r h for GRU. Letters: T steps, B batch,
 * H hidden units, G gates.
 */
#include "ops/grad/grad_rule.h"
#include "ops/recurrent/recurrent.h"

#include <math.h>

enum { MAX_STEPS = 1024, MAX_GATES = 4, NODES_PER_STEP = 32 /* about: forward and backward */ };

typedef struct cells {
    recurrent_desc desc;
    int64_t n_steps, hidden;
    value_id *steps;   /* by step: [B, G H], X W + bias; then, by step, Y [B, H] */
    value_id *counts;  /* by step: bool [B, 1], the step belongs to the sequence; NULL: all do */
    value_id h, c;     /* state [B, H] */
    value_id r, r_h;   /* R transposed, [H, G H] or [H, 2 H], and GRU's of gate h */
    value_id bias_r_h; /* [H]: Rb of gate h, of GRU with linear_before_reset; or NONE */
    value_id peep[3];  /* [H], of i, o, f; or NONE */
    int direction;
} cells;

/* ---- parts ----------------------------------------------------------------------------------- */

/* Splits v along an axis into n parts of `size` elements. */
static void split(grad_node *c, value_id v, int64_t axis, size_t n, int64_t size, value_id *out)
{
    int64_t sizes[MAX_STEPS];
    for (size_t i = 0; i < n; i++) sizes[i] = size;
    grad_split(c, v, axis, grad_list(c, n, sizes), n, out);
}

static value_id add(grad_node *c, value_id a, value_id b)
{
    return b == VALUE_NONE ? a : GRAD_ADD(c, "Add", a, b);
}

static value_id multiply(grad_node *c, value_id a, value_id b) { return GRAD_ADD(c, "Mul", a, b); }

/* Returns activation f (0), g (1) or h (2) of v, after clipping. */
static value_id activate(grad_node *c, const cells *w, int which, value_id v)
{
    /* by the codes of recurrent_activation: operators of ONNX, and which numbers they have */
    static const struct {
        const char *name;
        bool alpha, beta;
    } rows[] = {
        {"Relu", false, false},     {"Tanh", false, false},      {"Sigmoid", false, false},
        {"Affine", false, false},   {"LeakyRelu", true, false},  {"ThresholdedRelu", true, false},
        {"Tanh", false, false},     {"HardSigmoid", true, true}, {"Elu", true, false},
        {"Softsign", false, false}, {"Softplus", false, false}};
    enum { AFFINE = 3, SCALED_TANH = 6 };
    const recurrent_activation *a = &w->desc.activations[w->direction][which];
    const double clip = (double)w->desc.clip;
    if (isfinite(clip)) v = GRAD_ADD(c, "Clip", v, grad_number(c, -clip), grad_number(c, clip));
    if (a->code == AFFINE)
        return add(c, multiply(c, v, grad_number(c, (double)a->alpha)),
                   grad_number(c, (double)a->beta));
    if (a->code == SCALED_TANH) v = multiply(c, v, grad_number(c, (double)a->beta));
    value_id made = GRAD_ADD(c, rows[a->code].name, v);
    if (rows[a->code].alpha) made = grad_set_float(c, made, "alpha", a->alpha);
    if (rows[a->code].beta) made = grad_set_float(c, made, "beta", a->beta);
    return a->code == SCALED_TANH ? multiply(c, made, grad_number(c, (double)a->alpha)) : made;
}

/* Returns 1 - v. */
static value_id rest_of(grad_node *c, value_id v)
{
    return GRAD_ADD(c, "Sub", grad_number(c, 1), v);
}

/* ---- cells: the next state from x, [B, G H] -------------------------------------------------- */

static value_id rnn_cell(grad_node *c, cells *w, value_id x)
{
    return activate(c, w, 0, add(c, x, GRAD_ADD(c, "MatMul", w->h, w->r)));
}

/* Returns the next h; sets *out_c to the next c. */
static value_id lstm_cell(grad_node *c, cells *w, value_id x, value_id *out_c)
{
    value_id gates[MAX_GATES];
    split(c, add(c, x, GRAD_ADD(c, "MatMul", w->h, w->r)), 1, 4, w->hidden, gates);
    value_id i = gates[0], o = gates[1], f = gates[2];
    const bool has_peep = w->peep[0] != VALUE_NONE;
    if (has_peep) i = add(c, i, multiply(c, w->peep[0], w->c));
    i = activate(c, w, 0, i);
    if (has_peep) f = add(c, f, multiply(c, w->peep[2], w->c));
    f = w->desc.coupled ? rest_of(c, i) : activate(c, w, 0, f);
    const value_id fresh = multiply(c, i, activate(c, w, 1, gates[3]));
    *out_c = add(c, multiply(c, f, w->c), fresh);
    if (has_peep) o = add(c, o, multiply(c, w->peep[1], *out_c));
    return multiply(c, activate(c, w, 0, o), activate(c, w, 2, *out_c));
}

static value_id gru_cell(grad_node *c, cells *w, value_id x)
{
    value_id xs[MAX_GATES], hs[MAX_GATES];
    const bool linear = w->desc.cell == CELL_GRU_LINEAR;
    split(c, x, 1, 3, w->hidden, xs);
    split(c, GRAD_ADD(c, "MatMul", w->h, w->r), 1, 2, w->hidden, hs);
    const value_id z = activate(c, w, 0, add(c, xs[0], hs[0])),
                   r = activate(c, w, 0, add(c, xs[1], hs[1]));
    value_id part;
    if (linear)
        part = multiply(c, r, add(c, GRAD_ADD(c, "MatMul", w->h, w->r_h), w->bias_r_h));
    else
        part = GRAD_ADD(c, "MatMul", multiply(c, r, w->h), w->r_h);
    const value_id fresh = activate(c, w, 1, add(c, xs[2], part));
    return add(c, multiply(c, rest_of(c, z), fresh), multiply(c, z, w->h));
}

/* Computes the state after step t from that before it. A sequence without such a step keeps its
 * state and outputs zeros. */
static void go_step(grad_node *c, cells *w, size_t t)
{
    value_id next_c = VALUE_NONE;
    const value_id x = w->steps[t];
    const value_id next = w->desc.cell == CELL_RNN    ? rnn_cell(c, w, x)
                          : w->desc.cell == CELL_LSTM ? lstm_cell(c, w, x, &next_c)
                                                      : gru_cell(c, w, x);
    w->steps[t] = next;
    if (w->counts) {
        const value_id counts = w->counts[t];
        w->steps[t] = GRAD_ADD(c, "Where", counts, next, grad_number(c, 0));
        w->h = GRAD_ADD(c, "Where", counts, next, w->h);
        if (next_c != VALUE_NONE) w->c = GRAD_ADD(c, "Where", counts, next_c, w->c);
        return;
    }
    w->h = next;
    if (next_c != VALUE_NONE) w->c = next_c;
}

/* ---- one direction --------------------------------------------------------------------------- */

/* Returns the initial state of input i, [B, H]. */
static value_id initial(grad_node *c, const cells *w, value_id x, size_t i)
{
    if (grad_in(c, i) != VALUE_NONE)
        return grad_pick(c, grad_in(c, i), w->desc.batch_first ? 1 : 0, w->direction);
    const value_id dims[2] = {grad_size_along(c, x, 1), grad_list(c, 1, &w->hidden)};
    return grad_fill(c, grad_concat(c, 0, 2, dims), grad_fact(c, grad_in(c, IN_X))->dtype, 0);
}

/* Sets the weights of a direction, and the steps from x, [T, B, C]. */
static void start(grad_node *c, cells *w, value_id x)
{
    static const int64_t swap[2] = {1, 0}, front = 0;
    const int64_t all = w->desc.n_gates * w->hidden, before_h = 2 * w->hidden;
    const bool is_gru = w->desc.cell == CELL_GRU || w->desc.cell == CELL_GRU_LINEAR;
    const value_id wt = grad_permute(c, grad_pick(c, grad_in(c, IN_W), 0, w->direction), 2, swap),
                   rt = grad_permute(c, grad_pick(c, grad_in(c, IN_R), 0, w->direction), 2, swap);
    value_id sums = GRAD_ADD(c, "MatMul", x, wt);
    w->r = is_gru ? grad_slice(c, rt, 1, 0, before_h, 1) : rt;
    w->r_h = is_gru ? grad_slice(c, rt, 1, before_h, all, 1) : VALUE_NONE;
    w->bias_r_h = VALUE_NONE;
    if (grad_in(c, IN_B) != VALUE_NONE) {
        const value_id b = grad_pick(c, grad_in(c, IN_B), 0, w->direction);
        value_id of_r = grad_slice(c, b, 0, all, 2 * all, 1);
        if (w->desc.cell == CELL_GRU_LINEAR) {
            w->bias_r_h = grad_slice(c, of_r, 0, before_h, all, 1);
            const value_id none =
                grad_fill(c, grad_list(c, 1, &w->hidden), grad_fact(c, grad_in(c, IN_X))->dtype, 0);
            of_r = grad_concat(c, 0, 2, (value_id[]){grad_slice(c, of_r, 0, 0, before_h, 1), none});
        }
        sums = add(c, add(c, sums, grad_slice(c, b, 0, 0, all, 1)), of_r);
    }
    const bool has_peep = w->desc.cell == CELL_LSTM && grad_in(c, IN_P) != VALUE_NONE;
    for (int i = 0; i < 3; i++) w->peep[i] = VALUE_NONE;
    if (has_peep)
        split(c, grad_pick(c, grad_in(c, IN_P), 0, w->direction), 0, 3, w->hidden, w->peep);
    split(c, sums, 0, (size_t)w->n_steps, 1, w->steps);
    for (int64_t t = 0; t < w->n_steps; t++)
        w->steps[t] = GRAD_ADD(c, "Squeeze", w->steps[t], grad_list(c, 1, &front));
    w->h = initial(c, w, x, IN_H0);
    w->c = w->desc.cell == CELL_LSTM ? initial(c, w, x, IN_C0) : VALUE_NONE;
}

/* Computes Y, [T, 1, B, H], and Y_h and Y_c, [1, B, H], of a direction. */
static void go_through(grad_node *c, cells *w, value_id x, value_id out[3])
{
    const int64_t front = 0, both[2] = {0, 1};
    const bool reverse = w->desc.direction == DIRECTION_REVERSE || w->direction == 1;
    start(c, w, x);
    for (int64_t t = 0; t < w->n_steps && grad_has_room(c, 0); t++)
        go_step(c, w, (size_t)(reverse ? w->n_steps - 1 - t : t));
    for (int64_t t = 0; t < w->n_steps && c->status == CLG_OK; t++)
        w->steps[t] = grad_unsqueeze(c, w->steps[t], 2, both);
    out[0] = grad_concat(c, 0, (size_t)w->n_steps, w->steps);
    out[1] = grad_unsqueeze(c, w->h, 1, &front);
    out[2] = w->c == VALUE_NONE ? VALUE_NONE : grad_unsqueeze(c, w->c, 1, &front);
}

/* ---- the node -------------------------------------------------------------------------------- */

/* Reads attributes and sizes; refuses where these are not known. */
static bool read_cells(grad_node *c, cells *w)
{
    const shape *x = &grad_fact(c, grad_in(c, IN_X))->dims,
                *r = &grad_fact(c, grad_in(c, IN_R))->dims;
    if (c->status == CLG_OK) c->status = recurrent_read(&c->node, &w->desc);
    if (c->status != CLG_OK) return false;
    w->n_steps = x->rank == 3 ? x->dims[w->desc.batch_first ? 1 : 0] : DIM_UNKNOWN;
    w->hidden = r->rank == 3 ? r->dims[2] : DIM_UNKNOWN;
    if (w->n_steps == DIM_UNKNOWN || w->hidden == DIM_UNKNOWN)
        grad_refuse(c, "the number of its time steps or hidden units is not known: give X a fixed "
                       "number of steps");
    else if (w->n_steps < 1 || w->n_steps > MAX_STEPS)
        grad_refuse(c, "it has %lld time steps, and 1 to %d are supported", (long long)w->n_steps,
                    MAX_STEPS);
    return c->status == CLG_OK &&
           grad_has_room(c, (size_t)(w->n_steps * w->desc.n_dirs) * NODES_PER_STEP);
}

/* Sets which steps belong to each sequence. */
static void set_counts(grad_node *c, cells *w)
{
    if (grad_in(c, IN_LENS) == VALUE_NONE) {
        w->counts = NULL;
        return;
    }
    const value_id lens = grad_unsqueeze(c, grad_in(c, IN_LENS), 1, (int64_t[]){1});
    for (int64_t t = 0; t < w->n_steps; t++)
        w->counts[t] = GRAD_ADD(c, "Greater", lens, grad_number_of(c, CLG_INT32, (double)t));
}

/* Joins the results of the directions, and brings the batch to the front in layout 1. */
static value_id join(grad_node *c, const cells *w, value_id results[2][3], int k)
{
    static const int64_t y[4] = {2, 0, 1, 3}, last[3] = {1, 0, 2};
    value_id v = results[0][k];
    if (v == VALUE_NONE) return v;
    if (w->desc.n_dirs == 2) v = grad_concat(c, k == 0 ? 1 : 0, 2, (value_id[]){v, results[1][k]});
    if (!w->desc.batch_first) return v;
    return k == 0 ? grad_permute(c, v, 4, y) : grad_permute(c, v, 3, last);
}

void grad_pass_recurrent(grad_node *c)
{
    static const int64_t swap[3] = {1, 0, 2};
    const size_t first = c->graph->n_nodes;
    value_id results[2][3] = {{VALUE_NONE}};
    cells w = {.steps = NULL};
    if (!read_cells(c, &w)) return;
    w.steps = memory_zalloc(2 * (size_t)w.n_steps, sizeof *w.steps);
    w.counts = w.steps ? w.steps + w.n_steps : NULL;
    value_id *const memory = w.steps;
    if (!memory) {
        c->status = CLG_ERROR_OUT_OF_HOST_MEMORY;
        return;
    }
    set_counts(c, &w);
    const value_id x = grad_in(c, IN_X),
                   by_time = w.desc.batch_first ? grad_permute(c, x, 3, swap) : x;
    for (w.direction = 0; w.direction < w.desc.n_dirs; w.direction++)
        go_through(c, &w, by_time, results[w.direction]);
    memory_free(memory);
    grad_through(
        c, first, 3,
        (value_id[]){join(c, &w, results, 0), join(c, &w, results, 1), join(c, &w, results, 2)});
}
