/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions of tests that differ on POSIX systems and on Windows: platform_posix.c and
 * platform_windows.c. Use only the C library, so that they work while the library's functions are
 * made to fail. Paths are UTF-8.
 */
#ifndef CLG_TESTS_PLATFORM_H
#define CLG_TESTS_PLATFORM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

extern const char *const platform_null_device;
/* A folder that cannot be created. */
extern const char *const platform_no_folder;

/* Creates a new folder and returns its path. */
bool platform_temporary_folder(char *path, size_t n_bytes);
/* Removes a folder and all its content; does not follow links. */
void platform_remove_tree(const char *path);
FILE *platform_open(const char *path, const char *mode);
/* Sets a file's times to so many seconds ago. */
bool platform_age(const char *path, int64_t seconds);
/* value NULL: unset. */
bool platform_set_env(const char *name, const char *value);
/* Calls body(user, i) for each i < n concurrently, in separate processes where the system can fork,
 * else in threads; returns whether all returned 0. */
bool platform_run_apart(int n, int (*body)(const char *user, int i), const char *user);

#endif
