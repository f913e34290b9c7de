/* SPDX-License-Identifier: Apache-2.0
 *
 * The folder of the store as a whole: where it is, how large, what goes first. Files that are not the store's
 * are never touched.
 */
#ifndef CLG_OCL_STORE_FOLDER_H
#define CLG_OCL_STORE_FOLDER_H

#include "base/files.h"

/* cache_dir, else $CLG_CACHE_DIR, else the user's cache folder; memory_free. */
clg_status store_folder_path(const char *cache_dir, char **out_path);
/* Bytes of all entries. */
clg_status store_folder_size(const char *folder, uint64_t *out_bytes);
/* Removes the least recently used entries until at most max_bytes are left, and what crashed writers left. */
clg_status store_folder_prune(const char *folder, uint64_t max_bytes, size_t *out_n_removed);

/* The store's files alone, entries and left-overs; file_list_free. An absent folder is empty. */
clg_status store_folder_files(const char *folder, file_entry **out_files, size_t *out_n);

#endif
