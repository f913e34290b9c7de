/* SPDX-License-Identifier: Apache-2.0
 *
 * The format of one cache entry. All integers are little-endian:
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
    const char *what; /* not NUL-terminated */
    size_t what_bytes;
    const char *payload;
    size_t payload_bytes;
    size_t size_bytes; /* of the whole entry */
} cache_entry;

/* Creates an entry, released with memory_free; NULL when memory runs out. */
char *cache_entry_make(hash128 key, const char *what, const void *payload, size_t payload_bytes,
                       size_t *out_size_bytes);
/* Reads an entry that starts at data and may be followed by others. Returns false when it is
 * damaged or of another version. The views point into data. */
bool cache_entry_read(const void *data, size_t size_bytes, cache_entry *out_entry);
/* Reads only the sizes and the description of an entry, without computing its checksum. */
bool cache_entry_peek(const void *data, size_t size_bytes, cache_entry *out_entry);

void cache_entry_name(hash128 key, char out_name[CACHE_ENTRY_NAME_BYTES]);
/* Returns whether a file of this name is an entry; is_left_over: a temporary file that was never
 * renamed. */
bool cache_entry_is_name(const char *name, bool *out_is_left_over);

#endif
