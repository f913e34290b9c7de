/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of the datasets of cltool predict. The batch goes on without those whose inputs could not be
 * loaded: their results are NaN, or 0 where a dtype has none.
 */
#ifndef CLTOOL_PREDICT_ROWS_H
#define CLTOOL_PREDICT_ROWS_H

#include "dataset.h"

#include <clgraph/stream.h>

/* Checks that the model accepts the shape of the rows of each dataset. */
int rows_check_shapes(const input_set *inputs);
/* Replaces the results of rows that could not be loaded in a tensor, whose first row is row `first`
 * of the datasets. */
void rows_blank(const input_set *inputs, int64_t first, const clg_stream_tensor *t);
/* Returns why an input of a row of the datasets could not be loaded; NULL: all were. */
const char *row_problem(const input_set *inputs, int64_t row);
/* Returns how many of the rows first to first + n - 1 of the datasets could not be loaded. */
int64_t rows_count_failed(const input_set *inputs, int64_t first, int64_t n);
/* Returns [{"row", "message"}] for these rows of the datasets; "row" counts from `number`. */
json_t *rows_failed(const input_set *inputs, int64_t first, int64_t n, int64_t number);
/* Prints a warning for each of them. */
void rows_warn(const input_set *inputs, int64_t first, int64_t n, int64_t number);
/* Prints a line that counts the files of folders that are not images, and with names, if requested,
 * one for each. */
void rows_note_skipped(const input_set *inputs, bool with_names);
/* Returns [{"file", "message"}] for these files. */
json_t *rows_skipped(const input_set *inputs);
/* Returns CODE_DONE if none of n rows failed, else CODE_WORK, with a message unless they are listed
 * in the output. */
int rows_end(int64_t n_failed, int64_t n, bool is_listed);

#endif
