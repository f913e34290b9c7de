/* SPDX-License-Identifier: Apache-2.0
 *
 * What the rules of operators (dims_rules.c, elements_rules.c) read of a node.
 */
#ifndef CLG_PASSES_RULE_INPUTS_H
#define CLG_PASSES_RULE_INPUTS_H

#include "passes/shapes/shape_terms.h"

/* Returns what is known of input i; of an omitted one nothing. */
const value_terms *rule_input(const shape_terms *s, const node *n, size_t i);
int rule_rank(const shape_terms *s, value_id v);
/* Reads integers from an attribute or, where the node has none of this name, from input i. Returns
 * false unless all are known, and at most SHAPE_MAX_ELEMENTS. */
bool rule_ints(const shape_terms *s, const node *n, const char *name, size_t i, int64_t *out_values,
               size_t *out_n);
/* Reads axes as bits, for a value of this rank. Returns false unless all are known and valid. */
bool rule_axes(const shape_terms *s, const node *n, size_t i, int rank, uint32_t *out_bits);
/* Reads the attribute `axis`, from 0 on. Returns false for one that the rank does not have. */
bool rule_axis(const node *n, int64_t fallback, int rank, int *out_axis);
/* Returns a number between two bounds; a negative one counts from `size`. */
int64_t rule_clamp(int64_t at, int64_t size, int64_t least, int64_t most);

#endif
