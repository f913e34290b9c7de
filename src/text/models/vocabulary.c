/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements the vocabulary of vocabulary.h. Hashes are seeded by an address, so that a file cannot
 * choose tokens that collide.
 */
#include "text/models/vocabulary.h"

#include "base/hash.h"
#include "base/memory.h"

#include <string.h>

clg_status vocabulary_append(vocabulary *v, const char *token, size_t n_bytes)
{
    if (n_bytes > MAX_TOKEN_BYTES)
        return error_set(CLG_ERROR_LIMIT, "token %zu has more than %d bytes", v->n_tokens,
                         MAX_TOKEN_BYTES);
    if (v->n_tokens >= MAX_TOKENS || v->n_bytes > INT32_MAX)
        return error_set(CLG_ERROR_LIMIT, "there are more than %d tokens", MAX_TOKENS);
    CLG_TRY(MEMORY_RESERVE(v->bytes, v->bytes_capacity, v->n_bytes + n_bytes + 1));
    CLG_TRY(MEMORY_RESERVE(v->starts, v->starts_capacity, v->n_tokens + 2));
    memcpy(v->bytes + v->n_bytes, token, n_bytes);
    v->bytes[v->n_bytes + n_bytes] = '\0';
    v->starts[v->n_tokens++] = (uint32_t)v->n_bytes;
    v->n_bytes += n_bytes + 1;
    v->starts[v->n_tokens] = (uint32_t)v->n_bytes;
    if (n_bytes > v->longest_bytes) v->longest_bytes = n_bytes;
    return CLG_OK;
}

/* Returns the slot of a token, or the free one where it belongs. */
static uint32_t *find_slot(const vocabulary *v, const char *token, size_t n_bytes)
{
    const size_t mask = v->n_slots - 1;
    for (size_t i = (size_t)hash_bytes(token, n_bytes, v->seed) & mask;; i = (i + 1) & mask) {
        uint32_t *slot = &v->slots[i];
        size_t other_bytes = 0;
        if (*slot == 0) return slot;
        const char *other = vocabulary_token(v, *slot - 1, &other_bytes);
        if (other_bytes == n_bytes && memcmp(other, token, n_bytes) == 0) return slot;
    }
}

clg_status vocabulary_index(vocabulary *v)
{
    memory_free(v->slots);
    v->n_slots = 16;
    while (v->n_slots < v->n_tokens * 2) v->n_slots *= 2;
    v->slots = memory_zalloc(v->n_slots, sizeof *v->slots);
    if (!v->slots) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    v->seed = (uint64_t)(uintptr_t)v->slots;
    for (size_t id = 0; id < v->n_tokens; id++) {
        size_t n_bytes;
        const char *token = vocabulary_token(v, id, &n_bytes);
        *find_slot(v, token, n_bytes) = (uint32_t)id + 1;
    }
    return CLG_OK;
}

void vocabulary_deinit(vocabulary *v)
{
    memory_free(v->bytes);
    memory_free(v->starts);
    memory_free(v->slots);
    *v = (vocabulary){0};
}

int32_t vocabulary_find(const vocabulary *v, const char *token, size_t n_bytes)
{
    if (v->n_slots == 0 || n_bytes > v->longest_bytes) return -1;
    return (int32_t)*find_slot(v, token, n_bytes) - 1;
}
