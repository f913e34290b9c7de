/* SPDX-License-Identifier: Apache-2.0
 *
 * Reports errors as a status and a message. The function that detects an error calls error_set and
 * returns its result; callers may prepend context (the node, the file) with error_prefix. The
 * message is stored in a fixed thread-local buffer, so reporting out-of-memory cannot fail. See
 * decision 12. */
#ifndef CLG_BASE_ERROR_H
#define CLG_BASE_ERROR_H

#include <clgraph/clgraph.h>

#include <stdarg.h>

#define ERROR_TEXT_BYTES 4096
#define ERROR_HINT_BYTES 1024

#if defined(__MINGW32__)
#define CLG_PRINTF(fmt, args)                                                                      \
    __attribute__((format(gnu_printf, fmt, args))) /* __USE_MINGW_ANSI_STDIO */
#elif defined(__GNUC__)
#define CLG_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define CLG_PRINTF(fmt, args)
#endif

/* error_set(status, format, ...) records a message for this thread, clears the hint, and returns
 * `status`. A macro, so that compilers and analysers see which status is returned and that an error
 * is not CLG_OK. */
#define error_set(status, ...) (error_write(__VA_ARGS__), error_as(status))
static inline clg_status error_as(clg_status status) { return status; }
void error_write(const char *format, ...) CLG_PRINTF(1, 2);
clg_status error_set_v(clg_status status, const char *format, va_list args) CLG_PRINTF(2, 0);
/* Prepends "<text>: " to the recorded message; returns `status` unchanged. */
clg_status error_prefix(clg_status status, const char *format, ...) CLG_PRINTF(2, 3);
/* Records a hint, what to try, for the error just set. */
void error_hint(const char *format, ...) CLG_PRINTF(1, 2);
/* Return the message and hint that this thread recorded last, "" for none; borrowed until the
 * thread's next error. */
const char *error_text(void);
const char *error_hint_text(void);
/* Records the standard message for a failed host allocation of size_bytes. */
static inline clg_status error_no_memory(size_t size_bytes)
{
    return error_set(CLG_ERROR_OUT_OF_HOST_MEMORY,
                     "out of host memory: %zu bytes could not be allocated", size_bytes);
}

/* Writes the system's text for an errno into buffer, and returns buffer. Thread-safe, unlike
 * strerror. */
#define ERROR_SYSTEM_BYTES 128
const char *error_system(int number, char buffer[ERROR_SYSTEM_BYTES]);
/* Records "'PATH' cannot be VERB: CAUSE"; returns CLG_ERROR_IO. number: an errno. */
static inline clg_status error_path(const char *verb, const char *path, int number)
{
    char words[ERROR_SYSTEM_BYTES];
    return error_set(CLG_ERROR_IO, "'%s' cannot be %s: %s", path, verb,
                     error_system(number, words));
}

/* A copy of an error, to report it later, possibly on another thread (asynchronous runs). */
typedef struct error_record {
    clg_status status;
    char text[ERROR_TEXT_BYTES];
    char hint[ERROR_HINT_BYTES];
} error_record;
/* Copies the status, and this thread's message and hint. */
void error_save(clg_status status, error_record *out_record);
/* Makes a copy the last error of this thread; returns its status. */
clg_status error_restore(const error_record *record);

/* Before a callback of the application is called: saves the last error and forgets its message. */
void error_callback_begin(error_record *out_before);
/* After it: returns its status, or INVALID_ARGUMENT for what is not one. After a failure without a
 * message, records "WHAT gave CLG_ERROR_..."; after success, restores the saved error. */
clg_status error_callback_end(const error_record *before, clg_status status, const char *what);

/* Returns whether a status says that an operator, an attribute or a dtype is not supported. */
bool error_is_unsupported(clg_status status);

/* Evaluates a call; returns its status from the calling function unless it is CLG_OK. */
#define CLG_TRY(call)                                                                              \
    do {                                                                                           \
        clg_status try_status_ = (call);                                                           \
        if (try_status_ != CLG_OK) return try_status_;                                             \
    } while (0)
/* Assigns the status of a call to the variable `status`; goes to the label unless it is CLG_OK. For
 * functions with clean-up. */
#define CLG_TRY_GOTO(call, label)                                                                  \
    do {                                                                                           \
        status = (call);                                                                           \
        if (status != CLG_OK) goto label;                                                          \
    } while (0)

#endif
