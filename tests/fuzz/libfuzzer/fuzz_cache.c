/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads an entry of the program cache, unpacks a pack of entries into a folder, packs that folder
 * again, and looks the entries up. Mutated by mutate_cache.c, which keeps checksums right.
 */
#include "fuzz.h"

#include "ocl/cache/cache_entry.h"
#include "ocl/cache/cache_folder.h"
#include "ocl/cache/disk_cache.h"
#include "ocl/ocl.h"
#include "support/platform.h"
#include "support/scratch.h"

#include "base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void look_up(const char *folder, const cache_entry *entry)
{
    disk_cache *cache;
    char *payload;
    size_t n;
    fuzz_require(disk_cache_open(folder, &cache) == CLG_OK);
    if (disk_cache_get(cache, entry->key, &payload, &n)) {
        fuzz_require(n == entry->payload_bytes);
        fuzz_require(n == 0 || memcmp(payload, entry->payload, n) == 0);
        memory_free(payload);
    }
    disk_cache_close(cache);
}

/* What an entry holds makes the same entry again. */
static void make_again(const cache_entry *entry, const uint8_t *data)
{
    size_t size_bytes;
    char *what = fuzz_text((const uint8_t *)entry->what, entry->what_bytes);
    char *again =
        cache_entry_make(entry->key, what, entry->payload, entry->payload_bytes, &size_bytes);
    fuzz_require(again);
    if (strlen(what) == entry->what_bytes)
        fuzz_require(size_bytes == entry->size_bytes && memcmp(again, data, size_bytes) == 0);
    memory_free(again);
    free(what);
}

static void read_entry(const char *folder, const uint8_t *data, size_t size_bytes)
{
    cache_entry entry;
    char name[CACHE_ENTRY_NAME_BYTES], path[1200];
    bool is_left_over;
    char *text = fuzz_text(data, size_bytes);
    (void)cache_entry_is_name(text, &is_left_over);
    free(text);
    if (!cache_entry_peek(data, size_bytes, &entry)) return;
    fuzz_require(entry.size_bytes <= size_bytes);
    if (!cache_entry_read(data, size_bytes, &entry)) return;
    cache_entry_name(entry.key, name);
    (void)snprintf(path, sizeof path, "fuzz-cache/%s", name);
    (void)fuzz_file(path, data, size_bytes);
    look_up(folder, &entry);
    make_again(&entry, data);
}

void fuzz_cache(const uint8_t *data, size_t size_bytes)
{
    char folder[1024], pack[1024];
    size_t n_entries;
    uint64_t n_bytes;
    (void)snprintf(folder, sizeof folder, "%s/fuzz-cache", scratch_folder());
    fuzz_require(file_make_folders(folder) == CLG_OK);
    read_entry(folder, data, size_bytes);
    (void)snprintf(pack, sizeof pack, "%s", fuzz_file("fuzz.pack", data, size_bytes));
    if (ocl_cache_unpack(folder, pack, &n_entries) == CLG_OK) {
        fuzz_require(n_entries <= size_bytes / CACHE_ENTRY_HEADER_BYTES);
        fuzz_require(ocl_cache_pack(folder, pack) == CLG_OK);
        fuzz_require(ocl_cache_unpack(folder, pack, &n_entries) == CLG_OK);
    }
    fuzz_require(cache_folder_size(folder, &n_bytes) == CLG_OK);
    fuzz_require(cache_folder_prune(folder, 0, &n_entries) == CLG_OK);
}
