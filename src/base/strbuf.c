/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements strbuf.h. Every size is checked against the string's maximum before memory is
 * allocated.
 */
#include "base/strbuf.h"

#include "base/memory.h"

#include <stdio.h>
#include <string.h>

#define TEXT_DEFAULT_MAX_BYTES ((size_t)64 << 20)

static size_t max_of(const strbuf *t)
{
    return t->max_bytes > 0 ? t->max_bytes : TEXT_DEFAULT_MAX_BYTES;
}

void strbuf_init(strbuf *t, size_t max_bytes) { *t = (strbuf){.max_bytes = max_bytes}; }

/* Reserves memory for n_bytes more and the NUL. Returns false if this or an earlier append failed.
 */
static bool make_room(strbuf *t, size_t n_bytes)
{
    if (t->status != CLG_OK) return false;
    if (n_bytes > max_of(t) - t->size_bytes) {
        t->status = error_set(CLG_ERROR_OUT_OF_HOST_MEMORY,
                              "a text would grow beyond its maximum of %zu bytes", max_of(t));
    } else {
        t->status = MEMORY_RESERVE(t->data, t->capacity_bytes, t->size_bytes + n_bytes + 1);
    }
    return t->status == CLG_OK;
}

void strbuf_append_bytes(strbuf *t, const char *bytes, size_t n_bytes)
{
    if (n_bytes == 0 || !make_room(t, n_bytes)) return;
    memcpy(t->data + t->size_bytes, bytes, n_bytes);
    t->size_bytes += n_bytes;
    t->data[t->size_bytes] = '\0';
}

void strbuf_append(strbuf *t, const char *string)
{
    strbuf_append_bytes(t, string, strlen(string));
}

void strbuf_printf(strbuf *t, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (length < 0 && t->status == CLG_OK)
        t->status = error_set(CLG_ERROR_INTERNAL, "a text cannot be formatted");
    if (length <= 0 || !make_room(t, (size_t)length)) return;
    va_start(args, format);
    (void)vsnprintf(t->data + t->size_bytes, (size_t)length + 1, format, args);
    va_end(args);
    t->size_bytes += (size_t)length;
}

const char *strbuf_data(const strbuf *t) { return t->data ? t->data : ""; }

clg_status strbuf_take(strbuf *t, char **out_string)
{
    *out_string = NULL;
    if (t->status != CLG_OK) {
        /* Recorded again, since other errors may have replaced it after the failed append. */
        return error_set(t->status,
                         "a text of more than %zu bytes could not be built (its maximum is %zu)",
                         t->size_bytes, max_of(t));
    }
    char *string = t->data;
    if (!string) {
        string = memory_strdup("");
        if (!string) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    }
    *out_string = string;
    strbuf_init(t, t->max_bytes);
    return CLG_OK;
}

void strbuf_deinit(strbuf *t)
{
    memory_free(t->data);
    strbuf_init(t, t->max_bytes);
}

double text_decimal(const char *text, const char **out_end)
{
    const bool is_negative = *text == '-';
    double digits = 0, scale = 1;
    bool has_point = false;
    for (text += is_negative; (*text >= '0' && *text <= '9') || (*text == '.' && !has_point);
         text++) {
        if (*text == '.') {
            has_point = true;
            continue;
        }
        digits = digits * 10 + (*text - '0');
        if (has_point) scale *= 10;
    }
    if (out_end) *out_end = text;
    return (is_negative ? -digits : digits) / scale;
}

bool text_matches(const char *pattern, const char *string)
{
    /* The pattern after the last '*', and the end of what this '*' matches so far in the string. */
    const char *after_star = NULL, *end = NULL;
    while (*string) {
        if (*pattern == '*') {
            after_star = ++pattern;
            end = string;
        } else if (*pattern == '?' || *pattern == *string) {
            pattern++;
            string++;
        } else if (after_star) {
            pattern = after_star;
            string = ++end;
        } else {
            return false;
        }
    }
    while (*pattern == '*') pattern++;
    return *pattern == '\0';
}
