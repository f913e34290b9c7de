/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes and reads entries of the disk cache. Offset, size in bytes and meaning of each field of an
 * entry; integers are little-endian:
 *
 *    0  8   magic "CLGSTORE"
 *    8  16  XXH3-128 of everything after it, low half first
 *   24  4   version of this format
 *   28  4   size of the description in bytes
 *   32  16  key, low half first
 *   48  8   size of the payload in bytes
 *   56      description, payload
 */
#ifndef CLG_OCL_CACHE_ENTRY_H
#define CLG_OCL_CACHE_ENTRY_H

#include "base/hash.h"
#include "base/status.h"

#define CACHE_ENTRY_HEADER_BYTES 56
/* Maximum size of a description. */
#define CACHE_ENTRY_WHAT_BYTES 4096
/* Size of an entry's file name: 32 hexadecimal digits of the key, ".clb" and NUL. */
#define CACHE_ENTRY_NAME_BYTES 37

/* The fields of an entry. */
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
 * damaged or of another version. The pointers in *out_entry point into data. */
bool cache_entry_read(const void *data, size_t size_bytes, cache_entry *out_entry);
/* As cache_entry_read, without verifying the checksum. */
bool cache_entry_peek(const void *data, size_t size_bytes, cache_entry *out_entry);

/* Writes the file name of an entry. */
void cache_entry_name(hash128 key, char out_name[CACHE_ENTRY_NAME_BYTES]);
/* Returns whether a file of this name belongs to the cache. *out_is_temporary: it is a temporary
 * file of an entry, which is being written or was left by a crashed process. */
bool cache_entry_is_name(const char *name, bool *out_is_temporary);

#endif
