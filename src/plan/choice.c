/* SPDX-License-Identifier: Apache-2.0
 *
 * Which candidate computes a node: the first that may run on this device with these options. Lowering orders
 * candidates by preference for the kernel class.
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
    for (const candidate *choice = candidates; choice; choice = choice->next)
        if (!choice->uses_blas || blas_may_run(c, choice)) return choice;
    return NULL;
}
