/* SPDX-License-Identifier: Apache-2.0
 *
 * Output of cltool. Results go to standard output, as text or as one JSON document; everything else
 * goes to standard error. Colours and progress are shown on terminals only.
 */
#ifndef CLTOOL_OUTPUT_H
#define CLTOOL_OUTPUT_H

#include "failure.h"

#include <jansson.h>
#include <stdio.h>

typedef enum mark { MARK_NONE, MARK_STRONG, MARK_GOOD, MARK_BAD, MARK_DIM } mark;

/* Initialises output; call once, before anything is printed. quiet: no notes, no progress. */
void output_setup(bool quiet);
/* Prints text in a colour, if the stream is a terminal and NO_COLOR is not set. */
void output_mark(FILE *stream, mark how, const char *text);

/* Prints "cltool: <text>" on standard error, unless quiet. */
void output_note(const char *format, ...) TOOL_PRINTF(1, 2);
/* As output_note, even when quiet. */
void output_warning(const char *format, ...) TOOL_PRINTF(1, 2);

/* Shows progress as one line that is overwritten, on terminals only and not too often. total 0:
 * unknown. */
void output_progress(const char *what, size_t done, size_t total);
/* Returns whether progress would be shown now, for a text that costs something to make. */
bool output_progress_due(void);
/* Shows a text as output_progress does, whenever it is called. */
void output_progress_text(const char *text);
/* Removes the line; work goes on, or ends. */
void output_progress_hide(void);
void output_progress_clear(void);
/* The callback for clg_session_options.progress and clg_session_prepare: shows progress. After
 * Ctrl-C, returns false, which cancels the work. */
bool output_progress_callback(void *user, const char *what, size_t done, size_t total);

/* Returns text as a JSON string; invalid UTF-8 is replaced by U+FFFD. */
json_t *output_json_text(const char *text);
/* Returns a JSON number, or null for NaN and infinities. */
json_t *output_json_real(double number);
json_t *output_json_dims(size_t rank, const int64_t *dims);
/* Prints the document to standard output and releases it. */
int output_json(json_t *document);
/* Flushes standard output before the program ends; a full disk or a closed pipe is an error. */
int output_finish(void);

/* Returns the length in bytes of the UTF-8 sequence at s; 0 when it is invalid. */
size_t utf8_bytes(const char *s);
/* Returns an untrusted name without control characters, shortened to fit, in one of the thread's
 * eight buffers, which are used in turn. */
#define PRINTABLE_BYTES 200
const char *printable(const char *name);

/* A table: cells are added row by row; a column whose header starts with '>' is right-aligned. */
typedef struct table {
    size_t n_columns, n_cells, capacity;
    char **cells; /* the header first */
    mark *marks;
} table;
void table_begin(table *t, size_t n_columns, const char *const *headers);
void table_cell(table *t, mark how, const char *format, ...) TOOL_PRINTF(3, 4);
/* Prints the table with an indentation of `indent` blanks, and empties it. */
void table_print(table *t, FILE *stream, size_t indent);
void table_free(table *t);

/* Format numbers; the results are in the buffers of `printable`, except kind names. */
const char *bytes_text(double bytes);   /* "1.2 GB", powers of 1000 */
const char *flops_text(double flops);   /* "1.2 GFLOP" */
const char *rate_text(double a_second); /* four significant digits, no exponent */
const char *number_text(double number); /* six significant digits */
const char *clock_text(double seconds); /* "1:05"; from an hour on, "2:00:05" */
const char *value_kind_name(clg_value_kind kind);
const char *dims_text(size_t rank, const int64_t *dims); /* "[1,3,224,224]" */

#endif
