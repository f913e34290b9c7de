/* SPDX-License-Identifier: Apache-2.0
 *
 * Computes slopes of measurements. See trend.h.
 */
#include "support/trend.h"

#include <stdlib.h>

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double trend_slope(const double *y, size_t n)
{
    static double slopes[TREND_MAX * (TREND_MAX - 1) / 2];
    size_t n_slopes = 0;
    if (n > TREND_MAX) n = TREND_MAX;
    for (size_t j = 1; j < n; j++)
        for (size_t i = 0; i < j; i++) slopes[n_slopes++] = (y[j] - y[i]) / (double)(j - i);
    if (n_slopes == 0) return 0;
    qsort(slopes, n_slopes, sizeof *slopes, compare);
    return (slopes[(n_slopes - 1) / 2] + slopes[n_slopes / 2]) / 2;
}
