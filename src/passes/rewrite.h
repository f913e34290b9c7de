/* SPDX-License-Identifier: Apache-2.0
 *
 * Declares what graph passes share: the analysis of a graph (graph_info) and small edits
 * (rewrite_...); and the passes themselves.
 */
#ifndef CLG_PASSES_REWRITE_H
#define CLG_PASSES_REWRITE_H

#include "passes/passes.h"

/* The analysis of a graph that a pass works with. Edits do not update it: a pass that depends on
 * its own edits analyses again. */
typedef struct graph_info {
    graph *graph;
    uint32_t *uses;    /* by value: number of uses as an input or graph output */
    bool *constant;    /* by value: depends on constants only */
    value_fact *facts; /* by value: dtype and shape as far as known */
    node_id *reader;   /* by value: the last node that consumes it, or NODE_NONE */
    size_t n_values;   /* at the time of the analysis */
} graph_info;

/* Analyses g. On failure *out_info needs no release. */
clg_status graph_info_make(graph *g, graph_info *out_info);
void graph_info_deinit(graph_info *s);

/* Returns whether g has a node for which this is true, removed ones included. */
typedef bool (*node_filter)(const node *n);
bool graph_has(const graph *g, node_filter filter);
/* Analyses g and calls `rewrite` for each of its nodes, but those that it adds, for which the
 * filter is true; without such a node nothing is analysed, which takes longer than most passes. */
clg_status rewrite_each(graph *g, node_filter filter,
                        clg_status (*rewrite)(const graph_info *s, node_id n));

bool node_is(const node *n, const char *op_type); /* not removed, default domain, this op_type */
bool node_is_conv(const node *n);                 /* Conv, or internal FusedConv */
/* Returns the only consumer of node n's first output, if that output is used once and is not an
 * output of the graph; else NODE_NONE. */
node_id graph_info_only_reader(const graph_info *s, node_id n);
/* Returns the tensor of value v if v is a constant or its elements were inferred; else NULL. */
const tensor *graph_info_constant(const graph_info *s, value_id v);
/* Sets *out_number to the element of a constant float tensor of one element. Returns false if v is
 * none. */
bool graph_info_number(const graph_info *s, value_id v, double *out_number);
/* Returns the input other than v of a two-input node (v if both are v); VALUE_NONE for other nodes.
 */
value_id other_input(const node *n, value_id v);

/* Adds a node of the default domain with one unnamed output, which *out_value is set to. */
clg_status rewrite_add(graph *g, const char *op_type, size_t n_inputs, const value_id *inputs,
                       value_id *out_value);
/* As rewrite_add, with a given domain and opset version. Error messages name the new node as node
 * `whole`, which it implements in part. out_value may point into inputs. */
clg_status rewrite_part(graph *g, node_id whole, const char *domain, const char *op_type,
                        int64_t opset, size_t n_inputs, const value_id *inputs,
                        value_id *out_value);
/* Replaces the inputs of node n. */
clg_status rewrite_inputs(graph *g, node_id n, size_t n_inputs, const value_id *inputs);
/* Replaces node n in place by another operator without attributes; its outputs stay. `domain` and
 * `op_type` must outlive the graph. */
clg_status rewrite_become(graph *g, node_id n, const char *domain, const char *op_type,
                          int64_t opset, size_t n_inputs, const value_id *inputs);
/* Adds the attributes of node `from`, none of them a graph, to node `to`, which has none of these
 * names. */
clg_status rewrite_attributes(graph *g, node_id from, node_id to);
/* Makes node n produce the first output of node `last`, and removes `last`. The former output of n
 * has no producer then. */
void rewrite_take_output(graph *g, node_id n, node_id last);

/* The passes. pipeline.c defines their order and describes them. */
clg_status pass_gradient(graph *g, const pass_options *options);
clg_status pass_ml(graph *g, const pass_options *options);
clg_status pass_flex(graph *g, const pass_options *options);
clg_status pass_multi_head(graph *g, const pass_options *options);
clg_status pass_stash(graph *g, const pass_options *options);
clg_status pass_quantized(graph *g, const pass_options *options);
clg_status pass_identity(graph *g, const pass_options *options);
clg_status pass_shapes(graph *g, const pass_options *options);
clg_status pass_common(graph *g, const pass_options *options);
clg_status pass_split(graph *g, const pass_options *options);
clg_status pass_transpose(graph *g, const pass_options *options);
clg_status pass_pad(graph *g, const pass_options *options);
clg_status pass_qdq(graph *g, const pass_options *options);
clg_status pass_nbits(graph *g, const pass_options *options);
clg_status pass_batchnorm(graph *g, const pass_options *options);
clg_status pass_one_pixel(graph *g, const pass_options *options);
clg_status pass_activation(graph *g, const pass_options *options);
clg_status pass_norm(graph *g, const pass_options *options);
clg_status pass_attention(graph *g, const pass_options *options);
clg_status pass_epilogue(graph *g, const pass_options *options);
clg_status pass_projections(graph *g, const pass_options *options);
clg_status pass_fp16(graph *g, const pass_options *options);
clg_status pass_winograd(graph *g, const pass_options *options);
clg_status pass_concat(graph *g, const pass_options *options);
clg_status pass_blocked(graph *g, const pass_options *options);
clg_status pass_expand(graph *g, const pass_options *options);
clg_status pass_prologue(graph *g, const pass_options *options);
clg_status pass_qdq_chains(graph *g, const pass_options *options);
clg_status pass_pointwise(graph *g, const pass_options *options);
clg_status pass_dead(graph *g, const pass_options *options);

#endif
