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

/* Writes n rows in two parts, and compares the file with them. */
static void write_rows(const npy_info *info, int64_t n, const char *data)
{
    char path[1024];
    npy_writer writer = {0};
    npy_reader reader = {0};
    tensor *part;
    (void)snprintf(path, sizeof path, "%s", fuzz_file("rows.npy", NULL, 0));
    if (npy_writer_open(path, info->dtype, &info->dims, &writer) != CLG_OK) return;
    for (int i = 0; i < 2; i++) {
        shape dims = info->dims;
        const size_t row = n > 0 ? info->data_bytes / (size_t)n : 0;
        dims.dims[0] = i ? n - n / 2 : n / 2;
        fuzz_require(tensor_from_bytes(info->dtype, &dims, data + (i ? row * (size_t)(n / 2) : 0),
                                       row * (size_t)dims.dims[0], NULL, &part) == CLG_OK);
        fuzz_require(npy_writer_append(&writer, part) == CLG_OK);
        tensor_free(part);
    }
    fuzz_require(npy_writer_commit(&writer) == CLG_OK);
    fuzz_require(npy_reader_open(path, &reader) == CLG_OK);
    fuzz_require(shape_equal(&reader.info.dims, &info->dims));
    npy_reader_close(&reader);
    npy_writer_abandon(&writer);
    if (npy_writer_open(path, info->dtype, &info->dims, &writer) == CLG_OK)
        npy_writer_abandon(&writer);
}

/* Reads the rows in two parts, the second one first, and writes them to another file. */
static void read_rows(const char *path)
{
    npy_reader reader = {0};
    if (npy_reader_open(path, &reader) != CLG_OK) return;
    const int64_t n = reader.info.dims.dims[0], half = n / 2;
    const size_t row = n > 0 ? reader.info.data_bytes / (size_t)n : 0;
    char *data = malloc(reader.info.data_bytes + 1);
    fuzz_require(data);
    const bool is_read =
        npy_reader_read(&reader, half, n - half, data + row * (size_t)half) == CLG_OK &&
        npy_reader_read(&reader, 0, half, data) == CLG_OK;
    fuzz_require(npy_reader_read(&reader, n, 1, data) != CLG_OK);
    if (is_read) write_rows(&reader.info, n, data);
    npy_reader_close(&reader);
    free(data);
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
