/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps weights packed that only MatMul and Gemm read after a DequantizeLinear (weight-only
 * quantisation in the form of opset 21 and newer): the product becomes MatMulNBits, which
 * dequantises them in registers, instead of reading float weights of four or eight times the size.
 *
 *   Y = MatMul(A, DequantizeLinear(W, scale, zero))      W [K,N] int4, uint4, int8 or uint8,
 *   Y = MatMul(A, Transpose(DequantizeLinear(...)))      or [N,K]; constant, as are scale and zero
 *   Y = Gemm(A, DequantizeLinear(...), C)                alpha and beta 1, C [N] or none
 *
 * Scales along K in blocks of a multiple of 16, by column, or a single one; other forms, such as
 * blocks along N, cannot be expressed and stay. Runs after pass_qdq.c, which takes what is
 * quantised on both sides. The result differs in the order of sums, and for float16 in that weights
 * are not rounded to it.
 */
#include "passes/quant/qdq.h"

#include <string.h>

#define BLOCK_UNIT 16  /* blocks must be multiples of it, for whole words of 4 bytes */
#define COLUMN_UNIT 32 /* scales by column: K is padded to a multiple, which is the block */

/* Quantised weights that a product reads: row n of `bytes`, along k, if by_row, else column n. */
typedef struct packed_weights {
    const node *down; /* the DequantizeLinear */
    bool by_row;
    clg_dtype dtype;
    int64_t n, k, block, blocks;
    const tensor *zeros; /* NULL: 0 */
} packed_weights;

/* The values that MatMulNBits reads instead of those of a DequantizeLinear. zero: VALUE_NONE where
 * the middle of the range is meant. */
typedef struct made_values {
    bool made;
    value_id weights, scale, zero;
} made_values;

typedef struct nbits_work {
    graph *graph;
    const graph_info *info;
    made_values *made; /* by DequantizeLinear, 2 each: by column, by row */
    uint64_t max_bytes;
} nbits_work;

static bool is_signed(clg_dtype dtype) { return dtype == CLG_INT4 || dtype == CLG_INT8; }
static int bits_of(clg_dtype dtype) { return dtype == CLG_INT4 || dtype == CLG_UINT4 ? 4 : 8; }
static int64_t middle_of(const packed_weights *w)
{
    return is_signed(w->dtype) ? 0 : (int64_t)1 << (bits_of(w->dtype) - 1);
}

/* ---- reading --------------------------------------------------------------------------------- */

static bool is_known_constant(const graph_info *s, value_id v)
{
    return v != VALUE_NONE && v < s->n_values && s->constant[v] &&
           s->facts[v].dims.rank != RANK_UNKNOWN && shape_is_known(&s->facts[v].dims);
}

static bool swaps_two_axes(const node *n)
{
    size_t count;
    const int64_t *perm = node_ints(n, "perm", &count);
    return node_is(n, "Transpose") && n->n_inputs == 1 &&
           (count == 0 || (count == 2 && perm[0] == 1 && perm[1] == 0));
}

/* Reads how scales belong to weights: in blocks along k, by column, or one for all. */
static bool read_blocks(const graph_info *s, packed_weights *w)
{
    const shape *scale = &s->facts[w->down->inputs[1]].dims;
    const int64_t block = node_int(w->down, "block_size", 0),
                  ones = shape_product(scale, 0, scale->rank);
    const int k_axis = w->by_row ? 1 : 0;
    int axis;
    w->block = (w->k + COLUMN_UNIT - 1) / COLUMN_UNIT * COLUMN_UNIT;
    w->blocks = 1;
    if (block == 0 && ones == 1) return scale->rank <= 1;
    if (shape_axis(node_int(w->down, "axis", 1), 2, "axis", &axis) != CLG_OK) return false;
    if (block == 0) return scale->rank == 1 && axis != k_axis && ones == w->n;
    w->blocks = (w->k + block - 1) / block;
    if (block < w->block) w->block = block; /* a single one may be far longer than k */
    return scale->rank == 2 && axis == k_axis && block % BLOCK_UNIT == 0 &&
           scale->dims[k_axis] == w->blocks && scale->dims[1 - k_axis] == w->n;
}

static bool read_zeros(const graph_info *s, packed_weights *w)
{
    if (!node_has_input(w->down, 2)) return true;
    w->zeros = qdq_content(s, w->down->inputs[2]);
    return w->zeros && w->zeros->dtype == w->dtype &&
           shape_equal(&w->zeros->dims, &s->facts[w->down->inputs[1]].dims);
}

/* Reads the weights of a product from its input v, which it multiplies by as it is, or transposed.
 * `dtype` is that of the product. Returns whether MatMulNBits can read them. */
static bool read_weights(const graph_info *s, value_id v, bool transposed, clg_dtype dtype,
                         packed_weights *w)
{
    *w = (packed_weights){.by_row = transposed};
    for (int i = 0; i < 2 && is_known_constant(s, v); i++) {
        const node_id producer = s->graph->values[v].producer;
        if (producer == NODE_NONE || s->facts[v].dims.rank != 2) return false;
        w->down = &s->graph->nodes[producer];
        if (!swaps_two_axes(w->down)) break;
        w->by_row = !w->by_row;
        v = w->down->inputs[0];
    }
    if (!w->down || w->down->removed || strcmp(w->down->op_type, "DequantizeLinear") != 0 ||
        !is_known_constant(s, w->down->inputs[0]) || !is_known_constant(s, w->down->inputs[1]) ||
        s->facts[w->down->inputs[1]].dtype != dtype || s->facts[v].dtype != dtype)
        return false;
    const value_fact *x = &s->facts[w->down->inputs[0]];
    w->dtype = x->dtype;
    if (x->dims.rank != 2 || (w->dtype != CLG_INT4 && w->dtype != CLG_UINT4 &&
                              w->dtype != CLG_INT8 && w->dtype != CLG_UINT8))
        return false;
    w->n = x->dims.dims[w->by_row ? 0 : 1];
    w->k = x->dims.dims[w->by_row ? 1 : 0];
    return w->n > 0 && w->k > 0 && w->n < INT32_MAX / 2 && w->k < INT32_MAX / 4 &&
           read_blocks(s, w) && read_zeros(s, w);
}

/* ---- constants ------------------------------------------------------------------------------- */

static clg_status add_weights(const nbits_work *p, const packed_weights *w, node_id whole,
                              value_id *out)
{
    CLG_TRY(rewrite_part(p->graph, whole, DOMAIN_INTERNAL, "PackNBits", 1, 1,
                         (value_id[]){w->down->inputs[0]}, out));
    const node_id n = p->graph->values[*out].producer;
    CLG_TRY(node_set_int(p->graph, n, "by_row", w->by_row));
    return node_set_int(p->graph, n, "length", w->blocks * w->block);
}

/* Adds the scales as [n, blocks]. */
static clg_status add_scale(const nbits_work *p, const packed_weights *w, node_id whole,
                            value_id *out)
{
    const shape *dims = &p->info->facts[w->down->inputs[1]].dims;
    value_id wanted;
    *out = w->down->inputs[1];
    if (dims->rank == 2 && !w->by_row) {
        CLG_TRY(rewrite_part(p->graph, whole, "", "Transpose", GRAPH_ADDED_OPSET, 1, out, out));
        return node_set_ints(p->graph, p->graph->values[*out].producer, "perm", 2,
                             (int64_t[]){1, 0});
    }
    if (dims->rank == 2 || shape_product(dims, 0, dims->rank) == w->n) return CLG_OK;
    CLG_TRY(graph_add_ints(p->graph, 1, (int64_t[]){w->n}, &wanted));
    return rewrite_part(p->graph, whole, "", "Expand", GRAPH_ADDED_OPSET, 2,
                        (value_id[]){*out, wanted}, out);
}

/* Returns the zero point of block b of column n as a number from 0 to 15 or 255. */
static int64_t zero_at(const packed_weights *w, int64_t n, int64_t b)
{
    const int64_t up = is_signed(w->dtype) ? (int64_t)1 << (bits_of(w->dtype) - 1) : 0;
    if (!w->zeros) return up;
    const int64_t at = w->zeros->n_elements == 1  ? 0
                       : w->zeros->dims.rank == 1 ? n
                       : w->by_row                ? n * w->blocks + b
                                                  : b * w->n + n;
    return tensor_get_int(w->zeros, at) + up;
}

static bool zeros_are_middle(const packed_weights *w)
{
    if (!w->zeros) return middle_of(w) == 0;
    for (int64_t i = 0; i < w->zeros->n_elements; i++)
        if (tensor_get_int(w->zeros, i) != middle_of(w)) return false;
    return true;
}

/* Adds the zero points packed as MatMulNBits reads them; none where all are the default. */
static clg_status add_zero(const nbits_work *p, const packed_weights *w, value_id *out)
{
    const int bits = bits_of(w->dtype);
    const int64_t row_bytes = (w->blocks * bits + 7) / 8;
    const shape dims = {.rank = 2, .dims = {w->n, row_bytes}};
    tensor *t;
    *out = VALUE_NONE;
    if (zeros_are_middle(w)) return CLG_OK;
    CLG_TRY(tensor_create(CLG_UINT8, &dims, &t));
    for (int64_t n = 0; n < w->n; n++)
        for (int64_t b = 0; b < w->blocks; b++)
            ((uint8_t *)t->data)[n * row_bytes + b * bits / 8] |=
                (uint8_t)(zero_at(w, n, b) << (b * bits % 8));
    const clg_status status = graph_add_constant(p->graph, "", t, out);
    tensor_free(t);
    return status;
}

/* Sets *out_made to the values of the weights, which are added once for each DequantizeLinear. */
static clg_status make_values(const nbits_work *p, const packed_weights *w, node_id whole,
                              const made_values **out_made)
{
    made_values *made = &p->made[(w->down - p->graph->nodes) * 2 + w->by_row];
    packed_weights copy = *w;
    node down = *w->down; /* adding nodes moves the array */
    copy.down = &down;
    *out_made = made;
    if (made->made) return CLG_OK;
    CLG_TRY(add_weights(p, &copy, whole, &made->weights));
    CLG_TRY(add_scale(p, &copy, whole, &made->scale));
    CLG_TRY(add_zero(p, &copy, &made->zero));
    made->made = true;
    return CLG_OK;
}

/* ---- products -------------------------------------------------------------------------------- */

/* Returns whether the node is a product that MatMulNBits can compute, whatever its weights, and
 * sets *out_transposed: it multiplies by the transposed input 1. */
static bool is_product(const graph_info *s, const node *n, bool *out_transposed)
{
    *out_transposed = false;
    if (!node_has_input(n, 0) || !node_has_input(n, 1) || n->inputs[0] >= s->n_values) return false;
    const value_fact *a = &s->facts[n->inputs[0]];
    if ((a->dtype != CLG_FLOAT32 && a->dtype != CLG_FLOAT16) || a->dims.rank == RANK_UNKNOWN ||
        a->dims.rank < 1)
        return false;
    if (node_is(n, "MatMul")) return true;
    *out_transposed = node_int(n, "transB", 0) != 0;
    return node_is(n, "Gemm") && node_int(n, "transA", 0) == 0 &&
           node_float(n, "alpha", 1.0f) == 1.0f &&
           (!node_has_input(n, 2) || node_float(n, "beta", 1.0f) == 1.0f);
}

/* Returns whether a Gemm's C is [n], or absent. */
static bool bias_fits(const graph_info *s, const node *n, int64_t columns)
{
    if (!node_has_input(n, 2)) return true;
    const shape *c = n->inputs[2] < s->n_values ? &s->facts[n->inputs[2]].dims : NULL;
    return c && c->rank == 1 && c->dims[0] == columns;
}

static clg_status replace(const nbits_work *p, node_id id, const packed_weights *w)
{
    graph *g = p->graph;
    const node *n = &g->nodes[id];
    const value_id a = n->inputs[0], bias = node_has_input(n, 2) ? n->inputs[2] : VALUE_NONE;
    const made_values *made;
    /* com.microsoft's operator requires a power of two. */
    const bool standard = w->block >= 16 && (w->block & (w->block - 1)) == 0;
    CLG_TRY(make_values(p, w, id, &made));
    const size_t n_inputs = bias != VALUE_NONE ? 6 : made->zero != VALUE_NONE ? 4 : 3;
    CLG_TRY(rewrite_become(
        g, id, standard ? "com.microsoft" : DOMAIN_INTERNAL, "MatMulNBits", 1, n_inputs,
        (value_id[]){a, made->weights, made->scale, made->zero, VALUE_NONE, bias}));
    CLG_TRY(node_set_int(g, id, "N", w->n));
    CLG_TRY(node_set_int(g, id, "K", w->k));
    CLG_TRY(node_set_int(g, id, "bits", bits_of(w->dtype)));
    return node_set_int(g, id, "block_size", w->block);
}

static clg_status replace_all(const nbits_work *p)
{
    const size_t n_nodes = p->graph->n_nodes;
    for (node_id i = 0; i < n_nodes; i++) {
        const node *n = &p->graph->nodes[i];
        bool transposed;
        packed_weights w;
        if (!is_product(p->info, n, &transposed) ||
            !read_weights(p->info, n->inputs[1], transposed, p->info->facts[n->inputs[0]].dtype,
                          &w) ||
            !bias_fits(p->info, n, w.n))
            continue;
        const uint64_t bytes = (uint64_t)(w.n * (w.blocks * w.block * bits_of(w.dtype) / 8));
        if (p->max_bytes == 0 || bytes <= p->max_bytes) CLG_TRY(replace(p, i, &w));
    }
    return CLG_OK;
}

/* ---- tables ---------------------------------------------------------------------------------- */

/* A decoder whose embedding is its last weight too has one constant, [rows, blocks, bytes] for
 * MatMulNBits, and a Reshape of it to [rows, columns] for GatherBlockQuantized, which would be a
 * second copy. Lets the latter read the constant. */
static void share_tables(const graph_info *s)
{
    graph *g = s->graph;
    for (node_id i = 0; i < g->n_nodes; i++) {
        node *n = &g->nodes[i];
        if (n->removed || strcmp(n->op_type, "GatherBlockQuantized") != 0 ||
            strcmp(n->domain, "com.microsoft") != 0 || !is_known_constant(s, n->inputs[0]) ||
            s->graph->values[n->inputs[0]].producer == NODE_NONE)
            continue;
        const node *moved = &g->nodes[s->graph->values[n->inputs[0]].producer];
        const shape *to = &s->facts[n->inputs[0]].dims;
        if (!node_is(moved, "Reshape") || !is_known_constant(s, moved->inputs[0])) continue;
        const shape *from = &s->facts[moved->inputs[0]].dims;
        if (from->rank < 2 || to->rank != 2 || from->dims[0] != to->dims[0]) continue;
        n->domain = DOMAIN_INTERNAL;
        n->opset = 1;
        n->op = NULL;
        graph_set_input(g, i, 0, moved->inputs[0]);
    }
}

static bool is_quantised(const node *n)
{
    return node_is(n, "DequantizeLinear") ||
           (!n->removed && strcmp(n->op_type, "GatherBlockQuantized") == 0);
}

clg_status pass_nbits(graph *g, const pass_options *options)
{
    graph_info s;
    if (!graph_has(g, is_quantised)) return CLG_OK;
    CLG_TRY(graph_info_make(g, &s));
    nbits_work p = {.graph = g, .info = &s, .max_bytes = options->max_buffer_bytes};
    p.made = memory_zalloc(2 * g->n_nodes + 1, sizeof *p.made);
    const clg_status status = p.made ? replace_all(&p) : CLG_ERROR_OUT_OF_HOST_MEMORY;
    if (status == CLG_OK) share_tables(&s);
    memory_free(p.made);
    graph_info_deinit(&s);
    return status == CLG_OK ? pass_dead(g, options) : status;
}
