/* SPDX-License-Identifier: Apache-2.0
 *
 * Hashes with XXH3, inlined from the header of libxxhash: nothing is linked.
 */
#include "base/hash.h"

#include <stdio.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

uint64_t hash_bytes(const void *data, size_t size_bytes, uint64_t seed)
{
    return XXH3_64bits_withSeed(data, size_bytes, seed);
}

uint64_t hash_string(const char *text) { return hash_bytes(text, strlen(text), 0); }

hash128 hash128_bytes(const void *data, size_t size_bytes)
{
    XXH128_hash_t hash = XXH3_128bits(data, size_bytes);
    return (hash128){.low = hash.low64, .high = hash.high64};
}

void hash128_hex(hash128 hash, char out_text[33])
{
    (void)snprintf(out_text, 33, "%016llx%016llx", (unsigned long long)hash.high,
                   (unsigned long long)hash.low);
}
