/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements in-order queues: transfers, kernel launches, time stamps. Without profiling, only
 * these commands have an event: downloads on which a thread polls (queue_wait.c), uploads for which
 * other queues wait (queue_order.c), blocking transfers where the driver's blocking is faulty, and
 * commands that may run concurrently (queue_overlap.c).
 */
#include "ocl/queue/queue.h"

#include "base/memory.h"
#include "ocl/kernel.h"

/* Maximum size of one fill on drivers whose fills of 2^31 bytes and more are faulty. */
#define FILL_CHUNK_BYTES ((size_t)1 << 30)

/* ---- creating and freeing -------------------------------------------------------------------- */

/* Returns the application's queue on the first call, NULL afterwards. */
static cl_command_queue take_callers_queue(ocl_context *ocl)
{
    mutex_lock(&ocl->lock);
    cl_command_queue handle = ocl->callers_queue;
    ocl->callers_queue = NULL;
    mutex_unlock(&ocl->lock);
    return handle;
}

static ocl_queue *allocate(ocl_context *ocl)
{
    ocl_queue *q = memory_zalloc(1, sizeof *q);
    if (!q) return NULL;
    q->context = ocl_context_retain(ocl);
    q->stays_awake = queue_may_stay_awake(ocl);
    return q;
}

static clg_status open_own(ocl_queue *q, bool profiling)
{
    ocl_context *ocl = q->context;
    cl_int code;
    CLG_TRY(ocl_context_require(ocl));
    q->profiling = profiling;
    q->handle = cl.CreateCommandQueue(ocl->handle, ocl->device,
                                      profiling ? CL_QUEUE_PROFILING_ENABLE : 0, &code);
    return context_check(ocl, code, "clCreateCommandQueue");
}

static clg_status open_callers(ocl_queue *q, cl_command_queue handle)
{
    cl_command_queue_properties properties = 0;
    q->handle = handle;
    q->is_callers = true;
    CL_TRY(q->context, GetCommandQueueInfo,
           (handle, CL_QUEUE_PROPERTIES, sizeof properties, &properties, NULL));
    q->profiling = q->context->profiling && (properties & CL_QUEUE_PROFILING_ENABLE) != 0;
    return CLG_OK;
}

clg_status ocl_queue_create(ocl_context *ocl, ocl_queue **out_queue)
{
    *out_queue = NULL;
    ocl_queue *q = allocate(ocl);
    if (!q) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    cl_command_queue callers = take_callers_queue(ocl);
    clg_status status = callers ? open_callers(q, callers) : open_own(q, ocl->profiling);
    if (status != CLG_OK) {
        ocl_queue_free(q);
        return status;
    }
    *out_queue = q;
    return CLG_OK;
}

static clg_status create_own(ocl_context *ocl, bool is_upload, ocl_queue **out_queue)
{
    *out_queue = NULL;
    ocl_queue *q = allocate(ocl);
    if (!q) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    q->is_upload = is_upload;
    clg_status status = open_own(q, false);
    if (status != CLG_OK) {
        ocl_queue_free(q);
        return status;
    }
    *out_queue = q;
    return CLG_OK;
}

clg_status ocl_queue_create_own(ocl_context *ocl, ocl_queue **out_queue)
{
    return create_own(ocl, false, out_queue);
}

clg_status ocl_queue_create_upload(ocl_context *ocl, ocl_queue **out_queue)
{
    return create_own(ocl, true, out_queue);
}

static void release_events(ocl_queue *q)
{
    for (size_t i = 0; i < q->n_events; i++) {
        if (q->events[i].first) (void)cl.ReleaseEvent(q->events[i].first);
        if (q->events[i].last) (void)cl.ReleaseEvent(q->events[i].last);
    }
    q->n_events = 0;
}

void ocl_queue_free(ocl_queue *q)
{
    if (!q) return;
    spin_free(q);
    overlap_free(q);
    if (q->handle) {
        if (!ocl_context_is_lost(q->context) || q->in_flight)
            queue_leave(q, queue_drain(q->context, q->handle) == CLG_OK);
        else
            queue_leave(q, false);
        running_list_remove(q);
        order_settle(q);
        (void)cl.ReleaseCommandQueue(q->handle);
    }
    release_events(q);
    queue_unwatch(q);
    memory_free(q->events);
    ocl_context_free(q->context);
    memory_free(q);
}

void *ocl_queue_handle(const ocl_queue *q) { return q->handle; }

ocl_context *ocl_queue_context(const ocl_queue *q) { return q->context; }

/* ---- transfers ------------------------------------------------------------------------------- */

clg_status queue_event_slot(ocl_queue *q, cl_event **out_slot)
{
    *out_slot = NULL;
    if (!q->profiling) return CLG_OK;
    CLG_TRY(MEMORY_RESERVE(q->events, q->capacity, q->n_events + 1));
    q->events[q->n_events] = (queue_event){.tag = q->tag};
    *out_slot = &q->events[q->n_events].last;
    return CLG_OK;
}

void queue_event_keep(ocl_queue *q)
{
    if (q->profiling) q->n_events++;
    q->in_flight = true;
}

/* A transfer that may block: in the driver or, where the driver's blocking is faulty, by waiting
 * for its event. */
typedef struct transfer {
    cl_bool blocks;   /* the driver blocks */
    bool waits;       /* the library waits */
    cl_event *event;  /* where the command stores its event */
    cl_event private; /* used as `event` when no caller needs it */
} transfer;

/* Initializes a transfer. slot: where to store its event; NULL: the caller needs no event. */
static void transfer_begin(const ocl_queue *q, bool blocking, cl_event *slot, transfer *out)
{
    *out = (transfer){.event = slot};
    out->waits = blocking && context_has_quirk(q->context, QUIRK_FINISHED_QUEUE_USED);
    out->blocks = blocking && !out->waits ? CL_TRUE : CL_FALSE;
    if (out->waits && !slot) out->event = &out->private;
}

/* Completes an enqueued transfer: waits for it where `waits` is set. */
static clg_status transfer_end(ocl_queue *q, const transfer *t)
{
    const bool is_done = !t->waits || cl.WaitForEvents(1, t->event) == CL_SUCCESS;
    if (t->private) (void)cl.ReleaseEvent(t->private);
    if (!is_done || t->waits || t->blocks) q->in_flight = q->overlap.is_open;
    return is_done ? CLG_OK : context_check(q->context, cl.Finish(q->handle), "clFinish");
}

/* Returns where a command that reads a buffer to the host stores its event. */
static clg_status fetch_slot(ocl_queue *q, bool blocking, cl_event **out_slot)
{
    if (q->profiling || blocking || !(q->stays_awake || q->keeps_read))
        return queue_event_slot(q, out_slot);
    queue_unwatch(q);
    *out_slot = &q->watched;
    return CLG_OK;
}

/* Enqueues a command whose last argument is the event, checks it and keeps the event. */
#define ENQUEUE_INTO(q, slot, name, ...)                                                           \
    do {                                                                                           \
        CLG_TRY(order_catch_up(q));                                                                \
        CL_TRY((q)->context, name, ((q)->handle, __VA_ARGS__, 0, NULL, slot));                     \
        queue_event_keep(q);                                                                       \
    } while (0)

/* As ENQUEUE_INTO, for a command that may run concurrently with others. */
#define ENQUEUE_STEP(q, name, ...)                                                                 \
    do {                                                                                           \
        queue_command command_;                                                                    \
        cl_event *event_;                                                                          \
        CLG_TRY(order_catch_up(q));                                                                \
        CLG_TRY(queue_event_slot((q), &event_));                                                   \
        overlap_begin((q), &command_);                                                             \
        if (command_.overlaps) event_ = &command_.made;                                            \
        CL_TRY((q)->context, name,                                                                 \
               (command_.handle, __VA_ARGS__, command_.n_wait,                                     \
                command_.n_wait ? command_.wait : NULL, event_));                                  \
        queue_event_keep(q);                                                                       \
        concurrent_keep((q), &command_);                                                           \
    } while (0)

#define ENQUEUE(q, name, ...)                                                                      \
    do {                                                                                           \
        cl_event *event_;                                                                          \
        CLG_TRY(queue_event_slot((q), &event_));                                                   \
        ENQUEUE_INTO(q, event_, name, __VA_ARGS__);                                                \
    } while (0)

clg_status ocl_queue_write(ocl_queue *q, ocl_buffer *b, size_t offset_bytes, const void *data,
                           size_t size_bytes, bool blocking)
{
    const bool is_published = q->is_upload && blocking;
    cl_event *event, written = NULL;
    if (size_bytes == 0) return CLG_OK;
    CLG_TRY(queue_event_slot(q, &event));
    transfer t;
    transfer_begin(q, blocking, is_published ? &written : event, &t);
    ENQUEUE_INTO(q, t.event, EnqueueWriteBuffer, ocl_buffer_handle(b), t.blocks, offset_bytes,
                 size_bytes, data);
    count(&q->context->bytes_in, size_bytes);
    const clg_status status = transfer_end(q, &t);
    if (is_published) order_publish(q, written);
    return status;
}

clg_status ocl_queue_read(ocl_queue *q, ocl_buffer *b, size_t offset_bytes, void *data,
                          size_t size_bytes, bool blocking)
{
    if (size_bytes == 0) return blocking ? ocl_queue_finish(q) : CLG_OK;
    cl_event *event;
    CLG_TRY(fetch_slot(q, blocking, &event));
    transfer t;
    transfer_begin(q, blocking, event, &t);
    ENQUEUE_INTO(q, t.event, EnqueueReadBuffer, ocl_buffer_handle(b), t.blocks, offset_bytes,
                 size_bytes, data);
    count(&q->context->bytes_out, size_bytes);
    CLG_TRY(transfer_end(q, &t));
    if (blocking) queue_leave(q, true);
    return CLG_OK;
}

clg_status ocl_queue_copy(ocl_queue *q, ocl_buffer *from, size_t from_offset, ocl_buffer *to,
                          size_t to_offset, size_t size_bytes)
{
    if (size_bytes > 0)
        ENQUEUE_STEP(q, EnqueueCopyBuffer, ocl_buffer_handle(from), ocl_buffer_handle(to),
                     from_offset, to_offset, size_bytes);
    return CLG_OK;
}

clg_status ocl_queue_fill(ocl_queue *q, ocl_buffer *b, size_t offset_bytes, size_t size_bytes,
                          const void *pattern, size_t pattern_bytes)
{
    while (size_bytes > 0) {
        size_t n = size_bytes;
        if (context_has_quirk(q->context, QUIRK_FILL_BREAKS_AT_2GB) && n > FILL_CHUNK_BYTES)
            n = FILL_CHUNK_BYTES; /* a multiple of every legal pattern_bytes */
        ENQUEUE_STEP(q, EnqueueFillBuffer, ocl_buffer_handle(b), pattern, pattern_bytes,
                     offset_bytes, n);
        offset_bytes += n;
        size_bytes -= n;
    }
    return CLG_OK;
}

clg_status ocl_queue_map(ocl_queue *q, ocl_buffer *b, size_t offset_bytes, size_t size_bytes,
                         bool write_only, bool blocking, void **out_data)
{
    cl_int code;
    cl_event *event;
    *out_data = NULL;
    CLG_TRY(order_catch_up(q));
    CLG_TRY(fetch_slot(q, blocking, &event));
    transfer t;
    transfer_begin(q, blocking, event, &t);
    void *data = cl.EnqueueMapBuffer(
        q->handle, ocl_buffer_handle(b), t.blocks,
        write_only ? CL_MAP_WRITE_INVALIDATE_REGION : CL_MAP_READ | CL_MAP_WRITE, offset_bytes,
        size_bytes > 0 ? size_bytes : 1, 0, NULL, t.event, &code);
    CLG_TRY(context_check(q->context, code, "clEnqueueMapBuffer"));
    count(write_only ? &q->context->bytes_in : &q->context->bytes_out, size_bytes);
    queue_event_keep(q);
    const clg_status status = transfer_end(q, &t);
    if (status != CLG_OK) {
        if (ocl_context_is_lost(q->context)) return status;
        (void)cl.EnqueueUnmapMemObject(q->handle, ocl_buffer_handle(b), data, 0, NULL, NULL);
        return status;
    }
    if (blocking) queue_leave(q, true);
    *out_data = data;
    return CLG_OK;
}

clg_status ocl_queue_unmap(ocl_queue *q, ocl_buffer *b, void *data)
{
    ENQUEUE(q, EnqueueUnmapMemObject, ocl_buffer_handle(b), data);
    return CLG_OK;
}

/* ---- launches -------------------------------------------------------------------------------- */

clg_status queue_explain(ocl_queue *q, clg_status status)
{
    if (status != CLG_ERROR_OUT_OF_DEVICE_MEMORY) return status;
    error_record record;
    error_save(status, &record);
    if (queue_drain(q->context, q->handle) == CLG_ERROR_DEVICE_LOST) return CLG_ERROR_DEVICE_LOST;
    return error_restore(&record);
}

static clg_status launch_failed(ocl_queue *q, ocl_kernel *k, cl_int code, const size_t *global,
                                const size_t *local)
{
    const clg_status status =
        queue_explain(q, context_check(q->context, code, "clEnqueueNDRangeKernel"));
    return error_prefix(
        status, "kernel '%s' of '%s' over %zu x %zu x %zu work-items in groups of %zu x %zu x %zu",
        k->entry, k->program->name, global[0], global[1], global[2], local[0], local[1], local[2]);
}

clg_status queue_enter(ocl_queue *q, ocl_kernel *k, const launch_form *form)
{
    if (!context_has_quirk(q->context, QUIRK_WIDER_LAUNCH_CRASHES)) return CLG_OK;
    if (q->place == GUARD_ALONE) return CLG_OK;
    if (q->place == GUARD_SHARED && form && kernel_launch_is_known(k, form)) return CLG_OK;
    /* Finish first: nothing may wait for other queues while inside. The application's event, for
     * which commands wait, may be of a run that has not entered yet. */
    if (q->place == GUARD_SHARED || q->waits_for_others || q->is_callers)
        CLG_TRY(ocl_queue_finish(q));
    q->waits_for_others = false;
    q->place = launch_guard_enter(form);
    running_list_remove(q);
    return CLG_OK;
}

/* Returns whether a launch has at least as many work-groups as the device has compute units; true
 * if the driver chooses the local size. */
static bool has_work_for_all(const ocl_queue *q, const size_t global[3], const size_t local[3])
{
    const size_t units = context_caps(q->context)->compute_units;
    size_t groups = 1;
    for (int i = 0; i < 3; i++) {
        if (local[i] == 0) return true;
        groups *= global[i] / local[i];
    }
    return groups >= units;
}

clg_status ocl_queue_launch(ocl_queue *q, ocl_kernel *k, uint32_t n_dims, const uint64_t *global,
                            const uint64_t *local)
{
    return ocl_queue_launch_at(q, k, n_dims, NULL, global, local);
}

clg_status ocl_queue_launch_at(ocl_queue *q, ocl_kernel *k, uint32_t n_dims, const uint64_t *offset,
                               const uint64_t *global, const uint64_t *local)
{
    size_t global_size[3] = {1, 1, 1}, local_size[3] = {1, 1, 1}, offsets[3] = {0};
    const size_t *first = offset ? offsets : NULL;
    bool has_local = local != NULL && local[0] != 0;
    for (uint32_t i = 0; i < n_dims; i++) {
        global_size[i] = (size_t)global[i];
        local_size[i] = has_local ? (size_t)local[i] : 0;
        offsets[i] = offset ? (size_t)offset[i] : 0;
    }
    if (has_local) CLG_TRY(kernel_fit_group(k, n_dims, local_size));
    const launch_form form =
        kernel_launch_form(k, n_dims, global_size, has_local ? local_size : NULL);
    CLG_TRY(kernel_note_launch(k, n_dims, first, global_size, has_local ? local_size : NULL));
    cl_event *event;
    queue_command command;
    CLG_TRY(order_catch_up(q));
    CLG_TRY(queue_enter(q, k, &form));
    /* An exclusive launch must not run concurrently with launches of this queue either. */
    if (q->place == GUARD_ALONE) CLG_TRY(ocl_queue_join(q));
    CLG_TRY(queue_event_slot(q, &event));
    overlap_begin(q, &command);
    if (command.overlaps) event = &command.made;
    cl_int code = cl.EnqueueNDRangeKernel(command.handle, k->handle, n_dims, first, global_size,
                                          has_local ? local_size : NULL, command.n_wait,
                                          command.n_wait ? command.wait : NULL, event);
    if (code != CL_SUCCESS) return launch_failed(q, k, code, global_size, local_size);
    if (q->place == GUARD_ALONE) launch_guard_learn(&form);
    queue_event_keep(q);
    concurrent_keep(q, &command);
    queue_set_working(q, true);
    spin_begin_work(q);
    count(&q->context->n_launched, 1);
    q->wants_all = q->wants_all || has_work_for_all(q, global_size, local_size);
    return CLG_OK;
}

/* ---- time stamps ----------------------------------------------------------------------------- */

bool ocl_queue_is_profiling(const ocl_queue *q) { return q->profiling; }

void ocl_queue_set_tag(ocl_queue *q, uint32_t tag) { q->tag = tag; }

static clg_status time_of(ocl_queue *q, cl_event event, cl_profiling_info what, uint64_t *out_ns)
{
    cl_ulong ns = 0;
    CL_TRY(q->context, GetEventProfilingInfo, (event, what, sizeof ns, &ns, NULL));
    *out_ns = ns;
    return CLG_OK;
}

static clg_status sample_of(ocl_queue *q, const queue_event *e, ocl_sample *out)
{
    cl_event first = e->first ? e->first : e->last;
    out->tag = e->tag;
    CLG_TRY(time_of(q, first, CL_PROFILING_COMMAND_QUEUED, &out->queued_ns));
    CLG_TRY(time_of(q, first, CL_PROFILING_COMMAND_START, &out->start_ns));
    return time_of(q, e->last, CL_PROFILING_COMMAND_END, &out->end_ns);
}

clg_status ocl_queue_take_samples(ocl_queue *q, ocl_sample **out_samples, size_t *out_n)
{
    *out_samples = NULL;
    *out_n = 0;
    ocl_sample *samples = memory_zalloc(q->n_events, sizeof *samples);
    if (!samples) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    clg_status status = CLG_OK;
    const size_t n = q->n_events;
    for (size_t i = 0; i < n && status == CLG_OK; i++)
        status = sample_of(q, &q->events[i], &samples[i]);
    release_events(q);
    if (status != CLG_OK) {
        memory_free(samples);
        return status;
    }
    *out_samples = samples;
    *out_n = n;
    return CLG_OK;
}
