/* SPDX-License-Identifier: Apache-2.0
 *
 * Fuses softmax(scale * q k^T + mask) v, which exporters write as several nodes, into Attention
 * (ONNX 23), which never stores the matrix of scores. q, k, v are [batch, heads, positions, d] or
 * [batch * heads, positions, d]; in the latter case, the batch counts as heads, or, if their number
 * is open, the heads as batch. Attention gets [batch, positions, heads * d]: towards this layout
 * the exporters' transposes cancel out, and nothing is copied.
 */
#include "passes/pattern.h"
#include "passes/shapes/shape_terms.h"

#include <string.h>

#define MAX_HEAD 256 /* the largest head size of attention_tiles, TILES_MAX_HEAD of ops/attention */

/* A pattern (pattern.h), and how the scale follows from its factors. Letters: q; k, or t for k
 * transposed; v; m the mask; e and f factors. */
typedef struct attention_pattern {
    const char *pattern;
    enum { SCALE_ONE, SCALE_E, SCALE_OVER_E, SCALE_E_F } scale;
} attention_pattern;

#define PLAIN(scores) "MatMul(Softmax(" scores "), v)"
#define MASKED(scores) "MatMul(Softmax(Add(" scores ", m)), v)"
#define BOTH(scores, scale)                                                                        \
    {PLAIN(scores), scale}, { MASKED(scores), scale }

/* Patterns with factors come before plain GEMMs, whose q would match the factor's product too. */
static const attention_pattern patterns[] = {
    BOTH("Div(MatMul(q, t), #e)", SCALE_OVER_E),
    BOTH("Mul(MatMul(q, t), #e)", SCALE_E),
    BOTH("MatMul(Mul(q, #e), Mul(t, #f))", SCALE_E_F),
    BOTH("MatMul(Div(q, #e), t)", SCALE_OVER_E),
    BOTH("MatMul(Mul(q, #e), t)", SCALE_E),
    BOTH("MatMul(q, t)", SCALE_ONE),
};

typedef struct attention_match {
    const shape_terms *shapes;
    const graph_info *info; /* of shapes */
    graph *graph;
    pattern_match match;
    value_id q, t, v, mask;
    int rank;
    int64_t heads, dv;
    bool heads_are_batch; /* of rank 3: their number is open, q and v have Attention's layout */
} attention_match;

static const shape *dims_of(const attention_match *a, value_id v)
{
    return &a->info->facts[v].dims;
}

static bool softmax_is_over_keys(const attention_match *a)
{
    for (size_t i = 0; i < a->match.n_nodes; i++) {
        const node *n = &a->graph->nodes[a->match.nodes[i]];
        if (!node_is(n, "Softmax")) continue;
        const int64_t axis = node_int(n, "axis", n->opset >= 13 ? -1 : 1);
        return axis == -1 || axis == a->rank - 1;
    }
    return false;
}

static bool agree(int64_t a, int64_t b) { return a == b || a == DIM_UNKNOWN || b == DIM_UNKNOWN; }

/* Returns whether the first dimensions of q, k and v are equal in every run: MatMul would broadcast
 * a batch of 1, Attention does not. */
static bool is_one_batch(const attention_match *a)
{
    const value_terms *values = a->shapes->values;
    const size_term first = values[a->q].dims[0];
    return values[a->t].dims && values[a->v].dims && values[a->t].dims[0] == first &&
           values[a->v].dims[0] == first;
}

/* Returns whether q, k and v have matching shapes without broadcasting, with a known number of
 * heads. */
static bool shapes_fit(attention_match *a)
{
    const shape *q = dims_of(a, a->q), *t = dims_of(a, a->t), *v = dims_of(a, a->v);
    const int last = q->rank - 1, head = last - 2;
    if ((q->rank != 3 && q->rank != 4) || t->rank != q->rank || v->rank != q->rank) return false;
    a->rank = q->rank;
    a->heads = q->dims[head];
    a->dv = v->dims[last];
    a->heads_are_batch = a->rank == 3 && a->heads == DIM_UNKNOWN;
    if (!a->heads_are_batch && (a->heads < 1 || a->heads > INT32_MAX)) return false;
    if (a->heads_are_batch ? !is_one_batch(a)
                           : t->dims[head] != a->heads || v->dims[head] != a->heads)
        return false;
    if (q->dims[last] < 1 || q->dims[last] > MAX_HEAD || t->dims[last - 1] != q->dims[last])
        return false;
    if (a->dv < 1 || a->dv > MAX_HEAD) return false;
    return agree(q->dims[0], t->dims[0]) && agree(q->dims[0], v->dims[0]) &&
           agree(t->dims[last], v->dims[last - 1]);
}

static bool mask_fits(const attention_match *a)
{
    if (a->mask == VALUE_NONE) return true;
    const value_fact *m = &a->info->facts[a->mask];
    shape scores = *dims_of(a, a->q);
    scores.dims[a->rank - 1] = dims_of(a, a->t)->dims[a->rank - 1];
    if (m->dtype != a->info->facts[a->q].dtype || m->dims.rank < 1 || m->dims.rank > a->rank)
        return false;
    if (a->heads_are_batch && m->dims.rank == 3 && m->dims.dims[0] != 1)
        return false; /* its first dimension would be that of heads */
    for (int i = 0; i < m->dims.rank; i++) {
        const int64_t here = m->dims.dims[i];
        if (here != 1 && !agree(here, scores.dims[a->rank - m->dims.rank + i])) return false;
    }
    return true;
}

static bool fits(attention_match *a)
{
    a->q = pattern_value(&a->match, 'q');
    a->t = pattern_value(&a->match, 't');
    a->v = pattern_value(&a->match, 'v');
    a->mask = pattern_value(&a->match, 'm');
    return shapes_fit(a) && softmax_is_over_keys(a) && mask_fits(a);
}

/* ---- rewriting ------------------------------------------------------------------------------- */

/* Returns the Transpose of rank `rank` that produces x; NULL when another node does. */
static const node *transpose_of(const graph *g, value_id x, int rank, const int64_t **out_perm)
{
    size_t n = 0;
    const node_id id = g->values[x].producer;
    if (id == NODE_NONE || !node_is(&g->nodes[id], "Transpose")) return NULL;
    *out_perm = node_ints(&g->nodes[id], "perm", &n);
    return n == (size_t)rank ? &g->nodes[id] : NULL;
}

/* Adds a Transpose of x. If x is itself the result of a Transpose, composes both; *out is that
 * one's input if the result is the identity. */
static clg_status transpose(graph *g, value_id x, int rank, const int64_t *perm, value_id *out)
{
    int64_t whole[4];
    const int64_t *first;
    const node *before = transpose_of(g, x, rank, &first);
    bool moves = false;
    for (int i = 0; i < rank; i++) {
        whole[i] = before ? first[perm[i]] : perm[i];
        moves = moves || whole[i] != i;
    }
    if (before) x = before->inputs[0];
    *out = x;
    if (!moves) return CLG_OK;
    CLG_TRY(rewrite_add(g, "Transpose", 1, &x, out));
    return node_set_ints(g, (node_id)g->n_nodes - 1, "perm", (size_t)rank, whole);
}

static clg_status reshape(graph *g, value_id x, size_t n, const int64_t *to, value_id *out)
{
    value_id dims;
    CLG_TRY(graph_add_ints(g, n, to, &dims));
    return rewrite_add(g, "Reshape", 2, (value_id[]){x, dims}, out);
}

/* Transposes x by perm to [batch, positions, heads, d], and reshapes it to [batch, positions, heads
 * * d]. */
static clg_status by_position(const attention_match *a, value_id x, int64_t d, const int64_t *perm,
                              value_id *out)
{
    value_id transposed;
    CLG_TRY(transpose(a->graph, x, a->rank, perm, &transposed));
    return reshape(a->graph, transposed, 3,
                   a->rank == 4 ? (int64_t[]){0, 0, -1} : (int64_t[]){1, -1, a->heads * d}, out);
}

static double scale_of(const attention_match *a, const attention_pattern *p)
{
    switch (p->scale) {
    case SCALE_E: return pattern_number(&a->match, 'e');
    case SCALE_OVER_E: return 1 / pattern_number(&a->match, 'e');
    case SCALE_E_F: return pattern_number(&a->match, 'e') * pattern_number(&a->match, 'f');
    case SCALE_ONE: break;
    }
    return 1;
}

static clg_status set_attributes(const attention_match *a, node_id n, int64_t heads,
                                 const attention_pattern *p)
{
    CLG_TRY(node_set_int(a->graph, n, "q_num_heads", heads));
    CLG_TRY(node_set_int(a->graph, n, "kv_num_heads", heads));
    return node_set_float(a->graph, n, "scale", (float)scale_of(a, p));
}

/* Turns the pattern's last node into Attention of one head. */
static clg_status become_one_head(const attention_match *a, node_id n, const attention_pattern *p)
{
    value_id inputs[4] = {a->q, VALUE_NONE, a->v, a->mask};
    CLG_TRY(transpose(a->graph, a->t, 3, (const int64_t[]){0, 2, 1}, &inputs[1]));
    CLG_TRY(
        rewrite_become(a->graph, n, "", "Attention", 23, a->mask == VALUE_NONE ? 3 : 4, inputs));
    return set_attributes(a, n, 1, p);
}

/* Adds the Attention node, and turns the pattern's last node into the transpose of its result to
 * the original shape. */
static clg_status become(attention_match *a, node_id n, const attention_pattern *p)
{
    static const int64_t swaps[][4] = {{1, 0, 2}, {0, 2, 1, 3}};
    static const int64_t from_transposed[][4] = {{2, 0, 1}, {0, 3, 1, 2}};
    const int64_t *swap = swaps[a->rank - 3], d = dims_of(a, a->q)->dims[a->rank - 1];
    graph *g = a->graph;
    value_id inputs[4] = {VALUE_NONE, VALUE_NONE, VALUE_NONE, a->mask}, y, split;
    CLG_TRY(by_position(a, a->q, d, swap, &inputs[0]));
    CLG_TRY(by_position(a, a->t, d, from_transposed[a->rank - 3], &inputs[1]));
    CLG_TRY(by_position(a, a->v, a->dv, swap, &inputs[2]));
    CLG_TRY(rewrite_add(g, "Attention", a->mask == VALUE_NONE ? 3 : 4, inputs, &y));
    const node_id attention = (node_id)g->n_nodes - 1;
    g->nodes[attention].opset = 23;
    g->nodes[attention].name = g->nodes[n].name;
    g->nodes[attention].label = g->nodes[n].label;
    CLG_TRY(set_attributes(a, attention, a->heads, p));
    CLG_TRY(a->rank == 4 ? reshape(g, y, 4, (int64_t[]){0, 0, a->heads, -1}, &split)
                         : reshape(g, y, 3, (int64_t[]){-1, a->heads, a->dv}, &split));
    CLG_TRY(rewrite_become(g, n, "", "Transpose", 13, 1, &split));
    return node_set_ints(g, n, "perm", (size_t)a->rank, swap);
}

static clg_status recognise(attention_match *a, node_id n)
{
    for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++) {
        if (!pattern_find(a->info, patterns[i].pattern, n, &a->match)) continue;
        const clg_dtype dtype = a->info->facts[pattern_value(&a->match, 'q')].dtype;
        if (dtype != CLG_FLOAT32 && dtype != CLG_FLOAT16) continue;
        if (!fits(a)) continue;
        return a->heads_are_batch ? become_one_head(a, n, &patterns[i])
                                  : become(a, n, &patterns[i]);
    }
    return CLG_OK;
}

static bool is_softmax(const node *n) { return node_is(n, "Softmax"); }

clg_status pass_attention(graph *g, const pass_options *options)
{
    shape_terms s;
    if (!graph_has(g, is_softmax)) return CLG_OK;
    CLG_TRY(shape_terms_make(g, &s));
    attention_match a = {.shapes = &s, .info = &s.info, .graph = g};
    const size_t n_nodes = g->n_nodes;
    clg_status status = CLG_OK;
    for (node_id n = 0; n < n_nodes && status == CLG_OK; n++)
        if (node_is(&g->nodes[n], "MatMul")) status = recognise(&a, n);
    shape_terms_deinit(&s);
    return status == CLG_OK ? pass_dead(g, options) : status; /* the next passes count consumers */
}
