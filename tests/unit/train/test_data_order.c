/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests the order of rows: a permutation for every number of rows, other ones for other seeds and
 * epochs, and rows that are anywhere equally often.
 */
#include "support/unit.h"

#include "train/data_order.h"

#include <math.h>
#include <string.h>

enum { MAX_ROWS = 300 };

TEST(data_order__each_row_has_one_position)
{
    for (uint64_t n = 1; n <= MAX_ROWS; n++) {
        bool seen[MAX_ROWS] = {false};
        for (uint64_t i = 0; i < n; i++) {
            const uint64_t row = data_order_row(7, n, n, i);
            assert_true(row < n && !seen[row]);
            seen[row] = true;
        }
    }
}

/* Two positions of many rows are different rows, at any size. */
TEST(data_order__of_many_rows)
{
    static const uint64_t sizes[] = {65536, 65537, UINT64_C(1) << 40, UINT64_MAX / 2, UINT64_MAX};
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
        for (uint64_t i = 0; i < 64; i++) {
            const uint64_t a = data_order_row(1, 2, sizes[k], i),
                           b = data_order_row(1, 2, sizes[k], sizes[k] - 1 - i);
            assert_true(a < sizes[k] && b < sizes[k] && a != b);
        }
}

/* Returns how many of n positions have the same row in two orders. */
static uint64_t n_equal(uint64_t n, uint64_t seed, uint64_t epoch, uint64_t seed2, uint64_t epoch2)
{
    uint64_t equal = 0;
    for (uint64_t i = 0; i < n; i++)
        equal += data_order_row(seed, epoch, n, i) == data_order_row(seed2, epoch2, n, i);
    return equal;
}

TEST(data_order__differs_by_seed_and_epoch)
{
    const uint64_t n = 1000;
    assert_int_equal(n_equal(n, 5, 3, 5, 3), n);
    assert_true(n_equal(n, 5, 3, 5, 4) < 15); /* one on average */
    assert_true(n_equal(n, 5, 3, 6, 3) < 15);
    assert_true(n_equal(n, 5, 3, 3, 5) < 15);
}

/* Of 8 rows in 4,000 epochs, each is at each position about 500 times: within 6 deviations. */
TEST(data_order__is_even)
{
    int counts[8][8] = {{0}};
    for (uint64_t epoch = 0; epoch < 4000; epoch++)
        for (uint64_t i = 0; i < 8; i++) counts[i][data_order_row(11, epoch, 8, i)]++;
    for (int i = 0; i < 8; i++)
        for (int row = 0; row < 8; row++)
            assert_true(fabs((double)(counts[i][row] - 500)) < 6 * sqrt(500 * 7 / 8.0));
}
