/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the attributes of RNN, GRU and LSTM. See recurrent.h.
 */
#include "ops/recurrent/recurrent.h"

#include <math.h>
#include <string.h>

/* ---- activations ----------------------------------------------------------------------------- */

/* The activation functions that ONNX defines for recurrent cells, in the order of their codes. */
static const struct activation_row {
    const char *name;
    bool has_alpha, has_beta;
    float alpha, beta; /* defaults; NAN: ONNX defines none */
} activation_rows[] = {
    {"Relu", false, false, 0, 0},         {"Tanh", false, false, 0, 0},
    {"Sigmoid", false, false, 0, 0},      {"Affine", true, true, 1, 0},
    {"LeakyRelu", true, false, 0.01f, 0}, {"ThresholdedRelu", true, false, 1, 0},
    {"ScaledTanh", true, true, NAN, NAN}, {"HardSigmoid", true, true, 0.2f, 0.5f},
    {"Elu", true, false, 1, 0},           {"Softsign", false, false, 0, 0},
    {"Softplus", false, false, 0, 0},
};
#define N_ACTIVATIONS ((int)(sizeof activation_rows / sizeof *activation_rows))

static int find_activation(const char *name)
{
    int code = 0;
    while (code < N_ACTIVATIONS && strcmp(activation_rows[code].name, name) != 0) code++;
    return code;
}

/* A list attribute, activation_alpha or activation_beta. Its values belong, in order, to those
 * activations that have such a parameter. */
typedef struct number_list {
    const float *numbers;
    size_t count, next;
} number_list;

static float take(number_list *list, bool wanted, float fallback)
{
    return wanted && list->next < list->count ? list->numbers[list->next++] : fallback;
}

static clg_status read_activations(const node *n, const recurrent_kind *kind, recurrent_desc *out)
{
    char shown[NODE_TEXT_BYTES], name_shown[NAME_TEXT_BYTES];
    const graph_attribute *given = node_attribute(n, "activations");
    const size_t wanted = (size_t)out->n_dirs * (size_t)kind->n_activations;
    number_list alphas = {.next = 0}, betas = {.next = 0};
    alphas.numbers = node_floats(n, "activation_alpha", &alphas.count);
    betas.numbers = node_floats(n, "activation_beta", &betas.count);
    /* ONNX gives RNN the default {Tanh, Tanh} in all directions; ONNX Runtime writes it out. */
    if (given && wanted == 1 && given->count == 2 && strcmp(given->as.strings[0], "Tanh") == 0 &&
        strcmp(given->as.strings[1], "Tanh") == 0)
        given = NULL;
    if (given && given->count != wanted)
        return error_set(CLG_ERROR_INVALID_MODEL, "%s has %zu activations where %zu are wanted",
                         node_text(n, shown), given->count, wanted);
    for (int d = 0; d < out->n_dirs; d++) {
        for (int i = 0; i < kind->n_activations; i++) {
            const char *name =
                given ? given->as.strings[d * kind->n_activations + i] : kind->activations[i];
            const int code = find_activation(name);
            if (code == N_ACTIVATIONS)
                return error_set(CLG_ERROR_UNSUPPORTED_ATTRIBUTE,
                                 "%s has an activation '%s', which ONNX does not know for it",
                                 node_text(n, shown), name_text(name, name_shown));
            const struct activation_row *row = &activation_rows[code];
            const float alpha = take(&alphas, row->has_alpha, row->alpha);
            const float beta = take(&betas, row->has_beta, row->beta);
            if (isnan(alpha) || isnan(beta))
                return error_set(CLG_ERROR_INVALID_MODEL,
                                 "%s has the activation %s without an alpha and a beta",
                                 node_text(n, shown), row->name);
            out->activations[d][i] = (recurrent_activation){code, alpha, beta};
        }
    }
    return CLG_OK;
}

/* ---- direction, layout, clip ----------------------------------------------------------------- */

const char *const recurrent_directions[] = {"forward", "reverse", "bidirectional", NULL};

clg_status recurrent_read(const node *n, recurrent_desc *out)
{
    char shown[NODE_TEXT_BYTES];
    const op_row *row = n->op;
    const recurrent_kind *kind = row->param;
    const int64_t layout = node_int(n, "layout", 0);
    *out =
        (recurrent_desc){.cell = kind->cell, .n_gates = kind->n_gates, .batch_first = layout == 1};
    out->direction = (recurrent_direction)op_word(n, "direction", "forward", recurrent_directions);
    out->n_dirs = out->direction == DIRECTION_BOTH ? 2 : 1;
    CLG_TRY(read_activations(n, kind, out));
    out->clip = node_float(n, "clip", INFINITY);
    if (!(out->clip > 0))
        return error_set(CLG_ERROR_INVALID_MODEL, "%s has a clip that is not above 0",
                         node_text(n, shown));
    if (kind->cell == CELL_GRU && node_int(n, "linear_before_reset", 0) != 0)
        out->cell = CELL_GRU_LINEAR;
    out->coupled = kind->cell == CELL_LSTM && node_int(n, "input_forget", 0) != 0;
    return CLG_OK;
}
