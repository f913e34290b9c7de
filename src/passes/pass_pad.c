/* SPDX-License-Identifier: Apache-2.0
 *
 * Fuses a Pad of zeros on spatial axes into the Conv after it, or into an AveragePool that counts
 * padding or has none. TensorFlow's exporters write convolutions of stride 2 in this way.
 */
#include "passes/rewrite.h"

#include <string.h>

/* Reads the pads of a Pad of zeros: begins of all axes, then ends. Returns false if they are not
 * constant, or if it does not pad with zeros. */
static bool constant_pads(const graph_info *s, const node *pad, int rank,
                          int64_t out[2 * CLG_MAX_RANK])
{
    size_t n = 0;
    const int64_t *given = node_ints(pad, "pads", &n);
    double zero = 0;
    if (strcmp(node_string(pad, "mode", "constant"), "constant") != 0) return false;
    if (pad->n_inputs < 2) {
        if (!given || n != 2 * (size_t)rank || node_float(pad, "value", 0) != 0) return false;
        memcpy(out, given, n * sizeof *given);
        return true;
    }
    const tensor *pads = graph_info_constant(s, pad->inputs[1]);
    const bool has_axes = node_has_input(pad, 3);
    if (!pads || pads->n_elements != 2 * rank || has_axes) return false;
    if (node_has_input(pad, 2) && (!graph_info_number(s, pad->inputs[2], &zero) || zero != 0))
        return false;
    for (int i = 0; i < 2 * rank; i++) out[i] = tensor_get_int(pads, i);
    return true;
}

static bool is_spatial(const int64_t *pads, int rank)
{
    for (int i = 0; i < 2 * rank; i++)
        if (pads[i] < 0 || (i % rank < 2 && pads[i] != 0)) return false;
    return true;
}

/* Returns whether padding by the node itself is equivalent to a Pad of zeros before it. */
static bool takes_zeros(const node *n)
{
    const char *how = node_string(n, "auto_pad", "NOTSET");
    if (strcmp(how, "NOTSET") != 0 && strcmp(how, "VALID") != 0) return false;
    if (node_is(n, "Conv")) return true;
    if (!node_is(n, "AveragePool") || node_int(n, "ceil_mode", 0) != 0) return false;
    size_t count = 0;
    const int64_t *own = node_ints(n, "pads", &count);
    bool none = true;
    for (size_t i = 0; i < count; i++) none = none && own[i] == 0;
    return none || node_int(n, "count_include_pad", 0) != 0;
}

/* Adds the pads of a Pad to those of node `reader`, which gets the input of the Pad. */
static clg_status take_pads(graph *g, node_id reader, const node *pad, const int64_t *pads,
                            int rank)
{
    const int axes = rank - 2;
    int64_t sum[2 * CLG_MAX_RANK];
    size_t count = 0;
    const node *n = &g->nodes[reader];
    const bool valid = strcmp(node_string(n, "auto_pad", "NOTSET"), "VALID") == 0;
    const int64_t *own = valid ? NULL : node_ints(n, "pads", &count);
    for (int side = 0; side < 2; side++)
        for (int i = 0; i < axes; i++)
            sum[side * axes + i] = pads[side * rank + 2 + i] + (own ? own[side * axes + i] : 0);
    if (valid) CLG_TRY(node_set_string(g, reader, "auto_pad", "NOTSET"));
    CLG_TRY(node_set_ints(g, reader, "pads", 2 * (size_t)axes, sum));
    if (node_is(&g->nodes[reader], "AveragePool"))
        CLG_TRY(node_set_int(g, reader, "count_include_pad", 1));
    graph_set_input(g, reader, 0, pad->inputs[0]);
    return CLG_OK;
}

static bool is_pad(const node *n) { return node_is(n, "Pad") && n->inputs[0] != VALUE_NONE; }

static clg_status give_pads(const graph_info *s, node_id id)
{
    graph *g = s->graph;
    const node *n = &g->nodes[id];
    int64_t pads[2 * CLG_MAX_RANK] = {0};
    const int rank = s->facts[n->inputs[0]].dims.rank;
    const node_id reader = graph_info_only_reader(s, id);
    if (rank < 3 || reader == NODE_NONE || g->nodes[reader].inputs[0] != n->outputs[0] ||
        !takes_zeros(&g->nodes[reader]) || !constant_pads(s, n, rank, pads) ||
        !is_spatial(pads, rank))
        return CLG_OK;
    CLG_TRY(take_pads(g, reader, n, pads, rank));
    graph_remove_node(g, id);
    return CLG_OK;
}

clg_status pass_pad(graph *g, const pass_options *options)
{
    (void)options;
    return rewrite_each(g, is_pad, give_pads);
}
