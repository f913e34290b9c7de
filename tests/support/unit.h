/* SPDX-License-Identifier: Apache-2.0
 *
 * Included first by every test file: cmocka with the headers that it needs, macros that define and
 * register tests, and checks of clg_status that print the library's error message. A program also
 * fails if the setup or teardown of its group fails.
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
/* As TEST, with functions called before and after the test (CMFixtureFunction, or NULL). setup may
 * set *state, which the test receives as `state`. */
#define TEST_WITH(name, setup, teardown)                                                           \
    static void name(void **state);                                                                \
    __attribute__((constructor)) static void name##_register(void)                                 \
    {                                                                                              \
        static test_entry entry = {{#name, name, setup, teardown, NULL}, __LINE__, NULL};          \
        test_register(&entry);                                                                     \
    }                                                                                              \
    static void name(void **state __attribute__((unused)))
/* Sets functions that are called before the program's first test and after its last one; each may
 * be NULL. */
#define TEST_GROUP(open, close)                                                                    \
    __attribute__((constructor)) static void test_group_register(void) { test_group(open, close); }

typedef struct test_entry {
    struct CMUnitTest test;
    int line;
    struct test_entry *next;
} test_entry;

void test_register(test_entry *entry);
void test_group(CMFixtureFunction open, CMFixtureFunction close);
/* Runs all registered tests, for a program with its own main; others use support/main.c. Returns
 * the exit status: 0 when every test passed and both functions of the group succeeded, else 1. */
int test_run_all(void);
/* Runs a list of tests; returns 0 or 1 as test_run_all does. Used in place of cmocka's function,
 * which reports success when closing the group fails. */
int test_run(const struct CMUnitTest *tests, size_t n_tests, CMFixtureFunction open,
             CMFixtureFunction close);

/* Checks that the call returns CLG_OK; prints the library's error message if it does not. */
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

/* Checks that the call returns the status `expected` and that the library's error message contains
 * `words`. */
#define assert_error(call, expected, words)                                                        \
    do {                                                                                           \
        clg_status assert_status_ = (call);                                                        \
        if (assert_status_ != (expected))                                                          \
            fail_msg("%s gave %s in place of %s: %s", #call, status_name(assert_status_),          \
                     status_name(expected), error_text());                                         \
        if (!strstr(error_text(), (words))) fail_msg("no \"%s\" in: %s", (words), error_text());   \
    } while (0)

#endif
