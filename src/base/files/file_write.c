/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements the writing functions of files.h. A file is written under a temporary name beside it
 * and renamed. Temporary files of dead processes are recognised by their lock (decision 44). What
 * is not a regular file is written in place, a pipe when everything for it is there.
 */
#include "base/files.h"

#include "base/memory.h"
#include "base/system.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* Nanoseconds, one hour, without a write after which a temporary file is taken for left over, where
 * its lock does not tell. */
#define LEFT_OVER_NS ((int64_t)3600 * 1000000000)
/* Symbolic links that are followed one after another; Linux has the same limit. */
#define MAX_LINKS 40
/* Temporary names that are tried: consecutive numbers, so that files of dead processes are met
 * again, then arbitrary ones. */
#define MAX_NAMES 64
#define MAX_NUMBERED_NAMES 8
#define SUFFIX_BYTES 32

/* ---- temporary files ------------------------------------------------------------------------- */

/* Returns whether no process is writing an open temporary file any more. */
static bool is_left_over(int fd)
{
    sys_info info;
    if (sys_stat_open(fd, &info) != 0 || !info.is_regular) return false;
    const sys_lock_result lock = sys_lock(fd);
    if (lock == SYS_LOCK_HELD) return false;
    if (lock == SYS_LOCKED && sys_lock_is_seen_by_all(fd)) return true;
    return (int64_t)time(NULL) * 1000000000 - info.modified_ns >= LEFT_OVER_NS;
}

bool file_remove_left_over(const char *path)
{
    const int fd = sys_open_locked(path);
    if (fd < 0) return false;
    /* Remove it while the lock is held: a writer that comes to this file late then sees it gone. It
     * may have got its final name meanwhile, and a file that is being written its name. */
    const bool is_removed = is_left_over(fd) && sys_is_named(fd, path) && sys_remove(path) == 0;
    (void)sys_close(fd);
    return is_removed;
}

/* Creates and locks the temporary file `path`; returns its descriptor, or -1 with errno, which is
 * EEXIST if another process has the name. */
static int create_temporary(const char *path)
{
    int fd = sys_open_new(path);
    if (fd < 0 && errno == EEXIST) {
        const bool is_free = file_remove_left_over(path);
        errno = EEXIST;
        if (is_free) fd = sys_open_new(path);
    }
    if (fd < 0) return -1;
    const bool is_held = sys_lock(fd) == SYS_LOCK_HELD;
    if (!is_held && sys_is_named(fd, path)) return fd;
    /* Another process took it, between its creation and its lock, for left over. */
    (void)sys_close(fd);
    errno = EEXIST;
    return -1;
}

static void put_name(char *path, size_t length, unsigned number)
{
    (void)snprintf(path + length, SUFFIX_BYTES, FILE_TEMPORARY_MARK "%u", number);
}

/* Removes temporary files of dead processes under the names that follow. `temporary` holds a name,
 * and is the same afterwards. */
static void remove_next(char *temporary, size_t length, unsigned number)
{
    bool is_removed = true;
    for (unsigned next = number + 1; is_removed && next < MAX_NUMBERED_NAMES; next++) {
        put_name(temporary, length, next);
        is_removed = file_remove_left_over(temporary);
    }
    put_name(temporary, length, number);
}

static clg_status open_temporary(file_writer *writer)
{
    const size_t length = strlen(writer->target);
    writer->temporary = memory_alloc(length + SUFFIX_BYTES);
    if (!writer->temporary) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    memcpy(writer->temporary, writer->target, length);
    for (unsigned i = 0; i < MAX_NAMES; i++) {
        const unsigned number = i < MAX_NUMBERED_NAMES ? i : sys_arbitrary();
        put_name(writer->temporary, length, number);
        writer->descriptor = create_temporary(writer->temporary);
        if (writer->descriptor >= 0) {
            if (number < MAX_NUMBERED_NAMES) remove_next(writer->temporary, length, number);
            return CLG_OK;
        }
        if (errno != EEXIST) break;
    }
    const int number = errno;
    memory_free(writer->temporary);
    writer->temporary = NULL; /* not ours to remove */
    return error_path("written", writer->path, number);
}

/* ---- targets --------------------------------------------------------------------------------- */

/* Sets writer->target to the path with its symbolic links followed; the file at their end need not
 * exist. */
static clg_status follow_links(file_writer *writer)
{
    char link[SYS_PATH_BYTES];
    writer->target = memory_strdup(writer->path);
    for (int i = 0; writer->target && sys_read_link(writer->target, link); i++) {
        char *folder = NULL, *next = NULL;
        if (i == MAX_LINKS) return error_path("written", writer->path, ELOOP);
        if (sys_root_bytes(link) > 0) {
            next = memory_strdup(link);
        } else if (file_folder(writer->target, &folder) == CLG_OK) {
            (void)file_join(folder, link, &next);
        }
        memory_free(folder);
        memory_free(writer->target);
        writer->target = next;
    }
    return writer->target ? CLG_OK : CLG_ERROR_OUT_OF_HOST_MEMORY;
}

/* Opens what exists and is neither a regular file nor a folder. Where it cannot be positioned,
 * writes go to a file without a name first. */
static clg_status open_special(file_writer *writer)
{
    writer->descriptor = sys_open_special(writer->path);
    if (writer->descriptor < 0) return error_path("written", writer->path, errno);
    if (sys_seek(writer->descriptor, 0) == 0) return CLG_OK;
    writer->pipe = writer->descriptor;
    writer->descriptor = sys_open_spool();
    if (writer->descriptor >= 0) return CLG_OK;
    char words[ERROR_SYSTEM_BYTES];
    (void)error_set(CLG_ERROR_IO, "'%s' needs a temporary file, which cannot be made: %s",
                    writer->path, error_system(errno, words));
    error_hint("set TMPDIR to a folder that can be written");
    return CLG_ERROR_IO;
}

static clg_status open_target(file_writer *writer, bool replace)
{
    sys_info info = {0};
    const bool exists = !replace && sys_stat(writer->path, &info) == 0;
    /* Not followed where the system refuses it, as in a folder that everybody may write to. */
    if (!replace && !exists && errno != ENOENT) return error_path("written", writer->path, errno);
    if (exists && info.is_folder)
        return error_set(CLG_ERROR_IO, "'%s' is a folder, not a file", writer->path);
    if (exists && !info.is_regular) return open_special(writer);
    if (!replace) {
        CLG_TRY(follow_links(writer));
    } else if (!(writer->target = memory_strdup(writer->path))) {
        return CLG_ERROR_OUT_OF_HOST_MEMORY;
    }
    return open_temporary(writer);
}

/* ---- writers --------------------------------------------------------------------------------- */

static clg_status open_writer(const char *path, bool replace, file_writer *out_writer)
{
    *out_writer = (file_writer){.descriptor = -1, .pipe = -1};
    clg_status status = CLG_ERROR_OUT_OF_HOST_MEMORY;
    out_writer->path = memory_strdup(path);
    if (out_writer->path) status = open_target(out_writer, replace);
    if (status != CLG_OK) file_writer_abandon(out_writer);
    return status;
}

clg_status file_writer_open(const char *path, file_writer *out_writer)
{
    return open_writer(path, false, out_writer);
}

clg_status file_writer_open_shared(const char *path, file_writer *out_writer)
{
    *out_writer = (file_writer){.descriptor = -1, .pipe = -1};
    out_writer->path = memory_strdup(path);
    if (!out_writer->path) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    out_writer->descriptor = sys_open_shared(path);
    if (out_writer->descriptor >= 0) return CLG_OK;
    const clg_status status = error_path("written", path, errno);
    file_writer_abandon(out_writer);
    return status;
}

clg_status file_writer_seek(file_writer *writer, uint64_t offset)
{
    if (sys_seek(writer->descriptor, offset) != 0)
        return error_path("written", writer->path, errno);
    writer->size_bytes = offset;
    return CLG_OK;
}

static clg_status write_all(file_writer *writer, int fd, const void *data, size_t size_bytes)
{
    for (const char *bytes = data; size_bytes > 0;) {
        int64_t n = writer->target ? sys_write(fd, bytes, size_bytes)
                                   : sys_write_quietly(fd, bytes, size_bytes);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return error_path("written", writer->path, n < 0 ? errno : ENOSPC);
        bytes += n;
        size_bytes -= (size_t)n;
    }
    return CLG_OK;
}

clg_status file_writer_append(file_writer *writer, const void *data, size_t size_bytes)
{
    CLG_TRY(write_all(writer, writer->descriptor, data, size_bytes));
    writer->size_bytes += size_bytes;
    return CLG_OK;
}

clg_status file_writer_flush(file_writer *writer)
{
    if (writer->pipe >= 0 || sys_flush(writer->descriptor) == 0) return CLG_OK;
    return error_path("written", writer->path, errno);
}

clg_status file_writer_patch(file_writer *writer, uint64_t offset, const void *data,
                             size_t size_bytes)
{
    if (offset > writer->size_bytes || size_bytes > writer->size_bytes - offset) {
        return error_set(CLG_ERROR_INTERNAL, "a patch of '%s' is outside the written range",
                         writer->path);
    }
    if (sys_seek(writer->descriptor, offset) != 0)
        return error_path("written", writer->path, errno);
    CLG_TRY(write_all(writer, writer->descriptor, data, size_bytes));
    if (sys_seek(writer->descriptor, writer->size_bytes) != 0)
        return error_path("written", writer->path, errno);
    return CLG_OK;
}

/* Copies what has been written to the pipe that it is for. */
static clg_status empty_spool(file_writer *writer)
{
    enum { BLOCK = 65536 };
    clg_status status = CLG_OK;
    char *block = memory_alloc(BLOCK);
    if (!block) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    if (sys_seek(writer->descriptor, 0) != 0) status = error_path("written", writer->path, errno);
    for (uint64_t left = writer->size_bytes; left > 0 && status == CLG_OK;) {
        const int64_t n = sys_read(writer->descriptor, block, left < BLOCK ? (size_t)left : BLOCK);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) {
            status = error_path("written", writer->path, n < 0 ? errno : EIO);
        } else {
            status = write_all(writer, writer->pipe, block, (size_t)n);
            left -= (uint64_t)n;
        }
    }
    memory_free(block);
    return status;
}

/* Closes the descriptor; some file systems report a full disk only then. */
static clg_status close_written(file_writer *writer, int *out_lock)
{
    const int fd = writer->descriptor;
    *out_lock = -1;
    writer->descriptor = -1;
    const int result = writer->target ? sys_close_keep_lock(fd, out_lock) : sys_close(fd);
    return result == 0 ? CLG_OK : error_path("written", writer->path, errno);
}

clg_status file_writer_commit(file_writer *writer)
{
    clg_status status = CLG_OK;
    int lock; /* held until the temporary file has its final name */
    if (writer->pipe >= 0) status = empty_spool(writer);
    const clg_status closed = close_written(writer, &lock);
    if (status == CLG_OK) status = closed;
    if (status == CLG_OK && writer->target) {
        if (sys_rename(writer->temporary, writer->target) != 0) {
            status = error_path("replaced", writer->path, errno);
        } else {
            memory_free(writer->temporary);
            writer->temporary = NULL; /* no file to remove */
        }
    }
    file_writer_abandon(writer);
    if (lock >= 0) (void)sys_close(lock);
    return status;
}

void file_writer_abandon(file_writer *writer)
{
    if (!writer->path) return;
    if (writer->temporary) (void)sys_remove(writer->temporary);
    if (writer->descriptor >= 0) (void)sys_close(writer->descriptor);
    if (writer->pipe >= 0) (void)sys_close(writer->pipe);
    memory_free(writer->temporary);
    memory_free(writer->target);
    memory_free(writer->path);
    *writer = (file_writer){0};
}

static clg_status write_whole(const char *path, bool replace, const void *data, size_t size_bytes)
{
    file_writer writer;
    CLG_TRY(open_writer(path, replace, &writer));
    clg_status status = file_writer_append(&writer, data, size_bytes);
    if (status == CLG_OK) return file_writer_commit(&writer);
    file_writer_abandon(&writer);
    return status;
}

clg_status file_write(const char *path, const void *data, size_t size_bytes)
{
    return write_whole(path, false, data, size_bytes);
}

clg_status file_replace(const char *path, const void *data, size_t size_bytes)
{
    return write_whole(path, true, data, size_bytes);
}
