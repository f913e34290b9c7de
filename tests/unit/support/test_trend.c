/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests the slope of noisy measurements.
 */
#include "support/unit.h"

#include "support/trend.h"

#include <math.h>

static void expect_slope(const double *y, size_t n, double slope)
{
    if (fabs(trend_slope(y, n) - slope) > 1e-9) fail_msg("%g", trend_slope(y, n));
}

TEST(trend__line)
{
    double y[7];
    for (int i = 0; i < 7; i++) y[i] = 3 - 0.5 * i;
    expect_slope(y, 7, -0.5);
    expect_slope(y, 2, -0.5);
}

TEST(trend__one_measurement_has_no_slope)
{
    expect_slope((double[]){5}, 1, 0);
    expect_slope(NULL, 0, 0);
}

/* One jump, wherever it is, is not a trend; nor are outliers. */
TEST(trend__outliers_do_not_count)
{
    for (size_t at = 0; at < 10; at++) {
        double y[10] = {0};
        y[at] = 1e9;
        expect_slope(y, 10, 0);
    }
    for (size_t at = 1; at < 3; at++) {
        double y[12] = {0};
        for (size_t i = at; i < 12; i++) y[i] = 1e9;
        expect_slope(y, 12, 0);
    }
}

TEST(trend__growth_below_noise_is_found)
{
    double y[TREND_MAX];
    for (int i = 0; i < TREND_MAX; i++) y[i] = i + 50 * (i * 7919 % 11 - 5);
    const double slope = trend_slope(y, TREND_MAX);
    if (fabs(slope - 1) > 0.2) fail_msg("%g", slope);
}
