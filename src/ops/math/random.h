/* SPDX-License-Identifier: Apache-2.0
 *
 * Appends the kernel of RandomUniform, RandomNormal, Bernoulli and Dropout (cl/math/random.cl) to a
 * candidate. Numbers come from a counter-based generator, whose key is the node's attribute seed;
 * without the attribute every launch gets another key, derived from the session's seed.
 */
#ifndef CLG_OPS_RANDOM_H
#define CLG_OPS_RANDOM_H

#include "ops/core/op.h"

/* The distribution: P_OP of cl/math/random.cl. */
typedef enum random_op {
    RANDOM_UNIFORM,
    RANDOM_NORMAL,
    RANDOM_BERNOULLI,
    RANDOM_DROPOUT
} random_op;

/* One launch over n elements.
 *
 *   x     input of Bernoulli (probabilities) and of Dropout; otherwise not read
 *   mask  Dropout's second output, if has_mask
 *   a, b  RANDOM_UNIFORM: lower and upper bound; RANDOM_NORMAL: mean and standard deviation;
 *         RANDOM_DROPOUT: the ratio, and the factor of the elements that are kept */
typedef struct random_job {
    random_op op;
    clg_dtype dtype; /* a floating-point dtype: of x, and of generated values */
    clg_dtype out;   /* Bernoulli: of y; dropout: of the mask; else `dtype` */
    operand x, y, mask;
    bool has_mask;
    int64_t n;
    double a, b; /* see above */
} random_job;

/* Appends the step. UNSUPPORTED_DTYPE if the device does not support dtype or out. */
clg_status random_append(lower_context *c, candidate *impl, const random_job *j);
/* Adds the argument `key` of a kernel: the attribute seed if the node has it, else a key that
 * changes with each launch. */
void random_arg_key(lower_context *c, step *s);

#endif
