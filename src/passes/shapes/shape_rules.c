/* SPDX-License-Identifier: Apache-2.0
 *
 * Tables of operators: how the dimensions of the outputs, and the elements of outputs that are
 * shape arithmetic, follow from those of the inputs. An operator without a row has open dimensions
 * where inference does not know them. A row must hold in every run that is valid.
 */
#include "base/checked.h"
#include "ops/pointwise/pointwise.h"
#include "passes/shapes/shape_terms.h"

#include <string.h>

/* ---- what rules read ------------------------------------------------------------------------- */

static const value_terms *input(const shape_terms *s, const node *n, size_t i)
{
    static const value_terms absent;
    return node_has_input(n, i) ? &s->values[n->inputs[i]] : &absent;
}

static int rank_of(const shape_terms *s, value_id v) { return s->info.facts[v].dims.rank; }

/* Reads integers from an attribute or, where the node has none of this name, from an input. Returns
 * false unless all are known, and at most SHAPE_MAX_ELEMENTS. */
static bool read_ints(const shape_terms *s, const node *n, const char *name, size_t i,
                      int64_t *out_values, size_t *out_n)
{
    const int64_t *given = node_ints(n, name, out_n);
    const value_terms *x = input(s, n, i);
    if (given) {
        if (*out_n > SHAPE_MAX_ELEMENTS) return false;
        memcpy(out_values, given, *out_n * sizeof *given);
        return true;
    }
    *out_n = x->n_elements;
    if (!x->elements) return false;
    for (size_t k = 0; k < x->n_elements; k++)
        if (!size_terms_is_number(&s->terms, x->elements[k], &out_values[k])) return false;
    return true;
}

/* Reads axes as bits, for a value of this rank. Returns false unless all are known and valid. */
static bool read_axes(const shape_terms *s, const node *n, size_t i, int rank, uint32_t *out_bits)
{
    int64_t axes[SHAPE_MAX_ELEMENTS];
    size_t count;
    *out_bits = 0;
    if (!read_ints(s, n, "axes", i, axes, &count)) return false;
    for (size_t k = 0; k < count; k++) {
        if (axes[k] < -rank || axes[k] >= rank) return false;
        *out_bits |= 1u << (axes[k] < 0 ? axes[k] + rank : axes[k]);
    }
    return true;
}

/* Reads the attribute `axis`, from 0 on. Returns false for one that the rank does not have. */
static bool read_axis(const node *n, int64_t fallback, int rank, int *out_axis)
{
    int64_t axis = node_int(n, "axis", fallback);
    if (axis < 0) axis += rank;
    *out_axis = (int)axis;
    return axis >= 0 && axis < rank;
}

/* Returns a number from start to end as Python's slices take it. */
static int64_t clamp(int64_t at, int64_t size, int64_t least, int64_t most)
{
    if (at < 0) at += size;
    return at < least ? least : at > most ? most : at;
}

/* ---- dimensions ------------------------------------------------------------------------------ */

/* A rule sets the dimensions of output o, `rank` of them. */
typedef void (*dims_rule)(shape_terms *s, const node *n, size_t o, int rank, size_term *dims);

/* The dimensions of input 0. */
static void dims_same(shape_terms *s, const node *n, size_t o, int rank, size_term *dims)
{
    const value_terms *x = input(s, n, 0);
    (void)o;
    if (x->dims && rank_of(s, n->inputs[0]) == rank)
        memcpy(dims, x->dims, (size_t)rank * sizeof *dims);
}

/* The first dimension of input 0. */
static void dims_first(shape_terms *s, const node *n, size_t o, int rank, size_term *dims)
{
    const value_terms *x = input(s, n, 0);
    (void)o;
    if (x->dims && rank > 0 && rank_of(s, n->inputs[0]) > 0) dims[0] = x->dims[0];
}

/* The first dimension of input 0, and those along which a window moves by one with padding that makes
 * up for its size. */
static void dims_window(shape_terms *s, const node *n, size_t o, int rank, size_term *dims)
{
    size_t n_sizes, n_strides, n_dilations, n_pads;
    const int64_t *sizes = node_ints(n, "kernel_shape", &n_sizes),
                  *strides = node_ints(n, "strides", &n_strides),
                  *dilations = node_ints(n, "dilations", &n_dilations),
                  *pads = node_ints(n, "pads", &n_pads);
    const value_terms *x = input(s, n, 0);
    const char *automatic = node_string(n, "auto_pad", "NOTSET");
    const size_t n_axes = rank > 2 ? (size_t)rank - 2 : 0;
    dims_first(s, n, o, rank, dims);
    if (!x->dims || rank_of(s, n->inputs[0]) != rank || (sizes && n_sizes != n_axes) ||
        (strides && n_strides != n_axes) || (dilations && n_dilations != n_axes) ||
        (pads && n_pads != 2 * n_axes))
        return;
    for (size_t i = 0; i < n_axes; i++) {
        int64_t size = sizes ? sizes[i] : 0, pad = pads ? pads[i] : 0, reach;
        if (strides && strides[i] != 1) continue;
        if (!sizes && (!node_has_input(n, 1) || rank_of(s, n->inputs[1]) != rank ||
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
    const value_terms *x = input(s, n, 0);
    (void)o;
    if (!x->dims || rank < 1 || rank_of(s, n->inputs[0]) != rank) return;
    memcpy(dims, x->dims, (size_t)(rank - 1) * sizeof *dims);
}

/* The products of the dimensions before an axis, and from it on. */
static void dims_flatten(shape_terms *s, const node *n, size_t o, int rank, size_term *dims)
{
    const value_terms *x = input(s, n, 0);
    (void)o;
    if (!x->dims || rank != 2) return;
    const int rank_x = rank_of(s, n->inputs[0]);
    int64_t axis = node_int(n, "axis", 1);
    if (axis < 0) axis += rank_x;
    if (axis < 0 || axis > rank_x) return;
    dims[0] = dims[1] = size_terms_number(&s->terms, 1);
    for (int i = 0; i < rank_x; i++)
        dims[i >= axis] = size_terms_apply(&s->terms, TERM_MUL, dims[i >= axis], x->dims[i]);
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
        if (node_has_input(n, which[k]) && !input(s, n, which[k])->dims) return;
    for (int d = 0; d < n_dims; d++) {
        size_term dim = size_terms_number(&s->terms, 1);
        bool known = true;
        for (size_t k = 0; k < n_which && known; k++) {
            if (!node_has_input(n, which[k])) continue;
            const int at = d - (n_dims - (rank_of(s, n->inputs[which[k]]) - left));
            if (at >= 0) known = broadcast(s, &dim, input(s, n, which[k])->dims[at]);
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
    const value_terms *a = input(s, n, 0), *b = input(s, n, 1);
    (void)o;
    if (!a->dims || !b->dims || rank < 2) return;
    const int rank_a = rank_of(s, n->inputs[0]), rank_b = rank_of(s, n->inputs[1]);
    if (rank_a < 2 || rank_b < 2) return;
    broadcast_inputs(s, n, (const size_t[]){0, 1}, 2, rank - 2, 2, dims);
    dims[rank - 2] = a->dims[rank_a - 2];
    dims[rank - 1] = b->dims[rank_b - 1];
}

static void dims_gemm(shape_terms *s, const node *n, size_t o, int rank, size_term *dims)
{
    const value_terms *a = input(s, n, 0), *b = input(s, n, 1);
    (void)o;
    if (rank != 2) return;
    if (a->dims && rank_of(s, n->inputs[0]) == 2) dims[0] = a->dims[node_int(n, "transA", 0) != 0];
    if (b->dims && rank_of(s, n->inputs[1]) == 2) dims[1] = b->dims[node_int(n, "transB", 0) == 0];
}

static void dims_transpose(shape_terms *s, const node *n, size_t o, int rank, size_term *dims)
{
    size_t count;
    const int64_t *perm = node_ints(n, "perm", &count);
    const value_terms *x = input(s, n, 0);
    (void)o;
    if (!x->dims || rank_of(s, n->inputs[0]) != rank || (perm && count != (size_t)rank)) return;
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
        if (!input(s, n, i)->dims || rank_of(s, n->inputs[i]) != rank) return;
    if (n->n_inputs == 0 || !read_axis(n, n->opset < 4 ? 1 : 0, rank, &axis)) return;
    size_term sum = input(s, n, 0)->dims[axis];
    for (size_t i = 1; i < n->n_inputs; i++)
        sum = size_terms_apply(&s->terms, TERM_ADD, sum, input(s, n, i)->dims[axis]);
    for (int i = 0; i < rank; i++) dims[i] = i == axis ? sum : input(s, n, 0)->dims[i];
}

/* All dimensions but one. */
static void dims_split(shape_terms *s, const node *n, size_t o, int rank, size_term *dims)
{
    int axis;
    const value_terms *x = input(s, n, 0);
    (void)o;
    if (!x->dims || rank_of(s, n->inputs[0]) != rank || !read_axis(n, 0, rank, &axis)) return;
    for (int i = 0; i < rank; i++)
        if (i != axis) dims[i] = x->dims[i];
}

/* The dimensions that are not sliced. */
static void dims_slice(shape_terms *s, const node *n, size_t o, int rank, size_term *dims)
{
    uint32_t axes;
    const value_terms *x = input(s, n, 0);
    (void)o;
    if (!x->dims || rank_of(s, n->inputs[0]) != rank || !read_axes(s, n, 3, rank, &axes)) return;
    for (int i = 0; i < rank; i++)
        if (!(axes & 1u << i)) dims[i] = x->dims[i];
}

static void dims_gather(shape_terms *s, const node *n, size_t o, int rank, size_term *dims)
{
    int axis;
    const value_terms *x = input(s, n, 0), *at = input(s, n, 1);
    (void)o;
    if (!x->dims || !at->dims) return;
    const int rank_x = rank_of(s, n->inputs[0]), rank_at = rank_of(s, n->inputs[1]);
    if (rank != rank_x - 1 + rank_at || !read_axis(n, 0, rank_x, &axis)) return;
    for (int i = 0; i < axis; i++) dims[i] = x->dims[i];
    for (int i = 0; i < rank_at; i++) dims[axis + i] = at->dims[i];
    for (int i = axis + 1; i < rank_x; i++) dims[i - 1 + rank_at] = x->dims[i];
}

static void dims_unsqueeze(shape_terms *s, const node *n, size_t o, int rank, size_term *dims)
{
    uint32_t axes;
    const value_terms *x = input(s, n, 0);
    int from = 0;
    (void)o;
    if (!x->dims || !read_axes(s, n, 1, rank, &axes)) return;
    for (int i = 0; i < rank; i++) {
        if (axes & 1u << i)
            dims[i] = size_terms_number(&s->terms, 1);
        else if (from < rank_of(s, n->inputs[0]))
            dims[i] = x->dims[from++];
    }
}

static void dims_squeeze(shape_terms *s, const node *n, size_t o, int rank, size_term *dims)
{
    uint32_t axes;
    const value_terms *x = input(s, n, 0);
    int to = 0;
    (void)o;
    if (!x->dims || !read_axes(s, n, 1, rank_of(s, n->inputs[0]), &axes)) return;
    for (int i = 0; i < rank_of(s, n->inputs[0]); i++)
        if (!(axes & 1u << i) && to < rank) dims[to++] = x->dims[i];
}

/* A product of sizes: a number and other terms. */
typedef struct size_product {
    int64_t number;
    size_term terms[2 * CLG_MAX_RANK];
    size_t n;
    bool exceeded; /* there are more terms, or the number cannot be represented */
} size_product;

/* Multiplies a product with a term, or with its factors. */
static void multiply(const shape_terms *s, size_product *p, size_term term)
{
    size_term todo[CLG_MAX_RANK] = {term}, x, y;
    int64_t number;
    for (size_t n = 1; n > 0 && !p->exceeded;) {
        const size_term at = todo[--n];
        if (size_terms_is_number(&s->terms, at, &number)) {
            p->exceeded = !checked_mul_i64(p->number, number, &p->number);
        } else if (size_terms_is_product(&s->terms, at, &x, &y) && n + 2 <= CLG_MAX_RANK) {
            todo[n++] = x;
            todo[n++] = y;
        } else if (p->n < sizeof p->terms / sizeof *p->terms) {
            p->terms[p->n++] = at;
        } else {
            p->exceeded = true;
        }
    }
}

/* Removes a term from a product. Returns false if it is not there. */
static bool divide(size_product *p, size_term term)
{
    for (size_t i = 0; i < p->n; i++) {
        if (p->terms[i] != term) continue;
        p->terms[i] = p->terms[--p->n];
        return true;
    }
    return false;
}

size_term shape_rules_left(shape_terms *s, value_id v, const size_term *to, int rank, int open,
                           size_term otherwise)
{
    size_product given = {.number = 1}, requested = {.number = 1};
    const value_terms *x = &s->values[v];
    if (!x->dims) return otherwise;
    for (int i = 0; i < rank_of(s, v); i++) multiply(s, &given, x->dims[i]);
    for (int i = 0; i < rank; i++)
        if (i != open) multiply(s, &requested, to[i]);
    for (size_t i = 0; i < requested.n; i++)
        if (!divide(&given, requested.terms[i])) return otherwise;
    if (given.exceeded || requested.exceeded || given.n > 1 || requested.number <= 0 ||
        given.number % requested.number != 0)
        return otherwise;
    const size_term factor = size_terms_number(&s->terms, given.number / requested.number);
    return given.n == 0 ? factor : size_terms_apply(&s->terms, TERM_MUL, given.terms[0], factor);
}

/* A requested 0 copies a dimension, and -1 is what is left. A term that cannot be negative is what
 * is requested; in a run in which it is 0, as the batch may be, what it copies is taken to be 0. */
static void dims_reshape(shape_terms *s, const node *n, size_t o, int rank, size_term *dims)
{
    const value_terms *x = input(s, n, 0), *to = input(s, n, 1);
    const bool copies = node_int(n, "allowzero", 0) == 0;
    int open = -1;
    (void)o;
    if (!to->elements || to->n_elements != (size_t)rank) return;
    for (int i = 0; i < rank; i++) {
        int64_t number = 1;
        const bool is_number = size_terms_is_number(&s->terms, to->elements[i], &number);
        if (is_number && number == -1)
            open = i;
        else if (is_number ? number > 0 : size_terms_is_size(&s->terms, to->elements[i]))
            dims[i] = to->elements[i];
        else if (is_number && copies && x->dims && i < rank_of(s, n->inputs[0]))
            dims[i] = x->dims[i];
    }
    if (open >= 0) dims[open] = shape_rules_left(s, n->inputs[0], dims, rank, open, dims[open]);
}

static void dims_reduce(shape_terms *s, const node *n, size_t o, int rank, size_term *dims)
{
    uint32_t axes;
    const value_terms *x = input(s, n, 0);
    const bool kept = node_int(n, "keepdims", 1) != 0;
    int to = 0;
    (void)o;
    if (!x->dims || !read_axes(s, n, 1, rank_of(s, n->inputs[0]), &axes) || axes == 0) return;
    for (int i = 0; i < rank_of(s, n->inputs[0]) && to < rank; i++) {
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
    if (pointwise_is(n)) return dims_pointwise;
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
    if (rule && (o == 0 || rule == dims_split)) rule(s, n, o, rank_of(s, n->outputs[o]), dims);
}

/* ---- elements -------------------------------------------------------------------------------- */

/* A rule sets the elements of output 0, of which there are n_elements. */
typedef void (*elements_rule)(shape_terms *s, const node *n, size_t n_elements,
                              size_term *elements);

static void elements_shape(shape_terms *s, const node *n, size_t n_elements, size_term *elements)
{
    const value_terms *x = input(s, n, 0);
    if (!x->dims) return;
    const int rank = rank_of(s, n->inputs[0]);
    const int64_t start = clamp(node_int(n, "start", 0), rank, 0, rank);
    for (size_t i = 0; i < n_elements && start + (int64_t)i < rank; i++)
        elements[i] = x->dims[start + (int64_t)i];
}

static void elements_size(shape_terms *s, const node *n, size_t n_elements, size_term *elements)
{
    const value_terms *x = input(s, n, 0);
    if (!x->dims || n_elements != 1) return;
    elements[0] = size_terms_number(&s->terms, 1);
    for (int i = 0; i < rank_of(s, n->inputs[0]); i++)
        elements[0] = size_terms_apply(&s->terms, TERM_MUL, elements[0], x->dims[i]);
}

/* Moves that keep the elements and their order. */
static void elements_same(shape_terms *s, const node *n, size_t n_elements, size_term *elements)
{
    const value_terms *x = input(s, n, 0);
    if (x->elements && x->n_elements == n_elements)
        memcpy(elements, x->elements, n_elements * sizeof *elements);
}

/* Returns whether a term may be an element of the dtype. Dimensions, and counts of elements, that
 * exporters store as int32 are taken to fit. */
static bool fits_dtype(const shape_terms *s, size_term term, clg_dtype dtype)
{
    int64_t number;
    if (dtype == CLG_INT64) return true;
    return size_terms_is_number(&s->terms, term, &number)
               ? number >= INT32_MIN && number <= INT32_MAX
               : size_terms_is_size(&s->terms, term);
}

static clg_dtype result_dtype(const shape_terms *s, const node *n)
{
    return s->info.facts[n->outputs[0]].dtype;
}

static void elements_cast(shape_terms *s, const node *n, size_t n_elements, size_term *elements)
{
    const value_terms *x = input(s, n, 0);
    if (!x->elements || x->n_elements != n_elements) return;
    for (size_t i = 0; i < n_elements; i++)
        if (fits_dtype(s, x->elements[i], result_dtype(s, n))) elements[i] = x->elements[i];
}

/* The product of all elements. */
static void elements_product(shape_terms *s, const node *n, size_t n_elements, size_term *elements)
{
    const value_terms *x = input(s, n, 0);
    uint32_t axes;
    if (!x->elements || n_elements != 1 || rank_of(s, n->inputs[0]) != 1) return;
    if ((node_attribute(n, "axes") || node_has_input(n, 1)) &&
        (!read_axes(s, n, 1, 1, &axes) || axes == 0))
        return;
    size_term product = size_terms_number(&s->terms, 1);
    for (size_t i = 0; i < x->n_elements; i++)
        product = size_terms_apply(&s->terms, TERM_MUL, product, x->elements[i]);
    if (fits_dtype(s, product, result_dtype(s, n))) elements[0] = product;
}

static void elements_gather(shape_terms *s, const node *n, size_t n_elements, size_term *elements)
{
    const value_terms *x = input(s, n, 0), *at = input(s, n, 1);
    if (!x->elements || rank_of(s, n->inputs[0]) != 1 || !at->elements ||
        at->n_elements != n_elements)
        return;
    for (size_t i = 0; i < n_elements; i++) {
        int64_t index;
        if (!size_terms_is_number(&s->terms, at->elements[i], &index)) continue;
        if (index < 0) index += (int64_t)x->n_elements;
        if (index >= 0 && index < (int64_t)x->n_elements) elements[i] = x->elements[index];
    }
}

static void elements_slice(shape_terms *s, const node *n, size_t n_elements, size_term *elements)
{
    const value_terms *x = input(s, n, 0);
    int64_t start[SHAPE_MAX_ELEMENTS], step[SHAPE_MAX_ELEMENTS] = {1};
    size_t n_starts, n_steps = 1;
    if (!x->elements || rank_of(s, n->inputs[0]) != 1 ||
        !read_ints(s, n, "starts", 1, start, &n_starts) || n_starts != 1)
        return;
    if (node_has_input(n, 4) && !read_ints(s, n, "steps", 4, step, &n_steps)) return;
    if (n_steps != 1 || step[0] == 0) return;
    const int64_t size = (int64_t)x->n_elements;
    int64_t from =
        step[0] > 0 ? clamp(start[0], size, 0, size) : clamp(start[0], size, -1, size - 1);
    for (size_t i = 0; i < n_elements && from >= 0 && from < size; i++, from += step[0]) {
        elements[i] = x->elements[from];
        if (step[0] > size || step[0] < -size) break;
    }
}

static void elements_concat(shape_terms *s, const node *n, size_t n_elements, size_term *elements)
{
    size_t at = 0;
    for (size_t i = 0; i < n->n_inputs; i++) {
        const value_terms *x = input(s, n, i);
        if (!x->elements || x->n_elements > n_elements - at) return;
        memcpy(elements + at, x->elements, x->n_elements * sizeof *elements);
        at += x->n_elements;
    }
}

static void apply(shape_terms *s, const node *n, size_term_kind kind, size_t n_elements,
                  size_term *elements)
{
    const value_terms *a = input(s, n, 0), *b = input(s, n, 1);
    if (!pointwise_is(n) || !a->elements || !b->elements) return;
    if ((a->n_elements != n_elements && a->n_elements != 1) ||
        (b->n_elements != n_elements && b->n_elements != 1))
        return;
    for (size_t i = 0; i < n_elements; i++) {
        const size_term result =
            size_terms_apply(&s->terms, kind, a->elements[a->n_elements == 1 ? 0 : i],
                             b->elements[b->n_elements == 1 ? 0 : i]);
        if (fits_dtype(s, result, result_dtype(s, n))) elements[i] = result;
    }
}

static void elements_add(shape_terms *s, const node *n, size_t n_elements, size_term *elements)
{
    apply(s, n, TERM_ADD, n_elements, elements);
}

static void elements_sub(shape_terms *s, const node *n, size_t n_elements, size_term *elements)
{
    apply(s, n, TERM_SUB, n_elements, elements);
}

static void elements_mul(shape_terms *s, const node *n, size_t n_elements, size_term *elements)
{
    apply(s, n, TERM_MUL, n_elements, elements);
}

static void elements_div(shape_terms *s, const node *n, size_t n_elements, size_term *elements)
{
    apply(s, n, TERM_DIV, n_elements, elements);
}

static const struct {
    const char *op_type;
    elements_rule rule;
} elements_rules[] = {
    {"Add", elements_add},        {"Cast", elements_cast},
    {"Concat", elements_concat},  {"Div", elements_div},
    {"Gather", elements_gather},  {"Identity", elements_same},
    {"Mul", elements_mul},        {"ReduceProd", elements_product},
    {"Reshape", elements_same},   {"Shape", elements_shape},
    {"Size", elements_size},      {"Slice", elements_slice},
    {"Squeeze", elements_same},   {"Sub", elements_sub},
    {"Unsqueeze", elements_same},
};

void shape_rules_elements(shape_terms *s, const node *n, size_t n_elements, size_term *elements)
{
    if (!n->op || n->domain[0]) return;
    for (size_t i = 0; i < sizeof elements_rules / sizeof *elements_rules; i++)
        if (strcmp(n->op_type, elements_rules[i].op_type) == 0)
            elements_rules[i].rule(s, n, n_elements, elements);
}
