/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements the disk cache: reads and writes its entries, and limits the size of its folder.
 */
#include "ocl/cache/disk_cache.h"

#include "base/files.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/threads.h"
#include "ocl/cache/cache_entry.h"
#include "ocl/cache/cache_folder.h"

#include <string.h>

struct disk_cache {
    char *folder; /* NULL: nothing is stored */
    mutex lock;   /* guards the fields below */
    bool unusable;
    bool checked; /* the folder exists, and only this user may write to it */
    bool counted; /* folder_bytes is known */
    uint64_t folder_bytes;
};

clg_status disk_cache_open(const char *cache_dir, disk_cache **out_cache)
{
    *out_cache = NULL;
    disk_cache *s = memory_zalloc(1, sizeof *s);
    if (!s) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    clg_status status = mutex_init(&s->lock);
    if (status != CLG_OK) {
        memory_free(s);
        return status;
    }
    if (!cache_dir || cache_dir[0] != '\0') status = cache_folder_path(cache_dir, &s->folder);
    if (status != CLG_OK && status != CLG_ERROR_OUT_OF_HOST_MEMORY) {
        log_write(CLG_LOG_WARNING, "compiled programs are kept in memory only: %s", error_text());
        status = CLG_OK;
    }
    if (status != CLG_OK) {
        disk_cache_close(s);
        return status;
    }
    *out_cache = s;
    return CLG_OK;
}

void disk_cache_close(disk_cache *s)
{
    if (!s) return;
    mutex_deinit(&s->lock);
    memory_free(s->folder);
    memory_free(s);
}

/* Stores nothing from now on, because of the thread's last error. */
static void give_up(disk_cache *s)
{
    mutex_lock(&s->lock);
    bool first = !s->unusable;
    s->unusable = true;
    mutex_unlock(&s->lock);
    if (first) {
        const char *hint = error_hint_text();
        log_write(CLG_LOG_WARNING,
                  "the program cache cannot be used; programs are kept in memory only: %s%s%s",
                  error_text(), hint[0] ? "; " : "", hint);
    }
}

/* Returns whether the cache can be used as far as known; looks at its folder until that exists. */
static bool is_usable(disk_cache *s)
{
    mutex_lock(&s->lock);
    const bool usable = s->folder && !s->unusable, must_check = usable && !s->checked;
    mutex_unlock(&s->lock);
    if (!must_check || !file_exists(s->folder)) return usable;
    if (file_check_private(s->folder) != CLG_OK) {
        give_up(s);
        return false;
    }
    mutex_lock(&s->lock);
    s->checked = true;
    mutex_unlock(&s->lock);
    return true;
}

bool disk_cache_is_on_disk(disk_cache *s) { return is_usable(s); }

static clg_status path_of(const disk_cache *s, hash128 key, char **out_path)
{
    char name[CACHE_ENTRY_NAME_BYTES];
    cache_entry_name(key, name);
    return file_join(s->folder, name, out_path);
}

/* Verifies the entry in data and moves its payload to the start of data. Returns false when it is
 * damaged or has another key. */
static bool take_payload(hash128 key, char *data, size_t n_bytes, size_t *out_payload_bytes)
{
    cache_entry entry;
    if (!cache_entry_read(data, n_bytes, &entry) || entry.size_bytes != n_bytes ||
        !hash128_equal(entry.key, key))
        return false;
    memmove(data, entry.payload, entry.payload_bytes);
    *out_payload_bytes = entry.payload_bytes;
    return true;
}

bool disk_cache_get(disk_cache *s, hash128 key, char **out_data, size_t *out_size_bytes)
{
    char *path = NULL, *data = NULL;
    size_t n_bytes = 0;
    *out_data = NULL;
    *out_size_bytes = 0;
    if (!is_usable(s) || path_of(s, key, &path) != CLG_OK) return false;
    bool found = false;
    if (file_is_folder(path)) {
        log_write(CLG_LOG_INFO, "'%s' is a folder: skipped", path);
    } else if (file_exists(path)) {
        if (file_read(path, CACHE_MAX_BYTES, &data, &n_bytes) != CLG_OK)
            log_write(CLG_LOG_INFO, "skipping an entry of the program cache: %s", error_text());
        else if (!(found = take_payload(key, data, n_bytes, out_size_bytes)))
            log_write(CLG_LOG_INFO, "'%s' is damaged or foreign: skipped", path);
    }
    if (found) {
        file_touch(path);
        *out_data = data;
    } else {
        memory_free(data);
    }
    memory_free(path);
    return found;
}

/* Adds a new entry's size, and evicts when the folder has grown too large. The first time, removes
 * what processes that have died were writing. */
static void keep_bounded(disk_cache *s, uint64_t added_bytes)
{
    mutex_lock(&s->lock);
    if (!s->counted) {
        size_t n_removed;
        (void)cache_folder_prune(s->folder, UINT64_MAX, &n_removed);
        s->counted = cache_folder_size(s->folder, &s->folder_bytes) == CLG_OK;
    } else {
        s->folder_bytes += added_bytes;
    }
    if (s->counted && s->folder_bytes > CACHE_MAX_BYTES) {
        size_t n_removed;
        (void)cache_folder_prune(s->folder, CACHE_MAX_BYTES / 4 * 3, &n_removed);
        s->counted = false; /* other processes may have pruned too */
    }
    mutex_unlock(&s->lock);
}

void disk_cache_put(disk_cache *s, hash128 key, const char *what, const void *data,
                    size_t size_bytes)
{
    char *path = NULL;
    size_t entry_bytes;
    if (!is_usable(s) || size_bytes > CACHE_MAX_BYTES / 4) return;
    char *entry = cache_entry_make(key, what, data, size_bytes, &entry_bytes);
    if (!entry) return;
    if (path_of(s, key, &path) == CLG_OK) {
        clg_status status = file_make_folders(s->folder);
        if (status == CLG_OK) status = file_check_private(s->folder);
        /* A folder in the place of an entry is in the way of this one only. */
        const bool is_blocked = status == CLG_OK && file_is_folder(path);
        if (status == CLG_OK && !is_blocked) status = file_replace(path, entry, entry_bytes);
        if (status == CLG_ERROR_IO) /* memory may run out, or be refused, for one caller only */
            give_up(s);
        else if (status == CLG_OK && !is_blocked)
            keep_bounded(s, entry_bytes);
    }
    memory_free(path);
    memory_free(entry);
}
