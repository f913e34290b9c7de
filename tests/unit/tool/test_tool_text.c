/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests how cltool writes times that are left.
 */
#include "support/unit.h"

/* Both cmocka and cltool have a macro of this name; the tests need cmocka's. */
#undef fail
#include "output.h"
#undef fail
#define fail() _fail(__FILE__, __LINE__)

TEST_GROUP(NULL, NULL)

TEST(clock_text__carries_seconds_and_minutes)
{
    static const struct {
        double seconds;
        const char *text;
    } cases[] = {{0, "0:00"},
                 {0.4, "0:00"},
                 {9.6, "0:10"},
                 {59.4, "0:59"},
                 {59.7, "1:00"},
                 {60, "1:00"},
                 {3599.2, "59:59"},
                 {3599.5, "1:00:00"},
                 {3605, "1:00:05"},
                 {7199.9, "2:00:00"},
                 {86399.7, "24:00:00"},
                 {360000, "100:00:00"},
                 {36e8, "1000000:00:00"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(clock_text(cases[i].seconds), cases[i].text);
}
