/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements the limit of launches (launch_limit.h).
 */
#include "session/run/launch_limit.h"

#include "session/run/kernel_key.h"

#include <math.h>

#define MAX_LAUNCHES 4096 /* a full table is emptied */
#define NS_PER_US 1000

/* Identifies a launch: its kernel's text and its size. */
typedef struct launch_key {
    kernel_key kernel;
    uint64_t global[3], size_bytes;
    int64_t m, n, k, batch;
    double flops, bytes;
} launch_key;

static launch_key key_of(const step *s)
{
    launch_key key = {.size_bytes = s->size_bytes, .flops = s->flops, .bytes = s->bytes};
    if (s->kind == STEP_BLAS_GEMM) {
        key.m = s->gemm.m;
        key.n = s->gemm.n;
        key.k = s->gemm.k;
        key.batch = s->gemm.batch;
    }
    if (s->kind != STEP_KERNEL) return key;
    key.kernel = kernel_key_of(&s->kernel);
    for (uint32_t i = 0; i < s->n_dims; i++) key.global[i] = s->global[i];
    return key;
}

void launch_limit_init(launch_limit *l, const launch_budget *budget, uint64_t (*now_ns)(void))
{
    *l = (launch_limit){.budget = *budget, .now_ns = now_ns, .epoch = 1};
}

void launch_limit_deinit(launch_limit *l)
{
    hash_map_deinit(&l->measured);
    hash_map_deinit(&l->reported);
}

/* Returns the number of work-groups of a step; infinity if it is not known. */
static double count_groups(const step *s)
{
    double n = 1.0;
    if (s->kind != STEP_KERNEL || s->local[0] == 0) return (double)INFINITY;
    for (uint32_t i = 0; i < s->n_dims; i++) n *= (double)s->global[i] / (double)s->local[i];
    return n;
}

static double estimate_ns(const launch_limit *l, const step *s)
{
    return rates_time_ns(&l->budget.rates, s->flops, step_bytes(s), count_groups(s));
}

double launch_limit_time_ns(const launch_limit *l, const step *s)
{
    if (l->measured.count > 0) {
        const launch_key key = key_of(s);
        const size_t us = hash_map_get(&l->measured, &key, sizeof key);
        if (us != HASH_MAP_NONE) return (double)us * NS_PER_US;
    }
    return estimate_ns(l, s);
}

/* Returns how many launches of the longest allowed time a time amounts to; 1 if it is unknown. */
static uint64_t count_limits(const launch_limit *l, double time_ns)
{
    const double n = time_ns / (double)l->budget.limit_ns;
    if (!(n > 1.0)) return 1;
    if (n >= (double)UINT32_MAX) return UINT32_MAX;
    const uint64_t whole = (uint64_t)n;
    return (double)whole < n ? whole + 1 : whole;
}

uint32_t launch_limit_parts(const launch_limit *l, const step *s)
{
    const uint64_t wanted =
        l->budget.limit_ns > 0 ? count_limits(l, launch_limit_time_ns(l, s)) : 1;
    return wanted > 1 ? launch_count_parts(s, wanted, l->budget.rates.units) : 1;
}

static clg_status put(hash_map *m, const launch_key *key, size_t value)
{
    if (m->count >= MAX_LAUNCHES) hash_map_deinit(m);
    return hash_map_set(m, key, sizeof *key, value);
}

clg_status launch_limit_report(launch_limit *l, const step *s, uint32_t n_parts, bool *out_is_new)
{
    const launch_key key = key_of(s);
    *out_is_new = false;
    if (l->budget.limit_ns == 0 || count_limits(l, launch_limit_time_ns(l, s)) <= n_parts)
        return CLG_OK;
    if (hash_map_get(&l->reported, &key, sizeof key) != HASH_MAP_NONE) return CLG_OK;
    *out_is_new = true;
    return put(&l->reported, &key, 1);
}

clg_status launch_limit_note(launch_limit *l, const step *s, uint32_t n_parts, uint64_t longest_ns)
{
    if (l->budget.limit_ns == 0 || (n_parts == 1 && longest_ns <= l->budget.limit_ns))
        return CLG_OK;
    const launch_key key = key_of(s);
    const size_t known = hash_map_get(&l->measured, &key, sizeof key);
    const size_t us = (size_t)ceil((double)longest_ns * n_parts / NS_PER_US);
    if (known != HASH_MAP_NONE && known >= us) return CLG_OK;
    CLG_TRY(put(&l->measured, &key, us));
    if (launch_limit_parts(l, s) != n_parts) l->epoch++;
    return CLG_OK;
}
