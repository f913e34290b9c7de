/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests the clocks of scopes with limits, by a clock that the test sets: work is cancelled when it
 * has taken longer than the limit of its phase, and the scope's end says so.
 */
#include "support/unit.h"

#include "base/cancel.h"

#include <string.h>

#define MS UINT64_C(1000000)

static atomic_uint_least64_t now_ns; /* what the clock reads */

static uint64_t read_now(void) { return atomic_load(&now_ns); }

static void pass_ms(uint64_t ms) { atomic_fetch_add(&now_ns, ms * MS); }

static int set_clock(void **state)
{
    (void)state;
    atomic_store(&now_ns, UINT64_MAX - 50 * MS); /* differences are right across the overflow */
    limits_set_clock(read_now);
    return 0;
}

static int reset_clock(void **state)
{
    (void)state;
    limits_set_clock(NULL);
    return 0;
}

TEST_GROUP(set_clock, reset_clock)

static const clg_limits limits = {
    .struct_size = sizeof(clg_limits), .max_compile_ms = 100, .max_run_ms = 10};

TEST(limit_clock__ends_work_that_takes_longer)
{
    limits_scope s;
    limits_enter(&s, &limits, NULL, LIMIT_COMPILE);
    pass_ms(100);
    assert_ok(cancel_check("planning"));
    atomic_fetch_add(&now_ns, 1);
    assert_error(cancel_check("planning"), CLG_ERROR_CANCELLED, "planning was cancelled");
    assert_error(
        limits_leave(&s, CLG_ERROR_CANCELLED), CLG_ERROR_LIMIT,
        "the preparation took longer than the 100 ms of max_compile_ms: planning was cancelled");
    assert_string_equal(error_hint_text(), "clg_limits.max_compile_ms sets another limit");
    assert_ok(cancel_check("planning")); /* the scope is left */
}

TEST(limit_clock__each_phase_has_its_limit)
{
    limits_scope s;
    limits_enter(&s, &limits, NULL, LIMIT_RUN);
    for (int i = 0; i < 3; i++) {
        pass_ms(3);
        assert_int_equal(limits_set_phase(LIMIT_COMPILE), LIMIT_RUN);
        pass_ms(33);
        assert_ok(cancel_check("planning"));
        assert_int_equal(limits_set_phase(LIMIT_COMPILE), LIMIT_COMPILE);
        assert_int_equal(limits_set_phase(LIMIT_RUN), LIMIT_COMPILE);
        assert_ok(cancel_check("the run"));
    }
    pass_ms(2);
    assert_error(cancel_check("the run"), CLG_ERROR_CANCELLED, "the run was cancelled");
    (void)limits_set_phase(LIMIT_COMPILE); /* unwinding may change the phase */
    assert_error(limits_leave(&s, CLG_ERROR_CANCELLED), CLG_ERROR_LIMIT,
                 "the run took longer than the 10 ms of max_run_ms");
}

TEST(limit_clock__without_limits_no_time_is_too_long)
{
    const clg_limits huge = {.struct_size = sizeof huge, .max_compile_ms = UINT64_MAX};
    const clg_limits *const cases[] = {NULL, &huge};
    for (size_t i = 0; i < 2; i++) {
        limits_scope s;
        limits_enter(&s, cases[i], NULL, LIMIT_COMPILE);
        atomic_fetch_add(&now_ns, INT64_MAX);
        assert_ok(cancel_check("planning"));
        assert_int_equal(limits_leave(&s, CLG_ERROR_CANCELLED), CLG_ERROR_CANCELLED);
    }
}

TEST(limit_clock__other_ends_keep_their_status)
{
    limits_scope s;
    clg_cancel token;
    cancel_init(&token);
    limits_enter(&s, &limits, NULL, LIMIT_COMPILE);
    clg_status status;
    cancel_trigger(&token);
    CANCEL_WITHIN(status, &token, NULL, cancel_check("loading"));
    assert_int_equal(limits_leave(&s, status), CLG_ERROR_CANCELLED);
    limits_enter(&s, &limits, NULL, LIMIT_COMPILE);
    pass_ms(101);
    assert_true(cancel_is_requested());
    assert_int_equal(limits_leave(&s, CLG_ERROR_IO), CLG_ERROR_IO);
    limits_enter(&s, &limits, NULL, LIMIT_COMPILE);
    pass_ms(101);
    assert_true(cancel_is_requested());
    assert_int_equal(limits_leave(&s, CLG_OK), CLG_OK);
}

TEST(limit_clock__outer_scopes_count_too)
{
    limits_scope outer, inner;
    limits_enter(&outer, &limits, NULL, LIMIT_COMPILE);
    pass_ms(60);
    limits_enter(&inner, &limits, NULL, LIMIT_COMPILE);
    pass_ms(60);
    assert_error(cancel_check("planning"), CLG_ERROR_CANCELLED, "planning");
    assert_int_equal(limits_leave(&inner, CLG_ERROR_CANCELLED), CLG_ERROR_CANCELLED);
    assert_error(limits_leave(&outer, CLG_ERROR_CANCELLED), CLG_ERROR_LIMIT, "max_compile_ms");
}

static void *check(void *scope)
{
    cancel_adopt(scope);
    return cancel_is_requested() ? scope : NULL;
}

TEST(limit_clock__threads_that_adopt_the_scope_obey_it)
{
    limits_scope s;
    limits_enter(&s, &limits, NULL, LIMIT_COMPILE);
    for (int i = 0; i < 2; i++) {
        pthread_t other;
        void *result;
        assert_int_equal(pthread_create(&other, NULL, check, &s.scope), 0);
        assert_int_equal(pthread_join(other, &result), 0);
        assert_ptr_equal(result, i == 0 ? NULL : &s.scope);
        pass_ms(101);
    }
    assert_int_equal(limits_leave(&s, CLG_ERROR_CANCELLED), CLG_ERROR_LIMIT);
}

TEST(limit_clock__who_watches_a_thread_sees_its_phase_and_its_checks)
{
    limits_scope s;
    limit_watch w;
    atomic_init(&w.phase, LIMIT_RUN);
    atomic_init(&w.n_checks, 0);
    limits_watch(&w);
    limits_enter(&s, NULL, NULL, LIMIT_COMPILE);
    assert_int_equal(atomic_load(&w.phase), LIMIT_COMPILE);
    assert_ok(cancel_check("planning"));
    assert_int_equal(atomic_load(&w.n_checks), 1);
    pthread_t other;
    assert_int_equal(pthread_create(&other, NULL, check, &s.scope), 0);
    assert_int_equal(pthread_join(other, NULL), 0);
    assert_int_equal(atomic_load(&w.n_checks), 2);
    assert_int_equal(limits_set_phase(LIMIT_RUN), LIMIT_COMPILE);
    assert_int_equal(atomic_load(&w.phase), LIMIT_RUN);
    assert_ok(limits_leave(&s, CLG_OK));
    limits_watch(NULL);
    assert_ok(cancel_check("planning"));
    assert_int_equal(atomic_load(&w.n_checks), 2);
}
