/* SPDX-License-Identifier: Apache-2.0
 *
 * Holds test cases of an RNN, GRU or LSTM node, with their data and expected results. The reference
 * computes ONNX's equations in double, step by step and unit by unit, with the gates in another
 * order than the kernels.
 */
#ifndef CLG_TESTS_RECURRENT_CASE_H
#define CLG_TESTS_RECURRENT_CASE_H

#include "support/cases/run_node.h"

/* Largest number of activation names. */
#define RECURRENT_LIST 6

/* Bits of recurrent_case.parts: optional inputs that are present, outputs that are omitted, and
 * whether the weights are inputs. */
enum {
    BIAS = 1,
    LENS = 2,
    H0 = 4,
    C0 = 8,
    PEEP = 16,
    NO_Y = 32,
    NO_Y_H = 64,
    NO_Y_C = 128,
    COMPUTED = 256, /* the weights are inputs, not constants */
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
    const char *direction; /* NULL: no attribute */
    bool batch_first;
    int parts;
    double clip; /* 0: no clipping */
    bool input_forget, linear;
    const activation *activations; /* f, g, h of each direction; NULL: ONNX's defaults */
    bool default_numbers;          /* no attributes activation_alpha and _beta */
    bool heavy;
} recurrent_case;

/* A case with its data and expected results. */
typedef struct recurrent_data {
    const recurrent_case *k;
    int64_t gates, dirs;
    int n_activations;
    double *x, *w, *r, *b, *lens, *h0, *c0, *p, *y, *y_h, *y_c;
} recurrent_data;

/* Draws random data for the case, and computes the expected results. */
recurrent_data recurrent_make(const recurrent_case *k);
/* Adds the node and its inputs to r. names: storage for RECURRENT_LIST names, which must exist as
 * long as r. */
void recurrent_write(const recurrent_data *d, run_node *r, const char **names);
/* Runs the case on every target, and checks the requested outputs. Tolerance: float32 1e-5, for
 * sums of up to 150 products of magnitude 1/4 through a dozen steps of bounded functions; float16
 * 1e-2, since the input's part of the sums, of magnitude up to 4, is stored in float16; float64
 * 1e-12. */
void recurrent_check(const recurrent_case *k);

#endif
