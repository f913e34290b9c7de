/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared libraries opened at run time: dlopen (dynlib_posix.c) or LoadLibrary (dynlib_windows.c).
 */
#ifndef CLG_OCL_DYNLIB_H
#define CLG_OCL_DYNLIB_H

#include "base/error.h"

#define DYNLIB_WHY_BYTES 512

/* What the libraries are called on this system, best first, NULL at the end. */
extern const char *const dynlib_opencl_names[], *const dynlib_clblast_names[];

/* NULL when the library cannot be loaded; why then has the system's words. name NULL: what the process has loaded
 * already, where the system can tell. */
void *dynlib_open(const char *name, char why[DYNLIB_WHY_BYTES]);
/* Stores the address of a function through out_function (a pointer to a function pointer); false when the
 * library does not have it. */
bool dynlib_function(void *library, const char *name, void *out_function, size_t function_bytes);
/* Tells the file that an address of a function came from: path, bytes and time, as far as the system can. */
void dynlib_identify(const void *address, char out_text[DYNLIB_WHY_BYTES]);
/* The absolute path of the library that this code is in; false when the system does not tell. */
bool dynlib_own_path(char out_path[DYNLIB_WHY_BYTES]);
void dynlib_close(void *library); /* accepts NULL */

#endif
