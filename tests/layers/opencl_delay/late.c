/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements the delayed queues of layers/opencl_delay.c. See late.h.
 */
#include "layers/opencl_delay/late.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A clRelease... call that is delayed until no command is pending. */
typedef struct release {
    void *object;
    release_kind what;
    struct release *next;
} release;

pthread_mutex_t late_lock = PTHREAD_MUTEX_INITIALIZER;
const cl_icd_dispatch *late_driver;
long late_n_run, late_n_unflushed;

static queue *queues;
static late_event *events;
static release *releases;
static long n_pending;

void late_give_up(const char *what, cl_int code)
{
    fprintf(stderr, "opencl_delay: %s (%d)\n", what, (int)code);
    abort();
}

void *late_alloc(size_t size)
{
    void *p = calloc(1, size);
    if (!p) late_give_up("out of memory", 0);
    return p;
}

void *late_copy(const void *data, size_t size)
{
    void *p = late_alloc(size ? size : 1);
    if (size) memcpy(p, data, size);
    return p;
}

/* ---- releases -------------------------------------------------------------------------------- */

static cl_int release_now(release_kind what, void *object)
{
    switch (what) {
    case RELEASE_MEMORY: return late_driver->clReleaseMemObject(object);
    case RELEASE_KERNEL: return late_driver->clReleaseKernel(object);
    case RELEASE_PROGRAM: return late_driver->clReleaseProgram(object);
    default: return late_driver->clReleaseContext(object);
    }
}

cl_int late_release(release_kind what, void *object)
{
    cl_int code = CL_SUCCESS;
    pthread_mutex_lock(&late_lock);
    if (n_pending == 0) {
        code = release_now(what, object);
    } else {
        release *r = late_alloc(sizeof *r), **end = &releases;
        *r = (release){object, what, NULL};
        while (*end) end = &(*end)->next;
        *end = r;
    }
    pthread_mutex_unlock(&late_lock);
    return code;
}

static void release_postponed(void)
{
    while (n_pending == 0 && releases) {
        release *r = releases;
        releases = r->next;
        (void)release_now(r->what, r->object);
        free(r);
    }
}

/* ---- events ---------------------------------------------------------------------------------- */

late_event *late_find_event(cl_event handle)
{
    late_event *e = events;
    while (e && e->handle != handle) e = e->next;
    return e;
}

static late_event *make_event(command *c)
{
    cl_int code;
    late_event *e = late_alloc(sizeof *e);
    e->handle = late_driver->clCreateUserEvent(c->q->context, &code);
    if (code != CL_SUCCESS) late_give_up("an event cannot be made", code);
    e->pending = c;
    e->references = 1;
    e->next = events;
    events = e;
    return e;
}

void late_put_event(late_event *e)
{
    if (--e->references > 0) return;
    late_event **link = &events;
    while (*link != e) link = &(*link)->next;
    *link = e->next;
    if (e->pending) e->pending->event = NULL;
    if (e->real) (void)late_driver->clReleaseEvent(e->real);
    (void)late_driver->clSetUserEventStatus(e->handle, CL_COMPLETE);
    (void)late_driver->clReleaseEvent(e->handle);
    free(e);
}

static void CL_CALLBACK free_data(cl_event event, cl_int state, void *data)
{
    (void)event;
    (void)state;
    free(data);
}

/* ---- commands -------------------------------------------------------------------------------- */

static void set_args(const command *c)
{
    for (cl_uint i = 0; i < MAX_ARGS; i++) {
        const kernel_arg *a = &c->args[i];
        if (a->is_set && late_driver->clSetKernelArg(c->kernel, i, a->size, a->data) != CL_SUCCESS)
            late_give_up("an argument is refused", (cl_int)i);
    }
}

static cl_int give_to_driver(const command *c, cl_uint n, const cl_event *waits, cl_event *event)
{
    const cl_event *list = n ? waits : NULL;
    switch (c->kind) {
    case WRITE:
        return late_driver->clEnqueueWriteBuffer(c->handle, c->a, CL_FALSE, c->offset_a, c->size,
                                                 c->data, n, list, event);
    case READ:
        return late_driver->clEnqueueReadBuffer(c->handle, c->a, CL_FALSE, c->offset_a, c->size,
                                                c->data, n, list, event);
    case COPY:
        return late_driver->clEnqueueCopyBuffer(c->handle, c->a, c->b, c->offset_a, c->offset_b,
                                                c->size, n, list, event);
    case FILL:
        return late_driver->clEnqueueFillBuffer(c->handle, c->a, c->pattern, c->pattern_size,
                                                c->offset_a, c->size, n, list, event);
    case LAUNCH:
        set_args(c);
        return late_driver->clEnqueueNDRangeKernel(c->handle, c->kernel, c->n_dims,
                                                   c->has_offset ? c->offset : NULL, c->global,
                                                   c->has_local ? c->local : NULL, n, list, event);
    case MARKER: return late_driver->clEnqueueMarkerWithWaitList(c->handle, n, list, event);
    case BARRIER: return late_driver->clEnqueueBarrierWithWaitList(c->handle, n, list, event);
    case UNMAP:
        return late_driver->clEnqueueUnmapMemObject(c->handle, c->a, c->data, n, list, event);
    }
    return CL_INVALID_OPERATION;
}

/* Passes a command, after those that it waits for, to the driver. Frees its arguments. */
static cl_int run(command *c, cl_event *out_event)
{
    cl_event waits[MAX_WAITS], event = NULL;
    for (cl_uint i = 0; i < c->n_waits; i++) {
        late_event *e = c->waits[i].late;
        if (e && e->pending) {
            if (e->pending->q != c->q && !e->pending->is_flushed) late_n_unflushed++;
            late_run_until(e->pending->q, e->pending);
        }
        waits[i] = e ? e->real : c->waits[i].real;
    }
    const cl_int code =
        give_to_driver(c, c->n_waits, waits, out_event || c->event || c->owned ? &event : NULL);
    if (code != CL_SUCCESS)
        free(c->owned);
    else if (c->owned &&
             late_driver->clSetEventCallback(event, CL_COMPLETE, free_data, c->owned) != CL_SUCCESS)
        late_give_up("a callback is refused", 0);
    if (code == CL_SUCCESS && out_event) *out_event = event;
    if (c->event) {
        c->event->pending = NULL;
        c->event->real = event;
    }
    if (event && !out_event && !c->event) (void)late_driver->clReleaseEvent(event);
    for (cl_uint i = 0; i < c->n_waits; i++) {
        if (c->waits[i].late) late_put_event(c->waits[i].late);
        if (c->waits[i].real) (void)late_driver->clReleaseEvent(c->waits[i].real);
    }
    for (cl_uint i = 0; i < MAX_ARGS; i++) free(c->args[i].data);
    return code;
}

/* Passes the commands of the queue up to and including `last` to the driver; all if it is NULL. */
void late_run_until(queue *q, const command *last)
{
    for (bool more = true; more && q->first;) {
        command *c = q->first;
        q->first = c->next;
        if (!q->first) q->last = NULL;
        more = c != last;
        const cl_int code = run(c, NULL);
        if (code != CL_SUCCESS) late_give_up("a late command is refused", code);
        free(c);
        n_pending--;
        late_n_run++;
    }
    release_postponed();
}

queue *late_find_queue(cl_command_queue handle)
{
    queue *q = queues;
    while (q && q->handle != handle) q = q->next;
    return q;
}

void late_mark_flushed(queue *q)
{
    for (command *c = q->first; c; c = c->next) c->is_flushed = true;
}

static void add_waits(command *c, cl_uint n, const cl_event *waits)
{
    if (n > MAX_WAITS) late_give_up("the wait list is too long", (cl_int)n);
    for (cl_uint i = 0; i < n; i++) {
        late_event *e = late_find_event(waits[i]);
        c->waits[i] = (wait_entry){e, e ? NULL : waits[i]};
        if (e)
            e->references++;
        else
            (void)late_driver->clRetainEvent(waits[i]);
    }
    c->n_waits = n;
}

/* Appends a command to its delayed queue, or passes it to the driver if the queue is not delayed.
 * The caller holds the lock. */
cl_int late_submit(command *c, cl_uint n, const cl_event *waits, cl_event *event)
{
    add_waits(c, n, waits);
    c->q = late_find_queue(c->handle);
    if (!c->q) return run(c, event);
    command *late = late_copy(c, sizeof *c);
    if (event) {
        late->event = make_event(late);
        *event = late->event->handle;
    }
    if (late->q->last)
        late->q->last->next = late;
    else
        late->q->first = late;
    late->q->last = late;
    n_pending++;
    return CL_SUCCESS;
}

cl_int late_submit_locked(command *c, cl_uint n, const cl_event *waits, cl_event *event)
{
    pthread_mutex_lock(&late_lock);
    const cl_int code = late_submit(c, n, waits, event);
    pthread_mutex_unlock(&late_lock);
    return code;
}

/* Submits a command, and waits for it and for the earlier ones of its queue. */
cl_int late_submit_and_wait(command *c, cl_uint n, const cl_event *waits, cl_event *event)
{
    cl_event done = NULL;
    pthread_mutex_lock(&late_lock);
    cl_int code = late_submit(c, n, waits, &done);
    late_event *e = code == CL_SUCCESS ? late_find_event(done) : NULL;
    if (e) {
        late_mark_flushed(e->pending->q);
        late_run_until(e->pending->q, e->pending);
    }
    cl_event real = e ? e->real : done;
    pthread_mutex_unlock(&late_lock);
    if (code == CL_SUCCESS) code = late_driver->clWaitForEvents(1, &real);
    if (code == CL_SUCCESS && event) {
        *event = done;
        return code;
    }
    pthread_mutex_lock(&late_lock);
    if (e)
        late_put_event(e);
    else if (done)
        (void)late_driver->clReleaseEvent(done);
    pthread_mutex_unlock(&late_lock);
    return code;
}

/* Passes the event's command to the driver if it is pending, and returns the driver's event. An
 * event of the driver is returned unchanged. */
cl_event late_realize(cl_event handle)
{
    late_event *e = late_find_event(handle);
    if (!e) return handle;
    if (e->pending) {
        late_mark_flushed(e->pending->q);
        late_run_until(e->pending->q, e->pending);
    }
    return e->real;
}

/* ---- queues ---------------------------------------------------------------------------------- */

void late_add_queue(cl_command_queue handle, cl_context context)
{
    queue *q = late_alloc(sizeof *q);
    *q = (queue){handle, context, 1, NULL, NULL, queues};
    queues = q;
}

void late_retain_queue(cl_command_queue handle)
{
    pthread_mutex_lock(&late_lock);
    queue *q = late_find_queue(handle);
    if (q) q->references++;
    pthread_mutex_unlock(&late_lock);
}

void late_release_queue(cl_command_queue handle)
{
    pthread_mutex_lock(&late_lock);
    queue **link = &queues;
    while (*link && (*link)->handle != handle) link = &(*link)->next;
    queue *q = *link;
    if (q && --q->references == 0) {
        late_run_until(q, NULL);
        *link = q->next;
        free(q);
    }
    pthread_mutex_unlock(&late_lock);
}
