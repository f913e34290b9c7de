/* SPDX-License-Identifier: Apache-2.0
 *
 * The share of long lists of cases that a run takes, by CLG_TEST_SHARE: `all`, or I/N. .ci/run
 * counts I up with the commits, so that N of them in sequence take every case. See docs/testing.md.
 */
#ifndef CLG_TESTS_CASE_SHARE_H
#define CLG_TESTS_CASE_SHARE_H

#include <stdbool.h>
#include <stddef.h>

/* I and N; 0 and default_n where CLG_TEST_SHARE is not set, 0 and 1 for `all`. Prints why and exits
 * where it is neither. */
void case_share_read(unsigned default_n, unsigned *out_i, unsigned *out_n);

/* Returns whether a run takes case k of a list of which it takes one in `of`: every case, unless
 * CLG_TEST_SHARE is I/N; then those with the remainder I modulo the largest common divisor of `of`
 * and N. */
bool case_share_takes(size_t k, unsigned of);

/* Returns whether a run takes case k with a class of kernels: with both, unless CLG_TEST_SHARE is
 * I/N and N is even; then with one of them, and with the other one at the next I, because most of
 * the time goes into compiling kernels. alone: a case of one class. Since the classes of such cases
 * may alternate, in step with I, these are taken in pairs. */
bool case_share_takes_class(size_t k, bool second_class, bool alone);

/* Returns the smallest number above k of which case_share_takes is true: k + 1, unless
 * CLG_TEST_SHARE is I/N. For loops that fail call or allocation k: they begin with 0, which every
 * run takes, and end with the first k that does not fail. A build with sanitizers takes other
 * numbers than one without. */
size_t case_share_next(size_t k, unsigned of);

#endif
