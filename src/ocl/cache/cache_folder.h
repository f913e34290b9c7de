/* SPDX-License-Identifier: Apache-2.0
 *
 * Locates and prunes the disk cache's folder, and computes its size. Ignores files in it that do
 * not belong to the cache.
 */
#ifndef CLG_OCL_CACHE_FOLDER_H
#define CLG_OCL_CACHE_FOLDER_H

#include "base/files.h"

/* Returns a copy of cache_dir, else of $CLG_CACHE_DIR, else of the path of the user's cache folder;
 * release it with memory_free. */
clg_status cache_folder_path(const char *cache_dir, char **out_path);
/* Returns the total size of the cache's files. */
clg_status cache_folder_size(const char *folder, uint64_t *out_bytes);
/* Removes the least recently used entries until at most max_bytes remain, and temporary files that
 * writers that have died have left. */
clg_status cache_folder_prune(const char *folder, uint64_t max_bytes, size_t *out_n_removed);

/* Lists the cache's files: entries and temporary files of entries. An absent folder is empty.
 * Release the list with file_list_free. */
clg_status cache_folder_files(const char *folder, file_entry **out_files, size_t *out_n);

#endif
