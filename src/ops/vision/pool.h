/* SPDX-License-Identifier: Apache-2.0
 *
 * Appends average pooling to the candidates of operators.
 */
#ifndef CLG_OPS_POOL_H
#define CLG_OPS_POOL_H

#include "ops/core/op.h"

/* Appends AveragePool with the node's window attributes. x is dense float32 of input 0's shape, y
 * of output 0's. */
clg_status pool_append_average(lower_context *c, candidate *impl, operand x, operand y);

#endif
