/* SPDX-License-Identifier: Apache-2.0
 *
 * clg_value inside: tensors on the host or a device, sequences, optionals and maps. A device's memory is an
 * opaque storage with three functions, so that nothing here knows of OpenCL. Counted references; what is
 * shared is not altered, but for the contents of tensors that somebody writes on purpose.
 */
#ifndef CLG_TENSOR_VALUE_H
#define CLG_TENSOR_VALUE_H

#include "tensor/tensor.h"

/* Memory of a device. read and write block until done. */
typedef struct value_device_ops {
    void (*release)(void *storage);
    clg_status (*read)(void *storage, size_t offset_bytes, void *data, size_t size_bytes);
    clg_status (*write)(void *storage, size_t offset_bytes, const void *data, size_t size_bytes);
} value_device_ops;

#define VALUE_MAX_DEPTH 64

struct clg_value {
    refcount refs;
    clg_value_kind kind;
    clg_dtype
        dtype; /* of the tensor, of a sequence's or optional's tensors, of a map's values; may be NONE */
    /* tensors */
    shape dims;
    int64_t n_elements;
    size_t size_bytes;
    tensor *host;                       /* NULL: on a device */
    const value_device_ops *device_ops; /* NULL: on the host */
    void *storage;
    size_t offset_bytes; /* of the tensor in storage */
    /* sequences: the elements; optionals: none or one; maps: two tensors, VALUE_KEYS and VALUE_VALUES */
    clg_value **items;
    size_t n_items, capacity;
    int depth; /* of nesting; a tensor has 0 */
};

/* All of these retain what they are given and leave it alone on failure. */
clg_status value_create_host(tensor *t, clg_value **out_value);
/* Takes storage over: its release is called at the end, but not when this fails. */
clg_status value_create_device(const value_device_ops *ops, void *storage, size_t offset_bytes,
                               clg_dtype dtype, const shape *dims, clg_value **out_value);
/* An empty sequence; dtype may be CLG_DTYPE_NONE. */
clg_status value_create_sequence(clg_dtype dtype, clg_value **out_value);
/* Before the sequence is shared. INVALID_ARGUMENT beyond VALUE_MAX_DEPTH. */
clg_status value_append(clg_value *sequence, clg_value *item);
/* item NULL: nothing in it. */
clg_status value_create_optional(clg_dtype dtype, clg_value *item, clg_value **out_value);
/* keys: a tensor of int64 or string and shape [n]; values: a tensor of shape [n]. Items of a map, by their places. */
enum { VALUE_KEYS, VALUE_VALUES };
clg_status value_create_map(clg_value *keys, clg_value *values, clg_value **out_value);
clg_value *value_retain(clg_value *value); /* accepts NULL */
void value_free(clg_value *value);         /* accepts NULL */

/* Elements of a sequence, optional (0 or 1) or map (2: keys and values); borrowed, NULL out of range. */
size_t value_length(const clg_value *value);
clg_value *value_get(const clg_value *value, size_t i);

/* A whole tensor to or from memory of exactly its size. Strings are refused. */
clg_status value_read(const clg_value *value, void *data, size_t size_bytes);
clg_status value_write(clg_value *value, const void *data, size_t size_bytes);
/* The same value on the host: a new reference when all of it is there already. */
clg_status value_to_host(clg_value *value, clg_value **out_value);

#endif
