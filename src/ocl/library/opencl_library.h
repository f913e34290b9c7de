/* SPDX-License-Identifier: Apache-2.0
 *
 * Opens the OpenCL library: tries the names of a table in order and keeps the reasons of those that
 * failed, for the error message and for the diagnosis.
 */
#ifndef CLG_OCL_OPENCL_LIBRARY_H
#define CLG_OCL_OPENCL_LIBRARY_H

#include "base/library/dynlib.h"
#include "ocl/library/opencl_names.h"

typedef struct opencl_library {
    void *handle;
    /* The driver's own lookup, of libraries that export no OpenCL function; NULL: none. */
    void *(*pointer_of)(const char *name);
} opencl_library;

/* Looks up all functions that the caller needs. Returns false when the library lacks one, which it
 * stores in *out_missing. */
typedef bool (*opencl_take)(const opencl_library *library, const char **out_missing, void *user);

typedef struct opencl_attempt {
    const char *name;
    const char *missing;        /* the function that the opened library lacks, or NULL */
    char why[DYNLIB_WHY_BYTES]; /* why it is not used; "" for the library in use */
} opencl_attempt;

/* The names tried, in order. */
typedef struct opencl_attempts {
    size_t count;
    opencl_attempt each[OPENCL_MAX_NAMES];
} opencl_attempts;

/* Opens the first library of the table that has all functions; it stays open for the life of the
 * process, since drivers start threads that outlive any close. Returns false when there is none. */
bool opencl_library_open(const opencl_names *names, opencl_take take, void *user,
                         opencl_attempts *out_attempts);
/* Stores the address of a function through out_function, as dynlib_function. */
bool opencl_library_function(const opencl_library *library, const char *name, void *out_function,
                             size_t function_bytes);

#endif
