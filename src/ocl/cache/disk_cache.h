/* SPDX-License-Identifier: Apache-2.0
 *
 * Stores bytes by 128-bit key on disk, one file per entry. An entry's checksum is verified before
 * any of its bytes is returned; damaged, foreign and unreadable entries are misses and are
 * replaced. Entries are written to a temporary file and renamed, so several processes may share a
 * folder. A cache whose folder cannot be used, or may be written by others (decision 45), stores
 * nothing and says so once in the log.
 */
#ifndef CLG_OCL_DISK_CACHE_H
#define CLG_OCL_DISK_CACHE_H

#include "base/error.h"
#include "base/hash.h"

typedef struct disk_cache disk_cache;

/* Size of the folder above which the least recently used entries are evicted. */
#define CACHE_MAX_BYTES ((uint64_t)256 << 20)

/* Opens a cache. cache_dir as in ocl_context_options. Does not access the disk; fails only when
 * host memory runs out. */
clg_status disk_cache_open(const char *cache_dir, disk_cache **out_cache);
void disk_cache_close(disk_cache *s); /* accepts NULL */
/* Returns whether entries are stored; false without a folder or when it proved unusable. */
bool disk_cache_is_on_disk(disk_cache *s);
/* Looks up an entry; returns false on a miss. Release *out_data with memory_free. */
bool disk_cache_get(disk_cache *s, hash128 key, char **out_data, size_t *out_size_bytes);
/* Adds or replaces an entry; errors are logged. what: a line for listings. */
void disk_cache_put(disk_cache *s, hash128 key, const char *what, const void *data,
                    size_t size_bytes);

#endif
