/* SPDX-License-Identifier: Apache-2.0
 *
 * The main function of test programs that have none. Runs the tests whose names match the pattern
 * in the first argument; without an argument, all tests.
 */
#include "support/unit.h"

int main(int argc, char **argv)
{
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return test_run_all();
}
