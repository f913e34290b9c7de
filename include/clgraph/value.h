/* SPDX-License-Identifier: Apache-2.0
 *
 * Values: tensors in host or device memory, sequences, optionals and maps. clgraph.h includes this
 * header, and its rules apply.
 */
#ifndef CLGRAPH_VALUE_H
#define CLGRAPH_VALUE_H

#include <clgraph/base.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CLG_MAX_RANK 8

/* Element types, numbered as ONNX's TensorProto.DataType. */
typedef enum clg_dtype {
    CLG_DTYPE_NONE = 0,
    CLG_FLOAT32 = 1,
    CLG_UINT8 = 2,
    CLG_INT8 = 3,
    CLG_UINT16 = 4,
    CLG_INT16 = 5,
    CLG_INT32 = 6,
    CLG_INT64 = 7,
    CLG_STRING = 8,
    CLG_BOOL = 9, /* one byte, 0 or 1 */
    CLG_FLOAT16 = 10,
    CLG_FLOAT64 = 11,
    CLG_UINT32 = 12,
    CLG_UINT64 = 13,
    CLG_COMPLEX64 = 14,
    CLG_COMPLEX128 = 15,
    CLG_BFLOAT16 = 16,
    CLG_FLOAT8E4M3FN = 17,
    CLG_FLOAT8E4M3FNUZ = 18,
    CLG_FLOAT8E5M2 = 19,
    CLG_FLOAT8E5M2FNUZ = 20,
    CLG_UINT4 = 21,
    CLG_INT4 = 22,
    CLG_FLOAT4E2M1 = 23,
    CLG_FLOAT8E8M0 = 24,
    CLG_UINT2 = 25,
    CLG_INT2 = 26
} clg_dtype;

/* Returns the name of a dtype, "float32"; "unknown dtype" for any other value. */
CLG_API const char *clg_dtype_name(clg_dtype dtype);
/* Returns the bytes of one element; 0 for strings and for types of less than a byte. */
CLG_API size_t clg_dtype_size(clg_dtype dtype);

typedef enum clg_value_kind {
    CLG_VALUE_TENSOR = 0,
    CLG_VALUE_SEQUENCE = 1,
    CLG_VALUE_OPTIONAL = 2,
    CLG_VALUE_MAP = 3
} clg_value_kind;

/* Called when the last reference is released, on the thread that releases it. */
typedef void (*clg_release_callback)(void *user);

/* Creates a tensor in host memory, row-major, filled with zeros. dims: `rank` values >= 0, may be
 * NULL for rank 0; rank 0..CLG_MAX_RANK. Errors: INVALID_ARGUMENT (dtype, rank, negative or
 * overflowing dims). */
CLG_API CLG_MUST_USE clg_status clg_value_create(clg_dtype dtype, size_t rank, const int64_t *dims,
                                                 clg_value **out_value);
/* Creates a tensor over the caller's memory, row-major and not copied, else as clg_value_create.
 * size_bytes: of the memory, at least that of the tensor, else INVALID_ARGUMENT; data may be NULL
 * for no elements. Strings are a char * each, NUL-terminated, UTF-8, NULL for the
 * empty one; they stay on the host. `release(user)` (may be NULL) runs when the last reference is
 * gone, not when this call fails. */
CLG_API CLG_MUST_USE clg_status clg_value_wrap(clg_dtype dtype, size_t rank, const int64_t *dims,
                                               void *data, size_t size_bytes,
                                               clg_release_callback release, void *user,
                                               clg_value **out_value);
/* Creates a tensor in the memory of the context's device; elements are undefined until written.
 * Errors: as clg_value_create (strings are INVALID_ARGUMENT), OUT_OF_DEVICE_MEMORY. */
CLG_API CLG_MUST_USE clg_status clg_value_create_device(clg_context *context, clg_dtype dtype,
                                                        size_t rank, const int64_t *dims,
                                                        clg_value **out_value);
/* Copies data into a tensor on the host or a device; blocks until done. size_bytes must be that of
 * the tensor; data may be NULL when it is 0. Errors: INVALID_ARGUMENT (another size, a tensor of
 * strings, not a tensor), DEVICE_LOST. */
CLG_API CLG_MUST_USE clg_status clg_value_write(clg_value *value, const void *data,
                                                size_t size_bytes);
/* Copies the elements of a tensor to data; otherwise as clg_value_write. */
CLG_API CLG_MUST_USE clg_status clg_value_read(const clg_value *value, void *data,
                                               size_t size_bytes);
/* Copies the elements of a tensor to another of the same dtype and number of elements, each on the
 * host or a device; blocks until done. Between tensors of one context they do not pass through the
 * host. Errors: INVALID_ARGUMENT (another dtype or number, strings, not tensors), DEVICE_LOST. */
CLG_API CLG_MUST_USE clg_status clg_value_copy(const clg_value *from, clg_value *to);
/* Returns a host copy of any value; a new reference if it is on the host. Errors: DEVICE_LOST. */
CLG_API CLG_MUST_USE clg_status clg_value_to_host(clg_value *value, clg_value **out_value);

/* Creates a sequence that keeps references to its items: tensors of `dtype`, or sequences,
 * optionals and maps of such. dtype CLG_DTYPE_NONE means that of the first item. items may be NULL
 * when n_items is 0. Errors: INVALID_ARGUMENT (an item NULL or of another dtype, nested more than
 * 64 deep). */
CLG_API CLG_MUST_USE clg_status clg_value_create_sequence(clg_dtype dtype, size_t n_items,
                                                          clg_value *const *items,
                                                          clg_value **out_value);
/* Creates an optional that keeps a reference to item, or is empty if item is NULL; otherwise as
 * clg_value_create_sequence. */
CLG_API CLG_MUST_USE clg_status clg_value_create_optional(clg_dtype dtype, clg_value *item,
                                                          clg_value **out_value);
/* Returns the number of items: 0 or 1 for an optional, 0 for tensors and maps. */
CLG_API size_t clg_value_n_items(const clg_value *value);
/* Returns item i of a sequence or optional, borrowed; NULL when i is out of range. */
CLG_API clg_value *clg_value_item(const clg_value *value, size_t i);
/* Creates a map from keys, a tensor [n] of int64 or strings, to values, a tensor [n] of any dtype;
 * it keeps references to both. The caller ensures that no key occurs twice. scikit-learn's
 * classifiers give a sequence of maps from classes to probabilities, one per row. Errors:
 * INVALID_ARGUMENT (another dtype of keys, other shapes). */
CLG_API CLG_MUST_USE clg_status clg_value_create_map(clg_value *keys, clg_value *values,
                                                     clg_value **out_value);
/* Return the tensors of keys and of values of a map, borrowed; NULL if the value is not a map. Maps
 * of one output may have a common tensor of keys. */
CLG_API clg_value *clg_value_map_keys(const clg_value *value);
CLG_API clg_value *clg_value_map_values(const clg_value *value);

/* Return kind, dtype and rank. A sequence, optional or map has rank 0 and the dtype of its tensors
 * (a map: of its values). NULL counts as a tensor of rank 0 without dtype. */
CLG_API clg_value_kind clg_value_get_kind(const clg_value *value);
CLG_API clg_dtype clg_value_dtype(const clg_value *value);
CLG_API size_t clg_value_rank(const clg_value *value);
/* Returns an array of clg_value_rank dimensions, borrowed; never NULL. */
CLG_API const int64_t *clg_value_dims(const clg_value *value);
/* Return the number of elements of a tensor (1 for rank 0) and their bytes; 0 for other values. */
CLG_API int64_t clg_value_n_elements(const clg_value *value);
CLG_API size_t clg_value_size_bytes(const clg_value *value);
/* Returns the host memory, row-major; NULL on a device. Write only while no run uses the value. */
CLG_API void *clg_value_data(const clg_value *value);
/* Add and remove a reference, from any thread; both accept NULL. retain returns its argument. */
CLG_API clg_value *clg_value_retain(clg_value *value);
CLG_API void clg_value_free(clg_value *value);

#ifdef __cplusplus
}
#endif

#endif
