/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements clg_value_*: values on the host and in the memory of a device.
 */
#include "api/arguments.h"
#include "session/context_handle.h"
#include "tensor/value.h"

static clg_status check_shape(clg_dtype dtype, size_t rank, const int64_t *dims, shape *out_shape)
{
    if (!dtype_find(dtype)) {
        return error_set(CLG_ERROR_INVALID_ARGUMENT, "%d is not a dtype", (int)dtype);
    }
    if (rank > 0) API_REQUIRE(dims);
    return shape_make_known(rank, dims, out_shape);
}

clg_status clg_value_create(clg_dtype dtype, size_t rank, const int64_t *dims,
                            clg_value **out_value)
{
    API_REQUIRE(out_value);
    *out_value = NULL;
    shape s;
    tensor *t;
    CLG_TRY(check_shape(dtype, rank, dims, &s));
    CLG_TRY(tensor_create(dtype, &s, &t));
    clg_status status = value_create_host(t, out_value);
    tensor_free(t);
    return status;
}

clg_status clg_value_wrap(clg_dtype dtype, size_t rank, const int64_t *dims, void *data,
                          size_t size_bytes, clg_release_callback release, void *user,
                          clg_value **out_value)
{
    API_REQUIRE(out_value);
    *out_value = NULL;
    char shown[SHAPE_TEXT_BYTES];
    shape s;
    tensor *t;
    CLG_TRY(check_shape(dtype, rank, dims, &s));
    size_t needed;
    CLG_TRY(tensor_bytes_of(dtype, &s, &needed));
    if (needed > 0) API_REQUIRE(data);
    if (size_bytes < needed)
        return error_set(CLG_ERROR_INVALID_ARGUMENT, "%s: data has %zu bytes; %s %s has %zu",
                         __func__, size_bytes, dtype_name(dtype), shape_text(&s, shown), needed);
    CLG_TRY(tensor_wrap(dtype, &s, data, release, user, &t));
    clg_status status = value_create_host(t, out_value);
    if (status != CLG_OK) t->release = NULL; /* on failure the caller still owns its memory */
    tensor_free(t);
    return status;
}

clg_status clg_value_create_device(clg_context *context, clg_dtype dtype, size_t rank,
                                   const int64_t *dims, clg_value **out_value)
{
    API_REQUIRE(out_value);
    *out_value = NULL;
    API_REQUIRE_DEVICE(context);
    shape s;
    int64_t n;
    size_t size_bytes;
    ocl_buffer *buffer;
    CLG_TRY(check_shape(dtype, rank, dims, &s));
    CLG_TRY(shape_n_elements(&s, &n));
    if (dtype == CLG_STRING || !dtype_bytes(dtype, n, &size_bytes)) {
        char words[SHAPE_TEXT_BYTES];
        return error_set(CLG_ERROR_INVALID_ARGUMENT,
                         "a %s tensor of shape %s cannot be in the memory of a device",
                         dtype_name(dtype), shape_text(&s, words));
    }
    device_context *current = context_handle_current(context);
    clg_status status = ocl_buffer_create(current->ocl, size_bytes, OCL_BUFFER_DEVICE, &buffer);
    if (status == CLG_OK) status = context_wrap_buffer(current, buffer, 0, dtype, &s, out_value);
    context_free(current);
    return status;
}

clg_status clg_value_write(clg_value *value, const void *data, size_t size_bytes)
{
    API_REQUIRE(value);
    if (size_bytes > 0) API_REQUIRE(data);
    return value_write(value, data, size_bytes);
}

clg_status clg_value_read(const clg_value *value, void *data, size_t size_bytes)
{
    API_REQUIRE(value);
    if (size_bytes > 0) API_REQUIRE(data);
    return value_read(value, data, size_bytes);
}

clg_status clg_value_copy(const clg_value *from, clg_value *to)
{
    API_REQUIRE(from);
    API_REQUIRE(to);
    return context_copy_value(from, to);
}

clg_status clg_value_to_host(clg_value *value, clg_value **out_value)
{
    API_REQUIRE(out_value);
    *out_value = NULL;
    API_REQUIRE(value);
    return value_to_host(value, out_value);
}

static clg_status check_item(clg_dtype *dtype, const clg_value *item, size_t i)
{
    if (!item) return error_set(CLG_ERROR_INVALID_ARGUMENT, "item %zu is NULL", i);
    if (*dtype == CLG_DTYPE_NONE) *dtype = item->dtype;
    if (item->dtype == *dtype || item->dtype == CLG_DTYPE_NONE) return CLG_OK;
    return error_set(CLG_ERROR_INVALID_ARGUMENT, "item %zu is of %s, not of %s", i,
                     dtype_name(item->dtype), dtype_name(*dtype));
}

clg_status clg_value_create_sequence(clg_dtype dtype, size_t n_items, clg_value *const *items,
                                     clg_value **out_value)
{
    API_REQUIRE(out_value);
    *out_value = NULL;
    if (n_items > 0) API_REQUIRE(items);
    clg_value *made;
    for (size_t i = 0; i < n_items; i++) CLG_TRY(check_item(&dtype, items[i], i));
    CLG_TRY(value_create_sequence(dtype, &made));
    clg_status status = CLG_OK;
    for (size_t i = 0; i < n_items && status == CLG_OK; i++) status = value_append(made, items[i]);
    if (status == CLG_OK)
        *out_value = made;
    else
        value_free(made);
    return status;
}

clg_status clg_value_create_optional(clg_dtype dtype, clg_value *item, clg_value **out_value)
{
    API_REQUIRE(out_value);
    *out_value = NULL;
    if (item) CLG_TRY(check_item(&dtype, item, 0));
    return value_create_optional(dtype, item, out_value);
}

clg_status clg_value_create_map(clg_value *keys, clg_value *values, clg_value **out_value)
{
    API_REQUIRE(out_value);
    *out_value = NULL;
    API_REQUIRE(keys);
    API_REQUIRE(values);
    return value_create_map(keys, values, out_value);
}

static bool is_map(const clg_value *value) { return value && value->kind == CLG_VALUE_MAP; }

clg_value *clg_value_map_keys(const clg_value *value)
{
    return is_map(value) ? value_get(value, VALUE_KEYS) : NULL;
}

clg_value *clg_value_map_values(const clg_value *value)
{
    return is_map(value) ? value_get(value, VALUE_VALUES) : NULL;
}

size_t clg_value_n_items(const clg_value *value)
{
    return value && !is_map(value) ? value_length(value) : 0;
}

clg_value *clg_value_item(const clg_value *value, size_t i)
{
    return i < clg_value_n_items(value) ? value_get(value, i) : NULL;
}

/* Returns whether a value is a tensor; false for NULL. */
static bool is_tensor(const clg_value *value) { return value && value->kind == CLG_VALUE_TENSOR; }

clg_value_kind clg_value_get_kind(const clg_value *value)
{
    return value ? value->kind : CLG_VALUE_TENSOR;
}

clg_dtype clg_value_dtype(const clg_value *value) { return value ? value->dtype : CLG_DTYPE_NONE; }

size_t clg_value_rank(const clg_value *value)
{
    return is_tensor(value) ? (size_t)value->dims.rank : 0;
}

const int64_t *clg_value_dims(const clg_value *value)
{
    static const int64_t no_dims[CLG_MAX_RANK];
    return is_tensor(value) ? value->dims.dims : no_dims;
}

int64_t clg_value_n_elements(const clg_value *value)
{
    return is_tensor(value) ? value->n_elements : 0;
}

size_t clg_value_size_bytes(const clg_value *value)
{
    return is_tensor(value) ? value->size_bytes : 0;
}

void *clg_value_data(const clg_value *value)
{
    return is_tensor(value) && value->host ? value->host->data : NULL;
}

clg_value *clg_value_retain(clg_value *value) { return value_retain(value); }

void clg_value_free(clg_value *value) { value_free(value); }
