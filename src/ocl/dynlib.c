/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared libraries opened at run time.
 */
#include "ocl/dynlib.h"

#include <stdio.h>
#include <string.h>

#ifdef _WIN32
#include <windows.h>

void *dynlib_open(const char *name, char why[DYNLIB_WHY_BYTES])
{
    if (!name) {
        snprintf(why, DYNLIB_WHY_BYTES, "not on Windows");
        return NULL;
    }
    HMODULE library = LoadLibraryA(name);
    if (!library) snprintf(why, DYNLIB_WHY_BYTES, "'%s': Windows error %lu", name, GetLastError());
    return library;
}

static void *address_of(void *library, const char *name)
{
    FARPROC function = GetProcAddress((HMODULE)library, name);
    void *address = NULL;
    memcpy(&address, &function, sizeof address);
    return address;
}

void dynlib_close(void *library)
{
    if (library) FreeLibrary((HMODULE)library);
}

#else
#include <dlfcn.h>

void *dynlib_open(const char *name, char why[DYNLIB_WHY_BYTES])
{
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        const char *words = dlerror();
        snprintf(why, DYNLIB_WHY_BYTES, "%s", words ? words : "no reason given");
    }
    return library;
}

static void *address_of(void *library, const char *name) { return dlsym(library, name); }

void dynlib_close(void *library)
{
    if (library) (void)dlclose(library);
}
#endif

bool dynlib_function(void *library, const char *name, void *out_function, size_t function_bytes)
{
    void *address = address_of(library, name);
    if (!address || function_bytes != sizeof address) return false;
    memcpy(out_function, &address,
           sizeof address); /* C has no cast from data to function pointers */
    return true;
}
