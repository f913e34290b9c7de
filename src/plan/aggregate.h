/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans aggregates (sequences, optionals and maps) that are inputs or outputs of the model:
 * functions used only by the planner. plan.h declares those that other code uses too.
 */
#ifndef CLG_PLAN_AGGREGATE_H
#define CLG_PLAN_AGGREGATE_H

#include "plan/state.h"

/* Makes a deep copy of f: items in the arena, and copies of the tensors known on the host, which
 * the caller may overwrite later. Release it with aggregate_release, also after a failure. */
clg_status aggregate_copy(arena *memory, const value_fact *f, value_fact *out_copy);
void aggregate_release(const value_fact *copy);

/* Sets *out_value to an input of the graph with fact f, whose tensors lie one after another in
 * `root`, its block of memory (plan_root). */
clg_status aggregate_input(plan_state *s, const value_fact *f, uint32_t root,
                           plan_value *out_value);
/* Makes every tensor of output v readable: dense and in device memory. `settle` does so for one
 * tensor value. */
clg_status aggregate_settle(plan_state *s, value_id v,
                            clg_status (*settle)(plan_state *s, value_id v));

#endif
