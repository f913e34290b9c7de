/* SPDX-License-Identifier: Apache-2.0
 *
 * Decomposes GroupNormalization (ONNX 21) whose stash_type is narrower than its input, so that the
 * first stage rounds as that type does: the input in groups, [batch, groups, elements], is
 * converted and normalised by InstanceNormalization; scale and bias follow in the input's type.
 * Other stash types need no conversion: the kernel computes in float32 or wider. Always runs.
 */
#include "ops/reduce/moments.h"
#include "passes/rewrite.h"

typedef struct stash {
    graph *graph;
    node_id id;
    node node; /* a copy from before the decomposition */
    clg_dtype dtype, type;
} stash;

enum { X, SCALE, BIAS };

static clg_status add(const stash *s, const char *op, size_t n, const value_id *inputs,
                      value_id *out)
{
    return rewrite_part(s->graph, s->id, "", op, 15, n, inputs, out);
}

static node_id producer(const stash *s, value_id v) { return s->graph->values[v].producer; }

static clg_status add_cast(const stash *s, value_id v, clg_dtype to, value_id *out)
{
    CLG_TRY(add(s, "Cast", 1, &v, out));
    return node_set_int(s->graph, producer(s, *out), "to", to);
}

static clg_status add_reshaped(const stash *s, value_id v, value_id dims, value_id *out)
{
    return add(s, "Reshape", 2, (value_id[]){v, dims}, out);
}

/* Adds a constant [groups] of the stash type. */
static clg_status add_filled(const stash *s, int64_t groups, double number, value_id *out)
{
    const shape dims = {.rank = 1, .dims = {groups}};
    tensor *t;
    CLG_TRY(tensor_create(s->type, &dims, &t));
    for (int64_t i = 0; i < groups; i++) tensor_set_float(t, i, number);
    const clg_status status = graph_add_constant(s->graph, "", t, out);
    tensor_free(t);
    return status;
}

/* Adds the first stage: the normalised input in its own dtype, of shape [batch, groups, -1]. */
static clg_status add_normal(const stash *s, value_id *out)
{
    const int64_t groups = node_int(&s->node, "num_groups", 1);
    value_id dims, one, zero;
    CLG_TRY(graph_add_ints(s->graph, 3, (int64_t[]){0, groups, -1}, &dims));
    CLG_TRY(add_filled(s, groups, 1, &one));
    CLG_TRY(add_filled(s, groups, 0, &zero));
    CLG_TRY(add_cast(s, s->node.inputs[X], s->type, out));
    CLG_TRY(add_reshaped(s, *out, dims, out));
    CLG_TRY(add(s, "InstanceNormalization", 3, (value_id[]){*out, one, zero}, out));
    CLG_TRY(node_set_float(s->graph, producer(s, *out), "epsilon",
                           node_float(&s->node, "epsilon", 1e-5f)));
    return add_cast(s, *out, s->dtype, out);
}

/* Adds v in the shape [batch, channels, -1]. */
static clg_status add_by_channel(const stash *s, value_id v, value_id *out)
{
    value_id leading, rest, dims;
    CLG_TRY(graph_add_ints(s->graph, 1, (int64_t[]){-1}, &rest));
    CLG_TRY(add(s, "Shape", 1, &s->node.inputs[X], &leading));
    CLG_TRY(node_set_int(s->graph, producer(s, leading), "end", 2));
    CLG_TRY(add(s, "Concat", 2, (value_id[]){leading, rest}, &dims));
    CLG_TRY(node_set_int(s->graph, producer(s, dims), "axis", 0));
    return add_reshaped(s, v, dims, out);
}

static clg_status decompose(const stash *s)
{
    value_id v, axes, scale, bias, dims;
    CLG_TRY(graph_add_ints(s->graph, 1, (int64_t[]){1}, &axes));
    CLG_TRY(add_normal(s, &v));
    CLG_TRY(add_by_channel(s, v, &v));
    CLG_TRY(add(s, "Unsqueeze", 2, (value_id[]){s->node.inputs[SCALE], axes}, &scale));
    CLG_TRY(add(s, "Unsqueeze", 2, (value_id[]){s->node.inputs[BIAS], axes}, &bias));
    CLG_TRY(add(s, "Mul", 2, (value_id[]){v, scale}, &v));
    CLG_TRY(add(s, "Add", 2, (value_id[]){v, bias}, &v));
    CLG_TRY(add(s, "Shape", 1, &s->node.inputs[X], &dims));
    return rewrite_become(s->graph, s->id, "", "Reshape", 15, 2, (value_id[]){v, dims});
}

static bool has_stash(const node *n)
{
    return node_is(n, "GroupNormalization") && node_attribute(n, "stash_type");
}

static clg_status decompose_node(const graph_info *info, node_id id)
{
    stash s = {.graph = info->graph, .id = id, .node = info->graph->nodes[id]};
    s.dtype = info->facts[s.node.inputs[X]].dtype;
    s.type = (clg_dtype)node_int(&s.node, "stash_type", CLG_FLOAT32);
    return norm_stash_rounds(&s.node, s.dtype) ? decompose(&s) : CLG_OK;
}

clg_status pass_stash(graph *g, const pass_options *options)
{
    (void)options;
    return rewrite_each(g, has_stash, decompose_node);
}
