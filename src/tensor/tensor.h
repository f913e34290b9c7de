/* SPDX-License-Identifier: Apache-2.0
 *
 * Host tensors: constants of graphs, small known values of shape arithmetic, and the host side of values.
 * Row-major, dense, immutable once shared. The data may lie in a mapped file or in the caller's memory.
 * Elements are little-endian, as in ONNX files and on every device known to run OpenCL; a host with another
 * byte order does not compile.
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
    void
        *data; /* aligned to 64 bytes when owned; strings: char *[n], each NUL-terminated or NULL */
    void (*release)(
        void *user); /* called with `user` at the end; NULL when nothing is to be done */
    void *user;
} tensor;

/* Owned zeroed memory. INVALID_ARGUMENT for an unknown dtype or shape, or one too large to address. */
clg_status tensor_create(clg_dtype dtype, const shape *dims, tensor **out_tensor);
/* Over foreign memory of at least the tensor's size. After a failure `release` has not been called. */
clg_status tensor_wrap(clg_dtype dtype, const shape *dims, void *data, void (*release)(void *),
                       void *user, tensor **out_tensor);
/* Who keeps foreign memory alive: a tensor over it retains once and releases once. */
typedef struct tensor_owner {
    void (*retain)(void *user);
    void (*release)(void *user);
    void *user;
} tensor_owner;
/* From exactly the tensor's bytes: over `data` itself when there is an owner and data is aligned for the
 * dtype and, for bool, holds only 0 and 1; else a copy, with all that is not 0 made 1. Not for strings. */
clg_status tensor_from_bytes(clg_dtype dtype, const shape *dims, const void *data,
                             size_t size_bytes, const tensor_owner *owner, tensor **out_tensor);
tensor *tensor_retain(tensor *t); /* accepts NULL */
void tensor_free(tensor *t);      /* accepts NULL */

/* Element i as a number; any numeric dtype or bool. Integers wrap, floats given to integers are truncated and
 * saturated, NaN gives 0. Strings and complex numbers read as 0 and are not written. */
int64_t tensor_get_int(const tensor *t, int64_t i);
double tensor_get_float(const tensor *t, int64_t i);
void tensor_set_int(tensor *t, int64_t i, int64_t value);
void tensor_set_float(tensor *t, int64_t i, double value);
/* Strings: "" where none was set; the bytes are copied and must not contain a NUL (INVALID_ARGUMENT). */
const char *tensor_get_string(const tensor *t, int64_t i);
clg_status tensor_set_string(tensor *t, int64_t i, const char *bytes, size_t n_bytes);
/* ONNX Cast between numeric dtypes and bool, on the host: for small values and files. A new reference when the
 * dtype is the same; UNSUPPORTED_DTYPE for strings and complex numbers. */
clg_status tensor_cast(const tensor *t, clg_dtype dtype, tensor **out_tensor);
bool tensor_equal(const tensor *a, const tensor *b); /* dtype, shape, bytes */
/* The same shape and the same numbers, whatever the dtypes; NaN is NaN. Tells whether a cast was exact. */
bool tensor_equal_numbers(const tensor *a, const tensor *b);

#endif
