/* SPDX-License-Identifier: Apache-2.0
 *
 * The main of test programs without one. An argument, a pattern of names, chooses tests.
 */
#include "support/unit.h"

int main(int argc, char **argv)
{
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return test_run_all();
}
