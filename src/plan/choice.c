/* SPDX-License-Identifier: Apache-2.0
 *
 * Which candidate computes a node: the first that may run on this device with these options, or the cheapest of those
 * with an estimated cost when it is one of them. Lowering orders candidates by preference for the kernel class.
 */
#include "plan/plan.h"

static bool blas_may_run(const plan_context *c, const candidate *choice)
{
    if (!c->allow_blas) return false;
    for (const step *s = choice->steps; s; s = s->next)
        if (s->kind == STEP_BLAS_GEMM && !c->blas_accepts(&s->gemm)) return false;
    return true;
}

const candidate *plan_choose(const plan_context *c, const candidate *candidates)
{
    const candidate *best = NULL;
    for (const candidate *way = candidates; way; way = way->next) {
        if (way->uses_blas && !blas_may_run(c, way)) continue;
        if (!best || (way->cost > 0 && way->cost < best->cost)) best = way;
        if (best->cost <= 0) break;
    }
    return best;
}
