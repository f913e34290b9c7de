/* SPDX-License-Identifier: Apache-2.0
 *
 * What the library and its compile helper say to each other. A message is its size in bytes (32 bits) and so many bytes of
 * fields in a fixed order; both ends are of one version, which the first message checks. Reading is bounded: a damaged
 * message is refused, never followed.
 */
#ifndef CLG_OCL_HELPER_MESSAGE_H
#define CLG_OCL_HELPER_MESSAGE_H

#include "base/hash.h"
#include "base/text.h"
#include "ocl/kernel_args.h"

#define HELPER_QUOTED(x) #x
#define HELPER_TEXT_OF(x) HELPER_QUOTED(x)
/* Of the format of messages, and of the library, since both compile the same texts. */
#define HELPER_VERSION                                                                             \
    "messages 1, clgraph " HELPER_TEXT_OF(CLG_VERSION_MAJOR) "." HELPER_TEXT_OF(                   \
        CLG_VERSION_MINOR) "." HELPER_TEXT_OF(CLG_VERSION_PATCH)
#define HELPER_MESSAGE_MAX_BYTES ((size_t)512 << 20)

/* First message to the helper: which device, and within which limits. */
typedef struct helper_hello {
    const char *version;       /* HELPER_VERSION */
    uint64_t device_index;     /* of ocl_enumerate */
    hash128 identity;          /* of that device: context_identity */
    uint32_t limit_s;          /* for one request */
    uint64_t max_memory_bytes; /* resident; 0: unlimited */
} helper_hello;

typedef struct helper_launch {
    uint32_t n_dims;
    bool has_local;
    uint64_t global[3], local[3];
} helper_launch;

#define HELPER_NO_ARG (-1)

/* Build a program, make its kernel, launch it. Pointers are borrowed. */
typedef struct helper_request {
    const char *name, *entry; /* of the program, for messages, and of the kernel */
    const char *source;
    size_t source_bytes;
    bool has_launch;
    helper_launch launch;
    kernel_args args;
    int32_t content_arg; /* this buffer's content comes back; HELPER_NO_ARG: none does */
    bool wants_binary;
} helper_request;

/* How a request ended. */
typedef enum helper_outcome {
    HELPER_DONE,
    HELPER_REFUSED,       /* the driver returned an error: a status and its text */
    HELPER_CRASHED,       /* the worker died by a fault or an abort */
    HELPER_KILLED,        /* ... by another signal, or without a trace */
    HELPER_TIMED_OUT,     /* ... by the limit of time */
    HELPER_OUT_OF_MEMORY, /* ... by the limit of memory */
    HELPER_UNABLE /* nothing was tried: there is no such device for the helper, or it lacks resources */
} helper_outcome;

typedef struct helper_reply {
    helper_outcome outcome;
    int32_t status; /* of HELPER_REFUSED */
    int32_t
        signal; /* of HELPER_CRASHED and HELPER_KILLED; below 0: exception of Windows; 0: unknown */
    char *
        text; /* the error, or the last the driver printed; owned, like what follows; may be NULL */
    char *binary;
    size_t binary_bytes;
    char *content;
    size_t content_bytes;
} helper_reply;

/* Appends the message, its size first. The text remembers a failure. */
void helper_write_hello(text *t, const helper_hello *hello);
void helper_write_request(text *t, const helper_request *request);
void helper_write_reply(text *t, const helper_reply *reply);
/* Of a message without its size. False when it is damaged. What is read of a hello or a request borrows from data, but for
 * args.items (kernel_args_deinit is not for it: memory_free). */
bool helper_read_hello(const char *data, size_t n_bytes, helper_hello *out_hello);
bool helper_read_request(const char *data, size_t n_bytes, helper_request *out_request);
clg_status helper_read_reply(const char *data, size_t n_bytes, helper_reply *out_reply);
void helper_reply_deinit(helper_reply *reply);

#endif
