/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements a stream's worker: the memory of its slots, and for each batch upload, run (padded if
 * it is short) and download.
 */
#include "session/stream/stream.h"

#include <string.h>

/* ---- opening and closing --------------------------------------------------------------------- */

static clg_status copy_inputs(clg_session *to, clg_session *given)
{
    clg_status status = CLG_OK;
    CLG_TRY(session_enter(given));
    for (size_t i = 0; i < given->n_inputs && status == CLG_OK; i++) {
        if (given->inputs[i].value)
            status = session_set_input(to, i, given->inputs[i].value);
        else
            to->inputs[i].hint = given->inputs[i].hint;
    }
    session_leave(given);
    return status;
}

clg_status worker_adopt(stream_worker *worker, clg_session *given)
{
    CLG_TRY(session_clone(given, &worker->session));
    return copy_inputs(worker->session, given);
}

static ocl_context *context_of(const stream_worker *worker)
{
    return worker->session->exec->context->ocl;
}

/* Creates pinned host memory for a tensor of a slot; it stays mapped. */
static clg_status make_staging(stream_worker *worker, ocl_queue *q, size_t size_bytes,
                               slot_tensor *t)
{
    CLG_TRY(
        ocl_buffer_create(context_of(worker), size_bytes, OCL_BUFFER_HOST_VISIBLE, &t->staging));
    return ocl_queue_map(q, t->staging, 0, ocl_buffer_size(t->staging), false, true, &t->host);
}

static clg_status map_input(stream_worker *worker, slot_tensor *t)
{
    return ocl_queue_map(worker->session->frame->queue, t->memory.buffer, 0,
                         ocl_buffer_size(t->memory.buffer), true, true, &t->host);
}

static clg_status open_input(stream_worker *worker, const stream_port *port, slot_tensor *t)
{
    const size_t size_bytes = port->row_bytes * worker->stream->batch;
    if (worker_is_hosted(worker)) return worker_open_hosted(worker, port, t);
    CLG_TRY(ocl_buffer_create(context_of(worker), size_bytes,
                              worker->staged ? OCL_BUFFER_DEVICE : OCL_BUFFER_HOST_VISIBLE,
                              &t->memory.buffer));
    return worker->staged ? make_staging(worker, worker->up, size_bytes, t) : map_input(worker, t);
}

static clg_status open_slot(stream_worker *worker, stream_slot *slot)
{
    const clg_stream *stream = worker->stream;
    slot->worker = worker;
    slot->inputs = memory_zalloc(stream->n_inputs + 1, sizeof *slot->inputs);
    slot->outputs = memory_zalloc(stream->n_outputs + 1, sizeof *slot->outputs);
    if (!slot->inputs || !slot->outputs) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t k = 0; k < stream->n_inputs; k++)
        CLG_TRY(open_input(worker, &stream->inputs[k], &slot->inputs[k]));
    return CLG_OK;
}

clg_status worker_create(stream_worker *worker)
{
    const clg_stream *stream = worker->stream;
    clg_session *s = worker->session;
    const device_context *context = s->exec->context;
    const bool is_hosted = worker_is_hosted(worker);
    worker->staged = !is_hosted && (stream->memory == STREAM_MEMORY_STAGED ||
                                    !ocl_context_caps(context->ocl)->unified_memory);
    worker->slots = memory_zalloc(stream->depth, sizeof *worker->slots);
    if (!worker->slots) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    if (worker->staged) {
        CLG_TRY(ocl_queue_create_own(context->ocl, &worker->up));
        CLG_TRY(ocl_queue_create_own(context->ocl, &worker->down));
    }
    /* Leave outputs on the device that are not passed to the write callback. */
    for (size_t i = 0; i < s->n_outputs && !is_hosted; i++) s->outputs[i].impl = OUTPUT_LEFT;
    for (size_t k = 0; k < stream->n_outputs && !worker->staged && !is_hosted; k++)
        s->outputs[stream->outputs[k].index].impl = OUTPUT_MAPPED;
    for (size_t k = 0; k < stream->n_inputs && !is_hosted; k++)
        s->inputs[stream->inputs[k].index].remaps = !worker->staged;
    for (size_t i = 0; i < stream->depth; i++) CLG_TRY(open_slot(worker, &worker->slots[i]));
    worker->is_open = true;
    return CLG_OK;
}

/* Closes a tensor: unmaps its memory before releasing it. q: NULL if the device was lost. */
static void close_tensor(slot_tensor *t, ocl_queue *q)
{
    ocl_buffer *mapped = t->staging ? t->staging : t->memory.buffer;
    if (t->host && mapped && q) (void)ocl_queue_unmap(q, mapped, t->host);
    ocl_buffer_free(t->staging);
    ocl_buffer_free(t->memory.buffer);
    tensor_free(t->known);
    value_free(t->value);
    *t = (slot_tensor){0};
}

static void close_slot(stream_slot *slot)
{
    const stream_worker *worker = slot->worker;
    if (!worker) return; /* never opened */
    ocl_queue *q = worker->session->frame ? worker->session->frame->queue : NULL;
    for (size_t k = 0; slot->inputs && k < worker->stream->n_inputs; k++)
        close_tensor(&slot->inputs[k], q);
    for (size_t k = 0; slot->outputs && k < worker->stream->n_outputs; k++)
        close_tensor(&slot->outputs[k], q);
    memory_free(slot->inputs);
    memory_free(slot->outputs);
}

/* Releases what worker_create allocated. */
static void close_worker(stream_worker *worker)
{
    for (size_t i = 0; worker->slots && i < worker->stream->depth; i++)
        close_slot(&worker->slots[i]);
    memory_free(worker->slots);
    ocl_queue_free(worker->up);
    ocl_queue_free(worker->down);
    worker->slots = NULL;
    worker->up = worker->down = NULL;
    worker->is_open = false;
}

void worker_free(stream_worker *worker)
{
    close_worker(worker);
    session_free(worker->session);
    *worker = (stream_worker){0};
}

/* ---- uploads --------------------------------------------------------------------------------- */

static clg_status wait_for(const stream_worker *worker, void **event)
{
    void *waited = *event;
    *event = NULL;
    return waited ? ocl_event_wait(context_of(worker), waited) : CLG_OK;
}

clg_status worker_upload(stream_slot *slot)
{
    const stream_worker *worker = slot->worker;
    const clg_stream *stream = worker->stream;
    if (!worker->staged) return CLG_OK;
    for (size_t k = 0; k < stream->n_inputs; k++)
        CLG_TRY(ocl_queue_write(worker->up, slot->inputs[k].memory.buffer, 0, slot->inputs[k].host,
                                stream->inputs[k].row_bytes * slot->n_rows, false));
    return ocl_queue_marker(worker->up, &slot->uploaded);
}

clg_status worker_arrived(stream_slot *slot) { return wait_for(slot->worker, &slot->uploaded); }

/* Pads a short batch in host memory to a full one by repeating its last row, which is valid
 * data. */
static void repeat_last_row(stream_slot *slot)
{
    const clg_stream *stream = slot->worker->stream;
    for (size_t k = 0; k < stream->n_inputs; k++) {
        const size_t row_bytes = stream->inputs[k].row_bytes;
        char *rows = slot->inputs[k].host;
        for (size_t i = slot->n_rows; i < stream->batch && row_bytes; i++)
            memcpy(rows + i * row_bytes, rows + (slot->n_rows - 1) * row_bytes, row_bytes);
    }
}

/* Pads a short batch to a full one. Called while the session has the slot's memory. */
static clg_status pad(stream_slot *slot)
{
    const stream_worker *worker = slot->worker;
    const clg_stream *stream = worker->stream;
    const frame *f = worker->session->frame;
    repeat_last_row(slot);
    for (size_t k = 0; k < stream->n_inputs && worker->staged; k++) {
        const size_t row_bytes = stream->inputs[k].row_bytes, from = slot->n_rows * row_bytes;
        CLG_TRY(ocl_queue_write(f->queue, f->inputs[stream->inputs[k].index].buffer, from,
                                (const char *)slot->inputs[k].host + from,
                                stream->batch * row_bytes - from, false));
    }
    return CLG_OK;
}

/* ---- a run ----------------------------------------------------------------------------------- */

/* Swaps the memory of the slot with that of the session's frame; a second call restores it. */
static void exchange(stream_slot *slot)
{
    const clg_stream *stream = slot->worker->stream;
    clg_session *s = slot->worker->session;
    for (size_t k = 0; k < stream->n_inputs; k++) {
        const size_t i = stream->inputs[k].index;
        frame_swap(s->frame, &s->frame->inputs[i], &slot->inputs[k].memory);
    }
    for (size_t k = 0; k < stream->n_outputs; k++) {
        const size_t i = stream->outputs[k].index;
        frame_swap(s->frame, &s->frame->outputs[i], &slot->outputs[k].memory);
    }
}

static void set_rows(stream_slot *slot, size_t n_rows)
{
    const clg_stream *stream = slot->worker->stream;
    for (size_t k = 0; k < stream->n_inputs; k++) {
        session_input *in = &slot->worker->session->inputs[stream->inputs[k].index];
        in->mapped_dims = stream->inputs[k].dims;
        in->mapped_dims.dims[0] = (int64_t)n_rows;
    }
}

/* Gives the session the slot's memory as inputs of n_rows rows and as outputs. */
static void hand_over(stream_slot *slot)
{
    const clg_stream *stream = slot->worker->stream;
    exchange(slot);
    set_rows(slot, slot->n_rows);
    for (size_t k = 0; k < stream->n_inputs; k++) {
        session_input *in = &slot->worker->session->inputs[stream->inputs[k].index];
        in->filled = true;
        if (!slot->worker->staged) in->mapped = slot->inputs[k].host;
    }
}

/* Takes the slot's memory back from the session, also after a failed run. */
static void take_back(stream_slot *slot)
{
    const clg_stream *stream = slot->worker->stream;
    clg_session *s = slot->worker->session;
    exchange(slot);
    for (size_t k = 0; k < stream->n_inputs && !slot->worker->staged; k++) {
        session_input *in = &s->inputs[stream->inputs[k].index];
        slot->inputs[k].host = in->mapped;
        in->mapped = NULL;
    }
    for (size_t k = 0; k < stream->n_inputs; k++) s->inputs[stream->inputs[k].index].filled = false;
    for (size_t k = 0; k < stream->n_outputs; k++) {
        session_output *out = &s->outputs[stream->outputs[k].index];
        slot_tensor *t = &slot->outputs[k];
        if (!slot->worker->staged) t->host = out->mapped;
        out->mapped = NULL;
        t->dtype = out->dtype;
        t->dims = out->dims;
        t->known = out->valid ? tensor_retain(out->known) : NULL;
    }
}

/* Unmaps the results of the slot's previous batch, which have been written, so that kernels may use
 * the memory again. */
static clg_status drop_results(stream_slot *slot)
{
    const clg_stream *stream = slot->worker->stream;
    clg_status status = CLG_OK;
    for (size_t k = 0; k < stream->n_outputs; k++) {
        slot_tensor *t = &slot->outputs[k];
        tensor_free(t->known);
        t->known = NULL;
        if (slot->worker->staged || !t->host) continue;
        clg_status unmapped =
            ocl_queue_unmap(slot->worker->session->frame->queue, t->memory.buffer, t->host);
        t->host = NULL;
        if (status == CLG_OK) status = unmapped;
    }
    return status;
}

/* Sets *out_needs: whether a plan needs kernels that are not built yet. */
static clg_status needs_kernels(const clg_session *s, const plan *p, bool *out_needs)
{
    const plan_segment *root = p->root;
    size_t n = 0;
    bool ready = true;
    const kernel_ref **refs = memory_zalloc(root->n_steps + 1, sizeof *refs);
    if (!refs) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; i < root->n_steps; i++)
        if (root->steps[i].what->kind == STEP_KERNEL) refs[n++] = &root->steps[i].what->kernel;
    clg_status status = ocl_programs_ready(s->exec->context->ocl, refs, n, &ready);
    memory_free(refs);
    *out_needs = !ready;
    return status;
}

/* Sets *out_pads: whether a batch that is not full must be padded: if the batch size is fixed, or
 * if running it as it is would compile kernels. */
static clg_status must_pad(const stream_slot *slot, bool *out_pads)
{
    clg_session *s = slot->worker->session;
    plan *p;
    *out_pads = slot->worker->stream->fixed;
    if (*out_pads) return CLG_OK;
    clg_status status = session_plan_dry(s, &p);
    if (status == CLG_ERROR_SHAPE) { /* the model fixes the batch internally */
        *out_pads = true;
        return CLG_OK;
    }
    CLG_TRY(status);
    status = needs_kernels(s, p, out_pads);
    plan_free(p);
    return status;
}

/* Decides how to run a batch that is not full: as it is if that compiles nothing, otherwise padded.
 * Called while the session has the slot's memory. */
static clg_status settle_rows(stream_slot *slot)
{
    const clg_stream *stream = slot->worker->stream;
    bool pads;
    if (slot->n_rows == stream->batch) return CLG_OK;
    CLG_TRY(must_pad(slot, &pads));
    if (!pads) return CLG_OK;
    set_rows(slot, stream->batch);
    return pad(slot);
}

static clg_status check_output(const stream_port *port, const slot_tensor *t, int64_t n_rows)
{
    char text[SHAPE_TEXT_BYTES];
    if (t->dtype == CLG_DTYPE_NONE)
        return error_set(CLG_ERROR_UNSUPPORTED_DTYPE,
                         "output '%s' is not a tensor and cannot be streamed", port->name);
    if (t->dtype == CLG_STRING)
        return error_set(CLG_ERROR_UNSUPPORTED_DTYPE, "output '%s': strings cannot be streamed",
                         port->name);
    if (t->dims.rank > 0 && t->dims.dims[0] == n_rows) return CLG_OK;
    return error_set(CLG_ERROR_SHAPE,
                     "output '%s' has shape %s: its first dimension is not the batch, %lld",
                     port->name, shape_text(&t->dims, text), (long long)n_rows);
}

/* Sets t->row_bytes; the tensor must have at least one row. */
static clg_status find_row_bytes(slot_tensor *t)
{
    int64_t n;
    size_t size_bytes;
    const size_t n_rows = (size_t)t->dims.dims[0];
    CLG_TRY(shape_n_elements(&t->dims, &n));
    if (!dtype_bytes(t->dtype, n, &size_bytes) || size_bytes % n_rows)
        return error_set(CLG_ERROR_UNSUPPORTED_DTYPE, "a row of %s does not fill whole bytes",
                         dtype_name(t->dtype));
    t->row_bytes = size_bytes / n_rows;
    return CLG_OK;
}

/* ---- downloads ------------------------------------------------------------------------------- */

static clg_status download_output(stream_worker *worker, slot_tensor *t, size_t size_bytes)
{
    if (t->known || size_bytes == 0) return CLG_OK;
    if (t->staging && ocl_buffer_size(t->staging) < size_bytes) {
        clg_status status = ocl_queue_unmap(worker->down, t->staging, t->host);
        t->host = NULL;
        ocl_buffer_free(t->staging);
        t->staging = NULL;
        CLG_TRY(status);
    }
    if (!t->staging) CLG_TRY(make_staging(worker, worker->down, size_bytes, t));
    return ocl_queue_read(worker->down, t->memory.buffer, t->memory.offset_bytes, t->host,
                          size_bytes, false);
}

/* Aligns the data of an output that the host computed, since the write callback accesses it through
 * a pointer to its C type. */
static clg_status align_known(slot_tensor *t)
{
    tensor *aligned;
    if (!t->known) return CLG_OK;
    CLG_TRY(tensor_align(t->known, &aligned));
    tensor_free(t->known);
    t->known = aligned;
    return CLG_OK;
}

/* Checks the outputs, drops rows of padding and, if staged, starts the download. */
static clg_status begin_download(stream_slot *slot)
{
    stream_worker *worker = slot->worker;
    const clg_stream *stream = worker->stream;
    const int64_t n_ran = worker->session->inputs[stream->inputs[0].index].mapped_dims.dims[0];
    for (size_t k = 0; k < stream->n_outputs; k++) {
        slot_tensor *t = &slot->outputs[k];
        CLG_TRY(check_output(&stream->outputs[k], t, n_ran));
        CLG_TRY(find_row_bytes(t));
        CLG_TRY(align_known(t));
        t->dims.dims[0] = (int64_t)slot->n_rows;
        if (worker->staged) CLG_TRY(download_output(worker, t, t->row_bytes * slot->n_rows));
    }
    if (!worker->staged) return CLG_OK;
    return ocl_queue_marker(worker->down, &slot->downloaded);
}

static clg_status run_refreshed(stream_slot *slot)
{
    return session_run_refreshed(slot->worker->session);
}

/* Calls `run` with the slot's session entered. */
static clg_status run_session(stream_slot *slot, clg_status (*run)(stream_slot *slot))
{
    clg_session *s = slot->worker->session;
    CLG_TRY(session_enter(s)); /* clears an earlier cancel, so test `stopped` again */
    clg_status status = atomic_load(&slot->worker->stream->stopped)
                            ? error_set(CLG_ERROR_CANCELLED, "the stream was cancelled")
                            : run(slot);
    session_leave(s);
    return status;
}

static clg_status run_hosted(stream_slot *slot)
{
    repeat_last_row(slot); /* always, so that no part compiles kernels for another size */
    set_rows(slot, slot->worker->stream->batch);
    return run_session(slot, worker_run_hosted);
}

static clg_status run_on_device(stream_slot *slot)
{
    hand_over(slot);
    clg_status status = settle_rows(slot);
    if (status == CLG_OK) status = run_session(slot, run_refreshed);
    take_back(slot);
    return status;
}

clg_status worker_run_batch(stream_slot *slot)
{
    CLG_TRY(drop_results(slot));
    CLG_TRY(worker_is_hosted(slot->worker) ? run_hosted(slot) : run_on_device(slot));
    return begin_download(slot);
}

clg_status worker_result(stream_slot *slot) { return wait_for(slot->worker, &slot->downloaded); }

const void *worker_result_data(const slot_tensor *t) { return t->known ? t->known->data : t->host; }

/* ---- before and after ------------------------------------------------------------------------ */

/* Refreshes the session. If that rebuilds it, allocates the slots again, which are of a lost
 * device. */
static clg_status refresh(stream_worker *worker)
{
    clg_session *s = worker->session;
    const bool is_hosted = worker_is_hosted(worker);
    const bool reopens = (!is_hosted && session_is_stale(s)) || !worker->is_open;
    if (reopens) close_worker(worker);
    CLG_TRY(session_enter(s));
    const clg_status status = is_hosted ? CLG_OK : session_refresh(s);
    session_leave(s);
    return status == CLG_OK && reopens ? worker_create(worker) : status;
}

clg_status worker_begin(stream_worker *worker)
{
    const clg_stream *stream = worker->stream;
    CLG_TRY(refresh(worker));
    worker->n_pending = worker->n_runs = 0;
    worker->mean_ns = 0;
    for (size_t i = 0; i < stream->depth; i++) {
        stream_slot *slot = &worker->slots[i];
        slot->state = SLOT_FREE;
        /* a failed run may have left its inputs unmapped */
        for (size_t k = 0; k < stream->n_inputs; k++)
            if (!slot->inputs[k].host) CLG_TRY(map_input(worker, &slot->inputs[k]));
    }
    return CLG_OK;
}

void worker_settle(stream_worker *worker)
{
    for (size_t i = 0; i < worker->stream->depth; i++) {
        (void)wait_for(worker, &worker->slots[i].uploaded);
        (void)wait_for(worker, &worker->slots[i].downloaded);
    }
    (void)ocl_queue_finish(worker->session->frame->queue);
    if (!worker->staged) return;
    (void)ocl_queue_finish(worker->up);
    (void)ocl_queue_finish(worker->down);
}
