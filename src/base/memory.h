/* SPDX-License-Identifier: Apache-2.0
 *
 * Allocates host memory. All allocations of the library use these functions, so that they use the
 * application's allocator, or one that fails in tests. A failed allocation returns NULL and records
 * the error message; the caller returns CLG_ERROR_OUT_OF_HOST_MEMORY.
 * See decision 2.
 */
#ifndef CLG_BASE_MEMORY_H
#define CLG_BASE_MEMORY_H

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

/* Sets the allocator; NULL restores malloc. INVALID_ARGUMENT while blocks are live, which the new
 * allocator could not free. */
clg_status memory_set_allocator(const clg_allocator *allocator);

void *memory_alloc(size_t size_bytes);                /* size 0 gives a valid pointer */
void *memory_zalloc(size_t n, size_t size_bytes);     /* n * size_bytes, checked, zeroed */
void *memory_resize(void *memory, size_t size_bytes); /* keeps the old block on failure */
void memory_free(void *memory);                       /* accepts NULL */
/* Return a NUL-terminated copy of a string, or of its first n_bytes; freed by memory_free. */
char *memory_strdup(const char *text);
char *memory_strndup(const char *text, size_t n_bytes);
/* Allocates zeroed memory aligned to MEMORY_ALIGNMENT bytes, the size of OpenCL's largest type;
 * freed by memory_free_aligned only. */
#define MEMORY_ALIGNMENT 128
void *memory_alloc_aligned(size_t size_bytes);
void memory_free_aligned(void *memory); /* accepts NULL */
/* Returns the number of live blocks, for leak checks in tests. */
size_t memory_n_live(void);

/* A limit of the memory, on host and device, that the work for one model takes. While a budget is
 * set for a thread, what the thread allocates counts in it, until it is freed by any thread. Blocks
 * keep their budget alive. See decision 55. */
typedef struct memory_budget memory_budget;
/* Creates a budget of max_bytes, of which used_bytes are in use from the start, for good. */
clg_status memory_budget_create(uint64_t max_bytes, uint64_t used_bytes,
                                memory_budget **out_budget);
memory_budget *memory_budget_retain(memory_budget *b); /* accepts NULL, as memory_budget_free */
void memory_budget_free(memory_budget *b);
/* Sets the budget of this thread, NULL for none; returns the one before. It is borrowed. */
memory_budget *memory_budget_set(memory_budget *b);
memory_budget *memory_budget_current(void);
/* Counts bytes in use, of a block that is not memory_alloc's; returns LIMIT, and counts nothing, if
 * they would exceed the budget. b may be NULL, here and below. */
clg_status memory_budget_take(memory_budget *b, uint64_t size_bytes);
void memory_budget_give(memory_budget *b, uint64_t size_bytes);
uint64_t memory_budget_used(const memory_budget *b);
uint64_t memory_budget_max(const memory_budget *b); /* UINT64_MAX for NULL */
/* Returns whether this thread's last failed allocation failed since its budget was used up. */
bool memory_budget_was_refused(void);
void memory_budget_forget_refusal(void);

/* Grows the array *items, of item_bytes each, to a capacity of at least n_needed items,
 * geometrically; *capacity is in items. */
clg_status memory_reserve(void **items, size_t *capacity, size_t n_needed, size_t item_bytes);
#define MEMORY_RESERVE(items, capacity, n_needed)                                                  \
    memory_reserve((void **)&(items), &(capacity), (n_needed), sizeof *(items))

/* An arena: small allocations that are freed together, zeroed and aligned for any type. */
typedef struct arena {
    struct arena_block *blocks;
    size_t size_bytes; /* allocated in total */
} arena;
void *arena_alloc(arena *a, size_t n, size_t size_bytes); /* n * size_bytes, checked */
char *arena_strdup(arena *a, const char *text);
char *arena_strndup(arena *a, const char *text, size_t n_bytes);
char *arena_printf(arena *a, const char *format, ...) CLG_PRINTF(2, 3);
/* Returns whether an address was allocated from the arena. */
bool arena_owns(const arena *a, const void *memory);
/* Frees all allocations of the arena, but keeps one block for reuse. */
void arena_clear(arena *a);
void arena_deinit(arena *a); /* an arena of all zeros is valid and empty */

/* Returns n rounded up to a multiple of `align`; the sum of both must not overflow. */
static inline size_t memory_align_up(size_t n, size_t align)
{
    return (n + align - 1) / align * align;
}

#endif
