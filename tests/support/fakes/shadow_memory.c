/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements the simulated memory of shadow_memory.h.
 */
#include "support/fakes/shadow_memory.h"

#include "support/unit.h"

#include <stdlib.h>
#include <string.h>

bool shadow_is_writable(place_kind kind)
{
    return kind == PLACE_SLAB || kind == PLACE_INPUT || kind == PLACE_OUTPUT;
}

void shadow_add(shadow *s, place_kind kind, uint32_t index, size_t n_bytes)
{
    shadow_space made = {.kind = kind, .index = index, .n_bytes = n_bytes};
    made.bytes = calloc(n_bytes + 1, sizeof *made.bytes);
    made.writers = calloc(n_bytes + 1, sizeof *made.writers);
    made.readers = calloc(n_bytes + 1, sizeof *made.readers);
    assert_true(made.bytes && made.writers && made.readers);
    assert_true(s->n_spaces < SHADOW_MAX_SPACES);
    s->spaces[s->n_spaces++] = made;
}

void shadow_free(shadow *s)
{
    for (size_t i = 0; i < s->n_spaces; i++) {
        free(s->spaces[i].bytes);
        free(s->spaces[i].writers);
        free(s->spaces[i].readers);
    }
    s->n_spaces = 0;
}

/* ---- order of steps -------------------------------------------------------------------------- */

/* Returns the steps of its window that complete before step i starts, directly or transitively: bit
 * k is the k-th step of the window. */
static uint32_t steps_before(const shadow *s, size_t i)
{
    const size_t first = i - i % PLAN_WINDOW;
    uint32_t before = s->segment->steps[i].after;
    for (size_t k = i; k-- > first;)
        if (before >> (k - first) & 1u) before |= s->segment->steps[k].after;
    return first > 0
               ? before | 1u
               : before; /* the first step of a window is a fence, except in the first window */
}

/* Returns whether all steps of the window that begins with step `first`, from its step `at` on,
 * start after all steps before `at`. */
static bool is_border(const shadow *s, size_t first, uint32_t at)
{
    const uint32_t earlier = (1u << at) - 1;
    for (size_t i = first + at; i < s->segment->n_steps && i < first + PLAN_WINDOW; i++)
        if ((steps_before(s, i) & earlier) != earlier) return false;
    return true;
}

/* Returns what n_level of step i must be. */
static uint32_t level_of(const shadow *s, size_t i)
{
    const size_t first = i - i % PLAN_WINDOW;
    const uint32_t at = (uint32_t)(i - first), earlier = (1u << at) - 1;
    uint32_t end = at + 1;
    if (!is_border(s, first, at)) return 0;
    for (; end < PLAN_WINDOW && first + end < s->segment->n_steps && !is_border(s, first, end);)
        end++;
    for (uint32_t k = at; k < end; k++)
        if (steps_before(s, first + k) & ~(earlier | 1u << k)) return 0;
    return end - at;
}

static void check_levels(const shadow *s)
{
    for (size_t i = 0; i < s->segment->n_steps; i++)
        if (s->segment->steps[i].n_level != level_of(s, i))
            fail_msg("step %zu of segment %u: a level of %u, not %u", i, s->segment->depth,
                     level_of(s, i), s->segment->steps[i].n_level);
}

void shadow_start_segment(shadow *s, const plan_segment *segment)
{
    s->segment = segment;
    s->step = s->window = 0;
    for (size_t i = 0; i < s->n_spaces; i++) {
        const size_t n = s->spaces[i].n_bytes * sizeof(uint32_t);
        memset(s->spaces[i].writers, 0, n);
        memset(s->spaces[i].readers, 0, n);
    }
    check_levels(s);
}

static bool is_timed(const shadow *s) { return !s->is_untimed && s->step < s->segment->n_steps; }

/* Checks that the current step is ordered after earlier accesses to a byte that conflict with its
 * own: step `writer` - 1 wrote the byte last (0: none), and the steps of this window with bits in
 * `readers` have read it since. */
static void check_order(const shadow *s, uint32_t writer, uint32_t readers)
{
    const size_t now = s->step, first = now - now % PLAN_WINDOW;
    const uint32_t before = steps_before(s, now) | 1u << (now - first);
    if (writer > first && !(before >> (writer - 1 - first) & 1u))
        fail_msg("step %zu of segment %u may overlap step %u, which writes what it touches", now,
                 s->segment->depth, writer - 1);
    if (readers & ~before)
        fail_msg("step %zu of segment %u may overlap a step that reads what it writes: %x of %x",
                 now, s->segment->depth, readers, before);
}

/* Clears the readers of all bytes if the current step is in a new window: a fence between windows
 * completes all reads before it. */
static void enter_window(shadow *s)
{
    const size_t window = s->step / PLAN_WINDOW;
    for (size_t i = 0; i < s->n_spaces && window != s->window; i++)
        memset(s->spaces[i].readers, 0, s->spaces[i].n_bytes * sizeof(uint32_t));
    s->window = window;
}

/* ---- memory ---------------------------------------------------------------------------------- */

static shadow_space *space_of(shadow *s, const plan_placement *p, size_t n_bytes)
{
    for (size_t i = 0; i < s->n_spaces; i++) {
        shadow_space *space = &s->spaces[i];
        if (space->kind != p->kind || space->index != p->index) continue;
        size_t limit = p->kind == PLACE_SLAB ? s->segment->slab_bytes[p->index] : space->n_bytes;
        if (p->offset_bytes < 0 || (size_t)p->offset_bytes + n_bytes > limit)
            fail_msg("step %zu of segment %u: %zu bytes at %lld of a memory of %zu", s->step,
                     s->segment->depth, n_bytes, (long long)p->offset_bytes, limit);
        return space;
    }
    fail_msg("step %zu of segment %u: there is no memory %d.%u", s->step, s->segment->depth,
             (int)p->kind, p->index);
    return NULL;
}

void shadow_write(shadow *s, const plan_placement *p, size_t n_bytes, uint32_t number)
{
    shadow_space *space = space_of(s, p, n_bytes);
    const size_t first = (size_t)p->offset_bytes;
    if (is_timed(s)) enter_window(s);
    for (size_t i = first; i < first + n_bytes; i++) {
        space->bytes[i] = number;
        if (!is_timed(s)) continue;
        check_order(s, space->writers[i], space->readers[i]);
        space->writers[i] = (uint32_t)s->step + 1;
        space->readers[i] = 0;
    }
}

void shadow_check(shadow *s, const plan_placement *p, size_t n_bytes, uint32_t number)
{
    shadow_space *space = space_of(s, p, n_bytes);
    const size_t first = (size_t)p->offset_bytes;
    if (is_timed(s)) enter_window(s);
    for (size_t i = first; i < first + n_bytes; i++) {
        if (space->bytes[i] != number)
            fail_msg("step %zu of segment %u finds number %u in place of %u at %d.%u+%lld", s->step,
                     s->segment->depth, space->bytes[i], number, (int)p->kind, p->index,
                     (long long)p->offset_bytes);
        if (!is_timed(s)) continue;
        check_order(s, space->writers[i], 0);
        space->readers[i] |= 1u << s->step % PLAN_WINDOW;
    }
    if (p->kind == PLACE_SLAB) s->n_slab_bytes_read += n_bytes;
}
