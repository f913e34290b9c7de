/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements failure.h: records and prints the error of each thread, and maps statuses of the
 * library to exit codes. Also allocates memory, and splits text.
 */
#include "failure.h"

#include "output.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Thread_local failure_record failure;

int fail_record(int code, clg_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    failure.is_set = true;
    failure.status = status;
    failure.hint[0] = '\0';
    (void)vsnprintf(failure.text, sizeof failure.text, format, args);
    va_end(args);
    return code;
}

void fail_hint(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(failure.hint, sizeof failure.hint, format, args);
    va_end(args);
}

static int status_code(clg_status status, stage when)
{
    switch (status) {
    case CLG_OK: return CODE_DONE;
    case CLG_ERROR_INVALID_ARGUMENT: return CODE_USAGE;
    case CLG_ERROR_INVALID_MODEL:
    case CLG_ERROR_UNSUPPORTED_OPERATOR:
    case CLG_ERROR_UNSUPPORTED_ATTRIBUTE: return CODE_FILE;
    case CLG_ERROR_UNSUPPORTED_DTYPE: return when == STAGE_INPUT ? CODE_USAGE : CODE_FILE;
    case CLG_ERROR_SHAPE:
    case CLG_ERROR_NOT_FOUND: return when == STAGE_READ ? CODE_FILE : CODE_USAGE;
    case CLG_ERROR_NO_OPENCL:
    case CLG_ERROR_NO_DEVICE:
    case CLG_ERROR_UNSUPPORTED_DEVICE: return CODE_NO_DEVICE;
    case CLG_ERROR_OUT_OF_DEVICE_MEMORY:
    case CLG_ERROR_KERNEL_BUILD:
    case CLG_ERROR_DEVICE_LOST: return CODE_DEVICE;
    case CLG_ERROR_IO: return when == STAGE_READ ? CODE_FILE : CODE_WORK;
    case CLG_ERROR_CANCELLED: return CODE_INTERRUPTED;
    case CLG_ERROR_DATA:
    case CLG_ERROR_OUT_OF_HOST_MEMORY:
    case CLG_ERROR_BUSY:
    case CLG_ERROR_LIMIT:
    case CLG_ERROR_FORKED:
    case CLG_ERROR_INTERNAL: break;
    }
    return CODE_WORK;
}

const char *failure_hint(clg_status status)
{
    return status == CLG_ERROR_DEVICE_LOST
               ? "run the command again; the system's log may tell why the device or its driver "
                 "failed"
               : clg_last_hint();
}

int fail_record_status(clg_status status, stage when, const char *format, ...)
{
    char front[1024] = "";
    if (format) {
        va_list args;
        va_start(args, format);
        (void)vsnprintf(front, sizeof front, format, args);
        va_end(args);
    }
    const char *text = clg_last_error(), *hint = failure_hint(status);
    int code = status_code(status, when);
    if (code == CODE_INTERRUPTED) return fail(code, status, "interrupted");
    if (text[0] == '\0') text = clg_status_name(status);
    (void)fail(code, status, "%s%s%s", front, format ? ": " : "", text);
    if (hint[0]) fail_hint("%s", hint);
    return code;
}

bool failure_is_recorded(void) { return failure.is_set; }

void failure_clear(void) { failure.is_set = false; }

void failure_take(failure_record *out_record)
{
    *out_record = failure;
    failure.is_set = false;
}

void failure_put(const failure_record *record) { failure = *record; }

const char *failure_text(void) { return failure.text; }

json_t *failure_json(void)
{
    return json_pack("{s:s, s:o, s:o}", "status", clg_status_name(failure.status), "message",
                     output_json_text(failure.text), "hint", output_json_text(failure.hint));
}

void failure_print(bool json)
{
    if (!failure.is_set) return;
    output_progress_clear();
    if (json) {
        (void)output_json(json_pack("{s:o}", "error", failure_json()));
        return;
    }
    output_mark(stderr, MARK_BAD, "cltool: error:");
    (void)fprintf(stderr, " %s\n", failure.text);
    if (failure.hint[0]) {
        output_mark(stderr, MARK_STRONG, "hint:");
        (void)fprintf(stderr, " %s\n", failure.hint);
    }
    (void)fflush(stderr);
}

static void out_of_memory(size_t n, size_t size_bytes)
{
    (void)fprintf(stderr,
                  "cltool: error: out of host memory: %zu times %zu bytes could not be had\n", n,
                  size_bytes);
    exit(CODE_WORK);
}

void *must_alloc(size_t n, size_t size_bytes)
{
    void *memory = calloc(n > 0 ? n : 1, size_bytes > 0 ? size_bytes : 1);
    if (!memory) out_of_memory(n, size_bytes);
    return memory;
}

void *must_resize(void *memory, size_t n, size_t size_bytes)
{
    void *larger = n <= SIZE_MAX / 2 / size_bytes ? realloc(memory, n * size_bytes) : NULL;
    if (!larger) out_of_memory(n, size_bytes);
    return larger;
}

char *must_copy(const char *text)
{
    size_t n = strlen(text) + 1;
    return memcpy(must_alloc(n, 1), text, n);
}

char *must_vprintf(const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    const int n = vsnprintf(NULL, 0, format, again);
    va_end(again);
    const size_t room = n < 0 ? 1 : (size_t)n + 1;
    char *text = must_alloc(room, 1);
    (void)vsnprintf(text, room, format, args);
    return text;
}

char *must_printf(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *text = must_vprintf(format, args);
    va_end(args);
    return text;
}

char *split_next(char **rest, char separator)
{
    char *part = *rest, *end = part ? strchr(part, separator) : NULL;
    if (end) *end = '\0';
    *rest = end ? end + 1 : NULL;
    return part;
}
