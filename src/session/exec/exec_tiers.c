/* SPDX-License-Identifier: Apache-2.0
 *
 * Decides which kernels of a plan are built without optimisation first, and when plans are made
 * again with the optimised ones. See ocl/tiers.h and decision 94.
 */
#include "base/strbuf.h"
#include "session/exec/exec.h"
#include "session/selftest/selftest.h"

/* Limits of what runs without optimisation: operations of a candidate, of which such kernels do 25
 * to 60 a nanosecond on two cores (optimised ones 200), so that it takes 10 ms, a tenth of what
 * optimising takes; and bytes of a packing, 1 a nanosecond, which is done once. PoCL 3.1, AMD EPYC
 * with AVX-512, 2026-11-28. */
#define BASELINE_MAX_FLOPS 0.25e9
#define BASELINE_MAX_PACKED_BYTES ((size_t)64 << 20)

static bool is_small(const candidate *impl)
{
    for (uint32_t i = 0; i < impl->n_packings; i++)
        if (impl->packings[i].size_bytes > BASELINE_MAX_PACKED_BYTES) return false;
    return candidate_flops(impl) <= BASELINE_MAX_FLOPS;
}

/* Sets *out_new: whether the optimised program of a kernel would have to be compiled. */
static clg_status find_new(session_exec *e, const step *steps, bool *out_new)
{
    bool is_at_hand = true;
    for (const step *s = steps; s && !*out_new; s = s->next) {
        if (s->kind == STEP_KERNEL)
            CLG_TRY(ocl_program_is_at_hand(e->context->ocl, &s->kernel, &is_at_hand));
        *out_new = !is_at_hand;
    }
    return CLG_OK;
}

static clg_status is_new(session_exec *e, const candidate *impl, bool *out_new)
{
    strbuf key;
    *out_new = false;
    strbuf_init(&key, 0);
    selftest_variant_addresses(impl, &key);
    clg_status status = key.status;
    const bool passed = status == CLG_OK && hash_map_get(&e->passed, strbuf_data(&key),
                                                         key.size_bytes) != HASH_MAP_NONE;
    strbuf_deinit(&key);
    if (passed) return CLG_OK;
    for (uint32_t i = 0; i < impl->n_packings && status == CLG_OK; i++)
        status = find_new(e, impl->packings[i].steps, out_new);
    return status == CLG_OK ? find_new(e, impl->steps, out_new) : status;
}

/* Implements plan_tiers.choose. */
static clg_status choose(void *self, const candidate *impl, bool *out_baseline)
{
    session_exec *e = self;
    *out_baseline = false;
    if (e->is_preparing || !is_small(impl) || !ocl_builds_in_tiers(e->context->ocl)) return CLG_OK;
    CLG_TRY(is_new(e, impl, out_baseline));
    if (*out_baseline && !e->has_baseline) {
        e->has_baseline = true;
        e->tiers_epoch = ocl_tiers_epoch(e->context->ocl);
    }
    return CLG_OK;
}

static clg_status choose_baseline(void *self, const candidate *impl, bool *out_baseline)
{
    (void)self;
    (void)impl;
    *out_baseline = true;
    return CLG_OK;
}

plan_tiers exec_tiers(session_exec *e)
{
    switch (ocl_compilation(e->context->ocl)) {
    case CLG_COMPILATION_BASELINE: return (plan_tiers){e, choose_baseline};
    case CLG_COMPILATION_TIERED:
        /* Programs that are used without tests are compiled one by one, at their first launch. */
        if (!e->context->trusting) return (plan_tiers){e, choose};
        break;
    default: break;
    }
    return (plan_tiers){e, NULL};
}

bool exec_outgrows_plans(session_exec *e, exec_request wanted)
{
    e->is_preparing = wanted.is_preparation;
    if (!e->has_baseline) return false;
    if (!e->is_preparing && ocl_tiers_epoch(e->context->ocl) == e->tiers_epoch) return false;
    e->has_baseline = false;
    return true;
}
