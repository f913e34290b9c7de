/* SPDX-License-Identifier: Apache-2.0
 *
 * Counts the iterations of the loops of a run, and decides whether a loop continues.
 */
#ifndef CLG_SESSION_LOOP_COUNTS_H
#define CLG_SESSION_LOOP_COUNTS_H

#include "session/exec/exec.h"

/* Starts as all zeros. */
typedef struct loop_counts {
    int64_t *counts; /* by plan_iteration.number: iterations that are complete */
    size_t n, capacity;
    uint64_t total; /* of all loops */
} loop_counts;

void loop_counts_deinit(loop_counts *c);
/* Decides what follows a segment with a `next`. *out_again: another iteration of its loop; else
 * what comes after *out_count iterations. condition: what was read after the segment; NULL if
 * nothing was. is_brief: the loop ends once both segments of its iterations have run. Returns DATA
 * if there are more iterations than the session's options allow. */
clg_status loop_counts_next(loop_counts *c, const session_exec *e, const plan_segment *segment,
                            const tensor *condition, bool is_brief, bool *out_again,
                            int64_t *out_count);

#endif
