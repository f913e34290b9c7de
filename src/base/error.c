/* SPDX-License-Identifier: Apache-2.0
 *
 * Stores the last error's message and hint in thread-local buffers of fixed size, without any
 * allocation. A new message is formatted in a separate buffer, since its arguments may point into
 * the stored message.
 */
#include "base/error.h"

#include "base/status.h"
#include "base/system.h"

#include <stdio.h>
#include <string.h>

static _Thread_local char last_text[ERROR_TEXT_BYTES];
static _Thread_local char last_hint[ERROR_HINT_BYTES];

/* Replaces control characters by '?', but for line ends and tabs: names come from files, and must
 * not change a terminal. Those from U+0080 on are two bytes of UTF-8. */
static void make_printable(char *text)
{
    for (unsigned char *c = (unsigned char *)text; *c; c++) {
        if (c[0] == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0)
            c[0] = c[1] = '?';
        else if ((*c < ' ' && *c != '\n' && *c != '\t') || *c == 0x7f)
            *c = '?';
    }
}

/* Formats into a buffer of n bytes; longer text is cut and ends with "...". */
static void format_bounded(char *buffer, size_t n, const char *format, va_list args)
{
    int length = vsnprintf(buffer, n, format, args);
    if (length < 0) {
        (void)snprintf(buffer, n, "an error whose text cannot be formatted");
    } else if ((size_t)length >= n) {
        memcpy(buffer + n - 4, "...", 4);
    }
    make_printable(buffer);
}

clg_status error_set_v(clg_status status, const char *format, va_list args)
{
    char buffer[ERROR_TEXT_BYTES];
    format_bounded(buffer, sizeof buffer, format, args);
    memcpy(last_text, buffer, strlen(buffer) + 1);
    last_hint[0] = '\0';
    return status;
}

void error_write(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)error_set_v(CLG_OK, format, args);
    va_end(args);
}

clg_status error_prefix(clg_status status, const char *format, ...)
{
    if (status == CLG_OK) return status;
    char buffer[ERROR_TEXT_BYTES];
    va_list args;
    va_start(args, format);
    format_bounded(buffer, sizeof buffer, format, args);
    va_end(args);

    size_t used = strlen(buffer);
    int more = snprintf(buffer + used, sizeof buffer - used, ": %s", last_text);
    if (more >= 0 && used + (size_t)more >= sizeof buffer)
        memcpy(buffer + sizeof buffer - 4, "...", 4);
    memcpy(last_text, buffer, strlen(buffer) + 1);
    return status;
}

void error_hint(const char *format, ...)
{
    char buffer[ERROR_HINT_BYTES];
    va_list args;
    va_start(args, format);
    format_bounded(buffer, sizeof buffer, format, args);
    va_end(args);
    memcpy(last_hint, buffer, strlen(buffer) + 1);
}

const char *error_text(void) { return last_text; }

const char *error_hint_text(void) { return last_hint; }

const char *error_system(int number, char buffer[ERROR_SYSTEM_BYTES])
{
    if (!sys_strerror(number, buffer, ERROR_SYSTEM_BYTES))
        (void)snprintf(buffer, ERROR_SYSTEM_BYTES, "system error %d", number);
    return buffer;
}

void error_save(clg_status status, error_record *out_record)
{
    out_record->status = status;
    memcpy(out_record->text, last_text, sizeof last_text);
    memcpy(out_record->hint, last_hint, sizeof last_hint);
}

clg_status error_restore(const error_record *record)
{
    memcpy(last_text, record->text, sizeof last_text);
    memcpy(last_hint, record->hint, sizeof last_hint);
    return record->status;
}

bool error_is_unsupported(clg_status status)
{
    return status == CLG_ERROR_UNSUPPORTED_OPERATOR || status == CLG_ERROR_UNSUPPORTED_ATTRIBUTE ||
           status == CLG_ERROR_UNSUPPORTED_DTYPE;
}

void error_callback_begin(error_record *out_before)
{
    error_save(CLG_OK, out_before);
    error_write("%s", "");
}

clg_status error_callback_end(const error_record *before, clg_status status, const char *what)
{
    if (status == CLG_OK) return error_restore(before);
    if (strncmp(status_name(status), "CLG_", 4) != 0)
        return error_set(CLG_ERROR_INVALID_ARGUMENT, "%s gave %d, which is not a status", what,
                         (int)status);
    if (error_text()[0] == '\0') return error_set(status, "%s gave %s", what, status_name(status));
    return status;
}
