/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases of gradients of operators that do what several others do: attention, fused operators and
 * others whose rules compute them once more by other operators.
 */
#ifndef CLG_TESTS_COMPOSED_CASES_H
#define CLG_TESTS_COMPOSED_CASES_H

#include "support/cases/gradient/gradient_case.h"

typedef struct gradient_group {
    const char *name;
    const gradient_case *cases;
    size_t n;
} gradient_group;

extern const gradient_group composed_groups[];
extern const size_t n_composed_groups;

/* Checks the cases of a group; fails where there is none of this name. */
void composed_check(clg_context *context, const char *name);

#endif
