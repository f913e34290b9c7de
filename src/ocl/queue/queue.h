/* SPDX-License-Identifier: Apache-2.0
 *
 * What a queue holds, for the files of this folder.
 */
#ifndef CLG_OCL_QUEUE_H
#define CLG_OCL_QUEUE_H

#include "ocl/ocl_context.h"
#include "ocl/queue/launch_guard.h"

/* A command to be timed: from the start of `first` (of `last` when NULL) to the end of `last`. */
typedef struct queue_event {
    uint32_t tag;
    cl_event first, last;
} queue_event;

#define QUEUE_WINDOW 32

/* Commands that may be under way together (queue_overlap.c), while is_open. */
typedef struct queue_overlap {
    cl_command_queue handle; /* out of order; NULL until it is needed */
    bool is_open, is_first_window, is_new_slot;
    uint32_t slot, after; /* of the commands that come now */
    cl_event begun;       /* what was in the queue before */
    cl_event done[QUEUE_WINDOW];
    uint32_t last; /* bits: slots that no other comes after */
} queue_overlap;

/* Where a command goes and what it waits for. */
typedef struct queue_command {
    cl_command_queue handle;
    bool overlaps;
    cl_uint n_wait;
    cl_event wait[QUEUE_WINDOW];
    cl_event made;
} queue_command;

struct ocl_queue {
    ocl_context *context;
    cl_command_queue handle;
    bool is_callers;
    bool waits_for_others; /* what is enqueued may wait for events that are not ours */
    guard_place place;     /* OUTSIDE where the driver needs no guard */
    bool profiling;
    uint32_t tag;
    queue_event *events; /* with profiling alone */
    size_t n_events, capacity;
    bool stays_awake; /* for as long as waiting is short: queue_wait.c */
    cl_event watched; /* of the last command that brings content to the host, or NULL */
    bool wants_all;   /* a launch since the last wait has work for all units */
    uint64_t last_wait_ns;
    queue_overlap overlap;
    bool is_upload;     /* other queues come after its blocking writes: queue_order.c */
    bool has_waited;    /* for uploads, since the last finish */
    uint64_t n_uploads; /* that came before the commands to come */
};

/* Before a launch: waits until the driver can take it, and for what is under way where that must end first. form NULL:
 * launches that only another library knows, k NULL then too. Until the next finish. */
struct ocl_kernel;
clg_status queue_enter(ocl_queue *q, struct ocl_kernel *k, const launch_form *form);

/* Nothing is under way (unless finished is false): other queues may launch what they like. */
void queue_leave(ocl_queue *q, bool finished);
/* Whether threads may wait awake for this device. */
bool queue_may_stay_awake(const ocl_context *c);
/* Forgets the event of `watched`. */
void queue_unwatch(ocl_queue *q);

/* Before a command that may overlap others, and when it was enqueued; its event is in `made` where it does. */
void overlap_begin(const ocl_queue *q, queue_command *c);
void overlap_keep(ocl_queue *q, const queue_command *c);
/* Waits for all commands of an OpenCL queue of this context, as clFinish does. */
clg_status queue_drain(ocl_context *c, cl_command_queue handle);

/* Waits for those that overlap; the next ones do not. */
clg_status overlap_finish(ocl_queue *q);
void overlap_free(ocl_queue *q);

/* After a blocking write of the upload queue, whose event this is: takes the reference. */
void order_publish(ocl_queue *q, cl_event written);
/* Makes what is enqueued from now on wait for uploads that it does not come after yet. */
clg_status order_wait(ocl_queue *q);
/* A finish went well: all that the queue was given is complete. */
void order_settle(ocl_queue *q);

/* Before each command. */
static inline clg_status order_catch_up(ocl_queue *q)
{
    const uint64_t n = atomic_load_explicit(&q->context->uploads.count, memory_order_acquire);
    return n == q->n_uploads ? CLG_OK : order_wait(q);
}

/* Where a command puts its event: NULL without profiling. Reserves room first, so that keeping cannot fail. */
clg_status queue_event_slot(ocl_queue *q, cl_event **out_slot);
/* The command of the slot was enqueued. */
void queue_event_keep(ocl_queue *q);

#endif
