/* SPDX-License-Identifier: Apache-2.0
 *
 * The device memory of a frame: of inputs, outputs and slabs; and of loops whose iterations run
 * repeatedly (plan/control/iterate.c): of loop-carried values, and of stacked outputs, which grow
 * by a slice in each iteration.
 */
#include "session/run/frame.h"

#include <string.h>

#define MAX_ROOM_BYTES ((size_t)1 << 20) /* slack of memory that grows */

void frame_touch(frame *f, frame_memory *m) { m->stamp = ++f->stamp; }

void frame_drop(frame *f, frame_memory *m)
{
    ocl_buffer_free(m->buffer);
    m->buffer = NULL;
    m->foreign = m->is_zero_copy = false;
    m->offset_bytes = 0;
    frame_touch(f, m);
}

size_t frame_with_room(const frame *f, const frame_memory *m, size_t size_bytes)
{
    const uint64_t largest = ocl_context_caps(f->exec->context->ocl)->max_alloc_bytes;
    const size_t room = size_bytes / 4 < MAX_ROOM_BYTES ? size_bytes / 4 : MAX_ROOM_BYTES;
    if (!m->buffer || m->foreign || (largest > 0 && size_bytes + room > largest)) return size_bytes;
    return size_bytes + room;
}

clg_status frame_create_buffer(frame *f, size_t wanted_bytes, size_t least_bytes,
                               ocl_buffer_flags flags, ocl_buffer **out_buffer)
{
    ocl_context *ocl = f->exec->context->ocl;
    clg_status status = ocl_buffer_create(ocl, wanted_bytes, flags, out_buffer);
    if (wanted_bytes > least_bytes &&
        (status == CLG_ERROR_OUT_OF_DEVICE_MEMORY || status == CLG_ERROR_LIMIT))
        status = ocl_buffer_create(ocl, least_bytes, flags, out_buffer);
    return status;
}

clg_status frame_reserve(frame *f, frame_memory *m, size_t size_bytes, ocl_buffer_flags flags)
{
    if (m->buffer && !m->foreign && ocl_buffer_size(m->buffer) >= size_bytes) return CLG_OK;
    const size_t wanted = frame_with_room(f, m, size_bytes);
    frame_drop(f, m);
    return frame_create_buffer(f, wanted, size_bytes, flags, &m->buffer);
}

void frame_set_foreign(frame *f, frame_memory *m, ocl_buffer *b, size_t offset_bytes)
{
    if (m->foreign && m->buffer == b && m->offset_bytes == offset_bytes) return;
    ocl_buffer_retain(b);
    ocl_buffer_free(m->buffer);
    m->buffer = b;
    m->offset_bytes = offset_bytes;
    m->foreign = true;
    frame_touch(f, m);
}

void frame_swap(frame *f, frame_memory *a, frame_memory *b)
{
    frame_memory t = *a;
    *a = *b;
    *b = t;
    frame_touch(f, a);
    frame_touch(f, b);
}

/* ---- loops ----------------------------------------------------------------------------------- */

/* Adds memories, without buffers, up to index `last`. */
static clg_status add_memories(frame *f, uint32_t last)
{
    const size_t n = (size_t)last + 1;
    if (n <= f->n_states) return CLG_OK;
    CLG_TRY(MEMORY_RESERVE(f->states, f->states_capacity, n));
    CLG_TRY(MEMORY_RESERVE(f->state_bytes, f->state_bytes_capacity, n));
    memset(f->states + f->n_states, 0, (n - f->n_states) * sizeof *f->states);
    memset(f->state_bytes + f->n_states, 0, (n - f->n_states) * sizeof *f->state_bytes);
    f->n_states = n;
    return CLG_OK;
}

clg_status frame_reserve_states(frame *f, const plan_segment *segment)
{
    for (size_t i = 0; i < segment->n_states; i++) {
        const plan_state_memory *s = &segment->states[i];
        CLG_TRY(add_memories(f, s->index));
        CLG_TRY(frame_reserve(f, &f->states[s->index], s->size_bytes, OCL_BUFFER_DEVICE));
    }
    for (size_t i = 0; i < segment->n_appends; i++)
        CLG_TRY(add_memories(f, segment->appends[i].index));
    return CLG_OK;
}

/* Makes room for at least size_bytes in a memory whose first used_bytes are kept: twice the size,
 * as far as that can be had, so that appending takes constant time on average. */
static clg_status grow(frame *f, frame_memory *m, size_t used_bytes, size_t size_bytes)
{
    const size_t largest = (size_t)ocl_context_caps(f->exec->context->ocl)->max_alloc_bytes;
    const size_t now = m->buffer ? ocl_buffer_size(m->buffer) : 0;
    ocl_buffer *old = m->buffer;
    if (old && now >= size_bytes) return CLG_OK;
    size_t wanted = now > SIZE_MAX / 2 || 2 * now < size_bytes ? size_bytes : 2 * now;
    if (largest > 0 && wanted > largest) wanted = largest;
    if (wanted < size_bytes)
        return error_set(CLG_ERROR_OUT_OF_DEVICE_MEMORY,
                         "the stacked output of a loop needs %zu bytes, more than the device's "
                         "largest buffer of %zu bytes",
                         size_bytes, largest);
    m->buffer = NULL;
    frame_drop(f, m); /* a new stamp */
    clg_status status = frame_create_buffer(f, wanted, size_bytes, OCL_BUFFER_DEVICE, &m->buffer);
    if (status == CLG_OK && used_bytes)
        status = ocl_queue_copy(f->queue, old, 0, m->buffer, 0, used_bytes);
    ocl_buffer_free(old);
    return status;
}

clg_status frame_append(frame *f, const frame_segment *prepared)
{
    const plan_segment *segment = prepared->segment;
    for (size_t i = 0; i < segment->n_appends; i++) {
        const plan_append *a = &segment->appends[i];
        frame_memory *m = &f->states[a->index];
        const size_t used = a->is_first ? 0 : f->state_bytes[a->index];
        const bound_buffer *from = &prepared->bound[prepared->n_bound + i];
        if (a->size_bytes > SIZE_MAX - used) return error_no_memory(SIZE_MAX);
        CLG_TRY(grow(f, m, used, used + a->size_bytes > 0 ? used + a->size_bytes : 1));
        f->state_bytes[a->index] = used + a->size_bytes;
        if (a->size_bytes == 0) continue;
        CLG_TRY(ocl_queue_copy(f->queue, from->buffer, (size_t)from->offset_bytes, m->buffer, used,
                               a->size_bytes));
    }
    return CLG_OK;
}
