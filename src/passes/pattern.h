/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the nodes that exporters write in place of one operator, by patterns given as text:
 *
 *   Mul(x, Sigmoid(x))                          operators of ONNX's default domain
 *   x  w                                        any value, the same wherever the letter is
 *   0.5                                         a constant of one element with that value, to
 *                                               three digits
 *   #e                                          a constant of one element, whose value
 *                                               pattern_number returns
 *   Div(d, Sqrt(v)); d = Sub(x, ReduceMean(x))  d is any value that also matches the expression
 *                                               after d =
 *
 * Operands of Add and Mul match in either order. Bounds of Clip may be attributes. Operators have
 * exactly the inputs that are written; ReduceMean may have more (axes).
 */
#ifndef CLG_PASSES_PATTERN_H
#define CLG_PASSES_PATTERN_H

#include "passes/rewrite.h"

#define PATTERN_MAX_NODES 24

typedef struct pattern_match {
    value_id values[26]; /* by letter, 'a' first; VALUE_NONE: not in the pattern */
    double numbers[26];
    node_id nodes[PATTERN_MAX_NODES]; /* the matched nodes, the root first */
    size_t n_nodes;
} pattern_match;

value_id pattern_value(const pattern_match *m, char letter);
double pattern_number(const pattern_match *m, char letter);
/* Returns whether the first output of node `root` is computed as the pattern says. Values that
 * edits added after the analysis match letters only. */
bool pattern_find(const graph_info *s, const char *pattern, node_id root, pattern_match *out_match);

#endif
