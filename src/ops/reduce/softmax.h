/* SPDX-License-Identifier: Apache-2.0
 *
 * Appends Softmax, LogSoftmax and Hardmax to the candidates of operators.
 */
#ifndef CLG_OPS_SOFTMAX_H
#define CLG_OPS_SOFTMAX_H

#include "ops/core/op.h"

typedef enum softmax_op {
    SOFTMAX,
    LOG_SOFTMAX,
    HARDMAX
} softmax_op; /* P_OP of cl/reduce/softmax.cl */

/* A tensor as [outer, cols, inner]. Probabilities sum to 1 along cols. */
typedef struct softmax_shape {
    int64_t outer, cols, inner;
} softmax_shape;

/* An operator of this file, from x to y. */
typedef struct softmax_job {
    softmax_op op;
    clg_dtype dtype; /* a float dtype, of x and y */
    softmax_shape dims;
    operand x, y; /* dense */
} softmax_job;

/* Appends the step that computes the job. */
void softmax_append(lower_context *c, candidate *impl, const softmax_job *j);

#endif
