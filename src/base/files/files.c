/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements files.h, except for writing (file_write.c), on top of system.h, which has the
 * functions that differ between systems.
 * Errors are CLG_ERROR_IO and name the path and the cause.
 */
#include "base/files.h"

#include "base/checked.h"
#include "base/memory.h"
#include "base/system.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- reading --------------------------------------------------------------------------------- */

/* Returns the number of bytes read, 0 at the end of the file only; -1 with errno on failure. */
static int64_t read_some(int fd, void *data, size_t n_bytes)
{
    for (;;) {
        int64_t n = sys_read(fd, data, n_bytes);
        if (n >= 0 || errno != EINTR) return n;
    }
}

/* Reads up to the end of the file; expected_bytes is the initial size of the memory, which grows as
 * needed. */
static clg_status read_all(int fd, const char *path, size_t expected_bytes, size_t max_bytes,
                           char **out_data, size_t *out_size_bytes)
{
    clg_status status = CLG_OK;
    char *data = NULL;
    size_t capacity = 0, n = 0;
    for (;;) {
        /* One extra byte, so that the end is found without growing, and one for the NUL. */
        size_t needed = n < expected_bytes ? expected_bytes + 2 : n + 2;
        CLG_TRY_GOTO(MEMORY_RESERVE(data, capacity, needed), fail);
        int64_t got = read_some(fd, data + n, capacity - 1 - n);
        if (got < 0) {
            status = error_path("read", path, errno);
            goto fail;
        }
        if (got == 0) break;
        n += (size_t)got;
        if (n > max_bytes) {
            status =
                error_set(CLG_ERROR_IO, "'%s' is larger than the %zu bytes that are read of it",
                          path, max_bytes);
            goto fail;
        }
    }
    data[n] = '\0';
    *out_data = data;
    *out_size_bytes = n;
    return CLG_OK;
fail:
    memory_free(data);
    return status;
}

/* Opens a file for reading and returns its kind and size. For a regular file only it does not wait
 * for the other end of a pipe. */
static clg_status open_file(const char *path, bool must_be_regular, int *out_fd, sys_info *out_info)
{
    int fd = must_be_regular ? sys_open_read_now(path) : sys_open_read(path);
    if (fd < 0) return error_path("opened", path, errno);
    if (sys_stat_open(fd, out_info) != 0) {
        clg_status status = error_path("read", path, errno);
        (void)sys_close(fd);
        return status;
    }
    if (out_info->is_folder) {
        (void)sys_close(fd);
        return error_set(CLG_ERROR_IO, "'%s' is a folder, not a file", path);
    }
    if (must_be_regular && !out_info->is_regular) {
        (void)sys_close(fd);
        return error_set(CLG_ERROR_IO, "'%s' is not a regular file, but a pipe or a device", path);
    }
    *out_fd = fd;
    return CLG_OK;
}

clg_status file_view_open(const char *path, unsigned flags, file_view *out_view)
{
    *out_view = (file_view){0};
    int fd;
    sys_info info;
    CLG_TRY(open_file(path, flags & FILE_VIEW_REGULAR, &fd, &info));
    clg_status status = CLG_OK;
    const bool is_sized = info.is_regular && info.size_bytes > 0 && info.size_bytes < SIZE_MAX / 2;
    if (is_sized && !(flags & FILE_VIEW_READ)) {
        out_view->size_bytes = (size_t)info.size_bytes;
        out_view->data = sys_map(fd, out_view->size_bytes);
    }
    if (!out_view->data) { /* a pipe, a device, a file system without mapping */
        char *copy = NULL;
        size_t size_bytes = 0;
        const size_t expected = is_sized ? (size_t)info.size_bytes : 0;
        status = read_all(fd, path, expected, SIZE_MAX / 2, &copy, &size_bytes);
        *out_view =
            (file_view){.data = (const uint8_t *)copy, .size_bytes = size_bytes, .copy = copy};
    }
    (void)sys_close(fd);
    return status;
}

void file_view_close(file_view *view)
{
    if (view->copy) {
        memory_free(view->copy);
    } else if (view->data) {
        sys_unmap((void *)(uintptr_t)view->data, view->size_bytes);
    }
    *view = (file_view){0};
}

void file_view_unload(const file_view *view, const void *data, size_t size_bytes)
{
    if (view->data && !view->copy) sys_unload((void *)(uintptr_t)data, size_bytes);
}

clg_status file_reader_open(const char *path, file_reader *out_reader)
{
    *out_reader = (file_reader){0};
    int fd;
    sys_info info;
    CLG_TRY(open_file(path, true, &fd, &info));
    char *copy = memory_strdup(path);
    if (!copy) {
        (void)sys_close(fd);
        return CLG_ERROR_OUT_OF_HOST_MEMORY;
    }
    *out_reader = (file_reader){.path = copy, .descriptor = fd, .size_bytes = info.size_bytes};
    return CLG_OK;
}

clg_status file_reader_read(file_reader *reader, uint64_t offset, void *data, size_t n_bytes)
{
    if (offset != reader->position && sys_seek(reader->descriptor, offset) != 0)
        return error_path("read", reader->path, errno);
    reader->position = UINT64_MAX; /* not known until all is read */
    for (char *to = data; n_bytes > 0;) {
        int64_t n = read_some(reader->descriptor, to, n_bytes);
        if (n < 0) return error_path("read", reader->path, errno);
        if (n == 0)
            return error_set(CLG_ERROR_IO, "'%s' has become shorter while it was read",
                             reader->path);
        to += n;
        offset += (uint64_t)n;
        n_bytes -= (size_t)n;
    }
    reader->position = offset;
    return CLG_OK;
}

void file_reader_close(file_reader *reader)
{
    if (reader->path) (void)sys_close(reader->descriptor);
    memory_free(reader->path);
    *reader = (file_reader){0};
}

clg_status file_read(const char *path, size_t max_bytes, char **out_data, size_t *out_size_bytes)
{
    *out_data = NULL;
    *out_size_bytes = 0;
    int fd;
    sys_info info;
    CLG_TRY(open_file(path, true, &fd, &info));
    bool known = info.is_regular && info.size_bytes <= max_bytes && info.size_bytes < SIZE_MAX / 2;
    size_t expected = known ? (size_t)info.size_bytes : 0;
    clg_status status = read_all(fd, path, expected, max_bytes, out_data, out_size_bytes);
    (void)sys_close(fd);
    return status;
}

/* ---- folders --------------------------------------------------------------------------------- */

bool file_is_folder(const char *path)
{
    sys_info info;
    return sys_stat(path, &info) == 0 && info.is_folder;
}

clg_status file_make_folders(const char *path)
{
    if (file_is_folder(path)) return CLG_OK;
    char *part = memory_strdup(path);
    if (!part) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    clg_status status = CLG_OK;
    size_t length = strlen(path);
    const size_t root = sys_root_bytes(path);
    for (size_t i = root < length ? root + 1 : length; i <= length && status == CLG_OK; i++) {
        if (i < length && !sys_is_separator(part[i])) continue;
        part[i] = '\0';
        /* Another process may create the folder concurrently: success is that it exists. */
        if (sys_make_folder(part) != 0) {
            int number = errno;
            if (!file_is_folder(part)) status = error_path("made as a folder", part, number);
        }
        part[i] = path[i];
    }
    memory_free(part);
    return status;
}

bool file_exists(const char *path)
{
    sys_info info;
    return sys_stat(path, &info) == 0;
}

clg_status file_check_private(const char *folder)
{
    const char *words;
    if (sys_is_private(folder, &words)) return CLG_OK;
    (void)error_set(CLG_ERROR_IO, "the folder '%s' %s", folder, words);
    error_hint("use a folder that belongs to this user and that only this user may write to");
    return CLG_ERROR_IO;
}

bool file_is_allowed(const char *path, bool reading, bool writing)
{
    return sys_may(path, reading, writing);
}

void file_touch(const char *path) { (void)sys_touch(path); }

clg_status file_remove(const char *path)
{
    return sys_remove(path) == 0 ? CLG_OK : error_path("removed", path, errno);
}

typedef struct listing {
    const char *folder;
    file_entry *entries;
    size_t count, capacity;
    clg_status status;
} listing;

static clg_status list_entry(listing *list, const char *name)
{
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0) return CLG_OK;
    char *path;
    sys_info info;
    CLG_TRY(file_join(list->folder, name, &path));
    bool there = sys_stat(path, &info) == 0;
    memory_free(path);
    if (!there) return CLG_OK;
    CLG_TRY(MEMORY_RESERVE(list->entries, list->capacity, list->count + 1));
    char *copy = memory_strdup(name);
    if (!copy) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    list->entries[list->count++] = (file_entry){.name = copy,
                                                .size_bytes = info.size_bytes,
                                                .modified_ns = info.modified_ns,
                                                .accessed_ns = info.accessed_ns,
                                                .is_folder = info.is_folder};
    return CLG_OK;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const file_entry *)a)->name, ((const file_entry *)b)->name);
}

static bool visit_entry(void *user, const char *name)
{
    listing *list = user;
    list->status = list_entry(list, name);
    return list->status == CLG_OK;
}

clg_status file_list(const char *folder, file_entry **out_entries, size_t *out_n)
{
    *out_entries = NULL;
    *out_n = 0;
    listing list = {.folder = folder};
    if (sys_list(folder, visit_entry, &list) != 0)
        list.status = error_path("listed", folder, errno);
    if (list.status != CLG_OK) {
        file_list_free(list.entries, list.count);
        return list.status;
    }
    if (list.count > 1) qsort(list.entries, list.count, sizeof *list.entries, by_name);
    *out_entries = list.entries;
    *out_n = list.count;
    return CLG_OK;
}

void file_list_free(file_entry *entries, size_t n)
{
    for (size_t i = 0; i < n; i++) memory_free(entries[i].name);
    memory_free(entries);
}

/* ---- paths and environment ------------------------------------------------------------------- */

clg_status file_join(const char *folder, const char *name, char **out_path)
{
    *out_path = NULL;
    size_t n_folder = strlen(folder), n_name = strlen(name), total;
    if (!checked_add_size(n_folder, n_name, &total) || total > SIZE_MAX - 2)
        return error_no_memory(SIZE_MAX);
    char *path = memory_alloc(total + 2);
    if (!path) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    memcpy(path, folder, n_folder);
    const char last = n_folder > 0 ? folder[n_folder - 1] : sys_separator;
    const bool is_drive = last == ':' && n_folder == sys_root_bytes(folder);
    if (!is_drive && !sys_is_separator(last)) path[n_folder++] = sys_separator;
    memcpy(path + n_folder, name, n_name + 1);
    *out_path = path;
    return CLG_OK;
}

clg_status file_folder(const char *path, char **out_folder)
{
    size_t n = strlen(path);
    const size_t root = sys_root_bytes(path); /* never shortened */
    while (n > root && !sys_is_separator(path[n - 1])) n--;
    while (n > root && sys_is_separator(path[n - 1])) n--;
    *out_folder = n > 0 ? memory_strndup(path, n) : memory_strdup(".");
    return *out_folder ? CLG_OK : CLG_ERROR_OUT_OF_HOST_MEMORY;
}

const char *file_base_name(const char *path)
{
    size_t n = strlen(path);
    const size_t root = sys_root_bytes(path);
    while (n > root && !sys_is_separator(path[n - 1])) n--;
    return path + n;
}

bool file_name_is_inside(const char *name)
{
    if (name[0] == '\0' || name[0] == '/' || name[0] == '\\') return false;
    if (name[1] == ':') return false;                             /* a drive */
    if (sys_separator == '\\' && strchr(name, ':')) return false; /* an NTFS alternate stream */
    for (const char *part = name;; part++) {
        size_t n = strcspn(part, "/\\");
        if (n == 2 && part[0] == '.' && part[1] == '.') return false;
        part += n;
        if (*part == '\0') return true;
    }
}

clg_status file_is_below(const char *folder, const char *path, bool *out_below)
{
    *out_below = false;
    char true_folder[SYS_PATH_BYTES], true_path[SYS_PATH_BYTES];
    if (!sys_resolve(folder, true_folder)) return error_path("resolved", folder, errno);
    if (!sys_resolve(path, true_path)) return error_path("resolved", path, errno);
    size_t n = strlen(true_folder);
    if (n > 0 && sys_is_separator(true_folder[n - 1])) n--; /* a root */
    *out_below = strncmp(true_folder, true_path, n) == 0 && sys_is_separator(true_path[n]) &&
                 true_path[n + 1] != '\0';
    return CLG_OK;
}

const char *env_get(const char *name)
{
    const char *value = sys_env(name);
    return value && value[0] != '\0' ? value : NULL;
}

clg_status file_cache_folder(char **out_path)
{
    *out_path = NULL;
    const char *subfolder, *base = sys_cache_base(&subfolder);
    if (!base) {
        (void)error_set(CLG_ERROR_IO, "there is no cache folder: %s", sys_cache_variables);
        error_hint("set CLG_CACHE_DIR to a folder that can be written");
        return CLG_ERROR_IO;
    }
    if (!subfolder) return file_join(base, "clgraph", out_path);
    char *folder;
    CLG_TRY(file_join(base, subfolder, &folder));
    const clg_status status = file_join(folder, "clgraph", out_path);
    memory_free(folder);
    return status;
}
