/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads tables of numbers from .csv files with a line of column names, row by row or whole.
 */
#ifndef CLTOOL_CSV_H
#define CLTOOL_CSV_H

#include "failure.h"

#include <stdio.h>

/* A file being read; one line of it is in memory. */
typedef struct csv_reader {
    const char *path; /* borrowed */
    FILE *stream;
    char *line;
    size_t capacity, line_number;
    char **names;
    size_t n_columns;
    int64_t next_row;
    long data_offset; /* where the first row begins */
    size_t first_line;
} csv_reader; /* all zeros is valid and closed */
int csv_open(const char *path, csv_reader *out_reader);
void csv_close(csv_reader *reader);
/* Counts the lines of numbers without parsing them, then moves to the first of them. */
int csv_count(csv_reader *reader, int64_t *out_n_rows);
/* Moves to a row; to the end, when there are fewer. */
int csv_seek(csv_reader *reader, int64_t row);
/* Reads the next row, n_columns numbers; false in *out_is_row at the end. */
int csv_next(csv_reader *reader, double *row, bool *out_is_row);

/* The content of a whole file. */
typedef struct csv_table {
    char **names;
    size_t n_columns, n_rows;
    double *numbers; /* [n_rows, n_columns] */
} csv_table;
int csv_load(const char *path, csv_table *out_table);
void csv_free(csv_table *table);
/* Makes a float64 tensor of columns first..first+n for the input, with the shape of csv_shape. */
int csv_value(const csv_table *table, size_t first, size_t n, const clg_port *port,
              const char *path, clg_value **out_value);
/* Computes the shape of n columns for an input: [rows], [rows,n] or [rows, the input's other
 * dimensions]. */
void csv_shape(int64_t n_rows, size_t n, const clg_port *port, size_t *out_rank,
               int64_t out_dims[CLG_MAX_RANK]);

#endif
