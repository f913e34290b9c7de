/* SPDX-License-Identifier: Apache-2.0
 *
 * The header that every test includes first: cmocka with the headers it needs, tests that register
 * themselves, checks of statuses that print the error message, and groups whose teardown counts.
 */
#ifndef CLG_TESTS_UNIT_H
#define CLG_TESTS_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/status.h"

/* Defines a test, which registers itself: TEST(name) { ... }. A program runs its tests in the
 * order of their lines. */
#define TEST(name) TEST_WITH(name, NULL, NULL)
/* As TEST, with functions that are called before and after the test (CMFixtureFunction), or NULL.
 * setup may set *state, which the test gets as `state`. */
#define TEST_WITH(name, setup, teardown)                                                           \
    static void name(void **state);                                                                \
    __attribute__((constructor)) static void name##_register(void)                                 \
    {                                                                                              \
        static test_entry entry = {{#name, name, setup, teardown, NULL}, __LINE__, NULL};          \
        test_register(&entry);                                                                     \
    }                                                                                              \
    static void name(void **state __attribute__((unused)))
/* Sets the functions that are called before the first and after the last test of the program; each
 * may be NULL. */
#define TEST_GROUP(open, close)                                                                    \
    __attribute__((constructor)) static void test_group_register(void) { test_group(open, close); }

typedef struct test_entry {
    struct CMUnitTest test;
    int line;
    struct test_entry *next;
} test_entry;

void test_register(test_entry *entry);
void test_group(CMFixtureFunction open, CMFixtureFunction close);
/* Runs all registered tests, for a program with its own main; others use support/main.c. Returns an
 * exit status: 0 when every test passed, and opening and closing the group succeeded. */
int test_run_all(void);
/* Runs a list of tests. cmocka's own function reports success when closing the group fails. */
int test_run(const struct CMUnitTest *tests, size_t n_tests, CMFixtureFunction open,
             CMFixtureFunction close);

#define assert_ok(call)                                                                            \
    do {                                                                                           \
        clg_status assert_status_ = (call);                                                        \
        if (assert_status_ != CLG_OK)                                                              \
            fail_msg("%s gave %s: %s", #call, status_name(assert_status_), error_text());          \
    } while (0)

/* Checks min <= number <= max, unsigned. cmocka 2 deprecates assert_in_range, and cmocka 1 lacks
 * its replacement. */
#define assert_between(number, min, max)                                                           \
    do {                                                                                           \
        const uintmax_t assert_number_ = (number);                                                 \
        if (assert_number_ < (min) || assert_number_ > (max))                                      \
            fail_msg("%s is %ju, outside of %ju to %ju", #number, assert_number_,                  \
                     (uintmax_t)(min), (uintmax_t)(max));                                          \
    } while (0)

/* Checks that the call fails with this status, and that the message contains the words. */
#define assert_error(call, expected, words)                                                        \
    do {                                                                                           \
        clg_status assert_status_ = (call);                                                        \
        if (assert_status_ != (expected))                                                          \
            fail_msg("%s gave %s in place of %s: %s", #call, status_name(assert_status_),          \
                     status_name(expected), error_text());                                         \
        if (!strstr(error_text(), (words))) fail_msg("no \"%s\" in: %s", (words), error_text());   \
    } while (0)

#endif
