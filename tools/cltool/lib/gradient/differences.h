/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares the gradient of a model with central differences of its output, both computed on the
 * device, along random directions of its inputs.
 *
 * Step: element i of an input x moves by h r max(|x_i|, m / 10), where r is random in [-1, 1], m
 * is the geometric mean of |x|, and h is at first the cube root of the precision's epsilon. With v
 * random and x+, x-, y+, y- the values at both ends, the sum of v (y+ - y-) is compared with that
 * of g (x+ - x-), where g is the gradient of the sum of v y: sums in double precision on the host.
 * A second step of h / 2 extrapolates to h = 0 (Richardson).
 *
 * Elements of y where the differences to both sides disagree by more than a tenth, or 2 h, near a
 * kink, or are not finite, have v = 0. A step decides if these are less than half of all changes,
 * if both steps agree, and if rounding errors are below the bound; else h is divided by 4, or
 * multiplied by 8 where rounding errors hide the change.
 */
#ifndef CLTOOL_DIFFERENCES_H
#define CLTOOL_DIFFERENCES_H

#include "options.h"

/* An input of the model and its value in host memory. */
typedef struct check_point {
    const char *name;
    clg_value *value;
    bool varies; /* float, and its gradient is checked */
} check_point;

typedef enum check_outcome { CHECK_OK, CHECK_FAILED, CHECK_NOT_DONE } check_outcome;

typedef struct check_result {
    check_outcome outcome;
    /* The largest difference of both sums, over the root of the sum of the squares of their terms;
     * NAN if no direction counts. */
    double error, bound;
    const char *reason; /* why it is not checked, "" otherwise; static */
} check_result;

/* Checks the gradient of the float output y of the model at the points, one for each of its
 * inputs. has_many_nodes: rounding errors and kinks of many nodes add up, so that less is certain.
 * seed: of the directions. Errors: those of sessions and of clg_model_gradient. */
int differences_check(const options *o, clg_context *context, clg_model *model, const char *y,
                      const check_point *points, size_t n_points, bool has_many_nodes,
                      uint64_t seed, check_result *out_result);

#endif
