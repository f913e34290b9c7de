/* SPDX-License-Identifier: Apache-2.0
 *
 * Operating-system functions, implemented in system_posix.c and system_windows.c. Only other files
 * of base/ call them, and they call no other file of base/. Paths, names and values are UTF-8.
 * Functions that return an int return a negative number and set errno on failure. See decision 26.
 */
#ifndef CLG_BASE_SYSTEM_H
#define CLG_BASE_SYSTEM_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

extern const char sys_separator; /* joins paths */

typedef struct sys_info {
    bool is_folder, is_regular;
    uint64_t size_bytes;
    int64_t modified_ns, accessed_ns;
} sys_info;

bool sys_is_separator(char c);
/* Returns the length of the root at the start of a path: "/", "C:", "C:\\" or
 * "\\\\server\\share"; 0 for a relative path. */
size_t sys_root_bytes(const char *path);
int sys_open_read(const char *path);
int sys_open_read_now(const char *path); /* does not wait for the other end of a pipe */
int sys_open_new(const char *path);      /* fails when it exists */
/* Opens a regular file for writing, which other processes may have open for writing too; creates it
 * if it does not exist. Does not follow links, and does not wait for the other end of a pipe. */
int sys_open_shared(const char *path);
int sys_open_special(const char *path); /* for writing; neither makes nor truncates the file */
int sys_open_spool(void);               /* a new empty file without a name, for both directions */
/* Opens a file that a process may hold a lock on; does not follow links, and does not wait. */
int sys_open_locked(const char *path);
typedef enum sys_lock_result { SYS_LOCKED, SYS_LOCK_HELD, SYS_LOCK_NONE } sys_lock_result;
/* Takes the exclusive advisory lock of an open file without waiting: SYS_LOCK_HELD if another
 * process has it, SYS_LOCK_NONE if there are no locks here. It ends with the last duplicate of fd,
 * or with the process. */
sys_lock_result sys_lock(int fd);
/* Returns whether every process that can open the file sees its lock: the file system is known to
 * be local to this machine. */
bool sys_lock_is_seen_by_all(int fd);
/* Closes fd and returns whether all writes succeeded. *out_kept is a duplicate that keeps the lock,
 * -1 where there are no locks. */
int sys_close_keep_lock(int fd, int *out_kept);
/* Returns whether path is still a name of the open file: nobody has removed or renamed it. */
bool sys_is_named(int fd, const char *path);
/* Returns a number that differs between calls and processes; not for secrets. */
uint32_t sys_arbitrary(void);
/* Limits a size to what read and write accept in one call on any system. */
static inline unsigned sys_io_bytes(size_t n_bytes)
{
    return n_bytes < (1u << 30) ? (unsigned)n_bytes : 1u << 30;
}
/* Read or write at most n_bytes; return the number of bytes, which may be smaller. */
int64_t sys_read(int fd, void *data, size_t n_bytes);
int64_t sys_write(int fd, const void *data, size_t n_bytes);
/* As sys_write; EPIPE for a pipe without a reader, never a signal. */
int64_t sys_write_quietly(int fd, const void *data, size_t n_bytes);
int sys_seek(int fd, uint64_t offset);
/* Waits until what was written to a regular file is stored; a file without storage is accepted. */
int sys_flush(int fd);
int sys_close(int fd);
int sys_stat(const char *path, sys_info *out_info); /* follows links */
int sys_stat_open(int fd, sys_info *out_info);
/* Writes the path that a symbolic link contains; returns false if the file is not a link. */
#define SYS_PATH_BYTES 4096
bool sys_read_link(const char *path, char out_path[SYS_PATH_BYTES]);
int sys_rename(const char *from, const char *to); /* replaces an existing file */
int sys_remove(const char *path);
int sys_make_folder(const char *path); /* private to the user */
int sys_touch(const char *path);       /* sets the modification time to now */
/* Returns whether only this user and the administrator may write into a folder; true if there is
 * none. *out_words: why not, to follow the folder's name. */
bool sys_is_private(const char *folder, const char **out_words);
bool sys_may(const char *path, bool reading, bool writing);
long sys_n_processors(void);
/* Returns a read-only private mapping of a whole file; NULL when the system cannot map it. */
void *sys_map(int fd, size_t size_bytes);
void sys_unmap(void *data, size_t size_bytes);
/* Releases the physical memory of the whole pages within a range of a mapping; an access reads them
 * from the file again. */
void sys_unload(void *data, size_t size_bytes);
/* Maps size_bytes of zeroed memory at a multiple of a huge page's size, and requests huge pages
 * for it. Returns NULL if memory lacks, or if this system has no such request. Release it by
 * sys_unmap_huge. */
void *sys_map_huge(size_t size_bytes);
void sys_unmap_huge(void *memory);
/* Shrinks a range to the whole pages inside it; false when there is none. */
static inline bool sys_inner_pages(void **data, size_t *size_bytes, size_t page_bytes)
{
    const size_t head = (page_bytes - (uintptr_t)*data % page_bytes) % page_bytes;
    if (*size_bytes < head + page_bytes) return false;
    *data = (char *)*data + head;
    *size_bytes = (*size_bytes - head) / page_bytes * page_bytes;
    return true;
}
/* Writes the absolute path without links to out_path; returns false, and sets errno, on failure. */
bool sys_resolve(const char *path, char out_path[SYS_PATH_BYTES]);
/* Calls visit(user, name) for each entry of a folder until it returns false, which is not an error.
 */
int sys_list(const char *folder, bool (*visit)(void *user, const char *name), void *user);
/* Returns an environment variable, NULL if it is not set. Borrowed; on Windows, where it is
 * converted, only until this thread has called the function eight more times. */
const char *sys_env(const char *name);
/* Writes the text for an errno; false when there is none. Thread-safe. */
bool sys_strerror(int number, char *buffer, size_t n_bytes);
/* The clock of sys_condition_init's conditions: one that nobody sets, where the system has one. */
extern const clockid_t sys_wait_clock;
int sys_condition_init(pthread_cond_t *c); /* as pthread_cond_init */
/* As pthread_create; the new thread blocks the program's signals. */
int sys_thread_start(pthread_t *out_thread, void *(*body)(void *), void *argument);
/* Calls child() in each process that is forked from now on, before fork returns in it. Does nothing
 * on systems without fork. */
void sys_at_fork(void (*child)(void));
/* Returns a folder from an environment variable, borrowed as from sys_env, and sets *out_subfolder
 * to the folder of the user's caches in it (NULL: the folder itself). NULL if no variable is set.
 */
const char *sys_cache_base(const char **out_subfolder);
extern const char sys_cache_variables[]; /* text: "NAME is not set", for all these variables */

#endif
