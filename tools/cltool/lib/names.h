/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of tensors as names of files. They come from a model and are not to be trusted.
 */
#ifndef CLTOOL_NAMES_H
#define CLTOOL_NAMES_H

#include "failure.h"

/* A file name without separators, colons, control characters, words that a system reserves, or a leading dot;
 * what is not allowed becomes %XX, and a name too long ends in its hash. Different names stay different. free(). */
char *name_to_file(const char *name);
/* "FOLDER/FILE"; free(). */
char *path_join(const char *folder, const char *file);
/* What stands in front of the last part, NULL when there is nothing; free(). */
char *path_folder(const char *path);
/* The last part of a path. */
const char *path_base(const char *path);
bool path_exists(const char *path);
bool path_is_folder(const char *path);
bool path_ends_in(const char *path, const char *ending);
/* Makes a folder and those above it. */
int folder_make(const char *path);
/* What is in a folder, by name, without what begins with a dot; free() each and all. Gives 0 or an errno. */
int folder_list(const char *folder, char ***out_names, size_t *out_n);
/* Refuses a file that exists, unless force. */
int file_may_be_written(const char *path, bool force);
/* Writes aside and renames. */
int file_write(const char *path, const char *data, size_t size_bytes);
/* A whole text file; free(). */
int file_read_text(const char *path, char **out_text);

#endif
