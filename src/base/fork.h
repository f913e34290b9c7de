/* SPDX-License-Identifier: Apache-2.0
 *
 * Tells whether this process was forked after OpenCL was used. In such a child the drivers do not
 * work: their threads are those of the parent, and locks that these held stay locked. So every call
 * with a context, session or stream fails before it reaches a driver or waits for a thread, and
 * freeing one does nothing: its memory belongs to the parent, too.
 */
#ifndef CLG_BASE_FORK_H
#define CLG_BASE_FORK_H

#include "base/error.h"

#include <stdatomic.h>
#include <stdbool.h>

/* Starts watching for forks, before OpenCL is used for the first time; false: OpenCL was not there,
 * so that children are as good as this process. */
void fork_watch(bool uses_opencl);

/* The number of forks after fork_watch between the process that was started and this one. */
extern atomic_uint fork_depth;
static inline unsigned fork_get_depth(void)
{
    return atomic_load_explicit(&fork_depth, memory_order_relaxed);
}
/* Returns whether this process was forked after OpenCL was used. */
static inline bool fork_is_child(void) { return fork_get_depth() > 0; }
/* Returns FORKED if so. */
clg_status fork_check(void);

#endif
