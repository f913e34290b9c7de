/* SPDX-License-Identifier: Apache-2.0
 *
 * Statistics of tensors, digests of values, and statistics of measured times.
 */
#ifndef CLTOOL_STATS_H
#define CLTOOL_STATS_H

#include "digest.h"

#include <clgraph/inspect.h>

/* Statistics of a host tensor. min, max and mean cover the finite elements, and are NaN when there
 * are none. */
typedef struct value_stats {
    double min, max, mean;
    int64_t n_nan, n_inf;
} value_stats;
value_stats stats_of(const clg_value *value);
/* Adds a value's dtype, shape and bytes to the digest, then those of its items or map values. The
 * text of strings is not included. */
void digest_value(digest *d, const clg_value *value);
bool dtype_is_numeric(clg_dtype dtype);
bool dtype_is_floating(clg_dtype dtype);
bool dtype_is_integral(clg_dtype dtype); /* not bool */

/* A dynamic array of times in milliseconds. */
typedef struct times {
    double *ms;
    size_t count, capacity;
} times;
/* Statistics of a list of times, in milliseconds; p90 and p99 are percentiles. */
typedef struct time_stats {
    double min, median, p90, p99, mean;
} time_stats;
void times_add(times *t, double ms);
time_stats times_stats(times *t); /* sorts the times */
void times_free(times *t);

#endif
