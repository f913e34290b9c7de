/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages between the library and its compile helper. A message is its size in bytes (32 bits) and
 * that many bytes of fields in a fixed order; both ends are of one version, which the first message
 * checks. Reading is bounded: a damaged message is rejected.
 */
#ifndef CLG_OCL_HELPER_MESSAGE_H
#define CLG_OCL_HELPER_MESSAGE_H

#include "base/hash.h"
#include "base/strbuf.h"
#include "ocl/kernel_args.h"
#include "ocl/ocl.h"

#define HELPER_QUOTED(x) #x
#define HELPER_TEXT_OF(x) HELPER_QUOTED(x)
/* Version of the message format, and of the library, since both compile the same texts. */
#define HELPER_VERSION                                                                             \
    "messages 2, clgraph " HELPER_TEXT_OF(CLG_VERSION_MAJOR) "." HELPER_TEXT_OF(                   \
        CLG_VERSION_MINOR) "." HELPER_TEXT_OF(CLG_VERSION_PATCH)
#define HELPER_MESSAGE_MAX_BYTES ((size_t)512 << 20)

/* First message to the helper: the device and the limits. */
typedef struct helper_hello {
    const char *version;       /* HELPER_VERSION */
    uint64_t device_index;     /* of ocl_enumerate */
    hash128 identity;          /* of that device, as ocl_context has it */
    uint32_t limit_s;          /* for one program; a request may take several */
    uint64_t max_memory_bytes; /* resident; 0: unlimited */
} helper_hello;

typedef struct helper_launch {
    uint32_t n_dims;
    bool has_local;
    uint64_t global[3], local[3];
} helper_launch;

#define HELPER_NO_ARG (-1)
#define HELPER_MAX_LIMITS 64

/* Request: build a program, create its kernel, launch it; or, with has_gemm, compute a GEMM with
 * CLBlast, which compiles its own kernels. Pointers are borrowed. */
typedef struct helper_request {
    uint32_t n_limits;        /* time limits that it may take in all; 0: one */
    const char *name, *entry; /* name of the program, for messages; entry: of the kernel */
    const char *source;
    size_t source_bytes;
    bool has_launch;
    helper_launch launch;
    kernel_args args;
    int32_t content_arg; /* index of the buffer whose content is returned; HELPER_NO_ARG: none */
    bool wants_binary;
    bool has_gemm;    /* name, entry, source, launch, arguments and binary are not used then */
    ocl_gemm gemm;    /* without buffers */
    const char *blas; /* ocl_blas_identity of the library that computes it */
} helper_request;

/* How a request ended. */
typedef enum helper_outcome {
    HELPER_DONE,
    HELPER_REFUSED,       /* the driver returned an error: a status and its text */
    HELPER_CRASHED,       /* the worker died of a fault or an abort */
    HELPER_KILLED,        /* ... of another signal, or without a trace */
    HELPER_TIMED_OUT,     /* ... of the time limit */
    HELPER_OUT_OF_MEMORY, /* ... of the memory limit */
    HELPER_UNABLE /* Nothing was tried: the helper has no such device, or lacks resources. */
} helper_outcome;

typedef struct helper_reply {
    helper_outcome outcome;
    int32_t status; /* of HELPER_REFUSED */
    int32_t
        signal; /* Of HELPER_CRASHED and HELPER_KILLED; below 0: Windows exception; 0: unknown. */
    /* The error, or the driver's last output; owned, as are the fields below; may be NULL. */
    char *text;
    char *binary;
    size_t binary_bytes;
    char *content;
    size_t content_bytes;
} helper_reply;

/* Returns the time that a request of n_limits may take, where one limit is limit_s seconds. */
static inline uint64_t helper_limit_ns(uint32_t limit_s, uint32_t n_limits)
{
    const uint64_t seconds = (uint64_t)limit_s * n_limits;
    return (seconds < UINT32_MAX ? seconds : UINT32_MAX) * UINT64_C(1000000000);
}

/* Append a message, its size first. A failure is recorded in the text. */
void helper_write_hello(strbuf *t, const helper_hello *hello);
void helper_write_request(strbuf *t, const helper_request *request);
void helper_write_reply(strbuf *t, const helper_reply *reply);
/* Read a message without its size; false when it is damaged. A hello or a request borrows from
 * data, except for args.items (release with memory_free, not kernel_args_deinit). */
bool helper_read_hello(const char *data, size_t n_bytes, helper_hello *out_hello);
bool helper_read_request(const char *data, size_t n_bytes, helper_request *out_request);
/* Reads only how many time limits a request may take, at least 1. */
uint32_t helper_read_n_limits(const char *data, size_t n_bytes);
clg_status helper_read_reply(const char *data, size_t n_bytes, helper_reply *out_reply);
void helper_reply_deinit(helper_reply *reply);

#endif
