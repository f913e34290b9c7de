/* SPDX-License-Identifier: Apache-2.0
 *
 * Estimates the time of launches from a device's rates, remembers those that were measured, and
 * decides into how many parts each is divided so that none takes longer than the context's limit
 * (decision 43). Not thread-safe.
 */
#ifndef CLG_SESSION_LAUNCH_LIMIT_H
#define CLG_SESSION_LAUNCH_LIMIT_H

#include "base/hash_map.h"
#include "caps/rates.h"
#include "session/run/launch_part.h"

typedef struct launch_limit {
    launch_budget budget;
    uint64_t (*now_ns)(void); /* a clock */
    hash_map measured;        /* a launch -> its longest time as a whole, in microseconds */
    hash_map reported;        /* launches that were reported as too long */
    uint64_t epoch;           /* changes when a measurement changes a number of parts */
} launch_limit;

void launch_limit_init(launch_limit *l, const launch_budget *budget, uint64_t (*now_ns)(void));
void launch_limit_deinit(launch_limit *l);

/* Returns the time of a step's launch as a whole in nanoseconds: the longest one measured in this
 * session, else an estimate; 0: unknown. */
double launch_limit_time_ns(const launch_limit *l, const step *s);
/* Returns the number of parts to divide a step into: as many as its time requires, or as are
 * possible. */
uint32_t launch_limit_parts(const launch_limit *l, const step *s);
/* Returns whether a step is too long, even in so many parts; true once for each launch. */
clg_status launch_limit_report(launch_limit *l, const step *s, uint32_t n_parts, bool *out_is_new);
/* Records the longest time of the parts of a step, as measured. Times that change nothing are not
 * kept. */
clg_status launch_limit_note(launch_limit *l, const step *s, uint32_t n_parts, uint64_t longest_ns);

#endif
