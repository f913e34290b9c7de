/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads files whole, mapped or in parts, writes them atomically, and handles folders and names.
 * Paths are UTF-8.
 */
#ifndef CLG_BASE_FILES_H
#define CLG_BASE_FILES_H

#include "base/error.h"

/* A read-only view of a whole file; mapped where the system can, else read. The file must not
 * change while it is viewed. All zeros is valid and empty. */
typedef struct file_view {
    const uint8_t *data;
    size_t size_bytes;
    void *copy; /* the memory it was read into, NULL when mapped */
} file_view;
clg_status file_view_open(const char *path, file_view *out_view);
void file_view_close(file_view *view); /* accepts a closed view */
/* Releases the memory of these bytes of the view, where possible, since they will not be read
 * for a while. The content stays, and is read from the file again on access; any thread may be
 * reading. */
void file_view_unload(const file_view *view, const void *data, size_t size_bytes);

/* Reads a file in parts, so that nothing of it stays in memory: pages of a mapping would count as
 * the program's. One thread at a time. Regular files only. */
typedef struct file_reader {
    char *path; /* NULL: closed */
    int descriptor;
    uint64_t size_bytes, position;
} file_reader; /* all zeros is valid and closed */
clg_status file_reader_open(const char *path, file_reader *out_reader);
/* Reads exactly n_bytes; IO when the file has become shorter. */
clg_status file_reader_read(file_reader *reader, uint64_t offset, void *data, size_t n_bytes);
void file_reader_close(file_reader *reader); /* accepts a closed reader */

/* Reads a whole file of at most max_bytes, with a NUL after it; freed by memory_free. */
clg_status file_read(const char *path, size_t max_bytes, char **out_data, size_t *out_size_bytes);

/* Writes PATH.tmp.<pid>.<n> and renames it over PATH: readers see the old file or the new one,
 * never a part. Not flushed to disk: a power failure may lose it. */
clg_status file_write_atomic(const char *path, const void *data, size_t size_bytes);
/* Writes a file atomically in parts. abandon, instead of commit or after a failure, removes the
 * temporary file. */
typedef struct file_writer {
    char *path, *temporary; /* temporary NULL: closed */
    int descriptor;
    uint64_t size_bytes; /* appended so far */
} file_writer;           /* all zeros is valid and closed */
clg_status file_writer_open(const char *path, file_writer *out_writer);
clg_status file_writer_append(file_writer *writer, const void *data, size_t size_bytes);
/* Overwrites bytes appended earlier. */
clg_status file_writer_patch(file_writer *writer, uint64_t offset, const void *data,
                             size_t size_bytes);
clg_status file_writer_commit(file_writer *writer); /* closes, also when it fails */
void file_writer_abandon(file_writer *writer);      /* accepts a closed writer */
/* Makes a folder and its parents, like mkdir -p; new ones are private to the user. */
clg_status file_make_folders(const char *path);
bool file_exists(const char *path); /* a file or a folder */
/* Returns whether this user may read the file, write it (or into the folder), or both. */
bool file_is_allowed(const char *path, bool reading, bool writing);
void file_touch(const char *path); /* sets the modification time to now, where allowed */
clg_status file_remove(const char *path);
/* Joins with one separator; freed by memory_free. */
clg_status file_join(const char *folder, const char *name, char **out_path);
/* Returns the folder part of a path, "." when there is none; freed by memory_free. */
clg_status file_folder(const char *path, char **out_folder);
/* Returns whether name stays below the folder it is relative to: not empty, not absolute, no "..",
 * no drive. Both kinds of slashes separate, on every system, so that a model is treated the same
 * everywhere. */
bool file_name_is_inside(const char *name);
/* Resolves links and reports whether path is below folder. Both must exist. */
clg_status file_is_below(const char *folder, const char *path, bool *out_below);

typedef struct file_entry {
    char *name; /* without the folder */
    uint64_t size_bytes;
    int64_t modified_ns, accessed_ns; /* since 1970 */
    bool is_folder;
} file_entry;
/* Lists a folder, sorted by name. Entries that vanish meanwhile, broken links and names that are
 * not UTF-16 (on Windows) are skipped. */
clg_status file_list(const char *folder, file_entry **out_entries, size_t *out_n);
void file_list_free(file_entry *entries, size_t n);

/* Returns an environment variable, NULL when unset or empty; borrowed, on Windows until the
 * thread's eighth call from here. */
const char *env_get(const char *name);
/* Returns the user's cache folder for clgraph ($XDG_CACHE_HOME/clgraph, ~/.cache/clgraph,
 * %LOCALAPPDATA%\clgraph). */
clg_status file_cache_folder(char **out_path);

#endif
