/* SPDX-License-Identifier: Apache-2.0
 *
 * Opens shared libraries at run time: by dlopen (dynlib_posix.c) or LoadLibrary (dynlib_windows.c).
 */
#ifndef CLG_BASE_DYNLIB_H
#define CLG_BASE_DYNLIB_H

#include "base/error.h"

#define DYNLIB_WHY_BYTES 512

/* Opens a library; with name NULL (not on Windows), returns a handle in which functions of all
 * loaded libraries are found. Returns NULL on failure; `why` then has the system's message. On
 * Windows a file name is searched for beside the program, in System32 and on PATH, never in the
 * working directory. */
void *dynlib_open(const char *name, char why[DYNLIB_WHY_BYTES]);
/* As dynlib_open; on Windows a file name is searched for in System32 alone. */
void *dynlib_open_system(const char *name, char why[DYNLIB_WHY_BYTES]);
/* Opens a library through `void *function(const char *name, int flags)` of the library `opener`,
 * which may open what this process may not. NULL where there is no such function. */
void *dynlib_open_by(const char *opener, const char *function, const char *name,
                     char why[DYNLIB_WHY_BYTES]);
/* Stores the address of a function through out_function (a pointer to a function pointer); returns
 * false when the library does not have it. */
bool dynlib_function(void *library, const char *name, void *out_function, size_t function_bytes);
/* Writes the path, size in bytes and modification time of the file that contains a function; ""
 * where the system does not report it, as on Windows. */
void dynlib_identify(const void *address, char out_text[DYNLIB_WHY_BYTES]);
/* Writes the absolute path of the library that contains this code; returns false when the system
 * does not report it. */
bool dynlib_own_path(char out_path[DYNLIB_WHY_BYTES]);
void dynlib_close(void *library); /* accepts NULL */

#endif
