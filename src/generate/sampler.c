/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements sampler.h.
 */
#include "generate/sampler.h"

#include <float.h>
#include <math.h>

clg_status sampler_check(const clg_sampling *s, clg_status refused)
{
    const double penalty = s->repetition_penalty; /* on the device it is a float */
    const struct {
        const char *name;
        double value, lowest, highest;
    } numbers[] = {{"temperature", s->temperature, 0, DBL_MAX},
                   {"top_p", s->top_p, 0, 1},
                   {"min_p", s->min_p, 0, 1},
                   {"repetition_penalty", penalty, penalty == 0 ? 0 : FLT_MIN, FLT_MAX}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (!(numbers[i].value >= numbers[i].lowest && numbers[i].value <= numbers[i].highest))
            return error_set(refused, "%s is %g", numbers[i].name, numbers[i].value);
    return CLG_OK;
}

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

/* ---- a heap: the candidate that counts first is its root ------------------------------------- */

static bool goes_before(const sampler_candidate *a, const sampler_candidate *b)
{
    return a->logit != b->logit ? a->logit > b->logit : a->token < b->token;
}

static void swap(sampler_candidate *a, sampler_candidate *b)
{
    const sampler_candidate kept = *a;
    *a = *b;
    *b = kept;
}

static void sift_down(sampler_candidate *heap, size_t n, size_t at)
{
    for (;;) {
        size_t first = at;
        for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < n; child++)
            if (goes_before(&heap[child], &heap[first])) first = child;
        if (first == at) return;
        swap(&heap[at], &heap[first]);
        at = first;
    }
}

/* Candidates in order: the i-th is taken from the heap when it is first needed, to the end of
 * the array. */
typedef struct ranking {
    sampler_candidate *candidates;
    size_t n, n_taken;
} ranking;

static const sampler_candidate *ranked(ranking *r, size_t i)
{
    while (r->n_taken <= i) {
        const size_t last = r->n - 1 - r->n_taken++;
        swap(&r->candidates[0], &r->candidates[last]);
        sift_down(r->candidates, last, 0);
    }
    return &r->candidates[r->n - 1 - i];
}

/* ---- the choice ------------------------------------------------------------------------------ */

/* Counts the candidates that top_p and min_p leave; *out_sum: of their weights, exp(logit / t) over
 * the largest. all: the sum of all. */
static size_t count_kept(ranking *r, const clg_sampling *s, double all, double *out_sum)
{
    const bool has_top_p = s->top_p > 0 && s->top_p < 1;
    const double largest = ranked(r, 0)->logit, enough = has_top_p ? s->top_p * all : all;
    size_t n = 0;
    *out_sum = all;
    if (!has_top_p && s->min_p <= 0) return r->n;
    for (*out_sum = 0; n < r->n && (n == 0 || *out_sum < enough); n++) {
        const double weight = exp((ranked(r, n)->logit - largest) / s->temperature);
        if (n > 0 && weight < s->min_p) break;
        *out_sum += weight;
    }
    return n;
}

int64_t sampler_choose(sampler_candidate *candidates, size_t n, const clg_sampling *sampling,
                       uint64_t index)
{
    ranking r = {candidates, n, 0};
    for (size_t i = n / 2; i > 0; i--) sift_down(candidates, n, i - 1);
    const double largest = ranked(&r, 0)->logit, t = sampling->temperature;
    double all = 0, sum;
    if (isinf(largest)) return ranked(&r, 0)->token;
    for (size_t i = 0; i < n; i++) all += exp((candidates[i].logit - largest) / t);
    const size_t n_kept = count_kept(&r, sampling, all, &sum);
    double left = sampler_random(sampling->seed, index) * sum;
    for (size_t i = 0; i < n_kept; i++) {
        left -= exp((ranked(&r, i)->logit - largest) / t);
        if (left < 0) return ranked(&r, i)->token;
    }
    return ranked(&r, n_kept - 1)->token; /* rounding */
}
