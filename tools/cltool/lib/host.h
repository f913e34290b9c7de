/* SPDX-License-Identifier: Apache-2.0
 *
 * What systems do differently, for cltool: host_posix.c and host_windows.c, one of which is built. Paths and arguments are
 * UTF-8. Functions that give an int give 0 or an errno.
 */
#ifndef CLTOOL_HOST_H
#define CLTOOL_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Before anything else: brings the standard streams to writing bytes as they come, and gives the program's arguments in UTF-8
 * with NULL behind the last, for as long as the program runs; NULL when one of them is no text. */
char **host_start(char **argv);
/* Whether a person sees what is written there, and colours show. */
bool host_is_terminal(FILE *stream);
/* From here on a thread calls interrupted for each Ctrl-C and each request to end, instead of the program's end.
 * Before any thread is started. */
void host_watch_interrupts(void (*interrupted)(void));
/* Writes past all buffers, and ends the program at once. */
_Noreturn void host_leave(bool to_stdout, const char *text, size_t n_bytes, int code);

bool host_is_separator(char c); /* between the parts of a path */
bool host_exists(const char *path);
bool host_is_folder(const char *path);
int host_make_folder(const char *path);
FILE *host_open(const char *path, const char *mode); /* as fopen, and never in text mode */
int host_rename(const char *from, const char *to);   /* replaces */
int host_remove(const char *path);
/* Calls visit for each name in a folder, in no order. */
int host_list(const char *folder, void (*visit)(void *user, const char *name), void *user);
long host_process_id(void);
/* The next byte of a stream that one thread alone reads. */
#ifdef _WIN32
#define host_getc getc
#else
#define host_getc getc_unlocked
#endif

size_t host_n_processors(void);
/* Whether the system shows a graphics card of a vendor that has OpenCL drivers. */
bool host_has_gpu(void);
/* Monotonic. */
double now_ms(void);
/* The most memory that the program had so far, 0 when that cannot be told. */
uint64_t peak_rss_bytes(void);

#endif
