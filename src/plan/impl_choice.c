/* SPDX-License-Identifier: Apache-2.0
 *
 * Chooses the candidate (implementation) that computes a node, among those that may run on this
 * device with these options, in this order:
 * - the one that the caller prefers by name;
 * - the one measured to be fastest (tuning_table.h);
 * - the one with the lowest estimated cost, if the first one has an estimate;
 * - the first one: lowering lists candidates by preference for the kernel class.
 * The last two leave out those whose packed weights exceed the device's largest buffer, if others
 * remain.
 *
 * A chosen candidate on which the driver's compiler is known to crash is rejected (plan_compiler).
 * It must also pass its self-test (impl_validator). After a rejection the choice is repeated; the
 * loop terminates because each repetition excludes one more candidate.
 */
#include "plan/plan.h"
#include "plan/tuning_table.h"

#include <string.h>

static bool blas_may_run(const plan_context *context, const candidate *choice)
{
    if (!context->allow_blas) return false;
    for (const step *s = choice->steps; s; s = s->next)
        if (s->kind == STEP_BLAS_GEMM && !context->blas_accepts(&s->gemm)) return false;
    return true;
}

bool plan_may_run(const plan_context *context, const candidate *impl)
{
    return !impl->rejected && (!impl->uses_blas || blas_may_run(context, impl));
}

/* Returns whether the device has buffers that are large enough for the packed weights. */
static bool packings_fit(const plan_context *context, const candidate *impl)
{
    for (uint32_t i = 0; i < impl->n_packings; i++)
        if (impl->packings[i].size_bytes > context->caps->max_alloc_bytes) return false;
    return true;
}

/* Returns the cheapest candidate that may run, of those whose packings fit or of all. */
static const candidate *cheapest(const plan_context *context, const candidate *candidates,
                                 bool must_fit)
{
    const candidate *best = NULL;
    for (const candidate *impl = candidates; impl; impl = impl->next) {
        if (!plan_may_run(context, impl) || (must_fit && !packings_fit(context, impl))) continue;
        if (!best || (impl->cost > 0 && impl->cost < best->cost)) best = impl;
        if (best->cost <= 0) break;
    }
    return best;
}

const candidate *plan_cheapest(const plan_context *context, const candidate *candidates)
{
    const candidate *best = cheapest(context, candidates, true);
    return best ? best : cheapest(context, candidates, false);
}

/* Returns the candidate with this name if it may run; else NULL. */
static const candidate *find(const plan_context *context, const candidate *candidates,
                             const char *name)
{
    for (const candidate *impl = candidates; name && impl; impl = impl->next)
        if (strcmp(impl->variant, name) == 0 && plan_may_run(context, impl)) return impl;
    return NULL;
}

/* Returns whether measurements or estimates may choose this candidate. */
static bool is_choice(const plan_context *context, const candidate *impl)
{
    return plan_may_run(context, impl) && !impl->last_resort;
}

static size_t count_choices(const plan_context *context, const candidate *candidates)
{
    size_t n = 0;
    for (const candidate *impl = candidates; impl; impl = impl->next) n += is_choice(context, impl);
    return n;
}

/* Records the problem and the names of its candidates in *out, for tuning. */
static clg_status note(const plan_context *context, const candidate *candidates,
                       const char *problem, plan_choice *out)
{
    strbuf impls;
    strbuf_init(&impls, 0);
    for (const candidate *impl = candidates; impl; impl = impl->next)
        if (is_choice(context, impl))
            strbuf_printf(&impls, "%s%s", impls.size_bytes ? " " : "", impl->variant);
    out->problem = step_texts_keep(context->texts, problem);
    out->impls = step_texts_keep(context->texts, strbuf_data(&impls));
    const clg_status status = impls.status;
    strbuf_deinit(&impls);
    if (status != CLG_OK) return status;
    return out->problem && out->impls ? CLG_OK : CLG_ERROR_OUT_OF_HOST_MEMORY;
}

/* Chooses by the tuning table, unless the caller prefers names; records the problem if
 * requested. */
static clg_status by_problem(const plan_context *context, const lower_context *lc, plan_choice *out)
{
    strbuf problem;
    strbuf_init(&problem, 0);
    tuning_problem(lc, &problem);
    clg_status status = problem.status;
    if (status == CLG_OK && context->n_preferred == 0)
        out->impl = find(context, lc->build.candidates,
                         tuning_table_find(context->choices, strbuf_data(&problem)));
    if (status == CLG_OK && context->notes_choices)
        status = note(context, lc->build.candidates, strbuf_data(&problem), out);
    strbuf_deinit(&problem);
    return status;
}

static clg_status choose(const plan_context *context, const lower_context *lc, plan_choice *out)
{
    const candidate *candidates = lc->build.candidates;
    *out = (plan_choice){0};
    for (size_t i = 0; i < context->n_preferred && !out->impl; i++)
        out->impl = find(context, candidates, context->preferred[i]);
    if (count_choices(context, candidates) > 1 && lc->node &&
        (context->choices || context->notes_choices))
        CLG_TRY(by_problem(context, lc, out));
    if (!out->impl) out->impl = plan_cheapest(context, candidates);
    return CLG_OK;
}

/* Returns the chosen candidate as mutable; NULL if none was chosen. */
static candidate *last_taken(const lower_context *lc, const plan_choice *choice)
{
    candidate *impl = lc->build.candidates;
    while (impl && impl != choice->impl) impl = impl->next;
    return impl;
}

/* Runs a candidate's self-test, and keeps the driver's error if it refuses the candidate. */
static clg_status validate(const plan_context *context, const lower_context *lc, candidate *impl,
                           bool *out_passes)
{
    impl_check result = {0};
    CLG_TRY(context->validator.check(context->validator.self, lc, impl, &result));
    *out_passes = result.passes;
    impl->refusal = result.refusal;
    if (impl->refusal == CLG_OK) return CLG_OK;
    impl->refusal_text = arena_strndup(lc->memory, error_text(), strlen(error_text()));
    return impl->refusal_text ? CLG_OK : CLG_ERROR_OUT_OF_HOST_MEMORY;
}

/* Sets *out_passes: whether a candidate compiles, with or without optimisation, and passes its
 * self-test. */
static clg_status check(const plan_context *context, lower_context *lc, candidate *impl,
                        bool baseline, bool *out_passes)
{
    *out_passes = true;
    lc->baseline = baseline;
    candidate_set_baseline(impl, baseline);
    if (context->compiler.compiles)
        CLG_TRY(context->compiler.compiles(context->compiler.self, impl, out_passes));
    impl->crashes = !*out_passes;
    return *out_passes && context->validator.check ? validate(context, lc, impl, out_passes)
                                                   : CLG_OK;
}

clg_status plan_choose(const plan_context *context, lower_context *lc, plan_choice *out)
{
    for (;;) {
        bool passes, baseline = false;
        CLG_TRY(choose(context, lc, out));
        candidate *impl = last_taken(lc, out);
        if (!impl) return CLG_OK;
        if (context->tiers.choose)
            CLG_TRY(context->tiers.choose(context->tiers.self, impl, &baseline));
        CLG_TRY(check(context, lc, impl, baseline, &passes));
        if (!passes && baseline) CLG_TRY(check(context, lc, impl, false, &passes));
        if (passes) return CLG_OK;
        impl->rejected = true;
    }
}

bool plan_was_rejected(const lower_context *lc)
{
    for (const candidate *impl = lc->build.candidates; impl; impl = impl->next)
        if (impl->rejected || impl->crashes) return true;
    return false;
}

/* Sets and returns the error of the driver if it refuses all candidates; else returns CLG_OK. */
static clg_status refusal_of_all(const lower_context *lc, const char *where)
{
    const candidate *first = NULL;
    for (const candidate *impl = lc->build.candidates; impl; impl = impl->next) {
        if (impl->rejected && !impl->refusal_text) return CLG_OK;
        if (impl->rejected && !first) first = impl;
    }
    return first ? error_set(first->refusal, "%s: %s", where, first->refusal_text) : CLG_OK;
}

clg_status plan_no_choice(const plan_context *context, const lower_context *lc)
{
    char text[NODE_TEXT_BYTES];
    const char *where = lc->node ? node_text(lc->node, text) : "copying a tensor";
    bool compiles;
    for (const candidate *impl = lc->build.candidates; impl; impl = impl->next) {
        if (!impl->crashes) continue;
        CLG_TRY(
            context->compiler.compiles(context->compiler.self, impl, &compiles)); /* sets error */
        return error_prefix(CLG_ERROR_KERNEL_BUILD, "%s", where);
    }
    CLG_TRY(refusal_of_all(lc, where));
    if (plan_was_rejected(lc))
        return error_set(
            CLG_ERROR_UNSUPPORTED_DEVICE,
            "%s: every implementation of it gives wrong results on '%s' with driver '%s', "
            "or the driver refuses it",
            where, context->device, context->driver);
    return error_set(CLG_ERROR_UNSUPPORTED_DEVICE,
                     "%s: no kernel of clgraph can run it on this device with these options",
                     where);
}
