/* SPDX-License-Identifier: Apache-2.0
 *
 * Opens shared libraries at run time: by dlopen (dynlib_posix.c) or LoadLibrary (dynlib_windows.c).
 */
#ifndef CLG_OCL_DYNLIB_H
#define CLG_OCL_DYNLIB_H

#include "base/error.h"

#define DYNLIB_WHY_BYTES 512

/* The libraries' file names on this system, best first, NULL at the end. */
extern const char *const dynlib_opencl_names[], *const dynlib_clblast_names[];

/* Opens a library; with name NULL (not on Windows), returns a handle in which functions of all
 * loaded libraries are found. Returns NULL on failure; `why` then has the system's message. */
void *dynlib_open(const char *name, char why[DYNLIB_WHY_BYTES]);
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
