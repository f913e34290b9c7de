/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads and writes .npy files by rows (slices along the first axis). Rows are not cached: memory
 * use does not grow with the file.
 */
#include "tensor/formats/npy.h"

#include "base/memory.h"

#include <inttypes.h>

static clg_status read_header(file_reader *file, npy_info *out_info)
{
    uint8_t preamble[NPY_PREAMBLE_BYTES] = {0};
    size_t header_bytes;
    const size_t n =
        file->size_bytes < sizeof preamble ? (size_t)file->size_bytes : sizeof preamble;
    CLG_TRY(file_reader_read(file, 0, preamble, n));
    CLG_TRY(npy_header_length(preamble, n, &header_bytes));
    if (header_bytes > file->size_bytes) header_bytes = (size_t)file->size_bytes;
    uint8_t *header = memory_alloc(header_bytes);
    if (!header) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    clg_status status = file_reader_read(file, 0, header, header_bytes);
    if (status == CLG_OK) status = npy_parse_header(header, header_bytes, out_info);
    memory_free(header);
    if (status == CLG_OK) status = npy_check_size(out_info, file->size_bytes);
    return status;
}

clg_status npy_reader_open(const char *path, npy_reader *out_reader)
{
    *out_reader = (npy_reader){0};
    CLG_TRY(file_reader_open(path, &out_reader->file));
    clg_status status = read_header(&out_reader->file, &out_reader->info);
    if (status == CLG_OK && out_reader->info.dims.rank == 0) {
        status = error_set(CLG_ERROR_SHAPE, "it holds a scalar, which has no rows");
    }
    if (status == CLG_OK) return CLG_OK;
    npy_reader_close(out_reader);
    return error_prefix(status, "'%s'", path);
}

/* Reads rows of a file in Fortran order, where element i of consecutive rows is contiguous. */
static clg_status read_columns(npy_reader *reader, int64_t first, tensor *t)
{
    npy_info part = reader->info;
    const int64_t n_rows = reader->info.dims.dims[0];
    const size_t n_elements = t->dims.dims[0] ? (size_t)(t->n_elements / t->dims.dims[0]) : 0;
    const size_t element_bytes = dtype_find(part.dtype)->bits / 8u;
    const size_t run_bytes = (size_t)t->dims.dims[0] * element_bytes;
    uint8_t *raw = memory_alloc(t->size_bytes);
    if (!raw) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    clg_status status = CLG_OK;
    for (size_t i = 0; i < n_elements && status == CLG_OK; i++) {
        const uint64_t at = (uint64_t)i * (uint64_t)n_rows + (uint64_t)first;
        status = file_reader_read(&reader->file, part.header_bytes + at * element_bytes,
                                  raw + i * run_bytes, run_bytes);
    }
    part.dims = t->dims;
    if (status == CLG_OK) npy_convert(&part, raw, 0, t);
    memory_free(raw);
    return status;
}

/* Fills t with rows from row `first` on. */
static clg_status read_rows(npy_reader *reader, int64_t first, tensor *t)
{
    if (t->size_bytes == 0) return CLG_OK;
    if (reader->info.fortran_order && reader->info.dims.rank > 1)
        return read_columns(reader, first, t);
    const uint64_t row_bytes = t->size_bytes / (size_t)t->dims.dims[0];
    CLG_TRY(file_reader_read(&reader->file, reader->info.header_bytes + (uint64_t)first * row_bytes,
                             t->data, t->size_bytes));
    npy_convert(&reader->info, t->data, 0, t);
    return CLG_OK;
}

clg_status npy_reader_read(npy_reader *reader, int64_t first, int64_t n, void *data)
{
    tensor *t;
    shape dims = reader->info.dims;
    const int64_t n_rows = dims.dims[0];
    if (first < 0 || n < 0 || first > n_rows || n > n_rows - first) {
        return error_set(CLG_ERROR_INVALID_ARGUMENT,
                         "%" PRId64 " rows from row %" PRId64 " are not in a file of %" PRId64
                         " rows",
                         n, first, n_rows);
    }
    dims.dims[0] = n;
    CLG_TRY(tensor_wrap(reader->info.dtype, &dims, data, NULL, NULL, &t));
    clg_status status = read_rows(reader, first, t);
    tensor_free(t);
    return status;
}

void npy_reader_close(npy_reader *reader)
{
    file_reader_close(&reader->file);
    *reader = (npy_reader){0};
}

clg_status npy_writer_open(const char *path, clg_dtype dtype, const shape *dims,
                           npy_writer *out_writer)
{
    *out_writer = (npy_writer){.dtype = dtype, .dims = *dims};
    char header[NPY_HEADER_TEXT_BYTES];
    clg_status status;
    if (dims->rank < 1) {
        *out_writer = (npy_writer){0};
        return error_set(CLG_ERROR_SHAPE, "a scalar cannot be written row by row");
    }
    /* Format the header with the largest row count, so that it has space for any count. */
    out_writer->dims.dims[0] = INT64_MAX;
    status = npy_format_header(dtype, &out_writer->dims, 0, header, &out_writer->header_bytes);
    out_writer->dims.dims[0] = 0;
    if (status == CLG_OK) status = file_writer_open(path, &out_writer->file);
    if (status == CLG_OK)
        status = file_writer_append(&out_writer->file, header, out_writer->header_bytes);
    if (status != CLG_OK) npy_writer_abandon(out_writer);
    return status;
}

/* Writes the header, and goes to row `first`. */
static clg_status start_part(npy_writer *writer, const char *path, const char *header,
                             size_t row_bytes, int64_t first)
{
    const uint64_t n_rows = (uint64_t)first + (uint64_t)writer->n_left;
    const uint64_t max_bytes = (uint64_t)INT64_MAX - writer->header_bytes;
    if (row_bytes > 0 && n_rows > max_bytes / row_bytes)
        return error_set(CLG_ERROR_INVALID_ARGUMENT, "'%s' would be too large", path);
    const uint64_t offset = writer->header_bytes + (uint64_t)first * row_bytes;
    CLG_TRY(file_writer_open_shared(path, &writer->file));
    CLG_TRY(file_writer_append(&writer->file, header, writer->header_bytes));
    return file_writer_seek(&writer->file, offset);
}

clg_status npy_writer_open_part(const char *path, clg_dtype dtype, const shape *dims, int64_t first,
                                npy_writer *out_writer)
{
    *out_writer = (npy_writer){0};
    char header[NPY_HEADER_TEXT_BYTES];
    size_t row_bytes, header_bytes;
    int64_t n_elements;
    if (dims->rank < 1) return error_set(CLG_ERROR_SHAPE, "a scalar cannot be written row by row");
    if (first < 0 || first > dims->dims[0])
        return error_set(CLG_ERROR_INVALID_ARGUMENT,
                         "row %" PRId64 " is not in a file of %" PRId64 " rows", first,
                         dims->dims[0]);
    npy_writer w = {.dtype = dtype, .dims = *dims, .is_part = true};
    w.n_left = dims->dims[0] - first;
    w.dims.dims[0] = INT64_MAX; /* the header has the size that npy_writer_open gives it */
    CLG_TRY(npy_format_header(dtype, &w.dims, 0, header, &w.header_bytes));
    CLG_TRY(npy_format_header(dtype, dims, w.header_bytes, header, &header_bytes));
    w.dims.dims[0] = 1;
    CLG_TRY(shape_n_elements(&w.dims, &n_elements));
    if (!dtype_bytes(dtype, n_elements, &row_bytes))
        return error_set(CLG_ERROR_SHAPE, "a row is too large");
    w.dims.dims[0] = 0;
    clg_status status = start_part(&w, path, header, row_bytes, first);
    if (status != CLG_OK)
        npy_writer_abandon(&w);
    else
        *out_writer = w;
    return status;
}

clg_status npy_writer_append(npy_writer *writer, const tensor *rows)
{
    shape dims = rows->dims;
    if (dims.rank > 0) dims.dims[0] = writer->dims.dims[0];
    if (rows->dtype != writer->dtype || !shape_equal(&dims, &writer->dims)) {
        char have[SHAPE_TEXT_BYTES], given[SHAPE_TEXT_BYTES];
        shape expected = writer->dims;
        expected.dims[0] = DIM_UNKNOWN;
        return error_set(CLG_ERROR_SHAPE, "rows of %s %s do not go on a file of %s %s",
                         dtype_find(rows->dtype)->name, shape_text(&rows->dims, given),
                         dtype_find(writer->dtype)->name, shape_text(&expected, have));
    }
    if (writer->is_part && rows->dims.dims[0] > writer->n_left)
        return error_set(CLG_ERROR_INVALID_ARGUMENT,
                         "%" PRId64 " rows do not go where %" PRId64 " are left",
                         rows->dims.dims[0], writer->n_left);
    CLG_TRY(file_writer_append(&writer->file, rows->data, rows->size_bytes));
    if (writer->is_part) writer->n_left -= rows->dims.dims[0];
    writer->dims.dims[0] += rows->dims.dims[0];
    return CLG_OK;
}

clg_status npy_writer_flush(npy_writer *writer) { return file_writer_flush(&writer->file); }

clg_status npy_writer_commit(npy_writer *writer)
{
    char header[NPY_HEADER_TEXT_BYTES];
    size_t header_bytes;
    clg_status status = CLG_OK;
    if (!writer->is_part)
        status = npy_format_header(writer->dtype, &writer->dims, writer->header_bytes, header,
                                   &header_bytes);
    if (status == CLG_OK && !writer->is_part)
        status = file_writer_patch(&writer->file, 0, header, header_bytes);
    if (status == CLG_OK) status = file_writer_commit(&writer->file);
    npy_writer_abandon(writer);
    return status;
}

void npy_writer_abandon(npy_writer *writer)
{
    file_writer_abandon(&writer->file);
    *writer = (npy_writer){0};
}
