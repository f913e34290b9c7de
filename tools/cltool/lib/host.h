/* SPDX-License-Identifier: Apache-2.0
 *
 * System-dependent functions of cltool: host_posix.c and host_windows.c, one of which is built.
 * Paths and arguments are UTF-8. Functions that return an int return 0 or an errno.
 */
#ifndef CLTOOL_HOST_H
#define CLTOOL_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Sets the standard streams to binary mode, and returns the program's arguments in UTF-8, ended by
 * NULL and valid until the program ends; NULL when an argument is invalid. Must be called first. */
char **host_start(char **argv);
/* Returns whether the stream is a terminal that shows colours. */
bool host_is_terminal(FILE *stream);
/* Starts a thread that calls `interrupted` for each Ctrl-C and each request to terminate, which
 * then do not end the program. Must be called before any thread is started. */
void host_watch_interrupts(void (*interrupted)(void));
/* Writes text to standard error without buffering and locks. */
void host_say(const char *text, size_t n_bytes);
/* Writes text without buffering, and ends the program immediately with the exit status `code`. */
_Noreturn void host_leave(bool to_stdout, const char *text, size_t n_bytes, int code);

bool host_is_separator(char c); /* between the parts of a path */
bool host_exists(const char *path);
bool host_is_folder(const char *path);
int host_make_folder(const char *path);
/* Gets the size of a file or folder and the time of its last modification, in the units
 * of the system. */
int host_stat(const char *path, uint64_t *out_size_bytes, int64_t *out_modified);
/* Returns whether there is something at the path that is not a regular file, such as a link. */
bool host_is_special(const char *path);
int host_rename(const char *from, const char *to); /* replaces a file */
int host_remove(const char *path);
FILE *host_open(const char *path, const char *mode); /* as fopen, never in text mode */
/* Creates a file of the system's temporary folder ($TMPDIR) for reading and writing, which is
 * removed when it is closed, or the program ends; NULL and errno when there is none. */
FILE *host_temporary(void);
/* Makes a folder there that only this user may read; NULL and errno on failure; free(). */
char *host_temporary_folder(void);
int host_remove_folder(const char *path); /* an empty one */
/* Returns a stream for what standard output was; from then on stdout writes to standard error. NULL
 * and errno on failure. */
FILE *host_claim_stdout(void);
/* Returns whether files can be created in a folder. */
bool host_may_write(const char *folder);
/* Moves to a byte of a file of any size. */
int host_seek(FILE *stream, uint64_t offset_bytes);

/* Calls visit for each name in a folder, in unspecified order. */
int host_list(const char *folder, void (*visit)(void *user, const char *name), void *user);
/* Returns the next byte of a stream that only one thread reads. */
#ifdef _WIN32
#define host_getc getc
#else
#define host_getc getc_unlocked
#endif

size_t host_n_processors(void);
/* Returns whether the system has a graphics card of a vendor that has OpenCL drivers. */
bool host_has_gpu(void);
void host_pause_ms(unsigned ms);
/* Returns a monotonic time in milliseconds. */
double now_ms(void);
/* Returns the peak resident memory of the program so far; 0 when it is unknown. */
uint64_t peak_rss_bytes(void);

#endif
