/* SPDX-License-Identifier: Apache-2.0
 *
 * Chains Concats: if the first inputs of a Concat are those of an earlier Concat along the same
 * axis, it gets the earlier one's output in their place. Each Concat of a dense block then copies
 * only its new part, and each part can be written in place (op.h, joins).
 */
#include "passes/rewrite.h"

#include <string.h>

/* The number of preceding Concats that are compared: a constant, so that the pass takes linear
 * time. */
#define WINDOW 32

static bool is_prefix(const node *part, const node *whole)
{
    if (part->n_inputs >= whole->n_inputs ||
        node_int(part, "axis", 1) != node_int(whole, "axis", 1) || part->opset != whole->opset)
        return false;
    return memcmp(part->inputs, whole->inputs, part->n_inputs * sizeof *part->inputs) == 0;
}

static clg_status begin_with(graph *g, node_id whole, const node *part)
{
    const node *n = &g->nodes[whole];
    const size_t n_inputs = n->n_inputs - part->n_inputs + 1;
    value_id *inputs = memory_zalloc(n_inputs, sizeof *inputs);
    if (!inputs) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    inputs[0] = part->outputs[0];
    memcpy(inputs + 1, n->inputs + part->n_inputs, (n_inputs - 1) * sizeof *inputs);
    const clg_status status = rewrite_inputs(g, whole, n_inputs, inputs);
    memory_free(inputs);
    return status;
}

clg_status pass_concat(graph *g, const pass_options *options)
{
    (void)options;
    node window[WINDOW]; /* the last Concats, with their inputs before this pass */
    size_t n_seen = 0;
    for (node_id i = 0; i < g->n_nodes; i++) {
        if (!node_is(&g->nodes[i], "Concat")) continue;
        const node before = g->nodes[i];
        const node *best = NULL;
        for (size_t k = 0; k < n_seen && k < WINDOW; k++)
            if (is_prefix(&window[k], &before) && (!best || window[k].n_inputs > best->n_inputs))
                best = &window[k];
        if (best) CLG_TRY(begin_with(g, i, best));
        window[n_seen++ % WINDOW] = before;
    }
    return CLG_OK;
}
