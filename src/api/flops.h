/* SPDX-License-Identifier: Apache-2.0
 *
 * Floating-point operations of a node, counted from shapes alone: what the operator's definition asks for, not what a
 * kernel does. A multiply-add counts two, every other operation one, exp and its like too.
 */
#ifndef CLG_API_FLOPS_H
#define CLG_API_FLOPS_H

#include "ops/core/op.h"

/* facts: of the graph's values. 0 for operators that only move data, and where shapes are not known. */
double flops_of_node(const node *n, const value_fact *facts);

#endif
