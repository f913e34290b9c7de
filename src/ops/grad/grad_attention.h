/* SPDX-License-Identifier: Apache-2.0
 *
 * Declares attention by MatMul and Softmax, and rotary embedding, for the rules of attention
 * operators. Scores are stored whole, unlike by the kernels of these operators.
 */
#ifndef CLG_OPS_GRAD_ATTENTION_H
#define CLG_OPS_GRAD_ATTENTION_H

#include "ops/grad/grad_rule.h"

typedef struct grad_attention {
    clg_dtype dtype, precision; /* of queries, keys, values and output; of what is between them */
    value_id q, k, v;           /* [batch, heads, queries, d], [batch, kv_heads, keys, d or dv] */
    int64_t heads, kv_heads;
    value_id scale;     /* a scalar of `precision` */
    double softcap;     /* 0: none */
    value_id added;     /* of `precision`: added to scores, broadcast to [batch, heads, queries,
                         * keys], -infinity excludes a key; or NONE */
    value_id allowed;   /* bool, broadcast likewise: a key counts; or NONE: all do */
    value_id sink;      /* of `precision`, [heads, 1, 1]: the score of one more key with value 0, or
                         * NONE */
    value_id scores[4]; /* set, of `precision`: scaled products, these after softcap, after masks,
                         * their softmax */
} grad_attention;

/* Returns a description without masks, of elements of this dtype. Scores are computed in float32
 * where elements are narrower, as by the kernels. */
grad_attention grad_attention_of(clg_dtype dtype);
/* Returns the output [batch, heads, queries, dv]; 0 for a query for which no key counts. */
value_id grad_attend(grad_node *c, grad_attention *a);
/* Returns v, or its elements in another dtype. */
value_id grad_in_dtype(grad_node *c, value_id v, clg_dtype from, clg_dtype to);

/* Returns v, [batch, positions, heads * d], as [batch, heads, positions, d]. */
value_id grad_split_heads(grad_node *c, value_id v, int64_t heads);
/* Returns v, [batch, heads, positions, d], as [batch, positions, heads * d]. */
value_id grad_join_heads(grad_node *c, value_id v);
/* Returns the number, or 1 / sqrt(d) of q [..., d] where it is 0. */
value_id grad_attention_scale(grad_node *c, const grad_attention *a, double number);
/* Adds v, of `precision`, to the sum that is added to scores. */
void grad_attention_add(grad_node *c, grad_attention *a, value_id v);
/* Excludes the keys for which `also`, bool, is false. */
void grad_attention_allow(grad_node *c, grad_attention *a, value_id also);
/* Returns whether keys j of [keys] are at first or later ones of [..., queries, 1], or at last or
 * earlier ones: first <= j <= last. Either may be VALUE_NONE, not both. */
value_id grad_attention_between(grad_node *c, value_id j, value_id first, value_id last);
/* Returns 0, 1, ... queries - 1 as [queries, 1]; or 0, 1, ... keys - 1. */
value_id grad_attention_queries(grad_node *c, const grad_attention *a);
value_id grad_attention_keys(grad_node *c, const grad_attention *a);

/* Returns the rows of a cache of cosines or sines at positions, which broadcast to [batch, heads,
 * positions, elements / 2]; ids VALUE_NONE: the cache has a row for each position of each of the
 * batch. by_batch: the rows have the batch as their first axis. */
value_id grad_rotary_rows(grad_node *c, value_id cache, value_id ids, bool by_batch);
/* Returns x, [batch, heads, positions, d], with its first `rotated` elements rotated. */
value_id grad_rotate(grad_node *c, value_id x, value_id cos, value_id sin, int64_t rotated,
                     bool interleaved);

#endif
