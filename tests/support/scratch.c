/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements the scratch folder. Does not use the library's allocator, so that it works while
 * allocations of the library are made to fail.
 */
#include "support/scratch.h"

#include "support/platform.h"
#include "support/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH_BYTES 1024

static char folder[PATH_BYTES];

static struct kept_path {
    struct kept_path *next;
    char path[];
} * kept_paths;

static void remove_folder(void)
{
    platform_remove_tree(folder);
    while (kept_paths) {
        struct kept_path *next = kept_paths->next;
        free(kept_paths);
        kept_paths = next;
    }
}

const char *scratch_folder(void)
{
    if (folder[0]) return folder;
    assert_true(platform_temporary_folder(folder, sizeof folder));
    (void)atexit(remove_folder);
    return folder;
}

const char *scratch_path(const char *name)
{
    size_t size = strlen(scratch_folder()) + strlen(name) + 2;
    struct kept_path *kept = malloc(sizeof *kept + size);
    assert_non_null(kept);
    kept->next = kept_paths;
    kept_paths = kept;
    (void)snprintf(kept->path, size, "%s/%s", folder, name);
    return kept->path;
}

const char *scratch_file(const char *name, const void *data, size_t size_bytes)
{
    const char *path = scratch_path(name);
    FILE *file = platform_open(path, "wb");
    assert_non_null(file);
    if (size_bytes > 0) assert_int_equal(fwrite(data, 1, size_bytes, file), size_bytes);
    assert_int_equal(fclose(file), 0);
    return path;
}
