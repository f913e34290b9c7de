/* SPDX-License-Identifier: Apache-2.0
 *
 * Sequences and optionals as inputs and outputs of plans, for the planner: what plan.h does not
 * say.
 */
#ifndef CLG_PLAN_AGGREGATE_H
#define CLG_PLAN_AGGREGATE_H

#include "plan/state.h"

/* Deep copy of f: items in the arena, and copies of the contents that are known, since a caller
 * may write to what it gave. What a copy that failed holds is released alike. */
clg_status aggregate_copy(arena *memory, const value_fact *f, value_fact *out_copy);
void aggregate_release(const value_fact *copy);

/* The value of an input whose memory is `root`. */
clg_status aggregate_input(plan_state *s, const value_fact *f, uint32_t root,
                           plan_value *out_value);
/* Makes every tensor of an output one that can be read; `settle` does that for a value. */
clg_status aggregate_settle(plan_state *s, value_id v,
                            clg_status (*settle)(plan_state *s, value_id v));

#endif
