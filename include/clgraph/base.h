/* SPDX-License-Identifier: Apache-2.0
 *
 * Version, status codes, errors, log, memory hooks and the names of objects. clgraph.h includes
 * this header and has the rules for all functions.
 */
#ifndef CLGRAPH_BASE_H
#define CLGRAPH_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(_WIN32) && defined(CLG_BUILDING)
#define CLG_API __declspec(dllexport)
#elif defined(_WIN32)
#define CLG_API /* functions only: these need no dllimport */
#elif defined(__GNUC__)
#define CLG_API __attribute__((visibility("default")))
#else
#define CLG_API
#endif
#if defined(__GNUC__)
#define CLG_MUST_USE __attribute__((warn_unused_result))
#else
#define CLG_MUST_USE
#endif

/* ---- version --------------------------------------------------------------------------------- */

#define CLG_VERSION_MAJOR 0
#define CLG_VERSION_MINOR 1
#define CLG_VERSION_PATCH 0

/* Returns the version of the library that is running, "0.1.0". Never NULL. */
CLG_API const char *clg_version(void);

/* ---- status ---------------------------------------------------------------------------------- */

typedef enum clg_status {
    CLG_OK = 0,
    CLG_ERROR_INVALID_ARGUMENT = -1,      /* an argument of the call is invalid */
    CLG_ERROR_INVALID_MODEL = -2,         /* the file or graph breaks ONNX's rules */
    CLG_ERROR_UNSUPPORTED_OPERATOR = -3,  /* an operator (or version) that clgraph does not have */
    CLG_ERROR_UNSUPPORTED_ATTRIBUTE = -4, /* the operator is there, this attribute value is not */
    CLG_ERROR_UNSUPPORTED_DTYPE = -5,     /* the operator is there, this element type is not */
    CLG_ERROR_SHAPE = -6,                 /* shapes, ranks or values of shape inputs do not match */
    CLG_ERROR_DATA = -7,       /* a value is out of range at run time: an index in Gather */
    CLG_ERROR_NOT_FOUND = -8,  /* a name that the model, cache or folder does not have */
    CLG_ERROR_NO_OPENCL = -9,  /* no OpenCL loader or no platform on this machine */
    CLG_ERROR_NO_DEVICE = -10, /* OpenCL is there, but no device matches the selector */
    CLG_ERROR_UNSUPPORTED_DEVICE = -11, /* the device lacks a feature that is needed */
    CLG_ERROR_OUT_OF_HOST_MEMORY = -12,
    CLG_ERROR_OUT_OF_DEVICE_MEMORY = -13,
    CLG_ERROR_KERNEL_BUILD = -14, /* the driver's compiler rejected a kernel */
    CLG_ERROR_DEVICE_LOST = -15,  /* the device or driver failed: see clg_context_recover */
    CLG_ERROR_IO = -16,           /* a file cannot be read or written */
    CLG_ERROR_CANCELLED = -17,
    CLG_ERROR_BUSY = -18,     /* the session is running another request */
    CLG_ERROR_INTERNAL = -19, /* a bug in clgraph: please report it */
    CLG_ERROR_LIMIT = -20,    /* more memory, steps or time than clg_limits allow */
    CLG_ERROR_FORKED = -21    /* this process was forked after OpenCL was used */
} clg_status;

/* Returns the name of a status, "CLG_ERROR_IO"; "unknown status" for any other value. */
CLG_API const char *clg_status_name(clg_status status);

/* Returns the message of the calling thread's last failed call: what failed, on which node, tensor
 * or device. Never NULL; "" when nothing failed. Valid until the thread's next failing call; calls
 * that succeed do not change it. */
CLG_API const char *clg_last_error(void);

/* Returns what to try after the last error, "" when there is no advice. Same lifetime. */
CLG_API const char *clg_last_hint(void);

/* ---- log and memory -------------------------------------------------------------------------- */

typedef enum clg_log_level {
    CLG_LOG_ERROR = 0,
    CLG_LOG_WARNING = 1,
    CLG_LOG_INFO = 2,
    CLG_LOG_DEBUG = 3
} clg_log_level;

/* Receives a log message, without a trailing newline, valid during the call. */
typedef void (*clg_log_callback)(void *user, clg_log_level level, const char *message);

/* Sends messages up to `level` to `callback`; NULL silences the log (the default). Process-wide;
 * may be set at any time; the callback may be called from any thread, one call at a time. Once this
 * has returned, the previous callback no longer runs. */
CLG_API void clg_set_log(clg_log_callback callback, void *user, clg_log_level level);
/* Returns the callback that is set, NULL if the log is silent, and its user pointer. For plugins:
 * they leave an application's callback where it is. out_user may be NULL. */
CLG_API clg_log_callback clg_get_log(void **out_user);

/* Says that the driver's compiler starts on a kernel, or has ended; each start has an end. The name
 * is valid during the call. */
typedef void (*clg_compile_callback)(void *user, const char *kernel, bool has_ended);

/* Calls `callback` whenever the driver compiles a kernel, for a display of progress; NULL: no more
 * (the default). Several kernels may be compiled at a time. Process-wide; the rules of clg_set_log
 * apply. */
CLG_API void clg_set_compile_callback(clg_compile_callback callback, void *user);

/* Memory hooks. `resize(user, NULL, n)` allocates, `resize(user, p, n)` grows or shrinks,
 * `resize(user, p, 0)` frees and returns NULL. Must align as malloc does. Runs on any thread. */
typedef struct clg_allocator {
    void *(*resize)(void *user, void *memory, size_t size_bytes);
    void *user;
} clg_allocator;

/* Sets the process-wide allocator, which is copied; NULL restores malloc. Must be called while no
 * object of the library exists (else INVALID_ARGUMENT) and no other thread calls the library. */
CLG_API CLG_MUST_USE clg_status clg_set_allocator(const clg_allocator *allocator);

/* ---- objects --------------------------------------------------------------------------------- */

typedef struct clg_context clg_context; /* a device, with programs and memory: context.h */
typedef struct clg_model clg_model;     /* a graph with its weights: model.h */
typedef struct clg_session clg_session; /* a model on a context: session.h */
typedef struct clg_value clg_value;     /* a tensor, sequence, optional or map: value.h */
typedef struct clg_builder clg_builder; /* a graph in the making: builder.h */
typedef struct clg_cancel clg_cancel;   /* a token that ends long work: cancel.h */
typedef struct clg_limits clg_limits;   /* limits for models that are not trusted: limits.h */

#ifdef __cplusplus
}
#endif

#endif
