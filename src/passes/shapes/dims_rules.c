/* SPDX-License-Identifier: Apache-2.0
 *
 * Tables of operators: how the dimensions of the outputs follow from those of the inputs. An
 * operator without a row has open dimensions where inference does not know them. A row must hold in
 * every run that is valid.
 */
#include "base/checked.h"
#include "ops/pointwise/pointwise.h"
#include "passes/shapes/rule_inputs.h"
#include "passes/shapes/size_products.h"

#include <string.h>

/* A rule sets the dimensions of output o, `rank` of them. */
typedef void (*dims_rule)(shape_terms *s, const node *n, size_t o, int rank, size_term *dims);

/* The dimensions of input 0. */
static void dims_same(shape_terms *s, const node *n, size_t o, int rank, size_term *dims)
{
    const value_terms *x = rule_input(s, n, 0);
    (void)o;
    if (x->dims && rule_rank(s, n->inputs[0]) == rank)
        memcpy(dims, x->dims, (size_t)rank * sizeof *dims);
}

/* The first dimension of input 0. */
static void dims_first(shape_terms *s, const node *n, size_t o, int rank, size_term *dims)
{
    const value_terms *x = rule_input(s, n, 0);
    (void)o;
    if (x->dims && rank > 0 && rule_rank(s, n->inputs[0]) > 0) dims[0] = x->dims[0];
}

/* The first dimension of input 0, and those along which a window moves by one with padding that
 * makes up for its size. */
static void dims_window(shape_terms *s, const node *n, size_t o, int rank, size_term *dims)
{
    size_t n_sizes, n_strides, n_dilations, n_pads;
    const int64_t *sizes = node_ints(n, "kernel_shape", &n_sizes),
                  *strides = node_ints(n, "strides", &n_strides),
                  *dilations = node_ints(n, "dilations", &n_dilations),
                  *pads = node_ints(n, "pads", &n_pads);
    const value_terms *x = rule_input(s, n, 0);
    const char *automatic = node_string(n, "auto_pad", "NOTSET");
    const size_t n_axes = rank > 2 ? (size_t)rank - 2 : 0;
    dims_first(s, n, o, rank, dims);
    if (!x->dims || rule_rank(s, n->inputs[0]) != rank || (sizes && n_sizes != n_axes) ||
        (strides && n_strides != n_axes) || (dilations && n_dilations != n_axes) ||
        (pads && n_pads != 2 * n_axes))
        return;
    for (size_t i = 0; i < n_axes; i++) {
        int64_t size = sizes ? sizes[i] : 0, pad = pads ? pads[i] : 0, reach;
        if (strides && strides[i] != 1) continue;
        if (!sizes && (!node_has_input(n, 1) || rule_rank(s, n->inputs[1]) != rank ||
                       !shape_terms_dim_is(s, n->inputs[1], (int)i + 2, &size)))
            continue;
        if (size < 1 || (pads && !checked_add_i64(pad, pads[n_axes + i], &pad)) ||
            !checked_mul_i64(size - 1, dilations ? dilations[i] : 1, &reach))
            continue;
        const bool is_same = strncmp(automatic, "SAME_", 5) == 0;
        if (is_same || (strcmp(automatic, "NOTSET") == 0 && pad == reach))
            dims[i + 2] = x->dims[i + 2];
    }
}

/* The rows of input 0: its dimensions but for the last. */
static void dims_rows(shape_terms *s, const node *n, size_t o, int rank, size_term *dims)
{
    const value_terms *x = rule_input(s, n, 0);
    (void)o;
    if (!x->dims || rank < 1 || rule_rank(s, n->inputs[0]) != rank) return;
    memcpy(dims, x->dims, (size_t)(rank - 1) * sizeof *dims);
}

/* The products of the dimensions before an axis, and from it on. */
static void dims_flatten(shape_terms *s, const node *n, size_t o, int rank, size_term *dims)
{
    const value_terms *x = rule_input(s, n, 0);
    (void)o;
    if (!x->dims || rank != 2) return;
    const int rank_x = rule_rank(s, n->inputs[0]);
    int64_t axis = node_int(n, "axis", 1);
    if (axis < 0) axis += rank_x;
    if (axis < 0 || axis > rank_x) return;
    dims[0] = dims[1] = size_terms_number(&s->terms, 1);
    for (int i = 0; i < rank_x; i++)
        dims[i >= axis] = size_product_of(&s->terms, dims[i >= axis], x->dims[i]);
}

/* Combines a dimension with another one to which it is broadcast. Returns false where the result is
 * not known: one of them may be 1. */
static bool broadcast(const shape_terms *s, size_term *dim, size_term with)
{
    int64_t a = 0, b = 0;
    const bool is_a = size_terms_is_number(&s->terms, *dim, &a),
               is_b = size_terms_is_number(&s->terms, with, &b);
    if (*dim == with || (is_b && b == 1) || (is_a && a > 1)) return true;
    if ((is_a && a == 1) || (is_b && b > 1)) {
        *dim = with;
        return true;
    }
    return false;
}

/* Sets the first n of the output's dimensions to those of these inputs, broadcast; of each of which
 * the last `left` dimensions do not count. */
static void broadcast_inputs(shape_terms *s, const node *n, const size_t *which, size_t n_which,
                             int n_dims, int left, size_term *dims)
{
    for (size_t k = 0; k < n_which; k++)
        if (node_has_input(n, which[k]) && !rule_input(s, n, which[k])->dims) return;
    for (int d = 0; d < n_dims; d++) {
        size_term dim = size_terms_number(&s->terms, 1);
        bool known = true;
        for (size_t k = 0; k < n_which && known; k++) {
            if (!node_has_input(n, which[k])) continue;
            const int at = d - (n_dims - (rule_rank(s, n->inputs[which[k]]) - left));
            if (at >= 0) known = broadcast(s, &dim, rule_input(s, n, which[k])->dims[at]);
        }
        if (known) dims[d] = dim;
    }
}

static void dims_pointwise(shape_terms *s, const node *n, size_t o, int rank, size_term *dims)
{
    size_t all[POINTWISE_MAX_INPUTS];
    (void)o;
    if (n->n_inputs > POINTWISE_MAX_INPUTS) return;
    for (size_t i = 0; i < n->n_inputs; i++) all[i] = i;
    broadcast_inputs(s, n, all, n->n_inputs, rank, 0, dims);
}

static void dims_matmul(shape_terms *s, const node *n, size_t o, int rank, size_term *dims)
{
    const value_terms *a = rule_input(s, n, 0), *b = rule_input(s, n, 1);
    (void)o;
    if (!a->dims || !b->dims || rank < 2) return;
    const int rank_a = rule_rank(s, n->inputs[0]), rank_b = rule_rank(s, n->inputs[1]);
    if (rank_a < 2 || rank_b < 2) return;
    broadcast_inputs(s, n, (const size_t[]){0, 1}, 2, rank - 2, 2, dims);
    dims[rank - 2] = a->dims[rank_a - 2];
    dims[rank - 1] = b->dims[rank_b - 1];
}

static void dims_gemm(shape_terms *s, const node *n, size_t o, int rank, size_term *dims)
{
    const value_terms *a = rule_input(s, n, 0), *b = rule_input(s, n, 1);
    (void)o;
    if (rank != 2) return;
    if (a->dims && rule_rank(s, n->inputs[0]) == 2)
        dims[0] = a->dims[node_int(n, "transA", 0) != 0];
    if (b->dims && rule_rank(s, n->inputs[1]) == 2)
        dims[1] = b->dims[node_int(n, "transB", 0) == 0];
}

static void dims_transpose(shape_terms *s, const node *n, size_t o, int rank, size_term *dims)
{
    size_t count;
    const int64_t *perm = node_ints(n, "perm", &count);
    const value_terms *x = rule_input(s, n, 0);
    (void)o;
    if (!x->dims || rule_rank(s, n->inputs[0]) != rank || (perm && count != (size_t)rank)) return;
    for (int i = 0; i < rank; i++) {
        const int64_t from = perm ? perm[i] : rank - 1 - i;
        if (from >= 0 && from < rank) dims[i] = x->dims[from];
    }
}

static void dims_concat(shape_terms *s, const node *n, size_t o, int rank, size_term *dims)
{
    int axis;
    (void)o;
    for (size_t i = 0; i < n->n_inputs; i++)
        if (!rule_input(s, n, i)->dims || rule_rank(s, n->inputs[i]) != rank) return;
    if (n->n_inputs == 0 || !rule_axis(n, n->opset < 4 ? 1 : 0, rank, &axis)) return;
    size_term sum = rule_input(s, n, 0)->dims[axis];
    for (size_t i = 1; i < n->n_inputs; i++)
        sum = size_terms_apply(&s->terms, TERM_ADD, sum, rule_input(s, n, i)->dims[axis]);
    for (int i = 0; i < rank; i++) dims[i] = i == axis ? sum : rule_input(s, n, 0)->dims[i];
}

/* All dimensions but one. */
static void dims_split(shape_terms *s, const node *n, size_t o, int rank, size_term *dims)
{
    int axis;
    const value_terms *x = rule_input(s, n, 0);
    (void)o;
    if (!x->dims || rule_rank(s, n->inputs[0]) != rank || !rule_axis(n, 0, rank, &axis)) return;
    for (int i = 0; i < rank; i++)
        if (i != axis) dims[i] = x->dims[i];
}

/* The dimensions that are not sliced. */
static void dims_slice(shape_terms *s, const node *n, size_t o, int rank, size_term *dims)
{
    uint32_t axes;
    const value_terms *x = rule_input(s, n, 0);
    (void)o;
    if (!x->dims || rule_rank(s, n->inputs[0]) != rank || !rule_axes(s, n, 3, rank, &axes)) return;
    for (int i = 0; i < rank; i++)
        if (!(axes & 1u << i)) dims[i] = x->dims[i];
}

static void dims_gather(shape_terms *s, const node *n, size_t o, int rank, size_term *dims)
{
    int axis;
    const value_terms *x = rule_input(s, n, 0), *at = rule_input(s, n, 1);
    (void)o;
    if (!x->dims || !at->dims) return;
    const int rank_x = rule_rank(s, n->inputs[0]), rank_at = rule_rank(s, n->inputs[1]);
    if (rank != rank_x - 1 + rank_at || !rule_axis(n, 0, rank_x, &axis)) return;
    for (int i = 0; i < axis; i++) dims[i] = x->dims[i];
    for (int i = 0; i < rank_at; i++) dims[axis + i] = at->dims[i];
    for (int i = axis + 1; i < rank_x; i++) dims[i - 1 + rank_at] = x->dims[i];
}

static void dims_unsqueeze(shape_terms *s, const node *n, size_t o, int rank, size_term *dims)
{
    uint32_t axes;
    const value_terms *x = rule_input(s, n, 0);
    int from = 0;
    (void)o;
    if (!x->dims || !rule_axes(s, n, 1, rank, &axes)) return;
    for (int i = 0; i < rank; i++) {
        if (axes & 1u << i)
            dims[i] = size_terms_number(&s->terms, 1);
        else if (from < rule_rank(s, n->inputs[0]))
            dims[i] = x->dims[from++];
    }
}

static void dims_squeeze(shape_terms *s, const node *n, size_t o, int rank, size_term *dims)
{
    uint32_t axes;
    const value_terms *x = rule_input(s, n, 0);
    int to = 0;
    (void)o;
    if (!x->dims || !rule_axes(s, n, 1, rule_rank(s, n->inputs[0]), &axes)) return;
    for (int i = 0; i < rule_rank(s, n->inputs[0]); i++)
        if (!(axes & 1u << i) && to < rank) dims[to++] = x->dims[i];
}

/* Returns the number of elements of v, whose rank is known. */
static size_product count_of(const shape_terms *s, value_id v)
{
    size_product count = SIZE_PRODUCT_ONE;
    for (int i = 0; i < rule_rank(s, v); i++)
        size_product_multiply(&s->terms, &count, s->values[v].dims[i]);
    return count;
}

size_term shape_rules_left(shape_terms *s, value_id v, const size_term *to, int rank, int open)
{
    if (!s->values[v].dims) return SIZE_TERM_NONE;
    size_product given = count_of(s, v), requested = SIZE_PRODUCT_ONE;
    for (int i = 0; i < rank; i++)
        if (i != open) size_product_multiply(&s->terms, &requested, to[i]);
    for (size_t i = 0; i < requested.n; i++)
        if (!size_product_divide(&given, requested.terms[i])) return SIZE_TERM_NONE;
    if (given.exceeded || requested.exceeded || requested.number <= 0 ||
        given.number % requested.number != 0)
        return SIZE_TERM_NONE;
    given.number /= requested.number;
    return size_product_term(&s->terms, given);
}

/* Returns whether a requested size is the dimension of the result. It is not where it is 0 in a run
 * and copies a dimension that is not: then x must be without elements, as it is if the size is a
 * factor of x's dimensions. What such a run gives has no elements either. */
static bool is_requested(const shape_terms *s, value_id x, size_term size, bool copies)
{
    if (!size_terms_is_size(&s->terms, size)) return false;
    if (!copies) return true;
    if (!s->values[x].dims) return false;
    const size_product given = count_of(s, x);
    return size_product_has(&s->terms, &given, size);
}

/* A requested 0 copies a dimension, and -1 is what is left. */
static void dims_reshape(shape_terms *s, const node *n, size_t o, int rank, size_term *dims)
{
    const value_terms *x = rule_input(s, n, 0), *to = rule_input(s, n, 1);
    const bool copies = node_int(n, "allowzero", 0) == 0;
    int open = -1;
    (void)o;
    if (!to->elements || to->n_elements != (size_t)rank) return;
    for (int i = 0; i < rank; i++) {
        int64_t number = 1;
        const bool is_number = size_terms_is_number(&s->terms, to->elements[i], &number);
        if (is_number && number == -1)
            open = i;
        else if (is_number ? number > 0 : is_requested(s, n->inputs[0], to->elements[i], copies))
            dims[i] = to->elements[i];
        else if (is_number && copies && x->dims && i < rule_rank(s, n->inputs[0]))
            dims[i] = x->dims[i];
    }
    if (open >= 0) dims[open] = shape_rules_left(s, n->inputs[0], dims, rank, open);
}

static void dims_reduce(shape_terms *s, const node *n, size_t o, int rank, size_term *dims)
{
    uint32_t axes;
    const value_terms *x = rule_input(s, n, 0);
    const bool kept = node_int(n, "keepdims", 1) != 0;
    int to = 0;
    (void)o;
    if (!x->dims || !rule_axes(s, n, 1, rule_rank(s, n->inputs[0]), &axes) || axes == 0) return;
    for (int i = 0; i < rule_rank(s, n->inputs[0]) && to < rank; i++) {
        if (!(axes & 1u << i))
            dims[to++] = x->dims[i];
        else if (kept)
            dims[to++] = size_terms_number(&s->terms, 1);
    }
}

/* Rules of ONNX's default domain. */
static const struct {
    const char *op_type;
    dims_rule rule;
} dims_rules[] = {
    {"Attention", dims_rows},
    {"AveragePool", dims_window},
    {"BatchNormalization", dims_same},
    {"Concat", dims_concat},
    {"Conv", dims_window},
    {"ConvTranspose", dims_first},
    {"CumSum", dims_same},
    {"Dropout", dims_same},
    {"Flatten", dims_flatten},
    {"Gather", dims_gather},
    {"Gemm", dims_gemm},
    {"GlobalAveragePool", dims_first},
    {"GlobalMaxPool", dims_first},
    {"GroupNormalization", dims_same},
    {"Identity", dims_same},
    {"InstanceNormalization", dims_same},
    {"LRN", dims_same},
    {"LayerNormalization", dims_same},
    {"LogSoftmax", dims_same},
    {"MatMul", dims_matmul},
    {"MaxPool", dims_window},
    {"RMSNormalization", dims_same},
    {"ReduceMax", dims_reduce},
    {"ReduceMean", dims_reduce},
    {"ReduceMin", dims_reduce},
    {"ReduceSum", dims_reduce},
    {"Reshape", dims_reshape},
    {"Slice", dims_slice},
    {"Softmax", dims_same},
    {"Split", dims_split},
    {"Squeeze", dims_squeeze},
    {"Transpose", dims_transpose},
    {"Unsqueeze", dims_unsqueeze},
};

/* Rules of other domains. */
static const struct {
    const char *domain, *op_type;
    dims_rule rule;
} other_dims_rules[] = {
    {"com.microsoft", "GroupQueryAttention", dims_rows},
    {"com.microsoft", "MatMulNBits", dims_rows},
    {"com.microsoft", "MultiHeadAttention", dims_rows},
    {"com.microsoft", "SkipLayerNormalization", dims_same},
    {"com.microsoft", "SkipSimplifiedLayerNormalization", dims_same},
    {DOMAIN_INTERNAL, "MatMulNBits", dims_rows},
};

static dims_rule find_rule(const node *n)
{
    if (pointwise_is(n)) return pointwise_broadcasts(n) ? dims_pointwise : dims_same;
    for (size_t i = 0; !n->domain[0] && i < sizeof dims_rules / sizeof *dims_rules; i++)
        if (strcmp(n->op_type, dims_rules[i].op_type) == 0) return dims_rules[i].rule;
    for (size_t i = 0; n->domain[0] && i < sizeof other_dims_rules / sizeof *other_dims_rules; i++)
        if (strcmp(n->op_type, other_dims_rules[i].op_type) == 0 &&
            strcmp(n->domain, other_dims_rules[i].domain) == 0)
            return other_dims_rules[i].rule;
    return NULL;
}

void shape_rules_dims(shape_terms *s, const node *n, size_t o, size_term *dims)
{
    const dims_rule rule = n->op ? find_rule(n) : NULL;
    if (rule && (o == 0 || rule == dims_split)) rule(s, n, o, rule_rank(s, n->outputs[o]), dims);
}
