/* SPDX-License-Identifier: Apache-2.0
 *
 * Computes attention by MatMul and Softmax, and rotary embedding; the rules of ONNX's Attention, of
 * FlexAttention, and of RotaryEmbedding of both domains.
 */
#include "ops/grad/grad_attention.h"

#include <math.h>
#include <string.h>

/* ---- scaled dot-product attention ------------------------------------------------------------ */

grad_attention grad_attention_of(clg_dtype dtype)
{
    const bool narrow = dtype != CLG_FLOAT32 && dtype != CLG_FLOAT64;
    return (grad_attention){.dtype = dtype,
                            .precision = narrow ? CLG_FLOAT32 : dtype,
                            .added = VALUE_NONE,
                            .allowed = VALUE_NONE,
                            .sink = VALUE_NONE};
}

value_id grad_in_dtype(grad_node *c, value_id v, clg_dtype from, clg_dtype to)
{
    return from == to ? v : grad_cast(c, v, to);
}

value_id grad_split_heads(grad_node *c, value_id v, int64_t heads)
{
    const value_id each =
        GRAD_ADD(c, "Div", grad_size_along(c, v, 2), grad_list(c, 1, &heads)); /* of integers */
    const value_id apart =
        grad_reshape_to(c, v, 4,
                        (value_id[]){grad_size_along(c, v, 0), grad_size_along(c, v, 1),
                                     grad_list(c, 1, &heads), each});
    return grad_permute(c, apart, 4, (const int64_t[]){0, 2, 1, 3});
}

value_id grad_join_heads(grad_node *c, value_id v)
{
    const value_id width = GRAD_ADD(c, "Mul", grad_size_along(c, v, 1), grad_size_along(c, v, 3));
    return grad_reshape_to(c, grad_permute(c, v, 4, (const int64_t[]){0, 2, 1, 3}), 3,
                           (value_id[]){grad_size_along(c, v, 0), grad_size_along(c, v, 2), width});
}

value_id grad_attention_scale(grad_node *c, const grad_attention *a, double number)
{
    if (number != 0) return grad_number_of(c, a->precision, number);
    const value_id size =
        grad_cast(c, GRAD_ADD(c, "Squeeze", grad_size_along(c, a->q, -1)), a->precision);
    return GRAD_ADD(c, "Reciprocal", GRAD_ADD(c, "Sqrt", size));
}

void grad_attention_add(grad_node *c, grad_attention *a, value_id v)
{
    a->added = a->added == VALUE_NONE ? v : GRAD_ADD(c, "Add", a->added, v);
}

void grad_attention_allow(grad_node *c, grad_attention *a, value_id also)
{
    a->allowed = a->allowed == VALUE_NONE ? also : GRAD_ADD(c, "And", a->allowed, also);
}

value_id grad_attention_between(grad_node *c, value_id j, value_id first, value_id last)
{
    const value_id up = last == VALUE_NONE ? VALUE_NONE : GRAD_ADD(c, "LessOrEqual", j, last);
    const value_id down =
        first == VALUE_NONE ? VALUE_NONE : GRAD_ADD(c, "GreaterOrEqual", j, first);
    if (up == VALUE_NONE) return down;
    return down == VALUE_NONE ? up : GRAD_ADD(c, "And", up, down);
}

value_id grad_attention_queries(grad_node *c, const grad_attention *a)
{
    return grad_unsqueeze(c, grad_indices(c, grad_size_along(c, a->q, 2)), 1, (int64_t[]){1});
}

value_id grad_attention_keys(grad_node *c, const grad_attention *a)
{
    return grad_indices(c, grad_size_along(c, a->k, 2));
}

/* Returns keys or values with a head for each of q. */
static value_id repeat_heads(grad_node *c, const grad_attention *a, value_id v)
{
    const int64_t group = a->heads / a->kv_heads, times[5] = {1, 1, group, 1, 1};
    if (group == 1) return v;
    const value_id apart =
        GRAD_ADD(c, "Expand", grad_unsqueeze(c, v, 1, (int64_t[]){2}), grad_list(c, 5, times));
    return grad_reshape_to(c, apart, 4,
                           (value_id[]){grad_size_along(c, v, 0), grad_list(c, 1, &a->heads),
                                        grad_size_along(c, v, 2), grad_size_along(c, v, 3)});
}

/* Returns the products of queries and keys, scaled. */
static value_id scaled_products(grad_node *c, const grad_attention *a)
{
    const value_id k = grad_permute(c, repeat_heads(c, a, a->k), 4, (const int64_t[]){0, 1, 3, 2});
    const value_id products = GRAD_ADD(c, "MatMul", grad_in_dtype(c, a->q, a->dtype, a->precision),
                                       grad_in_dtype(c, k, a->dtype, a->precision));
    return GRAD_ADD(c, "Mul", products, a->scale);
}

/* Returns the sums of values with weights p. */
static value_id weighted_values(grad_node *c, const grad_attention *a, value_id p)
{
    const value_id v = grad_in_dtype(c, repeat_heads(c, a, a->v), a->dtype, a->precision);
    return grad_in_dtype(c, GRAD_ADD(c, "MatMul", p, v), a->precision, a->dtype);
}

/* Returns the softmax of s and of the score of the additional key, without that key's weight. */
static value_id weights_of(grad_node *c, const grad_attention *a, value_id s)
{
    if (a->sink == VALUE_NONE) return grad_set_int(c, GRAD_ADD(c, "Softmax", s), "axis", -1);
    const value_id dims[3] = {grad_size_along(c, s, 0), grad_list(c, 1, &a->heads),
                              grad_size_along(c, s, 2)};
    const value_id shape = grad_concat(
        c, 0, 4, (value_id[]){dims[0], dims[1], dims[2], grad_list(c, 1, (int64_t[]){1})});
    const value_id one = GRAD_ADD(c, "Expand", a->sink, shape);
    const value_id all = grad_concat(c, -1, 2, (value_id[]){s, one});
    return grad_slice(c, grad_set_int(c, GRAD_ADD(c, "Softmax", all), "axis", -1), -1, 0, -1, 1);
}

/* Only -infinity in the mask excludes a key. Large negative numbers are ordinary numbers, as in the
 * kernels: a query for which all masks are -3.4e38 has equal weights. Excluded scores become
 * -infinity, whose weight is 0. If all keys of a query are excluded its softmax is NaN, which the
 * Where after it keeps out of the result, and the one before it out of gradients. */
value_id grad_attend(grad_node *c, grad_attention *a)
{
    const value_id none = grad_number_of(c, a->precision, -INFINITY);
    value_id s = scaled_products(c, a);
    a->scores[0] = s;
    if (a->softcap > 0) {
        const value_id cap = grad_number_of(c, a->precision, a->softcap);
        s = GRAD_ADD(c, "Mul", GRAD_ADD(c, "Tanh", GRAD_ADD(c, "Div", s, cap)), cap);
    }
    a->scores[1] = s;
    if (a->added != VALUE_NONE) {
        grad_attention_allow(c, a, GRAD_ADD(c, "Not", GRAD_ADD(c, "Equal", a->added, none)));
        s = GRAD_ADD(c, "Add", s, a->added);
    }
    if (a->allowed != VALUE_NONE) s = GRAD_ADD(c, "Where", a->allowed, s, none);
    a->scores[2] = s;
    value_id p = weights_of(c, a, s);
    if (a->allowed != VALUE_NONE)
        p = GRAD_ADD(c, "Where", a->allowed, p, grad_number_of(c, a->precision, 0));
    a->scores[3] = p;
    return weighted_values(c, a, p);
}

/* ---- Attention (ONNX 23 to 25) --------------------------------------------------------------- */

enum { Q, K, V, MASK, PAST_KEY, PAST_VALUE, LENGTHS };

/* Returns keys or values after those of the past. */
static value_id with_past(grad_node *c, value_id v, size_t past)
{
    if (grad_in(c, past) == VALUE_NONE) return v;
    return grad_concat(c, 2, 2, (value_id[]){grad_in(c, past), v});
}

static bool check_heads(grad_node *c, const grad_attention *a)
{
    if (a->heads >= 1 && a->kv_heads >= 1 && a->heads % a->kv_heads == 0) return true;
    grad_refuse(c, "its numbers of heads are not known");
    return false;
}

/* Sets queries, keys and values, and the numbers of heads; refuses where these are not known. */
static bool read_heads(grad_node *c, grad_attention *a, bool by_position)
{
    a->heads = by_position ? node_int(&c->node, "q_num_heads", 0)
                           : grad_fact(c, grad_in(c, Q))->dims.dims[1];
    a->kv_heads = by_position ? node_int(&c->node, "kv_num_heads", 0)
                              : grad_fact(c, grad_in(c, K))->dims.dims[1];
    if (!check_heads(c, a)) return false;
    a->q = by_position ? grad_split_heads(c, grad_in(c, Q), a->heads) : grad_in(c, Q);
    a->k = by_position ? grad_split_heads(c, grad_in(c, K), a->kv_heads) : grad_in(c, K);
    a->v = by_position ? grad_split_heads(c, grad_in(c, V), a->kv_heads) : grad_in(c, V);
    a->k = with_past(c, a->k, PAST_KEY);
    a->v = with_past(c, a->v, PAST_VALUE);
    return true;
}

/* Returns the lengths as [batch, 1, 1, 1]; VALUE_NONE without. */
static value_id lengths_of(grad_node *c)
{
    if (grad_in(c, LENGTHS) == VALUE_NONE) return VALUE_NONE;
    return grad_unsqueeze(c, grad_in(c, LENGTHS), 3, (int64_t[]){1, 2, 3});
}

/* Restricts keys to a window around the position of each query. Positions follow those of the past,
 * or end at the last valid key. */
static void allow_window(grad_node *c, grad_attention *a, value_id lengths)
{
    const int64_t left = node_int(&c->node, "left_window_size", -1);
    int64_t right = node_int(&c->node, "right_window_size", -1);
    if (node_int(&c->node, "is_causal", 0)) right = 0;
    if (left < 0 && right < 0) return;
    value_id at = grad_attention_queries(c, a);
    if (grad_in(c, PAST_KEY) != VALUE_NONE)
        at = GRAD_ADD(c, "Add", at, grad_size_along(c, grad_in(c, PAST_KEY), 2));
    else if (lengths != VALUE_NONE)
        at = GRAD_ADD(c, "Add", at, GRAD_ADD(c, "Sub", lengths, grad_size_along(c, a->q, 2)));
    const value_id first = left < 0 ? VALUE_NONE : GRAD_ADD(c, "Sub", at, grad_list(c, 1, &left));
    const value_id last = right < 0 ? VALUE_NONE : GRAD_ADD(c, "Add", at, grad_list(c, 1, &right));
    grad_attention_allow(c, a, grad_attention_between(c, grad_attention_keys(c, a), first, last));
}

/* Returns the mask, padded to the number of keys where it is shorter: the keys after its last one
 * are excluded. A mask of size 1 is broadcast. */
static value_id mask_of(grad_node *c, const grad_attention *a)
{
    const value_id mask = grad_in(c, MASK), zero = grad_list(c, 1, &(int64_t){0}),
                   one = grad_list(c, 1, &(int64_t){1}), last = grad_list(c, 1, &(int64_t){-1});
    const value_fact *fact = grad_fact(c, mask);
    const shape *k = &grad_fact(c, grad_in(c, K))->dims;
    const int64_t width = fact->dims.rank > 0 ? fact->dims.dims[fact->dims.rank - 1] : DIM_UNKNOWN;
    const bool is_whole = width == k->dims[k->rank == 3 ? 1 : 2] && width != DIM_UNKNOWN &&
                          grad_in(c, PAST_KEY) == VALUE_NONE;
    const bool is_bool = fact->dtype == CLG_BOOL;
    const value_id v = is_bool ? mask : grad_in_dtype(c, mask, fact->dtype, a->precision);
    if (width == 1 || is_whole) return v;
    const value_id there = grad_size_along(c, mask, -1);
    value_id missing = GRAD_ADD(c, "Sub", grad_size_along(c, a->k, 2), there);
    missing = GRAD_ADD(c, "Where", GRAD_ADD(c, "Equal", there, one), zero, missing);
    return grad_of_opset(
        c,
        GRAD_ADD(c, "Pad", v, grad_concat(c, 0, 2, (value_id[]){zero, missing}),
                 grad_number_of(c, is_bool ? CLG_BOOL : a->precision, is_bool ? 0 : -INFINITY),
                 last),
        18);
}

/* Returns output 3, the scores of its mode, in the node's dtype. */
static value_id scores_of(grad_node *c, const grad_attention *a)
{
    const int64_t mode = node_int(&c->node, "qk_matmul_output_mode", 0);
    if (grad_cotangent(c, 3) == VALUE_NONE) return VALUE_NONE;
    return grad_in_dtype(c, a->scores[mode >= 0 && mode < 4 ? mode : 0], a->precision, a->dtype);
}

void grad_pass_attention(grad_node *c)
{
    const size_t first = c->graph->n_nodes;
    const int rank = grad_rank(c, Q);
    grad_attention a = grad_attention_of(grad_fact(c, grad_in(c, Q))->dtype);
    a.softcap = (double)node_float(&c->node, "softcap", 0);
    if (grad_rank(c, K) != rank || c->status != CLG_OK || !read_heads(c, &a, rank == 3)) return;
    const bool has_scale = node_attribute(&c->node, "scale") != NULL;
    const double scale = (double)node_float(&c->node, "scale", 0);
    a.scale = has_scale ? grad_number_of(c, a.precision, scale) : grad_attention_scale(c, &a, 0);
    const value_id lengths = lengths_of(c);
    allow_window(c, &a, lengths);
    if (grad_in(c, MASK) != VALUE_NONE) {
        if (grad_fact(c, grad_in(c, MASK))->dtype == CLG_BOOL)
            grad_attention_allow(c, &a, mask_of(c, &a));
        else
            a.added = mask_of(c, &a);
    }
    if (lengths != VALUE_NONE)
        grad_attention_allow(c, &a, GRAD_ADD(c, "Less", grad_attention_keys(c, &a), lengths));
    value_id y = grad_attend(c, &a);
    if (rank == 3) y = grad_join_heads(c, y);
    grad_through(c, first, 4, (value_id[]){y, a.k, a.v, scores_of(c, &a)});
}

/* ---- FlexAttention --------------------------------------------------------------------------- */

/* Notes whether a value that a subgraph captures needs a gradient. */
typedef struct captures {
    const grad_node *node;
    bool depends;
} captures;

static void note_capture(void *user, value_id v)
{
    captures *w = user;
    bool is_input = false;
    for (size_t i = 0; i < w->node->node.n_inputs; i++)
        is_input = is_input || grad_in(w->node, i) == v;
    w->depends = w->depends || (!is_input && grad_depends(w->node->values, v));
}

/* Returns the result of the graph in an attribute, applied to v; v if there is no such graph. */
static value_id modified(grad_node *c, const char *name, value_id v)
{
    const graph_attribute *graph_of = node_attribute(&c->node, name);
    value_id made = v;
    if (graph_of && c->status == CLG_OK)
        c->status = graph_inline(c->graph, graph_of->as.graph, &v, &made);
    return made;
}

void grad_pass_flex_attention(grad_node *c)
{
    const size_t first = c->graph->n_nodes;
    captures captured = {.node = c};
    grad_attention a = grad_attention_of(grad_fact(c, grad_in(c, Q))->dtype);
    a.precision = (clg_dtype)node_int(&c->node, "softmax_precision", a.precision);
    node_visit_uses(&c->node, note_capture, &captured);
    if (captured.depends)
        grad_refuse(
            c, "score_mod or prob_mod captures a value that depends on the inputs of the gradient");
    if (grad_rank(c, Q) != 4 || grad_rank(c, K) != 4 || !read_heads(c, &a, false)) return;
    a.scale = node_attribute(&c->node, "scale")
                  ? grad_number_of(c, a.precision, (double)node_float(&c->node, "scale", 1))
                  : grad_attention_scale(c, &a, 0);
    value_id s = modified(c, "score_mod", scaled_products(c, &a));
    s = modified(c, "prob_mod", weights_of(c, &a, s));
    const value_id y = weighted_values(c, &a, s);
    grad_through(c, first, 1, &y);
}

/* ---- rotary embedding: pairs of elements are rotated by the angles of their positions ------- */

value_id grad_rotary_rows(grad_node *c, value_id cache, value_id ids, bool by_batch)
{
    const value_id rows = ids == VALUE_NONE ? cache : GRAD_ADD(c, "Gather", cache, ids);
    return by_batch ? grad_unsqueeze(c, rows, 1, (const int64_t[]){1}) : rows;
}

/* Returns the elements of x, [batch, heads, positions, n], that are first (0) or second (1) in
 * their pairs. */
static value_id half_of(grad_node *c, value_id x, int64_t rotated, bool interleaved, int64_t which)
{
    if (interleaved) return grad_slice(c, x, 3, which, rotated, 2);
    const int64_t from = which * rotated / 2;
    return grad_slice(c, x, 3, from, from + rotated / 2, 1);
}

value_id grad_rotate(grad_node *c, value_id x, value_id cos, value_id sin, int64_t rotated,
                     bool interleaved)
{
    const value_id a = half_of(c, x, rotated, interleaved, 0),
                   b = half_of(c, x, rotated, interleaved, 1);
    value_id first = GRAD_ADD(c, "Sub", GRAD_ADD(c, "Mul", a, cos), GRAD_ADD(c, "Mul", b, sin));
    value_id second = GRAD_ADD(c, "Add", GRAD_ADD(c, "Mul", b, cos), GRAD_ADD(c, "Mul", a, sin));
    const value_id rest = grad_slice(c, x, 3, rotated, INT64_MAX, 1);
    if (!interleaved) return grad_concat(c, 3, 3, (value_id[]){first, second, rest});
    first = grad_unsqueeze(c, first, 1, (const int64_t[]){4});
    second = grad_unsqueeze(c, second, 1, (const int64_t[]){4});
    const value_id pairs = grad_concat(c, 4, 2, (value_id[]){first, second});
    const value_id turned = grad_reshape(c, pairs, 4, (const int64_t[]){0, 0, 0, rotated});
    return grad_concat(c, 3, 2, (value_id[]){turned, rest});
}

/* Returns the positions: input i, or, where that is one number, the positions from it on. */
static value_id positions_of(grad_node *c, size_t i, value_id x, bool *by_batch)
{
    const value_id ids = grad_in(c, i);
    *by_batch = true;
    if (ids == VALUE_NONE || grad_rank(c, i) == 2) return ids;
    *by_batch = false;
    return GRAD_ADD(c, "Add", grad_indices(c, grad_size_along(c, x, 2)), ids);
}

void grad_pass_rotary(grad_node *c)
{
    const size_t first = c->graph->n_nodes;
    const bool is_microsoft = strcmp(c->node.domain, "com.microsoft") == 0;
    const size_t at_ids = is_microsoft ? 1 : 3, at_cos = is_microsoft ? 2 : 1;
    const shape *dims = &grad_fact(c, grad_in(c, 0))->dims,
                *cache = &grad_fact(c, grad_in(c, at_cos))->dims;
    const int rank = grad_rank(c, 0);
    int64_t rotated = node_int(&c->node, "rotary_embedding_dim", 0),
            heads = node_int(&c->node, "num_heads", 0);
    if (rotated == 0 && cache->rank > 0 && cache->dims[cache->rank - 1] > 0)
        rotated = 2 * cache->dims[cache->rank - 1];
    if (rank == 3 && heads == 0 && rotated > 0 && dims->dims[2] > 0)
        heads = dims->dims[2] / rotated;
    if (rotated <= 0 || (rank == 3 && heads < 1)) {
        grad_refuse(c, "the sizes of its heads are not known");
        return;
    }
    bool by_batch;
    const value_id x = rank == 3 ? grad_split_heads(c, grad_in(c, 0), heads) : grad_in(c, 0);
    const value_id ids = positions_of(c, at_ids, x, &by_batch);
    const value_id cos = grad_rotary_rows(c, grad_in(c, at_cos), ids, by_batch),
                   sin = grad_rotary_rows(c, grad_in(c, at_cos + 1), ids, by_batch);
    const bool interleaved = node_int(&c->node, "interleaved", 0) != 0;
    value_id y = grad_rotate(c, x, cos, sin, rotated, interleaved);
    if (rank == 3) y = grad_join_heads(c, y);
    grad_through(c, first, 1, &y);
}
