/* SPDX-License-Identifier: Apache-2.0
 *
 * Counts the floating-point operations of a node from its shapes: those of the operator's
 * definition, not of a kernel. A multiply-add counts as two, every other operation, exp included,
 * as one.
 */
#ifndef CLG_OPS_FLOPS_H
#define CLG_OPS_FLOPS_H

#include "ops/core/op.h"

/* Returns the operations of a node; 0 for operators that only move data, and for unknown shapes.
 * facts: of the graph's values, by id. */
double flops_of_node(const node *n, const value_fact *facts);

#endif
