/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements clg_cache_*: lists, removes, packs and unpacks the cache of compiled programs.
 */
#include "api/arguments.h"
#include "base/memory.h"
#include "ocl/cache/disk_cache.h"
#include "ocl/ocl.h"

#include <clgraph/inspect.h>

#include <stddef.h>

clg_status clg_cache_path(const char *cache_dir, char **out_path)
{
    API_REQUIRE(out_path);
    *out_path = NULL;
    return ocl_cache_path(cache_dir, out_path);
}

/* clg_cache_list returns `items`; the strings belong to `entries`. */
typedef struct cache_list {
    ocl_cache_entry *entries;
    size_t count;
    clg_cache_entry items[];
} cache_list;

clg_status clg_cache_list(const char *cache_dir, clg_cache_entry **out_entries,
                          size_t *out_n_entries)
{
    API_REQUIRE(out_entries);
    API_REQUIRE(out_n_entries);
    *out_entries = NULL;
    *out_n_entries = 0;
    ocl_cache_entry *entries;
    size_t n;
    CLG_TRY(ocl_cache_list(cache_dir, &entries, &n));
    cache_list *list = memory_zalloc(1, sizeof *list + n * sizeof list->items[0]);
    if (!list) {
        ocl_cache_list_free(entries, n);
        return CLG_ERROR_OUT_OF_HOST_MEMORY;
    }
    list->entries = entries;
    list->count = n;
    for (size_t i = 0; i < n; i++) {
        list->items[i] = (clg_cache_entry){.name = entries[i].name,
                                           .what = entries[i].what,
                                           .size_bytes = entries[i].size_bytes,
                                           .used_seconds = entries[i].used_ns / 1000000000};
    }
    *out_entries = list->items;
    *out_n_entries = n;
    return CLG_OK;
}

void clg_cache_list_free(clg_cache_entry *entries, size_t n_entries)
{
    (void)n_entries;
    if (!entries) return;
    cache_list *list = (cache_list *)(void *)((char *)entries - offsetof(cache_list, items));
    ocl_cache_list_free(list->entries, list->count);
    memory_free(list);
}

clg_status clg_cache_clear(const char *cache_dir, size_t *out_n_removed)
{
    size_t n = 0;
    clg_status status = ocl_cache_clear(cache_dir, &n);
    if (out_n_removed) *out_n_removed = n;
    return status;
}

clg_status clg_cache_remove(const char *cache_dir, const char *pattern, size_t *out_n_removed)
{
    size_t n = 0;
    API_REQUIRE(pattern);
    clg_status status = ocl_cache_remove(cache_dir, pattern, &n);
    if (out_n_removed) *out_n_removed = n;
    return status;
}

clg_status clg_cache_prune(const char *cache_dir, uint64_t max_bytes, size_t *out_n_removed)
{
    size_t n = 0;
    clg_status status = ocl_cache_prune(cache_dir, max_bytes > 0 ? max_bytes : CACHE_MAX_BYTES, &n);
    if (out_n_removed) *out_n_removed = n;
    return status;
}

clg_status clg_cache_pack(const char *cache_dir, const char *file)
{
    API_REQUIRE(file);
    return ocl_cache_pack(cache_dir, file);
}

clg_status clg_cache_unpack(const char *cache_dir, const char *file, size_t *out_n_entries)
{
    API_REQUIRE(file);
    size_t n = 0;
    clg_status status = ocl_cache_unpack(cache_dir, file, &n);
    if (out_n_entries) *out_n_entries = n;
    return status;
}
