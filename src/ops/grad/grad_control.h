/* SPDX-License-Identifier: Apache-2.0
 *
 * Declares what replaces control flow by other nodes before a graph is differentiated.
 */
#ifndef CLG_OPS_GRAD_CONTROL_H
#define CLG_OPS_GRAD_CONTROL_H

#include "ops/core/op.h"

/* Returns whether a resolved node is control flow, or works on sequences. */
bool grad_is_control(const node *n);
/* Replaces If, Loop or Scan by the nodes of its bodies, which are not resolved, and are out of
 * order. facts: of the graph's values. *out_done: false, and nothing is changed, where it is
 * another node, or the condition or the number of iterations is not known or too large. */
clg_status grad_inline_control(graph *g, node_id id, const value_fact *facts, bool *out_done);

#endif
