/* SPDX-License-Identifier: Apache-2.0
 *
 * Moves DequantizeLinear and QuantizeLinear past operators that only move elements or select maxima
 * or minima: with a single scale, quantisation commutes with them exactly, and they then process
 * bytes. See qdq.h.
 */
#include "passes/quant/qdq.h"

#include <math.h>
#include <string.h>

#define MAX_PIECES 64

/* An operator past which DequantizeLinear or QuantizeLinear may move. */
typedef struct mover {
    const char *op_type;
    bool all;    /* all inputs hold elements that are moved; else only input 0 */
    bool climbs; /* QuantizeLinear may move before it: it uses each input element */
} mover;

static const mover movers[] = {
    {"Concat", true, false},    {"DepthToSpace", false, true}, {"Expand", false, false},
    {"Flatten", false, true},   {"Gather", false, false},      {"GatherElements", false, false},
    {"GatherND", false, false}, {"Max", true, false},          {"MaxPool", false, true},
    {"Min", true, false},       {"Pad", false, false},         {"ReduceMax", false, true},
    {"ReduceMin", false, true}, {"Reshape", false, true},      {"Resize", false, false},
    {"Slice", false, false},    {"SpaceToDepth", false, true}, {"Split", false, false},
    {"Squeeze", false, true},   {"Tile", false, false},        {"Transpose", false, true},
    {"Unsqueeze", false, true},
};

static bool takes(const node *n, clg_dtype dtype)
{
    const op_row *row = n->op;
    return row && (op_row_types(row, row->input_types[0]) & DTYPE_BIT(dtype)) != 0;
}

/* Returns whether attributes and other outputs of the node permit bytes as its elements. */
static bool is_fit(const node *n)
{
    if (node_is(n, "MaxPool")) return n->n_outputs == 1 || n->outputs[1] == VALUE_NONE;
    if (node_is(n, "Pad")) return n->opset >= 11;
    if (!node_is(n, "Resize")) return true;
    return n->opset >= 11 && strcmp(node_string(n, "mode", "nearest"), "nearest") == 0 &&
           strcmp(node_string(n, "coordinate_transformation_mode", ""), "tf_crop_and_resize") != 0;
}

static const mover *find_mover(const node *n)
{
    for (size_t i = 0; i < sizeof movers / sizeof *movers; i++)
        if (node_is(n, movers[i].op_type)) return is_fit(n) ? &movers[i] : NULL;
    return NULL;
}

static clg_status add_bytes(graph *g, clg_dtype dtype, value_id *out)
{
    CLG_TRY(graph_add_value(g, "", out));
    g->values[*out].dtype = dtype;
    return CLG_OK;
}

static void give(graph *g, node_id n, size_t output, value_id v)
{
    g->nodes[n].outputs[output] = v;
    g->values[v].producer = n;
}

/* ---- QuantizeLinear up ----------------------------------------------------------------------- */

/* Sets out to the bounds of a Relu or Clip. Returns false for other nodes and unknown bounds. */
static bool find_bounds(const graph_info *s, const node *n, double out[2])
{
    static const char *const names[] = {"min", "max"};
    out[0] = node_is(n, "Relu") ? 0 : -INFINITY;
    out[1] = INFINITY;
    if (node_is(n, "Relu")) return true;
    if (!node_is(n, "Clip")) return false;
    for (size_t i = 0; i < 2; i++) {
        if (n->opset < 11 && node_attribute(n, names[i]))
            out[i] = (double)node_float(n, names[i], 0);
        else if (n->n_inputs > i + 1 && n->inputs[i + 1] != VALUE_NONE &&
                 !graph_info_number(s, n->inputs[i + 1], &out[i]))
            return false;
    }
    return out[0] <= out[1];
}

/* Returns whether the bounds change nothing, since q saturates at them or within them. */
static bool are_void(const qdq_pair *q, const double bounds[2])
{
    return qdq_quantized(q, bounds[0]) == qdq_lowest(q->dtype) &&
           qdq_quantized(q, bounds[1]) == qdq_highest(q->dtype);
}

/* Returns the producer of v if QuantizeLinear q can move before it; else NODE_NONE. */
static node_id find_passed(const graph_info *s, const qdq_pair *q, value_id v)
{
    double bounds[2];
    const node_id id =
        v < s->n_values && s->uses[v] == 1 ? s->graph->values[v].producer : NODE_NONE;
    if (id == NODE_NONE) return NODE_NONE;
    const node *n = &s->graph->nodes[id];
    const mover *m = find_mover(n);
    if (n->inputs[0] == VALUE_NONE) return NODE_NONE;
    if (m) return m->climbs && takes(n, q->dtype) ? id : NODE_NONE;
    if (!find_bounds(s, n, bounds)) return NODE_NONE;
    const node_id from = s->graph->values[n->inputs[0]].producer;
    /* A Clip after a pointwise operator is fused with it: q does not move before it, unless the
     * bounds change nothing. */
    const bool stays = from != NODE_NONE && qdq_is_pointwise(&s->graph->nodes[from]);
    return stays && !are_void(q, bounds) ? NODE_NONE : id;
}

/* Returns whether v is the result of a Concat with one consumer, all of whose inputs are results of
 * DequantizeLinears, or results with one consumer of operators that can quantise them. */
static bool is_joined(const graph_info *s, value_id v)
{
    qdq_pair p;
    const node_id id =
        v < s->n_values && s->uses[v] == 1 ? s->graph->values[v].producer : NODE_NONE;
    if (id == NODE_NONE || !node_is(&s->graph->nodes[id], "Concat")) return false;
    const node *n = &s->graph->nodes[id];
    for (size_t i = 0; i < n->n_inputs; i++) {
        if (n->inputs[i] >= s->n_values) return false; /* omitted, or added after the analysis */
        const node_id from = s->graph->values[n->inputs[i]].producer;
        if (!qdq_after(s, n->inputs[i], &p) && (from == NODE_NONE || s->uses[n->inputs[i]] != 1 ||
                                                !(qdq_is_computed(&s->graph->nodes[from]) ||
                                                  qdq_is_pointwise(&s->graph->nodes[from]))))
            return false;
    }
    return takes(n, CLG_INT8) && takes(n, CLG_UINT8);
}

/* Returns whether quantising v makes integer arithmetic possible: v is the result of a
 * DequantizeLinear that q cancels, of a node that will be quantised, of a pointwise node, which can
 * quantise its result, or of a Concat of such values. */
static bool leads_to_bytes(const graph_info *s, const qdq_pair *q, value_id v)
{
    qdq_pair p;
    const node_id id = v < s->n_values ? s->graph->values[v].producer : NODE_NONE;
    if (id == NODE_NONE) return false;
    if (qdq_after(s, v, &p)) return qdq_is_same(&p, q);
    const node *n = &s->graph->nodes[id];
    if (qdq_is_pointwise(n) || is_joined(s, v)) return true;
    if (!qdq_is_computed(n)) return false;
    for (size_t i = 0; i < n->n_inputs && i < 2; i++)
        if (!qdq_after(s, n->inputs[i], &p)) return false;
    return true;
}

/* Swaps QuantizeLinear q and the node `passed` before it: q gets the input of `passed`, which then
 * processes bytes and produces q's output. */
static clg_status change_places(graph *g, const qdq_pair *q, node_id passed)
{
    value_id inner;
    const value_id from = g->nodes[passed].inputs[0], y = g->nodes[q->node].outputs[0];
    CLG_TRY(add_bytes(g, q->dtype, &inner));
    g->values[g->nodes[passed].outputs[0]].producer = NODE_NONE;
    graph_set_input(g, q->node, 0, from);
    give(g, q->node, 0, inner);
    graph_set_input(g, passed, 0, inner);
    give(g, passed, 0, y);
    return CLG_OK;
}

/* Moves QuantizeLinear before a Relu or Clip. Quantising is monotonic, so that a Clip with
 * quantised bounds is equivalent; it is omitted if these are the limits of the dtype. */
static clg_status pass_bounds(graph *g, const qdq_pair *q, node_id passed, const double *bounds)
{
    value_id in[3];
    if (are_void(q, bounds)) {
        graph_set_input(g, q->node, 0, g->nodes[passed].inputs[0]);
        graph_remove_node(g, passed);
        return CLG_OK;
    }
    CLG_TRY(change_places(g, q, passed));
    in[0] = g->nodes[passed].inputs[0];
    CLG_TRY(graph_add_int(g, q->dtype, qdq_quantized(q, bounds[0]), &in[1]));
    CLG_TRY(graph_add_int(g, q->dtype, qdq_quantized(q, bounds[1]), &in[2]));
    return rewrite_become(g, passed, "", "Clip", 13, 3, in);
}

/* Moves QuantizeLinear q before a Concat: quantises each of its inputs, and makes it produce q's
 * output. */
static clg_status quantize_parts(const graph_info *s, const qdq_pair *q)
{
    graph *g = s->graph;
    const node_id joined = g->values[g->nodes[q->node].inputs[0]].producer;
    value_id in[3] = {VALUE_NONE, q->scale}, part;
    CLG_TRY(qdq_zero_value(g, q, &in[2]));
    for (size_t i = 0; i < g->nodes[joined].n_inputs; i++) {
        in[0] = g->nodes[joined].inputs[i];
        CLG_TRY(rewrite_part(g, joined, "", "QuantizeLinear", 13, 3, in, &part));
        g->values[part].dtype = q->dtype;
        graph_set_input(g, joined, i, part);
    }
    rewrite_take_output(g, joined, q->node);
    return CLG_OK;
}

static clg_status climb(const graph_info *s, const qdq_pair *q)
{
    value_id top = q->reals;
    node_id passed;
    double bounds[2];
    while ((passed = find_passed(s, q, top)) != NODE_NONE) top = s->graph->nodes[passed].inputs[0];
    if (!leads_to_bytes(s, q, top)) return CLG_OK;
    for (value_id at = q->reals; at != top; at = s->graph->nodes[q->node].inputs[0]) {
        passed = s->graph->values[at].producer;
        const bool clips = find_bounds(s, &s->graph->nodes[passed], bounds);
        CLG_TRY(clips ? pass_bounds(s->graph, q, passed, bounds)
                      : change_places(s->graph, q, passed));
    }
    return is_joined(s, top) ? quantize_parts(s, q) : CLG_OK;
}

clg_status qdq_climb(const graph_info *s)
{
    qdq_pair q;
    for (node_id i = 0; i < s->graph->n_nodes;
         i++) /* includes those added for inputs of a Concat */
        if (qdq_read(s, i, "QuantizeLinear", &q) && qdq_is_plain(&q)) CLG_TRY(climb(s, &q));
    return CLG_OK;
}

/* ---- DequantizeLinear down ------------------------------------------------------------------- */

/* Returns whether the node can process this input as bytes. A node that only moves elements can if
 * bytes are wanted for all its outputs. wanted: [value], as set by find_wanted. */
static bool is_taker(const node *n, size_t input, const bool *wanted)
{
    const mover *m = find_mover(n);
    if (strcmp(n->op_type, "QuantizeLinear") == 0) return input == 0;
    if (!m) return qdq_is_computed(n) || qdq_is_pointwise(n);
    if (input > 0 && !m->all) return false;
    for (size_t i = 0; i < n->n_outputs; i++)
        if (n->outputs[i] != VALUE_NONE && !wanted[n->outputs[i]]) return false;
    return true;
}

/* Sets *out to an array [value]: whether all consumers can process the value as bytes. Visits nodes
 * in reverse topological order. The caller frees *out with memory_free, also on failure. */
static clg_status find_wanted(const graph_info *s, bool **out)
{
    const graph *g = s->graph;
    bool *wanted = memory_zalloc(s->n_values + 1, sizeof *wanted);
    uint32_t *takers = memory_zalloc(s->n_values + 1, sizeof *takers);
    *out = wanted;
    if (!wanted || !takers) {
        memory_free(takers);
        return CLG_ERROR_OUT_OF_HOST_MEMORY;
    }
    for (size_t i = g->n_nodes; i-- > 0;) {
        const node *n = &g->nodes[i];
        for (size_t k = 0; k < n->n_outputs; k++) {
            const value_id v = n->outputs[k];
            if (v != VALUE_NONE) wanted[v] = takers[v] > 0 && takers[v] == s->uses[v];
        }
        for (size_t k = 0; k < n->n_inputs; k++)
            if (n->inputs[k] != VALUE_NONE) takers[n->inputs[k]] += is_taker(n, k, wanted);
    }
    memory_free(takers);
    return CLG_OK;
}

/* Returns whether the inputs with elements of the node come from DequantizeLinears with equal
 * parameters. Lists of scales can only move past Transpose. */
static bool find_sources(const graph_info *s, const node *n, const mover *m, qdq_pair *pairs)
{
    const size_t count = m->all ? n->n_inputs : 1;
    if (count > MAX_PIECES) return false;
    for (size_t i = 0; i < count; i++)
        if (!qdq_after(s, n->inputs[i], &pairs[i]) || (i > 0 && !qdq_is_same(pairs, &pairs[i])))
            return false;
    if (count == 0 || !takes(n, pairs[0].dtype)) return false;
    return qdq_is_plain(&pairs[0]) ||
           (node_is(n, "Transpose") && (pairs[0].dtype == CLG_INT8 || pairs[0].dtype == CLG_UINT8));
}

/* Returns the axis to which a Transpose moves `axis`. */
static int moved_axis(const graph_info *s, const node *n, int axis)
{
    const int rank = s->facts[n->inputs[0]].dims.rank;
    size_t n_perm;
    const int64_t *perm = node_ints(n, "perm", &n_perm);
    if (axis == QDQ_ONE || !perm) return axis == QDQ_ONE ? QDQ_ONE : rank - 1 - axis;
    for (int i = 0; i < (int)n_perm; i++)
        if (perm[i] == axis || perm[i] + rank == axis) return i;
    return axis;
}

/* Sets *out to the quantised value with which Pad pads. Returns false if that value cannot be
 * represented exactly. */
static bool find_padding(const graph_info *s, const node *n, const qdq_pair *p, int64_t *out)
{
    double real = 0;
    if (node_has_input(n, 2) && !graph_info_number(s, n->inputs[2], &real)) return false;
    if (isnan(real)) return false;
    *out = qdq_quantized(p, real);
    return (float)(*out - qdq_zero(p, 0)) * (float)qdq_scale(p, 0) == (float)real;
}

static clg_status add_dequantized(graph *g, const qdq_pair *p, value_id zero, int axis,
                                  value_id bytes, value_id reals)
{
    node_id n;
    g->values[reals].producer = NODE_NONE;
    CLG_TRY(graph_add_node(g, "", "DequantizeLinear", "", 3, (value_id[]){bytes, p->scale, zero}, 1,
                           &reals, &n));
    g->nodes[n].opset = 13;
    return axis == QDQ_ONE ? CLG_OK : node_set_int(g, n, "axis", axis);
}

static clg_status read_padding(graph *g, node_id id, const qdq_pair *p, int64_t padding)
{
    const size_t n = g->nodes[id].n_inputs > 3 ? g->nodes[id].n_inputs : 3;
    value_id in[4] = {g->nodes[id].inputs[0], g->nodes[id].inputs[1], VALUE_NONE, VALUE_NONE};
    if (n > 3) in[3] = g->nodes[id].inputs[3];
    CLG_TRY(graph_add_int(g, p->dtype, padding, &in[2]));
    return rewrite_inputs(g, id, n, in);
}

/* Makes the node process bytes, and adds a DequantizeLinear of each of its outputs. */
static clg_status sink(const graph_info *s, node_id id, const qdq_pair *pairs, size_t n_pairs)
{
    graph *g = s->graph;
    value_id zero, bytes;
    const int axis = moved_axis(s, &g->nodes[id], pairs[0].axis);
    int64_t padding;
    if (node_is(&g->nodes[id], "Pad")) {
        if (!find_padding(s, &g->nodes[id], &pairs[0], &padding)) return CLG_OK;
        CLG_TRY(read_padding(g, id, &pairs[0], padding));
    }
    zero = pairs[0].zero;
    if (zero == VALUE_NONE && pairs[0].axis == QDQ_ONE)
        CLG_TRY(qdq_zero_value(g, &pairs[0], &zero));
    for (size_t i = 0; i < n_pairs; i++) graph_set_input(g, id, i, pairs[i].bytes);
    for (size_t i = 0; i < g->nodes[id].n_outputs; i++) {
        const value_id reals = g->nodes[id].outputs[i];
        if (reals == VALUE_NONE) continue;
        CLG_TRY(add_bytes(g, pairs[0].dtype, &bytes));
        CLG_TRY(add_dequantized(g, &pairs[0], zero, axis, bytes, reals));
        give(g, id, i, bytes);
    }
    return CLG_OK;
}

static clg_status sink_node(const graph_info *s, node_id id, const bool *wanted)
{
    const node *n = &s->graph->nodes[id];
    const mover *m = find_mover(n);
    qdq_pair pairs[MAX_PIECES];
    if (!m || n->inputs[0] == VALUE_NONE || !find_sources(s, n, m, pairs)) return CLG_OK;
    /* A Gather from a constant table is moved in any case: dequantising the gathered rows costs
     * less than dequantising the table. */
    bool gains = node_is(n, "Gather") && qdq_content(s, pairs[0].bytes);
    for (size_t i = 0; i < n->n_outputs; i++)
        gains |= n->outputs[i] != VALUE_NONE && wanted[n->outputs[i]];
    return gains ? sink(s, id, pairs, m->all ? n->n_inputs : 1) : CLG_OK;
}

/* Removes a QuantizeLinear that cancels a DequantizeLinear: its consumers get the bytes instead. */
static clg_status undo(const graph_info *s, const qdq_pair *q)
{
    qdq_pair p;
    if (!qdq_after(s, q->reals, &p) || !qdq_is_same(&p, q)) return CLG_OK;
    if (s->graph->values[q->bytes].is_output)
        return rewrite_become(s->graph, q->node, "", "Identity", 13, 1, &p.bytes);
    CLG_TRY(graph_replace_uses(s->graph, q->bytes, p.bytes));
    graph_remove_node(s->graph, q->node);
    return CLG_OK;
}

clg_status qdq_sink(const graph_info *s)
{
    bool *wanted;
    qdq_pair q;
    const size_t n_nodes = s->graph->n_nodes;
    clg_status status = find_wanted(s, &wanted);
    for (node_id i = 0; i < n_nodes && status == CLG_OK; i++) {
        if (qdq_read(s, i, "QuantizeLinear", &q))
            status = undo(s, &q);
        else
            status = sink_node(s, i, wanted);
    }
    memory_free(wanted);
    return status;
}
