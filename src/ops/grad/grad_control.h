/* SPDX-License-Identifier: Apache-2.0
 *
 * Declares what replaces control flow by other nodes before a graph is differentiated.
 */
#ifndef CLG_OPS_GRAD_CONTROL_H
#define CLG_OPS_GRAD_CONTROL_H

#include "ops/core/op.h"

/* Returns whether a resolved node is control flow, or works on sequences. */
bool grad_is_control(const node *n);
/* Returns whether it is If, Loop or Scan. */
bool grad_can_inline(const node *n);
/* Returns why grad_inline_control does not replace such a node; NULL if it does. */
const char *grad_control_obstacle(graph *g, node_id id, const value_fact *facts);
/* Replaces If, Loop or Scan by the nodes of its bodies, which are not resolved, and are out of
 * order. facts: of the graph's values. *out_done: false, and nothing is changed, where it is
 * another node, or there is an obstacle. */
clg_status grad_inline_control(graph *g, node_id id, const value_fact *facts, bool *out_done);

#endif
