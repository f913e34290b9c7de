/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps PoCL before version 4 from crashing when several queues launch (QUIRK_WIDER_LAUNCH_CRASHES,
 * decision 15).
 *
 * That driver ends the process when a kernel starts with a larger grid than ever before while
 * another queue runs it. So queues enter here before their first launch and leave when none of
 * their commands is in flight. Launches that the driver has run before, as large or larger, run
 * concurrently; a launch that is new to it runs while no other queue is inside, and is known
 * afterwards. Queues are admitted in order of arrival. All state is per process, as the driver's
 * table is.
 *
 * While inside, do not wait for another queue that is inside, and take no lock that may be held
 * while entering.
 */
#ifndef CLG_OCL_LAUNCH_GUARD_H
#define CLG_OCL_LAUNCH_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The properties that distinguish launches. Finer than the driver's own key is safe, coarser is
 * not. */
typedef struct launch_form {
    uint64_t kernel[2]; /* a program, and one of its kernels */
    uint64_t local[3];
    uint64_t extent[2]; /* work-items: the larger of dimensions 0 and 1; dimension 2 */
} launch_form;

typedef enum guard_place { GUARD_OUTSIDE, GUARD_SHARED, GUARD_ALONE } guard_place;

/* Waits to be admitted, in order of arrival. Returns GUARD_SHARED when the launch is known, else
 * GUARD_ALONE. form NULL: an unknown launch. */
guard_place launch_guard_enter(const launch_form *form);
/* Leaves. finished: all commands launched inside have completed. */
void launch_guard_leave(guard_place place, bool finished);

/* Returns whether the launch may run concurrently with others; call it inside. */
bool launch_guard_knows(const launch_form *form);
/* Returns a number that changes when the known launches are cleared, which never happens while a
 * queue is inside as GUARD_SHARED. */
uint64_t launch_guard_epoch(void);
/* Records that the driver has run this launch; call it while alone inside. form NULL: unknown
 * launches, e.g. of another library; leaving then clears all known launches. */
void launch_guard_learn(const launch_form *form);
/* Accounts for up to n new entries in the driver's table that do not belong to launches, e.g. after
 * it returned a program's binary. */
void launch_guard_reduce_capacity(size_t n);

#endif
