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
/* Returns [{"row", "message"}] for the rows first to first + n - 1 of the datasets; "row" counts
 * from `first`. */
json_t *rows_failed(const input_set *inputs, int64_t first, int64_t n);
/* Returns CODE_DONE if all rows were loaded, else CODE_WORK. Without is_listed, prints a warning
 * for each row and records how many there are. */
int rows_end(const input_set *inputs, int64_t first, int64_t n, bool is_listed);

#endif
