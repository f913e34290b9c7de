/* SPDX-License-Identifier: Apache-2.0
 *
 * Late commands: the queue of commands that layers/opencl_delay.c holds back, and the conditions on
 * which they run. One lock guards all state; functions are called with it held unless they are said
 * to take it.
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

/* An event of a late command, as the application sees it. */
typedef struct late_event {
    cl_event handle; /* a user event */
    cl_event real;   /* NULL until the driver has the command */
    command *pending;
    long references; /* the application's, and of wait lists */
    struct late_event *next;
} late_event;

typedef struct wait_entry {
    late_event *late; /* or NULL */
    cl_event real;
} wait_entry;

typedef struct kernel_arg {
    size_t size;
    void *data; /* NULL: local memory */
    bool is_set;
} kernel_arg;

typedef enum command_kind { WRITE, READ, COPY, FILL, LAUNCH, MARKER, BARRIER, UNMAP } command_kind;

struct command {
    command_kind kind;
    queue *q; /* NULL: not late */
    cl_command_queue handle;
    late_event *event; /* or NULL */
    bool is_flushed;
    wait_entry waits[MAX_WAITS];
    cl_uint n_waits;
    cl_mem a, b;
    size_t offset_a, offset_b, size;
    void *data;  /* the application's, or `owned` */
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

struct queue {
    cl_command_queue handle;
    cl_context context;
    long references;
    command *first, *last;
    struct queue *next;
};

extern pthread_mutex_t late_lock;
extern const cl_icd_dispatch *late_driver; /* the functions of the driver, or of the next layer */
extern long late_n_run, late_n_unflushed;

/* Returns the queue's record; NULL: the queue is not late. */
queue *late_find_queue(cl_command_queue handle);
void late_add_queue(cl_command_queue handle, cl_context context);
/* Take the lock. Retain, or release, a reference; the last release runs the queue's commands. */
void late_retain_queue(cl_command_queue handle);
void late_release_queue(cl_command_queue handle);
void late_mark_flushed(queue *q);
/* Passes all commands of the queue up to this one to the driver; NULL: all. */
void late_run_until(queue *q, const command *last);

/* Returns the record of a late event; NULL: an event of the driver. */
late_event *late_find_event(cl_event handle);
void late_put_event(late_event *e);
/* Passes the event's command to the driver; returns the driver's event. */
cl_event late_realize(cl_event handle);

/* Appends a command to its late queue, or passes it to the driver if the queue is not late. */
cl_int late_submit(command *c, cl_uint n, const cl_event *waits, cl_event *event);
/* As late_submit, taking the lock. */
cl_int late_submit_locked(command *c, cl_uint n, const cl_event *waits, cl_event *event);
/* Takes the lock; waits for the command and for the earlier ones of its queue. */
cl_int late_submit_and_wait(command *c, cl_uint n, const cl_event *waits, cl_event *event);

typedef enum release_kind {
    RELEASE_MEMORY,
    RELEASE_KERNEL,
    RELEASE_PROGRAM,
    RELEASE_CONTEXT
} release_kind;
/* Takes the lock. Releases an object of the driver once no command is pending that may use it. */
cl_int late_release(release_kind what, void *object);

_Noreturn void late_give_up(const char *what, cl_int code);
/* Return zeroed memory, and memory with a copy of data; never NULL. */
void *late_alloc(size_t size);
void *late_copy(const void *data, size_t size);

#endif
