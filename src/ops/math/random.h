/* SPDX-License-Identifier: Apache-2.0
 *
 * Appends the steps of operators that draw random numbers (cl/math/random.cl). A node's attribute
 * seed is the key of the generator; without it each launch gets another key, from the session's
 * seed.
 */
#ifndef CLG_OPS_RANDOM_H
#define CLG_OPS_RANDOM_H

#include "ops/core/op.h"

/* P_OP of cl/math/random.cl. */
typedef enum random_op {
    RANDOM_UNIFORM,
    RANDOM_NORMAL,
    RANDOM_BERNOULLI,
    RANDOM_DROPOUT
} random_op;

typedef struct random_job {
    random_op op;
    clg_dtype dtype; /* a floating-point dtype: of x, and of generated values */
    clg_dtype out;   /* Bernoulli: of y; dropout: of the mask; else `dtype` */
    operand x, y, mask;
    bool has_mask;
    int64_t n;
    double a, b; /* parameters of the distribution, as in the kernel */
} random_job;

clg_status random_append(lower_context *c, candidate *impl, const random_job *j);
/* Adds the argument `key` of a kernel: the attribute seed, or a key that changes with each
 * launch. */
void random_arg_key(lower_context *c, step *s);

#endif
