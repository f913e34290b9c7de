/* SPDX-License-Identifier: Apache-2.0
 *
 * Opens the OpenCL library by the names of a table.
 */
#include "ocl/library/opencl_library.h"

#include <stdio.h>
#include <string.h>

bool opencl_library_function(const opencl_library *library, const char *name, void *out_function,
                             size_t function_bytes)
{
    void *address = library->pointer_of ? library->pointer_of(name) : NULL;
    if (!address) return dynlib_function(library->handle, name, out_function, function_bytes);
    if (function_bytes != sizeof address) return false;
    memcpy(out_function, &address, sizeof address);
    return true;
}

/* Finds the lookup function of Pixel phones and of cars: enableOpenCL() comes first, then
 * loadOpenCLPointer("clFinish") returns the function. */
static void find_lookup(opencl_library *library)
{
    void (*enable)(void) = NULL;
    if (!dynlib_function(library->handle, "loadOpenCLPointer", &library->pointer_of,
                         sizeof library->pointer_of))
        return;
    if (dynlib_function(library->handle, "enableOpenCL", &enable, sizeof enable)) enable();
}

static void *open_name(const opencl_names *names, const char *name, char why[DYNLIB_WHY_BYTES])
{
    char why_not_opener[DYNLIB_WHY_BYTES];
    void *handle =
        names->system_folder_only ? dynlib_open_system(name, why) : dynlib_open(name, why);
    if (!handle && names->opener)
        handle = dynlib_open_by(names->opener, names->opener_function, name, why_not_opener);
    return handle;
}

/* Tries one name; returns whether its library has all functions. */
static bool try_name(const opencl_names *names, opencl_take take, void *user,
                     opencl_attempt *attempt)
{
    opencl_library library = {.handle = open_name(names, attempt->name, attempt->why)};
    if (!library.handle) return false;
    attempt->why[0] = '\0';
    find_lookup(&library);
    if (take(&library, &attempt->missing, user)) {
        attempt->missing = NULL;
        return true;
    }
    (void)snprintf(attempt->why, sizeof attempt->why, "it lacks %s", attempt->missing);
    dynlib_close(library.handle);
    return false;
}

bool opencl_library_open(const opencl_names *names, opencl_take take, void *user,
                         opencl_attempts *out_attempts)
{
    out_attempts->count = 0;
    for (size_t i = 0; names->names[i] && i < OPENCL_MAX_NAMES; i++) {
        opencl_attempt *attempt = &out_attempts->each[out_attempts->count++];
        *attempt = (opencl_attempt){.name = names->names[i]};
        if (try_name(names, take, user, attempt)) return true;
    }
    return false;
}
