/* SPDX-License-Identifier: Apache-2.0
 *
 * Host tensors: constants of graphs, small known values of shape arithmetic, and the host side of
 * values. Row-major, dense, immutable once shared. The data may be in a mapped file or in the
 * caller's memory. Elements are little-endian, as in ONNX files and on every device known to run
 * OpenCL; a host with another byte order does not compile.
 */
#ifndef CLG_TENSOR_TENSOR_H
#define CLG_TENSOR_TENSOR_H

#include "base/threads.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

typedef struct tensor {
    refcount refs;
    clg_dtype dtype;
    shape dims;
    int64_t n_elements;
    size_t size_bytes;
    /* Aligned to 64 bytes when owned, else at any address: access elements by the functions below
     * or by memcpy. Strings: char *[n], each NUL-terminated or NULL. */
    void *data;
    /* Called with `user` when the tensor is freed; may be NULL. */
    void (*release)(void *user);
    void *user;
    void (*unload)(void *user, const void *data, size_t size_bytes); /* as in tensor_owner */
} tensor;

/* Creates a tensor in owned zeroed memory. INVALID_ARGUMENT for an unknown dtype or shape, or one
 * too large to address. */
clg_status tensor_create(clg_dtype dtype, const shape *dims, tensor **out_tensor);
/* Wraps foreign memory of at least the tensor's size. After a failure `release` has not been
 * called. */
clg_status tensor_wrap(clg_dtype dtype, const shape *dims, void *data, void (*release)(void *),
                       void *user, tensor **out_tensor);
/* Keeps foreign memory alive: a tensor over it retains once and releases once. */
typedef struct tensor_owner {
    void (*retain)(void *user);
    void (*release)(void *user);
    void *user;
    /* Called for bytes that will not be read for a while; their content must stay. May be NULL. */
    void (*unload)(void *user, const void *data, size_t size_bytes);
} tensor_owner;
/* Creates a tensor from exactly its bytes: over `data` itself, at any address, if there is an owner
 * and, for bool, data holds only 0 and 1; else a copy, with non-zero bools set to 1. Not for
 * strings. */
clg_status tensor_from_bytes(clg_dtype dtype, const shape *dims, const void *data,
                             size_t size_bytes, const tensor_owner *owner, tensor **out_tensor);
/* Returns the bytes of a tensor of such shape, all dimensions known; CLG_ERROR_SHAPE when there are
 * too many. */
clg_status tensor_bytes_of(clg_dtype dtype, const shape *dims, size_t *out_bytes);
tensor *tensor_retain(tensor *t); /* accepts NULL */
void tensor_free(tensor *t);      /* accepts NULL */
/* Returns the tensor itself if its elements may be read through a pointer of their type, else a
 * copy; a reference. */
clg_status tensor_align(tensor *t, tensor **out_tensor);
/* Releases file-backed memory of these bytes, which were copied elsewhere and will not be read for
 * a while. Any thread. */
void tensor_unload(const tensor *t, size_t offset_bytes, size_t size_bytes);

/* Access element i as a number; any numeric dtype or bool. Integers wrap, floats stored as integers
 * are truncated and saturated, NaN becomes 0. Strings and complex numbers read as 0 and are not
 * written. */
int64_t tensor_get_int(const tensor *t, int64_t i);
double tensor_get_float(const tensor *t, int64_t i);
void tensor_set_int(tensor *t, int64_t i, int64_t value);
void tensor_set_float(tensor *t, int64_t i, double value);
/* Access strings: "" if never set; the bytes are copied and must not contain a NUL
 * (INVALID_ARGUMENT). */
const char *tensor_get_string(const tensor *t, int64_t i);
clg_status tensor_set_string(tensor *t, int64_t i, const char *bytes, size_t n_bytes);
/* Converts as ONNX Cast between numeric dtypes and bool, on the host: for small values and files.
 * Returns a new reference to t when the dtype is the same; UNSUPPORTED_DTYPE for strings and
 * complex numbers. */
clg_status tensor_cast(const tensor *t, clg_dtype dtype, tensor **out_tensor);
bool tensor_equal(const tensor *a, const tensor *b); /* compares dtype, shape, bits */
/* Returns whether shapes and numbers are equal, whatever the dtypes; NaN equals NaN: whether a cast
 * was exact. */
bool tensor_equal_numbers(const tensor *a, const tensor *b);

#endif
