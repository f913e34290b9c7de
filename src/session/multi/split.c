/* SPDX-License-Identifier: Apache-2.0
 *
 * Gives each device the whole rows of its share, and each of the remaining rows to the device that
 * would be done with it first.
 */
#include "session/multi/split.h"

static double total_of(const double *speeds, size_t n)
{
    double total = 0;
    for (size_t i = 0; i < n; i++) total += speeds[i];
    return total;
}

void split_rows(int64_t n_rows, const double *speeds, size_t n, int64_t *out_rows)
{
    const double total = total_of(speeds, n);
    int64_t left = n_rows;
    for (size_t i = 0; i < n; i++) {
        const double share = total > 0 ? speeds[i] / total : 1.0 / (double)n;
        out_rows[i] = (int64_t)((double)n_rows * share);
        if (out_rows[i] > left) out_rows[i] = left; /* the sum of the shares may round up */
        left -= out_rows[i];
    }
    for (; left > 0; left--) { /* fewer than n rows, and as many as rounding is off by */
        size_t best = n;
        double least = 0;
        for (size_t i = 0; i < n; i++) {
            if (total > 0 && !(speeds[i] > 0)) continue;
            const double seconds = (double)(out_rows[i] + 1) / (total > 0 ? speeds[i] : 1.0);
            if (best < n && seconds >= least) continue;
            best = i;
            least = seconds;
        }
        out_rows[best < n ? best : 0]++;
    }
}

double split_seconds(const int64_t *rows, const double *speeds, size_t n)
{
    double most = 0;
    for (size_t i = 0; i < n; i++)
        if (rows[i] > 0 && speeds[i] > 0 && (double)rows[i] / speeds[i] > most)
            most = (double)rows[i] / speeds[i];
    return most;
}
