/* SPDX-License-Identifier: Apache-2.0
 *
 * Prints tables of text with aligned columns.
 */
#include "output.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* Returns the number of characters, rather than bytes, of UTF-8 text. */
static size_t width(const char *text)
{
    size_t n = 0;
    for (; *text; text++) n += ((unsigned char)*text & 0xC0) != 0x80;
    return n;
}

static void add(table *t, mark how, char *text)
{
    if (t->n_cells == t->capacity) {
        t->capacity = t->capacity * 2 + 32;
        t->cells = must_resize(t->cells, t->capacity, sizeof *t->cells);
        t->marks = must_resize(t->marks, t->capacity, sizeof *t->marks);
    }
    t->cells[t->n_cells] = text;
    t->marks[t->n_cells++] = how;
}

void table_begin(table *t, size_t n_columns, const char *const *headers)
{
    *t = (table){.n_columns = n_columns};
    for (size_t i = 0; i < n_columns; i++) add(t, MARK_STRONG, must_copy(headers[i]));
}

void table_cell(table *t, mark how, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    add(t, how, must_vprintf(format, args));
    va_end(args);
}

static void print_cell(const table *t, FILE *stream, size_t i, const size_t *widths, bool is_last)
{
    size_t column = i % t->n_columns;
    bool is_header = i < t->n_columns, right = t->cells[column][0] == '>';
    const char *text = t->cells[i] + (is_header && right ? 1 : 0);
    size_t blanks = widths[column] - width(text);
    if (right) (void)fprintf(stream, "%*s", (int)blanks, "");
    output_mark(stream, t->marks[i], text);
    if (!is_last) (void)fprintf(stream, "%*s", right ? 2 : (int)blanks + 2, "");
}

/* Prints the cells of a row up to the last one that is not empty; columns of width 0 are left out.
 */
static void print_line(const table *t, FILE *stream, size_t row, const size_t *widths)
{
    size_t first = row * t->n_columns, end = t->n_columns;
    while (end > 0 && (widths[end - 1] == 0 || t->cells[first + end - 1][0] == '\0')) end--;
    for (size_t i = 0; i < end; i++) {
        if (widths[i] > 0) print_cell(t, stream, first + i, widths, i + 1 == end);
    }
    (void)fputc('\n', stream);
}

/* Returns the width of each column in characters; 0 for a column that is empty below its header.
 * The caller frees it with free(). */
static size_t *measure(const table *t)
{
    size_t *widths = must_alloc(t->n_columns, sizeof *widths);
    for (size_t i = t->n_columns; i < t->n_cells; i++) {
        size_t column = i % t->n_columns, n = width(t->cells[i]), header = width(t->cells[column]);
        if (n > 0 && t->cells[column][0] == '>') header--;
        if (n > 0 && n < header) n = header;
        if (n > widths[column]) widths[column] = n;
    }
    return widths;
}

void table_print(table *t, FILE *stream, size_t indent)
{
    size_t *widths = measure(t);
    for (size_t row = 0; row < t->n_cells / t->n_columns; row++) {
        (void)fprintf(stream, "%*s", (int)indent, "");
        print_line(t, stream, row, widths);
    }
    free(widths);
    table_free(t);
}

void table_free(table *t)
{
    for (size_t i = 0; i < t->n_cells; i++) free(t->cells[i]);
    free(t->cells);
    free(t->marks);
    *t = (table){0};
}
