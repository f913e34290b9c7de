/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads files (whole, mapped or in parts), writes them atomically, and handles folders, paths and
 * environment variables. Paths are UTF-8.
 */
#ifndef CLG_BASE_FILES_H
#define CLG_BASE_FILES_H

#include "base/error.h"

/* A read-only view of a whole file: mapped if the system can, else read into memory. The file must
 * not change while the view is open. All zeros is a valid, empty view. */
typedef struct file_view {
    const uint8_t *data;
    size_t size_bytes;
    void *copy; /* the memory it was read into, NULL when mapped */
} file_view;
enum {
    FILE_VIEW_REGULAR = 1, /* refuse what is not a regular file, without waiting for a pipe */
    FILE_VIEW_READ = 2,    /* read the file into memory: it may change afterwards */
};
/* Opens a view of a file; file_view_close closes it. flags: FILE_VIEW_. */
clg_status file_view_open(const char *path, unsigned flags, file_view *out_view);
void file_view_close(file_view *view); /* accepts a closed view */
/* Releases the physical memory of these bytes of a mapped view, if possible. They stay readable: an
 * access reads them from the file again. Other threads may be reading them. */
void file_view_unload(const file_view *view, const void *data, size_t size_bytes);

/* Reads a regular file in parts without mapping it, since the pages of a mapping count as memory of
 * the process. One thread at a time. */
typedef struct file_reader {
    char *path; /* NULL: closed */
    int descriptor;
    uint64_t size_bytes, position;
} file_reader; /* all zeros is valid and closed */
clg_status file_reader_open(const char *path, file_reader *out_reader);
/* Reads exactly n_bytes from offset on; IO if the file ends before. */
clg_status file_reader_read(file_reader *reader, uint64_t offset, void *data, size_t n_bytes);
void file_reader_close(file_reader *reader); /* accepts a closed reader */

/* Reads a whole regular file of at most max_bytes, with a NUL after it; freed by memory_free. */
clg_status file_read(const char *path, size_t max_bytes, char **out_data, size_t *out_size_bytes);

/* Writes a whole file, as a writer does. */
clg_status file_write(const char *path, const void *data, size_t size_bytes);
/* As file_write, but replaces whatever has this name, also a link or a pipe; never waits for the
 * other end of a pipe. */
clg_status file_replace(const char *path, const void *data, size_t size_bytes);
/* Writes a file in parts: open, append, then commit or abandon. Bytes go to a locked temporary
 * file, PATH.tmp.N, that commit renames to PATH and abandon removes, so that other processes find
 * either the old file or the complete new one. It is not flushed to disk: a power failure may lose
 * it. Symbolic links are followed: what they lead to is replaced, whether it exists or not. What is
 * neither a regular file nor a folder is written in place: a device at once, a pipe by commit;
 * opening a pipe waits for its reader. After a failure, call abandon. */
typedef struct file_writer {
    char *path;          /* as given, for messages; NULL: closed */
    char *target;        /* PATH without links; NULL for what is written in place */
    char *temporary;     /* renamed to target */
    int descriptor;      /* open for bytes to come */
    int pipe;            /* where they go in the end, -1 otherwise */
    uint64_t size_bytes; /* appended so far */
} file_writer;           /* all zeros is valid and closed */
clg_status file_writer_open(const char *path, file_writer *out_writer);
/* As file_writer_open, but writes in place: other processes may write other bytes of the file,
 * which is created if it does not exist. Commit only closes it, and abandon keeps it. */
clg_status file_writer_open_shared(const char *path, file_writer *out_writer);
/* Sets where the next bytes go; for a writer of file_writer_open_shared. */
clg_status file_writer_seek(file_writer *writer, uint64_t offset);
clg_status file_writer_append(file_writer *writer, const void *data, size_t size_bytes);
/* Waits until the bytes written so far are stored, so that they outlast a failure of power. */
clg_status file_writer_flush(file_writer *writer);
/* Overwrites bytes appended earlier. */
clg_status file_writer_patch(file_writer *writer, uint64_t offset, const void *data,
                             size_t size_bytes);
clg_status file_writer_commit(file_writer *writer); /* closes, also when it fails */
void file_writer_abandon(file_writer *writer);      /* accepts a closed writer */
/* Between the name of a file and the number of its temporary file. */
#define FILE_TEMPORARY_MARK ".tmp."
/* Removes a temporary file if the process that wrote it has ended (decision 44); returns whether it
 * did. */
bool file_remove_left_over(const char *path);
/* Creates a folder and its missing parents; they are private to the user. */
clg_status file_make_folders(const char *path);
bool file_exists(const char *path);    /* a file or a folder */
bool file_is_folder(const char *path); /* follows links */
/* Returns CLG_OK if only this user and the administrator may alter what is in a folder, or if it
 * does not exist; IO with a message otherwise (decision 45). Always CLG_OK on Windows. */
clg_status file_check_private(const char *folder);
/* Returns whether this user may read the file, write it (or into the folder), or both. */
bool file_is_allowed(const char *path, bool reading, bool writing);
void file_touch(const char *path); /* sets the modification time to now, where allowed */
clg_status file_remove(const char *path);
/* Joins a folder and a name with one separator; freed by memory_free. */
clg_status file_join(const char *folder, const char *name, char **out_path);
/* Returns the folder part of a path, "." when there is none; freed by memory_free. */
clg_status file_folder(const char *path, char **out_folder);
/* Returns the part of a path behind its folder, "" for a folder with a separator; borrowed. */
const char *file_base_name(const char *path);
/* Returns whether a relative path stays inside its base folder: it is not empty, not absolute, and
 * has no ".." and no drive. Slashes and backslashes are separators on every system, so that a model
 * is accepted on all systems or on none. */
bool file_name_is_inside(const char *name);
/* Sets *out_below to whether path is below folder, after links are resolved. Both must exist. */
clg_status file_is_below(const char *folder, const char *path, bool *out_below);

typedef struct file_entry {
    char *name; /* without the folder */
    uint64_t size_bytes;
    int64_t modified_ns, accessed_ns; /* since 1970 */
    bool is_folder;
} file_entry;
/* Lists a folder, sorted by name; freed by file_list_free. Skips entries that are removed during
 * the call, broken links and, on Windows, names that are not valid UTF-16. */
clg_status file_list(const char *folder, file_entry **out_entries, size_t *out_n);
void file_list_free(file_entry *entries, size_t n);

/* Returns an environment variable, NULL if it is unset or empty. Borrowed; on Windows only until
 * this thread has called the function eight more times. */
const char *env_get(const char *name);
/* Returns the user's cache folder for clgraph ($XDG_CACHE_HOME/clgraph, ~/.cache/clgraph,
 * %LOCALAPPDATA%\clgraph). */
clg_status file_cache_folder(char **out_path);

#endif
