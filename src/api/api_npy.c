/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements clg_npy_reader_* and clg_npy_writer_*, which read and write .npy files by rows.
 */
#include "api/arguments.h"
#include "base/memory.h"
#include "tensor/formats/npy.h"

#include <clgraph/inspect.h>

struct clg_npy_reader {
    npy_reader reader;
};

struct clg_npy_writer {
    npy_writer writer;
};

/* Returns INVALID_ARGUMENT unless size_bytes is the size of n_rows rows of a tensor of these
 * dimensions, and data is not NULL or size_bytes is 0. */
static clg_status check_size(const char *function, clg_dtype dtype, const shape *dims,
                             int64_t n_rows, const void *data, size_t size_bytes)
{
    shape rows = *dims;
    int64_t n;
    size_t wanted;
    rows.dims[0] = n_rows;
    CLG_TRY(shape_n_elements(&rows, &n));
    if (!dtype_bytes(dtype, n, &wanted) || wanted != size_bytes)
        return error_set(CLG_ERROR_INVALID_ARGUMENT, "%s: the rows do not have %zu bytes", function,
                         size_bytes);
    if (size_bytes && !data)
        return error_set(CLG_ERROR_INVALID_ARGUMENT, "%s: data is NULL", function);
    return CLG_OK;
}

clg_status clg_npy_reader_open(const char *path, clg_npy_reader **out_reader)
{
    API_REQUIRE(out_reader);
    *out_reader = NULL;
    API_REQUIRE(path);
    clg_npy_reader *r = memory_zalloc(1, sizeof *r);
    if (!r) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    clg_status status = npy_reader_open(path, &r->reader);
    if (status != CLG_OK) {
        memory_free(r);
        return status;
    }
    *out_reader = r;
    return CLG_OK;
}

void clg_npy_reader_free(clg_npy_reader *reader)
{
    if (!reader) return;
    npy_reader_close(&reader->reader);
    memory_free(reader);
}

clg_dtype clg_npy_reader_dtype(const clg_npy_reader *reader)
{
    return reader ? reader->reader.info.dtype : CLG_DTYPE_NONE;
}

size_t clg_npy_reader_rank(const clg_npy_reader *reader)
{
    return reader ? (size_t)reader->reader.info.dims.rank : 0;
}

const int64_t *clg_npy_reader_dims(const clg_npy_reader *reader)
{
    static const int64_t none[CLG_MAX_RANK] = {0};
    return reader ? reader->reader.info.dims.dims : none;
}

clg_status clg_npy_reader_read(clg_npy_reader *reader, int64_t first_row, size_t n_rows, void *data,
                               size_t size_bytes)
{
    API_REQUIRE(reader);
    npy_reader *r = &reader->reader;
    if (n_rows > INT64_MAX)
        return error_set(CLG_ERROR_INVALID_ARGUMENT, "%s: there are no %zu rows", __func__, n_rows);
    CLG_TRY(check_size(__func__, r->info.dtype, &r->info.dims, (int64_t)n_rows, data, size_bytes));
    return npy_reader_read(r, first_row, (int64_t)n_rows, data);
}

/* Opens a writer of a whole file if first_row is -1, else of a part of one. */
static clg_status open_writer(const char *function, const char *path, clg_dtype dtype, size_t rank,
                              const int64_t *dims, int64_t first_row, clg_npy_writer **out_writer)
{
    shape s;
    CLG_TRY(shape_make(rank, dims, &s));
    if (rank > 0 && first_row < 0) s.dims[0] = 0;
    if (!shape_is_known(&s))
        return error_set(CLG_ERROR_INVALID_ARGUMENT, "%s: a dimension is negative", function);
    clg_npy_writer *w = memory_zalloc(1, sizeof *w);
    if (!w) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    clg_status status = first_row < 0
                            ? npy_writer_open(path, dtype, &s, &w->writer)
                            : npy_writer_open_part(path, dtype, &s, first_row, &w->writer);
    if (status != CLG_OK) {
        memory_free(w);
        return status;
    }
    *out_writer = w;
    return CLG_OK;
}

clg_status clg_npy_writer_open(const char *path, clg_dtype dtype, size_t rank, const int64_t *dims,
                               clg_npy_writer **out_writer)
{
    API_REQUIRE(out_writer);
    *out_writer = NULL;
    API_REQUIRE(path);
    if (rank > 0) API_REQUIRE(dims);
    return open_writer(__func__, path, dtype, rank, dims, -1, out_writer);
}

clg_status clg_npy_writer_open_part(const char *path, clg_dtype dtype, size_t rank,
                                    const int64_t *dims, int64_t first_row,
                                    clg_npy_writer **out_writer)
{
    API_REQUIRE(out_writer);
    *out_writer = NULL;
    API_REQUIRE(path);
    if (rank > 0) API_REQUIRE(dims);
    if (first_row < 0)
        return error_set(CLG_ERROR_INVALID_ARGUMENT, "%s: first_row is negative", __func__);
    return open_writer(__func__, path, dtype, rank, dims, first_row, out_writer);
}

clg_status clg_npy_writer_append(clg_npy_writer *writer, size_t n_rows, const void *data,
                                 size_t size_bytes)
{
    tensor *rows;
    API_REQUIRE(writer);
    npy_writer *w = &writer->writer;
    if (w->dtype == CLG_DTYPE_NONE)
        return error_set(CLG_ERROR_INVALID_ARGUMENT, "%s: the file is complete", __func__);
    shape dims = w->dims;
    dims.dims[0] = n_rows > INT64_MAX ? INT64_MAX : (int64_t)n_rows;
    CLG_TRY(check_size(__func__, w->dtype, &dims, dims.dims[0], data, size_bytes));
    CLG_TRY(tensor_wrap(w->dtype, &dims, (void *)data, NULL, NULL, &rows));
    clg_status status = npy_writer_append(w, rows);
    tensor_free(rows);
    return status;
}

clg_status clg_npy_writer_flush(clg_npy_writer *writer)
{
    API_REQUIRE(writer);
    if (writer->writer.dtype == CLG_DTYPE_NONE)
        return error_set(CLG_ERROR_INVALID_ARGUMENT, "%s: the file is complete", __func__);
    return npy_writer_flush(&writer->writer);
}

clg_status clg_npy_writer_commit(clg_npy_writer *writer)
{
    API_REQUIRE(writer);
    if (writer->writer.dtype == CLG_DTYPE_NONE)
        return error_set(CLG_ERROR_INVALID_ARGUMENT, "%s: the file is complete", __func__);
    return npy_writer_commit(&writer->writer);
}

void clg_npy_writer_free(clg_npy_writer *writer)
{
    if (!writer) return;
    npy_writer_abandon(&writer->writer);
    memory_free(writer);
}
