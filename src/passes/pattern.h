/* SPDX-License-Identifier: Apache-2.0
 *
 * Patterns, as text, of several nodes that exporters write in place of one operator.
 *
 *   Mul(x, Sigmoid(x))                          operators of ONNX's default domain
 *   x  w                                        any value, the same wherever the letter is
 *   0.5                                         a constant of one element with that number, to
 *                                               three digits
 *   #e                                          a constant of one element, whose number is
 *                                               requested
 *   Div(d, Sqrt(v)); d = Sub(x, ReduceMean(x))  d is a value and also what is said of it
 *
 * Operands of Add and Mul match in either order. Numbers of Clip may be attributes. Operators have
 * exactly the inputs that are written; ReduceMean and Softmax may have more (axes).
 */
#ifndef CLG_PASSES_PATTERN_H
#define CLG_PASSES_PATTERN_H

#include "passes/rewrite.h"

#define PATTERN_MAX_NODES 24

typedef struct pattern_match {
    value_id values[26]; /* by letter, 'a' first; VALUE_NONE: not in the pattern */
    double numbers[26];
    node_id nodes[PATTERN_MAX_NODES]; /* that make the pattern, the root first */
    size_t n_nodes;
} pattern_match;

value_id pattern_value(const pattern_match *m, char letter);
double pattern_number(const pattern_match *m, char letter);
/* Returns whether the first output of node `root` is computed as the pattern says. Values that
 * edits added after the analysis match letters only. */
bool pattern_find(const graph_info *s, const char *pattern, node_id root, pattern_match *out_match);

#endif
