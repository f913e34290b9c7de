/* SPDX-License-Identifier: Apache-2.0
 *
 * Arithmetic of self-test references, in double. `scale` gets the sums of the terms' absolute
 * values, to which errors are relative; HUGE_VAL in rows of large problems that are not computed,
 * which are only checked for NaNs.
 */
#ifndef CLG_SESSION_SELFTEST_MATH_H
#define CLG_SESSION_SELFTEST_MATH_H

#include "ops/core/op.h"

/* Returns the number of elements. */
int64_t selftest_count(const shape *s);
/* Copies a broadcast input to the output's shape, times a factor, into the arena of lc; NULL for
 * an absent one. */
clg_status selftest_broadcast(const lower_context *lc, size_t input, const double *const *in,
                              double factor, double **out);
/* Adds x * w[j * step] to y[j], and its absolute value to scale[j], for j < n. */
void selftest_axpy(double x, const double *w, int64_t step, int64_t n, double *y, double *scale);

typedef struct selftest_factor {
    const shape *dims;
    const double *numbers; /* row-major */
} selftest_factor;

/* Adds the matrix products of left and right (MatMul's broadcasting; transA and transB of the node)
 * to y, of the shape of lc's output. */
void selftest_multiply(const lower_context *lc, const selftest_factor *left,
                       const selftest_factor *right, double *y, double *scale);
/* Adds the convolution of left, x [n, c, ...], with right, the weights, to y; window and groups are
 * the node's. */
clg_status selftest_convolve(const lower_context *lc, const selftest_factor *left,
                             const selftest_factor *right, double *y, double *scale);

#endif
