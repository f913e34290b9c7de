/* SPDX-License-Identifier: Apache-2.0
 *
 * Decomposes FlexAttention into two GEMMs with a Softmax between them, and inlines the graphs of
 * its attributes, which modify scores and probabilities. Query heads that share a head of keys and
 * values become an axis of their own, [batch, KV heads, query heads per KV head, positions, size],
 * so that keys and values are not repeated. Always runs: the operator has no kernel
 * (ops/attention/op_flex.c).
 */
#include "passes/rewrite.h"

#include <string.h>

typedef struct flex {
    graph *graph;
    node_id id;
    node node; /* a copy from before the decomposition */
    clg_dtype dtype, precision;
    value_id heads, minus_one; /* constants [heads of K] and [-1] */
} flex;

enum { Q, K, V };

static clg_status add(const flex *f, const char *op, int64_t opset, size_t n,
                      const value_id *inputs, value_id *out)
{
    return rewrite_part(f->graph, f->id, "", op, opset, n, inputs, out);
}

static node_id producer(const flex *f, value_id v) { return f->graph->values[v].producer; }

/* Adds dimensions `from` to `to` - 1 of an input, as a value of shape [to - from]. */
static clg_status add_dims(const flex *f, size_t input, int64_t from, int64_t to, value_id *out)
{
    CLG_TRY(add(f, "Shape", 15, 1, &f->node.inputs[input], out));
    CLG_TRY(node_set_int(f->graph, producer(f, *out), "start", from));
    return node_set_int(f->graph, producer(f, *out), "end", to);
}

static clg_status add_cast(const flex *f, value_id v, clg_dtype to, value_id *out)
{
    CLG_TRY(add(f, "Cast", 13, 1, &v, out));
    return node_set_int(f->graph, producer(f, *out), "to", to);
}

static clg_status add_input(const flex *f, size_t i, value_id *out)
{
    *out = f->node.inputs[i];
    return f->dtype == f->precision ? CLG_OK : add_cast(f, *out, f->precision, out);
}

/* Adds a Reshape of v to the concatenation of n lists of dimensions. */
static clg_status add_reshaped(const flex *f, value_id v, size_t n, const value_id *lists,
                               value_id *out)
{
    value_id dims;
    CLG_TRY(add(f, "Concat", 13, n, lists, &dims));
    CLG_TRY(node_set_int(f->graph, producer(f, dims), "axis", 0));
    return add(f, "Reshape", 14, 2, (value_id[]){v, dims}, out);
}

static clg_status add_shared(const flex *f, value_id v, value_id *out)
{
    value_id axes;
    CLG_TRY(graph_add_ints(f->graph, 1, (int64_t[]){2}, &axes));
    return add(f, "Unsqueeze", 13, 2, (value_id[]){v, axes}, out);
}

/* Adds scores times `scale`, or divided by the square root of the head size. */
static clg_status add_scaled(const flex *f, value_id scores, value_id *out)
{
    const graph_attribute *scale = node_attribute(&f->node, "scale");
    const shape scalar = shape_scalar();
    value_id by;
    tensor *t;
    if (!scale) {
        CLG_TRY(add_dims(f, Q, 3, 4, &by));
        CLG_TRY(add_cast(f, by, f->precision, &by));
        CLG_TRY(add(f, "Sqrt", 13, 1, &by, &by));
        return add(f, "Div", 14, 2, (value_id[]){scores, by}, out);
    }
    CLG_TRY(tensor_create(f->precision, &scalar, &t));
    tensor_set_float(t, 0, (double)scale->as.f);
    const clg_status status = graph_add_constant(f->graph, "", t, &by);
    tensor_free(t);
    CLG_TRY(status);
    return add(f, "Mul", 14, 2, (value_id[]){scores, by}, out);
}

/* Inlines the graph in attribute `name` with v as its input. *out is its result; v itself if the
 * node has no such attribute. */
static clg_status add_changed(const flex *f, const char *name, value_id v, value_id *out)
{
    const graph_attribute *a = node_attribute(&f->node, name);
    *out = v;
    return a ? graph_inline(f->graph, a->as.graph, &v, out) : CLG_OK;
}

static clg_status add_scores(const flex *f, value_id *out)
{
    value_id q, k, batch, lengths, leading, keys;
    CLG_TRY(add_input(f, Q, &q));
    CLG_TRY(add_input(f, K, &k));
    CLG_TRY(add_dims(f, Q, 0, 1, &batch));
    CLG_TRY(add_dims(f, Q, 2, 4, &lengths));
    CLG_TRY(add_reshaped(f, q, 4, (value_id[]){batch, f->heads, f->minus_one, lengths}, &q));
    CLG_TRY(add(f, "Transpose", 13, 1, &k, &k));
    CLG_TRY(node_set_ints(f->graph, producer(f, k), "perm", 4, (int64_t[]){0, 1, 3, 2}));
    CLG_TRY(add_shared(f, k, &k));
    CLG_TRY(add(f, "MatMul", 13, 2, (value_id[]){q, k}, out));
    CLG_TRY(add_dims(f, Q, 0, 3, &leading));
    CLG_TRY(add_dims(f, K, 2, 3, &keys));
    CLG_TRY(add_reshaped(f, *out, 2, (value_id[]){leading, keys}, out));
    CLG_TRY(add_scaled(f, *out, out));
    return add_changed(f, "score_mod", *out, out);
}

static clg_status add_result(const flex *f, value_id p, value_id *out)
{
    value_id v, batch, queries, keys, leading, size;
    CLG_TRY(add_input(f, V, &v));
    CLG_TRY(add_dims(f, Q, 0, 1, &batch));
    CLG_TRY(add_dims(f, Q, 2, 3, &queries));
    CLG_TRY(add_dims(f, K, 2, 3, &keys));
    CLG_TRY(add_reshaped(f, p, 5, (value_id[]){batch, f->heads, f->minus_one, queries, keys}, &p));
    CLG_TRY(add_shared(f, v, &v));
    CLG_TRY(add(f, "MatMul", 13, 2, (value_id[]){p, v}, out));
    CLG_TRY(add_dims(f, Q, 0, 3, &leading));
    CLG_TRY(add_dims(f, V, 3, 4, &size));
    return add_reshaped(f, *out, 2, (value_id[]){leading, size}, out);
}

static clg_status decompose(flex *f)
{
    value_id v;
    node_id last;
    CLG_TRY(graph_add_ints(f->graph, 1, (int64_t[]){-1}, &f->minus_one));
    CLG_TRY(add_dims(f, K, 1, 2, &f->heads));
    CLG_TRY(add_scores(f, &v));
    CLG_TRY(add(f, "Softmax", 13, 1, &v, &v));
    CLG_TRY(node_set_int(f->graph, producer(f, v), "axis", -1));
    CLG_TRY(add_changed(f, "prob_mod", v, &v));
    CLG_TRY(add_result(f, v, &v));
    const value_id out = f->node.outputs[0];
    graph_remove_node(f->graph, f->id);
    CLG_TRY(graph_add_node(f->graph, "", "Cast", "", 1, &v, 1, &out, &last));
    f->graph->nodes[last].opset = 13;
    f->graph->nodes[last].label = f->node.label;
    return node_set_int(f->graph, last, "to", f->dtype);
}

static bool is_flex(const node *n)
{
    return !n->removed && strcmp(n->op_type, "FlexAttention") == 0 &&
           strcmp(n->domain, "ai.onnx.preview") == 0;
}

static clg_status decompose_node(const graph_info *s, node_id id)
{
    flex f = {.graph = s->graph, .id = id, .node = s->graph->nodes[id]};
    f.dtype = s->facts[f.node.inputs[Q]].dtype;
    if (f.dtype == CLG_DTYPE_NONE) return CLG_OK;
    const clg_dtype fallback = f.dtype == CLG_FLOAT64 ? CLG_FLOAT64 : CLG_FLOAT32;
    f.precision = (clg_dtype)node_int(&f.node, "softmax_precision", fallback);
    return decompose(&f);
}

clg_status pass_flex(graph *g, const pass_options *options)
{
    (void)options;
    return rewrite_each(g, is_flex, decompose_node);
}
