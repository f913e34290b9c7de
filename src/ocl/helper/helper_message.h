/* SPDX-License-Identifier: Apache-2.0
 *
 * Declares and serializes the messages between the library and its compile helper. A message is its
 * size in bytes (32 bits), followed by its fields in a fixed order. Both processes have the same
 * version of the library, as the first message checks. Reading checks all bounds: a damaged message
 * is rejected.
 */
#ifndef CLG_OCL_HELPER_MESSAGE_H
#define CLG_OCL_HELPER_MESSAGE_H

#include "base/hash.h"
#include "base/strbuf.h"
#include "ocl/kernel_args.h"
#include "ocl/ocl.h"

#define HELPER_QUOTED(x) #x
#define HELPER_TEXT_OF(x) HELPER_QUOTED(x)
/* Versions of the message format and of the library. The library's is included since both processes
 * must compile the same kernel sources. */
#define HELPER_VERSION                                                                             \
    "messages 4, clgraph " HELPER_TEXT_OF(CLG_VERSION_MAJOR) "." HELPER_TEXT_OF(                   \
        CLG_VERSION_MINOR) "." HELPER_TEXT_OF(CLG_VERSION_PATCH)
#define HELPER_MESSAGE_MAX_BYTES ((size_t)512 << 20)

/* The first message to the helper: the library's version, the device and the limits. */
typedef struct helper_hello {
    const char *version;       /* HELPER_VERSION */
    uint64_t device_index;     /* of ocl_enumerate */
    hash128 identity;          /* identity of that device, as in ocl_context */
    uint32_t limit_s;          /* time limit for one program; a request may consist of several */
    uint64_t max_memory_bytes; /* resident; 0: unlimited */
} helper_hello;

/* The NDRange of a launch, as for clEnqueueNDRangeKernel. */
typedef struct helper_launch {
    uint32_t n_dims;
    bool has_local; /* false: the driver chooses the local size */
    uint64_t global[3], local[3], offset[3];
} helper_launch;

/* Value of content_arg for no argument. */
#define HELPER_NO_ARG (-1)
/* Maximum of n_limits. */
#define HELPER_MAX_LIMITS 64
/* n_limits of a program of CLBlast, which has about 20 kernels and takes as long to compile as
 * several of this library's. */
#define HELPER_BLAS_LIMITS 5

/* A request: build a program, create its kernel and launch it; or, with has_gemm, compute a GEMM
 * with CLBlast, which compiles its own kernels. Pointers are borrowed. */
typedef struct helper_request {
    uint32_t n_limits; /* the request's time limit, as a multiple of limit_s; 0: one */
    uint32_t quirks;   /* of the device, as helper_call sets them: probes may have decided some */
    const char *name, *entry; /* name of the program, for messages; name of the kernel */
    const char *source;
    size_t source_bytes;
    bool baseline; /* build it without optimisation */
    bool has_launch;
    helper_launch launch;
    kernel_args args;
    int32_t content_arg; /* index of the buffer argument to read back, or HELPER_NO_ARG */
    bool wants_binary;
    bool has_gemm;    /* a GEMM: name, entry, source, launch, args and wants_binary are unused */
    ocl_gemm gemm;    /* without buffers */
    const char *blas; /* the CLBlast that computes the GEMM (ocl_blas_identity) */
} helper_request;

/* How a request ended. */
typedef enum helper_outcome {
    HELPER_DONE,
    HELPER_REFUSED,       /* the driver returned an error: status and text are set */
    HELPER_CRASHED,       /* the helper's worker process ended by a fault or an abort */
    HELPER_KILLED,        /* ... by another signal, or for an unknown reason */
    HELPER_TIMED_OUT,     /* ... because it exceeded the time limit */
    HELPER_OUT_OF_MEMORY, /* ... because it exceeded the memory limit */
    HELPER_UNABLE         /* not executed: no helper, no such device, or another failure */
} helper_outcome;

/* The reply to a hello or a request. */
typedef struct helper_reply {
    helper_outcome outcome;
    int32_t status; /* clg_status, if HELPER_REFUSED or if executing failed otherwise */
    int32_t
        signal; /* if HELPER_CRASHED or HELPER_KILLED; negative: a Windows exception; 0: unknown */
    /* The error text, or the driver's last output; may be NULL. Owned, like the fields below. */
    char *text;
    char *binary; /* if wants_binary; else NULL */
    size_t binary_bytes;
    char *content; /* data of the buffer content_arg after the launch; else NULL */
    size_t content_bytes;
} helper_reply;

/* A worker on a busy machine, which waits for a processor, may take this many times the limit. */
#define HELPER_MOST_WAITING 5

/* Returns the time limit of a request in nanoseconds: n_limits times limit_s seconds, at most
 * UINT32_MAX / 8 seconds. */
static inline uint64_t helper_limit_ns(uint32_t limit_s, uint32_t n_limits)
{
    const uint64_t seconds = (uint64_t)limit_s * n_limits;
    return (seconds < UINT32_MAX / 8 ? seconds : UINT32_MAX / 8) * UINT64_C(1000000000);
}

/* Append a message, preceded by its size. A failure is recorded in the strbuf. */
void helper_write_hello(strbuf *t, const helper_hello *hello);
void helper_write_request(strbuf *t, const helper_request *request);
void helper_write_reply(strbuf *t, const helper_reply *reply);
/* Parse a message, without its size; return false if it is damaged. Pointers in a hello or a
 * request point into data, except for args.items (release with memory_free, not
 * kernel_args_deinit). */
bool helper_read_hello(const char *data, size_t n_bytes, helper_hello *out_hello);
bool helper_read_request(const char *data, size_t n_bytes, helper_request *out_request);
/* As helper_read_request, of a whole message with its size. */
bool helper_read_message(const char *message, size_t n_bytes, helper_request *out_request);
/* Returns n_limits of a request, or 1 if it is 0, without parsing the rest. */
uint32_t helper_read_n_limits(const char *data, size_t n_bytes);
clg_status helper_read_reply(const char *data, size_t n_bytes, helper_reply *out_reply);
void helper_reply_deinit(helper_reply *reply);

#endif
