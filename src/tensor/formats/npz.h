/* SPDX-License-Identifier: Apache-2.0
 *
 * NumPy's .npz files: named arrays, a ZIP of .npy files. An entry is unpacked only as far as its .npy header
 * says, and that must be what the directory says too.
 */
#ifndef CLG_TENSOR_NPZ_H
#define CLG_TENSOR_NPZ_H

#include "base/files.h"
#include "tensor/formats/zip.h"
#include "tensor/tensor.h"

typedef struct npz_reader {
    file_view view; /* of npz_open_file */
    zip_archive zip;
    size_t *entries; /* of the .npy files in zip */
    char **names;    /* without ".npy"; untrusted */
    size_t n;
} npz_reader; /* all zeros is valid and empty */

clg_status npz_open_file(const char *path, npz_reader *out_reader);
/* The memory must outlive the reader. */
clg_status npz_open_memory(const void *data, size_t size_bytes, npz_reader *out_reader);
/* The index of a name; MAP_NONE (map.h) when there is none. */
size_t npz_find(const npz_reader *reader, const char *name);
clg_status npz_read(const npz_reader *reader, size_t i, tensor **out_tensor);
void npz_close(npz_reader *reader); /* accepts a closed one */

/* Written aside and renamed. names without ".npy". */
clg_status npz_save(const char *path, size_t n, const char *const *names, tensor *const *tensors,
                    bool compress);

#endif
