/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the attributes of RNN, GRU and LSTM nodes, and lowers them. Gates are in ONNX's order: i
 * for RNN, iofc for LSTM, zrh for GRU.
 */
#ifndef CLG_OPS_RECURRENT_H
#define CLG_OPS_RECURRENT_H

#include "ops/core/op.h"

/* P_CELL of cl/recurrent/cell.clh. CELL_GRU_LINEAR is GRU with linear_before_reset. */
typedef enum recurrent_cell { CELL_RNN, CELL_LSTM, CELL_GRU_LINEAR, CELL_GRU } recurrent_cell;

#define RECURRENT_MAX_ACTIVATIONS 3

/* op_row.param: the properties of an operator, from which the three differ. */
typedef struct recurrent_kind {
    recurrent_cell cell; /* never CELL_GRU_LINEAR, which an attribute selects */
    int n_gates, n_activations;
    const char *activations[RECURRENT_MAX_ACTIVATIONS]; /* default names */
} recurrent_kind;

extern const recurrent_kind recurrent_lstm;

typedef struct recurrent_activation {
    int code; /* value of P_F, P_G or P_H of cell.clh */
    float alpha, beta;
} recurrent_activation;

typedef enum recurrent_direction {
    DIRECTION_FORWARD,
    DIRECTION_REVERSE,
    DIRECTION_BOTH
} recurrent_direction;
/* The words of direction, in the order of recurrent_direction; ends with NULL. */
extern const char *const recurrent_directions[];

typedef struct recurrent_desc {
    recurrent_cell cell;
    recurrent_direction direction;
    int n_gates, n_dirs;
    bool batch_first;                                               /* layout 1 */
    bool coupled;                                                   /* LSTM: input_forget */
    float clip;                                                     /* INFINITY: none */
    recurrent_activation activations[2][RECURRENT_MAX_ACTIVATIONS]; /* f, g, h of each direction */
} recurrent_desc;

/* Reads the attributes of a node, except hidden_size. Errors name the node: INVALID_MODEL or
 * UNSUPPORTED_ATTRIBUTE. */
clg_status recurrent_read(const node *n, recurrent_desc *out);

/* Indices of the inputs of all three operators; IN_C0 and IN_P are LSTM's only. */
enum { IN_X, IN_W, IN_R, IN_B, IN_LENS, IN_H0, IN_C0, IN_P };

/* Implements op_row.lower of the three operators. */
clg_status recurrent_lower(lower_context *c);

#endif
