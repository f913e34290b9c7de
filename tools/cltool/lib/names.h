/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes safe file names of tensor names, which come from a model and are untrusted. Also handles
 * paths, folders and small files.
 */
#ifndef CLTOOL_NAMES_H
#define CLTOOL_NAMES_H

#include "failure.h"

/* Returns a file name for the tensor name: blanks, non-ASCII bytes, characters that a system does
 * not allow, a leading dot, '-' or '~', and the first letter of reserved names become %XX; a name
 * that is too long ends in its hash. Different names give different file names. free(). */
char *name_to_file(const char *name);
/* Returns "FOLDER/FILE"; free(). */
char *path_join(const char *folder, const char *file);
/* Returns the path without its last part, NULL when it has only one; free(). */
char *path_folder(const char *path);
/* Returns the last part of a path. */
const char *path_base(const char *path);
bool path_exists(const char *path);
bool path_is_folder(const char *path);
bool path_ends_in(const char *path, const char *ending);
/* Makes a folder and its parents. */
int folder_make(const char *path);
/* Checks that folder_make can make the folder, and that files can be made in it, without making
 * it. */
int folder_may_be_made(const char *path);
/* Lists the names in a folder, sorted, without those that start with a dot; free() each and the
 * list. Returns 0 or an errno. */
int folder_list(const char *folder, char ***out_names, size_t *out_n);
/* Refuses what 'cltool predict' takes for -o, a file, where there is no folder of that name: nobody
 * wants a folder 'y=out.npy'. path may be NULL. */
int folder_must_be_one(const char *path);
/* Checks that a file of results, which are written as .npy only, ends in .npy. */
int file_must_be_npy(const char *path);
/* Checks that a file does not exist, unless force is set. */
int file_may_be_written(const char *path, bool force);
/* Writes a file atomically: a temporary file is written, then renamed. */
int output_write(const char *path, const char *data, size_t size_bytes);
/* Records that a file cannot be written, with the reason in errno; returns CODE_WORK, as
 * output_write does for a full disk. */
int output_fail(const char *path);
/* Reads a whole text file; free(). */
int file_read_text(const char *path, char **out_text);

#endif
