/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads a .npy file as a whole and by rows. What can be read can be written and read again.
 */
#include "fuzz.h"

#include "base/memory.h"
#include "tensor/formats/npy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void write_again(const tensor *t)
{
    char path[1024];
    tensor *back;
    (void)snprintf(path, sizeof path, "%s", fuzz_file("again.npy", NULL, 0));
    if (npy_save(path, t) != CLG_OK) return;
    fuzz_require(npy_load(path, &back) == CLG_OK);
    fuzz_require(back->dtype == t->dtype && shape_equal(&back->dims, &t->dims));
    fuzz_require(back->size_bytes == t->size_bytes);
    fuzz_require(t->size_bytes == 0 || memcmp(back->data, t->data, t->size_bytes) == 0);
    tensor_free(back);
}

/* Reads the rows in two parts, the second one first, and appends them to another file. */
static void read_rows(const char *path)
{
    npy_reader reader = {0};
    npy_writer writer = {0};
    if (npy_reader_open(path, &reader) != CLG_OK) return;
    const int64_t n = reader.info.dims.dims[0], half = n / 2;
    const size_t row = n > 0 ? reader.info.data_bytes / (size_t)n : 0;
    char *data = malloc(reader.info.data_bytes + 1);
    fuzz_require(data);
    (void)npy_reader_read(&reader, half, n - half, data + row * (size_t)half);
    (void)npy_reader_read(&reader, 0, half, data);
    (void)npy_reader_read(&reader, n, 1, data);
    npy_reader_close(&reader);
    free(data);
    (void)npy_writer_open(path, reader.info.dtype, &reader.info.dims, &writer);
    npy_writer_abandon(&writer);
}

void fuzz_npy(const uint8_t *data, size_t size_bytes)
{
    tensor *t = NULL;
    npy_info info;
    size_t header_bytes;
    (void)npy_header_length(data, size_bytes, &header_bytes);
    if (npy_parse_header(data, size_bytes, &info) == CLG_OK)
        fuzz_require(info.header_bytes <= size_bytes);
    if (npy_from_memory(data, size_bytes, NULL, &t) == CLG_OK) write_again(t);
    tensor_free(t);
    read_rows(fuzz_file("fuzz.npy", data, size_bytes));
}
