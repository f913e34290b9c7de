/* SPDX-License-Identifier: Apache-2.0
 *
 * Declares linear interpolation of images, for the rules of operators that read them at computed
 * positions.
 */
#ifndef CLG_OPS_GRAD_SAMPLE_H
#define CLG_OPS_GRAD_SAMPLE_H

#include "ops/grad/grad_rule.h"

/* Returns the rows [M, channels] that linear interpolation of images x, [n, channels, height,
 * width], gives at positions in elements: down and across, [M, 1] of this dtype, which the first
 * image has the first M / n of, and so on. each: M / n, a list of one. What is outside of the image
 * is 0. Of a position on an element, the derivative is that on the way to the next element. */
value_id grad_interpolate(grad_node *c, value_id x, value_id down, value_id across, value_id each,
                          clg_dtype dtype);

#endif
