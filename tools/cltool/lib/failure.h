/* SPDX-License-Identifier: Apache-2.0
 *
 * Errors of cltool. The function that finds an error records it and returns an exit code, which its
 * callers return up to main; main prints the error. Scripts rely on the exit codes.
 */
#ifndef CLTOOL_FAILURE_H
#define CLTOOL_FAILURE_H

#include <clgraph/clgraph.h>

#include <jansson.h>
#include <stdarg.h>

enum exit_codes {
    CODE_DONE = 0,
    CODE_WORK = 1,      /* a comparison failed, or any failure without another code */
    CODE_USAGE = 2,     /* wrong usage, or an unsuitable dtype, shape or batch */
    CODE_NO_DEVICE = 3, /* no device matches, or no OpenCL */
    CODE_FILE = 4,      /* a file cannot be read, or a model is not supported */
    CODE_DEVICE = 5,    /* out of device memory, a lost device, or a kernel that does not build */
    CODE_INTERRUPTED = 130
};

#if defined(__MINGW32__)
#define TOOL_PRINTF(fmt, args)                                                                     \
    __attribute__((format(gnu_printf, fmt, args))) /* __USE_MINGW_ANSI_STDIO */
#elif defined(__GNUC__)
#define TOOL_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define TOOL_PRINTF(fmt, args)
#endif

/* Returns the code, or CODE_WORK for 0: every error has a non-zero code. */
static inline int fail_nonzero(int code) { return code != CODE_DONE ? code : CODE_WORK; }

/* Records an error with its status and message, for the calling thread; returns `code`. */
#define fail(code, ...) fail_nonzero(fail_record(code, __VA_ARGS__))
int fail_record(int code, clg_status status, const char *format, ...) TOOL_PRINTF(3, 4);
#define fail_usage(...) fail(CODE_USAGE, CLG_ERROR_INVALID_ARGUMENT, __VA_ARGS__)
#define fail_file(...) fail(CODE_FILE, CLG_ERROR_IO, __VA_ARGS__)
/* Adds a hint to the recorded error: what the user can try. */
void fail_hint(const char *format, ...) TOOL_PRINTF(1, 2);
/* Returns what to try after the library's last error: its own hint, or one for users of cltool
 * where that is for programs. */
const char *failure_hint(clg_status status);

/* The stage in which a call of the library failed, which determines the exit code of some statuses.
 */
typedef enum stage {
    STAGE_WORK,
    STAGE_READ, /* a user's file, a model */
    STAGE_INPUT /* values given to a session, shapes */
} stage;
/* Records the message of the library's last failed call, and returns the exit code for `status` at
 * the stage `when`. Unless the format (which follows `when`) is NULL, the formatted text and ": "
 * precede the message. */
#define fail_status(status, ...) fail_nonzero(fail_record_status(status, __VA_ARGS__))
int fail_record_status(clg_status status, stage when, const char *format, ...) TOOL_PRINTF(3, 4);

/* A recorded error. Each thread has its own record: failure_take moves the record of the calling
 * thread to *out_record, and failure_put makes a record that of the calling thread. */
typedef struct failure_record {
    bool is_set;
    clg_status status;
    char text[8192];
    char hint[2048];
} failure_record;
void failure_take(failure_record *out_record);
void failure_put(const failure_record *record);

/* Returns true when an error was recorded. */
bool failure_is_recorded(void);
/* Prints the recorded error: as JSON on standard output, or as text on standard error. */
void failure_print(bool json);
/* Returns the recorded error as {"status", "message", "hint"}. */
json_t *failure_json(void);
/* Clears the record: the error was handled. */
void failure_clear(void);
/* Returns the recorded message. */
const char *failure_text(void);

/* Allocate memory; without memory, end the program with a message. The caller frees results with
 * free(). */
void *must_alloc(size_t n, size_t size_bytes); /* zeroed */
void *must_resize(void *memory, size_t n, size_t size_bytes);
char *must_copy(const char *text);
char *must_printf(const char *format, ...) TOOL_PRINTF(1, 2);
char *must_vprintf(const char *format, va_list args) TOOL_PRINTF(1, 0);
/* Returns the first part of *rest, up to the separator, which is replaced by NUL, and moves *rest
 * past it. After the last part, *rest is NULL; then the function returns NULL. */
char *split_next(char **rest, char separator);

#endif
