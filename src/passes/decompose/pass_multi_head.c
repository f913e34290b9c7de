/* SPDX-License-Identifier: Apache-2.0
 *
 * Gives MultiHeadAttention (com.microsoft) queries, keys and values of their own: takes them out of
 * packed inputs, and adds the bias of their projections. Always runs: the operator's kernels read
 * the three of them as they are (ops/attention/op_attention_fused.c). What depends on constants
 * only, as slices of a constant bias do, is computed when the session is created.
 */
#include "passes/rewrite.h"

#include <string.h>

enum { QUERY, KEY, VALUE, BIAS, N_INPUTS = 8 };

typedef struct multi_head {
    graph *graph;
    const graph_info *info;
    node_id id;
    node node; /* a copy from before the decomposition */
    value_id inputs[N_INPUTS];
} multi_head;

static bool has(const multi_head *m, size_t i)
{
    return i < m->node.n_inputs && m->node.inputs[i] != VALUE_NONE;
}

static const shape *dims_of(const multi_head *m, size_t i)
{
    return &m->info->facts[m->node.inputs[i]].dims;
}

static clg_status add(const multi_head *m, const char *op, size_t n, const value_id *inputs,
                      value_id *out)
{
    return rewrite_part(m->graph, m->id, "", op, 13, n, inputs, out);
}

/* Sets *out to part `part` of input i, [batch, positions, heads, parts, head size], as [batch,
 * positions, heads * head size]. */
static clg_status take_part(const multi_head *m, size_t i, int64_t part, value_id *out)
{
    const shape *dims = dims_of(m, i);
    const int64_t size = dims->rank == 5 ? dims->dims[4] : DIM_UNKNOWN,
                  width = size == DIM_UNKNOWN ? -1 : size * node_int(&m->node, "num_heads", 1);
    value_id index, to;
    CLG_TRY(graph_add_int(m->graph, CLG_INT64, part, &index));
    CLG_TRY(add(m, "Gather", 2, (value_id[]){m->node.inputs[i], index}, out));
    CLG_TRY(node_set_int(m->graph, m->graph->values[*out].producer, "axis", 3));
    CLG_TRY(graph_add_ints(m->graph, 3, (int64_t[]){0, 0, width}, &to));
    return add(m, "Reshape", 2, (value_id[]){*out, to}, out);
}

static clg_status unpack(multi_head *m)
{
    if (!has(m, KEY)) {
        for (int i = QUERY; i <= VALUE; i++) CLG_TRY(take_part(m, QUERY, i, &m->inputs[i]));
    } else if (!has(m, VALUE)) {
        CLG_TRY(take_part(m, KEY, 0, &m->inputs[KEY]));
        CLG_TRY(take_part(m, KEY, 1, &m->inputs[VALUE]));
    }
    return CLG_OK;
}

/* Sets *out to the number of columns of the queries as an int64 tensor [1]. */
static clg_status add_width(const multi_head *m, value_id *out)
{
    const shape *q = dims_of(m, QUERY);
    const bool packed = q->rank == 5;
    const int64_t size = q->rank == RANK_UNKNOWN ? DIM_UNKNOWN : q->dims[packed ? 4 : 2],
                  width = packed ? size * node_int(&m->node, "num_heads", 1) : size;
    if (size != DIM_UNKNOWN) return graph_add_ints(m->graph, 1, &width, out);
    CLG_TRY(rewrite_part(m->graph, m->id, "", "Shape", 15, 1, &m->inputs[QUERY], out));
    return node_set_int(m->graph, m->graph->values[*out].producer, "start", 2);
}

/* Adds a slice of the bias to m->inputs[i]; from and to: int64 tensors [1]. */
static clg_status add_slice(multi_head *m, size_t i, value_id from, value_id to)
{
    value_id slice[4] = {m->node.inputs[BIAS], from, to}, part;
    CLG_TRY(graph_add_ints(m->graph, 1, (int64_t[]){0}, &slice[3]));
    CLG_TRY(add(m, "Slice", 4, slice, &part));
    return add(m, "Add", 2, (value_id[]){m->inputs[i], part}, &m->inputs[i]);
}

/* Adds the bias, [width of queries + width of keys + width of values]. Keys and values that come by
 * heads are those of an earlier step or of an encoder, and have theirs. */
static clg_status add_bias(multi_head *m)
{
    value_id start, width, twice, end;
    m->inputs[BIAS] = VALUE_NONE;
    CLG_TRY(graph_add_ints(m->graph, 1, (int64_t[]){0}, &start));
    CLG_TRY(add_width(m, &width));
    CLG_TRY(add_slice(m, QUERY, start, width));
    if (has(m, KEY) && dims_of(m, KEY)->rank == 4) return CLG_OK;
    CLG_TRY(add(m, "Add", 2, (value_id[]){width, width}, &twice));
    CLG_TRY(graph_add_ints(m->graph, 1, (int64_t[]){INT64_MAX}, &end));
    CLG_TRY(add_slice(m, KEY, width, twice));
    return add_slice(m, VALUE, twice, end);
}

static clg_status decompose(multi_head *m)
{
    for (size_t i = 0; i < N_INPUTS; i++) m->inputs[i] = has(m, i) ? m->node.inputs[i] : VALUE_NONE;
    CLG_TRY(unpack(m));
    if (has(m, BIAS)) CLG_TRY(add_bias(m));
    const size_t n = m->node.n_inputs > BIAS ? m->node.n_inputs : BIAS;
    return rewrite_inputs(m->graph, m->id, n, m->inputs);
}

static bool is_to_do(const node *n)
{
    if (n->removed || strcmp(n->op_type, "MultiHeadAttention") != 0 ||
        strcmp(n->domain, "com.microsoft") != 0)
        return false;
    const multi_head m = {.node = *n};
    return !has(&m, KEY) || !has(&m, VALUE) || has(&m, BIAS);
}

static clg_status decompose_node(const graph_info *s, node_id id)
{
    multi_head m = {.graph = s->graph, .info = s, .id = id, .node = s->graph->nodes[id]};
    return decompose(&m);
}

clg_status pass_multi_head(graph *g, const pass_options *options)
{
    (void)options;
    return rewrite_each(g, is_to_do, decompose_node);
}
