/* SPDX-License-Identifier: Apache-2.0
 *
 * The form of one entry of the store, as bytes. All numbers are little-endian:
 *
 *    0  8   magic "CLGSTORE"
 *    8  16  XXH3-128 of everything after it, low half first
 *   24  4   version of this form
 *   28  4   bytes of the description
 *   32  16  key, low half first
 *   48  8   bytes of the payload
 *   56      description, payload
 */
#ifndef CLG_OCL_STORE_ENTRY_H
#define CLG_OCL_STORE_ENTRY_H

#include "base/hash.h"
#include "base/status.h"

#define STORE_ENTRY_HEADER_BYTES 56
#define STORE_ENTRY_WHAT_BYTES 4096
/* 32 digits of the key, ".clb", NUL */
#define STORE_ENTRY_NAME_BYTES 37

typedef struct store_entry {
    hash128 key;
    const char *what; /* not NUL-terminated */
    size_t what_bytes;
    const char *payload;
    size_t payload_bytes;
    size_t size_bytes; /* of it all */
} store_entry;

/* Memory of the caller's by memory_free; NULL when there is none. */
char *store_entry_make(hash128 key, const char *what, const void *payload, size_t payload_bytes,
                       size_t *out_size_bytes);
/* Reads an entry that starts at data and may be followed by others. False when it is damaged or of another
 * version. The views point into data. */
bool store_entry_read(const void *data, size_t size_bytes, store_entry *out_entry);
/* The sizes and the description of an entry alone, its checksum not computed. */
bool store_entry_peek(const void *data, size_t size_bytes, store_entry *out_entry);

void store_entry_name(hash128 key, char out_name[STORE_ENTRY_NAME_BYTES]);
/* Whether a file of this name is an entry; is_left_over: a file written aside and never renamed. */
bool store_entry_is_name(const char *name, bool *out_is_left_over);

#endif
