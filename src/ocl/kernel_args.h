/* SPDX-License-Identifier: Apache-2.0
 *
 * Records the current arguments of a kernel, so that those that stay are not set again, and so that
 * the compile helper can try a launch in another process, with buffers of the same sizes. Keeps no
 * OpenCL handles.
 */
#ifndef CLG_OCL_KERNEL_ARGS_H
#define CLG_OCL_KERNEL_ARGS_H

#include "base/error.h"

typedef enum kernel_arg_kind {
    KERNEL_ARG_UNSET,
    KERNEL_ARG_VALUE,  /* size_bytes bytes: a scalar or a struct */
    KERNEL_ARG_BUFFER, /* a buffer of size_bytes */
    KERNEL_ARG_LOCAL   /* size_bytes of local memory */
} kernel_arg_kind;

/* One recorded argument. */
typedef struct kernel_arg {
    kernel_arg_kind kind;
    size_t size_bytes;
    size_t at;          /* offset in `bytes` of a value or of a buffer's initial data */
    bool has_content;   /* of a buffer: has initial data; else it is all zeros */
    const void *buffer; /* identity, borrowed; equal pointers are one buffer, */
    uint64_t serial;    /* while it exists; this one is never used again */
} kernel_arg;

/* All arguments of a kernel, by index; zero-initialized is valid and empty. */
typedef struct kernel_args {
    kernel_arg *items;
    size_t count, capacity;
    char *bytes;
    size_t n_bytes, bytes_capacity;
} kernel_args;

/* Records a scalar or struct argument; data NULL: local memory. */
clg_status kernel_args_set_value(kernel_args *args, size_t index, size_t size_bytes,
                                 const void *data);
/* Records a buffer argument. `buffer` only identifies it: distinct buffers have distinct pointers.
 * serial: its serial number; 0: it has none. content: its initial data, copied; NULL: zeros. */
clg_status kernel_args_set_buffer(kernel_args *args, size_t index, const void *buffer,
                                  uint64_t serial, size_t size_bytes, const void *content);
/* Forgets an argument. */
void kernel_args_unset(kernel_args *args, size_t index);
/* Return whether the argument is this value, or the buffer of this serial number, not 0. */
bool kernel_args_has_value(const kernel_args *args, size_t index, size_t size_bytes,
                           const void *data);
bool kernel_args_has_buffer(const kernel_args *args, size_t index, uint64_t serial);
void kernel_args_deinit(kernel_args *args);

#endif
