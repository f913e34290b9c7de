/* SPDX-License-Identifier: Apache-2.0
 *
 * Rewrites DequantizeLinear and QuantizeLinear with a single scale as pointwise operators, so that
 * they can be fused with adjacent pointwise operators into one kernel that reads and writes bytes.
 * Each pointwise consumer gets its own DequantizeLinear. The arithmetic is unchanged, in float32.
 * Constants are not rewritten: they are dequantised once. Runs late, since other passes recognise
 * activations by the number of consumers of a value.
 */
#include "ops/pointwise/pointwise.h"
#include "passes/quant/qdq.h"

bool qdq_is_pointwise(const node *n) { return !n->removed && pointwise_is(n); }

static clg_status set_numbers(graph *g, node_id n, const qdq_pair *p, clg_dtype to)
{
    CLG_TRY(node_set_float(g, n, "zero", (float)qdq_zero(p, 0)));
    CLG_TRY(node_set_float(g, n, "scale", (float)qdq_scale(p, 0)));
    return node_set_int(g, n, "to", to);
}

/* Returns whether v is the output of a DequantizeLinear that can be rewritten and is not constant.
 */
static bool is_source(const graph_info *s, value_id v, qdq_pair *out)
{
    return qdq_after(s, v, out) && qdq_is_plain(out) && !s->constant[v];
}

static clg_status dequantize_inputs(const graph_info *s, node_id id)
{
    graph *g = s->graph;
    qdq_pair p;
    value_id made;
    for (size_t i = 0; i < g->nodes[id].n_inputs; i++) {
        const value_id v = g->nodes[id].inputs[i];
        if (!is_source(s, v, &p)) continue;
        CLG_TRY(rewrite_part(g, id, DOMAIN_INTERNAL, "Dequantized", 1, 1, &p.bytes, &made));
        CLG_TRY(set_numbers(g, g->values[made].producer, &p, CLG_FLOAT32));
        for (size_t k = i; k < g->nodes[id].n_inputs; k++)
            if (g->nodes[id].inputs[k] == v) graph_set_input(g, id, k, made);
    }
    return CLG_OK;
}

static clg_status decompose_quantize(const graph_info *s, const qdq_pair *q)
{
    CLG_TRY(rewrite_become(s->graph, q->node, DOMAIN_INTERNAL, "Quantized", 1, 1, &q->reals));
    CLG_TRY(set_numbers(s->graph, q->node, q, q->dtype));
    return dequantize_inputs(s, q->node);
}

/* Rewrites consumers before the DequantizeLinears themselves: pointwise operators and
 * QuantizeLinear are rewritten by the DequantizeLinear at their inputs. */
static clg_status decompose_readers(const graph_info *s, size_t n_nodes)
{
    qdq_pair q;
    for (node_id i = 0; i < n_nodes; i++) {
        const node *n = &s->graph->nodes[i];
        if (qdq_is_pointwise(n) && !s->constant[n->outputs[0]])
            CLG_TRY(dequantize_inputs(s, i));
        else if (qdq_read(s, i, "QuantizeLinear", &q) && qdq_is_plain(&q) && !s->constant[q.reals])
            CLG_TRY(decompose_quantize(s, &q));
    }
    return CLG_OK;
}

static clg_status decompose_all(const graph_info *s)
{
    qdq_pair p;
    const size_t n_nodes = s->graph->n_nodes;
    CLG_TRY(decompose_readers(s, n_nodes));
    for (node_id i = 0; i < n_nodes; i++)
        if (qdq_read(s, i, "DequantizeLinear", &p) && is_source(s, p.reals, &p)) {
            CLG_TRY(rewrite_become(s->graph, i, DOMAIN_INTERNAL, "Dequantized", 1, 1, &p.bytes));
            CLG_TRY(set_numbers(s->graph, i, &p, CLG_FLOAT32));
        }
    return CLG_OK;
}

clg_status pass_qdq_chains(graph *g, const pass_options *options)
{
    graph_info s;
    CLG_TRY(graph_info_make(g, &s));
    const clg_status status = decompose_all(&s);
    graph_info_deinit(&s);
    return status == CLG_OK ? pass_dead(g, options) : status; /* the next passes count consumers */
}
