/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks shared by the tests of path functions on each operating system.
 */
#ifndef CLG_TESTS_PATH_CHECKS_H
#define CLG_TESTS_PATH_CHECKS_H

#include "base/files.h"
#include "base/memory.h"
#include "support/unit.h"

static inline void check_join(const char *folder, const char *name, const char *expected)
{
    char *path;
    assert_ok(file_join(folder, name, &path));
    assert_string_equal(path, expected);
    memory_free(path);
}

static inline void check_folder(const char *path, const char *expected)
{
    char *folder;
    assert_ok(file_folder(path, &folder));
    assert_string_equal(folder, expected);
    memory_free(folder);
}

#endif
