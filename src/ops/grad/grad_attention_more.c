/* SPDX-License-Identifier: Apache-2.0
 *
 * Rules of com.microsoft's Attention, MultiHeadAttention and GroupQueryAttention: attention by
 * MatMul and Softmax (grad_attention.h) of what these operators make of their inputs.
 */
#include "ops/grad/grad_attention.h"

#include <string.h>

/* Returns a description of the node's attention, without masks. */
static grad_attention describe(const grad_node *c)
{
    grad_attention a = grad_attention_of(grad_fact(c, grad_out(c, 0))->dtype);
    a.heads = a.kv_heads = node_int(&c->node, "num_heads", 0);
    return a;
}

/* ---- masks ----------------------------------------------------------------------------------- */

/* Returns whether keys count by a mask of lengths [batch], or of ends and starts [2 batch]: bool
 * [batch, 1, 1, keys]. */
static value_id by_lengths(grad_node *c, const grad_attention *a, value_id mask)
{
    const int64_t zero = 0, axes[3] = {1, 2, 3};
    const value_id batch = grad_size_along(c, a->q, 0);
    const value_id ends = grad_slice_at(c, mask, 0, grad_list(c, 1, &zero), batch);
    /* followed by zeros, the starts of a mask without starts */
    const value_id all =
        grad_concat(c, 0, 2, (value_id[]){mask, grad_fill(c, batch, CLG_INT32, 0)});
    const value_id starts = grad_slice_at(c, all, 0, batch, GRAD_ADD(c, "Add", batch, batch));
    const value_id j = grad_cast(c, grad_attention_keys(c, a), CLG_INT32);
    const value_id before = GRAD_ADD(c, "Less", j, grad_unsqueeze(c, ends, 3, axes));
    return GRAD_ADD(c, "And", before,
                    GRAD_ADD(c, "GreaterOrEqual", j, grad_unsqueeze(c, starts, 3, axes)));
}

/* Returns the part of a mask [batch, 1, max, max] for the queries, which are the last ones. */
static value_id cut_mask(grad_node *c, const grad_attention *a, value_id mask)
{
    const int64_t zero = 0;
    const value_id total = grad_size_along(c, a->k, 2);
    const value_id first = GRAD_ADD(c, "Sub", total, grad_size_along(c, a->q, 2));
    return grad_slice_at(c, grad_slice_at(c, mask, 2, first, total), 3, grad_list(c, 1, &zero),
                         total);
}

/* Adds input i to the scores. */
static void add_to_scores(grad_node *c, grad_attention *a, size_t i)
{
    if (grad_in(c, i) != VALUE_NONE)
        grad_attention_add(c, a, grad_in_dtype(c, grad_in(c, i), a->dtype, a->precision));
}

/* Adds mask_filter_value to the scores of keys that the mask of input i excludes. */
static void mask_keys(grad_node *c, grad_attention *a, size_t i)
{
    static const int64_t axes[2] = {1, 2};
    const value_id mask = grad_in(c, i);
    value_id counts = mask;
    if (mask == VALUE_NONE) return;
    const int rank = grad_rank(c, i);
    if (rank == 2) counts = grad_unsqueeze(c, mask, 2, axes);
    if (rank == 3) counts = grad_unsqueeze(c, mask, 1, axes);
    if (rank == 4) counts = cut_mask(c, a, mask);
    counts = rank == 1 ? by_lengths(c, a, mask)
                       : GRAD_ADD(c, "Greater", counts, grad_number_of(c, CLG_INT32, 0));
    const double filter = (double)node_float(&c->node, "mask_filter_value", -10000.0f);
    grad_attention_add(c, a,
                       GRAD_ADD(c, "Where", counts, grad_number_of(c, a->precision, 0),
                                grad_number_of(c, a->precision, filter)));
}

/* Excludes the keys after each query; the last query has the position of the last key. */
static void mask_later(grad_node *c, grad_attention *a)
{
    if (!node_int(&c->node, "unidirectional", 0)) return;
    const value_id past =
        GRAD_ADD(c, "Sub", grad_size_along(c, a->k, 2), grad_size_along(c, a->q, 2));
    const value_id last = GRAD_ADD(c, "Add", grad_attention_queries(c, a), past);
    grad_attention_allow(c, a,
                         grad_attention_between(c, grad_attention_keys(c, a), VALUE_NONE, last));
}

/* ---- Attention ------------------------------------------------------------------------------- */

enum { INPUT, WEIGHTS, BIAS, MASK, PAST, ATTENTION_BIAS };

/* Returns keys (0) or values (1) after those of the past, [2, batch, heads, positions, d]. */
static value_id after_past(grad_node *c, value_id v, int64_t which)
{
    if (grad_in(c, PAST) == VALUE_NONE) return v;
    return grad_concat(c, 2, 2, (value_id[]){grad_pick(c, grad_in(c, PAST), 0, which), v});
}

/* Sets the widths of queries, keys and values; refuses where these are not known. */
static bool read_widths(grad_node *c, int64_t out[3])
{
    size_t n;
    const int64_t *sizes = node_ints(&c->node, "qkv_hidden_sizes", &n);
    const shape *w = &grad_fact(c, grad_in(c, WEIGHTS))->dims;
    for (size_t i = 0; i < 3; i++)
        out[i] = n == 3 ? sizes[i] : w->rank == 2 && w->dims[1] > 0 ? w->dims[1] / 3 : 0;
    if (out[0] > 0 && out[1] > 0 && out[2] > 0) return true;
    grad_refuse(c, "the sizes of its weights are not known");
    return false;
}

void grad_pass_microsoft_attention(grad_node *c)
{
    const size_t first = c->graph->n_nodes;
    grad_attention a = describe(c);
    int64_t widths[3];
    if (!read_widths(c, widths)) return;
    value_id all = GRAD_ADD(c, "MatMul", grad_in(c, INPUT), grad_in(c, WEIGHTS));
    if (grad_in(c, BIAS) != VALUE_NONE) all = GRAD_ADD(c, "Add", all, grad_in(c, BIAS));
    value_id *const parts[3] = {&a.q, &a.k, &a.v};
    int64_t at = 0;
    for (size_t i = 0; i < 3; at += widths[i++])
        *parts[i] = grad_split_heads(c, grad_slice(c, all, 2, at, at + widths[i], 1), a.heads);
    a.k = after_past(c, a.k, 0);
    a.v = after_past(c, a.v, 1);
    a.scale = grad_attention_scale(c, &a, (double)node_float(&c->node, "scale", 0));
    mask_keys(c, &a, MASK);
    add_to_scores(c, &a, ATTENTION_BIAS);
    mask_later(c, &a);
    const value_id y = grad_join_heads(c, grad_attend(c, &a));
    const int64_t front = 0;
    value_id present = VALUE_NONE; /* without it keys and values may differ in size */
    if (grad_cotangent(c, 1) != VALUE_NONE)
        present = grad_concat(
            c, 0, 2,
            (value_id[]){grad_unsqueeze(c, a.k, 1, &front), grad_unsqueeze(c, a.v, 1, &front)});
    grad_through(c, first, 2, (value_id[]){y, present});
}

/* ---- MultiHeadAttention ---------------------------------------------------------------------- */

enum { QUERY, KEY, VALUE, QKV_BIAS, KEY_MASK, HEADS_BIAS, PAST_KEY, PAST_VALUE };

/* Returns part `which` of an input [batch, positions, heads, parts, d], as [batch, heads,
 * positions, d]. */
static value_id unpack(grad_node *c, value_id v, int64_t which)
{
    return grad_permute(c, grad_pick(c, v, 3, which), 4, (const int64_t[]){0, 2, 1, 3});
}

/* Returns v [batch, heads, positions, d] plus `width` elements of the bias from `from` on, one for
 * each head and element. */
static value_id with_bias(grad_node *c, const grad_attention *a, value_id v, value_id from,
                          value_id *out_end)
{
    const value_id bias = grad_in(c, QKV_BIAS);
    if (bias == VALUE_NONE) return v;
    const value_id width = GRAD_ADD(c, "Mul", grad_size_along(c, v, 3), grad_list(c, 1, &a->heads));
    *out_end = GRAD_ADD(c, "Add", from, width);
    const value_id part = grad_slice_at(c, bias, 0, from, *out_end);
    return GRAD_ADD(c, "Add", v, grad_reshape(c, part, 3, (const int64_t[]){a->heads, 1, -1}));
}

/* Sets queries, keys and values before the past. */
static void read_multi(grad_node *c, grad_attention *a)
{
    const value_id q = grad_in(c, QUERY), k = grad_in(c, KEY), v = grad_in(c, VALUE);
    const bool by_head = k != VALUE_NONE && v != VALUE_NONE && grad_rank(c, KEY) == 4;
    a->q = k == VALUE_NONE ? unpack(c, q, 0) : grad_split_heads(c, q, a->heads);
    if (k == VALUE_NONE) {
        a->k = unpack(c, q, 1);
        a->v = unpack(c, q, 2);
    } else if (v == VALUE_NONE) {
        a->k = unpack(c, k, 0);
        a->v = unpack(c, k, 1);
    } else {
        a->k = by_head ? k : grad_split_heads(c, k, a->heads);
        a->v = by_head ? v : grad_split_heads(c, v, a->heads);
    }
    value_id at = grad_list(c, 1, &(int64_t){0});
    a->q = with_bias(c, a, a->q, at, &at);
    a->k = with_bias(c, a, a->k, at, &at);
    a->v = with_bias(c, a, a->v, at, &at);
}

void grad_pass_multi_head_attention(grad_node *c)
{
    const size_t first = c->graph->n_nodes;
    grad_attention a = describe(c);
    read_multi(c, &a);
    if (grad_in(c, PAST_KEY) != VALUE_NONE) {
        a.k = grad_concat(c, 2, 2, (value_id[]){grad_in(c, PAST_KEY), a.k});
        a.v = grad_concat(c, 2, 2, (value_id[]){grad_in(c, PAST_VALUE), a.v});
    }
    a.scale = grad_attention_scale(c, &a, (double)node_float(&c->node, "scale", 0));
    mask_keys(c, &a, KEY_MASK);
    add_to_scores(c, &a, HEADS_BIAS);
    mask_later(c, &a);
    const value_id y = grad_join_heads(c, grad_attend(c, &a));
    grad_through(c, first, 3, (value_id[]){y, a.k, a.v});
}

/* ---- GroupQueryAttention --------------------------------------------------------------------- */

enum { GQA_PAST = 3, TOTAL = 6, COS, SIN, POSITION_IDS, SCORE_BIAS, HEAD_SINK };

/* Refuses a cache that may not be empty, or a total length that may differ from the number of
 * queries: the places of new keys would then depend on seqlens_k. */
static void check_prompt(grad_node *c)
{
    const shape *past = &grad_fact(c, grad_in(c, GQA_PAST))->dims,
                *q = &grad_fact(c, grad_in(c, QUERY))->dims;
    const tensor *known = grad_fact(c, grad_in(c, TOTAL))->known;
    const bool has_total = known && known->n_elements == 1, has_queries = q->rank == 3;
    if (grad_in(c, GQA_PAST) != VALUE_NONE && !(past->rank == 4 && past->dims[2] == 0))
        grad_refuse(c, "its past_key may not be empty");
    if (!has_total || !has_queries || q->dims[1] == DIM_UNKNOWN)
        grad_refuse(c, "total_sequence_length or its number of queries is not known");
    else if (tensor_get_int(known, 0) != q->dims[1])
        grad_refuse(c, "total_sequence_length is not the number of its queries");
}

/* Sets queries, keys and values, which may be packed in one input. */
static void read_groups(grad_node *c, grad_attention *a)
{
    const value_id q = grad_in(c, QUERY);
    if (grad_in(c, KEY) != VALUE_NONE) {
        a->q = grad_split_heads(c, q, a->heads);
        a->k = grad_split_heads(c, grad_in(c, KEY), a->kv_heads);
        a->v = grad_split_heads(c, grad_in(c, VALUE), a->kv_heads);
        return;
    }
    const int64_t end = a->heads + 2 * a->kv_heads, k = a->heads, v = a->heads + a->kv_heads;
    const value_id all = grad_split_heads(c, q, end);
    a->q = grad_slice(c, all, 1, 0, k, 1);
    a->k = grad_slice(c, all, 1, k, v, 1);
    a->v = grad_slice(c, all, 1, v, end, 1);
}

/* Rotates queries and keys by their positions. */
static void rotate(grad_node *c, grad_attention *a)
{
    if (!node_int(&c->node, "do_rotary", 0)) return;
    const bool interleaved = node_int(&c->node, "rotary_interleaved", 0) != 0;
    value_id ids = grad_in(c, POSITION_IDS);
    const bool by_batch = ids != VALUE_NONE;
    if (!by_batch) ids = grad_indices(c, grad_size_along(c, a->q, 2));
    const value_id cos = grad_rotary_rows(c, grad_in(c, COS), ids, by_batch),
                   sin = grad_rotary_rows(c, grad_in(c, SIN), ids, by_batch);
    const shape *width = &grad_fact(c, grad_in(c, COS))->dims;
    if (width->rank != 2 || width->dims[1] == DIM_UNKNOWN) {
        grad_refuse(c, "the width of cos_cache is not known");
        return;
    }
    a->q = grad_rotate(c, a->q, cos, sin, 2 * width->dims[1], interleaved);
    a->k = grad_rotate(c, a->k, cos, sin, 2 * width->dims[1], interleaved);
}

void grad_pass_group_query_attention(grad_node *c)
{
    const size_t first = c->graph->n_nodes;
    const int64_t window = node_int(&c->node, "local_window_size", -1), axes[2] = {1, 2};
    grad_attention a = describe(c);
    a.kv_heads = node_int(&c->node, "kv_num_heads", 0);
    a.softcap = (double)node_float(&c->node, "softcap", 0);
    check_prompt(c);
    read_groups(c, &a);
    rotate(c, &a);
    a.scale = grad_attention_scale(c, &a, (double)node_float(&c->node, "scale", 0));
    const value_id last = grad_attention_queries(c, &a);
    const value_id start =
        window > 0 ? GRAD_ADD(c, "Sub", last, grad_list(c, 1, &window)) : VALUE_NONE;
    grad_attention_allow(c, &a, grad_attention_between(c, grad_attention_keys(c, &a), start, last));
    add_to_scores(c, &a, SCORE_BIAS);
    if (grad_in(c, HEAD_SINK) != VALUE_NONE)
        a.sink = grad_in_dtype(c, grad_unsqueeze(c, grad_in(c, HEAD_SINK), 2, axes), a.dtype,
                               a.precision);
    else if (node_int(&c->node, "smooth_softmax", 0) > 0)
        a.sink = grad_number_of(c, a.precision, 0);
    const value_id y = grad_join_heads(c, grad_attend(c, &a));
    grad_through(c, first, 3, (value_id[]){y, a.k, a.v});
}
