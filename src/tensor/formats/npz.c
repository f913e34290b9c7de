/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads and writes NumPy's .npz archives: ZIP files in which each entry NAME.npy is a .npy file
 * with the array NAME. Other entries are ignored.
 */
#include "tensor/formats/npz.h"

#include "base/hash_map.h"
#include "base/memory.h"
#include "tensor/formats/npy.h"

#include <string.h>

#define SUFFIX ".npy"
#define SUFFIX_BYTES (sizeof SUFFIX - 1)

clg_status npz_open_memory(const void *data, size_t size_bytes, npz_reader *out_reader)
{
    clg_status status;
    *out_reader = (npz_reader){0};
    CLG_TRY(zip_open(data, size_bytes, &out_reader->zip));
    out_reader->entries = memory_zalloc(out_reader->zip.count, sizeof *out_reader->entries);
    out_reader->names = memory_zalloc(out_reader->zip.count, sizeof *out_reader->names);
    status = out_reader->entries && out_reader->names ? CLG_OK : CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; status == CLG_OK && i < out_reader->zip.count; i++) {
        const char *name = out_reader->zip.entries[i].name;
        size_t length = strlen(name);
        if (length < SUFFIX_BYTES || strcmp(name + length - SUFFIX_BYTES, SUFFIX) != 0) continue;
        char *copy = memory_strndup(name, length - SUFFIX_BYTES);
        if (!copy) status = CLG_ERROR_OUT_OF_HOST_MEMORY;
        out_reader->names[out_reader->count] = copy;
        out_reader->entries[out_reader->count++] = i;
    }
    if (status != CLG_OK) npz_close(out_reader);
    return status;
}

clg_status npz_open_file(const char *path, npz_reader *out_reader)
{
    file_view view;
    *out_reader = (npz_reader){0};
    CLG_TRY(file_view_open(path, 0, &view));
    clg_status status = npz_open_memory(view.data, view.size_bytes, out_reader);
    if (status != CLG_OK) {
        file_view_close(&view);
        return error_prefix(status, "'%s'", path);
    }
    out_reader->view = view;
    return CLG_OK;
}

size_t npz_find(const npz_reader *reader, const char *name)
{
    for (size_t i = 0; i < reader->count; i++) {
        if (strcmp(reader->names[i], name) == 0) return i;
    }
    return HASH_MAP_NONE;
}

/* Reads the .npy header at the start of an entry, and checks it against the entry's size. */
static clg_status read_header(zip_stream *stream, npy_info *out_info)
{
    char preamble[NPY_PREAMBLE_BYTES];
    size_t header_bytes;
    CLG_TRY(zip_stream_read(stream, preamble, sizeof preamble));
    CLG_TRY(npy_header_length(preamble, sizeof preamble, &header_bytes));
    if (header_bytes < sizeof preamble || header_bytes > stream->entry->size_bytes) {
        return error_set(CLG_ERROR_IO, "no valid .npy file: the header is truncated");
    }
    char *header = memory_alloc(header_bytes);
    if (!header) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    memcpy(header, preamble, sizeof preamble);
    clg_status status =
        zip_stream_read(stream, header + sizeof preamble, header_bytes - sizeof preamble);
    if (status == CLG_OK) status = npy_parse_header(header, header_bytes, out_info);
    memory_free(header);
    CLG_TRY(status);
    if (out_info->data_bytes == stream->entry->size_bytes - header_bytes) return CLG_OK;
    return error_set(
        CLG_ERROR_IO,
        "no valid .npy file: its header announces %zu bytes of data, but there are %zu",
        out_info->data_bytes, stream->entry->size_bytes - header_bytes);
}

static clg_status read_data(zip_stream *stream, const npy_info *info, tensor *t)
{
    if (!info->fortran_order) {
        CLG_TRY(zip_stream_read(stream, t->data, t->size_bytes));
        npy_convert(info, t->data, 0, t);
        return zip_stream_finish(stream);
    }
    void *raw = memory_alloc(info->data_bytes);
    if (!raw) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    clg_status status = zip_stream_read(stream, raw, info->data_bytes);
    if (status == CLG_OK) npy_convert(info, raw, 0, t);
    memory_free(raw);
    return status == CLG_OK ? zip_stream_finish(stream) : status;
}

/* Opens the data of array i behind its header; the stream must be closed also after a failure. */
static clg_status open_array(const npz_reader *reader, size_t i, zip_stream *out_stream,
                             npy_info *out_info)
{
    *out_info = (npy_info){.dtype = CLG_DTYPE_NONE};
    *out_stream = (zip_stream){0};
    if (i >= reader->count)
        return error_set(CLG_ERROR_INVALID_ARGUMENT, "the .npz file has %zu arrays", reader->count);
    CLG_TRY(zip_stream_open(&reader->zip.entries[reader->entries[i]], out_stream));
    return read_header(out_stream, out_info);
}

/* Names the array in the message of a failure. */
static clg_status of_array(clg_status status, const npz_reader *reader, size_t i)
{
    if (status == CLG_OK || i >= reader->count) return status;
    return error_prefix(status, "array '%s'", reader->names[i]);
}

clg_status npz_read_header(const npz_reader *reader, size_t i, npy_info *out_info)
{
    zip_stream stream;
    const clg_status status = open_array(reader, i, &stream, out_info);
    zip_stream_close(&stream);
    return of_array(status, reader, i);
}

clg_status npz_read(const npz_reader *reader, size_t i, tensor **out_tensor)
{
    clg_status status;
    zip_stream stream;
    npy_info info;
    tensor *t = NULL;
    *out_tensor = NULL;
    CLG_TRY_GOTO(open_array(reader, i, &stream, &info), done);
    CLG_TRY_GOTO(tensor_create(info.dtype, &info.dims, &t), done);
    CLG_TRY_GOTO(read_data(&stream, &info, t), done);
    *out_tensor = t;
    t = NULL;
done:
    tensor_free(t);
    zip_stream_close(&stream);
    return of_array(status, reader, i);
}

void npz_close(npz_reader *reader)
{
    for (size_t i = 0; i < reader->count; i++) memory_free(reader->names[i]);
    memory_free(reader->names);
    memory_free(reader->entries);
    zip_close(&reader->zip);
    file_view_close(&reader->view);
    *reader = (npz_reader){0};
}

static clg_status write_array(zip_writer *writer, const char *name, const tensor *t)
{
    char header[NPY_HEADER_TEXT_BYTES];
    size_t header_bytes;
    CLG_TRY(npy_format_header(t->dtype, &t->dims, 0, header, &header_bytes));
    size_t length = strlen(name);
    char *entry = memory_alloc(length + sizeof SUFFIX);
    if (!entry) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    memcpy(entry, name, length);
    memcpy(entry + length, SUFFIX, sizeof SUFFIX);
    clg_status status = zip_writer_begin(writer, entry);
    memory_free(entry);
    if (status == CLG_OK) status = zip_writer_write(writer, header, header_bytes);
    if (status == CLG_OK) status = zip_writer_write(writer, t->data, t->size_bytes);
    if (status == CLG_OK) status = zip_writer_end(writer);
    return status;
}

clg_status npz_save(const char *path, size_t n, const char *const *names, tensor *const *tensors,
                    bool compress)
{
    zip_writer writer;
    CLG_TRY(zip_writer_open(path, compress, &writer));
    clg_status status = CLG_OK;
    for (size_t i = 0; i < n && status == CLG_OK; i++) {
        status = write_array(&writer, names[i], tensors[i]);
        if (status != CLG_OK) (void)error_prefix(status, "array '%s'", names[i]);
    }
    if (status == CLG_OK) return zip_writer_commit(&writer);
    zip_writer_abandon(&writer);
    return status;
}
