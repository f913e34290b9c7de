/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes, reads and verifies cache entries; only this file depends on their format (cache_entry.h).
 */
#include "ocl/cache/cache_entry.h"

#include "base/checked.h"
#include "base/files.h"
#include "base/memory.h"

#include <string.h>

static const char magic[8] = {'C', 'L', 'G', 'S', 'T', 'O', 'R', 'E'};

#define VERSION 1
#define AT_CHECKSUM 8
#define AT_VERSION 24
#define AT_WHAT_BYTES 28
#define AT_KEY 32
#define AT_PAYLOAD_BYTES 48

static void put_number(char *at, uint64_t value, size_t n_bytes)
{
    for (size_t i = 0; i < n_bytes; i++) at[i] = (char)(unsigned char)(value >> (8 * i));
}

static uint64_t get_number(const char *at, size_t n_bytes)
{
    uint64_t value = 0;
    for (size_t i = 0; i < n_bytes; i++) value |= (uint64_t)(unsigned char)at[i] << (8 * i);
    return value;
}

static void put_hash(char *at, hash128 hash)
{
    put_number(at, hash.low, 8);
    put_number(at + 8, hash.high, 8);
}

static hash128 get_hash(const char *at)
{
    return (hash128){.low = get_number(at, 8), .high = get_number(at + 8, 8)};
}

static hash128 checksum(const char *entry, size_t size_bytes)
{
    return hash128_bytes(entry + AT_VERSION, size_bytes - AT_VERSION);
}

char *cache_entry_make(hash128 key, const char *what, const void *payload, size_t payload_bytes,
                       size_t *out_size_bytes)
{
    size_t what_bytes = strlen(what), size_bytes;
    if (what_bytes > CACHE_ENTRY_WHAT_BYTES) what_bytes = CACHE_ENTRY_WHAT_BYTES;
    if (!checked_add_size(payload_bytes, CACHE_ENTRY_HEADER_BYTES + what_bytes, &size_bytes))
        return NULL;
    char *entry = memory_zalloc(size_bytes, 1);
    if (!entry) return NULL;
    memcpy(entry, magic, sizeof magic);
    put_number(entry + AT_VERSION, VERSION, 4);
    put_number(entry + AT_WHAT_BYTES, what_bytes, 4);
    put_hash(entry + AT_KEY, key);
    put_number(entry + AT_PAYLOAD_BYTES, payload_bytes, 8);
    memcpy(entry + CACHE_ENTRY_HEADER_BYTES, what, what_bytes);
    if (payload_bytes > 0)
        memcpy(entry + CACHE_ENTRY_HEADER_BYTES + what_bytes, payload, payload_bytes);
    put_hash(entry + AT_CHECKSUM, checksum(entry, size_bytes));
    *out_size_bytes = size_bytes;
    return entry;
}

bool cache_entry_peek(const void *data, size_t size_bytes, cache_entry *out_entry)
{
    const char *entry = data;
    *out_entry = (cache_entry){0};
    if (size_bytes < CACHE_ENTRY_HEADER_BYTES || memcmp(entry, magic, sizeof magic) != 0 ||
        get_number(entry + AT_VERSION, 4) != VERSION)
        return false;
    const uint64_t what_bytes = get_number(entry + AT_WHAT_BYTES, 4);
    const uint64_t payload_bytes = get_number(entry + AT_PAYLOAD_BYTES, 8);
    const uint64_t room = size_bytes - CACHE_ENTRY_HEADER_BYTES;
    if (what_bytes > CACHE_ENTRY_WHAT_BYTES || what_bytes > room ||
        payload_bytes > room - what_bytes)
        return false;
    out_entry->key = get_hash(entry + AT_KEY);
    out_entry->what = entry + CACHE_ENTRY_HEADER_BYTES;
    out_entry->what_bytes = (size_t)what_bytes;
    out_entry->payload = out_entry->what + out_entry->what_bytes;
    out_entry->payload_bytes = (size_t)payload_bytes;
    out_entry->size_bytes =
        CACHE_ENTRY_HEADER_BYTES + out_entry->what_bytes + out_entry->payload_bytes;
    return true;
}

bool cache_entry_read(const void *data, size_t size_bytes, cache_entry *out_entry)
{
    const char *entry = data;
    if (!cache_entry_peek(data, size_bytes, out_entry)) return false;
    const hash128 stored = get_hash(entry + AT_CHECKSUM),
                  real = checksum(entry, out_entry->size_bytes);
    return hash128_equal(stored, real);
}

static const char suffix[] = ".clb";

void cache_entry_name(hash128 key, char out_name[CACHE_ENTRY_NAME_BYTES])
{
    hash128_hex(key, out_name);
    memcpy(out_name + 32, suffix, sizeof suffix);
}

bool cache_entry_is_name(const char *name, bool *out_is_temporary)
{
    *out_is_temporary = false;
    if (strspn(name, "0123456789abcdef") != 32 ||
        strncmp(name + 32, suffix, sizeof suffix - 1) != 0)
        return false;
    const char *rest = name + 32 + sizeof suffix - 1;
    *out_is_temporary = strncmp(rest, FILE_TEMPORARY_MARK, sizeof FILE_TEMPORARY_MARK - 1) == 0;
    return *rest == '\0' || *out_is_temporary;
}
