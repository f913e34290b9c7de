/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests how rows are divided among devices: the sum, and the time of the slowest device against the
 * least one, which an exhaustive search finds.
 */
#include "support/unit.h"

#include "session/multi/split.h"

static int64_t sum_of(const int64_t *rows, size_t n)
{
    int64_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        assert_true(rows[i] >= 0);
        sum += rows[i];
    }
    return sum;
}

/* Returns the least time of all ways to divide n_rows among two devices. */
static double best_of_two(int64_t n_rows, const double *speeds)
{
    double best = -1;
    for (int64_t first = 0; first <= n_rows; first++) {
        const int64_t rows[2] = {first, n_rows - first};
        const double seconds = split_seconds(rows, speeds, 2);
        if (best < 0 || seconds < best) best = seconds;
    }
    return best;
}

TEST(split__is_near_the_best_for_two_devices)
{
    static const double speeds[][2] = {{1, 1}, {3, 1}, {1, 3}, {100, 1}, {2.5, 1.9}, {1e9, 1e3}};
    for (size_t k = 0; k < sizeof speeds / sizeof *speeds; k++) {
        for (int64_t n = 0; n <= 40; n++) {
            int64_t rows[2];
            split_rows(n, speeds[k], 2, rows);
            assert_int_equal(sum_of(rows, 2), n);
            assert_true(split_seconds(rows, speeds[k], 2) <=
                        best_of_two(n, speeds[k]) * (1 + 1e-12));
        }
    }
}

TEST(split__of_many_devices_and_rows)
{
    const double speeds[5] = {1, 2, 0, 4, 0.5};
    for (int64_t n = 0; n < 3000; n = n * 3 + 1) {
        int64_t rows[5];
        split_rows(n, speeds, 5, rows);
        assert_int_equal(sum_of(rows, 5), n);
        assert_int_equal(rows[2], 0); /* lost */
        /* no device has more than its share and a row */
        for (size_t i = 0; i < 5; i++)
            assert_true((double)rows[i] <= (double)n * speeds[i] / 7.5 + 1);
    }
}

TEST(split__is_even_where_no_speed_is_known)
{
    const double none[3] = {0, 0, 0};
    int64_t rows[3];
    split_rows(8, none, 3, rows);
    assert_int_equal(sum_of(rows, 3), 8);
    for (size_t i = 0; i < 3; i++) assert_true(rows[i] >= 2 && rows[i] <= 3);
    assert_true(split_seconds(rows, none, 3) == 0);
}

TEST(split__of_enormous_numbers)
{
    const double speeds[3] = {1.0 / 3, 1.0 / 3, 1e-300};
    int64_t rows[3];
    split_rows(INT64_MAX / 4, speeds, 3, rows);
    assert_true(sum_of(rows, 3) == INT64_MAX / 4);
}
