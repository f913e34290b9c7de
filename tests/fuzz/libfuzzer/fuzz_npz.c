/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads all arrays of a .npz file, finds each by its name, and writes those that could be read to
 * another file, which must have as many.
 */
#include "fuzz.h"

#include "base/hash_map.h"
#include "base/memory.h"
#include "tensor/formats/npz.h"

#include <stdlib.h>

static void write_again(size_t n, const char *const *names, tensor *const *tensors)
{
    npz_reader reader = {0};
    const char *path = fuzz_file("again.npz", NULL, 0);
    if (npz_save(path, n, names, tensors, n % 2) != CLG_OK) return;
    fuzz_require(npz_open_file(path, &reader) == CLG_OK);
    fuzz_require(reader.count == n);
    npz_close(&reader);
}

static void read_arrays(const npz_reader *reader)
{
    tensor **tensors = calloc(reader->count + 1, sizeof *tensors);
    const char **names = calloc(reader->count + 1, sizeof *names);
    size_t n = 0;
    fuzz_require(tensors && names);
    for (size_t i = 0; i < reader->count; i++) {
        fuzz_require(npz_find(reader, reader->names[i]) != HASH_MAP_NONE);
        if (npz_read(reader, i, &tensors[n]) == CLG_OK)
            names[n++] = reader->names[i];
        else
            fuzz_require(!tensors[n]);
    }
    write_again(n, names, tensors);
    for (size_t i = 0; i < n; i++) tensor_free(tensors[i]);
    free(tensors);
    free(names);
}

void fuzz_npz(const uint8_t *data, size_t size_bytes)
{
    npz_reader reader = {0};
    if (npz_open_memory(data, size_bytes, &reader) == CLG_OK) {
        tensor *t;
        fuzz_require(npz_read(&reader, reader.count, &t) != CLG_OK);
        read_arrays(&reader);
    }
    npz_close(&reader);
    if (npz_open_file(fuzz_file("fuzz.npz", data, size_bytes), &reader) != CLG_OK)
        fuzz_require(reader.count == 0);
    npz_close(&reader);
}
