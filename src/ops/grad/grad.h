/* SPDX-License-Identifier: Apache-2.0
 *
 * Declares reverse-mode differentiation of graphs: grad_build adds to a graph the nodes that
 * compute gradients. The result is an ordinary graph, which passes optimise and which may be
 * differentiated again.
 */
#ifndef CLG_OPS_GRAD_H
#define CLG_OPS_GRAD_H

#include "ops/core/op.h"

/* Adds to g, whose nodes are resolved and in topological order, nodes that compute the gradient of
 * the sum of the elements of value y with respect to each of xs. out_gradients[i] is a new value
 * with the dtype and shape of xs[i]: zeros where y does not depend on it. y and xs are floats:
 * inputs, constants or results of nodes of g itself, not of its subgraphs. cotangent: a value of
 * y's dtype and shape by which its elements are multiplied before they are summed; VALUE_NONE: by
 * 1. New nodes are not resolved yet, and may be out of order (graph_compact). Control flow on the
 * path is replaced by the nodes of its bodies, where conditions and numbers of iterations are
 * known: ids of values stay, those of nodes do not.
 *
 * Errors: UNSUPPORTED_OPERATOR, which names every node through which the gradient would have to
 * pass and cannot, with the reason; UNSUPPORTED_DTYPE when y or one of xs is not float. */
clg_status grad_build(graph *g, value_id y, value_id cotangent, const value_id *xs, size_t n_xs,
                      value_id *out_gradients);

#endif
