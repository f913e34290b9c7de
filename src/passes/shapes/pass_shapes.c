/* SPDX-License-Identifier: Apache-2.0
 *
 * Simplifies shape arithmetic, of which exporters write dozens of nodes for each Reshape, since
 * some dimensions are open: what is planned anew for each new length of a sequence.
 *
 *     Reshape(x, Concat(Gather(Shape(x), 0), ..., 12, 64))    Reshape(x, [0, 0, 12, 64])
 *     numbers that do not depend on open dimensions           constants
 *     a list that is equal to an earlier one                  the earlier one
 *     Reshape(Gemm(Reshape(x, [-1, K]), W, b), ...)           Add(MatMul(x, W), b)
 *     Reshape(MatMul(Reshape(x, [-1, K]), W), ...)            MatMul(x, W)
 *     Shape(MatMul(a, b) / 8)                                 Shape(MatMul(a, b))
 *
 * Shapes that are equal in every run are found by terms (shape_terms.h).
 */
#include "base/cancel.h"
#include "base/checked.h"
#include "base/strbuf.h"
#include "passes/shapes/shape_terms.h"

typedef struct shaping {
    shape_terms shapes;
    graph *graph;
    hash_map seen; /* dtype, rank, terms -> the value that has these elements */
} shaping;

/* Returns whether v is the result of a node with elements that a pass may replace. */
static bool is_replaceable(const shaping *p, value_id v)
{
    const value *x = &p->graph->values[v];
    return p->shapes.values[v].elements && x->producer != NODE_NONE && !x->is_output;
}

/* ---- equal elements -------------------------------------------------------------------------- */

/* Adds a constant with the known elements of v. */
static clg_status add_constant(const shaping *p, value_id v, value_id *out_value)
{
    return graph_add_constant(p->graph, "", (tensor *)(uintptr_t)p->shapes.info.facts[v].known,
                              out_value);
}

/* Finds the value with the elements of v, an earlier one or a constant; without one it is v. */
static clg_status find_equal(shaping *p, value_id v, value_id *out_equal)
{
    const value_terms *x = &p->shapes.values[v];
    const value_fact *fact = &p->shapes.info.facts[v];
    const int64_t kind[] = {fact->dtype, fact->dims.rank};
    strbuf key;
    *out_equal = v;
    strbuf_init(&key, 0);
    strbuf_append_bytes(&key, (const char *)kind, sizeof kind);
    strbuf_append_bytes(&key, (const char *)x->elements, x->n_elements * sizeof *x->elements);
    clg_status status = key.status;
    const size_t found = status == CLG_OK
                             ? hash_map_get(&p->seen, strbuf_data(&key), key.size_bytes)
                             : HASH_MAP_NONE;
    if (found != HASH_MAP_NONE) {
        *out_equal = (value_id)found;
    } else if (status == CLG_OK) {
        const bool is_new = fact->known && !p->graph->values[v].constant;
        if (is_new) status = add_constant(p, v, out_equal);
        if (status == CLG_OK)
            status = hash_map_set(&p->seen, strbuf_data(&key), key.size_bytes, *out_equal);
    }
    strbuf_deinit(&key);
    return status;
}

static clg_status replace_equal(shaping *p, value_id v)
{
    value_id equal;
    if (!p->shapes.values[v].elements) return CLG_OK;
    CLG_TRY(find_equal(p, v, &equal));
    return equal == v || !is_replaceable(p, v) ? CLG_OK : graph_replace_uses(p->graph, v, equal);
}

/* ---- Reshape --------------------------------------------------------------------------------- */

/* Finds what a Reshape may request without shape arithmetic, for the dimensions that its result
 * has: numbers, 0 where it keeps a dimension, and -1 for one that follows from the others. Returns
 * false if that is not enough. */
static bool find_request(shaping *p, const node *n, int64_t *out_request)
{
    shape_terms *s = &p->shapes;
    const value_terms *x = &s->values[n->inputs[0]], *y = &s->values[n->outputs[0]];
    const int rank_x = s->info.facts[n->inputs[0]].dims.rank,
              rank = s->info.facts[n->outputs[0]].dims.rank;
    int64_t element;
    int open = -1;
    if (!x->dims || !y->dims) return false;
    for (int i = 0; i < rank; i++) {
        if (shape_terms_dim_is(s, n->outputs[0], i, &out_request[i]) && out_request[i] > 0)
            continue;
        const bool keeps = i < rank_x && y->dims[i] == x->dims[i];
        if (!keeps && open >= 0) return false;
        if (!keeps) open = i;
        out_request[i] = keeps ? 0 : -1;
    }
    if (open < 0) return true;
    if (shape_terms_element_is(s, n->inputs[1], (size_t)open, &element)) return element == -1;
    return shape_rules_left(s, n->inputs[0], y->dims, rank, open) == y->dims[open];
}

static clg_status rewrite_reshape(shaping *p, node_id id)
{
    const node *n = &p->graph->nodes[id];
    int64_t request[CLG_MAX_RANK];
    value_id to;
    if (!node_is(n, "Reshape") || n->opset < 5 || node_int(n, "allowzero", 0) != 0) return CLG_OK;
    const size_t n_values = p->shapes.info.n_values; /* without those that this pass adds */
    if (n->inputs[0] >= n_values || n->inputs[1] >= n_values ||
        p->shapes.info.facts[n->inputs[1]].known)
        return CLG_OK;
    const bool found = find_request(p, n, request);
    if (!found || p->shapes.terms.status != CLG_OK) return p->shapes.terms.status;
    const size_t rank = (size_t)p->shapes.info.facts[n->outputs[0]].dims.rank;
    CLG_TRY(graph_add_ints(p->graph, rank, request, &to));
    graph_set_input(p->graph, id, 1, to);
    return CLG_OK;
}

/* ---- Shape ----------------------------------------------------------------------------------- */

/* Returns the MatMul's result of which v is the product or quotient with a constant number, as
 * scores of attention are; else VALUE_NONE. Not for other results: what computes them may be fused
 * with the product, but for a second reader. */
static value_id find_scaled(const shaping *p, value_id v)
{
    const shape_terms *s = &p->shapes;
    const node_id id = v < s->info.n_values ? p->graph->values[v].producer : NODE_NONE;
    const node *n = id == NODE_NONE ? NULL : &p->graph->nodes[id];
    if (!n || (!node_is(n, "Mul") && !node_is(n, "Div"))) return VALUE_NONE;
    const value_id x = n->inputs[0], factor = n->inputs[1];
    double number;
    if (x >= s->info.n_values || factor >= s->info.n_values) return VALUE_NONE;
    const node_id of = p->graph->values[x].producer;
    return of != NODE_NONE && node_is(&p->graph->nodes[of], "MatMul") &&
                   graph_info_number(&s->info, factor, &number) && shape_terms_same_dims(s, x, v)
               ? x
               : VALUE_NONE;
}

static void rewrite_shape(const shaping *p, node_id id)
{
    if (!node_is(&p->graph->nodes[id], "Shape")) return;
    const value_id scaled = find_scaled(p, p->graph->nodes[id].inputs[0]);
    if (scaled != VALUE_NONE) graph_set_input(p->graph, id, 0, scaled);
}

/* ---- Gemm ------------------------------------------------------------------------------------ */

/* The nodes of Reshape(Gemm(Reshape(x, ...), w, b), ...), or of a MatMul in its place. */
typedef struct flat_gemm {
    value_id x, w, b;
    node_id gemm;
} flat_gemm;

/* Returns the Gemm or MatMul that computes v, if v is read once; else NULL. */
static const node *only_matmul(const shaping *p, value_id v, node_id *out_id)
{
    if (v >= p->shapes.info.n_values || p->shapes.info.uses[v] != 1) return NULL;
    *out_id = p->graph->values[v].producer;
    const node *n = *out_id == NODE_NONE ? NULL : &p->graph->nodes[*out_id];
    return n && (node_is(n, "Gemm") || node_is(n, "MatMul")) ? n : NULL;
}

/* Returns whether y has the rows of x: the dimensions of x up to those that make a row of w, and
 * the columns of w. */
static bool has_rows_of(const shape_terms *s, value_id y, value_id x, const flat_gemm *f)
{
    const value_terms *from = &s->values[x], *to = &s->values[y], *w = &s->values[f->w];
    const int rank = s->info.facts[x].dims.rank, last = s->info.facts[y].dims.rank - 1;
    int64_t row = 1, size, k;
    if (!from->dims || !to->dims || !w->dims || last < 1 || rank <= last) return false;
    for (int i = 0; i < last; i++)
        if (from->dims[i] != to->dims[i]) return false;
    if (to->dims[last] != w->dims[1]) return false;
    if (rank == last + 1) return from->dims[last] == w->dims[0];
    for (int i = last; i < rank; i++)
        if (!shape_terms_dim_is(s, x, i, &size) || !checked_mul_i64(row, size, &row)) return false;
    return shape_terms_dim_is(s, f->w, 0, &k) && row == k && k > 0;
}

/* Returns whether the bias of a Gemm is one number for each column. */
static bool is_bias(const shape_terms *s, const flat_gemm *f)
{
    return f->b == VALUE_NONE ||
           (s->info.facts[f->b].dims.rank == 1 && s->values[f->b].dims && s->values[f->w].dims &&
            s->values[f->b].dims[0] == s->values[f->w].dims[1]);
}

static bool is_plain(const node *gemm)
{
    if (node_is(gemm, "MatMul")) return true;
    return node_float(gemm, "alpha", 1) == 1 && node_float(gemm, "beta", 1) == 1 &&
           node_int(gemm, "transA", 0) == 0 && node_int(gemm, "transB", 0) == 0 && gemm->opset >= 7;
}

/* Finds the nodes around a Gemm, of which n restores the rows. */
static bool find_flat_gemm(const shaping *p, const node *n, flat_gemm *f)
{
    const shape_terms *s = &p->shapes;
    const node *gemm = only_matmul(p, n->inputs[0], &f->gemm);
    if (!gemm || !is_plain(gemm)) return false;
    for (size_t i = 0; i < gemm->n_inputs; i++)
        if (gemm->inputs[i] != VALUE_NONE && gemm->inputs[i] >= s->info.n_values) return false;
    const value *a = &p->graph->values[gemm->inputs[0]];
    if (a->producer == NODE_NONE || !node_is(&p->graph->nodes[a->producer], "Reshape"))
        return false;
    const value_fact *facts = s->info.facts;
    f->x = p->graph->nodes[a->producer].inputs[0];
    f->w = gemm->inputs[1];
    f->b = node_has_input(gemm, 2) ? gemm->inputs[2] : VALUE_NONE;
    if (f->x >= s->info.n_values || facts[f->w].dims.rank != 2 ||
        (facts[f->x].dtype != CLG_FLOAT32 && facts[f->x].dtype != CLG_FLOAT16))
        return false;
    return is_bias(s, f) && has_rows_of(s, n->outputs[0], f->x, f);
}

/* Replaces x by a Reshape of it where y, the result, has fewer dimensions. */
static clg_status join_row(const shaping *p, value_id y, value_id *x)
{
    const value_fact *facts = p->shapes.info.facts;
    const int rank = facts[y].dims.rank;
    int64_t request[CLG_MAX_RANK] = {0};
    value_id to;
    if (facts[*x].dims.rank == rank) return CLG_OK;
    request[rank - 1] = -1;
    CLG_TRY(graph_add_ints(p->graph, (size_t)rank, request, &to));
    return rewrite_add(p->graph, "Reshape", 2, (value_id[]){*x, to}, x);
}

static clg_status rewrite_gemm(const shaping *p, node_id id)
{
    flat_gemm f;
    const node *n = &p->graph->nodes[id];
    if (!node_is(n, "Reshape") || !find_flat_gemm(p, n, &f)) return CLG_OK;
    value_id product, inputs[2] = {f.x, f.w};
    CLG_TRY(join_row(p, n->outputs[0], &inputs[0]));
    if (f.b == VALUE_NONE)
        return rewrite_become(p->graph, id, "", "MatMul", GRAPH_ADDED_OPSET, 2, inputs);
    CLG_TRY(rewrite_part(p->graph, f.gemm, "", "MatMul", GRAPH_ADDED_OPSET, 2, inputs, &product));
    return rewrite_become(p->graph, id, "", "Add", GRAPH_ADDED_OPSET, 2,
                          (value_id[]){product, f.b});
}

/* ---- the pass -------------------------------------------------------------------------------- */

static clg_status simplify(shaping *p)
{
    const size_t n_nodes = p->graph->n_nodes;
    for (value_id v = 0; v < p->shapes.info.n_values; v++)
        if (p->graph->values[v].producer == NODE_NONE) CLG_TRY(replace_equal(p, v));
    for (node_id i = 0; i < n_nodes; i++) {
        CLG_TRY(cancel_check("optimising the graph"));
        if (p->graph->nodes[i].removed) continue;
        for (size_t o = 0; o < p->graph->nodes[i].n_outputs; o++)
            if (p->graph->nodes[i].outputs[o] != VALUE_NONE)
                CLG_TRY(replace_equal(p, p->graph->nodes[i].outputs[o]));
        rewrite_shape(p, i);
        CLG_TRY(rewrite_gemm(p, i));
        CLG_TRY(rewrite_reshape(p, i));
    }
    return CLG_OK;
}

static bool is_shape(const node *n) { return node_is(n, "Shape"); }

clg_status pass_shapes(graph *g, const pass_options *options)
{
    shaping p = {.graph = g};
    if (!graph_has(g, is_shape)) return CLG_OK;
    CLG_TRY(shape_terms_make(g, &p.shapes));
    clg_status status = simplify(&p);
    hash_map_deinit(&p.seen);
    shape_terms_deinit(&p.shapes);
    return status == CLG_OK ? pass_dead(g, options) : status; /* the next passes count consumers */
}
