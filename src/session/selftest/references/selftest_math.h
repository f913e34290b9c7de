/* SPDX-License-Identifier: Apache-2.0
 *
 * Arithmetic of self-test references, in double. Besides results y, `scale` gets the sums of the
 * magnitudes of each result's terms, to which errors are relative. In large problems some results
 * are not computed, but only checked for NaNs; their scale is HUGE_VAL.
 */
#ifndef CLG_SESSION_SELFTEST_MATH_H
#define CLG_SESSION_SELFTEST_MATH_H

#include "ops/core/op.h"

/* Returns the number of elements. */
int64_t selftest_count(const shape *s);
/* Broadcasts an input to the output's shape and multiplies it by a factor. *out is in the arena of
 * lc; NULL if the input is absent or has another shape, which only operators that do not read it
 * allow. */
clg_status selftest_broadcast(const lower_context *lc, size_t input, const double *const *in,
                              double factor, double **out);
/* Converts a channel-blocked feature map [n, blocks, h, w, lanes] with `channels` valid channels to
 * NCHW order; `back`: the other direction. */
void selftest_reorder(const shape *in_blocks, int64_t channels, const double *from, double *to,
                      bool back);
/* Adds x * w[j * step] to y[j], and its absolute value to scale[j], for j < n. */
void selftest_axpy(double x, const double *w, int64_t step, int64_t n, double *y, double *scale);

/* An operand of a product or convolution. */
typedef struct selftest_factor {
    const shape *dims;
    const double *numbers; /* row-major */
} selftest_factor;

/* Adds the matrix products of left and right to y, which has the shape of lc's output; with the
 * broadcasting of MatMul and the node's transA and transB. */
void selftest_multiply(const lower_context *lc, const selftest_factor *left,
                       const selftest_factor *right, double *y, double *scale);
/* Adds the convolution of left (x [n, c, ...]) with right (weights) to y; window and groups are
 * those of lc's node. */
clg_status selftest_convolve(const lower_context *lc, const selftest_factor *left,
                             const selftest_factor *right, double *y, double *scale);

#endif
