/* SPDX-License-Identifier: Apache-2.0
 *
 * Merges MatMuls of the same input by different constant weights into one MatMul by the
 * concatenated weights, if all consumers of their results accept strided views: the projections
 * before attention (query, key, value) become one GEMM and three views of its result.
 */
#include "passes/rewrite.h"

#include <string.h>

/* The state of the pass. Arrays [value] and [node] are indexed by value_id and node_id. */
typedef struct projections {
    graph_info *info;
    graph *graph;
    bool *in_place;  /* [value]: all its consumers accept it as a strided view */
    uint32_t *reads; /* [value]: how many inputs of nodes it is */
    node_id *first;  /* [value]: the first MatMul that multiplies it; or NODE_NONE */
    node_id *next;   /* [node]: the next MatMul of the same input; or NODE_NONE */
    node_id *group;  /* `count` MatMuls that are merged */
    value_id *parts; /* their weights, biases or outputs, one per MatMul */
    size_t count;
    uint64_t max_bytes; /* the device's largest buffer */
} projections;

/* ---- consumers ------------------------------------------------------------------------------- */

/* Returns whether the node `reader` accepts a strided view as this input. A Reshape does if all
 * consumers of its result do, since it then returns a view of the view. */
static bool takes_in_place(const projections *p, const node *reader, size_t input)
{
    const op_row *row = reader->op;
    if (!row || row->flags & OP_EVAL_ONLY) return row != NULL;
    if (node_is(reader, "Reshape")) return input == 0 && p->in_place[reader->outputs[0]];
    return row->takes_strided != NULL;
}

/* Sets in_place and reads. Visits nodes in reverse topological order, so that the consumers of a
 * value are visited before its producer. */
static void find_readers_in_place(projections *p)
{
    const graph *g = p->graph;
    for (size_t v = 0; v < g->n_values; v++) p->in_place[v] = true;
    for (node_id i = (node_id)g->n_nodes; i-- > 0;) {
        const node *n = &g->nodes[i];
        for (size_t k = 0; k < n->n_outputs; k++) {
            const value_id v = n->outputs[k];
            /* Outputs of the graph, and values that subgraphs capture, are used more often than
             * they are read by nodes, and so are not in_place. */
            if (v != VALUE_NONE)
                p->in_place[v] &= p->reads[v] > 0 && p->reads[v] == p->info->uses[v];
        }
        for (size_t k = 0; k < n->n_inputs; k++) {
            const value_id v = n->inputs[k];
            if (v == VALUE_NONE) continue;
            p->reads[v]++;
            p->in_place[v] &= takes_in_place(p, n, k);
        }
    }
}

/* ---- MatMuls to merge ------------------------------------------------------------------------ */

static int64_t columns(const projections *p, const node *n)
{
    return p->info->facts[n->inputs[1]].dims.dims[1];
}

/* Returns whether the node is a MatMul or FusedMatMul by constant weights [k, n], with a bias [n]
 * or none, and without other epilogue operations. */
static bool is_projection(const projections *p, const node *n)
{
    const graph_info *s = p->info;
    const bool fused =
        strcmp(n->domain, DOMAIN_INTERNAL) == 0 && strcmp(n->op_type, "FusedMatMul") == 0;
    if (n->removed || (!fused && !node_is(n, "MatMul"))) return false;
    if (n->n_inputs < 2 || n->n_inputs > 3 || node_attribute(n, "activation")) return false;
    const shape *w = &s->facts[n->inputs[1]].dims;
    if (s->constant[n->inputs[0]] || !s->constant[n->inputs[1]]) return false;
    if (!dtype_is_float(s->facts[n->outputs[0]].dtype) || w->rank != 2 || !shape_is_known(w))
        return false;
    if (n->n_inputs == 3) {
        const value_id bias = n->inputs[2];
        const shape *b = bias == VALUE_NONE ? NULL : &s->facts[bias].dims;
        if (!b || !s->constant[bias] || b->rank != 1 || b->dims[0] != w->dims[1]) return false;
    }
    return p->in_place[n->outputs[0]];
}

static bool are_alike(const projections *p, const node *a, const node *b)
{
    const value_fact *w = &p->info->facts[a->inputs[1]], *other = &p->info->facts[b->inputs[1]];
    return strcmp(a->op_type, b->op_type) == 0 && a->opset == b->opset &&
           a->n_inputs == b->n_inputs && w->dtype == other->dtype &&
           w->dims.dims[0] == other->dims.dims[0];
}

/* Returns how many columns the weights may have: they are counted in int32, and fit a buffer. */
static int64_t max_columns(const projections *p, node_id first)
{
    const value_fact *w = &p->info->facts[p->graph->nodes[first].inputs[1]];
    size_t column_bytes;
    if (!dtype_bytes(w->dtype, w->dims.dims[0], &column_bytes) || column_bytes == 0)
        return INT32_MAX;
    const uint64_t fit = p->max_bytes / column_bytes;
    return fit < INT32_MAX ? (int64_t)fit : INT32_MAX;
}

/* Sets group and count to the MatMuls that can be merged with `first`, as long as their weights
 * together fit one buffer. */
static void find_group(projections *p, node_id first)
{
    int64_t total = 0;
    p->count = 0;
    if (first == NODE_NONE) return;
    const int64_t most = max_columns(p, first);
    for (node_id i = first; i != NODE_NONE; i = p->next[i]) {
        const node *n = &p->graph->nodes[i];
        if (!are_alike(p, &p->graph->nodes[first], n) || columns(p, n) > most - total) continue;
        total += columns(p, n);
        p->group[p->count++] = i;
    }
}

/* ---- rewriting ------------------------------------------------------------------------------- */

/* Adds the concatenation of input `i` of the MatMuls of the group along `axis`. */
static clg_status join(projections *p, size_t i, int64_t axis, value_id *out)
{
    for (size_t k = 0; k < p->count; k++) p->parts[k] = p->graph->nodes[p->group[k]].inputs[i];
    CLG_TRY(rewrite_part(p->graph, p->group[0], "", "Concat", 13, p->count, p->parts, out));
    return node_set_int(p->graph, p->graph->values[*out].producer, "axis", axis);
}

/* Makes the MatMuls' outputs the parts of y, the result of the merged one. */
static clg_status split(projections *p, value_id y)
{
    graph *g = p->graph;
    const char *label = g->nodes[p->group[0]].label;
    int64_t *sizes = memory_zalloc(p->count, sizeof *sizes);
    value_id dims;
    node_id n;
    if (!sizes) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t k = 0; k < p->count; k++) {
        sizes[k] = columns(p, &g->nodes[p->group[k]]);
        p->parts[k] = g->nodes[p->group[k]].outputs[0];
    }
    const clg_status status = graph_add_ints(g, p->count, sizes, &dims);
    memory_free(sizes);
    CLG_TRY(status);
    for (size_t k = 0; k < p->count; k++) graph_remove_node(g, p->group[k]);
    CLG_TRY(graph_add_node(g, "", "Split", "", 2, (value_id[]){y, dims}, p->count, p->parts, &n));
    g->nodes[n].opset = 13;
    g->nodes[n].label = label;
    return node_set_int(g, n, "axis", -1);
}

static clg_status merge(projections *p)
{
    const node first = p->graph->nodes[p->group[0]];
    value_id in[3] = {first.inputs[0]}, y;
    CLG_TRY(join(p, 1, 1, &in[1]));
    if (first.n_inputs == 3) CLG_TRY(join(p, 2, 0, &in[2]));
    CLG_TRY(rewrite_part(p->graph, p->group[0], first.domain, first.op_type, first.opset,
                         first.n_inputs, in, &y));
    p->graph->nodes[p->graph->values[y].producer].name = first.name;
    return split(p, y);
}

/* Merges all groups. n_nodes and n_values: the numbers of nodes and values when the graph was
 * analysed; merging appends others. */
static clg_status merge_all(projections *p, size_t n_nodes, size_t n_values)
{
    find_readers_in_place(p);
    for (size_t v = 0; v < n_values; v++) p->first[v] = NODE_NONE;
    for (node_id i = (node_id)n_nodes; i-- > 0;) {
        const node *n = &p->graph->nodes[i];
        if (!is_projection(p, n)) continue;
        p->next[i] = p->first[n->inputs[0]];
        p->first[n->inputs[0]] = i;
    }
    for (size_t v = 0; v < n_values; v++) {
        find_group(p, p->first[v]);
        if (p->count > 1) CLG_TRY(merge(p));
    }
    return CLG_OK;
}

clg_status pass_projections(graph *g, const pass_options *options)
{
    graph_info s;
    CLG_TRY(graph_info_make(g, &s));
    projections p = {.info = &s,
                     .graph = g,
                     .max_bytes =
                         options->max_buffer_bytes ? options->max_buffer_bytes : UINT64_MAX,
                     .in_place = memory_zalloc(g->n_values + 1, sizeof *p.in_place),
                     .reads = memory_zalloc(g->n_values + 1, sizeof *p.reads),
                     .first = memory_zalloc(g->n_values + 1, sizeof *p.first),
                     .next = memory_zalloc(g->n_nodes + 1, sizeof *p.next),
                     .group = memory_zalloc(g->n_nodes + 1, sizeof *p.group),
                     .parts = memory_zalloc(g->n_nodes + 1, sizeof *p.parts)};
    clg_status status = CLG_ERROR_OUT_OF_HOST_MEMORY;
    if (p.in_place && p.reads && p.first && p.next && p.group && p.parts)
        status = merge_all(&p, g->n_nodes, g->n_values);
    memory_free(p.in_place);
    memory_free(p.reads);
    memory_free(p.first);
    memory_free(p.next);
    memory_free(p.group);
    memory_free(p.parts);
    graph_info_deinit(&s);
    return status;
}
