/* SPDX-License-Identifier: Apache-2.0
 *
 * How cltool fails: whoever finds a fault records it once and returns an exit code up to main, which prints
 * it. The codes are a contract with scripts.
 */
#ifndef CLTOOL_FAILURE_H
#define CLTOOL_FAILURE_H

#include <clgraph/clgraph.h>

#include <jansson.h>

enum exit_codes {
    CODE_DONE = 0,
    CODE_WORK = 1,        /* a comparison did not hold, or another failure of the work */
    CODE_USAGE = 2,       /* wrong usage; a dtype, shape or batch that does not fit */
    CODE_NO_DEVICE = 3,   /* no device matches, or no OpenCL */
    CODE_FILE = 4,        /* a file cannot be read, or a model is not supported */
    CODE_DEVICE = 5,      /* memory, lost, kernel build */
    CODE_INTERRUPTED = 130
};

#if defined(__GNUC__)
#define TOOL_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define TOOL_PRINTF(fmt, args)
#endif

/* Records a full sentence; returns `code`. */
int fail(int code, clg_status status, const char *format, ...) TOOL_PRINTF(3, 4);
int fail_usage(const char *format, ...) TOOL_PRINTF(1, 2);
int fail_file(const char *format, ...) TOOL_PRINTF(1, 2);
/* What to try about the fault recorded last. */
void fail_hint(const char *format, ...) TOOL_PRINTF(1, 2);

/* What was going on when a call of the library failed: some statuses mean another exit code there. */
typedef enum stage {
    STAGE_WORK,
    STAGE_READ, /* a file of the user's, a model */
    STAGE_INPUT /* values given to a session, shapes */
} stage;
/* Records the library's own sentence about its last failed call, with "<text>: " in front when format is not NULL.
 * Returns the exit code. */
int fail_status(clg_status status, stage when, const char *format, ...) TOOL_PRINTF(3, 4);

/* True when something was recorded. */
bool failure_is_recorded(void);
/* As JSON on standard output, else as text on standard error. */
void failure_print(bool json);
/* {"status", "message", "hint"} */
json_t *failure_json(void);
/* Forgets it: the fault was dealt with. */
void failure_clear(void);
/* The recorded sentence. */
const char *failure_text(void);

/* Memory, or the end of the program with a sentence. */
void *must_alloc(size_t n, size_t size_bytes); /* zeroed */
void *must_resize(void *memory, size_t n, size_t size_bytes);
char *must_copy(const char *text);
char *must_printf(const char *format, ...) TOOL_PRINTF(1, 2);

#endif
