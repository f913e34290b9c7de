/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests choices among many candidates against a reference that sorts all of them.
 */
#include "support/unit.h"

#include "generate/sampler.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N = 500 };

static int compare(const void *a, const void *b)
{
    const sampler_candidate *x = a, *y = b;
    if (x->logit != y->logit) return x->logit > y->logit ? -1 : 1;
    return x->token < y->token ? -1 : x->token > y->token;
}

/* Chooses by the definition, with sums in sorted order; *out_margin: how far the draw was from the
 * next boundary, of the sum. */
static int64_t reference(sampler_candidate *c, const clg_sampling *s, uint64_t index,
                         double *out_margin)
{
    double weights[N], all = 0, kept = 0, sum = 0;
    size_t n = 0;
    qsort(c, N, sizeof *c, compare);
    for (int i = 0; i < N; i++)
        all += weights[i] = exp((c[i].logit - (double)c[0].logit) / s->temperature);
    const double enough = s->top_p > 0 ? s->top_p * all : all * 2;
    while (n < N && (n == 0 || (kept < enough && weights[n] >= s->min_p))) kept += weights[n++];
    const double at = sampler_random(s->seed, index) * kept;
    *out_margin = 1;
    for (size_t i = 0; i < n; i++) {
        sum += weights[i];
        if (fabs(sum - at) / kept < *out_margin) *out_margin = fabs(sum - at) / kept;
        if (at < sum) return c[i].token;
    }
    return c[n - 1].token;
}

TEST(sampler__chooses_as_a_full_sort_does)
{
    const clg_sampling ways[] = {{.temperature = 1},
                                 {.temperature = 0.3, .top_p = 0.5},
                                 {.temperature = 3, .top_p = 0.95},
                                 {.temperature = 1.5, .min_p = 0.1},
                                 {.temperature = 0.01}};
    size_t n_compared = 0;
    uint32_t drawn = 1;
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++)
        for (uint64_t index = 0; index < 300; index++) {
            sampler_candidate c[N], sorted[N];
            double margin;
            for (int i = 0; i < N; i++) {
                drawn = drawn * 1664525u + 1013904223u;
                c[i] = (sampler_candidate){(float)(drawn >> 24) / 16, i}; /* many are equal */
            }
            memcpy(sorted, c, sizeof c);
            const int64_t expected = reference(sorted, &ways[w], index, &margin);
            if (margin < 1e-9) continue; /* sums in another order may differ */
            assert_int_equal(sampler_choose(c, N, &ways[w], index), expected);
            n_compared++;
        }
    assert_true(n_compared > 1400);
}

TEST(sampler__infinite_logits)
{
    const clg_sampling s = {.temperature = 1};
    sampler_candidate one[] = {{-INFINITY, 0}, {3, 1}, {-INFINITY, 2}};
    sampler_candidate largest[] = {{1, 0}, {INFINITY, 1}, {INFINITY, 2}};
    sampler_candidate none[] = {{-INFINITY, 4}, {-INFINITY, 3}};
    for (uint64_t i = 0; i < 50; i++) {
        assert_int_equal(sampler_choose(one, 3, &s, i), 1);
        assert_int_equal(sampler_choose(largest, 3, &s, i), 1);
        assert_int_equal(sampler_choose(none, 2, &s, i), 3);
    }
}

TEST(sampler__random_numbers_are_even)
{
    int counts[10] = {0};
    for (uint64_t i = 0; i < 100000; i++) counts[(int)(10 * sampler_random(7, i))]++;
    for (int i = 0; i < 10; i++) assert_between((uintmax_t)counts[i], 9500, 10500);
    assert_true(sampler_random(7, 1) == sampler_random(7, 1));
    assert_true(sampler_random(7, 1) != sampler_random(8, 1));
}
