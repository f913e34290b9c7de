/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists the operands of a lowered step, as the planner binds them.
 */
#ifndef CLG_TESTS_STEP_OPERANDS_H
#define CLG_TESTS_STEP_OPERANDS_H

#include "plan/plan.h"

/* Returns whether the step has no work: plans omit it. */
bool step_is_skipped(const step *s);
/* Operands in the order of plan_step.buffers, with the plan's placement of element 0 of each. */
typedef struct step_operands {
    uint32_t n;
    operand list[STEP_MAX_ARGS];
    plan_placement at[STEP_MAX_ARGS];
} step_operands;
/* Fills in the operands; planned: the plan's step, with at least as many buffers. */
void step_operands_of(const step *s, const plan_step *planned, step_operands *out);
/* Returns the index of the input that the step reads first; SIZE_MAX when it reads none. */
size_t step_input_read(const step *s);

#endif
