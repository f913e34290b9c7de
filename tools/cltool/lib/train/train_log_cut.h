/* SPDX-License-Identifier: Apache-2.0
 *
 * Prepares the file of --log for a training that goes on.
 */
#ifndef CLTOOL_TRAIN_LOG_CUT_H
#define CLTOOL_TRAIN_LOG_CUT_H

#include "failure.h"

/* Removes the lines of steps after `step`, and a last line that was not written whole, from a file
 * of --log: CSV, or lines of JSON. *out_size_bytes: what is left; 0 where there is no file. A line
 * that is not of a log is an error, with the number of the line. */
int train_log_cut(const char *path, bool is_csv, uint64_t step, uint64_t *out_size_bytes);

#endif
