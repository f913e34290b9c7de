/* SPDX-License-Identifier: Apache-2.0
 *
 * Host tensors: constants of graphs, small tensors that shape inference computes, and the host side
 * of values. Row-major, dense, immutable once shared. The data may be in a mapped file or in the
 * caller's memory. Elements are little-endian, as in ONNX files and on every device known to run
 * OpenCL; on a big-endian host compilation fails.
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
    /* Owned data is aligned to 64 bytes; other data may have any address, so access elements by the
     * functions below or memcpy. Strings: char *[n], each NUL-terminated or NULL. */
    void *data;
    /* Called with `user` when the tensor is freed; may be NULL. */
    void (*release)(void *user);
    void *user;
    void (*unload)(void *user, const void *data, size_t size_bytes); /* as in tensor_owner */
} tensor;

/* Creates a tensor with its own zeroed memory. INVALID_ARGUMENT for an unknown dtype or shape, or
 * one that is too large to address. */
clg_status tensor_create(clg_dtype dtype, const shape *dims, tensor **out_tensor);
/* Creates a tensor over the caller's memory of at least its size. After a failure `release` has not
 * been called. */
clg_status tensor_wrap(clg_dtype dtype, const shape *dims, void *data, void (*release)(void *),
                       void *user, tensor **out_tensor);
/* Sets *out_tensor, memory of the caller, to a tensor over data, which has its size: for strings a
 * char * each. It must not be used after either memory is gone. */
clg_status tensor_borrow(clg_dtype dtype, const shape *dims, const void *data, tensor *out_tensor);
/* Returns whether all bytes are 0 or 1. */
bool tensor_bools_are_valid(const void *data, size_t size_bytes);
/* Keeps memory alive that tensors share: each tensor over it calls retain once and release once. */
typedef struct tensor_owner {
    void (*retain)(void *user);
    void (*release)(void *user);
    void *user;
    /* Called for bytes that will not be read for a while, so that their pages may leave memory;
     * they must stay readable. May be NULL. */
    void (*unload)(void *user, const void *data, size_t size_bytes);
} tensor_owner;
/* Creates a tensor from exactly its bytes. If there is an owner and, for bool, all bytes are 0 or
 * 1, it shares `data`, which may be unaligned; else it is a copy, with non-zero bools set to 1. Not
 * for strings. */
clg_status tensor_from_bytes(clg_dtype dtype, const shape *dims, const void *data,
                             size_t size_bytes, const tensor_owner *owner, tensor **out_tensor);
/* Computes the bytes of a tensor of this dtype and shape, which must be known; CLG_ERROR_SHAPE if
 * there are too many. */
clg_status tensor_bytes_of(clg_dtype dtype, const shape *dims, size_t *out_bytes);
tensor *tensor_retain(tensor *t); /* accepts NULL */
void tensor_free(tensor *t);      /* accepts NULL */
/* Sets *out_tensor to a reference to t if its elements may be accessed through a pointer of their C
 * type, else to a copy. */
clg_status tensor_align(tensor *t, tensor **out_tensor);
/* Lets the memory of these bytes go if it is mapped from a file: they were copied elsewhere and
 * will not be read for a while. Any thread. */
void tensor_unload(const tensor *t, size_t offset_bytes, size_t size_bytes);

/* Access element i of a numeric or bool tensor as a number. Integers wrap; floats stored as
 * integers are truncated and saturated, NaN becomes 0. Strings and complex numbers are read as 0
 * and not written. */
int64_t tensor_get_int(const tensor *t, int64_t i);
double tensor_get_float(const tensor *t, int64_t i);
void tensor_set_int(tensor *t, int64_t i, int64_t value);
void tensor_set_float(tensor *t, int64_t i, double value);
/* Access string i; "" if it was never set. The bytes are copied and must not contain a NUL
 * (INVALID_ARGUMENT). */
const char *tensor_get_string(const tensor *t, int64_t i);
clg_status tensor_set_string(tensor *t, int64_t i, const char *bytes, size_t n_bytes);
/* Converts between numeric dtypes and bool as ONNX Cast does, on the host: for small tensors and
 * files. *out_tensor is a new reference to t if the dtype is equal. UNSUPPORTED_DTYPE for strings
 * and complex numbers. */
clg_status tensor_cast(const tensor *t, clg_dtype dtype, tensor **out_tensor);
bool tensor_equal(const tensor *a, const tensor *b); /* dtype, shape, bits */
/* Returns whether shapes and numbers are equal, whatever the dtypes; NaN equals NaN. So it tells
 * whether a cast was exact. */
bool tensor_equal_numbers(const tensor *a, const tensor *b);

#endif
