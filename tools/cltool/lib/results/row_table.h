/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of an output as a table: a line for each row, of CSV or JSON, with the row's image and
 * either its elements or its best classes.
 */
#ifndef CLTOOL_ROW_TABLE_H
#define CLTOOL_ROW_TABLE_H

#include "inputs.h"
#include "scores.h"

/* What the lines of all tables of a run have. */
typedef struct row_source {
    const input_set *inputs;  /* borrowed: names of images, and why rows failed */
    int64_t first_row;        /* the row of the datasets that is the first of the tables; lines have
                                 its number */
    size_t top;               /* classes of a line; 0: all elements */
    const label_list *labels; /* borrowed; may be empty */
} row_source;

typedef struct row_table row_table;

/* Returns whether a path is that of a table: it ends in .csv or .jsonl. */
bool row_table_is_path(const char *path);
/* Starts a table, in PATH.part or, unless it is NULL, in `stream`, which stays open. The path's
 * ending decides the format in both cases. */
int row_table_open(const char *path, FILE *stream, const row_source *source, row_table **out_table);
/* Appends rows of an output, whose first dimension counts them. */
int row_table_append(row_table *t, const char *output, const clg_value *rows);
/* Completes the file and gives it its name. */
int row_table_commit(row_table *t);
/* Removes the file unless it was completed; accepts NULL. */
void row_table_free(row_table *t);

/* Writes rows of an output as a table of JSON to a stream: all of it. */
int row_table_print(FILE *stream, const row_source *source, const char *output,
                    const clg_value *rows);

/* Returns the path of the image that a row of the datasets is; NULL: it is none. */
const char *row_image(const input_set *inputs, int64_t row);

#endif
