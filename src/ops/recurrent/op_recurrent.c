/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks and infers RNN, GRU and LSTM (ONNX 7 and later). A sequence of length 0 keeps its state:
 * Y_h is initial_h. `clip` limits the input of every activation, as ONNX defines, also that of
 * LSTM's activation h.
 */
#include "ops/batch/batch_rule.h"
#include "ops/grad/grad_rule.h"
#include "ops/recurrent/recurrent.h"

#include <inttypes.h>

static clg_status recurrent_check(const node *n)
{
    recurrent_desc r;
    return recurrent_read(n, &r);
}

/* ---- shapes ---------------------------------------------------------------------------------- */

/* What a dimension of an input counts: time steps, batch, channels of X, hidden units, directions.
 */
typedef enum length_name { TIMES, PLACES, CHANNELS, UNITS, DIRECTIONS, N_LENGTHS } length_name;

typedef struct input_shape {
    int rank;
    length_name names[3];
    int per[3]; /* size of a dimension / its count; see GATES */
} input_shape;

#define GATES (-1) /* in per: the number of gates; 2 * GATES: twice that */
static const input_shape input_shapes[] = {
    [IN_X] = {3, {TIMES, PLACES, CHANNELS}, {1, 1, 1}},
    [IN_W] = {3, {DIRECTIONS, UNITS, CHANNELS}, {1, GATES, 1}},
    [IN_R] = {3, {DIRECTIONS, UNITS, UNITS}, {1, GATES, 1}},
    [IN_B] = {2, {DIRECTIONS, UNITS}, {1, 2 * GATES}},
    [IN_LENS] = {1, {PLACES}, {1}},
    [IN_H0] = {3, {DIRECTIONS, PLACES, UNITS}, {1, 1, 1}},
    [IN_C0] = {3, {DIRECTIONS, PLACES, UNITS}, {1, 1, 1}},
    [IN_P] = {2, {DIRECTIONS, UNITS}, {1, 3}},
};

/* Returns the axis that dimension i of input_shapes has in this input: with batch_first, axes 0 and
 * 1 of X and of the initial states are swapped. */
static int axis_of(size_t input, int i, bool batch_first)
{
    const bool transposes = input == IN_X || input == IN_H0 || input == IN_C0;
    return batch_first && transposes && i < 2 ? 1 - i : i;
}

static clg_status merge_input(const op_context *c, size_t input, const recurrent_desc *r,
                              int64_t lengths[N_LENGTHS])
{
    static const char *const names[] = {"steps", "places in the batch", "channels", "hidden units",
                                        "directions"};
    const input_shape *wanted = &input_shapes[input];
    const shape *got = &op_input(c, input)->dims;
    if (got->rank != wanted->rank)
        return op_error(c, CLG_ERROR_SHAPE, "input %zu has rank %d and must have %d", input,
                        got->rank, wanted->rank);
    for (int i = 0; i < wanted->rank; i++) {
        const int64_t per = wanted->per[i] < 0 ? -wanted->per[i] * r->n_gates : wanted->per[i];
        const int64_t dim = got->dims[axis_of(input, i, r->batch_first)];
        int64_t *length = &lengths[wanted->names[i]];
        if (dim == DIM_UNKNOWN) continue;
        if (dim % per != 0 || (*length != DIM_UNKNOWN && *length != dim / per))
            return op_error(c, CLG_ERROR_SHAPE,
                            "dimension %d of input %zu is %" PRId64 ", which does not fit %" PRId64
                            " for each of the %" PRId64 " %s",
                            axis_of(input, i, r->batch_first), input, dim, per,
                            *length == DIM_UNKNOWN ? dim / per : *length, names[wanted->names[i]]);
        *length = dim / per;
    }
    return CLG_OK;
}

static clg_status recurrent_infer(op_context *c)
{
    recurrent_desc r;
    CLG_TRY(recurrent_read(c->node, &r));
    int64_t lengths[N_LENGTHS] = {DIM_UNKNOWN, DIM_UNKNOWN, DIM_UNKNOWN, DIM_UNKNOWN, r.n_dirs};
    if (node_attribute(c->node, "hidden_size")) {
        lengths[UNITS] = node_int(c->node, "hidden_size", 0);
        if (lengths[UNITS] < 1)
            return op_error(c, CLG_ERROR_INVALID_MODEL, "hidden_size is %" PRId64, lengths[UNITS]);
    }
    for (size_t i = 0; i < c->n_inputs; i++) {
        if (op_has_input(c, i)) CLG_TRY(merge_input(c, i, &r, lengths));
    }
    const int64_t t = lengths[TIMES], b = lengths[PLACES], u = lengths[UNITS], d = r.n_dirs;
    shape y = {.rank = 4, .dims = {t, d, b, u}}, last = {.rank = 3, .dims = {d, b, u}};
    if (r.batch_first) {
        y = (shape){.rank = 4, .dims = {b, t, d, u}};
        last = (shape){.rank = 3, .dims = {b, d, u}};
    }
    for (size_t i = 0; i < c->n_outputs; i++)
        fact_set(&c->outputs[i], c->outputs[i].dtype, i == 0 ? &y : &last);
    return CLG_OK;
}

/* ---- operator table -------------------------------------------------------------------------- */

static const recurrent_kind rnn = {CELL_RNN, 1, 1, {"Tanh"}};
static const recurrent_kind gru = {CELL_GRU, 3, 2, {"Sigmoid", "Tanh"}};
const recurrent_kind recurrent_lstm = {CELL_LSTM, 4, 3, {"Sigmoid", "Tanh", "Tanh"}};

static const op_types types[] = {
    {'T', DTYPE_BIT(CLG_FLOAT16) | DTYPE_BIT(CLG_FLOAT32) | DTYPE_BIT(CLG_FLOAT64)},
    {'I', DTYPE_BIT(CLG_INT32)},
    {0}};

#define ATTRIBUTES                                                                                 \
    {"activation_alpha", ATTRIBUTE_FLOATS, false, OP_ANY},                                         \
        {"activation_beta", ATTRIBUTE_FLOATS, false, OP_ANY},                                      \
        {"activations", ATTRIBUTE_STRINGS, false, OP_ANY},                                         \
        {"clip", ATTRIBUTE_FLOAT, false, OP_ANY},                                                  \
        {"direction", ATTRIBUTE_STRING, false, OP_WORDS(recurrent_directions)},                    \
    {                                                                                              \
        "hidden_size", ATTRIBUTE_INT, false, OP_COUNT                                              \
    }
#define LAYOUT                                                                                     \
    {                                                                                              \
        "layout", ATTRIBUTE_INT, false, OP_BOOLEAN                                                 \
    }
#define INPUT_FORGET                                                                               \
    {                                                                                              \
        "input_forget", ATTRIBUTE_INT, false, OP_BOOLEAN                                           \
    }
#define LINEAR                                                                                     \
    {                                                                                              \
        "linear_before_reset", ATTRIBUTE_INT, false, OP_BOOLEAN                                    \
    }
static const op_attribute rnn_7[] = {ATTRIBUTES, {0}}, rnn_14[] = {ATTRIBUTES, LAYOUT, {0}};
static const op_attribute gru_7[] = {ATTRIBUTES, LINEAR, {0}},
                          gru_14[] = {ATTRIBUTES, LINEAR, LAYOUT, {0}};
static const op_attribute lstm_7[] = {ATTRIBUTES, INPUT_FORGET, {0}},
                          lstm_14[] = {ATTRIBUTES, INPUT_FORGET, LAYOUT, {0}};

#define ROW(row_name, kind, first, last, n_in, n_out, attribute_list)                              \
    {                                                                                              \
        .name = row_name, .grad = GRAD_BY(grad_pass_recurrent), .since = first, .until = last,     \
        OP_INPUTS(3, n_in, "TTTTIT"), OP_OUTPUTS(0, n_out, "T"), .types = types,                   \
        .attributes = attribute_list, .check = recurrent_check, .infer = recurrent_infer,          \
        .batch = BATCH_BY(batch_pass_recurrent, BATCH_ALL), .lower = recurrent_lower,              \
        .param = &(kind)                                                                           \
    }

const op_row op_rows_recurrent[] = {
    ROW("RNN", rnn, 7, 13, 6, 2, rnn_7),
    ROW("RNN", rnn, 14, 0, 6, 2, rnn_14),
    ROW("GRU", gru, 7, 13, 6, 2, gru_7),
    ROW("GRU", gru, 14, 0, 6, 2, gru_14),
    ROW("LSTM", recurrent_lstm, 7, 13, 8, 3, lstm_7),
    ROW("LSTM", recurrent_lstm, 14, 0, 8, 3, lstm_14),
};
const size_t n_op_rows_recurrent = sizeof op_rows_recurrent / sizeof *op_rows_recurrent;
