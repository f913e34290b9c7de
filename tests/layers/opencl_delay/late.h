/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements the delayed queues of layers/opencl_delay.c: pending commands, their events, and the
 * conditions on which they are passed to the driver. One lock, late_lock, guards all state. Callers
 * hold it, except where a function is said to take it.
 */
#ifndef CLG_TESTS_OPENCL_DELAY_LATE_H
#define CLG_TESTS_OPENCL_DELAY_LATE_H

#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS

#include <CL/cl_layer.h>

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#define MAX_ARGS 64
#define MAX_WAITS 64
#define PATTERN_BYTES 128

typedef struct queue queue;
typedef struct command command;

/* The event of a delayed command. */
typedef struct late_event {
    cl_event handle; /* a user event, given to the application */
    cl_event real;   /* NULL until the driver has the command */
    command *pending;
    long references; /* held by the application and by wait lists */
    struct late_event *next;
} late_event;

/* An event in a wait list: of a delayed command (late), or of the driver (real). */
typedef struct wait_entry {
    late_event *late; /* or NULL */
    cl_event real;
} wait_entry;

/* A kernel argument: a copy of the bytes that were passed to clSetKernelArg. */
typedef struct kernel_arg {
    size_t size;
    void *data; /* NULL: local memory */
    bool is_set;
} kernel_arg;

typedef enum command_kind { WRITE, READ, COPY, FILL, LAUNCH, MARKER, BARRIER, UNMAP } command_kind;

/* A command, with the parameters of the clEnqueue... call that its kind uses. */
struct command {
    command_kind kind;
    queue *q; /* NULL: the queue is not delayed */
    cl_command_queue handle;
    late_event *event; /* or NULL */
    bool is_flushed;
    wait_entry waits[MAX_WAITS];
    cl_uint n_waits;
    cl_mem a, b;
    size_t offset_a, offset_b, size;
    void *data;  /* owned by the application, or equal to `owned` */
    void *owned; /* freed once the command is complete */
    size_t pattern_size;
    char pattern[PATTERN_BYTES];
    cl_kernel kernel;
    cl_uint n_dims;
    bool has_offset, has_local;
    size_t offset[3], global[3], local[3];
    kernel_arg args[MAX_ARGS];
    struct command *next;
};

/* A delayed queue, with its pending commands in order. */
struct queue {
    cl_command_queue handle;
    cl_context context;
    long references;
    command *first, *last;
    struct queue *next;
};

extern pthread_mutex_t late_lock;
extern const cl_icd_dispatch *late_driver; /* the functions of the driver, or of the next layer */
/* Counters: delayed commands that were passed to the driver, and waits of one queue for a command
 * of another that was not flushed. */
extern long late_n_run, late_n_unflushed;

/* Returns the queue's record, or NULL if the queue is not delayed. */
queue *late_find_queue(cl_command_queue handle);
void late_add_queue(cl_command_queue handle, cl_context context);
/* Retain, and release, a reference. Both take the lock. The last release runs the queue's commands.
 */
void late_retain_queue(cl_command_queue handle);
void late_release_queue(cl_command_queue handle);
/* Marks the pending commands of the queue as flushed; does not run them. */
void late_mark_flushed(queue *q);
/* Passes the commands of the queue up to and including `last` to the driver; all if it is NULL. */
void late_run_until(queue *q, const command *last);

/* Returns the record of a delayed command's event, or NULL for an event of the driver. */
late_event *late_find_event(cl_event handle);
/* Releases a reference of the record, and frees it after the last one. */
void late_put_event(late_event *e);
/* Passes the event's command to the driver; returns the driver's event. */
cl_event late_realize(cl_event handle);

/* Appends a command to its delayed queue, or passes it to the driver if the queue is not delayed.
 */
cl_int late_submit(command *c, cl_uint n, const cl_event *waits, cl_event *event);
/* As late_submit, but takes the lock. */
cl_int late_submit_locked(command *c, cl_uint n, const cl_event *waits, cl_event *event);
/* Submits a command and waits for it, and for the earlier ones of its queue. Takes the lock. */
cl_int late_submit_and_wait(command *c, cl_uint n, const cl_event *waits, cl_event *event);

typedef enum release_kind {
    RELEASE_MEMORY,
    RELEASE_KERNEL,
    RELEASE_PROGRAM,
    RELEASE_CONTEXT
} release_kind;
/* Releases an object of the driver once no pending command can use it. Takes the lock. */
cl_int late_release(release_kind what, void *object);

/* Prints the message and aborts the process. */
_Noreturn void late_give_up(const char *what, cl_int code);
/* Return zeroed memory, and a copy of `size` bytes of data. Never NULL: they abort on failure. */
void *late_alloc(size_t size);
void *late_copy(const void *data, size_t size);

#endif
