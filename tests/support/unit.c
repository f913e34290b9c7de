/* SPDX-License-Identifier: Apache-2.0
 *
 * A group of tests whose teardown counts: that of cmocka 1.1 is run and its result forgotten, and a teardown of ours is
 * where a run without a kernel is found out.
 */
#include "support/unit.h"

#include "support/platform.h"

#include <stdbool.h>
#include <stdlib.h>

static CMFixtureFunction close_it;
static bool is_closed;

static int close_group(void **state)
{
    is_closed = !close_it || close_it(state) == 0;
    return is_closed ? 0 : -1;
}

int unit_run_group(const char *name, const struct CMUnitTest *tests, size_t n_tests,
                   CMFixtureFunction open, CMFixtureFunction close)
{
    close_it = close;
    is_closed = false;
    /* Tests are linked with the library's objects: nothing is beside them. */
    if (!getenv("CLG_COMPILE_HELPER"))
        (void)platform_set_env("CLG_COMPILE_HELPER", CLG_TEST_COMPILE_HELPER);
    const int n_failed = _cmocka_run_group_tests(name, tests, n_tests, open, close_group);
    if (!is_closed) print_error("[  FAILED  ] closing the group '%s'\n", name);
    return n_failed != 0 || !is_closed;
}
