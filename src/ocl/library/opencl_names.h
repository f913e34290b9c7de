/* SPDX-License-Identifier: Apache-2.0
 *
 * The names under which systems have their OpenCL library: one table per system. All tables are
 * compiled everywhere, so that tests on one system check them all.
 */
#ifndef CLG_OCL_OPENCL_NAMES_H
#define CLG_OCL_OPENCL_NAMES_H

#include <stdbool.h>
#include <stddef.h>

#define OPENCL_MAX_NAMES 20 /* in a table */

typedef struct opencl_names {
    const char *system;    /* "Linux" */
    unsigned pointer_bits; /* 32 or 64: for processes with such pointers; 0: for all */
    /* File names, which the system's loader searches for, and absolute paths; best first, NULL at
     * the end. */
    const char *const *names;
    /* A library, and its function `void *(const char *name, int flags)`, that opens what the
     * process may not open itself; NULL: none. */
    const char *opener, *opener_function;
    bool system_folder_only; /* file names are searched for only in the system's own folder */
    const char *hint;        /* what to do when none of the names opens */
} opencl_names;

extern const opencl_names opencl_name_tables[];
extern const size_t n_opencl_name_tables;

/* Returns the table of the system and pointer size that this code was compiled for. */
const opencl_names *opencl_names_here(void);
/* Returns the table of a system; NULL when there is none. */
const opencl_names *opencl_names_of(const char *system, unsigned pointer_bits);

#endif
