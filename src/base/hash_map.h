/* SPDX-License-Identifier: Apache-2.0
 *
 * A hash map from byte strings to size_t (an index or a count). Keys are copied.
 */
#ifndef CLG_BASE_HASH_MAP_H
#define CLG_BASE_HASH_MAP_H

#include "base/memory.h"

typedef struct hash_map {
    struct map_entry *entries; /* open addressing */
    size_t capacity, count;
    uint64_t seed; /* of the hashes */
    arena keys;    /* freed together: freeing a million keys one by one takes a quarter second */
} hash_map;        /* all zeros is valid and empty */

#define HASH_MAP_NONE ((size_t)-1)

/* Inserts a key with a value, or replaces the value of an existing key. */
clg_status hash_map_set(hash_map *m, const void *key, size_t key_bytes, size_t value);
size_t hash_map_get(const hash_map *m, const void *key,
                    size_t key_bytes); /* HASH_MAP_NONE if absent */
clg_status hash_map_set_string(hash_map *m, const char *key, size_t value);
size_t hash_map_get_string(const hash_map *m, const char *key);
void hash_map_deinit(hash_map *m);

#endif
