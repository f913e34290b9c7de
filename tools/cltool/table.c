/* SPDX-License-Identifier: Apache-2.0
 *
 * Tables of text with aligned columns.
 */
#include "output.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* Characters rather than bytes. */
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
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, args);
    size_t room = n < 0 ? 1 : (size_t)n + 1;
    char *text = must_alloc(room, 1);
    (void)vsnprintf(text, room, format, again);
    va_end(again);
    va_end(args);
    add(t, how, text);
}

static void print_cell(const table *t, FILE *stream, size_t i, const size_t *widths)
{
    size_t column = i % t->n_columns;
    bool is_header = i < t->n_columns, right = t->cells[column][0] == '>';
    const char *text = t->cells[i] + (is_header && right ? 1 : 0);
    size_t blanks = widths[column] - width(text);
    if (right) (void)fprintf(stream, "%*s", (int)blanks, "");
    output_mark(stream, t->marks[i], text);
    if (column + 1 < t->n_columns) (void)fprintf(stream, "%*s", right ? 2 : (int)blanks + 2, "");
}

void table_print(table *t, FILE *stream, size_t indent)
{
    size_t *widths = must_alloc(t->n_columns, sizeof *widths);
    for (size_t i = 0; i < t->n_cells; i++) {
        size_t n = width(t->cells[i]) - (i < t->n_columns && t->cells[i][0] == '>' ? 1 : 0);
        if (n > widths[i % t->n_columns]) widths[i % t->n_columns] = n;
    }
    for (size_t i = 0; i < t->n_cells; i++) {
        if (i % t->n_columns == 0) (void)fprintf(stream, "%*s", (int)indent, "");
        print_cell(t, stream, i, widths);
        if ((i + 1) % t->n_columns == 0) (void)fputc('\n', stream);
    }
    for (size_t i = 0; i < t->n_cells; i++) free(t->cells[i]);
    free(t->cells);
    free(t->marks);
    free(widths);
    *t = (table){0};
}
