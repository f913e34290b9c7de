/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes parts of HTML pages. See html_page.h.
 */
#include "html_page.h"

#include "output.h"

#include <stdlib.h>
#include <string.h>

void html_begin(text_buffer *b, const char *title)
{
    text_buffer_add(b, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                       "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                       "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                       "style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n<title>");
    html_add(b, title, 200);
    text_buffer_add(b, "</title>\n<style>\n");
    text_buffer_add(b, page_css);
    text_buffer_add(b, "</style>\n</head>\n<body>\n<h1>");
    html_add(b, title, 200);
    text_buffer_add(b, "</h1>\n");
}

void html_end(text_buffer *b)
{
    text_buffer_add(b, "<script>\n");
    text_buffer_add(b, page_js);
    text_buffer_add(b, "</script>\n</body>\n</html>\n");
}

static void add_character(text_buffer *b, const char *c, size_t n_bytes)
{
    switch (*c) {
    case '&': text_buffer_add(b, "&amp;"); break;
    case '<': text_buffer_add(b, "&lt;"); break;
    case '>': text_buffer_add(b, "&gt;"); break;
    case '"': text_buffer_add(b, "&quot;"); break;
    case '\'': text_buffer_add(b, "&#39;"); break;
    default: text_buffer_add_bytes(b, c, n_bytes); break;
    }
}

void html_add(text_buffer *b, const char *text, size_t max_bytes)
{
    const char *start = text;
    while (*text) {
        const size_t n = utf8_bytes(text);
        const unsigned char c = (unsigned char)*text;
        if (max_bytes > 0 && (size_t)(text - start) + (n > 0 ? n : 1) > max_bytes) {
            text_buffer_add(b, "...");
            return;
        }
        if (n == 0 || c == 0x7F || (c < 0x20 && c != '\n'))
            text_buffer_add(b, "\xEF\xBF\xBD");
        else
            add_character(b, text, n);
        text += n > 0 ? n : 1;
    }
}

static void add_formatted(text_buffer *b, const char *format, va_list args) TOOL_PRINTF(2, 0);
static void add_formatted(text_buffer *b, const char *format, va_list args)
{
    char *text = must_vprintf(format, args);
    html_add(b, text, 0);
    free(text);
}

void html_printf(text_buffer *b, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    add_formatted(b, format, args);
    va_end(args);
}

void html_fact(text_buffer *b, const char *name, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    text_buffer_printf(b, "<dt>%s</dt><dd>", name);
    add_formatted(b, format, args);
    text_buffer_add(b, "</dd>\n");
    va_end(args);
}

void html_table_begin(text_buffer *b, size_t n, const char *const *headers)
{
    text_buffer_add(b, "<div class=\"scroll rows\"><table>\n<thead><tr>");
    for (size_t i = 0; i < n; i++) {
        const bool is_number = headers[i][0] == '>';
        text_buffer_printf(b, "<th scope=\"col\"%s><button>", is_number ? " class=\"n\"" : "");
        html_add(b, headers[i] + is_number, 0);
        text_buffer_add(b, "</button></th>");
    }
    text_buffer_add(b, "</tr></thead>\n<tbody>\n");
}

void html_table_end(text_buffer *b) { text_buffer_add(b, "</tbody>\n</table></div>\n"); }

void html_cell(text_buffer *b, const char *text)
{
    text_buffer_add(b, strlen(text) > 40 ? "<td class=\"wrap\">" : "<td>");
    html_add(b, text, 400);
    text_buffer_add(b, "</td>");
}

void html_number_cell(text_buffer *b, double number, int digits, const char *unit)
{
    if (number == 0)
        text_buffer_add(b, "<td class=\"n\" data-v=\"0\">-</td>");
    else if (number >= 1000)
        text_buffer_printf(b, "<td class=\"n\" data-v=\"%.6g\">%.0f%s</td>", number, number, unit);
    else
        text_buffer_printf(b, "<td class=\"n\" data-v=\"%.6g\">%.*g%s</td>", number, digits, number,
                           unit);
}
