/* SPDX-License-Identifier: Apache-2.0
 *
 * Opens shared libraries at run time on POSIX systems.
 */
#include "base/library/dynlib.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define FLAGS (RTLD_NOW | RTLD_LOCAL)

void *dynlib_open(const char *name, char why[DYNLIB_WHY_BYTES])
{
    void *library = dlopen(name, FLAGS);
    if (!library) {
        const char *words = dlerror();
        snprintf(why, DYNLIB_WHY_BYTES, "%s", words ? words : "no reason given");
    }
    return library;
}

void *dynlib_open_system(const char *name, char why[DYNLIB_WHY_BYTES])
{
    return dynlib_open(name, why);
}

void *dynlib_open_by(const char *opener, const char *function, const char *name,
                     char why[DYNLIB_WHY_BYTES])
{
    void *(*open)(const char *, int) = NULL;
    void *opener_library = dynlib_open(opener, why);
    if (!opener_library) return NULL;
    void *library = NULL;
    if (dynlib_function(opener_library, function, &open, sizeof open)) library = open(name, FLAGS);
    if (library) return library; /* the opener stays open: it may belong to what it opened */
    (void)snprintf(why, DYNLIB_WHY_BYTES, open ? "'%s' is not opened by '%s'" : "'%s': no '%s'",
                   open ? name : opener, function);
    dynlib_close(opener_library);
    return NULL;
}

bool dynlib_function(void *library, const char *name, void *out_function, size_t function_bytes)
{
    void *address = dlsym(library, name);
    if (!address || function_bytes != sizeof address) return false;
    memcpy(out_function, &address,
           sizeof address); /* C has no cast from data to function pointers. */
    return true;
}

void dynlib_identify(const void *address, char out_text[DYNLIB_WHY_BYTES])
{
    Dl_info found;
    struct stat file;
    out_text[0] = '\0';
    if (dladdr(address, &found) && found.dli_fname && stat(found.dli_fname, &file) == 0)
        (void)snprintf(out_text, DYNLIB_WHY_BYTES, "%s %lld %lld", found.dli_fname,
                       (long long)file.st_size, (long long)file.st_mtime);
}

bool dynlib_own_path(char out_path[DYNLIB_WHY_BYTES])
{
    Dl_info found;
    static const char here;
    if (!dladdr(&here, &found) || !found.dli_fname || found.dli_fname[0] != '/' ||
        strlen(found.dli_fname) >= DYNLIB_WHY_BYTES)
        return false;
    (void)snprintf(out_path, DYNLIB_WHY_BYTES, "%s", found.dli_fname);
    return true;
}

void dynlib_close(void *library)
{
    if (library) (void)dlclose(library);
}
