/* SPDX-License-Identifier: Apache-2.0
 *
 * Random weights of new layers: uniform numbers whose bound follows from the layer's fans, the same
 * on every machine for a seed.
 */
#ifndef CLTOOL_WEIGHTS_H
#define CLTOOL_WEIGHTS_H

#include "failure.h"

typedef enum weights_scheme {
    WEIGHTS_PYTORCH, /* |w|, |bias| <= 1 / sqrt(fan_in), as nn.Linear and nn.Conv2d start */
    WEIGHTS_KAIMING, /* |w| <= sqrt(6 / fan_in), bias 0: He et al., 2015 */
    WEIGHTS_XAVIER   /* |w| <= sqrt(6 / (fan_in + fan_out)), bias 0: Glorot and Bengio, 2010 */
} weights_scheme;

/* Reads the word of --init; NULL: WEIGHTS_PYTORCH. */
int weights_scheme_of(const char *word, weights_scheme *out_scheme);

/* A layer: how many products a result sums (fan_in), and how many read an input (fan_out). */
typedef struct weights_layer {
    weights_scheme scheme;
    uint64_t seed;
    uint32_t index; /* of the layer among those of this seed */
    double fan_in, fan_out;
} weights_layer;

/* Fill n elements of the layer's weights, and of its bias. */
void weights_fill(const weights_layer *layer, float *weights, size_t n);
void weights_fill_bias(const weights_layer *layer, float *bias, size_t n);

#endif
