/* SPDX-License-Identifier: Apache-2.0
 *
 * Measures the built-in models of --suite (suite.h) on devices.
 */
#ifndef CLTOOL_BENCH_SUITE_H
#define CLTOOL_BENCH_SUITE_H

#include "bench_result.h"

/* Checks the options and names of bench_suite. */
int bench_suite_check(const options *o, const char *const *names, size_t n);
/* Measures models on one device, or with --each on each that -d selects, with the batch sizes of
 * --batch or 1 and 16. names: n words of names of models, joined by commas; n 0: all models. What
 * does not fit the memory of a device or a limit is left out, with the reason. So is what fails
 * otherwise, and the first of these failures is recorded and its code returned at the end. */
int bench_suite(const options *o, const char *const *names, size_t n, bench_results *out_results);
/* Returns {"version", "commit", "devices", "results"}. */
json_t *bench_suite_json(const bench_results *r);

#endif
