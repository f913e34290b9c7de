/* SPDX-License-Identifier: Apache-2.0
 *
 * What every test includes first: cmocka with the headers that it wants in front of it, and checks of
 * statuses that print the recorded sentence.
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

#define assert_ok(call)                                                                            \
    do {                                                                                           \
        clg_status assert_status_ = (call);                                                        \
        if (assert_status_ != CLG_OK)                                                              \
            fail_msg("%s gave %s: %s", #call, status_name(assert_status_), error_text());          \
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
