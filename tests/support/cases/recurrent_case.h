/* SPDX-License-Identifier: Apache-2.0
 *
 * Holds an RNN, GRU or LSTM node with its data, and its expected result: ONNX's equations in
 * double, step by step and unit by unit, with the gates computed in another order than in the
 * kernels.
 */
#ifndef CLG_TESTS_RECURRENT_CASE_H
#define CLG_TESTS_RECURRENT_CASE_H

#include "support/cases/run_node.h"

#define RECURRENT_LIST 6 /* names of activations at most */

/* Parts of a case: inputs that are present, outputs that are omitted. */
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
    double alpha, beta; /* NAN: no such parameter */
} activation;

typedef struct recurrent_case {
    const char *op_type;
    int64_t opset;
    clg_dtype dtype;
    int64_t length, batch, input, hidden;
    const char *direction; /* NULL: attribute absent */
    bool batch_first;
    int parts;
    double clip; /* 0: no clipping */
    bool input_forget, linear;
    const activation *activations; /* f, g, h of each direction; NULL: the defaults */
    bool default_numbers;          /* attributes activation_alpha and _beta are omitted */
    bool heavy;
} recurrent_case;

/* The case with its data. */
typedef struct recurrent_data {
    const recurrent_case *k;
    int64_t gates, dirs;
    int n_activations;
    double *x, *w, *r, *b, *lens, *h0, *c0, *p, *y, *y_h, *y_c;
} recurrent_data;

/* Makes random data of the case, and computes the results. */
recurrent_data recurrent_make(const recurrent_case *k);
/* Adds the node and its inputs to r. names: RECURRENT_LIST elements, valid as long as r. */
void recurrent_write(const recurrent_data *d, run_node *r, const char **names);
/* Runs the case on every target, and checks the requested results. Tolerances: float32 sums of up
 * to 150 products of size 1/4 through a dozen steps of bounded functions: 1e-5. float16 stores the
 * input's part of the sums, of size up to 4, in float16: 1e-2. float64: 1e-12. */
void recurrent_check(const recurrent_case *k);

#endif
