/* SPDX-License-Identifier: Apache-2.0
 *
 * The store on disk: getting and putting entries, and keeping the folder bounded.
 */
#include "ocl/cache/store.h"

#include "base/files.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/threads.h"
#include "ocl/cache/store_entry.h"
#include "ocl/cache/store_folder.h"

#include <string.h>

struct store {
    char *folder; /* NULL: memory only */
    mutex lock;   /* guards what follows */
    bool unusable;
    bool counted; /* folder_bytes is known */
    uint64_t folder_bytes;
};

clg_status store_open(const char *cache_dir, store **out_store)
{
    *out_store = NULL;
    store *s = memory_zalloc(1, sizeof *s);
    if (!s) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    clg_status status = mutex_init(&s->lock);
    if (status != CLG_OK) {
        memory_free(s);
        return status;
    }
    if (!cache_dir || cache_dir[0] != '\0') status = store_folder_path(cache_dir, &s->folder);
    if (status != CLG_OK && status != CLG_ERROR_OUT_OF_HOST_MEMORY) {
        log_write(CLG_LOG_WARNING, "compiled programs are kept in memory only: %s", error_text());
        status = CLG_OK;
    }
    if (status != CLG_OK) {
        store_close(s);
        return status;
    }
    *out_store = s;
    return CLG_OK;
}

void store_close(store *s)
{
    if (!s) return;
    mutex_deinit(&s->lock);
    memory_free(s->folder);
    memory_free(s);
}

bool store_is_on_disk(store *s)
{
    mutex_lock(&s->lock);
    bool usable = s->folder && !s->unusable;
    mutex_unlock(&s->lock);
    return usable;
}

static clg_status path_of(const store *s, hash128 key, char **out_path)
{
    char name[STORE_ENTRY_NAME_BYTES];
    store_entry_name(key, name);
    return file_join(s->folder, name, out_path);
}

/* ---- get --------------------------------------------------------------------------------------------------- */

static bool same_key(hash128 a, hash128 b) { return a.low == b.low && a.high == b.high; }

/* Turns the whole entry in *data into its payload, in place. */
static bool take_payload(hash128 key, char *data, size_t n_bytes, size_t *out_payload_bytes)
{
    store_entry entry;
    if (!store_entry_read(data, n_bytes, &entry) || entry.size_bytes != n_bytes ||
        !same_key(entry.key, key))
        return false;
    memmove(data, entry.payload, entry.payload_bytes);
    *out_payload_bytes = entry.payload_bytes;
    return true;
}

bool store_get(store *s, hash128 key, char **out_data, size_t *out_size_bytes)
{
    char *path = NULL, *data = NULL;
    size_t n_bytes = 0;
    *out_data = NULL;
    *out_size_bytes = 0;
    if (!s->folder || path_of(s, key, &path) != CLG_OK) return false;
    bool found = false;
    if (file_exists(path)) {
        if (file_read(path, STORE_MAX_BYTES, &data, &n_bytes) != CLG_OK)
            log_write(CLG_LOG_INFO, "an entry of the program store is passed by: %s", error_text());
        else if (!(found = take_payload(key, data, n_bytes, out_size_bytes)))
            log_write(CLG_LOG_INFO, "'%s' is damaged or foreign and is passed by", path);
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

/* ---- put --------------------------------------------------------------------------------------------------- */

static void give_up(store *s)
{
    mutex_lock(&s->lock);
    bool first = !s->unusable;
    s->unusable = true;
    mutex_unlock(&s->lock);
    if (first)
        log_write(CLG_LOG_WARNING,
                  "the program store cannot be written, programs are kept in memory only: %s",
                  error_text());
}

/* Counts a new entry, and makes room when the folder has grown too large. */
static void keep_bounded(store *s, uint64_t added_bytes)
{
    mutex_lock(&s->lock);
    if (!s->counted) {
        s->counted = store_folder_size(s->folder, &s->folder_bytes) == CLG_OK;
    } else {
        s->folder_bytes += added_bytes;
    }
    if (s->counted && s->folder_bytes > STORE_MAX_BYTES) {
        size_t n_removed;
        (void)store_folder_prune(s->folder, STORE_MAX_BYTES / 4 * 3, &n_removed);
        s->counted = false; /* others may have pruned as well */
    }
    mutex_unlock(&s->lock);
}

void store_put(store *s, hash128 key, const char *what, const void *data, size_t size_bytes)
{
    char *path = NULL;
    size_t entry_bytes;
    if (!store_is_on_disk(s) || size_bytes > STORE_MAX_BYTES / 4) return;
    char *entry = store_entry_make(key, what, data, size_bytes, &entry_bytes);
    if (!entry) return;
    if (path_of(s, key, &path) == CLG_OK) {
        clg_status status = file_make_folders(s->folder);
        if (status == CLG_OK) status = file_write_atomic(path, entry, entry_bytes);
        if (status != CLG_OK)
            give_up(s);
        else
            keep_bounded(s, entry_bytes);
    }
    memory_free(path);
    memory_free(entry);
}
