/* SPDX-License-Identifier: Apache-2.0
 *
 * Defines the format of a cache entry: offset, size in bytes, content. Integers are little-endian.
 *
 *    0  8   magic "CLGSTORE"
 *    8  16  XXH3-128 of everything after it, low half first
 *   24  4   version of this format
 *   28  4   bytes of the description
 *   32  16  key, low half first
 *   48  8   bytes of the payload
 *   56      description, payload
 */
#ifndef CLG_OCL_CACHE_ENTRY_H
#define CLG_OCL_CACHE_ENTRY_H

#include "base/hash.h"
#include "base/status.h"

#define CACHE_ENTRY_HEADER_BYTES 56
#define CACHE_ENTRY_WHAT_BYTES 4096
/* 32 digits of the key, ".clb", NUL */
#define CACHE_ENTRY_NAME_BYTES 37

typedef struct cache_entry {
    hash128 key;
    const char *what; /* the description; not NUL-terminated */
    size_t what_bytes;
    const char *payload;
    size_t payload_bytes;
    size_t size_bytes; /* of the whole entry */
} cache_entry;

/* Returns a new entry, released with memory_free; NULL when memory runs out. `what`, a description,
 * is truncated to CACHE_ENTRY_WHAT_BYTES. */
char *cache_entry_make(hash128 key, const char *what, const void *payload, size_t payload_bytes,
                       size_t *out_size_bytes);
/* Reads an entry that starts at data and may be followed by others. Returns false when it is
 * damaged or of another version. The views point into data. */
bool cache_entry_read(const void *data, size_t size_bytes, cache_entry *out_entry);
/* As cache_entry_read, without verifying the checksum. */
bool cache_entry_peek(const void *data, size_t size_bytes, cache_entry *out_entry);

/* Writes the file name of an entry. */
void cache_entry_name(hash128 key, char out_name[CACHE_ENTRY_NAME_BYTES]);
/* Returns whether a file of this name is an entry, or (*out_is_left_over) a temporary file of one,
 * not renamed yet or left over. */
bool cache_entry_is_name(const char *name, bool *out_is_left_over);

#endif
