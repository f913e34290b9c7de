/* SPDX-License-Identifier: Apache-2.0
 *
 * The trend of measurements that are mostly noise.
 */
#ifndef CLG_TESTS_TREND_H
#define CLG_TESTS_TREND_H

#include <stddef.h>

#define TREND_MAX 256

/* Returns the slope of y over its index by Theil and Sen (Sen 1968): the median of the slopes of
 * all pairs. Up to 29 % of the measurements may be anything without moving it far. 0 for fewer than
 * two; n is at most TREND_MAX. */
double trend_slope(const double *y, size_t n);

#endif
