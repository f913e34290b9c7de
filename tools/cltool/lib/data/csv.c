/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads comma-separated numbers, below a line of column names if there is one. Cells may be quoted;
 * empty lines and a byte order mark are skipped.
 */
#include "csv.h"

#include "host.h"
#include "names.h"
#include "output.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_LINE_BYTES ((size_t)64 << 20)

/* ---- lines ----------------------------------------------------------------------------------- */

static int unreadable(const csv_reader *r)
{
    return fail_file("'%s' cannot be read: %s", r->path, strerror(errno));
}

/* Reads the next line without its end; *out_n -1 at the end of the file. */
static int read_line(csv_reader *r, long *out_n)
{
    size_t n = 0;
    int c;
    while ((c = host_getc(r->stream)) != EOF && c != '\n') {
        if (n + 1 >= r->capacity) {
            r->capacity = r->capacity * 2 + 256;
            r->line = must_resize(r->line, r->capacity, 1);
        }
        r->line[n++] = (char)c;
        if (n > MAX_LINE_BYTES) {
            return fail_file("'%s', line %zu is longer than a line may be", r->path,
                             r->line_number + 1);
        }
    }
    if (c == EOF && ferror(r->stream)) return unreadable(r);
    *out_n = c == EOF && n == 0 ? -1 : (long)n;
    if (*out_n < 0) return CODE_DONE;
    r->line_number++;
    if (r->capacity == 0) r->line = must_resize(NULL, r->capacity = 256, 1);
    if (n > 0 && memchr(r->line, '\0', n)) {
        return fail_file("'%s', line %zu has a NUL byte: this is not a text in UTF-8", r->path,
                         r->line_number);
    }
    if (n > 0 && r->line[n - 1] == '\r') n--;
    r->line[n] = '\0';
    return CODE_DONE;
}

static bool is_empty(const char *line) { return line[strspn(line, "\r")] == '\0'; }

/* Reads the next line that is not empty, without its end; NULL at the end of the file. */
static int next_line(csv_reader *r, char **out_line)
{
    *out_line = NULL;
    if (r->first_row) {
        free(r->line);
        *out_line = r->line = r->first_row;
        r->capacity = strlen(r->line) + 1;
        r->line_number = r->first_row_line;
        r->first_row = NULL;
        return CODE_DONE;
    }
    do {
        long n = -1;
        int code = read_line(r, &n);
        if (code != CODE_DONE || n < 0) return code;
    } while (is_empty(r->line));
    *out_line = r->line;
    return CODE_DONE;
}

/* Splits the first cell off *rest, which is NULL after the last; returns it without quotes and
 * outer blanks. */
static char *next_cell(char **rest)
{
    char *cell = *rest, *end;
    if (*cell == '"' && (end = strchr(cell + 1, '"')) != NULL) {
        *end = '\0';
        cell++;
        end = strchr(end + 1, ',');
    } else {
        end = strchr(cell, ',');
    }
    *rest = end ? end + 1 : NULL;
    if (end) *end = '\0';
    cell += strspn(cell, " \t");
    size_t n = strlen(cell);
    while (n > 0 && (cell[n - 1] == ' ' || cell[n - 1] == '\t')) cell[--n] = '\0';
    return cell;
}

/* ---- reading row by row ---------------------------------------------------------------------- */

static bool read_number(const char *cell, double *out_number)
{
    char *end;
    *out_number = strtod(cell, &end);
    return end != cell && *end == '\0';
}

/* Reads the first line's cells; *out_has_words: one of them is neither empty nor a number. */
static void read_cells_as_names(csv_reader *r, char *line, bool *out_has_words)
{
    *out_has_words = false;
    for (char *rest = line; rest;) {
        double number;
        char *cell = next_cell(&rest);
        *out_has_words |= cell[0] != '\0' && !read_number(cell, &number);
        r->names = must_resize(r->names, r->n_columns + 1, sizeof *r->names);
        r->names[r->n_columns++] = must_copy(cell);
    }
}

static void say_header(const csv_reader *r)
{
    const bool is_more = r->n_columns > 1;
    output_note("the first line of '%s' is its header (%s%s): --header no takes it for data",
                r->path, printable(r->names[0]), is_more ? ", ..." : "");
}

/* Skips UTF-8's byte order mark, with which some programs begin a file. */
static bool skip_mark(csv_reader *r)
{
    static const unsigned char mark[] = {0xEF, 0xBB, 0xBF};
    for (size_t i = 0; i < sizeof mark; i++) {
        const int c = host_getc(r->stream);
        if (c == mark[i]) continue;
        if (c != EOF && ungetc(c, r->stream) == EOF) return false;
        return i == 0; /* a part of the mark is not text */
    }
    return true;
}

static int read_first_line(csv_reader *r, csv_header header, bool says_header)
{
    char *line;
    bool has_words;
    if (!skip_mark(r)) return fail_file("'%s' is not a table of numbers", r->path);
    const long start = ftell(r->stream);
    int code = next_line(r, &line);
    if (code != CODE_DONE) return code;
    if (!line) return fail_file("'%s' is empty", r->path);
    char *whole = must_copy(line);
    read_cells_as_names(r, line, &has_words);
    r->has_header = header == CSV_HEADER_YES || (header == CSV_HEADER_AUTO && has_words);
    if (r->has_header) {
        free(whole);
        r->data_offset = ftell(r->stream);
        r->first_line = r->line_number;
        if (header == CSV_HEADER_AUTO && says_header) say_header(r);
        return CODE_DONE;
    }
    for (size_t i = 0; i < r->n_columns; i++) {
        free(r->names[i]);
        r->names[i] = must_printf("%zu", i + 1);
    }
    r->first_row = whole;
    r->first_row_line = r->line_number;
    r->data_offset = start;
    return CODE_DONE;
}

int csv_header_option(const char *text, csv_header *out_header)
{
    *out_header = CSV_HEADER_AUTO;
    if (!text) return CODE_DONE;
    *out_header = strcmp(text, "yes") == 0 ? CSV_HEADER_YES : CSV_HEADER_NO;
    if (*out_header == CSV_HEADER_YES || strcmp(text, "no") == 0) return CODE_DONE;
    return fail_usage("--header takes yes or no, not '%s'", text);
}

int csv_check_names(const char *path, bool has_header)
{
    if (has_header) return CODE_DONE;
    (void)fail_usage("the columns of '%s' have no names that could be those of inputs: its first "
                     "line is data",
                     path);
    fail_hint("-i NAME=FILE gives all columns to one input; --header yes takes the line for names");
    return CODE_USAGE;
}

int csv_open(const char *path, csv_header header, bool says_header, csv_reader *out_reader)
{
    *out_reader = (csv_reader){.path = path};
    out_reader->stream = path_is_folder(path) ? NULL : host_open(path, "rb");
    if (!out_reader->stream) {
        return fail_file("'%s' cannot be read: %s", path,
                         path_is_folder(path) ? "it is a folder" : strerror(errno));
    }
    int code = read_first_line(out_reader, header, says_header);
    if (code != CODE_DONE) csv_close(out_reader);
    return code;
}

void csv_close(csv_reader *r)
{
    if (r->stream) (void)fclose(r->stream);
    for (size_t i = 0; i < r->n_columns; i++) free(r->names[i]);
    free(r->names);
    free(r->line);
    free(r->first_row);
    free(r->marks);
    *r = (csv_reader){0};
}

static int rewind_rows(csv_reader *r)
{
    if (r->data_offset < 0 || fseek(r->stream, r->data_offset, SEEK_SET) != 0) return unreadable(r);
    free(r->first_row);
    r->first_row = NULL;
    r->line_number = r->first_line;
    r->next_row = 0;
    return CODE_DONE;
}

/* Marks the start of row `row`, if it is one that is marked. Where there are too many marks, every
 * other one is dropped. */
static void add_mark(csv_reader *r, int64_t row, uint64_t offset, size_t line_number)
{
    if (row % r->mark_stride != 0) return;
    if (r->n_marks == CSV_MAX_MARKS) {
        for (size_t i = 0; i < CSV_MAX_MARKS / 2; i++) r->marks[i] = r->marks[2 * i];
        r->n_marks = CSV_MAX_MARKS / 2;
        r->mark_stride *= 2; /* of which CSV_MAX_MARKS is a multiple, so that `row` is marked */
    }
    if (r->n_marks == 0 || (r->n_marks & (r->n_marks - 1)) == 0)
        r->marks = must_resize(r->marks, r->n_marks > 0 ? 2 * r->n_marks : 1, sizeof *r->marks);
    r->marks[r->n_marks++] = (csv_mark){offset, line_number};
}

int csv_count(csv_reader *r, int64_t *out_n_rows)
{
    enum { BLOCK = 1 << 16 };
    char *block = must_alloc(BLOCK, 1);
    int64_t n_rows = 0;
    bool has_cells = false;
    size_t n, line_number = r->first_line;
    int code = rewind_rows(r);
    uint64_t offset = (uint64_t)r->data_offset, line_offset = offset;
    r->n_marks = 0;
    r->mark_stride = 1;
    while (code == CODE_DONE && (n = fread(block, 1, BLOCK, r->stream)) > 0) {
        for (size_t i = 0; i < n; i++, offset++) {
            if (block[i] == '\n') {
                n_rows += has_cells;
                has_cells = false;
                line_number++;
                line_offset = offset + 1;
            } else if (!has_cells && block[i] != '\r') {
                has_cells = true;
                add_mark(r, n_rows, line_offset, line_number);
            }
        }
    }
    if (code == CODE_DONE && ferror(r->stream)) code = unreadable(r);
    free(block);
    *out_n_rows = n_rows + has_cells;
    return code == CODE_DONE ? rewind_rows(r) : code;
}

int csv_seek(csv_reader *r, int64_t row)
{
    char *line = NULL;
    int code = CODE_DONE;
    const size_t wanted = r->n_marks > 0 ? (size_t)(row / r->mark_stride) : 0;
    const size_t at = wanted < r->n_marks ? wanted : r->n_marks - 1;
    const int64_t marked_row = r->n_marks > 0 ? (int64_t)at * r->mark_stride : 0;
    if (r->n_marks == 0 && row < r->next_row) {
        code = rewind_rows(r);
    } else if (r->n_marks > 0 && (row < r->next_row || r->next_row < marked_row)) {
        code = rewind_rows(r);
        if (code == CODE_DONE && host_seek(r->stream, r->marks[at].offset) != 0)
            code = unreadable(r);
        r->line_number = r->marks[at].line_number;
        r->next_row = marked_row;
    }
    for (; code == CODE_DONE && r->next_row < row; r->next_row++) {
        code = next_line(r, &line);
        if (!line) break;
    }
    return code;
}

static int read_cells(const csv_reader *r, char *line, double *row)
{
    char *rest = line;
    for (size_t i = 0; i < r->n_columns; i++) {
        if (!rest) {
            return fail_file("'%s', line %zu: %zu cells, the first line has %zu", r->path,
                             r->line_number, i, r->n_columns);
        }
        char *cell = next_cell(&rest);
        if (!read_number(cell, &row[i])) {
            return fail_file("'%s', line %zu, column '%s': '%s' is not a number", r->path,
                             r->line_number, printable(r->names[i]), printable(cell));
        }
    }
    if (!rest) return CODE_DONE;
    return fail_file("'%s', line %zu: more cells than the first line has", r->path, r->line_number);
}

int csv_next(csv_reader *r, double *row, bool *out_is_row)
{
    char *line;
    int code = next_line(r, &line);
    *out_is_row = code == CODE_DONE && line;
    if (!*out_is_row) return code;
    r->next_row++;
    return read_cells(r, line, row);
}

/* ---- whole tables ---------------------------------------------------------------------------- */

static int read_rows(csv_reader *r, csv_table *table)
{
    size_t capacity = 0;
    bool is_row = true;
    int code = CODE_DONE;
    while (code == CODE_DONE && is_row) {
        if (table->n_rows == capacity) {
            capacity = capacity * 2 + 64;
            table->numbers =
                must_resize(table->numbers, capacity * table->n_columns, sizeof *table->numbers);
        }
        code = csv_next(r, table->numbers + table->n_rows * table->n_columns, &is_row);
        table->n_rows += is_row;
    }
    return code;
}

int csv_load(const char *path, csv_header header, csv_table *out_table)
{
    csv_reader reader;
    *out_table = (csv_table){0};
    int code = csv_open(path, header, true, &reader);
    if (code != CODE_DONE) return code;
    *out_table = (csv_table){
        .names = reader.names, .n_columns = reader.n_columns, .has_header = reader.has_header};
    code = read_rows(&reader, out_table);
    reader.names = NULL; /* now owned by the table */
    reader.n_columns = 0;
    csv_close(&reader);
    if (code != CODE_DONE) csv_free(out_table);
    return code;
}

void csv_free(csv_table *table)
{
    for (size_t i = 0; i < table->n_columns; i++) free(table->names[i]);
    free(table->names);
    free(table->numbers);
    *table = (csv_table){0};
}

void csv_shape(int64_t n_rows, size_t n, const clg_port *port, size_t *out_rank,
               int64_t out_dims[CLG_MAX_RANK])
{
    int64_t product = 1;
    for (int d = 1; d < port->rank && product > 0; d++) {
        product = port->dims[d] > 0 && port->dims[d] <= INT32_MAX && product <= INT32_MAX
                      ? product * port->dims[d]
                      : -1;
    }
    out_dims[0] = n_rows;
    out_dims[1] = (int64_t)n;
    *out_rank = port->rank == 1 && n == 1 ? 1 : 2;
    if (port->rank > 2 && product == (int64_t)n) {
        *out_rank = (size_t)port->rank;
        for (int d = 1; d < port->rank; d++) out_dims[d] = port->dims[d];
    }
}

int csv_value(const csv_table *table, size_t first, size_t n, const clg_port *port,
              const char *path, clg_value **out_value)
{
    int64_t dims[CLG_MAX_RANK];
    size_t rank;
    *out_value = NULL;
    csv_shape((int64_t)table->n_rows, n, port, &rank, dims);
    clg_status status = clg_value_create(CLG_FLOAT64, rank, dims, out_value);
    if (status != CLG_OK) return fail_status(status, STAGE_READ, "'%s'", path);
    double *to = clg_value_data(*out_value);
    for (size_t row = 0; row < table->n_rows; row++) {
        for (size_t i = 0; i < n; i++) *to++ = table->numbers[row * table->n_columns + first + i];
    }
    return CODE_DONE;
}
