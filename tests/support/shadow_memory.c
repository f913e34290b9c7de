/* SPDX-License-Identifier: Apache-2.0
 *
 * See shadow_memory.h.
 */
#include "support/shadow_memory.h"

#include "support/unit.h"

#include <stdlib.h>

bool shadow_is_writable(place_kind kind)
{
    return kind == PLACE_SLAB || kind == PLACE_INPUT || kind == PLACE_OUTPUT;
}

void shadow_add(shadow *s, place_kind kind, uint32_t index, size_t n_bytes)
{
    uint32_t *bytes = calloc(n_bytes + 1, sizeof *bytes);
    assert_non_null(bytes);
    assert_true(s->n_spaces < SHADOW_MAX_SPACES);
    s->spaces[s->n_spaces++] = (shadow_space){kind, index, bytes, n_bytes};
}

void shadow_free(shadow *s)
{
    for (size_t i = 0; i < s->n_spaces; i++) free(s->spaces[i].bytes);
    s->n_spaces = 0;
}

static uint32_t *range(shadow *s, const placement *p, size_t n_bytes)
{
    for (size_t i = 0; i < s->n_spaces; i++) {
        shadow_space *space = &s->spaces[i];
        if (space->kind != p->kind || space->index != p->index) continue;
        size_t limit = p->kind == PLACE_SLAB ? s->segment->slab_bytes[p->index] : space->n_bytes;
        if (p->offset_bytes < 0 || (size_t)p->offset_bytes + n_bytes > limit)
            fail_msg("step %zu of segment %u: %zu bytes at %lld of a memory of %zu", s->step,
                     s->segment->depth, n_bytes, (long long)p->offset_bytes, limit);
        return space->bytes + p->offset_bytes;
    }
    fail_msg("step %zu of segment %u: there is no memory %d.%u", s->step, s->segment->depth,
             (int)p->kind, p->index);
    return NULL;
}

void shadow_write(shadow *s, const placement *p, size_t n_bytes, uint32_t number)
{
    uint32_t *bytes = range(s, p, n_bytes);
    for (size_t i = 0; i < n_bytes; i++) bytes[i] = number;
}

void shadow_check(shadow *s, const placement *p, size_t n_bytes, uint32_t number)
{
    const uint32_t *bytes = range(s, p, n_bytes);
    for (size_t i = 0; i < n_bytes; i++)
        if (bytes[i] != number)
            fail_msg("step %zu of segment %u finds number %u in place of %u at %d.%u+%lld", s->step,
                     s->segment->depth, bytes[i], number, (int)p->kind, p->index,
                     (long long)p->offset_bytes);
    if (p->kind == PLACE_SLAB) s->n_slab_bytes_read += n_bytes;
}
