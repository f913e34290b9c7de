/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads and writes NumPy's .npz files: ZIP files of named arrays in .npy format. Memory is
 * allocated for the size in an array's .npy header, which must match the size in the ZIP directory.
 */
#ifndef CLG_TENSOR_NPZ_H
#define CLG_TENSOR_NPZ_H

#include "base/files.h"
#include "tensor/formats/npy.h"
#include "tensor/formats/zip.h"
#include "tensor/tensor.h"

typedef struct npz_reader {
    file_view view; /* open if npz_open_file was used */
    zip_archive zip;
    size_t *entries; /* by array: index in zip.entries */
    char **names;    /* by array, without ".npy"; not validated */
    size_t count;
} npz_reader; /* all zeros is valid and empty */

/* Opens an archive; maps the file while the reader is open. */
clg_status npz_open_file(const char *path, npz_reader *out_reader);
/* Opens an archive in memory, which must outlive the reader. */
clg_status npz_open_memory(const void *data, size_t size_bytes, npz_reader *out_reader);
/* Returns the index of a name; HASH_MAP_NONE (hash_map.h) when there is none. */
size_t npz_find(const npz_reader *reader, const char *name);
/* Reads the header of array i, whose data are not unpacked; checks that they have the size that the
 * header announces. */
clg_status npz_read_header(const npz_reader *reader, size_t i, npy_info *out_info);
/* Creates a tensor from array i. */
clg_status npz_read(const npz_reader *reader, size_t i, tensor **out_tensor);
void npz_close(npz_reader *reader); /* accepts a closed one */

/* Writes n arrays to a temporary file, which then replaces `path`. names are without ".npy". */
clg_status npz_save(const char *path, size_t n, const char *const *names, tensor *const *tensors,
                    bool compress);

#endif
