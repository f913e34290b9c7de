/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements the counting allocator. See counting_alloc.h. Each block is preceded by its size.
 */
#include "support/fakes/counting_alloc.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>

static atomic_size_t live_bytes;

typedef union header {
    size_t size_bytes;
    max_align_t alignment;
} header;

static void *resize(void *user, void *memory, size_t size_bytes)
{
    (void)user;
    header *block = memory ? (header *)memory - 1 : NULL;
    const size_t before = block ? block->size_bytes : 0;
    header *moved = NULL;
    if (size_bytes == 0)
        free(block);
    else if ((moved = realloc(block, sizeof *moved + size_bytes)) == NULL)
        return NULL;
    atomic_fetch_add(&live_bytes, size_bytes);
    atomic_fetch_sub(&live_bytes, before);
    if (!moved) return NULL;
    moved->size_bytes = size_bytes;
    return moved + 1;
}

clg_status counting_alloc_install(void)
{
    const clg_allocator allocator = {.resize = resize};
    return clg_set_allocator(&allocator);
}

clg_status counting_alloc_remove(void) { return clg_set_allocator(NULL); }

size_t counting_alloc_live_bytes(void) { return atomic_load(&live_bytes); }
