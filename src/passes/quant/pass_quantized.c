/* SPDX-License-Identifier: Apache-2.0
 *
 * Decomposes quantised operators of com.microsoft that have no kernels (ops/quant/op_quantized.c).
 * Always runs, also in subgraphs of If and Loop, since it needs only attributes and the presence of
 * inputs, no shapes. Convolutions and pools in channels-last layout become channels-first between
 * two Transposes; pass_transpose.c removes Transposes that cancel out.
 */
#include "passes/rewrite.h"

#include <string.h>

typedef struct decomposition {
    graph *graph;
    node_id id;
    node node; /* a copy from before the decomposition */
} decomposition;

/* ---- nodes ----------------------------------------------------------------------------------- */

static clg_status add(const decomposition *w, const char *op, int64_t opset, size_t n_inputs,
                      const value_id *inputs, value_id *out)
{
    return rewrite_part(w->graph, w->id, "", op, opset, n_inputs, inputs, out);
}

/* Returns input i; VALUE_NONE where it is omitted. */
static value_id input(const decomposition *w, size_t i)
{
    return i < w->node.n_inputs ? w->node.inputs[i] : VALUE_NONE;
}

/* Turns the decomposed node into `op`, the last one of its decomposition. */
static clg_status become(const decomposition *w, const char *op, int64_t opset, size_t n_inputs,
                         const value_id *inputs)
{
    return rewrite_become(w->graph, w->id, "", op, opset, n_inputs, inputs);
}

static clg_status add_dequantized(const decomposition *w, value_id x, value_id scale, value_id zero,
                                  value_id *out)
{
    const value_id in[3] = {x, scale, zero};
    return add(w, "DequantizeLinear", 13, zero == VALUE_NONE ? 2 : 3, in, out);
}

static clg_status add_cast(const decomposition *w, value_id v, clg_dtype to, value_id *out)
{
    CLG_TRY(add(w, "Cast", 13, 1, &v, out));
    return node_set_int(w->graph, w->graph->values[*out].producer, "to", to);
}

static clg_status add_transposed(const decomposition *w, value_id v, size_t rank,
                                 const int64_t *order, value_id *out)
{
    CLG_TRY(add(w, "Transpose", 13, 1, &v, out));
    return node_set_ints(w->graph, w->graph->values[*out].producer, "perm", rank, order);
}

/* ---- QLinearSoftmax, QLinearWhere ------------------------------------------------------------ */

static clg_status decompose_softmax(decomposition *w)
{
    const int64_t opset = node_int(&w->node, "opset", 0);
    const graph_attribute *axis = node_attribute(&w->node, "axis");
    value_id y;
    CLG_TRY(add_dequantized(w, input(w, 0), input(w, 1), input(w, 2), &y));
    CLG_TRY(add(w, "Softmax", opset, 1, &y, &y));
    if (axis) CLG_TRY(node_set_int(w->graph, w->graph->values[y].producer, "axis", axis->as.i));
    return become(w, "QuantizeLinear", 13, 3, (value_id[]){y, input(w, 3), input(w, 4)});
}

static clg_status decompose_where(decomposition *w)
{
    value_id x, y;
    CLG_TRY(add_dequantized(w, input(w, 1), input(w, 2), input(w, 3), &x));
    CLG_TRY(add_dequantized(w, input(w, 4), input(w, 5), input(w, 6), &y));
    CLG_TRY(add(w, "Where", 16, 3, (value_id[]){input(w, 0), x, y}, &y));
    return become(w, "QuantizeLinear", 13, 3, (value_id[]){y, input(w, 7), input(w, 8)});
}

/* ---- QGemm, DynamicQuantizeLSTM -------------------------------------------------------------- */

/* Decomposes QGemm: y = alpha * a_scale * b_scale * (product + C), quantised if y_scale is present.
 */
static clg_status decompose_gemm(decomposition *w)
{
    static const int64_t transposed_axes[2] = {1, 0};
    const float alpha = node_float(&w->node, "alpha", 1);
    value_id a = input(w, 0), b = input(w, 3), sums, scale, by;
    if (node_int(&w->node, "transA", 0)) CLG_TRY(add_transposed(w, a, 2, transposed_axes, &a));
    if (node_int(&w->node, "transB", 0)) CLG_TRY(add_transposed(w, b, 2, transposed_axes, &b));
    CLG_TRY(add(w, "MatMulInteger", 10, 4, (value_id[]){a, b, input(w, 2), input(w, 5)}, &sums));
    if (input(w, 6) != VALUE_NONE)
        CLG_TRY(add(w, "Add", 14, 2, (value_id[]){sums, input(w, 6)}, &sums));
    CLG_TRY(add_cast(w, sums, CLG_FLOAT32, &sums));
    CLG_TRY(add(w, "Mul", 14, 2, (value_id[]){input(w, 1), input(w, 4)}, &scale));
    if (alpha != 1) {
        CLG_TRY(graph_add_number(w->graph, CLG_FLOAT32, (double)alpha, &by));
        CLG_TRY(add(w, "Mul", 14, 2, (value_id[]){scale, by}, &scale));
    }
    if (input(w, 7) == VALUE_NONE) return become(w, "Mul", 14, 2, (value_id[]){sums, scale});
    CLG_TRY(add(w, "Mul", 14, 2, (value_id[]){sums, scale}, &sums));
    return become(w, "QuantizeLinear", 13, 3, (value_id[]){sums, input(w, 7), input(w, 8)});
}

/* Adds an LSTM's weights [directions, rows, columns] from quantised ones [directions, columns,
 * rows]. Scales and zero points are [directions] or [directions, columns]. */
static clg_status add_lstm_weights(const decomposition *w, size_t i, size_t scale, value_id *out)
{
    static const int64_t transposed_axes[3] = {0, 2, 1};
    const int64_t n_dirs =
        strcmp(node_string(&w->node, "direction", "forward"), "bidirectional") == 0 ? 2 : 1;
    value_id dims, v, by, from;
    CLG_TRY(graph_add_ints(w->graph, 3, (int64_t[]){n_dirs, 1, -1}, &dims));
    CLG_TRY(add_cast(w, input(w, i), CLG_FLOAT32, &v));
    CLG_TRY(add_cast(w, input(w, scale + 1), CLG_FLOAT32, &from));
    CLG_TRY(add(w, "Reshape", 14, 2, (value_id[]){from, dims}, &from));
    CLG_TRY(add(w, "Reshape", 14, 2, (value_id[]){input(w, scale), dims}, &by));
    CLG_TRY(add(w, "Sub", 14, 2, (value_id[]){v, from}, &v));
    CLG_TRY(add(w, "Mul", 14, 2, (value_id[]){v, by}, &v));
    return add_transposed(w, v, 3, transposed_axes, out);
}

/* Decomposes DynamicQuantizeLSTM into an LSTM with dequantised weights. Activations stay float32,
 * while ONNX Runtime quantises them in each step. */
static clg_status decompose_lstm(decomposition *w)
{
    value_id in[8];
    for (size_t i = 0; i < 8; i++) in[i] = input(w, i);
    CLG_TRY(add_lstm_weights(w, 1, 8, &in[1]));
    CLG_TRY(add_lstm_weights(w, 2, 10, &in[2]));
    CLG_TRY(rewrite_inputs(w->graph, w->id, 8, in));
    node *n = &w->graph->nodes[w->id];
    n->domain = "";
    n->op_type = "LSTM"; /* keeps its attributes */
    n->opset = 14;
    n->op = NULL;
    return CLG_OK;
}

/* ---- QEmbedLayerNormalization ---------------------------------------------------------------- */

enum {
    IDS,
    SEGMENT_IDS,
    WORDS,
    POSITIONS,
    SEGMENTS,
    GAMMA,
    BETA,
    MASK,
    SCALES,
    ZEROS = SCALES + 5
};

/* Adds `rows`, which is input `table` (WORDS to BETA) or some rows of it, dequantised to float32.
 */
static clg_status add_table(const decomposition *w, size_t table, value_id rows, value_id *out)
{
    const size_t i = table - WORDS;
    return add_dequantized(w, rows, input(w, SCALES + i), input(w, ZEROS + i), out);
}

static clg_status add_rows(const decomposition *w, size_t table, size_t ids, value_id *out)
{
    CLG_TRY(add(w, "Gather", 13, 2, (value_id[]){input(w, table), input(w, ids)}, out));
    return add_table(w, table, *out, out);
}

/* Adds the first rows of the table of position embeddings. */
static clg_status add_positions(const decomposition *w, value_id *out)
{
    value_id zero, count;
    CLG_TRY(graph_add_ints(w->graph, 1, (int64_t[]){0}, &zero));
    CLG_TRY(add(w, "Shape", 15, 1, (value_id[]){input(w, IDS)}, &count));
    CLG_TRY(node_set_int(w->graph, w->graph->values[count].producer, "start", 1));
    CLG_TRY(add(w, "Slice", 13, 4, (value_id[]){input(w, POSITIONS), zero, count, zero}, out));
    return add_table(w, POSITIONS, *out, out);
}

/* Makes the node's second output: the number of ones in each row of the mask; 0 without a mask. */
static clg_status decompose_count(const decomposition *w)
{
    graph *g = w->graph;
    if (w->node.n_outputs < 2 || w->node.outputs[1] == VALUE_NONE) return CLG_OK;
    const bool has_mask = input(w, MASK) != VALUE_NONE;
    value_id v = has_mask ? input(w, MASK) : input(w, IDS), axis, other;
    node_id n;
    CLG_TRY(graph_add_ints(g, 1, (int64_t[]){1}, &axis));
    CLG_TRY(add_cast(w, axis, CLG_INT32, &other));
    /* Without a mask: Not(Equal(v, v)) is false for every integer, which makes zeros of the right
     * shape. */
    CLG_TRY(add(w, "Equal", 13, 2, (value_id[]){v, has_mask ? other : v}, &v));
    if (!has_mask) CLG_TRY(add(w, "Not", 1, 1, &v, &v));
    CLG_TRY(add_cast(w, v, CLG_INT32, &v));
    const value_id out = w->node.outputs[1];
    g->nodes[w->id].n_outputs = 1;
    g->values[out].producer = NODE_NONE;
    CLG_TRY(graph_add_node(g, "", "ReduceSum", "", 2, (value_id[]){v, axis}, 1, &out, &n));
    g->nodes[n].opset = 13;
    g->nodes[n].label = w->node.label;
    return node_set_int(g, n, "keepdims", 0);
}

static clg_status decompose_embed(decomposition *w)
{
    const float epsilon = node_float(&w->node, "epsilon", 1e-12f);
    value_id sum, more, gamma, beta;
    CLG_TRY(decompose_count(w));
    CLG_TRY(add_rows(w, WORDS, IDS, &sum));
    CLG_TRY(add_positions(w, &more));
    CLG_TRY(add(w, "Add", 14, 2, (value_id[]){sum, more}, &sum));
    if (input(w, SEGMENT_IDS) != VALUE_NONE) {
        CLG_TRY(add_rows(w, SEGMENTS, SEGMENT_IDS, &more));
        CLG_TRY(add(w, "Add", 14, 2, (value_id[]){sum, more}, &sum));
    }
    CLG_TRY(add_table(w, GAMMA, input(w, GAMMA), &gamma));
    CLG_TRY(add_table(w, BETA, input(w, BETA), &beta));
    CLG_TRY(become(w, "LayerNormalization", 17, 3, (value_id[]){sum, gamma, beta}));
    return node_set_float(w->graph, w->id, "epsilon", epsilon);
}

/* ---- channels-last convolutions and pools ---------------------------------------------------- */

#define MAX_AXES 8

/* Replaces the node by `op` on channels-first tensors, between a Transpose of input 0 and one of
 * its result. */
static clg_status transpose_window(decomposition *w, const char *domain, const char *op,
                                   int64_t opset, size_t rank)
{
    graph *g = w->graph;
    const value_id out = w->node.outputs[0];
    value_id *in = arena_alloc(&g->memory, w->node.n_inputs + 1, sizeof *in), inner;
    node_id transposed_axes;
    int64_t to_last[MAX_AXES] = {0}, to_first[MAX_AXES] = {0, (int64_t)rank - 1};
    char shown[NODE_TEXT_BYTES];
    if (rank == 0)
        return error_set(CLG_ERROR_UNSUPPORTED_ATTRIBUTE,
                         "%s has channels that are last, and neither kernel_shape nor weights of "
                         "known rank",
                         node_text(&w->node, shown));
    if (!in) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t i = 1; i < rank; i++) to_last[i] = i + 1 < rank ? (int64_t)i + 1 : 1;
    for (size_t i = 2; i < rank; i++) to_first[i] = (int64_t)i - 1;
    for (size_t i = 0; i < w->node.n_inputs; i++) in[i] = w->node.inputs[i];
    CLG_TRY(add_transposed(w, in[0], rank, to_first, &in[0]));
    CLG_TRY(rewrite_inputs(g, w->id, w->node.n_inputs, in));
    CLG_TRY(graph_add_value(g, "", &inner));
    g->nodes[w->id].outputs[0] = inner;
    g->values[inner].producer = w->id;
    g->values[out].producer = NODE_NONE;
    CLG_TRY(graph_add_node(g, "", "Transpose", "", 1, &inner, 1, &out, &transposed_axes));
    g->nodes[transposed_axes].opset = 13;
    g->nodes[transposed_axes].label = w->node.label;
    CLG_TRY(node_set_ints(g, transposed_axes, "perm", rank, to_last));
    node *n = &g->nodes[w->id];
    n->domain = domain;
    n->op_type = op;
    n->opset = opset;
    n->op = NULL;
    return node_attribute(n, "channels_last") ? node_set_int(g, w->id, "channels_last", 0) : CLG_OK;
}

/* Returns the rank of the input (batch, channels and spatial axes) by kernel_shape, or else by the
 * rank of input `weights`; 0 if it is unknown or there are more than MAX_AXES axes. */
static size_t window_rank(const decomposition *w, size_t weights)
{
    size_t axes;
    (void)node_ints(&w->node, "kernel_shape", &axes);
    if (axes > 0) return axes + 2 <= MAX_AXES ? axes + 2 : 0;
    const value_id v = input(w, weights);
    const int rank = v == VALUE_NONE ? 0 : w->graph->values[v].dims.rank;
    return rank > 2 && rank <= MAX_AXES ? (size_t)rank : 0;
}

static clg_status decompose_max_pool(decomposition *w)
{
    return transpose_window(w, "", "MaxPool", 12, window_rank(w, 0));
}

static clg_status decompose_window(decomposition *w)
{
    if (node_int(&w->node, "channels_last", 0) == 0) return CLG_OK;
    return transpose_window(w, w->node.domain, w->node.op_type, w->node.opset, window_rank(w, 3));
}

/* ---- the pass -------------------------------------------------------------------------------- */

static const struct {
    const char *op_type;
    clg_status (*decompose)(decomposition *w);
} decompositions[] = {{"QGemm", decompose_gemm},
                      {"QLinearSoftmax", decompose_softmax},
                      {"QLinearWhere", decompose_where},
                      {"QEmbedLayerNormalization", decompose_embed},
                      {"DynamicQuantizeLSTM", decompose_lstm},
                      {"NhwcMaxPool", decompose_max_pool},
                      {"QLinearConv", decompose_window},
                      {"QLinearAveragePool", decompose_window}};

static clg_status decompose_node(graph *g, node_id id)
{
    decomposition w = {.graph = g, .id = id, .node = g->nodes[id]};
    if (w.node.removed || strcmp(w.node.domain, "com.microsoft") != 0) return CLG_OK;
    for (size_t i = 0; i < sizeof decompositions / sizeof *decompositions; i++)
        if (strcmp(w.node.op_type, decompositions[i].op_type) == 0)
            return decompositions[i].decompose(&w);
    return CLG_OK;
}

/* Decomposes a graph and its subgraphs. The depth of recursion was checked when the model was
 * loaded. */
static clg_status decompose_graph(graph *g)
{
    const size_t n_nodes = g->n_nodes;
    for (node_id i = 0; i < n_nodes; i++) {
        for (size_t k = 0; k < g->nodes[i].n_attributes; k++)
            if (g->nodes[i].attributes[k].type == ATTRIBUTE_GRAPH)
                CLG_TRY(decompose_graph(g->nodes[i].attributes[k].as.graph));
        CLG_TRY(decompose_node(g, i));
    }
    return g->n_nodes > n_nodes ? graph_compact(g) : CLG_OK;
}

clg_status pass_quantized(graph *g, const pass_options *options)
{
    (void)options;
    return decompose_graph(g);
}
