/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests the comparison of runs with the kernel that keeps threads awake and without (spin_trial.c):
 * the faster kind is used for the rest of a period, other runs now and then show what is faster
 * now, and a single slow run decides nothing.
 */
#include "support/unit.h"

#include "ocl/queue/queue.h"

static uint64_t now_ns;

/* Runs n times, in `without_us` or `with_us`; returns how many runs had the kernel. */
static uint32_t run(spin_trial *t, uint32_t n, uint64_t without_us, uint64_t with_us)
{
    uint32_t n_with = 0;
    for (uint32_t i = 0; i < n; i++) {
        const bool has_kernel = spin_trial_begin(t, now_ns);
        n_with += has_kernel;
        now_ns += (has_kernel ? with_us : without_us) * 1000;
        spin_trial_end(t, now_ns);
        now_ns += 50000;
    }
    return n_with;
}

TEST(trial__uses_what_is_faster)
{
    spin_trial t = {0};
    assert_int_equal(run(&t, 8, 1000, 900), 4);
    assert_int_equal(run(&t, 56, 1000, 900), 56);
    assert_int_equal(run(&t, 8, 1000, 2000), 4);
    assert_int_equal(run(&t, 56, 1000, 2000), 0);
    assert_int_equal(run(&t, 8, 1000, 995), 4); /* not worth a processor */
    assert_int_equal(run(&t, 56, 1000, 995), 0);
}

TEST(trial__is_seldom_where_nothing_changes)
{
    const uint32_t n = 100000;
    spin_trial t = {0};
    assert_true(run(&t, n, 1000, 2000) < n / 200);
    spin_trial other = {0};
    assert_true(run(&other, n, 1000, 900) > n - n / 200);
}

TEST(trial__one_slow_run_decides_nothing)
{
    spin_trial t = {0};
    assert_int_equal(run(&t, 1, 1000, 900), 0);
    assert_int_equal(run(&t, 1, 1000, 90000), 1);
    assert_int_equal(run(&t, 6, 1000, 900), 3);
    assert_int_equal(run(&t, 56, 1000, 900), 56);
}

/* A run has several parts, of which each asks; runs of another kind have none. */
TEST(trial__takes_a_run_as_one)
{
    spin_trial t = {0};
    for (int i = 0; i < 8; i++) {
        const bool has_kernel = spin_trial_begin(&t, now_ns);
        now_ns += 1000;
        assert_true(spin_trial_begin(&t, now_ns) == has_kernel);
        assert_true(has_kernel == (i % 2 == 1));
        now_ns += has_kernel ? 5000 : 9000;
        spin_trial_end(&t, now_ns);
        spin_trial_end(&t, now_ns + 1000000);
    }
    assert_true(t.is_faster);
    assert_int_equal(t.time_ns[0][3], 10000);
}

int main(void) { return test_run_all(); }
