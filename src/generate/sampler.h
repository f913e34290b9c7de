/* SPDX-License-Identifier: Apache-2.0
 *
 * Chooses a token from logits on the host: temperature, top-k, top-p, min-p and a draw, in double
 * precision. The random number is a function of a seed and an index, so that the same logits give
 * the same token everywhere.
 */
#ifndef CLG_GENERATE_SAMPLER_H
#define CLG_GENERATE_SAMPLER_H

#include "base/memory.h"

#include <clgraph/generate.h>

typedef struct sampler_candidate {
    float logit;
    int64_t token;
} sampler_candidate;

/* Sorts candidates: larger logits first, smaller tokens first among equal ones. NaNs are not
 * allowed. */
void sampler_sort(sampler_candidate *candidates, size_t n);
/* Returns the index of the chosen one of n > 0 sorted candidates. temperature > 0. index: of the
 * token in the sequence. */
size_t sampler_choose(const sampler_candidate *candidates, size_t n, const clg_sampling *sampling,
                      uint64_t index);
/* Returns a number in [0, 1) of 53 random bits. */
double sampler_random(uint64_t seed, uint64_t index);

#endif
