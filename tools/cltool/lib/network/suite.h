/* SPDX-License-Identifier: Apache-2.0
 *
 * The models of `cltool bench --suite`: published architectures as tables of layers, built in
 * memory with random weights.
 */
#ifndef CLTOOL_SUITE_H
#define CLTOOL_SUITE_H

#include "net.h"

typedef struct suite_model {
    const char *name;      /* as --suite takes it */
    const char *title;     /* as its authors write it */
    const char *input;     /* what a row of the batch is */
    uint64_t n_parameters; /* trained ones, as published */
    weights_scheme scheme;
    /* Adds the layers of a table. Every width, length and size is divided by `shrink`; 1: the
     * published ones. */
    void (*add)(net *n, const void *table, int64_t shrink);
    const void *table;
    int64_t n_tokens; /* of the vocabulary of input "input_ids"; 0: there is no such input */
} suite_model;

extern const suite_model suite_mlp, suite_lstm;             /* suite_recurrent.c */
extern const suite_model suite_mobilenetv2, suite_resnet50; /* suite_vision.c */
extern const suite_model suite_bert, suite_gpt2;            /* suite_transformer.c */
/* All of them, the smallest first; NULL after the last. */
extern const suite_model *const suite_models[];

/* Builds a model, whose inputs have the free first dimension "batch". *out_n_parameters: elements
 * of its trained parameters; may be NULL. */
int suite_build(const suite_model *m, uint64_t seed, int64_t shrink, clg_model **out_model,
                uint64_t *out_n_parameters);

#endif
