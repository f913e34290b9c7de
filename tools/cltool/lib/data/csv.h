/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads tables of numbers from .csv files, row by row or as a whole. The first line that is not
 * empty names the columns unless each of its cells is a number.
 */
#ifndef CLTOOL_CSV_H
#define CLTOOL_CSV_H

#include "failure.h"

#include <stdio.h>

typedef enum csv_header {
    CSV_HEADER_AUTO, /* as above; a header is reported by a note */
    CSV_HEADER_YES,  /* the first line has names, also where they are numbers */
    CSV_HEADER_NO,   /* the first line is data */
} csv_header;
/* Parses --header; NULL is CSV_HEADER_AUTO. */
int csv_header_option(const char *text, csv_header *out_header);

/* Where a row starts. */
typedef struct csv_mark {
    uint64_t offset;    /* in bytes */
    size_t line_number; /* of the line before */
} csv_mark;
/* The most marks that are kept, 1 MB: rows of larger files are found by reading from a mark on. */
#define CSV_MAX_MARKS ((size_t)1 << 16)

/* An open file; only one line of it is in memory. */
typedef struct csv_reader {
    const char *path; /* borrowed */
    FILE *stream;
    char *line;
    size_t capacity, line_number; /* bytes allocated for `line`; its number in the file, from 1 */
    char **names;                 /* "1", "2" and so on without a header */
    size_t n_columns;
    bool has_header;
    char *first_row;       /* the first line where it is data and was not taken yet, or NULL */
    size_t first_row_line; /* its number */
    int64_t next_row;      /* index of the row that csv_next reads, from 0 */
    long data_offset;      /* file offset of the first row */
    size_t first_line;     /* number of the line before the first row */
    csv_mark *marks;       /* of each row whose index is a multiple of mark_stride, by csv_count */
    size_t n_marks;
    int64_t mark_stride;
} csv_reader; /* all zeros is valid and closed */
/* says_header: with CSV_HEADER_AUTO, a header is reported. */
int csv_open(const char *path, csv_header header, bool says_header, csv_reader *out_reader);
void csv_close(csv_reader *reader);
/* Counts the rows without parsing them, and marks where they start, for csv_seek; then moves to the
 * first row. */
int csv_count(csv_reader *reader, int64_t *out_n_rows);
/* Moves to a row; to the end of the file when it has fewer rows. */
int csv_seek(csv_reader *reader, int64_t row);
/* Reads the next row into row[0..n_columns); at the end of the file, *out_is_row is false. */
int csv_next(csv_reader *reader, double *row, bool *out_is_row);

/* A whole file in memory. */
typedef struct csv_table {
    char **names;
    size_t n_columns, n_rows;
    bool has_header;
    double *numbers; /* [n_rows, n_columns] */
} csv_table;
int csv_load(const char *path, csv_header header, csv_table *out_table);
void csv_free(csv_table *table);
/* Fails where columns are to be found by name, and have none. */
int csv_check_names(const char *path, bool has_header);
/* Makes a float64 tensor for the input from n columns, starting at column `first`; csv_shape gives
 * its shape. */
int csv_value(const csv_table *table, size_t first, size_t n, const clg_port *port,
              const char *path, clg_value **out_value);
/* Computes the shape that n columns have for an input: [rows], [rows,n], or [rows, dimensions of
 * the input after the first]. */
void csv_shape(int64_t n_rows, size_t n, const clg_port *port, size_t *out_rank,
               int64_t out_dims[CLG_MAX_RANK]);

#endif
