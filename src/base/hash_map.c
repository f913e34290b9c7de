/* SPDX-License-Identifier: Apache-2.0
 *
 * A hash map with open addressing and linear probing; the capacity is a power of two, the load at
 * most three quarters. Nothing is ever removed, so there are no tombstones. Hashes are seeded by
 * the address of the first entries, so that a file cannot choose keys that collide.
 */
#include "base/hash_map.h"

#include "base/hash.h"

#include <string.h>

struct map_entry {
    char *key; /* in the map's arena; NULL: free */
    size_t key_bytes;
    uint64_t hash;
    size_t value;
};

static uint64_t hash_of(const hash_map *m, const void *key, size_t key_bytes)
{
    return hash_bytes(key, key_bytes, m->seed);
}

/* Returns the entry of the key, or the free entry to insert it into. There must be a free entry. */
static struct map_entry *find(const hash_map *m, const void *key, size_t key_bytes, uint64_t hash)
{
    size_t mask = m->capacity - 1;
    for (size_t i = (size_t)hash & mask;; i = (i + 1) & mask) {
        struct map_entry *entry = &m->entries[i];
        if (!entry->key) return entry;
        if (entry->hash == hash && entry->key_bytes == key_bytes &&
            (key_bytes == 0 || memcmp(entry->key, key, key_bytes) == 0)) {
            return entry;
        }
    }
}

/* Returns the free entry for a key that the map does not have. */
static struct map_entry *find_free(const hash_map *m, uint64_t hash)
{
    const size_t mask = m->capacity - 1;
    size_t i = (size_t)hash & mask;
    while (m->entries[i].key) i = (i + 1) & mask;
    return &m->entries[i];
}

/* Doubles the capacity, without reading the keys: a million of them are not in a cache. */
static clg_status grow(hash_map *m)
{
    hash_map larger = *m;
    larger.capacity = m->capacity > 0 ? m->capacity * 2 : 16;
    larger.entries = memory_zalloc(larger.capacity, sizeof *larger.entries);
    if (!larger.entries) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    if (m->capacity == 0) larger.seed = (uint64_t)(uintptr_t)larger.entries;
    for (size_t i = 0; i < m->capacity; i++) {
        if (m->entries[i].key) *find_free(&larger, m->entries[i].hash) = m->entries[i];
    }
    memory_free(m->entries);
    *m = larger;
    return CLG_OK;
}

clg_status hash_map_set(hash_map *m, const void *key, size_t key_bytes, size_t value)
{
    if (m->count + 1 > m->capacity / 4 * 3) CLG_TRY(grow(m));
    uint64_t hash = hash_of(m, key, key_bytes);
    struct map_entry *entry = find(m, key, key_bytes, hash);
    if (!entry->key) {
        entry->key = arena_strndup(&m->keys, key, key_bytes);
        if (!entry->key) return CLG_ERROR_OUT_OF_HOST_MEMORY;
        entry->key_bytes = key_bytes;
        entry->hash = hash;
        m->count++;
    }
    entry->value = value;
    return CLG_OK;
}

size_t hash_map_get(const hash_map *m, const void *key, size_t key_bytes)
{
    if (m->count == 0) return HASH_MAP_NONE;
    const struct map_entry *entry = find(m, key, key_bytes, hash_of(m, key, key_bytes));
    return entry->key ? entry->value : HASH_MAP_NONE;
}

clg_status hash_map_set_string(hash_map *m, const char *key, size_t value)
{
    return hash_map_set(m, key, strlen(key), value);
}

size_t hash_map_get_string(const hash_map *m, const char *key)
{
    return hash_map_get(m, key, strlen(key));
}

void hash_map_deinit(hash_map *m)
{
    memory_free(m->entries);
    arena_deinit(&m->keys);
    *m = (hash_map){0};
}
