/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements memory.h; the only file that calls malloc. Counts live blocks, so that tests can
 * detect leaks and the allocator cannot be replaced while blocks are live. */
#include "base/memory.h"

#include "base/checked.h"
#include "base/threads.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static clg_allocator hook; /* resize NULL: malloc. Written only while no block is live. */
static atomic_size_t n_live;

clg_status memory_set_allocator(const clg_allocator *allocator)
{
    if (allocator && !allocator->resize) {
        return error_set(CLG_ERROR_INVALID_ARGUMENT, "the allocator has no resize function");
    }
    size_t n = memory_n_live();
    if (n > 0) {
        error_set(CLG_ERROR_INVALID_ARGUMENT,
                  "the allocator cannot change while %zu blocks of the one before are in use", n);
        error_hint(
            "set the allocator before the first object is created, or free every object first");
        return CLG_ERROR_INVALID_ARGUMENT;
    }
    hook = allocator ? *allocator : (clg_allocator){0};
    return CLG_OK;
}

size_t memory_n_live(void) { return atomic_load(&n_live); }

/* ---- budgets --------------------------------------------------------------------------------- */

struct memory_budget {
    refcount refs; /* of its owners and of each block that counts in it */
    uint64_t max_bytes;
    atomic_uint_least64_t used_bytes;
};

/* Precedes each block. Its size keeps the alignment of the block that follows. */
typedef struct block_header {
    _Alignas(max_align_t) memory_budget *budget; /* a reference; NULL: the block does not count */
    size_t size_bytes;                           /* that count in the budget */
} block_header;

static _Thread_local memory_budget *current;
static _Thread_local bool was_refused;

static void *raw_resize(void *memory, size_t size_bytes)
{
    return hook.resize ? hook.resize(hook.user, memory, size_bytes) : realloc(memory, size_bytes);
}

static void raw_free(void *memory)
{
    if (hook.resize)
        (void)hook.resize(hook.user, memory, 0);
    else
        free(memory);
}

clg_status memory_budget_create(uint64_t max_bytes, uint64_t used_bytes, memory_budget **out_budget)
{
    memory_budget *b = raw_resize(NULL, sizeof *b);
    *out_budget = b;
    if (!b) return error_no_memory(sizeof *b);
    atomic_fetch_add_explicit(&n_live, 1, memory_order_relaxed);
    refcount_init(&b->refs);
    b->max_bytes = max_bytes;
    atomic_init(&b->used_bytes, used_bytes);
    return CLG_OK;
}

memory_budget *memory_budget_retain(memory_budget *b)
{
    if (b) refcount_retain(&b->refs);
    return b;
}

void memory_budget_free(memory_budget *b)
{
    if (!b || !refcount_release(&b->refs)) return;
    atomic_fetch_sub_explicit(&n_live, 1, memory_order_relaxed);
    raw_free(b);
}

memory_budget *memory_budget_set(memory_budget *b)
{
    memory_budget *before = current;
    current = b;
    return before;
}

memory_budget *memory_budget_current(void) { return current; }

clg_status memory_budget_take(memory_budget *b, uint64_t size_bytes)
{
    if (!b) return CLG_OK;
    uint64_t used = atomic_load(&b->used_bytes);
    do {
        if (used <= b->max_bytes && size_bytes <= b->max_bytes - used) continue;
        was_refused = true;
        (void)error_set(CLG_ERROR_LIMIT,
                        "%" PRIu64 " bytes more would exceed max_memory_bytes: %" PRIu64
                        " of %" PRIu64 " bytes are in use",
                        size_bytes, used, b->max_bytes);
        error_hint("clg_limits.max_memory_bytes sets another limit");
        return CLG_ERROR_LIMIT;
    } while (!atomic_compare_exchange_weak(&b->used_bytes, &used, used + size_bytes));
    return CLG_OK;
}

void memory_budget_give(memory_budget *b, uint64_t size_bytes)
{
    if (b) atomic_fetch_sub(&b->used_bytes, size_bytes);
}

uint64_t memory_budget_used(const memory_budget *b) { return b ? atomic_load(&b->used_bytes) : 0; }

uint64_t memory_budget_max(const memory_budget *b) { return b ? b->max_bytes : UINT64_MAX; }

bool memory_budget_was_refused(void) { return was_refused; }

void memory_budget_forget_refusal(void) { was_refused = false; }

/* ---- blocks ---------------------------------------------------------------------------------- */

/* Records the out-of-memory error, which no budget caused. */
static void *no_memory(size_t size_bytes)
{
    was_refused = false;
    (void)error_no_memory(size_bytes);
    return NULL;
}

/* Allocates a block, zeroed if is_zeroed, which counts in the thread's budget. */
static void *allocate(size_t size_bytes, bool is_zeroed)
{
    const size_t size = size_bytes > 0 ? size_bytes : 1;
    size_t total;
    if (!checked_add_size(size, sizeof(block_header), &total)) return no_memory(size_bytes);
    if (memory_budget_take(current, total) != CLG_OK) return NULL;
    block_header *block = is_zeroed && !hook.resize ? calloc(total, 1) : raw_resize(NULL, total);
    if (!block) {
        memory_budget_give(current, total);
        return no_memory(size_bytes);
    }
    atomic_fetch_add_explicit(&n_live, 1, memory_order_relaxed);
    *block = (block_header){memory_budget_retain(current), total};
    if (is_zeroed && hook.resize) memset(block + 1, 0, size);
    return block + 1;
}

void *memory_alloc(size_t size_bytes) { return allocate(size_bytes, false); }

void *memory_zalloc(size_t n, size_t size_bytes)
{
    size_t total;
    return checked_mul_size(n, size_bytes, &total) ? allocate(total, true) : no_memory(SIZE_MAX);
}

/* A block counts in the budget in which it was allocated, if any. */
void *memory_resize(void *memory, size_t size_bytes)
{
    if (!memory) return memory_alloc(size_bytes);
    block_header *block = (block_header *)memory - 1, *moved;
    const size_t size = size_bytes > 0 ? size_bytes : 1, before = block->size_bytes;
    memory_budget *b = block->budget;
    size_t total;
    if (!checked_add_size(size, sizeof *block, &total)) return no_memory(size_bytes);
    if (total > before && memory_budget_take(b, total - before) != CLG_OK) return NULL;
    moved = raw_resize(block, total);
    if (!moved) {
        if (total > before) memory_budget_give(b, total - before);
        return no_memory(size_bytes);
    }
    if (total < before) memory_budget_give(b, before - total);
    moved->size_bytes = total;
    return moved + 1;
}

void memory_free(void *memory)
{
    if (!memory) return;
    block_header *block = (block_header *)memory - 1;
    memory_budget *b = block->budget;
    atomic_fetch_sub_explicit(&n_live, 1, memory_order_relaxed);
    memory_budget_give(b, block->size_bytes);
    raw_free(block);
    memory_budget_free(b);
}

/* Stores the start of the block just before the aligned address, for memory_free_aligned. */
void *memory_alloc_aligned(size_t size_bytes)
{
    size_t total;
    if (!checked_add_size(size_bytes, MEMORY_ALIGNMENT + sizeof(void *), &total)) {
        (void)error_no_memory(size_bytes);
        return NULL;
    }
    uint8_t *block = memory_zalloc(total, 1);
    if (!block) return NULL;
    uint8_t *aligned = block + sizeof(void *);
    aligned += (MEMORY_ALIGNMENT - (uintptr_t)aligned % MEMORY_ALIGNMENT) % MEMORY_ALIGNMENT;
    memcpy(aligned - sizeof(void *), &block, sizeof(void *));
    return aligned;
}

void memory_free_aligned(void *memory)
{
    if (!memory) return;
    void *block;
    memcpy(&block, (uint8_t *)memory - sizeof(void *), sizeof(void *));
    memory_free(block);
}

char *memory_strndup(const char *text, size_t n_bytes)
{
    size_t total;
    if (!checked_add_size(n_bytes, 1, &total)) {
        (void)error_no_memory(n_bytes);
        return NULL;
    }
    char *copy = memory_alloc(total);
    if (!copy) return NULL;
    if (n_bytes > 0) memcpy(copy, text, n_bytes);
    copy[n_bytes] = '\0';
    return copy;
}

char *memory_strdup(const char *text) { return memory_strndup(text, strlen(text)); }

clg_status memory_reserve(void **items, size_t *capacity, size_t n_needed, size_t item_bytes)
{
    if (n_needed <= *capacity) return CLG_OK;
    size_t n = *capacity > SIZE_MAX / 2 ? n_needed : *capacity * 2;
    if (n < 8) n = 8;
    if (n < n_needed) n = n_needed;
    size_t total;
    if (!checked_mul_size(n, item_bytes, &total)) return error_no_memory(SIZE_MAX);
    void *grown = memory_resize(*items, total);
    if (!grown) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    *items = grown;
    *capacity = n;
    return CLG_OK;
}

/* ---- arena ----------------------------------------------------------------------------------- */

typedef struct arena_block {
    struct arena_block *next;
    size_t used_bytes, capacity_bytes;
    max_align_t data[]; /* aligned for any type */
} arena_block;

#define ARENA_FIRST_BYTES ((size_t)4096)
/* Less than the size from which malloc maps and unmaps memory for every block. */
#define ARENA_LARGEST_BYTES ((size_t)1 << 16)

/* Adds a block to the arena: twice as large as the last one, up to 64 KiB, or as large as needed.
 */
static arena_block *add_block(arena *a, size_t needed_bytes)
{
    size_t capacity = a->blocks ? a->blocks->capacity_bytes : ARENA_FIRST_BYTES / 2;
    capacity = capacity < ARENA_LARGEST_BYTES / 2 ? capacity * 2 : ARENA_LARGEST_BYTES;
    if (capacity < needed_bytes) capacity = needed_bytes;
    size_t total;
    if (!checked_add_size(sizeof(arena_block), capacity, &total)) {
        (void)error_no_memory(needed_bytes);
        return NULL;
    }
    arena_block *block = memory_zalloc(total, 1);
    if (!block) return NULL;
    block->capacity_bytes = capacity;
    block->next = a->blocks;
    a->blocks = block;
    return block;
}

void *arena_alloc(arena *a, size_t n, size_t size_bytes)
{
    const size_t alignment = _Alignof(max_align_t);
    size_t total;
    if (!checked_mul_size(n, size_bytes, &total) || total > SIZE_MAX - alignment) {
        (void)error_no_memory(SIZE_MAX);
        return NULL;
    }
    size_t rounded = total > 0 ? (total + alignment - 1) / alignment * alignment : alignment;
    arena_block *block = a->blocks;
    if (!block || block->capacity_bytes - block->used_bytes < rounded)
        block = add_block(a, rounded);
    if (!block) return NULL;
    void *memory = (uint8_t *)block->data + block->used_bytes;
    block->used_bytes += rounded;
    a->size_bytes += rounded;
    return memory;
}

char *arena_strndup(arena *a, const char *text, size_t n_bytes)
{
    if (n_bytes == SIZE_MAX) {
        (void)error_no_memory(n_bytes);
        return NULL;
    }
    char *copy = arena_alloc(a, n_bytes + 1, 1);
    if (copy && n_bytes > 0) memcpy(copy, text, n_bytes);
    return copy;
}

char *arena_strdup(arena *a, const char *text) { return arena_strndup(a, text, strlen(text)); }

char *arena_printf(arena *a, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (length < 0) {
        (void)error_set(CLG_ERROR_INTERNAL, "a text cannot be formatted");
        return NULL;
    }
    char *copy = arena_alloc(a, (size_t)length + 1, 1);
    if (!copy) return NULL;
    va_start(args, format);
    (void)vsnprintf(copy, (size_t)length + 1, format, args);
    va_end(args);
    return copy;
}

bool arena_owns(const arena *a, const void *memory)
{
    const uintptr_t at = (uintptr_t)memory;
    for (const arena_block *block = a->blocks; block; block = block->next) {
        const uintptr_t start = (uintptr_t)block->data;
        if (at >= start && at - start < block->used_bytes) return true;
    }
    return false;
}

static void free_blocks(arena_block *block)
{
    while (block) {
        arena_block *next = block->next;
        memory_free(block);
        block = next;
    }
}

void arena_clear(arena *a)
{
    arena_block *kept = a->blocks;
    if (!kept) return;
    free_blocks(kept->next);
    kept->next = NULL;
    memset(kept->data, 0, kept->used_bytes);
    kept->used_bytes = 0;
    a->size_bytes = 0;
}

void arena_deinit(arena *a)
{
    free_blocks(a->blocks);
    *a = (arena){0};
}
