/* SPDX-License-Identifier: Apache-2.0
 *
 * Adds what follows the logits. The last position is taken before the nodes that compute each
 * position for itself: the product with the vocabulary, a bias, a scale, tanh of a softcap. So a
 * prompt's other positions are not multiplied, and their logits take no memory.
 */
#include "generate/decoder_model.h"
#include "graph/graph_writer.h"

#include <string.h>

enum { MAX_ROW_NODES = 16, MAX_FIXED_DEPTH = 8 };

const char *const decoder_output_names[DECODER_N_OUTPUTS] = {
    [DECODER_TOKEN] = "clgraph/token",
    [DECODER_TOP] = "clgraph/top",
    [DECODER_LOGITS] = "clgraph/logits",
};

/* Returns whether a value is a constant, or computed from constants by few nodes. */
static bool is_fixed(const graph *g, value_id v, int depth)
{
    if (v == VALUE_NONE || g->values[v].constant) return true;
    const node_id n = g->values[v].producer;
    if (n == NODE_NONE || g->values[v].is_outer || depth == MAX_FIXED_DEPTH) return false;
    const node *by = &g->nodes[n];
    for (size_t i = 0; i < by->n_attributes; i++)
        if (by->attributes[i].type == ATTRIBUTE_GRAPH) return false;
    for (size_t i = 0; i < by->n_inputs; i++)
        if (!is_fixed(g, by->inputs[i], depth + 1)) return false;
    return by->n_inputs > 0;
}

/* Returns the rank of a fixed value, looking through nodes that keep it; RANK_UNKNOWN. */
static int fixed_rank(const graph *g, value_id v)
{
    static const char *const keep[] = {"Transpose", "Cast", "Identity", "DequantizeLinear"};
    for (int depth = 0; depth < MAX_FIXED_DEPTH && v != VALUE_NONE; depth++) {
        const value *at = &g->values[v];
        if (at->constant) return at->constant->dims.rank;
        if (at->dims.rank != RANK_UNKNOWN || at->producer == NODE_NONE) return at->dims.rank;
        const node *n = &g->nodes[at->producer];
        bool is_kept = false;
        for (size_t i = 0; i < sizeof keep / sizeof *keep; i++)
            is_kept |= strcmp(n->op_type, keep[i]) == 0;
        if (!is_kept || n->n_inputs == 0) return RANK_UNKNOWN;
        v = n->inputs[0];
    }
    return RANK_UNKNOWN;
}

/* Returns whether a value broadcasts along the last axis at most: it is fixed, of rank 0 or 1. */
static bool is_row(const graph *g, value_id v)
{
    return v != VALUE_NONE && g->values[v].constant && g->values[v].constant->dims.rank <= 1;
}

/* Returns which input of a node has the positions that its result has, each of which it computes
 * for itself; SIZE_MAX if it is not known to. */
static size_t row_input(const graph *g, const node *n)
{
    static const char *const pairs[] = {"Add", "Sub", "Mul", "Div"};
    const bool is_onnx = n->domain[0] == '\0';
    if (n->n_outputs != 1 || n->n_inputs == 0) return SIZE_MAX;
    if (is_onnx && (strcmp(n->op_type, "Cast") == 0 || strcmp(n->op_type, "Tanh") == 0)) return 0;
    if (is_onnx && strcmp(n->op_type, "MatMul") == 0 && n->n_inputs == 2)
        return is_fixed(g, n->inputs[1], 0) && fixed_rank(g, n->inputs[1]) == 2 ? 0 : SIZE_MAX;
    if (strcmp(n->domain, "com.microsoft") == 0 && strcmp(n->op_type, "MatMulNBits") == 0) {
        for (size_t i = 1; i < n->n_inputs; i++)
            if (!is_fixed(g, n->inputs[i], 0)) return SIZE_MAX;
        return 0;
    }
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs && is_onnx; i++)
        if (strcmp(n->op_type, pairs[i]) == 0 && n->n_inputs == 2)
            return is_row(g, n->inputs[1]) ? 0 : is_row(g, n->inputs[0]) ? 1 : SIZE_MAX;
    return SIZE_MAX;
}

/* Takes the last position of v, [1,S,...]: [1,1,...]. */
static value_id take_last(graph_writer *w, value_id v)
{
    const int64_t last = -1;
    return writer_set_int(w, WRITER_ADD(w, "Gather", v, writer_ints(w, 1, &last)), "axis", 1);
}

/* Forgets the declared shape of a value, whose number of positions changes. */
static void forget_shape(value *v)
{
    v->dims = shape_unknown();
    memset(v->dim_names, 0, sizeof v->dim_names);
}

/* Makes the logits those of the last position, and returns them. */
static value_id last_logits(graph_writer *w, value_id logits, const uint32_t *uses)
{
    graph *g = w->graph;
    value_id at = logits;
    node_id first = NODE_NONE;
    size_t input = SIZE_MAX;
    for (int i = 0; i < MAX_ROW_NODES && uses[at] == 1; i++) {
        const node_id n = g->values[at].producer;
        const size_t next = n == NODE_NONE ? SIZE_MAX : row_input(g, &g->nodes[n]);
        if (next == SIZE_MAX) break;
        forget_shape(&g->values[at]);
        first = n;
        input = next;
        at = g->nodes[n].inputs[next];
    }
    const value_id last = take_last(w, at);
    if (first == NODE_NONE) return last;
    if (w->status == CLG_OK) graph_set_input(g, first, input, last);
    return logits;
}

clg_status decoder_tail_add(graph *g, value_id logits, int64_t vocabulary)
{
    graph_writer w = {.graph = g, .dtype = CLG_FLOAT32, .prefix = "clgraph", .status = CLG_OK};
    uint32_t *uses;
    CLG_TRY(graph_count_uses(g, &uses));
    graph_clear_outputs(g);
    value_id v = last_logits(&w, logits, uses);
    memory_free(uses);
    v = writer_set_int(&w, WRITER_ADD(&w, "Cast", v), "to", 1);
    v = WRITER_ADD(&w, "Reshape", v, writer_ints(&w, 1, &vocabulary));
    const value_id token = writer_set_int(&w, WRITER_ADD(&w, "ArgMax", v), "axis", 0);
    const value_id top = WRITER_ADD(&w, "Gather", v, token);
    (void)writer_output(&w, token, decoder_output_names[DECODER_TOKEN]);
    (void)writer_output(&w, top, decoder_output_names[DECODER_TOP]);
    (void)writer_output(&w, v, decoder_output_names[DECODER_LOGITS]);
    return w.status;
}
