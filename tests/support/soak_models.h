/* SPDX-License-Identifier: Apache-2.0
 *
 * Models with many sets of inputs of different shapes, for programs that run them over and over.
 */
#ifndef CLG_TESTS_SOAK_MODELS_H
#define CLG_TESTS_SOAK_MODELS_H

#include <clgraph/clgraph.h>

#define SOAK_MODELS 5
#define SOAK_SETS 70 /* of a model of our own: more than plans are kept */
#define SOAK_PORTS 16

typedef struct soak_model {
    const char *name;
    const char *folder; /* of model.onnx and test_data_set_*; NULL: one of our own */
    size_t which;       /* of our own */
    char *inputs[SOAK_PORTS], *outputs[SOAK_PORTS]; /* names */
    size_t n_inputs, n_outputs, n_sets;
    clg_value *values[SOAK_SETS][SOAK_PORTS];
    uint64_t digests[SOAK_SETS]; /* the caller's */
} soak_model;

/* 0: the digits, 1: a decoder with a cache, 2: an LSTM, 3: shapes that depend on data, 4: a perceptron. */
clg_status soak_model_own(size_t which, soak_model *out_model);
clg_status soak_model_open(const char *folder, soak_model *out_model);
void soak_model_close(soak_model *m); /* all zeros is closed */

clg_status soak_model_load(const soak_model *m, clg_model **out_model);
/* Runs a set and takes all outputs to the host; the digest is of their bytes and shapes, never 0. */
clg_status soak_model_run(const soak_model *m, size_t set, clg_session *session,
                          uint64_t *out_digest);

#endif
