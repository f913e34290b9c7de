/* SPDX-License-Identifier: Apache-2.0
 *
 * The operands of a lowered step, as the planner binds them.
 */
#ifndef CLG_TESTS_STEP_OPERANDS_H
#define CLG_TESTS_STEP_OPERANDS_H

#include "step/step.h"

/* A step over nothing, which plans leave out. */
bool step_is_skipped(const step *s);
/* In the order of plan_step.buffers, with the bytes that one of their offsets counts. At most STEP_MAX_ARGS. */
uint32_t step_operands(const step *s, operand *out, size_t *out_units);

#endif
