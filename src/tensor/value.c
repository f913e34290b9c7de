/* SPDX-License-Identifier: Apache-2.0
 *
 * Creates, copies and frees run-time values (clg_value): tensors on host or device, sequences,
 * optionals and maps.
 */
#include "tensor/value.h"

#include "base/memory.h"

#include <string.h>

static clg_status make(clg_value_kind kind, clg_dtype dtype, clg_value **out_value)
{
    *out_value = memory_zalloc(1, sizeof **out_value);
    if (!*out_value) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    refcount_init(&(*out_value)->refs);
    (*out_value)->kind = kind;
    (*out_value)->dtype = dtype;
    return CLG_OK;
}

clg_status value_create_host(tensor *t, clg_value **out_value)
{
    CLG_TRY(make(CLG_VALUE_TENSOR, t->dtype, out_value));
    clg_value *value = *out_value;
    value->dims = t->dims;
    value->n_elements = t->n_elements;
    value->size_bytes = t->size_bytes;
    value->host = tensor_retain(t);
    return CLG_OK;
}

clg_status value_lend(value_loan *l, clg_dtype dtype, const shape *dims, const void *data)
{
    CLG_TRY(tensor_borrow(dtype, dims, data, &l->host));
    l->value = (clg_value){.kind = CLG_VALUE_TENSOR,
                           .dtype = dtype,
                           .dims = *dims,
                           .n_elements = l->host.n_elements,
                           .size_bytes = l->host.size_bytes,
                           .host = &l->host};
    refcount_init(&l->value.refs);
    return CLG_OK;
}

clg_status value_create_device(const value_device_ops *ops, void *storage, size_t offset_bytes,
                               clg_dtype dtype, const shape *dims, clg_value **out_value)
{
    char words[SHAPE_TEXT_BYTES];
    int64_t n;
    size_t size_bytes;
    *out_value = NULL;
    const dtype_info *info = dtype_find(dtype);
    if (!info || info->kind == DTYPE_KIND_STRING) {
        return error_set(CLG_ERROR_INVALID_ARGUMENT, "%s cannot be in the memory of a device",
                         dtype_name(dtype));
    }
    if (shape_n_elements(dims, &n) != CLG_OK || !dtype_bytes(dtype, n, &size_bytes)) {
        return error_set(CLG_ERROR_INVALID_ARGUMENT,
                         "a %s tensor of shape %s is unknown in part or too large", info->name,
                         shape_text(dims, words));
    }
    CLG_TRY(make(CLG_VALUE_TENSOR, dtype, out_value));
    clg_value *value = *out_value;
    value->dims = *dims;
    value->n_elements = n;
    value->size_bytes = size_bytes;
    value->device_ops = ops;
    value->storage = storage;
    value->offset_bytes = offset_bytes;
    return CLG_OK;
}

clg_status value_create_sequence(clg_dtype dtype, clg_value **out_value)
{
    CLG_TRY(make(CLG_VALUE_SEQUENCE, dtype, out_value));
    (*out_value)->depth = 1;
    return CLG_OK;
}

/* Adds an element to a sequence, optional or map. The depth limit bounds recursion over values. */
static clg_status add_item(clg_value *value, clg_value *item)
{
    if (item == value || item->depth >= VALUE_MAX_DEPTH) {
        return error_set(CLG_ERROR_INVALID_ARGUMENT, "values are nested more than %d deep",
                         VALUE_MAX_DEPTH);
    }
    CLG_TRY(MEMORY_RESERVE(value->items, value->capacity, value->n_items + 1));
    value->items[value->n_items++] = value_retain(item);
    if (value->depth <= item->depth) value->depth = item->depth + 1;
    return CLG_OK;
}

clg_status value_append(clg_value *sequence, clg_value *item)
{
    if (sequence->kind != CLG_VALUE_SEQUENCE) {
        return error_set(CLG_ERROR_INVALID_ARGUMENT, "only a sequence can be appended to");
    }
    return add_item(sequence, item);
}

clg_status value_create_optional(clg_dtype dtype, clg_value *item, clg_value **out_value)
{
    CLG_TRY(make(CLG_VALUE_OPTIONAL, dtype, out_value));
    (*out_value)->depth = 1;
    clg_status status = item ? add_item(*out_value, item) : CLG_OK;
    if (status == CLG_OK) return CLG_OK;
    value_free(*out_value);
    *out_value = NULL;
    return status;
}

clg_status value_create_map(clg_value *keys, clg_value *values, clg_value **out_value)
{
    *out_value = NULL;
    if (keys->kind != CLG_VALUE_TENSOR || values->kind != CLG_VALUE_TENSOR ||
        (keys->dtype != CLG_INT64 && keys->dtype != CLG_STRING) || keys->dims.rank != 1 ||
        !shape_equal(&keys->dims, &values->dims)) {
        return error_set(CLG_ERROR_INVALID_ARGUMENT,
                         "a map takes int64 or string keys and as many values, both of rank 1");
    }
    CLG_TRY(make(CLG_VALUE_MAP, values->dtype, out_value));
    clg_status status = add_item(*out_value, keys);
    if (status == CLG_OK) status = add_item(*out_value, values);
    if (status == CLG_OK) return CLG_OK;
    value_free(*out_value);
    *out_value = NULL;
    return status;
}

clg_value *value_retain(clg_value *value)
{
    if (value) refcount_retain(&value->refs);
    return value;
}

void value_free(clg_value *value)
{
    if (!value || !refcount_release(&value->refs)) return;
    tensor_free(value->host);
    if (value->device_ops) value->device_ops->release(value->storage);
    for (size_t i = 0; i < value->n_items; i++) value_free(value->items[i]);
    memory_free(value->items);
    memory_free(value);
}

size_t value_length(const clg_value *value) { return value->n_items; }

clg_value *value_get(const clg_value *value, size_t i)
{
    return i < value->n_items ? value->items[i] : NULL;
}

static clg_status check_copy(const clg_value *value, size_t size_bytes)
{
    if (value->kind != CLG_VALUE_TENSOR || value->dtype == CLG_STRING) {
        return error_set(CLG_ERROR_INVALID_ARGUMENT, "only tensors of numbers have bytes to copy");
    }
    if (size_bytes != value->size_bytes) {
        char words[SHAPE_TEXT_BYTES];
        return error_set(CLG_ERROR_INVALID_ARGUMENT,
                         "a %s tensor of shape %s has %zu bytes, not %zu", dtype_name(value->dtype),
                         shape_text(&value->dims, words), value->size_bytes, size_bytes);
    }
    return CLG_OK;
}

clg_status value_read(const clg_value *value, void *data, size_t size_bytes)
{
    CLG_TRY(check_copy(value, size_bytes));
    if (size_bytes == 0) return CLG_OK;
    if (value->device_ops)
        return value->device_ops->read(value->storage, value->offset_bytes, data, size_bytes);
    memcpy(data, value->host->data, size_bytes);
    return CLG_OK;
}

clg_status value_write(clg_value *value, const void *data, size_t size_bytes)
{
    CLG_TRY(check_copy(value, size_bytes));
    if (size_bytes == 0) return CLG_OK;
    if (value->device_ops)
        return value->device_ops->write(value->storage, value->offset_bytes, data, size_bytes);
    memcpy(value->host->data, data, size_bytes);
    return CLG_OK;
}

/* Returns whether no part of the value is in device memory. */
static bool is_on_host(const clg_value *value)
{
    if (value->device_ops) return false;
    for (size_t i = 0; i < value->n_items; i++) {
        if (!is_on_host(value->items[i])) return false;
    }
    return true;
}

clg_status value_read_tensor(const clg_value *value, tensor **out_tensor)
{
    tensor *t;
    *out_tensor = NULL;
    CLG_TRY(tensor_create(value->dtype, &value->dims, &t));
    const clg_status status = value_read(value, t->data, t->size_bytes);
    if (status == CLG_OK)
        *out_tensor = t;
    else
        tensor_free(t);
    return status;
}

static clg_status tensor_to_host(clg_value *value, clg_value **out_value)
{
    tensor *t;
    CLG_TRY(value_read_tensor(value, &t));
    const clg_status status = value_create_host(t, out_value);
    tensor_free(t);
    return status;
}

clg_status value_to_host(clg_value *value, clg_value **out_value)
{
    *out_value = NULL;
    if (is_on_host(value)) {
        *out_value = value_retain(value);
        return CLG_OK;
    }
    if (value->kind == CLG_VALUE_TENSOR) return tensor_to_host(value, out_value);
    clg_value *copy;
    CLG_TRY(make(value->kind, value->dtype, &copy));
    copy->depth = value->depth;
    for (size_t i = 0; i < value->n_items; i++) {
        clg_value *item;
        clg_status status = value_to_host(value->items[i], &item);
        if (status == CLG_OK) {
            status = add_item(copy, item);
            value_free(item);
        }
        if (status != CLG_OK) {
            value_free(copy);
            return status;
        }
    }
    *out_value = copy;
    return CLG_OK;
}
