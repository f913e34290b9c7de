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
    uint32_t slot, after; /* of the next command (ocl_queue_order) */
    cl_event begun;       /* completes when all that was enqueued before the overlap has ended */
    cl_event done[QUEUE_WINDOW];
    uint32_t last;  /* bits: slots on which no other slot depends */
    bool has_spins; /* launches of spin_steps.c may be in flight, for which no other one waits */
} queue_overlap;

/* The OpenCL queue in which a command is enqueued, and its wait list. */
typedef struct queue_command {
    cl_command_queue handle;
    bool overlaps;
    cl_uint n_wait;
    cl_event wait[QUEUE_WINDOW];
    cl_event made;
} queue_command;

/* Whether the kernel of spin_wait.c can be enqueued. */
typedef enum spin_state { SPIN_UNKNOWN, SPIN_READY, SPIN_OFF } spin_state;

#define SPIN_TRIAL_RUNS 4u

/* The comparison of runs with spin_steps.c's kernel and without (spin_trial.c). */
typedef struct spin_trial {
    uint32_t n_runs; /* of this period, which begins with SPIN_TRIAL_RUNS of each kind in turn */
    uint32_t n_hold; /* runs after these; 0: nothing was compared yet */
    bool is_faster;  /* with the kernel */
    bool is_timed;   /* spin_trial_begin was called for the run in progress */
    uint64_t since_ns;
    uint64_t time_ns[2][SPIN_TRIAL_RUNS]; /* of runs without, [0], and with the kernel, [1] */
} spin_trial;

/* The kernel that keeps a thread of the driver awake between runs (spin_wait.c). */
typedef struct queue_spin {
    spin_state state;
    uint32_t n_runs;  /* since wants_steps is set; SPIN_STEPS_BUILD_AFTER in a preparation */
    bool wants_steps; /* ocl_queue_keeps_awake was called */
    spin_trial trial;
    uint32_t n_quick;                    /* runs in a row that followed the one before quickly */
    bool has_begun;                      /* spin_begin_work was called since the last wait */
    uint64_t ended_ns;                   /* when the last wait ended; 0: none has */
    cl_command_queue handle;             /* where the kernel is enqueued; NULL until it is needed */
    struct ocl_kernel *kernel, *between; /* the same, for spin_wait.c and spin_steps.c */
    ocl_buffer *words;
    cl_event last; /* of the last launch, unless it is known to have ended; guarded by the list */
    struct queue_spin *next, **link; /* of the list; link NULL: not a member */
} queue_spin;

/* The place in the list of queues that left the launch guard with launches in flight. */
typedef struct queue_running {
    ocl_queue *next, **link; /* link NULL: not a member */
} queue_running;

struct ocl_queue {
    ocl_context *context;
    cl_command_queue handle;
    bool is_callers;
    bool waits_for_others; /* commands in flight may wait for the application's events */
    bool in_flight;        /* a command was enqueued since the last wait for all commands */
    bool is_working;       /* queue_set_working */
    guard_place place;     /* GUARD_OUTSIDE where the driver needs no guard */
    bool profiling;
    uint32_t tag;
    queue_event *events; /* only with profiling */
    size_t n_events, capacity;
    bool stays_awake; /* a wait may poll before it sleeps (queue_wait.c) */
    bool keeps_read;  /* ocl_queue_keep_read was called since the last wait */
    cl_event watched; /* event of the last command that reads a buffer to the host, or NULL */
    bool wants_all;   /* a launch since the last wait occupies all compute units */
    uint64_t last_wait_ns;
    queue_overlap overlap;
    queue_spin spin;
    queue_running running; /* guarded by the list's lock (running_list.c) */
    bool is_upload;        /* other queues wait for its blocking writes (queue_order.c) */
    bool has_waited;       /* a barrier for an upload was enqueued since the last finish */
    uint64_t n_uploads;    /* number of uploads after which the next commands are ordered */
};

/* Enters the launch guard before a launch of k, until the next finish. Waits until the driver can
 * run the launch safely; where necessary, first finishes this queue. form and k NULL: launches of
 * another library. */
struct ocl_kernel;
clg_status queue_enter(ocl_queue *q, struct ocl_kernel *k, const launch_form *form);

/* Returns the status of a command that failed with `status`: DEVICE_LOST where a lack of memory is
 * really a lost device, which drivers report with the same code, and on which the queue's commands
 * cannot be waited for either. */
clg_status queue_explain(ocl_queue *q, clg_status status);
/* Leaves the launch guard, so that other queues may enter it. finished: no command of this queue is
 * in flight. */
void queue_leave(ocl_queue *q, bool finished);
/* Returns whether threads may poll instead of sleeping while they wait for this device. */
bool queue_may_stay_awake(const ocl_context *ocl);
/* Releases the event `watched` and sets it to NULL. */
void queue_unwatch(ocl_queue *q);

/* Returns whether concurrent commands are faster in this queue: on drivers whose threads otherwise
 * sleep between two launches, since it passes them a command only when its dependencies have ended.
 * Others have not been measured. */
bool overlap_gains(const ocl_queue *q);
/* Sets the OpenCL queue and the wait list of a command that may run concurrently with others. */
void overlap_begin(const ocl_queue *q, queue_command *c);
/* Records such a command once it is enqueued. If c->overlaps, c->made has its event, which the
 * queue then owns. */
void concurrent_keep(ocl_queue *q, const queue_command *c);
/* Waits for all commands of an OpenCL queue of this context, as clFinish does; also if the device
 * was lost. */
clg_status queue_drain(ocl_context *ocl, cl_command_queue handle);

/* Records whether the queue has launches for which the host waits, or will. */
void queue_set_working(ocl_queue *q, bool is_working);
/* Returns whether no other queue of the process has such launches. */
bool queue_works_alone(const ocl_queue *q);

/* Waits for launches of spin_steps.c, which end soon once those of the run have ended. */
void overlap_settle(ocl_queue *q);
/* Waits for the concurrent commands and ends the overlap that ocl_queue_fork began. */
clg_status overlap_finish(ocl_queue *q);
void overlap_free(ocl_queue *q);

/* Creates the kernel and what it needs; also after a failure only spin_free is to be called. */
clg_status spin_create(ocl_queue *q);
/* Creates the kernel for spin_steps.c, once there is that of spin_wait.c. */
clg_status spin_steps_create(ocl_queue *q);
/* Returns whether the run that begins now is to have the kernel; again for another part of it. */
bool spin_trial_begin(spin_trial *t, uint64_t now_ns);
/* Records the end of the run, if spin_trial_begin was called for it. */
void spin_trial_end(spin_trial *t, uint64_t now_ns);
/* Launches spin_wait.c's kernel, set to end immediately, as wide as spin_steps.c does. */
clg_status spin_steps_introduce(ocl_queue *q);
/* Makes the next launch of the kernel end immediately. */
clg_status spin_let_end(queue_spin *s);
/* Returns whether a test has switched it off. */
bool spin_is_off(void);
/* Returns whether a test makes it independent of how quick runs are. */
bool spin_is_forced(void);
/* Announces work where the queue has not since its last wait: called after its first launch, which
 * a thread that was kept awake then finds. */
void spin_begin_work(ocl_queue *q);
/* Records that a wait has ended. */
void spin_ended(ocl_queue *q, uint64_t now_ns);
/* Enqueues the kernel that keeps a thread of the driver awake until the next run, where that is
 * worth while. Failures only switch it off. */
void spin_enqueue(ocl_queue *q);
void spin_free(ocl_queue *q);

/* Adds the queue, which has known launches in flight, to those that running_list_wait waits for. */
void running_list_add(ocl_queue *q);
/* Removes the queue, if it is a member: nothing of it is in flight, or it has entered the launch
 * guard again. */
void running_list_remove(ocl_queue *q);
/* Waits for the launches of all members and removes them. */
void running_list_wait(void);

/* The memory that the kernels of the process read, SPIN_WORD_BYTES at a multiple of as many. */
#define SPIN_WORD_BYTES 128
const void *spin_words(void);
/* Ends all such kernels of the process that were enqueued before. Does not wait. */
void spin_announce_work(void);
/* Returns a number that each announcement changes, as the kernel expects it. */
int spin_n_announced(void);
/* Adds the queue to those that spin_end_all waits for, if it is not one of them. */
void spin_list_add(queue_spin *s);
/* Makes `launched` the event of the last launch, for a member. Takes ownership of the reference. */
void spin_list_keep(queue_spin *s, cl_event launched);
/* Ends and waits for the kernel of the queue, if it is a member, and removes it. */
void spin_list_remove(queue_spin *s);
/* Ends all such kernels of the process and waits for them: not for long, since the run after which
 * one was enqueued has ended when its queue leaves the launch guard. */
void spin_end_all(void);

/* Makes `written`, the event of a blocking write of the upload queue, the one for which other
 * queues wait. Takes ownership of the reference. */
void order_publish(ocl_queue *q, cl_event written);
/* Makes later commands wait for the last upload, if they do not yet. */
clg_status order_wait(ocl_queue *q);
/* Records that all commands enqueued are complete; to be called after a successful finish. */
void order_settle(ocl_queue *q);

/* Orders the next command after the last upload; call before each command. DEVICE_LOST if the
 * device was lost. */
static inline clg_status order_catch_up(ocl_queue *q)
{
    if (ocl_context_is_lost(q->context)) return ocl_context_require(q->context);
    const uint64_t n = atomic_load_explicit(&q->context->uploads.count, memory_order_acquire);
    return n == q->n_uploads ? CLG_OK : order_wait(q);
}

/* Returns where the next command must store its event for its time stamps; NULL without profiling.
 * Allocates memory here, so that queue_event_keep cannot fail. */
clg_status queue_event_slot(ocl_queue *q, cl_event **out_slot);
/* Records that the command whose event queue_event_slot returned is enqueued. */
void queue_event_keep(ocl_queue *q);

#endif
