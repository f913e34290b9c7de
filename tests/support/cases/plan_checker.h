/* SPDX-License-Identifier: Apache-2.0
 *
 * Replays a plan without a device, to check its use of memory. Every element of every value has a
 * unique number, and a model of memory records the number at each location. A step must find the
 * numbers of its inputs where it reads them, and must not overwrite data that a later step reads.
 * The checker computes views by the operators' host arithmetic, independently of the planner. An
 * invalid plan fails the test.
 */
#ifndef CLG_TESTS_PLAN_CHECKER_H
#define CLG_TESTS_PLAN_CHECKER_H

#include "plan/plan.h"

/* Statistics of a replay. */
typedef struct plan_check_counts {
    size_t n_steps;      /* steps of the plan */
    size_t n_views;      /* nodes that only make a view of their input */
    size_t n_joined;     /* inputs that were written into the output directly */
    size_t n_known;      /* nodes that the host computed during planning */
    size_t n_copies;     /* steps that make views dense or fill outputs */
    size_t n_bytes_read; /* bytes that steps read from slabs */
} plan_check_counts;

/* Checks a path of segments, from the root to a last one, each the child of the previous one.
 * out_counts may be NULL. */
void plan_check(const plan_context *context, const plan *p, const plan_segment *const *path,
                size_t n_path, plan_check_counts *out_counts);

#endif
