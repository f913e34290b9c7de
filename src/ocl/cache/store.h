/* SPDX-License-Identifier: Apache-2.0
 *
 * The store on disk: bytes by 128-bit key, one file an entry. An entry's checksum holds before anybody sees a
 * byte of it; damaged, foreign and unreadable entries are misses and are replaced. Entries are written aside
 * and renamed, so several processes may share a folder. A store whose folder cannot be used forgets everything
 * and says so once in the log.
 */
#ifndef CLG_OCL_STORE_H
#define CLG_OCL_STORE_H

#include "base/error.h"
#include "base/hash.h"

typedef struct store store;

/* Beyond this many bytes the least recently used entries go. */
#define STORE_MAX_BYTES ((uint64_t)256 << 20)

/* cache_dir as in ocl_context_options. Does not touch the disk; fails for want of host memory alone. */
clg_status store_open(const char *cache_dir, store **out_store);
void store_close(store *s); /* accepts NULL */
/* False for a store without a folder, or with one that proved unusable. */
bool store_is_on_disk(store *s);
/* False is a miss. *out_data by memory_free. */
bool store_get(store *s, hash128 key, char **out_data, size_t *out_size_bytes);
/* Adds or replaces; what goes wrong is logged. what: a line for listings. */
void store_put(store *s, hash128 key, const char *what, const void *data, size_t size_bytes);

#endif
