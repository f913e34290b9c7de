/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs a stream of batches through sessions: a thread that reads, a thread per session that
 * computes, and the caller's thread, which writes; and stops them. The first failure stops all of
 * them, and wakes threads that wait for a slot (the memory of a batch), so that none waits for a
 * batch that never comes. See decision 16.
 */
#include "session/stream/stream.h"

#include "base/clock.h"
#include "base/status.h"

#include <string.h>

#define DEFAULT_DEPTH 3 /* batches in flight per session */
#define MAX_DEPTH 64

/* ---- creation -------------------------------------------------------------------------------- */

/* Returns the record of a context, which its workers share; adds one if there is none. */
static stream_device *device_of(clg_stream *stream, const clg_context *context)
{
    for (size_t i = 0; i < stream->n_devices; i++)
        if (stream->devices[i].context == context) return &stream->devices[i];
    stream->devices[stream->n_devices].context = context;
    return &stream->devices[stream->n_devices++];
}

static clg_status adopt_all(clg_stream *stream, clg_session *const *sessions, size_t n_sessions)
{
    stream_worker *worker = stream->workers;
    for (size_t i = 0; i < n_sessions; i++)
        for (size_t k = stream_n_workers(sessions[i]); k > 0; k--, worker++) {
            worker->stream = stream;
            CLG_TRY(worker_adopt(worker, sessions[i]));
            worker->device = device_of(stream, worker->session->owner);
        }
    return CLG_OK;
}

static void describe(const stream_port *port, clg_stream_tensor *out)
{
    *out = (clg_stream_tensor){.name = port->name,
                               .dtype = port->dtype,
                               .rank = (size_t)port->dims.rank,
                               .row_bytes = port->row_bytes};
    memcpy(out->dims, port->dims.dims, sizeof out->dims);
}

static clg_status copy_names(clg_stream *stream, stream_port *ports, size_t n)
{
    for (size_t k = 0; k < n; k++) {
        ports[k].name = arena_strdup(&stream->names, ports[k].name);
        if (!ports[k].name) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    }
    return CLG_OK;
}

static clg_status open_all(clg_stream *stream)
{
    CLG_TRY(copy_names(stream, stream->inputs, stream->n_inputs));
    CLG_TRY(copy_names(stream, stream->outputs, stream->n_outputs));
    stream->read_tensors = memory_zalloc(stream->n_inputs + 1, sizeof *stream->read_tensors);
    stream->write_tensors = memory_zalloc(stream->n_outputs + 1, sizeof *stream->write_tensors);
    if (!stream->read_tensors || !stream->write_tensors) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t k = 0; k < stream->n_inputs; k++)
        describe(&stream->inputs[k], &stream->read_tensors[k]);
    for (size_t i = 0; i < stream->n_workers; i++) CLG_TRY(worker_create(&stream->workers[i]));
    return CLG_OK;
}

/* Allocates a stream and creates its lock and condition, which all other clean-up needs. */
static clg_status allocate(clg_stream **out_stream)
{
    clg_stream *stream = memory_zalloc(1, sizeof *stream);
    clg_status status = stream ? mutex_init(&stream->lock) : CLG_ERROR_OUT_OF_HOST_MEMORY;
    if (status == CLG_OK) {
        status = condition_init(&stream->changed);
        if (status != CLG_OK) mutex_deinit(&stream->lock);
    }
    if (status != CLG_OK) {
        memory_free(stream);
        return status;
    }
    atomic_init(&stream->running, false);
    atomic_init(&stream->stopped, false);
    *out_stream = stream;
    return CLG_OK;
}

clg_status stream_create(clg_session *const *sessions, size_t n_sessions,
                         const stream_settings *settings, clg_stream **out_stream)
{
    clg_stream *stream;
    *out_stream = NULL;
    if (settings->depth > MAX_DEPTH)
        return error_set(CLG_ERROR_INVALID_ARGUMENT,
                         "a depth of %zu batches is more than the largest, %d", settings->depth,
                         MAX_DEPTH);
    CLG_TRY(allocate(&stream));
    clg_status status = CLG_ERROR_OUT_OF_HOST_MEMORY;
    stream->depth = settings->depth ? settings->depth : DEFAULT_DEPTH;
    stream->memory = settings->memory;
    for (size_t i = 0; i < n_sessions; i++) stream->n_workers += stream_n_workers(sessions[i]);
    stream->workers = memory_zalloc(stream->n_workers, sizeof *stream->workers);
    stream->devices = memory_zalloc(n_sessions, sizeof *stream->devices);
    if (stream->workers && stream->devices) status = adopt_all(stream, sessions, n_sessions);
    if (status == CLG_OK) status = stream_find_ports(stream, settings);
    if (status == CLG_OK) status = open_all(stream);
    if (status != CLG_OK) {
        stream_free(stream);
        return status;
    }
    *out_stream = stream;
    return CLG_OK;
}

void stream_free(clg_stream *stream)
{
    if (!stream || fork_is_child()) return;
    for (size_t i = 0; stream->workers && i < stream->n_workers; i++)
        worker_free(&stream->workers[i]);
    memory_free(stream->workers);
    memory_free(stream->devices);
    memory_free(stream->inputs);
    memory_free(stream->outputs);
    memory_free(stream->read_tensors);
    memory_free(stream->write_tensors);
    arena_deinit(&stream->names);
    condition_deinit(&stream->changed);
    mutex_deinit(&stream->lock);
    memory_free(stream);
}

/* ---- stopping -------------------------------------------------------------------------------- */

/* Stops the stream: each thread ends after its current work. The first call's status becomes the
 * result of stream_run; CLG_OK: the stream is complete. A lost device replaces a lack of its
 * memory: a thread that allocates may notice the loss before the thread whose command it stopped,
 * and drivers have one code for both. */
static void stop(clg_stream *stream, clg_status status)
{
    mutex_lock(&stream->lock);
    const bool explains =
        status == CLG_ERROR_DEVICE_LOST && stream->failure.status == CLG_ERROR_OUT_OF_DEVICE_MEMORY;
    if (!atomic_load(&stream->stopped) || explains) {
        error_save(status, &stream->failure);
        atomic_store(&stream->stopped, true);
    }
    condition_broadcast(&stream->changed);
    mutex_unlock(&stream->lock);
    if (status == CLG_OK) return;
    for (size_t i = 0; i < stream->n_workers; i++)
        cancel_trigger(&stream->workers[i].session->cancel);
}

void stream_cancel(clg_stream *stream)
{
    mutex_lock(&stream->lock);
    const bool stops = stream->is_active && !atomic_load(&stream->stopped);
    if (stops) {
        stream->failure = (error_record){.status = CLG_ERROR_CANCELLED};
        (void)strncpy(stream->failure.text, "the stream was cancelled",
                      sizeof stream->failure.text - 1);
        atomic_store(&stream->stopped, true);
        condition_broadcast(&stream->changed);
    }
    mutex_unlock(&stream->lock);
    for (size_t i = 0; stops && i < stream->n_workers; i++)
        cancel_trigger(&stream->workers[i].session->cancel);
}

/* ---- callbacks ------------------------------------------------------------------------------- */

/* Calls a callback and adds the time to *spent_ns. */
static clg_status call_back(clg_stream *stream, const char *what, clg_stream_callback function,
                            clg_stream_batch *batch, uint64_t *spent_ns)
{
    error_record before;
    error_callback_begin(&before);
    const uint64_t start_ns = time_now_ns();
    clg_status status = function(stream->user, batch);
    const uint64_t ns = time_now_ns() - start_ns;
    mutex_lock(&stream->lock);
    *spent_ns += ns;
    mutex_unlock(&stream->lock);
    return error_callback_end(&before, status, what);
}

/* ---- reading --------------------------------------------------------------------------------- */

static stream_slot *free_slot(const stream_worker *worker)
{
    for (size_t i = 0; i < worker->stream->depth; i++)
        if (worker->slots[i].state == SLOT_FREE) return &worker->slots[i];
    return NULL;
}

/* Estimates the time until a further batch of the worker would be complete. A worker whose run time
 * is not measured yet gets one batch at a time (1e300 after that), unless it is the only one. */
static double expected_ns(const clg_stream *stream, const stream_worker *worker)
{
    if (worker->mean_ns) return (double)(worker->n_pending + 1) * (double)worker->mean_ns;
    return worker->n_pending == 0 || stream->n_workers == 1 ? 0 : 1e300;
}

/* Returns a free slot of the worker that would complete a batch first. Returns NULL if that worker
 * has none: waiting for it is better than another worker, since results are written in the order of
 * reading and a batch on a much slower device would block the others. */
static stream_slot *choose_slot(const clg_stream *stream)
{
    const stream_worker *best = &stream->workers[0];
    for (size_t i = 1; i < stream->n_workers; i++)
        if (expected_ns(stream, &stream->workers[i]) < expected_ns(stream, best))
            best = &stream->workers[i];
    if (expected_ns(stream, best) > 1e299) return NULL;
    return free_slot(best);
}

/* Waits for a free slot and returns it; NULL if the stream has stopped. */
static stream_slot *take_slot(clg_stream *stream)
{
    stream_slot *slot = NULL;
    mutex_lock(&stream->lock);
    while (!atomic_load(&stream->stopped) && !(slot = choose_slot(stream)))
        condition_wait(&stream->changed, &stream->lock);
    if (slot) slot->state = SLOT_READING;
    mutex_unlock(&stream->lock);
    return slot;
}

/* Calls the read callback to fill a slot and starts its upload. slot->n_rows becomes 0 at the
 * end. */
static clg_status fill_slot(clg_stream *stream, stream_slot *slot)
{
    clg_stream_batch batch = {.first_row = stream->next_row,
                              .n_rows = stream->batch,
                              .n_tensors = stream->n_inputs,
                              .tensors = stream->read_tensors};
    for (size_t k = 0; k < stream->n_inputs; k++)
        stream->read_tensors[k].data = slot->inputs[k].host;
    CLG_TRY(call_back(stream, "the callback that reads", stream->read, &batch, &stream->read_ns));
    if (batch.n_rows > stream->batch)
        return error_set(CLG_ERROR_INVALID_ARGUMENT,
                         "the callback that reads gave %zu rows where there is room for %zu",
                         batch.n_rows, stream->batch);
    slot->first_row = stream->next_row;
    slot->n_rows = batch.n_rows;
    stream->next_row += batch.n_rows;
    return batch.n_rows ? worker_upload(slot) : CLG_OK;
}

/* Passes a filled slot to its worker, or signals the end. */
static void pass_on(clg_stream *stream, stream_slot *slot)
{
    mutex_lock(&stream->lock);
    if (slot->n_rows > 0) {
        slot->index = stream->n_read++;
        slot->state = SLOT_WAITING;
        slot->worker->n_pending++;
    } else {
        slot->state = SLOT_FREE;
        stream->at_end = true;
    }
    condition_broadcast(&stream->changed);
    mutex_unlock(&stream->lock);
}

/* The reader's thread. */
static void *read_all(void *argument)
{
    clg_stream *stream = argument;
    stream_slot *slot;
    do {
        slot = take_slot(stream);
        if (!slot) break;
        clg_status status = fill_slot(stream, slot);
        if (status != CLG_OK) {
            stop(stream, status);
            break;
        }
        pass_on(stream, slot);
    } while (slot->n_rows > 0);
    return NULL;
}

/* ---- running --------------------------------------------------------------------------------- */

/* Counts a running worker of a device. Call with the stream locked, as end_run. */
static void begin_run(stream_device *device)
{
    if (device->n_running++ == 0) device->since_ns = time_now_ns();
}

static void end_run(stream_device *device)
{
    if (--device->n_running == 0) device->busy_ns += time_now_ns() - device->since_ns;
}

/* Returns the worker's waiting slot with the lowest batch number. */
static stream_slot *next_waiting(const stream_worker *worker)
{
    stream_slot *next = NULL;
    for (size_t i = 0; i < worker->stream->depth; i++) {
        stream_slot *slot = &worker->slots[i];
        if (slot->state == SLOT_WAITING && (!next || slot->index < next->index)) next = slot;
    }
    return next;
}

/* Waits for a slot to run and returns it; NULL at the end. */
static stream_slot *take_waiting(stream_worker *worker)
{
    clg_stream *stream = worker->stream;
    stream_slot *slot = NULL;
    mutex_lock(&stream->lock);
    while (!atomic_load(&stream->stopped) && !(slot = next_waiting(worker)) && !stream->at_end)
        condition_wait(&stream->changed, &stream->lock);
    if (slot) slot->state = SLOT_RUNNING;
    mutex_unlock(&stream->lock);
    return slot;
}

/* Updates the worker's mean run time; the first run is ignored, since it may compile. A shorter run
 * replaces the mean; a longer one, which may be an outlier, changes it by 1/8 of the difference. */
static void note_run(stream_worker *worker, uint64_t ns)
{
    if (worker->n_runs++ == 0) return;
    if (worker->mean_ns == 0 || ns < worker->mean_ns)
        worker->mean_ns = ns ? ns : 1;
    else
        worker->mean_ns += (ns - worker->mean_ns) / 8;
}

static clg_status run_slot(stream_worker *worker, stream_slot *slot)
{
    clg_stream *stream = worker->stream;
    CLG_TRY(worker_arrived(slot));
    mutex_lock(&stream->lock);
    begin_run(worker->device);
    mutex_unlock(&stream->lock);
    const uint64_t start_ns = time_now_ns();
    clg_status status = worker_run_batch(slot);
    const uint64_t ns = time_now_ns() - start_ns;
    mutex_lock(&stream->lock);
    end_run(worker->device);
    note_run(worker, ns);
    worker->n_pending--;
    if (status == CLG_OK) slot->state = SLOT_DONE;
    condition_broadcast(&stream->changed);
    mutex_unlock(&stream->lock);
    return status;
}

/* A worker's thread. */
static void *run_all(void *argument)
{
    stream_worker *worker = argument;
    clg_status status = CLG_OK;
    stream_slot *slot;
    while (status == CLG_OK && (slot = take_waiting(worker)) != NULL)
        status = run_slot(worker, slot);
    if (status != CLG_OK) stop(worker->stream, status);
    return NULL;
}

/* ---- writing --------------------------------------------------------------------------------- */

/* Returns the slot with batch `index` if that is computed. */
static stream_slot *find_done(const clg_stream *stream, uint64_t index)
{
    for (size_t i = 0; i < stream->n_workers; i++)
        for (size_t k = 0; k < stream->depth; k++) {
            stream_slot *slot = &stream->workers[i].slots[k];
            if (slot->state == SLOT_DONE && slot->index == index) return slot;
        }
    return NULL;
}

/* Waits for the next batch in order and returns its slot; NULL at the end. */
static stream_slot *take_done(clg_stream *stream)
{
    stream_slot *slot = NULL;
    mutex_lock(&stream->lock);
    while (!atomic_load(&stream->stopped) && !(slot = find_done(stream, stream->n_written)) &&
           !(stream->at_end && stream->n_written == stream->n_read))
        condition_wait(&stream->changed, &stream->lock);
    if (slot) slot->state = SLOT_WRITING;
    mutex_unlock(&stream->lock);
    return slot;
}

static clg_status write_slot(clg_stream *stream, stream_slot *slot)
{
    clg_stream_batch batch = {.first_row = slot->first_row,
                              .n_rows = slot->n_rows,
                              .n_tensors = stream->n_outputs,
                              .tensors = stream->write_tensors};
    CLG_TRY(worker_result(slot));
    for (size_t k = 0; k < stream->n_outputs; k++) {
        const slot_tensor *t = &slot->outputs[k];
        const stream_port result = {stream->outputs[k].index, stream->outputs[k].name, t->dtype,
                                    t->dims, t->row_bytes};
        describe(&result, &stream->write_tensors[k]);
        stream->write_tensors[k].data = (void *)worker_result_data(t);
    }
    return call_back(stream, "the callback that writes", stream->write, &batch, &stream->write_ns);
}

/* Frees a slot after its batch is written. */
static void give_back(clg_stream *stream, stream_slot *slot)
{
    mutex_lock(&stream->lock);
    slot->state = SLOT_FREE;
    stream->n_written++;
    stream->n_rows_written += slot->n_rows;
    condition_broadcast(&stream->changed);
    mutex_unlock(&stream->lock);
}

static void write_all(clg_stream *stream)
{
    stream_slot *slot;
    while ((slot = take_done(stream)) != NULL) {
        clg_status status = write_slot(stream, slot);
        if (status != CLG_OK) {
            stop(stream, status);
            return;
        }
        give_back(stream, slot);
    }
    stop(stream, CLG_OK);
}

/* ---- the whole stream ------------------------------------------------------------------------ */

/* Resets the stream's state and the workers for a run. */
static clg_status begin(clg_stream *stream, clg_stream_callback read, clg_stream_callback write,
                        void *user)
{
    stream->read = read;
    stream->write = write;
    stream->user = user;
    mutex_lock(&stream->lock);
    atomic_store(&stream->stopped, false);
    stream->is_active = true;
    stream->at_end = false;
    stream->failure = (error_record){.status = CLG_OK};
    stream->n_read = stream->n_written = stream->next_row = stream->n_rows_written = 0;
    stream->read_ns = stream->write_ns = stream->end_ns = 0;
    for (size_t i = 0; i < stream->n_devices; i++)
        stream->devices[i] = (stream_device){.context = stream->devices[i].context};
    stream->start_ns = time_now_ns();
    mutex_unlock(&stream->lock);
    for (size_t i = 0; i < stream->n_workers; i++) CLG_TRY(worker_begin(&stream->workers[i]));
    return CLG_OK;
}

/* Starts the threads, passes results to the write callback until the end, and joins the threads. */
static void work(clg_stream *stream)
{
    size_t n_started = 0;
    clg_status status = CLG_OK;
    for (; n_started < stream->n_workers && status == CLG_OK; n_started += status == CLG_OK)
        status = thread_start(&stream->workers[n_started].id, run_all, &stream->workers[n_started]);
    if (status == CLG_OK) status = thread_start(&stream->reader, read_all, stream);
    bool reads = status == CLG_OK;
    if (reads)
        write_all(stream);
    else
        stop(stream, status);
    if (reads) thread_join(stream->reader);
    for (size_t i = 0; i < n_started; i++) thread_join(stream->workers[i].id);
    for (size_t i = 0; i < stream->n_workers; i++) worker_settle(&stream->workers[i]);
}

clg_status stream_run(clg_stream *stream, clg_stream_callback read, clg_stream_callback write,
                      void *user)
{
    error_record before;
    if (atomic_exchange(&stream->running, true))
        return error_set(CLG_ERROR_BUSY, "the stream is running already");
    error_save(CLG_OK, &before);
    clg_status status = begin(stream, read, write, user);
    if (status != CLG_OK)
        stop(stream, status);
    else
        work(stream);
    mutex_lock(&stream->lock);
    stream->end_ns = time_now_ns();
    stream->is_active = false;
    mutex_unlock(&stream->lock);
    status = stream->failure.status;
    (void)error_restore(status == CLG_OK ? &before : &stream->failure);
    atomic_store(&stream->running, false);
    return status;
}

/* ---- statistics ------------------------------------------------------------------------------ */

/* Returns the fraction of the elapsed time in which a device is idle, averaged over devices. Call
 * with the stream locked. */
static double idle_share(const clg_stream *stream, uint64_t end_ns)
{
    const double all_ns = (double)(end_ns - stream->start_ns);
    double sum = 0;
    if (all_ns <= 0) return 0;
    for (size_t i = 0; i < stream->n_devices; i++) {
        const stream_device *device = &stream->devices[i];
        uint64_t busy_ns = device->busy_ns;
        if (device->n_running > 0) busy_ns += end_ns - device->since_ns;
        sum += 1 - (double)busy_ns / all_ns;
    }
    const double share = sum / (double)stream->n_devices;
    return share < 0 ? 0 : share;
}

void stream_get_stats(clg_stream *stream, clg_stream_stats *out)
{
    mutex_lock(&stream->lock);
    const uint64_t end_ns = stream->is_active ? time_now_ns() : stream->end_ns;
    *out = (clg_stream_stats){.struct_size = sizeof *out,
                              .rows = stream->n_rows_written,
                              .batches = stream->n_written,
                              .seconds = (double)(end_ns - stream->start_ns) * 1e-9,
                              .read_seconds = (double)stream->read_ns * 1e-9,
                              .write_seconds = (double)stream->write_ns * 1e-9,
                              .idle_share = idle_share(stream, end_ns)};
    mutex_unlock(&stream->lock);
}
