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

/* Checks settings; `refused`: the status of those that are negative, not finite or too large. The
 * message names the setting. */
clg_status sampler_check(const clg_sampling *s, clg_status refused);
/* Returns the token that is chosen among n > 0 candidates, which it reorders; NaNs are not allowed.
 * Larger logits count first, and smaller tokens among equal ones. temperature > 0. index: of the
 * token in the sequence. Takes n and n log k steps, of k candidates that it looks at. */
int64_t sampler_choose(sampler_candidate *candidates, size_t n, const clg_sampling *sampling,
                       uint64_t index);
/* Returns a number in [0, 1) of 53 random bits. */
double sampler_random(uint64_t seed, uint64_t index);

#endif
