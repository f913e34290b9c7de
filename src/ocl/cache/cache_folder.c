/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists and prunes the cache's folder; implements the operations of `cltool cache` on it.
 */
#include "ocl/cache/cache_folder.h"

#include "base/memory.h"
#include "base/strbuf.h"
#include "ocl/cache/cache_entry.h"
#include "ocl/ocl.h"

#include <stdlib.h>
#include <string.h>

clg_status cache_folder_path(const char *cache_dir, char **out_path)
{
    *out_path = NULL;
    if (!cache_dir) cache_dir = env_get("CLG_CACHE_DIR");
    if (!cache_dir) return file_cache_folder(out_path);
    if (cache_dir[0] == '\0')
        return error_set(CLG_ERROR_INVALID_ARGUMENT,
                         "the folder of compiled programs has an empty name");
    *out_path = memory_strdup(cache_dir);
    return *out_path ? CLG_OK : CLG_ERROR_OUT_OF_HOST_MEMORY;
}

clg_status cache_folder_files(const char *folder, file_entry **out_files, size_t *out_n)
{
    file_entry *files = NULL;
    size_t n = 0, kept = 0;
    *out_files = NULL;
    *out_n = 0;
    if (!file_exists(folder)) return CLG_OK;
    CLG_TRY(file_list(folder, &files, &n));
    for (size_t i = 0; i < n; i++) {
        bool is_temporary;
        if (!files[i].is_folder && cache_entry_is_name(files[i].name, &is_temporary)) {
            file_entry kept_file = files[i];
            files[i] = files[kept];
            files[kept++] = kept_file;
        }
    }
    for (size_t i = kept; i < n; i++) memory_free(files[i].name);
    *out_files = files;
    *out_n = kept;
    return CLG_OK;
}

clg_status cache_folder_size(const char *folder, uint64_t *out_bytes)
{
    file_entry *files;
    size_t n;
    *out_bytes = 0;
    CLG_TRY(cache_folder_files(folder, &files, &n));
    for (size_t i = 0; i < n; i++) *out_bytes += files[i].size_bytes;
    file_list_free(files, n);
    return CLG_OK;
}

static int by_use(const void *a, const void *b)
{
    const file_entry *x = a, *y = b;
    if (x->modified_ns != y->modified_ns) return x->modified_ns < y->modified_ns ? -1 : 1;
    return strcmp(x->name, y->name);
}

static clg_status remove_file(const char *folder, const char *name)
{
    char *path;
    CLG_TRY(file_join(folder, name, &path));
    clg_status status = file_remove(path);
    if (status != CLG_OK && !file_exists(path)) status = CLG_OK; /* another process removed it */
    memory_free(path);
    return status;
}

/* Removes a temporary file if its writer has died. */
static clg_status remove_left_over(const char *folder, const char *name, bool *out_removed)
{
    char *path;
    *out_removed = false;
    CLG_TRY(file_join(folder, name, &path));
    *out_removed = file_remove_left_over(path);
    memory_free(path);
    return CLG_OK;
}

clg_status cache_folder_prune(const char *folder, uint64_t max_bytes, size_t *out_n_removed)
{
    file_entry *files;
    size_t n;
    uint64_t total = 0;
    *out_n_removed = 0;
    CLG_TRY(cache_folder_files(folder, &files, &n));
    for (size_t i = 0; i < n; i++) total += files[i].size_bytes;
    if (n > 0) qsort(files, n, sizeof *files, by_use);
    clg_status status = CLG_OK;
    for (size_t i = 0; i < n && status == CLG_OK; i++) {
        bool is_temporary, is_removed = false;
        (void)cache_entry_is_name(files[i].name, &is_temporary);
        if (is_temporary) {
            status = remove_left_over(folder, files[i].name, &is_removed);
        } else if (files[i].size_bytes == 0 || total > max_bytes) {
            status = remove_file(folder, files[i].name);
            is_removed = status == CLG_OK;
        }
        if (is_removed) {
            total -= files[i].size_bytes;
            *out_n_removed += 1;
        }
    }
    file_list_free(files, n);
    return status;
}

clg_status ocl_cache_path(const char *cache_dir, char **out_path)
{
    return cache_folder_path(cache_dir, out_path);
}

clg_status ocl_cache_clear(const char *cache_dir, size_t *out_n_removed)
{
    char *folder;
    *out_n_removed = 0;
    CLG_TRY(cache_folder_path(cache_dir, &folder));
    clg_status status = cache_folder_prune(folder, 0, out_n_removed);
    memory_free(folder);
    return status;
}

clg_status ocl_cache_prune(const char *cache_dir, uint64_t max_bytes, size_t *out_n_removed)
{
    char *folder;
    *out_n_removed = 0;
    CLG_TRY(cache_folder_path(cache_dir, &folder));
    clg_status status = cache_folder_prune(folder, max_bytes, out_n_removed);
    memory_free(folder);
    return status;
}

/* Returns the description of the entry in a file, "damaged" when it cannot be read; NULL when
 * memory runs out. */
static char *describe(const char *folder, const char *name)
{
    char *path, *what = NULL;
    file_view view = {0};
    cache_entry entry;
    if (file_join(folder, name, &path) != CLG_OK) return NULL;
    if (file_view_open(path, FILE_VIEW_REGULAR, &view) == CLG_OK &&
        cache_entry_read(view.data, view.size_bytes, &entry))
        what = memory_strndup(entry.what, entry.what_bytes);
    else
        what = memory_strdup("damaged");
    file_view_close(&view);
    memory_free(path);
    return what;
}

clg_status ocl_cache_list(const char *cache_dir, ocl_cache_entry **out_entries, size_t *out_n)
{
    char *folder;
    file_entry *files = NULL;
    size_t n = 0;
    *out_entries = NULL;
    *out_n = 0;
    CLG_TRY(cache_folder_path(cache_dir, &folder));
    clg_status status = cache_folder_files(folder, &files, &n);
    ocl_cache_entry *entries = status == CLG_OK ? memory_zalloc(n, sizeof *entries) : NULL;
    if (status == CLG_OK && !entries) status = CLG_ERROR_OUT_OF_HOST_MEMORY;
    size_t n_entries = 0;
    for (size_t i = 0; i < n && status == CLG_OK; i++) {
        bool is_temporary;
        if (!cache_entry_is_name(files[i].name, &is_temporary) || is_temporary) continue;
        ocl_cache_entry *e = &entries[n_entries++];
        e->name = memory_strdup(files[i].name);
        e->what = describe(folder, files[i].name);
        e->size_bytes = files[i].size_bytes;
        e->used_ns = files[i].modified_ns;
        if (!e->name || !e->what) status = CLG_ERROR_OUT_OF_HOST_MEMORY;
    }
    file_list_free(files, n);
    memory_free(folder);
    if (status != CLG_OK) {
        ocl_cache_list_free(entries, n_entries);
        return status;
    }
    *out_entries = entries;
    *out_n = n_entries;
    return CLG_OK;
}

void ocl_cache_list_free(ocl_cache_entry *entries, size_t n)
{
    for (size_t i = 0; i < n && entries; i++) {
        memory_free(entries[i].name);
        memory_free(entries[i].what);
    }
    memory_free(entries);
}

clg_status ocl_cache_remove(const char *cache_dir, const char *pattern, size_t *out_n_removed)
{
    char *folder;
    ocl_cache_entry *entries;
    size_t n;
    *out_n_removed = 0;
    CLG_TRY(ocl_cache_list(cache_dir, &entries, &n));
    clg_status status = cache_folder_path(cache_dir, &folder);
    for (size_t i = 0; i < n && status == CLG_OK; i++) {
        if (!text_matches(pattern, entries[i].what)) continue;
        status = remove_file(folder, entries[i].name);
        *out_n_removed += status == CLG_OK;
    }
    memory_free(folder);
    ocl_cache_list_free(entries, n);
    return status;
}
