/* SPDX-License-Identifier: Apache-2.0
 *
 * The cache's folder: its path, its size, eviction. Never touches files that are not the cache's.
 */
#ifndef CLG_OCL_CACHE_FOLDER_H
#define CLG_OCL_CACHE_FOLDER_H

#include "base/files.h"

/* Returns cache_dir, else $CLG_CACHE_DIR, else the user's cache folder; memory_free. */
clg_status cache_folder_path(const char *cache_dir, char **out_path);
/* Returns the bytes of all entries. */
clg_status cache_folder_size(const char *folder, uint64_t *out_bytes);
/* Removes the least recently used entries until at most max_bytes are left, and files that crashed
 * writers left over. */
clg_status cache_folder_prune(const char *folder, uint64_t max_bytes, size_t *out_n_removed);

/* Lists only the cache's files, entries and left-overs; file_list_free. An absent folder is
 * empty. */
clg_status cache_folder_files(const char *folder, file_entry **out_files, size_t *out_n);

#endif
