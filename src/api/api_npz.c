/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements clg_npz_reader_*, which reads the arrays of a .npz one at a time.
 */
#include "api/arguments.h"
#include "base/memory.h"
#include "tensor/formats/npz.h"
#include "tensor/value.h"

#include <clgraph/inspect.h>

#include <string.h>

struct clg_npz_reader {
    npz_reader reader;
};

clg_status clg_npz_reader_open(const char *path, clg_npz_reader **out_reader)
{
    API_REQUIRE(out_reader);
    *out_reader = NULL;
    API_REQUIRE(path);
    clg_npz_reader *r = memory_zalloc(1, sizeof *r);
    if (!r) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    const clg_status status = npz_open_file(path, &r->reader);
    if (status != CLG_OK) {
        memory_free(r);
        return status;
    }
    *out_reader = r;
    return CLG_OK;
}

void clg_npz_reader_free(clg_npz_reader *reader)
{
    if (!reader) return;
    npz_close(&reader->reader);
    memory_free(reader);
}

size_t clg_npz_reader_n_arrays(const clg_npz_reader *reader)
{
    return reader ? reader->reader.count : 0;
}

const char *clg_npz_reader_name(const clg_npz_reader *reader, size_t index)
{
    return index < clg_npz_reader_n_arrays(reader) ? reader->reader.names[index] : NULL;
}

clg_status clg_npz_reader_header(const clg_npz_reader *reader, size_t index, clg_dtype *out_dtype,
                                 size_t *out_rank, int64_t out_dims[CLG_MAX_RANK])
{
    npy_info info;
    API_REQUIRE(out_dtype);
    API_REQUIRE(out_rank);
    API_REQUIRE(out_dims);
    *out_dtype = CLG_DTYPE_NONE;
    *out_rank = 0;
    memset(out_dims, 0, CLG_MAX_RANK * sizeof *out_dims);
    API_REQUIRE(reader);
    CLG_TRY(npz_read_header(&reader->reader, index, &info));
    *out_dtype = info.dtype;
    *out_rank = (size_t)info.dims.rank;
    memcpy(out_dims, info.dims.dims, *out_rank * sizeof *out_dims);
    return CLG_OK;
}

clg_status clg_npz_reader_read(const clg_npz_reader *reader, size_t index, clg_value **out_value)
{
    tensor *t;
    API_REQUIRE(out_value);
    *out_value = NULL;
    API_REQUIRE(reader);
    CLG_TRY(npz_read(&reader->reader, index, &t));
    const clg_status status = value_create_host(t, out_value);
    tensor_free(t);
    return status;
}
