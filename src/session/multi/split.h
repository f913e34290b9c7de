/* SPDX-License-Identifier: Apache-2.0
 *
 * Divides rows among devices in proportion to their speeds. Pure arithmetic.
 */
#ifndef CLG_SESSION_SPLIT_H
#define CLG_SESSION_SPLIT_H

#include <stddef.h>
#include <stdint.h>

/* Sets out_rows[i], which add up to n_rows, so that the time of the slowest of the n devices,
 * rows / speed, is near its minimum. speeds: rows a second, above 0; 0: a device that gets none,
 * unless all are 0: then the rows are divided evenly. n > 0, n_rows >= 0. */
void split_rows(int64_t n_rows, const double *speeds, size_t n, int64_t *out_rows);
/* Returns the time of the slowest device in seconds; devices without rows do not count. */
double split_seconds(const int64_t *rows, const double *speeds, size_t n);

#endif
