/* SPDX-License-Identifier: Apache-2.0
 *
 * A hash map from byte strings to size_t (an index or a number). Keys are copied.
 */
#ifndef CLG_BASE_MAP_H
#define CLG_BASE_MAP_H

#include "base/error.h"

typedef struct map {
    struct map_entry *entries; /* open addressing */
    size_t capacity, n;
} map; /* all zeros is valid and empty */

#define MAP_NONE ((size_t)-1)

/* Inserts or replaces. */
clg_status map_set(map *m, const void *key, size_t key_bytes, size_t value);
size_t map_get(const map *m, const void *key, size_t key_bytes); /* MAP_NONE when absent */
clg_status map_set_string(map *m, const char *key, size_t value);
size_t map_get_string(const map *m, const char *key);
void map_deinit(map *m);

#endif
