/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps PoCL before version 4 from crashing when several queues launch (QUIRK_WIDER_LAUNCH_CRASHES,
 * decision 15).
 *
 * That driver crashes the process when a kernel starts with a larger global size than ever before
 * while another queue runs it. So a queue enters the guard before its first launch, and leaves when
 * none of its commands is in flight. A launch is known if the driver has run it before with the
 * same or a larger global size. Queues with known launches run concurrently; an unknown launch runs
 * while no other queue is inside, and is known afterwards. Queues are admitted in order of arrival.
 * All state is per process, as the driver's table of compiled kernels is.
 *
 * A thread that is inside must not wait for another queue that is inside, and must not take a lock
 * that another thread may hold while it enters.
 */
#ifndef CLG_OCL_LAUNCH_GUARD_H
#define CLG_OCL_LAUNCH_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The properties by which launches are distinguished: all by which the driver does, since to
 * distinguish fewer would be unsafe. */
typedef struct launch_form {
    uint64_t kernel[2]; /* serial number of the program; hash of the kernel's name */
    uint64_t local[3];
    uint64_t extent[2]; /* global size: the larger of dimensions 0 and 1; dimension 2 */
} launch_form;

/* State of a queue: not admitted, admitted with others, admitted alone. */
typedef enum guard_place { GUARD_OUTSIDE, GUARD_SHARED, GUARD_ALONE } guard_place;

/* Waits to be admitted, in order of arrival. Returns GUARD_SHARED when the launch is known, else
 * GUARD_ALONE. form NULL: an unknown launch. */
guard_place launch_guard_enter(const launch_form *form);
/* Leaves the guard. finished: all commands launched inside have completed; if not, a queue that was
 * alone makes all launches unknown. */
void launch_guard_leave(guard_place place, bool finished);

/* Returns whether the launch is known, so that it may run concurrently with others; to be called
 * inside. */
bool launch_guard_knows(const launch_form *form);
/* Returns a number that changes when all launches become unknown, which never happens while a queue
 * is inside as GUARD_SHARED. */
uint64_t launch_guard_epoch(void);
/* Records that the driver has run this launch; to be called as GUARD_ALONE. form NULL: launches
 * that cannot be described, such as another library's; then leaving makes all launches unknown. */
void launch_guard_learn(const launch_form *form);
/* Records that the driver may have added n entries to its table that are not of launches, such as
 * when it returned a program's binary. */
void launch_guard_reduce_capacity(size_t n);

#endif
