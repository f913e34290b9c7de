/* SPDX-License-Identifier: Apache-2.0
 *
 * An OpenCL library like that of Pixel phones: it exports no OpenCL function, and returns them once
 * it is enabled. They are two of its own, or, where CLG_FAKE_OPENCL is the path of a library, all
 * of that one's.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

void enableOpenCL(void);
void *loadOpenCLPointer(const char *name);

static bool is_enabled;

static int flush(void) { return 21; }
static int finish(void) { return 22; }

static void *address_of(int (*function)(void))
{
    void *address;
    memcpy(&address, &function, sizeof address);
    return address;
}

void enableOpenCL(void) { is_enabled = true; }

void *loadOpenCLPointer(const char *name)
{
    static void *library;
    const char *path = getenv("CLG_FAKE_OPENCL");
    if (!is_enabled) return NULL;
    if (path && !library) library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (path) return library ? dlsym(library, name) : NULL;
    if (strcmp(name, "clFlush") == 0) return address_of(flush);
    return strcmp(name, "clFinish") == 0 ? address_of(finish) : NULL;
}
