/* SPDX-License-Identifier: Apache-2.0
 *
 * Mutates a cache entry or a pack of entries, then makes the checksum of each entry right in nine
 * of ten cases: random bytes never pass a checksum of 128 bits.
 */
#include "fuzz.h"

#include "ocl/cache/cache_entry.h"

#include <string.h>

#define AT_CHECKSUM 8
#define AT_COVERED 24 /* the checksum is of what follows */
#define PACK_HEAD_BYTES 16

static void put_half(uint8_t *to, uint64_t value)
{
    for (int i = 0; i < 8; i++) to[i] = (uint8_t)(value >> (8 * i));
}

static void repair(uint8_t *data, size_t size_bytes)
{
    size_t at =
        size_bytes >= PACK_HEAD_BYTES && memcmp(data, "CLGPACK", 7) == 0 ? PACK_HEAD_BYTES : 0;
    cache_entry entry;
    while (at < size_bytes && cache_entry_peek(data + at, size_bytes - at, &entry)) {
        const hash128 h = hash128_bytes(data + at + AT_COVERED, entry.size_bytes - AT_COVERED);
        put_half(data + at + AT_CHECKSUM, h.low);
        put_half(data + at + AT_CHECKSUM + 8, h.high);
        at += entry.size_bytes;
    }
}

size_t fuzz_mutate_cache(uint8_t *data, size_t size_bytes, size_t max_bytes, unsigned seed)
{
    size_bytes = LLVMFuzzerMutate(data, size_bytes, max_bytes);
    if (seed % 10) repair(data, size_bytes);
    return size_bytes;
}
