/* SPDX-License-Identifier: Apache-2.0
 *
 * Packs all entries of a disk cache into one file, for installers, and unpacks such a file: a
 * header of 16 bytes (magic "CLGPACK1", the number of entries as a little-endian 64-bit integer),
 * then the entries in the format of cache_entry.h, with their checksums. Unpacking verifies all of
 * them before it writes the first.
 */
#include "base/files.h"
#include "base/log.h"
#include "base/memory.h"
#include "ocl/cache/cache_entry.h"
#include "ocl/cache/cache_folder.h"
#include "ocl/ocl.h"

#include <string.h>

#define PACK_HEAD_BYTES 16
static const char magic[8] = {'C', 'L', 'G', 'P', 'A', 'C', 'K', '1'};

/* A growing byte buffer. */
typedef struct block {
    char *data;
    size_t n_bytes, capacity;
} block;

static clg_status append(block *b, const void *data, size_t n_bytes)
{
    CLG_TRY(MEMORY_RESERVE(b->data, b->capacity, b->n_bytes + n_bytes));
    memcpy(b->data + b->n_bytes, data, n_bytes);
    b->n_bytes += n_bytes;
    return CLG_OK;
}

/* Appends the cache entry stored in a file; skips a file that is damaged or was removed. */
static clg_status append_entry(block *b, const char *folder, const char *name, uint64_t *n_entries)
{
    char *path;
    file_view view = {0};
    cache_entry entry;
    clg_status status = CLG_OK;
    CLG_TRY(file_join(folder, name, &path));
    if (file_view_open(path, FILE_VIEW_REGULAR, &view) == CLG_OK &&
        cache_entry_read(view.data, view.size_bytes, &entry) &&
        entry.size_bytes == view.size_bytes) {
        status = append(b, view.data, view.size_bytes);
        if (status == CLG_OK) *n_entries += 1;
    }
    file_view_close(&view);
    memory_free(path);
    return status;
}

static clg_status pack_files(const char *folder, const file_entry *files, size_t n, block *b)
{
    char head[PACK_HEAD_BYTES] = {0};
    uint64_t n_entries = 0;
    memcpy(head, magic, sizeof magic);
    CLG_TRY(append(b, head, sizeof head));
    for (size_t i = 0; i < n; i++) CLG_TRY(append_entry(b, folder, files[i].name, &n_entries));
    for (size_t i = 0; i < 8; i++)
        b->data[sizeof magic + i] = (char)(unsigned char)(n_entries >> (8 * i));
    return CLG_OK;
}

clg_status ocl_cache_pack(const char *cache_dir, const char *file)
{
    char *folder;
    file_entry *files = NULL;
    size_t n = 0;
    block b = {0};
    CLG_TRY(cache_folder_path(cache_dir, &folder));
    clg_status status = file_check_private(folder);
    if (status == CLG_OK) status = cache_folder_files(folder, &files, &n);
    if (status == CLG_OK) status = pack_files(folder, files, n, &b);
    if (status == CLG_OK) status = file_write(file, b.data, b.n_bytes);
    memory_free(b.data);
    file_list_free(files, n);
    memory_free(folder);
    return status;
}

static clg_status damaged(const char *file, const char *what)
{
    return error_set(CLG_ERROR_IO, "'%s' cannot be unpacked: %s", file, what);
}

/* Verifies a pack: its header, all entries and their number, which is returned in *out_n. */
static clg_status check_pack(const char *file, const file_view *view, size_t *out_n)
{
    *out_n = 0;
    if (view->size_bytes < PACK_HEAD_BYTES || memcmp(view->data, magic, sizeof magic) != 0)
        return damaged(file, "it is not a pack of compiled programs");
    uint64_t stored = 0, n = 0;
    for (size_t i = 0; i < 8; i++) stored |= (uint64_t)view->data[sizeof magic + i] << (8 * i);
    cache_entry entry;
    for (size_t at = PACK_HEAD_BYTES; at < view->size_bytes; at += entry.size_bytes, n++)
        if (!cache_entry_read(view->data + at, view->size_bytes - at, &entry))
            return damaged(file, "it is damaged, or of another version of clgraph");
    if (n != stored) return damaged(file, "it is truncated");
    *out_n = (size_t)n;
    return CLG_OK;
}

/* Stores an entry; *out_is_done is false if something that cannot be replaced has its name. */
static clg_status unpack_entry(const char *folder, const uint8_t *data, const cache_entry *entry,
                               bool *out_is_done)
{
    char name[CACHE_ENTRY_NAME_BYTES], *path;
    cache_entry_name(entry->key, name);
    CLG_TRY(file_join(folder, name, &path));
    clg_status status = CLG_OK;
    *out_is_done = !file_is_folder(path);
    if (*out_is_done)
        status = file_replace(path, data, entry->size_bytes);
    else
        log_write(CLG_LOG_WARNING, "'%s' is a folder: skipping this entry of the pack", path);
    memory_free(path);
    return status;
}

static clg_status unpack_into(const char *folder, const char *file, const file_view *view,
                              size_t *out_n_entries)
{
    size_t n;
    CLG_TRY(check_pack(file, view, &n));
    CLG_TRY(file_make_folders(folder));
    CLG_TRY(file_check_private(folder));
    for (size_t at = PACK_HEAD_BYTES, i = 0; i < n; i++) {
        cache_entry entry;
        if (!cache_entry_peek(view->data + at, view->size_bytes - at, &entry))
            return damaged(file, "it changed while it was read");
        bool is_done;
        CLG_TRY(unpack_entry(folder, view->data + at, &entry, &is_done));
        at += entry.size_bytes;
        *out_n_entries += is_done;
    }
    return CLG_OK;
}

clg_status ocl_cache_unpack(const char *cache_dir, const char *file, size_t *out_n_entries)
{
    char *folder;
    file_view view = {0};
    *out_n_entries = 0;
    CLG_TRY(cache_folder_path(cache_dir, &folder));
    clg_status status = file_view_open(file, 0, &view);
    if (status == CLG_OK) status = unpack_into(folder, file, &view, out_n_entries);
    file_view_close(&view);
    memory_free(folder);
    return status;
}
