/* SPDX-License-Identifier: Apache-2.0
 *
 * Prints notes, progress and JSON, in colour where possible, and formats numbers and names.
 */
#include "output.h"

#include "engine.h"
#include "host.h"
#include "progress.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static bool is_quiet, may_colour;

void output_setup(bool quiet)
{
    const char *term = getenv("TERM");
    bool is_dumb = term && strcmp(term, "dumb") == 0;
    is_quiet = quiet;
    may_colour = !getenv("NO_COLOR") && !is_dumb;
    progress_setup(!quiet && !is_dumb && host_is_terminal(stderr));
}

void output_mark(FILE *stream, mark how, const char *text)
{
    static const char *const colours[] = {
        [MARK_STRONG] = "1", [MARK_GOOD] = "32", [MARK_BAD] = "1;31", [MARK_DIM] = "2"};
    if (how != MARK_NONE && may_colour && host_is_terminal(stream)) {
        (void)fprintf(stream, "\033[%sm%s\033[0m", colours[how], text);
    } else {
        (void)fputs(text, stream);
    }
}

static void say(const char *front, const char *format, va_list args)
{
    progress_pause();
    (void)fprintf(stderr, "cltool: %s", front);
    (void)vfprintf(stderr, format, args);
    (void)fputc('\n', stderr);
    (void)fflush(stderr);
    progress_go_on();
}

void output_note(const char *format, ...)
{
    if (is_quiet) return;
    va_list args;
    va_start(args, format);
    say("", format, args);
    va_end(args);
}

void output_warning(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    say("warning: ", format, args);
    va_end(args);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

size_t utf8_bytes(const char *s)
{
    const unsigned char *u = (const unsigned char *)s;
    size_t n = u[0] < 0x80   ? 1
               : u[0] < 0xC2 ? 0
               : u[0] < 0xE0 ? 2
               : u[0] < 0xF0 ? 3
               : u[0] < 0xF5 ? 4
                             : 0;
    for (size_t i = 1; i < n; i++) {
        if ((u[i] & 0xC0) != 0x80) return 0;
    }
    if (n == 3 && ((u[0] == 0xE0 && u[1] < 0xA0) || (u[0] == 0xED && u[1] > 0x9F))) return 0;
    if (n == 4 && ((u[0] == 0xF0 && u[1] < 0x90) || (u[0] == 0xF4 && u[1] > 0x8F))) return 0;
    return n;
}

json_t *output_json_text(const char *text)
{
    json_t *string = json_string(text);
    if (string) return string;
    char *clean = must_alloc(3 * strlen(text) + 1, 1), *to = clean;
    while (*text) {
        size_t n = utf8_bytes(text);
        const char *from = n > 0 ? text : "\xEF\xBF\xBD";
        size_t n_out = n > 0 ? n : 3;
        memcpy(to, from, n_out);
        to += n_out;
        text += n > 0 ? n : 1;
    }
    string = json_string(clean);
    free(clean);
    return string;
}

json_t *output_json_real(double number)
{
    return isfinite(number) ? json_real(number) : json_null();
}

json_t *output_json_dims(size_t rank, const int64_t *dims)
{
    json_t *list = json_array();
    for (size_t i = 0; i < rank; i++) (void)json_array_append_new(list, json_integer(dims[i]));
    return list;
}

int output_json(json_t *document)
{
    if (!document)
        return fail(CODE_WORK, CLG_ERROR_OUT_OF_HOST_MEMORY, "out of host memory for JSON");
    output_progress_clear();
    (void)json_dumpf(document, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
    (void)fputc('\n', stdout);
    json_decref(document);
    return CODE_DONE;
}

int output_finish(void)
{
    output_progress_clear();
    if (fflush(stdout) == 0 && !ferror(stdout)) return CODE_DONE;
    return fail(CODE_WORK, CLG_ERROR_IO, "standard output cannot be written: %s", strerror(errno));
}

/* ---- text ------------------------------------------------------------------------------------ */

static char *next_buffer(void)
{
    static _Thread_local char buffers[8][PRINTABLE_BYTES];
    static _Thread_local size_t next;
    next = (next + 1) % 8;
    return buffers[next];
}

const char *printable(const char *name)
{
    char *buffer = next_buffer(), *to = buffer;
    const char *end = buffer + PRINTABLE_BYTES - 4;
    while (*name) {
        size_t n = utf8_bytes(name);
        bool shows = n > 1 ? !((unsigned char)name[0] == 0xC2 && (unsigned char)name[1] < 0xA0)
                           : n == 1 && (unsigned char)name[0] >= 0x20 && name[0] != 0x7F;
        if (to + (shows ? n : 1) > end) {
            memcpy(to, "...", 4);
            return buffer;
        }
        if (shows) {
            memcpy(to, name, n);
            to += n;
        } else {
            *to++ = '?';
        }
        name += n > 0 ? n : 1;
    }
    *to = '\0';
    return buffer;
}

static const char *scaled_text(double number, const char *unit)
{
    static const char *const prefixes[] = {"", "k", "M", "G", "T", "P"};
    char *buffer = next_buffer();
    size_t i = 0;
    while (fabs(number) >= 999.5 && i < 5) {
        number /= 1000;
        i++;
    }
    int digits = i == 0 && number == floor(number) ? 0
                 : fabs(number) < 10               ? 2
                 : fabs(number) < 100              ? 1
                                                   : 0;
    (void)snprintf(buffer, PRINTABLE_BYTES, "%.*f %s%s", digits, number, prefixes[i], unit);
    return buffer;
}

const char *bytes_text(double bytes) { return scaled_text(bytes, "B"); }

const char *flops_text(double flops) { return scaled_text(flops, "FLOP"); }

const char *rate_text(double a_second)
{
    char *buffer = next_buffer();
    (void)snprintf(buffer, PRINTABLE_BYTES, a_second < 1000 ? "%.4g" : "%.0f", a_second);
    return buffer;
}

const char *number_text(double number)
{
    char *buffer = next_buffer();
    (void)snprintf(buffer, PRINTABLE_BYTES, "%.6g", number);
    return buffer;
}

const char *clock_text(double seconds)
{
    char *buffer = next_buffer();
    const double whole = round(seconds), hours = floor(whole / 3600), minutes = floor(whole / 60);
    if (hours > 0)
        (void)snprintf(buffer, PRINTABLE_BYTES, "%.0f:%02.0f:%02.0f", hours, fmod(minutes, 60),
                       fmod(whole, 60));
    else
        (void)snprintf(buffer, PRINTABLE_BYTES, "%.0f:%02.0f", minutes, fmod(whole, 60));
    return buffer;
}

const char *dims_text(size_t rank, const int64_t *dims)
{
    char *buffer = next_buffer();
    size_t used = 1;
    buffer[0] = '[';
    for (size_t i = 0; i < rank && used < PRINTABLE_BYTES - 24; i++) {
        used += (size_t)snprintf(buffer + used, PRINTABLE_BYTES - used, "%s%" PRId64,
                                 i > 0 ? "," : "", dims[i]);
    }
    memcpy(buffer + used, "]", 2);
    return buffer;
}

const char *value_kind_name(clg_value_kind kind)
{
    switch (kind) {
    case CLG_VALUE_TENSOR: return "tensor";
    case CLG_VALUE_SEQUENCE: return "sequence";
    case CLG_VALUE_OPTIONAL: return "optional";
    case CLG_VALUE_MAP: return "map";
    }
    return "unknown";
}
