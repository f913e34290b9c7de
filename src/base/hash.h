/* SPDX-License-Identifier: Apache-2.0
 *
 * Hashes with XXH3 (libxxhash), for keys of caches and checksums of files. Not cryptographic.
 */
#ifndef CLG_BASE_HASH_H
#define CLG_BASE_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct hash128 {
    uint64_t low, high;
} hash128;

static inline bool hash128_equal(hash128 a, hash128 b)
{
    return a.low == b.low && a.high == b.high;
}

/* Return the 64-bit or 128-bit XXH3 hash of the bytes, or of a string without its NUL. */
uint64_t hash_bytes(const void *data, size_t size_bytes, uint64_t seed);
uint64_t hash_string(const char *text);
hash128 hash128_bytes(const void *data, size_t size_bytes);
/* Writes the hash as 32 hexadecimal digits and a NUL. */
void hash128_hex(hash128 hash, char out_text[33]);

#endif
