/* SPDX-License-Identifier: Apache-2.0
 *
 * Declares the fields and internal functions of a queue, private to src/ocl.
 */
#ifndef CLG_OCL_QUEUE_H
#define CLG_OCL_QUEUE_H

#include "ocl/ocl_context.h"
#include "ocl/queue/launch_guard.h"

/* A command to be timed, from the start of `first` (of `last` when NULL) to the end of `last`. */
typedef struct queue_event {
    uint32_t tag;
    cl_event first, last;
} queue_event;

#define QUEUE_WINDOW 32

/* Commands that may run concurrently (queue_overlap.c), while is_open. */
typedef struct queue_overlap {
    cl_command_queue handle; /* out-of-order queue; NULL until it is needed */
    bool is_open, is_first_window, is_new_slot;
    uint32_t slot, after; /* of the next commands */
    cl_event begun;       /* completes when all that was enqueued before the overlap has ended */
    cl_event done[QUEUE_WINDOW];
    uint32_t last; /* bits: slots that no other slot depends on */
} queue_overlap;

/* The OpenCL queue that a command goes to, and the events that it waits for. */
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
    bool waits_for_others; /* commands may wait for the application's events */
    guard_place place;     /* GUARD_OUTSIDE where the driver needs no guard */
    bool profiling;
    uint32_t tag;
    queue_event *events; /* only with profiling */
    size_t n_events, capacity;
    bool stays_awake; /* Polls while waits are short (queue_wait.c). */
    cl_event watched; /* of the last command that transfers content to the host, or NULL */
    bool wants_all;   /* a launch since the last wait has work for all compute units */
    uint64_t last_wait_ns;
    queue_overlap overlap;
    bool is_upload;     /* other queues wait for its blocking writes (queue_order.c) */
    bool has_waited;    /* a barrier waits for an upload, since the last finish */
    uint64_t n_uploads; /* uploads that the next commands are already ordered after */
};

/* Enters the launch guard before a launch of k, until the next finish: waits until the driver can
 * take the launch, and for commands in flight where those must end first. form and k NULL: launches
 * of another library. */
struct ocl_kernel;
clg_status queue_enter(ocl_queue *q, struct ocl_kernel *k, const launch_form *form);

/* Leaves the launch guard, so that other queues may launch anything. finished: no command is in
 * flight. */
void queue_leave(ocl_queue *q, bool finished);
/* Returns whether threads may poll instead of sleeping while they wait for this device. */
bool queue_may_stay_awake(const ocl_context *ocl);
/* Releases the event of `watched`. */
void queue_unwatch(ocl_queue *q);

/* overlap_begin chooses the OpenCL queue and the wait list of a command that may run concurrently
 * with others. Call concurrent_keep once it is enqueued, with its event in c->made if overlaps is
 * set. */
void overlap_begin(const ocl_queue *q, queue_command *c);
void concurrent_keep(ocl_queue *q, const queue_command *c);
/* Waits for all commands of an OpenCL queue of this context, as clFinish does. */
clg_status queue_drain(ocl_context *ocl, cl_command_queue handle);

/* Waits for the concurrent commands and ends the overlap that ocl_queue_fork began. */
clg_status overlap_finish(ocl_queue *q);
void overlap_free(ocl_queue *q);

/* Publishes the event of a blocking write of the upload queue; takes ownership of the reference. */
void order_publish(ocl_queue *q, cl_event written);
/* Makes later commands wait for uploads that they are not yet ordered after. */
clg_status order_wait(ocl_queue *q);
/* Call after a successful finish: everything enqueued is complete. */
void order_settle(ocl_queue *q);

/* Orders the next command after the last upload; call before each command. */
static inline clg_status order_catch_up(ocl_queue *q)
{
    const uint64_t n = atomic_load_explicit(&q->context->uploads.count, memory_order_acquire);
    return n == q->n_uploads ? CLG_OK : order_wait(q);
}

/* Returns where a command stores its event; NULL without profiling. Allocates first, so that
 * queue_event_keep cannot fail. */
clg_status queue_event_slot(ocl_queue *q, cl_event **out_slot);
/* Records the slot's command as enqueued. */
void queue_event_keep(ocl_queue *q);

#endif
