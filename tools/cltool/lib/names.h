/* SPDX-License-Identifier: Apache-2.0
 *
 * File names for tensors. Tensor names come from a model and are untrusted.
 */
#ifndef CLTOOL_NAMES_H
#define CLTOOL_NAMES_H

#include "failure.h"

/* Returns a file name without separators, colons, control characters, names that a system reserves,
 * or a leading dot; invalid characters become %XX, and a name that is too long ends in its hash.
 * Different names stay different. free(). */
char *name_to_file(const char *name);
/* "FOLDER/FILE"; free(). */
char *path_join(const char *folder, const char *file);
/* Returns the path without its last part, NULL when there is nothing; free(). */
char *path_folder(const char *path);
/* Returns the last part of a path. */
const char *path_base(const char *path);
bool path_exists(const char *path);
bool path_is_folder(const char *path);
bool path_ends_in(const char *path, const char *ending);
/* Makes a folder and its parents. */
int folder_make(const char *path);
/* Lists a folder, by name, without names that start with a dot; free() each and all. Returns 0 or
 * an errno. */
int folder_list(const char *folder, char ***out_names, size_t *out_n);
/* Rejects a file that exists, unless force. */
int file_may_be_written(const char *path, bool force);
/* Writes a temporary file and renames it. */
int file_write(const char *path, const char *data, size_t size_bytes);
/* Reads a whole text file; free(). */
int file_read_text(const char *path, char **out_text);

#endif
