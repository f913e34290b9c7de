/* SPDX-License-Identifier: Apache-2.0
 *
 * New networks to train: convolutions, then dense layers, as an ONNX model with random weights.
 */
#ifndef CLTOOL_NETWORK_H
#define CLTOOL_NETWORK_H

#include "weights.h"

#include <clgraph/clgraph.h>

typedef struct network_plan {
    size_t rank; /* of a row of the input: 1, or 3 (channels, height, width) */
    int64_t dims[CLG_MAX_RANK];
    size_t *convs, n_convs;   /* channels of each convolution */
    size_t *denses, n_denses; /* results of each dense layer; the last gives the logits */
    size_t kernel, pool;      /* of convolutions, odd; of the pooling after each, 1: none */
    size_t activation;        /* of network_activation_of; 0: relu */
    double dropout;           /* after hidden dense layers; 0: none */
    bool batchnorm;           /* after hidden layers, before their activation */
    weights_scheme scheme;
    uint64_t seed;
} network_plan;

/* Reads the word of --activation. */
int network_activation_of(const char *word, size_t *out_activation);
/* Builds the model: the input is "x" [batch, N] or "image" [batch, C, H, W], the output "logits".
 * *out_n_elements: of its parameters. */
int network_build(const network_plan *plan, clg_model **out_model, uint64_t *out_n_elements);

#endif
