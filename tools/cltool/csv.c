/* SPDX-License-Identifier: Apache-2.0
 *
 * Tables of numbers with a line of names: separated by commas, names may be quoted.
 */
#include "names.h"
#include "output.h"
#include "values.h"

#include <stdlib.h>
#include <string.h>

/* Takes one cell off a line: without quotes and outer blanks. */
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

/* The next line that is not empty; NULL at the end. */
static char *next_line(char **rest, size_t *line_number)
{
    char *line;
    while ((line = strsep(rest, "\n")) != NULL) {
        ++*line_number;
        size_t n = strlen(line);
        if (n > 0 && line[n - 1] == '\r') line[--n] = '\0';
        if (n > 0) return line;
    }
    return NULL;
}

static void read_names(char *line, csv_table *table)
{
    for (char *rest = line; rest;) {
        table->names = must_resize(table->names, table->n_columns + 1, sizeof *table->names);
        table->names[table->n_columns++] = must_copy(next_cell(&rest));
    }
}

static int read_row(const char *path, size_t line_number, char *line, csv_table *table, double *row)
{
    char *rest = line;
    for (size_t i = 0; i < table->n_columns; i++) {
        if (!rest) {
            return fail_file("'%s', line %zu: %zu cells, the first line has %zu names", path,
                             line_number, i, table->n_columns);
        }
        char *end, *cell = next_cell(&rest);
        row[i] = strtod(cell, &end);
        if (end == cell || *end) {
            return fail_file("'%s', line %zu, column '%s': '%s' is no number", path, line_number,
                             printable(table->names[i]), printable(cell));
        }
    }
    if (!rest) return CODE_DONE;
    return fail_file("'%s', line %zu: more cells than the first line has names", path, line_number);
}

static int read_table(const char *path, char *text, csv_table *table)
{
    size_t line_number = 0, capacity = 0;
    char *line = next_line(&text, &line_number);
    if (!line) return fail_file("'%s' is empty", path);
    read_names(line, table);
    while ((line = next_line(&text, &line_number)) != NULL) {
        if (table->n_rows == capacity) {
            capacity = capacity * 2 + 64;
            table->numbers =
                must_resize(table->numbers, capacity * table->n_columns, sizeof *table->numbers);
        }
        double *row = table->numbers + table->n_rows * table->n_columns;
        int code = read_row(path, line_number, line, table, row);
        if (code != CODE_DONE) return code;
        table->n_rows++;
    }
    return CODE_DONE;
}

int csv_load(const char *path, csv_table *out_table)
{
    char *text;
    *out_table = (csv_table){0};
    int code = file_read_text(path, &text);
    if (code == CODE_DONE) code = read_table(path, text, out_table);
    free(text);
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

/* The shape in which n columns of a table go into the input. */
static void shape_of_table(const csv_table *table, size_t n, const clg_port *port, size_t *out_rank,
                           int64_t out_dims[CLG_MAX_RANK])
{
    int64_t product = 1;
    for (int d = 1; d < port->rank && product > 0; d++) {
        product = port->dims[d] > 0 && port->dims[d] <= INT32_MAX && product <= INT32_MAX
                      ? product * port->dims[d]
                      : -1;
    }
    out_dims[0] = (int64_t)table->n_rows;
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
    shape_of_table(table, n, port, &rank, dims);
    clg_status status = clg_value_create(CLG_FLOAT64, rank, dims, out_value);
    if (status != CLG_OK) return fail_status(status, STAGE_READ, "'%s'", path);
    double *to = clg_value_data(*out_value);
    for (size_t row = 0; row < table->n_rows; row++) {
        for (size_t i = 0; i < n; i++) *to++ = table->numbers[row * table->n_columns + first + i];
    }
    return CODE_DONE;
}
