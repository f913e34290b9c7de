/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the nodes that exporters write in place of one operator, by patterns given as text:
 *
 *   Mul(x, Sigmoid(x))                          operators of ONNX's default domain
 *   x  w                                        a letter: any value, the same for each occurrence
 *   0.5                                         a constant of one element with this value, to
 *                                               three digits
 *   #e                                          a constant of one element, whose value
 *                                               pattern_number returns
 *   Div(d, Sqrt(v)); d = Sub(x, ReduceMean(x))  a letter that is defined after the semicolon: a
 *                                               value that also matches the expression
 *
 * Operands of Add and Mul match in either order. Bounds of Clip may be attributes. A node must have
 * exactly the inputs that are written, except that ReduceMean may have axes as another one.
 */
#ifndef CLG_PASSES_PATTERN_H
#define CLG_PASSES_PATTERN_H

#include "passes/rewrite.h"

#define PATTERN_MAX_NODES 24

typedef struct pattern_match {
    value_id values[26]; /* [letter - 'a']; VALUE_NONE if not in the pattern */
    double numbers[26];
    node_id nodes[PATTERN_MAX_NODES]; /* the matched nodes, the root first */
    size_t n_nodes;
} pattern_match;

/* Return the value of a letter, and the number that #letter matched. */
value_id pattern_value(const pattern_match *m, char letter);
double pattern_number(const pattern_match *m, char letter);
/* Returns whether the first output of node `root` matches the pattern, and sets *out_match. Values
 * that were added to the graph after s was computed match letters only. */
bool pattern_find(const graph_info *s, const char *pattern, node_id root, pattern_match *out_match);

#endif
