/* SPDX-License-Identifier: Apache-2.0
 *
 * Stores intermediate values as float16 (precision fp16). Two lists of operators determine which:
 * GEMM-like nodes, which move the most data, compute from and to float16; cheap operators, and
 * those that only move elements, do so if all their inputs are float16 already. All other nodes
 * keep float32 inputs and outputs, behind Casts. Arithmetic is float32 everywhere:
 * docs/numerics.md. See decision 28.
 */
#include "passes/rewrite.h"

#include <math.h>
#include <string.h>

#define LARGEST_HALF 65504.0f
#define SMALLEST_NORMAL_HALF 0x1p-14

/* Neither list contains operators whose sums or squares exceed float16's range (ReduceSum, Pow,
 * Exp, LRN), whose values are positions (Range, CumSum, boxes), or whose states accumulate errors
 * (LSTM, GRU, RNN). */
static const char *const beginners[] = {"Conv",      "ConvTranspose", "Gemm",      "MatMul",
                                        "Attention", "FusedConv",     "FusedGemm", "FusedMatMul"};
static const char *const followers[] = {"Abs",
                                        "Add",
                                        "AveragePool",
                                        "Celu",
                                        "Clip",
                                        "Concat",
                                        "DepthToSpace",
                                        "Div",
                                        "Elu",
                                        "Erf",
                                        "Expand",
                                        "Flatten",
                                        "Gather",
                                        "Gelu",
                                        "GlobalAveragePool",
                                        "GlobalMaxPool",
                                        "GroupNormalization",
                                        "HardSigmoid",
                                        "HardSwish",
                                        "Identity",
                                        "InstanceNormalization",
                                        "LayerNormalization",
                                        "LeakyRelu",
                                        "LogSoftmax",
                                        "Max",
                                        "MaxPool",
                                        "Min",
                                        "Mish",
                                        "Mul",
                                        "Neg",
                                        "PRelu",
                                        "Pad",
                                        "RMSNormalization",
                                        "ReduceMax",
                                        "ReduceMean",
                                        "ReduceMin",
                                        "Relu",
                                        "Reshape",
                                        "Resize",
                                        "Selu",
                                        "Sigmoid",
                                        "Slice",
                                        "Softmax",
                                        "Softplus",
                                        "Softsign",
                                        "SpaceToDepth",
                                        "Split",
                                        "Squeeze",
                                        "Sub",
                                        "Swish",
                                        "Tanh",
                                        "ThresholdedRelu",
                                        "Tile",
                                        "Transpose",
                                        "Unsqueeze",
                                        "Where"};
#define COUNT(names) (sizeof(names) / sizeof *(names))

/* The state of the pass. low, high: constants, the finite range of float16; VALUE_NONE until
 * needed. */
typedef struct halving {
    const graph_info *info;
    graph *graph;
    const pass_options *options;
    value_id *fp16; /* [value]: the same in float16, or VALUE_NONE */
    value_id low, high;
} halving;

static bool is_among(const node *n, const char *const *op_types, size_t n_op_types)
{
    if (n->removed || !n->op) return false;
    if (n->domain[0] != '\0' && strcmp(n->domain, DOMAIN_INTERNAL) != 0) return false;
    for (size_t i = 0; i < n_op_types; i++)
        if (strcmp(n->op_type, op_types[i]) == 0) return true;
    return false;
}

static bool must_keep_dtype(const halving *h, const node *n)
{
    for (size_t i = 0; i < h->options->keep_fp32.count; i++)
        if (text_matches(h->options->keep_fp32.names[i], n->label)) return true;
    return false;
}

static char letter_at(const char *letters, size_t i)
{
    const size_t n = strlen(letters);
    return letters[i < n ? i : n - 1];
}

static bool is_float32(const halving *h, value_id v)
{
    return v != VALUE_NONE && h->info->facts[v].dtype == CLG_FLOAT32;
}

/* Returns whether the inputs with this type letter of the operator, which all have one dtype, are
 * float32 and may be float16. */
static bool may_be_half(const halving *h, const node *n, char letter)
{
    const op_row *row = n->op;
    if (letter == '?' || !(op_row_types(row, letter) & DTYPE_BIT(CLG_FLOAT16))) return false;
    for (size_t i = 0; i < n->n_inputs; i++)
        if (letter_at(row->input_types, i) == letter && n->inputs[i] != VALUE_NONE &&
            !is_float32(h, n->inputs[i]))
            return false;
    return true;
}

static bool takes_half(const halving *h, const node *n, size_t input)
{
    const op_row *row = n->op;
    return n->inputs[input] != VALUE_NONE && may_be_half(h, n, letter_at(row->input_types, input));
}

/* Returns whether an output has the type letter, and so the dtype, of inputs that become float16.
 */
static bool gives_half(const halving *h, const node *n, size_t output)
{
    const op_row *row = n->op;
    const char letter = letter_at(row->output_types, output);
    if (!is_float32(h, n->outputs[output])) return false;
    for (size_t i = 0; i < n->n_inputs; i++)
        if (letter_at(row->input_types, i) == letter && takes_half(h, n, i)) return true;
    return false;
}

/* Returns whether v is a scalar that float16 would round to zero or change much: an epsilon, or the
 * lowest number of a mask. */
static bool is_out_of_range(const halving *h, value_id v)
{
    double number;
    if (!graph_info_number(h->info, v, &number) || number == 0.0 || isinf(number)) return false;
    const double size = fabs(number);
    return size < SMALLEST_NORMAL_HALF || size > (double)LARGEST_HALF;
}

static bool may_follow(const halving *h, const node *n)
{
    bool any = false;
    for (size_t i = 0; i < n->n_inputs; i++) {
        const value_id v = n->inputs[i];
        if (!takes_half(h, n, i)) continue;
        if (h->fp16[v] != VALUE_NONE && !h->info->constant[v])
            any = true;
        else if (!h->info->constant[v] || is_out_of_range(h, v))
            return false;
    }
    return any;
}

/* Returns whether all float32 outputs of the node may be float16. Nodes with only constant inputs
 * stay float32: they are computed once. */
static bool outputs_fp16_only(const halving *h, const node *n)
{
    bool any = false;
    for (size_t o = 0; o < n->n_outputs; o++) {
        const value_id v = n->outputs[o];
        if (!is_float32(h, v)) continue;
        if (h->info->constant[v] || !gives_half(h, n, o)) return false;
        any = true;
    }
    return any;
}

static bool becomes_half(const halving *h, const node *n)
{
    const bool begins = is_among(n, beginners, COUNT(beginners));
    if (!begins && !is_among(n, followers, COUNT(followers))) return false;
    return outputs_fp16_only(h, n) && (begins || may_follow(h, n)) && !must_keep_dtype(h, n);
}

/* ---- edits ----------------------------------------------------------------------------------- */

static clg_status add_cast(halving *h, value_id from, clg_dtype to, value_id out)
{
    node_id n;
    CLG_TRY(graph_add_node(h->graph, "", "Cast", "", 1, &from, 1, &out, &n));
    if (h->graph->nodes[n].opset < 13) h->graph->nodes[n].opset = 13;
    return node_set_int(h->graph, n, "to", to);
}

/* Converts v to float16. Finite numbers beyond float16's range are clipped to it, so that
 * conversion introduces no infinities. */
static clg_status narrow(halving *h, value_id v, value_id *out_half)
{
    value_id clipped;
    if (h->low == VALUE_NONE)
        CLG_TRY(graph_add_number(h->graph, CLG_FLOAT32, -(double)LARGEST_HALF, &h->low));
    if (h->high == VALUE_NONE)
        CLG_TRY(graph_add_number(h->graph, CLG_FLOAT32, (double)LARGEST_HALF, &h->high));
    CLG_TRY(rewrite_add(h->graph, "Clip", 3, (value_id[]){v, h->low, h->high}, &clipped));
    CLG_TRY(graph_add_value(h->graph, "", out_half));
    return add_cast(h, clipped, CLG_FLOAT16, *out_half);
}

/* Converts the node's inputs to float16 where its operator supports that. */
static clg_status read_as_fp16(halving *h, node_id id)
{
    const size_t n_inputs = h->graph->nodes[id].n_inputs;
    value_id *inputs = arena_alloc(&h->graph->memory, n_inputs + 1, sizeof *inputs);
    if (!inputs) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; i < n_inputs; i++) {
        inputs[i] = h->graph->nodes[id].inputs[i];
        if (!takes_half(h, &h->graph->nodes[id], i)) continue;
        value_id *half = &h->fp16[inputs[i]];
        if (*half == VALUE_NONE) CLG_TRY(narrow(h, inputs[i], half));
        inputs[i] = *half;
    }
    h->graph->nodes[id].inputs = inputs;
    graph_note_node(h->graph, id);
    return CLG_OK;
}

/* Makes an output float16. The original value, with its name and dtype, becomes a Cast of it. */
static clg_status give_half(halving *h, node_id id, size_t output)
{
    const value_id whole = h->graph->nodes[id].outputs[output];
    value_id half;
    CLG_TRY(graph_add_value(h->graph, "", &half));
    h->graph->nodes[id].outputs[output] = half;
    h->graph->values[half].producer = id;
    h->graph->values[whole].producer = NODE_NONE;
    h->fp16[whole] = half;
    return add_cast(h, half, CLG_FLOAT32, whole);
}

/* Makes all float32 outputs float16, and the inputs that share their dtype; requires
 * outputs_fp16_only. */
static clg_status make_half(halving *h, node_id id)
{
    for (size_t o = 0; o < h->graph->nodes[id].n_outputs; o++)
        if (is_float32(h, h->graph->nodes[id].outputs[o])) CLG_TRY(give_half(h, id, o));
    return read_as_fp16(h, id);
}

clg_status pass_fp16(graph *g, const pass_options *options)
{
    graph_info s;
    if (!options->fp16) return CLG_OK;
    CLG_TRY(graph_info_make(g, &s));
    halving h = {.info = &s, .graph = g, .options = options, .low = VALUE_NONE, .high = VALUE_NONE};
    h.fp16 = memory_zalloc(s.n_values + 1, sizeof *h.fp16);
    clg_status status = h.fp16 ? CLG_OK : CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t v = 0; status == CLG_OK && v < s.n_values; v++) h.fp16[v] = VALUE_NONE;
    const size_t n_nodes = g->n_nodes;
    for (node_id i = 0; i < n_nodes && status == CLG_OK; i++)
        if (becomes_half(&h, &g->nodes[i])) status = make_half(&h, i);
    memory_free(h.fp16);
    graph_info_deinit(&s);
    return status;
}
