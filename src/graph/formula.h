/* SPDX-License-Identifier: Apache-2.0
 *
 * Adds the nodes that compute a formula, such as "g * (1 - y * y)" or
 * "s = Sigmoid(x); Where(x > 0, g, g * alpha * s)": definitions, then an expression of + - * /,
 * comparisons, parentheses, numbers, names and operators of ONNX on expressions. The rules of
 * gradients and the optimizers of training are written so.
 */
#ifndef CLG_GRAPH_FORMULA_H
#define CLG_GRAPH_FORMULA_H

#include "graph/graph.h"

/* What the names of a formula are, and how its nodes are added. The functions return a value; after
 * a failure, which *status has, VALUE_NONE, and they accept that then. */
typedef struct formula_nodes {
    void *user;
    value_id (*add)(void *user, const char *op_type, size_t n_inputs, const value_id *inputs);
    value_id (*number)(void *user, double number);
    /* Of a name that is no definition; VALUE_NONE without a failure: unknown. */
    value_id (*find)(void *user, const char *name);
    clg_status *status;
} formula_nodes;

/* Returns the value of a formula. A fault in it is an INTERNAL error. */
value_id formula_add(const formula_nodes *nodes, const char *formula);

#endif
