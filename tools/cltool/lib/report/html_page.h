/* SPDX-License-Identifier: Apache-2.0
 *
 * Parts of self-contained HTML pages: no network, no file beside them. All text that comes from
 * models or drivers goes through html_add, which escapes it.
 */
#ifndef CLTOOL_HTML_PAGE_H
#define CLTOOL_HTML_PAGE_H

#include "text_buffer.h"

/* Embedded files page.css and page.js. */
extern const char page_css[], page_js[];

/* Starts a page with its style and title; ends it with its script. */
void html_begin(text_buffer *b, const char *title);
void html_end(text_buffer *b);

/* Appends text for elements and attributes in quotes: characters of HTML are escaped, invalid UTF-8
 * and control characters become U+FFFD, and at most max_bytes bytes are shown, with "..." after
 * them; 0: all. */
void html_add(text_buffer *b, const char *text, size_t max_bytes);
/* Appends formatted text, escaped. */
void html_printf(text_buffer *b, const char *format, ...) TOOL_PRINTF(2, 3);

/* Append a row "name: value" of a description list. */
void html_fact(text_buffer *b, const char *name, const char *format, ...) TOOL_PRINTF(3, 4);

/* Starts a table whose columns can be sorted; a header that starts with '>' is of numbers. */
void html_table_begin(text_buffer *b, size_t n, const char *const *headers);
void html_table_end(text_buffer *b);
void html_cell(text_buffer *b, const char *text);
/* Appends a cell of a number, shown with this many significant digits and a unit; 0 is shown as "-"
 * where it is not known. */
void html_number_cell(text_buffer *b, double number, int digits, const char *unit);

#endif
