/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads and writes NumPy's .npz files: named arrays, as a ZIP of .npy files. An entry is unpacked
 * only to the size in its .npy header, which must match the directory.
 */
#ifndef CLG_TENSOR_NPZ_H
#define CLG_TENSOR_NPZ_H

#include "base/files.h"
#include "tensor/formats/zip.h"
#include "tensor/tensor.h"

typedef struct npz_reader {
    file_view view; /* for npz_open_file */
    zip_archive zip;
    size_t *entries; /* indices in zip.entries of the .npy files */
    char **names;    /* without ".npy"; untrusted */
    size_t count;
} npz_reader; /* all zeros is valid and empty */

clg_status npz_open_file(const char *path, npz_reader *out_reader);
/* Opens an archive in memory, which must outlive the reader. */
clg_status npz_open_memory(const void *data, size_t size_bytes, npz_reader *out_reader);
/* Returns the index of a name; HASH_MAP_NONE (hash_map.h) when there is none. */
size_t npz_find(const npz_reader *reader, const char *name);
clg_status npz_read(const npz_reader *reader, size_t i, tensor **out_tensor);
void npz_close(npz_reader *reader); /* accepts a closed one */

/* Saves arrays: writes a temporary file and renames it. names are without ".npy". */
clg_status npz_save(const char *path, size_t n, const char *const *names, tensor *const *tensors,
                    bool compress);

#endif
