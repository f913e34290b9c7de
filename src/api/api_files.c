/* SPDX-License-Identifier: Apache-2.0
 *
 * Loads and saves values as .npy, .npz and .pb files, and casts them between dtypes.
 */
#include "api/arguments.h"
#include "base/files.h"
#include "base/memory.h"
#include "tensor/formats/npy.h"
#include "tensor/formats/npz.h"
#include "tensor/formats/tensor_proto.h"
#include "tensor/formats/value_proto.h"
#include "tensor/value.h"

#include <clgraph/inspect.h>

#include <math.h>
#include <string.h>

typedef enum file_format { FORMAT_NONE, FORMAT_NPY, FORMAT_PB } file_format;

static bool ends_in(const char *path, const char *ending)
{
    size_t n = strlen(path), m = strlen(ending);
    if (n <= m) return false;
    for (size_t i = 0; i < m; i++) {
        char c = path[n - m + i];
        if (c >= 'A' && c <= 'Z') c = (char)(c - 'A' + 'a');
        if (c != ending[i]) return false;
    }
    return true;
}

static clg_status find_format(const char *path, file_format *out_format)
{
    *out_format = ends_in(path, ".npy")  ? FORMAT_NPY
                  : ends_in(path, ".pb") ? FORMAT_PB
                                         : FORMAT_NONE;
    if (*out_format != FORMAT_NONE) return CLG_OK;
    return error_set(CLG_ERROR_INVALID_ARGUMENT, "'%s': a tensor's file ends in .npy or .pb", path);
}

clg_status clg_value_load(const char *path, clg_value **out_value)
{
    API_REQUIRE(out_value);
    *out_value = NULL;
    API_REQUIRE(path);
    file_format format;
    tensor *t;
    CLG_TRY(find_format(path, &format));
    CLG_TRY(format == FORMAT_NPY ? npy_load(path, &t) : tensor_proto_load(path, NULL, &t));
    clg_status status = value_create_host(t, out_value);
    tensor_free(t);
    return status;
}

clg_status clg_value_load_kind(const char *path, clg_value_kind kind, clg_value **out_value)
{
    API_REQUIRE(out_value);
    *out_value = NULL;
    API_REQUIRE(path);
    file_format format;
    if (kind == CLG_VALUE_TENSOR) return clg_value_load(path, out_value);
    CLG_TRY(find_format(path, &format));
    if (format == FORMAT_PB) return value_proto_load(path, kind, out_value);
    return error_set(CLG_ERROR_INVALID_ARGUMENT,
                     "'%s': only a .pb file can hold a sequence, optional or map", path);
}

/* Sets *out_tensor to a reference to the value's tensor, which is copied to the host if it is on a
 * device. INVALID_ARGUMENT if the value is not a tensor. */
static clg_status host_tensor(clg_value *value, tensor **out_tensor)
{
    clg_value *host;
    if (value->kind != CLG_VALUE_TENSOR) {
        return error_set(CLG_ERROR_INVALID_ARGUMENT,
                         "only tensors can be written to a file or cast");
    }
    CLG_TRY(value_to_host(value, &host));
    *out_tensor = tensor_retain(host->host);
    value_free(host);
    return CLG_OK;
}

clg_status clg_value_save(clg_value *value, const char *path)
{
    API_REQUIRE(value);
    API_REQUIRE(path);
    file_format format;
    tensor *t;
    CLG_TRY(find_format(path, &format));
    CLG_TRY(host_tensor(value, &t));
    clg_status status = format == FORMAT_NPY ? npy_save(path, t) : tensor_proto_save(path, "", t);
    tensor_free(t);
    return status;
}

clg_status clg_file_write(const char *path, const void *data, size_t size_bytes)
{
    API_REQUIRE(path);
    if (size_bytes > 0) API_REQUIRE(data);
    return file_write(path, data, size_bytes);
}

static clg_status read_set(const npz_reader *reader, char **names, clg_value **values)
{
    for (size_t i = 0; i < reader->count; i++) {
        tensor *t;
        names[i] = memory_strdup(reader->names[i]);
        if (!names[i]) return CLG_ERROR_OUT_OF_HOST_MEMORY;
        CLG_TRY(npz_read(reader, i, &t));
        clg_status status = value_create_host(t, &values[i]);
        tensor_free(t);
        CLG_TRY(status);
    }
    return CLG_OK;
}

clg_status clg_npz_load(const char *path, char ***out_names, clg_value ***out_values, size_t *out_n)
{
    API_REQUIRE(out_names);
    API_REQUIRE(out_values);
    API_REQUIRE(out_n);
    *out_names = NULL;
    *out_values = NULL;
    *out_n = 0;
    API_REQUIRE(path);
    npz_reader reader;
    CLG_TRY(npz_open_file(path, &reader));
    char **names = memory_zalloc(reader.count, sizeof *names);
    clg_value **values = memory_zalloc(reader.count, sizeof *values);
    clg_status status = CLG_ERROR_OUT_OF_HOST_MEMORY;
    if (names && values) status = read_set(&reader, names, values);
    if (status == CLG_OK) {
        *out_names = names;
        *out_values = values;
        *out_n = reader.count;
    } else {
        clg_npz_free(names, values, reader.count);
    }
    npz_close(&reader);
    return status;
}

void clg_npz_free(char **names, clg_value **values, size_t n)
{
    for (size_t i = 0; names && i < n; i++) memory_free(names[i]);
    for (size_t i = 0; values && i < n; i++) value_free(values[i]);
    memory_free(names);
    memory_free(values);
}

clg_status clg_npz_save(const char *path, const char *const *names, clg_value *const *values,
                        size_t n)
{
    API_REQUIRE(path);
    if (n > 0) API_REQUIRE(names);
    if (n > 0) API_REQUIRE(values);
    for (size_t i = 0; i < n; i++) {
        API_REQUIRE(names[i]);
        API_REQUIRE(values[i]);
    }
    tensor **tensors = memory_zalloc(n, sizeof(tensor *));
    if (!tensors) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    clg_status status = CLG_OK;
    for (size_t i = 0; i < n && status == CLG_OK; i++) status = host_tensor(values[i], &tensors[i]);
    if (status == CLG_OK) status = npz_save(path, n, names, tensors, true);
    for (size_t i = 0; i < n; i++) tensor_free(tensors[i]);
    memory_free(tensors);
    return status;
}

static bool is_unsigned64(const tensor *t) { return t->dtype == CLG_UINT64; }

/* Returns whether element i of a tensor of integers equals that of a tensor of floats exactly. */
static bool equal_int_float(const tensor *ints, const tensor *floats, int64_t i)
{
    double f = tensor_get_float(floats, i);
    int64_t n = tensor_get_int(ints, i);
    if (!(f == floor(f))) return false;
    if (is_unsigned64(ints)) return f >= 0 && f < 0x1p64 && (uint64_t)f == (uint64_t)n;
    return f >= -0x1p63 && f < 0x1p63 && (int64_t)f == n;
}

static bool equal_element(const tensor *a, const tensor *b, int64_t i)
{
    bool a_float = dtype_is_float(a->dtype), b_float = dtype_is_float(b->dtype);
    if (a_float && b_float) {
        double x = tensor_get_float(a, i), y = tensor_get_float(b, i);
        return x == y || (isnan(x) && isnan(y));
    }
    if (a_float) return equal_int_float(b, a, i);
    if (b_float) return equal_int_float(a, b, i);
    int64_t x = tensor_get_int(a, i);
    return x == tensor_get_int(b, i) && (x >= 0 || is_unsigned64(a) == is_unsigned64(b));
}

clg_status clg_value_cast(clg_value *value, clg_dtype dtype, clg_value **out_value, bool *out_exact)
{
    API_REQUIRE(out_value);
    *out_value = NULL;
    if (out_exact) *out_exact = false;
    API_REQUIRE(value);
    tensor *from, *to = NULL;
    CLG_TRY(host_tensor(value, &from));
    clg_status status = tensor_cast(from, dtype, &to);
    if (status == CLG_OK) status = value_create_host(to, out_value);
    if (status == CLG_OK && out_exact) {
        int64_t i = 0;
        while (i < from->n_elements && from != to && equal_element(from, to, i)) i++;
        *out_exact = from == to || i == from->n_elements;
    }
    tensor_free(to);
    tensor_free(from);
    return status;
}

double clg_value_get_double(const clg_value *value, int64_t i)
{
    if (!value || !value->host || i < 0 || i >= value->n_elements) return 0;
    return tensor_get_float(value->host, i);
}
