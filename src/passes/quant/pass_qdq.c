/* SPDX-License-Identifier: Apache-2.0
 *
 * Converts models in QDQ form (float operators between DequantizeLinear and QuantizeLinear) to
 * integer arithmetic: moves DequantizeLinear and QuantizeLinear past operators that only move
 * elements (qdq_moves.c), then replaces operators between them by quantised ones (qdq_take.c).
 */
#include "passes/quant/qdq.h"

#include <string.h>

static clg_status run(graph *g, clg_status (*edit)(const graph_info *s))
{
    graph_info s;
    CLG_TRY(graph_info_make(g, &s));
    clg_status status = edit(&s);
    graph_info_deinit(&s);
    if (status == CLG_OK) status = graph_compact(g);
    return status == CLG_OK ? ops_resolve(g) : status;
}

static bool has_quantised(const graph *g)
{
    for (node_id i = 0; i < g->n_nodes; i++)
        if (strcmp(g->nodes[i].op_type, "DequantizeLinear") == 0) return true;
    return false;
}

clg_status pass_qdq(graph *g, const pass_options *options)
{
    if (!has_quantised(g)) return CLG_OK;
    CLG_TRY(run(g, qdq_climb));
    CLG_TRY(run(g, qdq_sink));
    CLG_TRY(run(g, qdq_take_all));
    return pass_dead(g, options); /* weights whose dequantised values are unused now */
}
