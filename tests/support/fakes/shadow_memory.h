/* SPDX-License-Identifier: Apache-2.0
 *
 * Simulates the memory in which a plan places values, to check the plan: every byte has a number
 * that identifies the data stored in it. Fails the test when a step reads other data than expected,
 * accesses memory beyond its end, reads a byte that a concurrent step writes, or writes one that a
 * concurrent step accesses. Steps are concurrent unless plan_step.after orders them.
 */
#ifndef CLG_TESTS_SHADOW_MEMORY_H
#define CLG_TESTS_SHADOW_MEMORY_H

#include "plan/plan.h"

#define SHADOW_MAX_SPACES 64

typedef struct shadow_space {
    place_kind kind;
    uint32_t index;
    uint32_t *bytes;   /* the number of each byte; 0: never written */
    uint32_t *writers; /* the step of this segment that last wrote each byte, plus one; 0: none */
    uint32_t *readers; /* steps of the current window that read each byte since, as bits */
    size_t n_bytes;
} shadow_space;

typedef struct shadow {
    shadow_space spaces[SHADOW_MAX_SPACES];
    size_t n_spaces;
    const plan_segment *segment; /* the current segment; has the sizes of slabs */
    size_t step, window;         /* index of the current step in the segment, and its window */
    bool is_untimed;             /* accesses are not made by a step: their order is not checked */
    uint32_t last_number;        /* the last number that was given to data */
    size_t n_slab_bytes_read;
} shadow; /* all zeros is empty */

/* Adds a memory of n_bytes, which placements refer to by kind and index. */
void shadow_add(shadow *s, place_kind kind, uint32_t index, size_t n_bytes);
/* Starts a segment; all steps of the previous segment are complete. */
void shadow_start_segment(shadow *s, const plan_segment *segment);
void shadow_free(shadow *s);
/* Returns false for memory of constants, which no step may write. */
bool shadow_is_writable(place_kind kind);
/* Simulates that the current step writes the data with this number to n_bytes at p. */
void shadow_write(shadow *s, const plan_placement *p, size_t n_bytes, uint32_t number);
/* Simulates that the current step reads n_bytes at p; each must have this number. */
void shadow_check(shadow *s, const plan_placement *p, size_t n_bytes, uint32_t number);

static inline plan_placement placement_moved(plan_placement p, int64_t n_bytes)
{
    p.offset_bytes += n_bytes;
    return p;
}
static inline bool placement_equal(const plan_placement *a, const plan_placement *b)
{
    return a->kind == b->kind && a->index == b->index && a->offset_bytes == b->offset_bytes;
}

#endif
