/* SPDX-License-Identifier: Apache-2.0
 *
 * What keeps PoCL before version 4 alive when several queues are at work (QUIRK_WIDER_LAUNCH_CRASHES, decision 15).
 *
 * That driver ends the process when a kernel starts with a larger grid than it ever had while another queue runs it.
 * So queues enter here before their first launch and leave when nothing of theirs is under way. What the driver has
 * had, as large or larger, runs side by side; a launch that is new to it runs while no other queue is inside, and is
 * known from then on. First come, first served. All of it is for the process, as the driver's table is.
 *
 * Whoever is inside must not wait for anything that another one does inside, nor take a lock that may be held
 * while entering.
 */
#ifndef CLG_OCL_LAUNCH_GUARD_H
#define CLG_OCL_LAUNCH_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the driver tells launches apart by. Finer than the driver's own key is safe, coarser is not. */
typedef struct launch_form {
    uint64_t kernel[2]; /* a program and an entry of it */
    uint64_t local[3];
    uint64_t extent[2]; /* work-items: the larger one of dimensions 0 and 1; dimension 2 */
} launch_form;

typedef enum guard_place { GUARD_OUTSIDE, GUARD_SHARED, GUARD_ALONE } guard_place;

/* Waits for its turn; SHARED when the form is known. NULL: nothing is known of the launch. */
guard_place launch_guard_enter(const launch_form *form);
/* finished: all that was launched inside has run. */
void launch_guard_leave(guard_place place, bool finished);

/* Inside: whether the launch may run beside others. */
bool launch_guard_knows(const launch_form *form);
/* Changes when what was known is forgotten, never while a queue is inside and not alone. */
uint64_t launch_guard_epoch(void);
/* Alone: the driver took this launch. NULL: launches of which nothing is known. */
void launch_guard_learn(const launch_form *form);
/* The driver's table got up to n entries that are of no launch, as when it gives a program's binary. */
void launch_guard_lose_room(size_t n);

#endif
