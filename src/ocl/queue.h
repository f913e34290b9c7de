/* SPDX-License-Identifier: Apache-2.0
 *
 * What a queue holds, for the files of this folder.
 */
#ifndef CLG_OCL_QUEUE_H
#define CLG_OCL_QUEUE_H

#include "ocl/context.h"

/* A command to be timed: from the start of `first` (of `last` when NULL) to the end of `last`. */
typedef struct queue_event {
    uint32_t tag;
    cl_event first, last;
} queue_event;

struct ocl_queue {
    ocl_context *context;
    cl_command_queue handle;
    bool profiling;
    uint32_t tag;
    queue_event *events; /* with profiling alone */
    size_t n_events, capacity;
};

/* Where a command puts its event: NULL without profiling. Reserves room first, so that keeping cannot fail. */
clg_status queue_event_slot(ocl_queue *q, cl_event **out_slot);
/* The command of the slot was enqueued. */
void queue_event_keep(ocl_queue *q);

#endif
