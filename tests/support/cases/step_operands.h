/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists the operands of a lowered step together with the memory that a plan gave them.
 */
#ifndef CLG_TESTS_STEP_OPERANDS_H
#define CLG_TESTS_STEP_OPERANDS_H

#include "plan/plan.h"

/* Returns whether the step has nothing to do: a copy or fill of 0 bytes, or an empty NDRange. Plans
 * omit such steps. */
bool step_is_skipped(const step *s);
/* The operands of a step, in the order of plan_step.buffers. at[i] is where the plan placed element
 * 0 of list[i]'s buffer. */
typedef struct step_operands {
    uint32_t n;
    operand list[STEP_MAX_ARGS];
    plan_placement at[STEP_MAX_ARGS];
} step_operands;
/* Lists the operands of s, which `planned` is in the plan. Fails the test when `planned` has fewer
 * buffers. */
void step_operands_of(const step *s, const plan_step *planned, step_operands *out);
/* Returns which input of the node the step's first input operand is; SIZE_MAX when it has none. */
size_t step_input_read(const step *s);

#endif
