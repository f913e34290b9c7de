/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds values that have the same first dimension although its value is unknown: a model's batch
 * size is usually not fixed, and most operators preserve it.
 */
#include "ops/pointwise/pointwise.h"
#include "passes/rewrite.h"

#include <string.h>

/* Returns whether the node's operator, whatever its attributes, gives a result with the first
 * dimension of its first input. */
static bool keeps_first(const node *n)
{
    static const char *const names[] = {"Conv",
                                        "BatchNormalization",
                                        "InstanceNormalization",
                                        "LayerNormalization",
                                        "MaxPool",
                                        "AveragePool",
                                        "GlobalAveragePool",
                                        "GlobalMaxPool",
                                        "ConvTranspose",
                                        "LRN",
                                        "Softmax"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (node_is(n, names[i])) return true;
    return false;
}

static bool matmul_keeps_first(const graph_info *s, const node *n)
{
    if (node_is(n, "Gemm")) return node_int(n, "transA", 0) == 0;
    return node_is(n, "MatMul") && s->facts[n->inputs[0]].dims.rank >= 2 &&
           s->facts[n->inputs[1]].dims.rank == 2;
}

static bool concat_keeps_first(const graph_info *s, const node *n)
{
    const int64_t axis = node_int(n, "axis", 0);
    return node_is(n, "Concat") && axis != 0 && axis != -s->facts[n->inputs[0]].dims.rank;
}

/* Returns whether v is a constant that is broadcast along the first dimension of a result of this
 * rank, and so does not determine it. */
static bool is_of_no_batch(const graph_info *s, value_id v, int rank)
{
    const shape *x = &s->facts[v].dims;
    return s->constant[v] && x->rank >= 0 && (x->rank < rank || x->dims[0] == 1);
}

/* Returns the value whose first dimension all inputs have, except for constants that are broadcast
 * along it; VALUE_NONE if there is none. */
static value_id pointwise_batch(const graph_info *s, const node *n, const value_id *batch)
{
    const int rank = s->facts[n->outputs[0]].dims.rank;
    value_id shared = VALUE_NONE;
    if (rank < 1) return VALUE_NONE;
    for (size_t i = 0; i < n->n_inputs; i++) {
        const value_id v = n->inputs[i];
        if (v == VALUE_NONE || is_of_no_batch(s, v, rank)) continue;
        if (s->facts[v].dims.rank != rank || (shared != VALUE_NONE && shared != batch[v]))
            return VALUE_NONE;
        shared = batch[v];
    }
    return shared;
}

static value_id batch_of(const graph_info *s, const node *n, const value_id *batch)
{
    if (n->n_inputs == 0 || n->inputs[0] == VALUE_NONE) return VALUE_NONE;
    if (pointwise_is(n)) return pointwise_batch(s, n, batch);
    return keeps_first(n) || matmul_keeps_first(s, n) || concat_keeps_first(s, n)
               ? batch[n->inputs[0]]
               : VALUE_NONE;
}

clg_status graph_info_batches(const graph_info *s, value_id **out_batch)
{
    value_id *batch = memory_zalloc(s->n_values + 1, sizeof *batch);
    *out_batch = batch;
    if (!batch) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t v = 0; v < s->n_values; v++) batch[v] = (value_id)v;
    for (size_t i = 0; i < s->graph->n_nodes; i++) {
        const node *n = &s->graph->nodes[i];
        if (n->removed || n->n_outputs == 0 || n->outputs[0] == VALUE_NONE) continue;
        const value_id shared = batch_of(s, n, batch);
        if (shared != VALUE_NONE) batch[n->outputs[0]] = shared;
    }
    return CLG_OK;
}
