/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements sampler.h.
 */
#include "generate/sampler.h"

#include <math.h>
#include <stdlib.h>

/* Mixes all bits (Steele, Lea and Flood, Fast Splittable Pseudorandom Number Generators, 2014). */
static uint64_t mix(uint64_t x)
{
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

double sampler_random(uint64_t seed, uint64_t index)
{
    return (double)(mix(mix(seed) + index) >> 11) * 0x1p-53;
}

static int compare(const void *a, const void *b)
{
    const sampler_candidate *x = a, *y = b;
    if (x->logit != y->logit) return x->logit > y->logit ? -1 : 1;
    return x->token < y->token ? -1 : x->token > y->token;
}

void sampler_sort(sampler_candidate *candidates, size_t n)
{
    qsort(candidates, n, sizeof *candidates, compare);
}

size_t sampler_choose(const sampler_candidate *candidates, size_t n, const clg_sampling *sampling,
                      uint64_t index)
{
    const sampler_candidate *c = candidates;
    const double largest = c[0].logit, t = sampling->temperature;
    double all = 0, kept = 0;
    size_t n_kept = 0;
    if (isinf(largest)) return 0;
    for (size_t i = 0; i < n; i++) all += exp((c[i].logit - largest) / t);
    const double enough = sampling->top_p > 0 && sampling->top_p < 1 ? sampling->top_p * all : all;
    while (n_kept < n && (n_kept == 0 || kept < enough)) {
        const double p = exp((c[n_kept].logit - largest) / t);
        if (n_kept > 0 && p < sampling->min_p) break;
        kept += p;
        n_kept++;
    }
    double left = sampler_random(sampling->seed, index) * kept;
    for (size_t i = 0; i < n_kept; i++) {
        left -= exp((c[i].logit - largest) / t);
        if (left < 0) return i;
    }
    return n_kept - 1; /* rounding */
}
