/* SPDX-License-Identifier: Apache-2.0
 *
 * Common parts of the self-test references of operators along axes and of those that scatter and
 * gather: lines along an axis, integers that wrap, permutations.
 */
#ifndef CLG_SESSION_SELFTEST_AXIS_H
#define CLG_SESSION_SELFTEST_AXIS_H

#include "ops/core/op.h"

/* A tensor as [outer, dim, inner], where dim is the length of an axis. A line is the elements
 * along the axis at one position of the others; there are outer * inner lines. */
typedef struct selftest_lines {
    int64_t outer, dim, inner;
} selftest_lines;

/* Describes a shape around an axis; a scalar has one line of one element. */
selftest_lines selftest_lines_of(const shape *s, int axis);
/* Returns the offset of the first element of a line; the next ones are a->inner apart. */
int64_t selftest_line_start(const selftest_lines *a, int64_t line);

/* Returns the value of the low bits in an integer dtype: what an integer result wraps to. */
double selftest_wrap(clg_dtype dtype, uint64_t bits);
/* Returns the bits of an integer. */
uint64_t selftest_bits(double integer);
/* Returns the scale of the smallest results, which have few significant bits in the dtype. */
double selftest_least_scale(clg_dtype dtype);
/* Returns element i of a permutation of 0..n-1, which is repeated for i >= n. Adjacent elements are
 * far apart. */
int64_t selftest_permuted(int64_t i, int64_t n);

#endif
