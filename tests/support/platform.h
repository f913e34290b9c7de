/* SPDX-License-Identifier: Apache-2.0
 *
 * System-dependent functions for tests: platform_posix.c and platform_windows.c. They do not use
 * the library's allocator, so that they work while allocations of the library are made to fail.
 * Paths are UTF-8.
 */
#ifndef CLG_TESTS_PLATFORM_H
#define CLG_TESTS_PLATFORM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

extern const char *const platform_null_device;
/* Path of a folder that cannot be created. */
extern const char *const platform_no_folder;
/* Files that are mapped into memory cannot be replaced or removed. */
extern const bool platform_keeps_mapped_files;

/* Creates a new folder for temporary files and writes its path to `path`. */
bool platform_temporary_folder(char *path, size_t n_bytes);
/* Removes a folder and all its content; does not follow links. */
void platform_remove_tree(const char *path);
FILE *platform_open(const char *path, const char *mode);
/* Moves a file's times of access and modification back by `seconds`. */
bool platform_age(const char *path, int64_t seconds);
/* Sets an environment variable; value NULL: removes it. */
bool platform_set_env(const char *name, const char *value);
/* Calls body(user, i) for each i < n concurrently, in separate processes where the system can fork,
 * else in threads; returns whether all calls returned 0. */
bool platform_run_apart(int n, int (*body)(const char *user, int i), const char *user);

#endif
