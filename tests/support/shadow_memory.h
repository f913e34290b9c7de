/* SPDX-License-Identifier: Apache-2.0
 *
 * A model of the memory that plans place values in: every byte holds a number that says whose content it is. Reading
 * another number than expected, and going beyond the end, fail the test.
 */
#ifndef CLG_TESTS_SHADOW_MEMORY_H
#define CLG_TESTS_SHADOW_MEMORY_H

#include "plan/plan.h"

#define SHADOW_MAX_SPACES 64

typedef struct shadow_space {
    place_kind kind;
    uint32_t index;
    uint32_t *bytes; /* the number that each byte holds; 0: nobody wrote it */
    size_t n_bytes;
} shadow_space;

typedef struct shadow {
    shadow_space spaces[SHADOW_MAX_SPACES];
    size_t n_spaces;
    const plan_segment *segment; /* under way: how long slabs are by now */
    size_t step;                 /* for messages */
    uint32_t last_number;
    size_t n_slab_bytes_read;
} shadow; /* all zeros is empty */

void shadow_add(shadow *s, place_kind kind, uint32_t index, size_t n_bytes);
void shadow_free(shadow *s);
/* False for memory of constants, which no step may write. */
bool shadow_is_writable(place_kind kind);
void shadow_write(shadow *s, const placement *p, size_t n_bytes, uint32_t number);
void shadow_check(shadow *s, const placement *p, size_t n_bytes, uint32_t number);

static inline placement placement_moved(placement p, int64_t n_bytes)
{
    p.offset_bytes += n_bytes;
    return p;
}
static inline bool placement_equal(const placement *a, const placement *b)
{
    return a->kind == b->kind && a->index == b->index && a->offset_bytes == b->offset_bytes;
}

#endif
