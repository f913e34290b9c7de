/* SPDX-License-Identifier: Apache-2.0
 *
 * The implementation of clg_value: tensors on the host or a device, sequences, optionals and maps.
 * Device memory is an opaque pointer (storage) with three functions, so that nothing here depends
 * on OpenCL. Reference-counted. Shared values are immutable, except that value_write changes a
 * tensor.
 */
#ifndef CLG_TENSOR_VALUE_H
#define CLG_TENSOR_VALUE_H

#include "tensor/tensor.h"

/* Functions on device memory. read and write block until they are done. */
typedef struct value_device_ops {
    void (*release)(void *storage);
    clg_status (*read)(void *storage, size_t offset_bytes, void *data, size_t size_bytes);
    clg_status (*write)(void *storage, size_t offset_bytes, const void *data, size_t size_bytes);
} value_device_ops;

#define VALUE_MAX_DEPTH 64 /* of nested sequences, optionals and maps */

struct clg_value {
    refcount refs;
    clg_value_kind kind;
    /* of the tensor, of a sequence's or optional's tensors, or of a map's values; may be NONE */
    clg_dtype dtype;
    /* only for tensors */
    shape dims;
    int64_t n_elements;
    size_t size_bytes;
    tensor *host;                       /* NULL: on a device */
    const value_device_ops *device_ops; /* NULL: on the host */
    void *storage;
    size_t offset_bytes; /* of the tensor in storage */
    /* of a sequence: its elements; of an optional: none or one; of a map: two tensors, VALUE_KEYS
     * and VALUE_VALUES */
    clg_value **items;
    size_t n_items, capacity;
    int depth; /* of nesting; 0 for a tensor */
};

/* The functions that create values retain the tensors and values that they are given, and release
 * none on failure. */

/* Creates a tensor value on the host. */
clg_status value_create_host(tensor *t, clg_value **out_value);
/* Creates a tensor value on a device. Takes ownership of storage, unless it fails: ops->release is
 * called when the value is freed. */
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
/* A host tensor value over memory of a caller's, for which nothing is allocated. Its memory must
 * outlive all references to it. */
typedef struct value_loan {
    clg_value value;
    tensor host;
} value_loan;
/* Makes l->value a tensor over data, which has the tensor's size and is only read. Not for
 * strings; bools must be 0 or 1. */
clg_status value_lend(value_loan *l, clg_dtype dtype, const shape *dims, const void *data);
clg_value *value_retain(clg_value *value); /* accepts NULL */
void value_free(clg_value *value);         /* accepts NULL */

/* Returns the number of elements of a sequence or optional (0 or 1); 2 for a map (keys and
 * values). */
size_t value_length(const clg_value *value);
/* Returns element i, borrowed; NULL if i is out of range. */
clg_value *value_get(const clg_value *value, size_t i);

/* Copy a whole tensor to or from host memory of exactly its size. INVALID_ARGUMENT for strings and
 * other kinds of values. */
clg_status value_read(const clg_value *value, void *data, size_t size_bytes);
/* Sets *out_tensor to a new tensor in host memory with the elements of a tensor; NULL on errors,
 * those of value_read. */
clg_status value_read_tensor(const clg_value *value, tensor **out_tensor);
clg_status value_write(clg_value *value, const void *data, size_t size_bytes);
/* Sets *out_value to the value on the host: a copy, or a new reference if all of it is there
 * already. */
clg_status value_to_host(clg_value *value, clg_value **out_value);

#endif
