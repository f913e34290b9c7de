/* SPDX-License-Identifier: Apache-2.0
 *
 * One lane of a stream: its memory, and the way of a batch through it.
 */
#include "session/stream/stream.h"

#include <string.h>

/* ---- opening and closing -------------------------------------------------------------------------------- */

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

clg_status lane_adopt(stream_lane *lane, clg_session *given)
{
    CLG_TRY(session_clone(given, &lane->s));
    return copy_inputs(lane->s, given);
}

static ocl_context *context_of(const stream_lane *lane) { return lane->s->e->context->ocl; }

/* Pinned memory that stays mapped. */
static clg_status make_staging(stream_lane *lane, ocl_queue *q, size_t size_bytes, slot_tensor *t)
{
    CLG_TRY(ocl_buffer_create(context_of(lane), size_bytes, OCL_BUFFER_HOST_VISIBLE, &t->staging));
    return ocl_queue_map(q, t->staging, 0, ocl_buffer_size(t->staging), false, true, &t->host);
}

static clg_status map_input(stream_lane *lane, slot_tensor *t)
{
    return ocl_queue_map(lane->s->f->queue, t->memory.buffer, 0, ocl_buffer_size(t->memory.buffer),
                         true, true, &t->host);
}

static clg_status open_input(stream_lane *lane, const stream_port *port, slot_tensor *t)
{
    const size_t size_bytes = port->row_bytes * lane->stream->batch;
    CLG_TRY(ocl_buffer_create(context_of(lane), size_bytes,
                              lane->staged ? OCL_BUFFER_DEVICE : OCL_BUFFER_HOST_VISIBLE,
                              &t->memory.buffer));
    return lane->staged ? make_staging(lane, lane->up, size_bytes, t) : map_input(lane, t);
}

static clg_status open_slot(stream_lane *lane, stream_slot *slot)
{
    const clg_stream *stream = lane->stream;
    slot->lane = lane;
    slot->inputs = memory_zalloc(stream->n_inputs + 1, sizeof *slot->inputs);
    slot->outputs = memory_zalloc(stream->n_outputs + 1, sizeof *slot->outputs);
    if (!slot->inputs || !slot->outputs) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t k = 0; k < stream->n_inputs; k++)
        CLG_TRY(open_input(lane, &stream->inputs[k], &slot->inputs[k]));
    return CLG_OK;
}

clg_status lane_open(stream_lane *lane, stream_memory memory)
{
    const clg_stream *stream = lane->stream;
    clg_session *s = lane->s;
    const clg_context *context = s->e->context;
    lane->staged =
        memory == STREAM_MEMORY_STAGED || !ocl_context_caps(context->ocl)->unified_memory;
    lane->slots = memory_zalloc(stream->depth, sizeof *lane->slots);
    if (!lane->slots) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    if (lane->staged) {
        CLG_TRY(ocl_queue_create_own(context->ocl, &lane->up));
        CLG_TRY(ocl_queue_create_own(context->ocl, &lane->down));
    }
    /* what is not written is not fetched either */
    for (size_t i = 0; i < s->n_outputs; i++) s->outputs[i].impl = OUTPUT_LEFT;
    for (size_t k = 0; k < stream->n_outputs && !lane->staged; k++)
        s->outputs[stream->outputs[k].index].impl = OUTPUT_MAPPED;
    for (size_t k = 0; k < stream->n_inputs; k++)
        s->inputs[stream->inputs[k].index].remaps = !lane->staged;
    for (size_t i = 0; i < stream->depth; i++) CLG_TRY(open_slot(lane, &lane->slots[i]));
    return CLG_OK;
}

/* What is mapped is unmapped before its memory goes. */
static void close_tensor(slot_tensor *t, ocl_queue *q)
{
    ocl_buffer *mapped = t->staging ? t->staging : t->memory.buffer;
    if (t->host && mapped) (void)ocl_queue_unmap(q, mapped, t->host);
    ocl_buffer_free(t->staging);
    ocl_buffer_free(t->memory.buffer);
    tensor_free(t->known);
    *t = (slot_tensor){0};
}

static void close_slot(stream_slot *slot)
{
    const stream_lane *lane = slot->lane;
    if (!lane) return; /* never opened */
    for (size_t k = 0; slot->inputs && k < lane->stream->n_inputs; k++)
        close_tensor(&slot->inputs[k], lane->s->f->queue);
    for (size_t k = 0; slot->outputs && k < lane->stream->n_outputs; k++)
        close_tensor(&slot->outputs[k], lane->s->f->queue);
    memory_free(slot->inputs);
    memory_free(slot->outputs);
}

void lane_close(stream_lane *lane)
{
    for (size_t i = 0; lane->slots && i < lane->stream->depth; i++) close_slot(&lane->slots[i]);
    memory_free(lane->slots);
    ocl_queue_free(lane->up);
    ocl_queue_free(lane->down);
    session_free(lane->s);
    *lane = (stream_lane){0};
}

/* ---- up ------------------------------------------------------------------------------------------------- */

static clg_status wait_for(const stream_lane *lane, void **event)
{
    void *waited = *event;
    *event = NULL;
    return waited ? ocl_event_wait(context_of(lane), waited) : CLG_OK;
}

clg_status lane_upload(stream_slot *slot)
{
    const stream_lane *lane = slot->lane;
    const clg_stream *stream = lane->stream;
    if (!lane->staged) return CLG_OK;
    for (size_t k = 0; k < stream->n_inputs; k++)
        CLG_TRY(ocl_queue_write(lane->up, slot->inputs[k].memory.buffer, 0, slot->inputs[k].host,
                                stream->inputs[k].row_bytes * slot->n_rows, false));
    return ocl_queue_marker(lane->up, &slot->uploaded);
}

clg_status lane_arrived(stream_slot *slot) { return wait_for(slot->lane, &slot->uploaded); }

/* Makes a full batch of a short one: its last row again and again, which is as valid as it was the first time. The slot is
 * handed over. */
static clg_status pad(stream_slot *slot)
{
    const stream_lane *lane = slot->lane;
    const clg_stream *stream = lane->stream;
    const frame *f = lane->s->f;
    for (size_t k = 0; k < stream->n_inputs; k++) {
        const size_t row_bytes = stream->inputs[k].row_bytes, from = slot->n_rows * row_bytes;
        char *rows = slot->inputs[k].host;
        for (size_t i = slot->n_rows; i < stream->batch && row_bytes; i++)
            memcpy(rows + i * row_bytes, rows + from - row_bytes, row_bytes);
        if (lane->staged)
            CLG_TRY(ocl_queue_write(f->queue, f->inputs[stream->inputs[k].index].buffer, from,
                                    rows + from, stream->batch * row_bytes - from, false));
    }
    return CLG_OK;
}

/* ---- a run ---------------------------------------------------------------------------------------------- */

/* The slot's memory becomes the frame's, and, by the same way, goes back. */
static void exchange(stream_slot *slot)
{
    const clg_stream *stream = slot->lane->stream;
    clg_session *s = slot->lane->s;
    for (size_t k = 0; k < stream->n_inputs; k++) {
        const size_t i = stream->inputs[k].index;
        frame_swap(s->f, &s->f->inputs[i], &slot->inputs[k].memory);
    }
    for (size_t k = 0; k < stream->n_outputs; k++) {
        const size_t i = stream->outputs[k].index;
        frame_swap(s->f, &s->f->outputs[i], &slot->outputs[k].memory);
    }
}

static void set_rows(stream_slot *slot, size_t n_rows)
{
    const clg_stream *stream = slot->lane->stream;
    for (size_t k = 0; k < stream->n_inputs; k++) {
        session_input *in = &slot->lane->s->inputs[stream->inputs[k].index];
        in->mapped_dims = stream->inputs[k].dims;
        in->mapped_dims.dims[0] = (int64_t)n_rows;
    }
}

/* From the slot to the session: rows that are filled in, and where they are mapped. */
static void hand_over(stream_slot *slot)
{
    const clg_stream *stream = slot->lane->stream;
    exchange(slot);
    set_rows(slot, slot->n_rows);
    for (size_t k = 0; k < stream->n_inputs; k++) {
        session_input *in = &slot->lane->s->inputs[stream->inputs[k].index];
        in->filled = true;
        if (!slot->lane->staged) in->mapped = slot->inputs[k].host;
    }
}

/* And back, whatever became of the run. */
static void take_back(stream_slot *slot)
{
    const clg_stream *stream = slot->lane->stream;
    clg_session *s = slot->lane->s;
    exchange(slot);
    for (size_t k = 0; k < stream->n_inputs && !slot->lane->staged; k++) {
        session_input *in = &s->inputs[stream->inputs[k].index];
        slot->inputs[k].host = in->mapped;
        in->mapped = NULL;
    }
    for (size_t k = 0; k < stream->n_inputs; k++) s->inputs[stream->inputs[k].index].filled = false;
    for (size_t k = 0; k < stream->n_outputs; k++) {
        session_output *out = &s->outputs[stream->outputs[k].index];
        slot_tensor *t = &slot->outputs[k];
        if (!slot->lane->staged) t->host = out->mapped;
        out->mapped = NULL;
        t->dtype = out->dtype;
        t->dims = out->dims;
        t->known = out->valid ? tensor_retain(out->known) : NULL;
    }
}

/* The results that the slot had before are written; kernels get their memory back. */
static clg_status drop_results(stream_slot *slot)
{
    const clg_stream *stream = slot->lane->stream;
    clg_status status = CLG_OK;
    for (size_t k = 0; k < stream->n_outputs; k++) {
        slot_tensor *t = &slot->outputs[k];
        tensor_free(t->known);
        t->known = NULL;
        if (slot->lane->staged || !t->host) continue;
        clg_status unmapped = ocl_queue_unmap(slot->lane->s->f->queue, t->memory.buffer, t->host);
        t->host = NULL;
        if (status == CLG_OK) status = unmapped;
    }
    return status;
}

/* Whether a plan for these rows needs kernels that nobody has built. */
static clg_status needs_kernels(const clg_session *s, const plan *p, bool *out_needs)
{
    const plan_segment *root = p->root;
    size_t n = 0;
    bool ready = true;
    const kernel_ref **refs = memory_zalloc(root->n_steps + 1, sizeof *refs);
    if (!refs) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; i < root->n_steps; i++)
        if (root->steps[i].what->kind == STEP_KERNEL) refs[n++] = &root->steps[i].what->kernel;
    clg_status status = ocl_programs_ready(s->e->context->ocl, refs, n, &ready);
    memory_free(refs);
    *out_needs = !ready;
    return status;
}

/* Whether the rows of a batch that is not full have to be made a full one. */
static clg_status must_pad(const stream_slot *slot, bool *out_pads)
{
    clg_session *s = slot->lane->s;
    plan *p;
    *out_pads = slot->lane->stream->fixed;
    if (*out_pads) return CLG_OK;
    clg_status status = session_plan(s, &p);
    if (status == CLG_ERROR_SHAPE) { /* inside, the model has a batch of its own */
        *out_pads = true;
        return CLG_OK;
    }
    CLG_TRY(status);
    status = needs_kernels(s, p, out_pads);
    plan_free(p);
    return status;
}

/* A batch that is not full runs as it is where that compiles nothing. The slot is handed over. */
static clg_status settle_rows(stream_slot *slot)
{
    const clg_stream *stream = slot->lane->stream;
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
                         "output '%s' is no tensor and cannot be streamed", port->name);
    if (t->dtype == CLG_STRING)
        return error_set(CLG_ERROR_UNSUPPORTED_DTYPE, "output '%s': strings cannot be streamed",
                         port->name);
    if (t->dims.rank > 0 && t->dims.dims[0] == n_rows) return CLG_OK;
    return error_set(CLG_ERROR_SHAPE,
                     "output '%s' has shape %s: its first dimension is not the batch, %lld",
                     port->name, shape_text(&t->dims, text), (long long)n_rows);
}

/* The rows are one and more. */
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

/* ---- down ----------------------------------------------------------------------------------------------- */

static clg_status download_output(stream_lane *lane, slot_tensor *t, size_t size_bytes)
{
    if (t->known || size_bytes == 0) return CLG_OK;
    if (t->staging && ocl_buffer_size(t->staging) < size_bytes) {
        clg_status status = ocl_queue_unmap(lane->down, t->staging, t->host);
        t->host = NULL;
        ocl_buffer_free(t->staging);
        t->staging = NULL;
        CLG_TRY(status);
    }
    if (!t->staging) CLG_TRY(make_staging(lane, lane->down, size_bytes, t));
    return ocl_queue_read(lane->down, t->memory.buffer, t->memory.offset_bytes, t->host, size_bytes,
                          false);
}

/* Whoever writes it reads it through a pointer of its type. */
static clg_status align_known(slot_tensor *t)
{
    tensor *aligned;
    if (!t->known) return CLG_OK;
    CLG_TRY(tensor_align(t->known, &aligned));
    tensor_free(t->known);
    t->known = aligned;
    return CLG_OK;
}

/* The outputs are checked, cut to the slot's own rows, and, staged, on their way. */
static clg_status begin_download(stream_slot *slot)
{
    stream_lane *lane = slot->lane;
    const clg_stream *stream = lane->stream;
    const int64_t n_ran = lane->s->inputs[stream->inputs[0].index].mapped_dims.dims[0];
    for (size_t k = 0; k < stream->n_outputs; k++) {
        slot_tensor *t = &slot->outputs[k];
        CLG_TRY(check_output(&stream->outputs[k], t, n_ran));
        CLG_TRY(find_row_bytes(t));
        CLG_TRY(align_known(t));
        t->dims.dims[0] = (int64_t)slot->n_rows;
        if (lane->staged) CLG_TRY(download_output(lane, t, t->row_bytes * slot->n_rows));
    }
    if (!lane->staged) return CLG_OK;
    return ocl_queue_marker(lane->down, &slot->downloaded);
}

static clg_status run_session(stream_slot *slot)
{
    clg_session *s = slot->lane->s;
    CLG_TRY(session_enter(s)); /* takes a cancel of before back: the stream is asked again */
    clg_status status = atomic_load(&slot->lane->stream->stopped)
                            ? error_set(CLG_ERROR_CANCELLED, "the stream was cancelled")
                            : session_run(s);
    session_leave(s);
    return status;
}

clg_status lane_run(stream_slot *slot)
{
    CLG_TRY(drop_results(slot));
    hand_over(slot);
    clg_status status = settle_rows(slot);
    if (status == CLG_OK) status = run_session(slot);
    take_back(slot);
    return status == CLG_OK ? begin_download(slot) : status;
}

clg_status lane_result(stream_slot *slot) { return wait_for(slot->lane, &slot->downloaded); }

const void *lane_result_data(const slot_tensor *t) { return t->known ? t->known->data : t->host; }

/* ---- before and after ----------------------------------------------------------------------------------- */

clg_status lane_begin(stream_lane *lane)
{
    const clg_stream *stream = lane->stream;
    lane->n_pending = lane->n_runs = 0;
    lane->mean_ns = 0;
    for (size_t i = 0; i < stream->depth; i++) {
        stream_slot *slot = &lane->slots[i];
        slot->state = SLOT_FREE;
        /* a run that failed may have left its inputs unmapped */
        for (size_t k = 0; k < stream->n_inputs; k++)
            if (!slot->inputs[k].host) CLG_TRY(map_input(lane, &slot->inputs[k]));
    }
    return CLG_OK;
}

void lane_settle(stream_lane *lane)
{
    for (size_t i = 0; i < lane->stream->depth; i++) {
        (void)wait_for(lane, &lane->slots[i].uploaded);
        (void)wait_for(lane, &lane->slots[i].downloaded);
    }
    (void)ocl_queue_finish(lane->s->f->queue);
    if (!lane->staged) return;
    (void)ocl_queue_finish(lane->up);
    (void)ocl_queue_finish(lane->down);
}
