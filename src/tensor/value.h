/* SPDX-License-Identifier: Apache-2.0
 *
 * The implementation of clg_value: tensors on the host or a device, sequences, optionals and maps.
 * Device memory is an opaque storage with three functions, so that nothing here depends on OpenCL.
 * Reference-counted; shared values are immutable, except for explicit writes to tensors.
 */
#ifndef CLG_TENSOR_VALUE_H
#define CLG_TENSOR_VALUE_H

#include "tensor/tensor.h"

/* Functions of a device's storage. read and write block until done. */
typedef struct value_device_ops {
    void (*release)(void *storage);
    clg_status (*read)(void *storage, size_t offset_bytes, void *data, size_t size_bytes);
    clg_status (*write)(void *storage, size_t offset_bytes, const void *data, size_t size_bytes);
} value_device_ops;

#define VALUE_MAX_DEPTH 64

struct clg_value {
    refcount refs;
    clg_value_kind kind;
    /* dtype of the tensor, of a sequence's or optional's tensors, of a map's values; may be NONE */
    clg_dtype dtype;
    /* tensors */
    shape dims;
    int64_t n_elements;
    size_t size_bytes;
    tensor *host;                       /* NULL: on a device */
    const value_device_ops *device_ops; /* NULL: on the host */
    void *storage;
    size_t offset_bytes; /* of the tensor in storage */
    /* sequences: the elements; optionals: none or one; maps: two tensors, VALUE_KEYS and
     * VALUE_VALUES */
    clg_value **items;
    size_t n_items, capacity;
    int depth; /* of nesting; 0 for a tensor */
};

/* Create values; retain their arguments, and leave them unchanged on failure. */
clg_status value_create_host(tensor *t, clg_value **out_value);
/* Takes ownership of storage: its release is called when the value is freed, but not when this
 * fails. */
clg_status value_create_device(const value_device_ops *ops, void *storage, size_t offset_bytes,
                               clg_dtype dtype, const shape *dims, clg_value **out_value);
/* Creates an empty sequence; dtype may be CLG_DTYPE_NONE. */
clg_status value_create_sequence(clg_dtype dtype, clg_value **out_value);
/* Appends to a sequence that is not yet shared. INVALID_ARGUMENT beyond VALUE_MAX_DEPTH. */
clg_status value_append(clg_value *sequence, clg_value *item);
/* Creates an optional, empty if item is NULL. */
clg_status value_create_optional(clg_dtype dtype, clg_value *item, clg_value **out_value);
/* Creates a map. keys: a tensor of int64 or string and shape [n]; values: a tensor of shape [n].
 * Items of a map are indexed by this enum. */
enum { VALUE_KEYS, VALUE_VALUES };
clg_status value_create_map(clg_value *keys, clg_value *values, clg_value **out_value);
clg_value *value_retain(clg_value *value); /* accepts NULL */
void value_free(clg_value *value);         /* accepts NULL */

/* Return the number of elements of a sequence, optional (0 or 1) or map (2: keys and values), and
 * element i: borrowed, NULL if i is out of range. */
size_t value_length(const clg_value *value);
clg_value *value_get(const clg_value *value, size_t i);

/* Copy a whole tensor to or from memory of exactly its size. Strings are rejected. */
clg_status value_read(const clg_value *value, void *data, size_t size_bytes);
clg_status value_write(clg_value *value, const void *data, size_t size_bytes);
/* Returns the value on the host: a copy, or a new reference when all of it is on the host already.
 */
clg_status value_to_host(clg_value *value, clg_value **out_value);

#endif
