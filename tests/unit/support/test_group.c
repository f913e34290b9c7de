/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests TEST_GROUP: a test program fails if the setup or teardown of its group fails.
 */
#include "support/unit.h"

#include <stdbool.h>

static void passes(void **state) { (void)state; }

static int succeed(void **state)
{
    (void)state;
    return 0;
}

static int fail_quietly(void **state)
{
    (void)state;
    return -1;
}

static int fail_loudly(void **state)
{
    (void)state;
    fail_msg("meant to fail");
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(passes)};
    const bool good =
        test_run(tests, 1, NULL, NULL) == 0 && test_run(tests, 1, succeed, succeed) == 0;
    const bool bad = test_run(tests, 1, fail_quietly, succeed) == 1 &&
                     test_run(tests, 1, succeed, fail_quietly) == 1 &&
                     test_run(tests, 1, NULL, fail_loudly) == 1;
    print_message("the three failures above are meant: %s\n", good && bad ? "found" : "NOT FOUND");
    return !(good && bad);
}
