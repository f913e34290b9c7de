/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements unit.h: registers and runs the tests of a program. Unlike cmocka 1.1, reports failure
 * when the teardown of a group fails: teardowns detect programs in which no kernel ran.
 */
#include "support/unit.h"

#include "support/platform.h"

#include "ocl/ocl.h"
#include "plan/plan.h"

#include <stdbool.h>
#include <stdlib.h>

static CMFixtureFunction close_it;
static bool is_closed;

static int close_group(void **state)
{
    is_closed = !close_it || close_it(state) == 0;
    return is_closed ? 0 : -1;
}

int test_run(const struct CMUnitTest *tests, size_t n_tests, CMFixtureFunction open,
             CMFixtureFunction close)
{
    close_it = close;
    is_closed = false;
    /* Tests are linked with the library's objects, and have nothing else in their folder. */
    if (!getenv("CLG_COMPILE_HELPER"))
        (void)platform_set_env("CLG_COMPILE_HELPER", CLG_TEST_COMPILE_HELPER);
#ifdef CLG_TEST_IMAGES
    if (!getenv("CLG_IMAGES")) (void)platform_set_env("CLG_IMAGES", CLG_TEST_IMAGES);
#endif
    /* Whether runs follow each other quickly depends on the machine (test_spin_wait.c). */
    ocl_spin_use(OCL_SPIN_NEVER);
    /* The small problems of tests would have one work-group each. */
    plan_short_runs_use(PLAN_SHORT_RUNS_NEVER);
    const int n_failed = _cmocka_run_group_tests("tests", tests, n_tests, open, close_group);
    if (!is_closed) print_error("[  FAILED  ] closing the group\n");
    return n_failed != 0 || !is_closed;
}

/* ---- tests that register themselves ---------------------------------------------------------- */

static test_entry *
    /* sorted by line: constructors run in order of the file on some systems, reversed on others */
    first;
static CMFixtureFunction open_all, close_all;

void test_register(test_entry *entry)
{
    test_entry **at = &first;
    while (*at && (*at)->line < entry->line) at = &(*at)->next;
    entry->next = *at;
    *at = entry;
}

void test_group(CMFixtureFunction open, CMFixtureFunction close)
{
    open_all = open;
    close_all = close;
}

int test_run_all(void)
{
    size_t n = 0;
    for (const test_entry *e = first; e; e = e->next) n++;
    struct CMUnitTest *tests = calloc(n + 1, sizeof *tests);
    if (!tests || n == 0) {
        print_error("no test can be run\n");
        free(tests);
        return 1;
    }
    n = 0;
    for (const test_entry *e = first; e; e = e->next) tests[n++] = e->test;
    const int code = test_run(tests, n, open_all, close_all);
    free(tests);
    return code;
}
