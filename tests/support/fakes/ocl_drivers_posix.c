/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements ocl_platforms_show_* on POSIX systems: sets OCL_ICD_VENDORS to a folder with copies of
 * the selected drivers' .icd files.
 */
#include "support/fixtures/ocl_platforms.h"
#include "support/scratch.h"
#include "support/unit.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define SYSTEM_VENDORS "/etc/OpenCL/vendors"

/* Paths where Oclgrind's driver library may be installed; it has no .icd file. */
static const char *const oclgrind_libraries[] = {
    "/usr/lib/oclgrind/liboclgrind-rt-icd.so",
    "/usr/lib/x86_64-linux-gnu/oclgrind/liboclgrind-rt-icd.so",
    "/usr/lib/aarch64-linux-gnu/oclgrind/liboclgrind-rt-icd.so",
};

static const char *vendors_folder(void)
{
    const char *folder = scratch_path("vendors");
    assert_int_equal(mkdir(folder, 0700), 0);
    return folder;
}

static void add_driver(const char *file, const char *library)
{
    char name[512];
    (void)snprintf(name, sizeof name, "vendors/%s", file);
    (void)scratch_file(name, library, strlen(library));
}

/* Returns whether the file is an .icd file whose driver can be used. Under sanitizers, Intel's
 * cannot: it opens libraries with RTLD_DEEPBIND, on which AddressSanitizer ends the program. */
static bool is_usable(const char *file)
{
    return strstr(file, ".icd") && !(CLG_TEST_SANITIZED && strstr(file, "intel"));
}

/* Copies the system's usable .icd files whose names contain `part`. */
static void add_system_drivers(const char *part)
{
    DIR *folder = opendir(SYSTEM_VENDORS);
    for (const struct dirent *entry; folder && (entry = readdir(folder));) {
        char path[512], library[512] = "";
        if (!is_usable(entry->d_name) || !strstr(entry->d_name, part)) continue;
        (void)snprintf(path, sizeof path, "%s/%s", SYSTEM_VENDORS, entry->d_name);
        FILE *file = fopen(path, "r");
        if (file && fgets(library, sizeof library, file)) add_driver(entry->d_name, library);
        if (file) (void)fclose(file);
    }
    if (folder) (void)closedir(folder);
}

void ocl_platforms_show_all(void)
{
    (void)setenv("RUSTICL_ENABLE", "llvmpipe", 0);
    if (getenv("OCL_ICD_VENDORS")) return;
    const char *folder = vendors_folder();
    add_system_drivers("");
    for (size_t i = 0; i < sizeof oclgrind_libraries / sizeof *oclgrind_libraries; i++) {
        struct stat info;
        if (stat(oclgrind_libraries[i], &info) == 0)
            add_driver("oclgrind.icd", oclgrind_libraries[i]);
    }
    assert_int_equal(setenv("OCL_ICD_VENDORS", folder, 1), 0);
}

void ocl_platforms_show_pocl(void)
{
    if (getenv("CLG_TEST_DEVICE")) return;
    const char *folder = vendors_folder();
    add_system_drivers("pocl");
    assert_int_equal(setenv("OCL_ICD_VENDORS", folder, 1), 0);
}
