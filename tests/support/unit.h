/* SPDX-License-Identifier: Apache-2.0
 *
 * What every test includes first: cmocka with the headers that it wants in front of it, checks of statuses that print
 * the recorded sentence, and a group whose teardown counts.
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

/* In the place of cmocka's, which reports success when closing the group fails: 0 when every test passed and closing
 * gave 0. */
#undef cmocka_run_group_tests
#define cmocka_run_group_tests(tests, open, close)                                                 \
    unit_run_group(#tests, tests, sizeof(tests) / sizeof(tests)[0], open, close)
int unit_run_group(const char *name, const struct CMUnitTest *tests, size_t n_tests,
                   CMFixtureFunction open, CMFixtureFunction close);

#define assert_ok(call)                                                                            \
    do {                                                                                           \
        clg_status assert_status_ = (call);                                                        \
        if (assert_status_ != CLG_OK)                                                              \
            fail_msg("%s gave %s: %s", #call, status_name(assert_status_), error_text());          \
    } while (0)

/* Of unsigned numbers. cmocka 2 deprecates assert_in_range, and cmocka 1 does not have what replaces it. */
#define assert_between(number, least, most)                                                        \
    do {                                                                                           \
        const uintmax_t assert_number_ = (number);                                                 \
        if (assert_number_ < (least) || assert_number_ > (most))                                   \
            fail_msg("%s is %ju, outside of %ju to %ju", #number, assert_number_,                  \
                     (uintmax_t)(least), (uintmax_t)(most));                                       \
    } while (0)

/* The call fails so, and the sentence contains the words. */
#define assert_error(call, expected, words)                                                        \
    do {                                                                                           \
        clg_status assert_status_ = (call);                                                        \
        if (assert_status_ != (expected))                                                          \
            fail_msg("%s gave %s in place of %s: %s", #call, status_name(assert_status_),          \
                     status_name(expected), error_text());                                         \
        if (!strstr(error_text(), (words))) fail_msg("no \"%s\" in: %s", (words), error_text());   \
    } while (0)

#endif
