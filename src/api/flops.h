/* SPDX-License-Identifier: Apache-2.0
 *
 * Floating-point operations of a node, counted from shapes alone: those of the operator's
 * definition, not of a kernel. A multiply-add counts two, every other operation one, also exp and
 * the like.
 */
#ifndef CLG_API_FLOPS_H
#define CLG_API_FLOPS_H

#include "ops/core/op.h"

/* facts: of the graph's values. Returns 0 for operators that only move data, and for unknown
 * shapes. */
double flops_of_node(const node *n, const value_fact *facts);

#endif
