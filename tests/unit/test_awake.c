/* SPDX-License-Identifier: Apache-2.0 */
#include "base/awake.h"
#include "base/threads.h"
#include "support/unit.h"

#include <time.h>

static double processor_seconds(void) { return (double)clock() / CLOCKS_PER_SEC; }

static void pause_ms(long ms)
{
    (void)nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

static bool all_asleep(void)
{
    size_t asleep, n;
    awake_count(&asleep, &n);
    return asleep == n;
}

/* Other programs may keep threads of idle priority from running for a long time. */
static bool comes_true(bool (*what)(void))
{
    for (int i = 0; i < 3000; i++) {
        if (what()) return true;
        pause_ms(10);
    }
    return false;
}

static double spent_before;
static bool spends_time(void) { return processor_seconds() > spent_before + 0.02; }

static void spins_while_work_is_under_way(void **state)
{
    (void)state;
    const size_t n_processors = awake_processors();
    if (n_processors == 0) skip();
    size_t asleep, n;
    assert_false(awake_open(0));
    assert_false(awake_open(n_processors + 1));
    assert_true(awake_open(n_processors));
    awake_count(&asleep, &n);
    assert_int_equal(n, n_processors);
    assert_true(comes_true(all_asleep));

    spent_before = processor_seconds();
    awake_begin();
    awake_begin();
    awake_end();
    assert_true(comes_true(spends_time)); /* this thread sleeps all the while */
    assert_false(all_asleep());
    awake_end();
    assert_true(comes_true(all_asleep));
    const double spent = processor_seconds();
    pause_ms(100);
    assert_true(processor_seconds() < spent + 0.05);
    awake_close();
    awake_count(&asleep, &n);
    assert_int_equal(n, 0);
}

static void *open_and_close(void *argument)
{
    (void)argument;
    for (int i = 0; i < 50; i++) {
        if (!awake_open(awake_processors())) continue;
        awake_begin();
        awake_end();
        awake_close();
    }
    return NULL;
}

static void threads_open_and_close_as_they_like(void **state)
{
    (void)state;
    thread others[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(thread_start(&others[i], open_and_close, NULL), CLG_OK);
    for (int i = 0; i < 4; i++) thread_join(others[i]);
    size_t asleep, n;
    awake_count(&asleep, &n);
    assert_int_equal(n, 0);
    assert_int_equal(asleep, 0);
}

static void a_second_user_keeps_the_threads(void **state)
{
    (void)state;
    const size_t n_processors = awake_processors();
    if (n_processors == 0) skip();
    size_t asleep, n;
    assert_true(awake_open(n_processors));
    assert_true(awake_open(n_processors));
    awake_close();
    awake_count(&asleep, &n);
    assert_int_equal(n, n_processors);
    awake_close();
    awake_count(&asleep, &n);
    assert_int_equal(n, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spins_while_work_is_under_way),
        cmocka_unit_test(threads_open_and_close_as_they_like),
        cmocka_unit_test(a_second_user_keeps_the_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
