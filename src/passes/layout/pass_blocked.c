/* SPDX-License-Identifier: Apache-2.0
 *
 * Rewrites regions of nodes around convolutions to channel-blocked layout (nChw16c): feature maps
 * [N, C, H, W] become [N, C / lanes, H, W, lanes], so that a vector has adjacent channels of a
 * pixel. Convolutions become clgraph.BlockedConv (ops/conv/op_conv_blocked.c), which reads and
 * writes whole vectors; pools, reductions over pixels, pointwise operators and Concats stay ONNX
 * operators, with rank 5. At a region's borders feature maps are transposed by a Reshape and a
 * Transpose. See decision 30.
 */
#include "passes/layout/blocked.h"

#include <string.h>

static clg_status add_part(blocking *b, node_id whole, const char *op_type, size_t n_inputs,
                           const value_id *inputs, value_id *out)
{
    return rewrite_part(b->graph, whole, "", op_type, 13, n_inputs, inputs, out);
}

static clg_status add_reshape(blocking *b, node_id whole, value_id x, size_t rank,
                              const int64_t *dims, value_id *out)
{
    value_id to;
    CLG_TRY(graph_add_ints(b->graph, rank, dims, &to));
    return add_part(b, whole, "Reshape", 2, (value_id[]){x, to}, out);
}

static clg_status add_transpose(blocking *b, node_id whole, value_id x, const int64_t perm[5],
                                value_id *out)
{
    CLG_TRY(add_part(b, whole, "Transpose", 1, &x, out));
    return node_set_ints(b->graph, b->graph->values[*out].producer, "perm", 5, perm);
}

/* Converts a feature map from NCHW to channel-blocked layout. */
static clg_status to_blocks(blocking *b, node_id whole, value_id v, value_id *out)
{
    const int64_t *d = b->info.facts[v].dims.dims, lanes = b->lanes;
    value_id x;
    if (d[2] * d[3] == 1)
        return add_reshape(b, whole, v, 5, (int64_t[]){0, d[1] / lanes, 1, 1, lanes}, out);
    CLG_TRY(add_reshape(b, whole, v, 5, (int64_t[]){0, d[1] / lanes, lanes, d[2], d[3]}, &x));
    return add_transpose(b, whole, x, (int64_t[]){0, 1, 3, 4, 2}, out);
}

static clg_status from_blocks(blocking *b, node_id whole, value_id x, value_id v)
{
    const int64_t *d = b->info.facts[v].dims.dims, channels = blocked_count(b, v) * b->lanes;
    value_id to, first, end, axis;
    node_id last;
    if (d[2] * d[3] != 1) CLG_TRY(add_transpose(b, whole, x, (int64_t[]){0, 1, 4, 2, 3}, &x));
    if (channels == d[1]) {
        CLG_TRY(graph_add_ints(b->graph, 4, (int64_t[]){0, d[1], d[2], d[3]}, &to));
        CLG_TRY(graph_add_node(b->graph, "", "Reshape", "", 2, (value_id[]){x, to}, 1, &v, &last));
    } else {
        CLG_TRY(add_reshape(b, whole, x, 4, (int64_t[]){0, channels, d[2], d[3]}, &x));
        CLG_TRY(graph_add_ints(b->graph, 1, (int64_t[]){0}, &first));
        CLG_TRY(graph_add_ints(b->graph, 1, &d[1], &end));
        CLG_TRY(graph_add_ints(b->graph, 1, (int64_t[]){1}, &axis));
        CLG_TRY(graph_add_node(b->graph, "", "Slice", "", 4, (value_id[]){x, first, end, axis}, 1,
                               &v, &last));
    }
    b->graph->nodes[last].opset = 13;
    b->graph->nodes[last].label = b->graph->nodes[whole].label;
    return CLG_OK;
}

static clg_status input_in_blocks(blocking *b, node_id whole, value_id v, value_id *out)
{
    if (b->in_blocks[v] == VALUE_NONE) CLG_TRY(to_blocks(b, whole, v, &b->in_blocks[v]));
    *out = b->in_blocks[v];
    return CLG_OK;
}

/* Reshapes a constant with one value per channel from [C, 1, 1] or [1, C, 1, 1] to [C / lanes, 1,
 * 1, lanes]. */
static clg_status channels_in_blocks(blocking *b, node_id whole, value_id v, value_id *out)
{
    const shape *x = &b->info.facts[v].dims;
    *out = v;
    if (x->rank < 3 || x->dims[x->rank - 3] == 1) return CLG_OK;
    return add_reshape(b, whole, v, 4, (int64_t[]){x->dims[x->rank - 3] / b->lanes, 1, 1, b->lanes},
                       out);
}

/* Extends a list attribute from two spatial axes to three, by `third` for the axis of lanes. Pads
 * have two such lists, begins and ends. */
static clg_status widen(blocking *b, node_id id, const char *name, int64_t third)
{
    size_t n;
    int64_t wide[6];
    const int64_t *own = node_ints(&b->graph->nodes[id], name, &n);
    if (n != 2 && n != 4) return CLG_OK;
    for (size_t i = 0; i < n; i++) wide[i + i / 2] = own[i];
    for (size_t half = 0; half < n / 2; half++) wide[half * 3 + 2] = third;
    return node_set_ints(b->graph, id, name, n / 2 * 3, wide);
}

static clg_status rewrite_pool(blocking *b, node_id id)
{
    CLG_TRY(widen(b, id, "kernel_shape", 1));
    CLG_TRY(widen(b, id, "strides", 1));
    CLG_TRY(widen(b, id, "dilations", 1));
    return widen(b, id, "pads", 0);
}

static clg_status rewrite_reduce(blocking *b, node_id id)
{
    node *n = &b->graph->nodes[id];
    const bool is_max = strstr(n->op_type, "Max") != NULL;
    const value_id x = n->inputs[0];
    CLG_TRY(rewrite_become(b->graph, id, "", is_max ? "ReduceMax" : "ReduceMean", 13, 1, &x));
    return node_set_ints(b->graph, id, "axes", 2, (int64_t[]){2, 3});
}

/* Rewrites BatchNormalization to x * f + (bias - mean * f) with f = scale / sqrt(var + epsilon),
 * which is constant. */
static clg_status rewrite_batchnorm(blocking *b, node_id id)
{
    const node *n = &b->graph->nodes[id];
    const value_id x = n->inputs[0], scale = n->inputs[1], bias = n->inputs[2];
    const value_id mean = n->inputs[3], variance = n->inputs[4];
    const int64_t by_channel[] = {b->info.facts[scale].dims.dims[0] / b->lanes, 1, 1, b->lanes};
    value_id epsilon, f, shift;
    CLG_TRY(
        graph_add_number(b->graph, CLG_FLOAT32, (double)node_float(n, "epsilon", 1e-5f), &epsilon));
    CLG_TRY(add_part(b, id, "Add", 2, (value_id[]){variance, epsilon}, &f));
    CLG_TRY(add_part(b, id, "Sqrt", 1, &f, &f));
    CLG_TRY(add_part(b, id, "Div", 2, (value_id[]){scale, f}, &f));
    CLG_TRY(add_part(b, id, "Mul", 2, (value_id[]){mean, f}, &shift));
    CLG_TRY(add_part(b, id, "Sub", 2, (value_id[]){bias, shift}, &shift));
    CLG_TRY(add_reshape(b, id, f, 4, by_channel, &f));
    CLG_TRY(add_reshape(b, id, shift, 4, by_channel, &shift));
    CLG_TRY(add_part(b, id, "Mul", 2, (value_id[]){x, f}, &f));
    return rewrite_become(b->graph, id, "", "Add", 13, 2, (value_id[]){f, shift});
}

static clg_status rewrite_conv(blocking *b, node_id id)
{
    node *n = &b->graph->nodes[id];
    n->domain = DOMAIN_INTERNAL;
    n->op_type = b->roles[id] == ROLE_CONV ? "BlockedConv" : "BlockedConvTranspose";
    n->opset = graph_opset(b->graph, DOMAIN_INTERNAL);
    n->op = NULL;
    return node_set_int(b->graph, id, "lanes", b->lanes);
}

static clg_status rewrite_by_role(blocking *b, node_id id)
{
    switch (b->roles[id]) {
    case ROLE_CONV:
    case ROLE_TRANSPOSED: return rewrite_conv(b, id);
    case ROLE_POOL: return rewrite_pool(b, id);
    case ROLE_REDUCE: return rewrite_reduce(b, id);
    case ROLE_BATCHNORM: return rewrite_batchnorm(b, id);
    case ROLE_CONCAT: return node_set_int(b->graph, id, "axis", 1);
    default: return CLG_OK;
    }
}

/* Replaces the node's inputs and output by their channel-blocked values, and its operator by one
 * that computes them. */
static clg_status rewrite_one(blocking *b, node_id id)
{
    const value_id v = b->graph->nodes[id].outputs[0];
    for (size_t k = 0; k < b->graph->nodes[id].n_inputs; k++) {
        const value_id x = b->graph->nodes[id].inputs[k];
        value_id in = x;
        if (blocked_reads(b, id, k))
            CLG_TRY(input_in_blocks(b, id, x, &in));
        else if (b->roles[id] == ROLE_POINTWISE && x != VALUE_NONE)
            CLG_TRY(channels_in_blocks(b, id, x, &in));
        graph_set_input(b->graph, id, k, in);
    }
    value_id made;
    CLG_TRY(graph_add_value(b->graph, "", &made));
    b->graph->nodes[id].outputs[0] = made;
    b->graph->values[made].producer = id;
    b->graph->values[v].producer = NODE_NONE;
    b->in_blocks[v] = made;
    b->plain[id] = v;
    if (!b->graph->values[v].is_output) CLG_TRY(graph_move_name(b->graph, v, made));
    return rewrite_by_role(b, id);
}

static clg_status rewrite_all(blocking *b)
{
    const size_t n_nodes = b->graph->n_nodes;
    uint32_t *uses;
    for (node_id i = 0; i < n_nodes; i++)
        if (blocked_is_eligible(b, i)) CLG_TRY(rewrite_one(b, i));
    CLG_TRY(graph_count_uses(b->graph, &uses));
    clg_status status = CLG_OK;
    for (node_id i = 0; i < n_nodes && status == CLG_OK; i++)
        if (blocked_is_eligible(b, i) && uses[b->plain[i]] > 0)
            status = from_blocks(b, i, b->in_blocks[b->plain[i]], b->plain[i]);
    memory_free(uses);
    return status;
}

static clg_status run(blocking *b)
{
    const size_t n_nodes = b->graph->n_nodes + 1, n_values = b->info.n_values + 1;
    b->roles = memory_zalloc(n_nodes, sizeof *b->roles);
    b->region = memory_zalloc(n_nodes, sizeof *b->region);
    b->saved = memory_zalloc(n_nodes, sizeof *b->saved);
    b->plain = memory_zalloc(n_nodes, sizeof *b->plain);
    b->in_blocks = memory_zalloc(n_values, sizeof *b->in_blocks);
    if (!b->plain || !b->roles || !b->region || !b->saved || !b->in_blocks)
        return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t v = 0; v < n_values; v++) b->in_blocks[v] = VALUE_NONE;
    CLG_TRY(blocked_choose(b));
    return rewrite_all(b);
}

clg_status pass_blocked(graph *g, const pass_options *options)
{
    blocking b = {.graph = g, .lanes = options->lanes};
    if (options->kernel_class != CLG_KERNELS_SIMD || b.lanes < 2) return CLG_OK;
    CLG_TRY(graph_info_make(g, &b.info));
    const clg_status status = run(&b);
    memory_free(b.roles);
    memory_free(b.region);
    memory_free(b.saved);
    memory_free(b.in_blocks);
    memory_free(b.plain);
    graph_info_deinit(&b.info);
    return status;
}
