/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements companion.h.
 */
#include "base/library/companion.h"

#include "base/files.h"
#include "base/library/dynlib.h"
#include "base/memory.h"

#include <stdio.h>

/* Folders relative to the library's: next to it in a build tree or a wheel, and where packages
 * install what users do not call. The folder is named after the SONAME (clgraph-0.1): libraries of
 * several versions each have their files. */
#ifndef CLG_COMPANION_FOLDER
#error "CLG_COMPANION_FOLDER is the name of the folder that companions are installed in"
#endif
#define PLACE_BYTES 96
static const char *const folders[] = {"", CLG_COMPANION_FOLDER "/",
                                      "../libexec/" CLG_COMPANION_FOLDER "/",
                                      "../../libexec/" CLG_COMPANION_FOLDER "/"};

/* Where they are installed, with a separator at the end, for programs that contain the library and
 * are elsewhere; "" in builds of the shared library alone. */
#ifndef CLG_INSTALLED_COMPANIONS
#define CLG_INSTALLED_COMPANIONS ""
#endif

static clg_status find_beside_library(const char *name, char **out_path)
{
    char library[DYNLIB_WHY_BYTES], place[PLACE_BYTES], *folder;
    if (!dynlib_own_path(library)) return CLG_OK;
    CLG_TRY(file_folder(library, &folder));
    clg_status status = CLG_OK;
    for (size_t i = 0; i < sizeof folders / sizeof *folders && status == CLG_OK && !*out_path;
         i++) {
        (void)snprintf(place, sizeof place, "%s%s", folders[i], name);
        status = file_join(folder, place, out_path);
        if (status == CLG_OK && !file_exists(*out_path)) {
            memory_free(*out_path);
            *out_path = NULL;
        }
    }
    memory_free(folder);
    return status;
}

clg_status companion_find(const char *name, char **out_path)
{
    *out_path = NULL;
    CLG_TRY(find_beside_library(name, out_path));
    if (*out_path || !CLG_INSTALLED_COMPANIONS[0]) return CLG_OK;
    CLG_TRY(file_join(CLG_INSTALLED_COMPANIONS, name, out_path));
    if (file_exists(*out_path)) return CLG_OK;
    memory_free(*out_path);
    *out_path = NULL;
    return CLG_OK;
}
