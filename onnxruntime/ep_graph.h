/* SPDX-License-Identifier: Apache-2.0
 *
 * A graph of ONNX Runtime read into arrays. Everything is borrowed from ONNX Runtime or allocated
 * from the caller's arena, and valid as long as both.
 */
#ifndef CLG_ONNXRUNTIME_EP_GRAPH_H
#define CLG_ONNXRUNTIME_EP_GRAPH_H

#include "base/memory.h"
#include "ep_host.h"

/* Values of a graph or node; an omitted input or output is NULL. */
typedef struct ep_values {
    const OrtValueInfo **items;
    size_t count;
} ep_values;

typedef struct ep_node {
    const OrtNode *node;
    const char *name, *op_type, *domain;
    ep_values inputs, outputs;
    ep_values implicit; /* values of outer graphs that subgraphs of the node read */
    size_t n_subgraphs;
} ep_node;

typedef struct ep_graph {
    const OrtGraph *graph;
    ep_node *nodes; /* in topological order */
    size_t n_nodes;
    ep_values inputs, outputs, initializers;
} ep_graph;

clg_status ep_graph_read(const ep_host *host, const OrtGraph *graph, arena *memory,
                         ep_graph *out_graph);
/* Reads the subgraphs of a node and the names of their attributes, n_subgraphs of each. */
clg_status ep_node_subgraphs(const ep_host *host, const ep_node *node, arena *memory,
                             const OrtGraph ***out_graphs, const char ***out_names);
/* Returns the name of a value, "" for NULL. */
clg_status ep_value_name(const ep_host *host, const OrtValueInfo *value, const char **out_name);
/* Returns the kind of a value and, of a tensor, its dtype, CLG_DTYPE_NONE if the library has no
 * such. */
clg_status ep_value_type(const ep_host *host, const OrtValueInfo *value, enum ONNXType *out_kind,
                         clg_dtype *out_dtype);
/* Returns the library's dtype for one of ONNX Runtime's: the numbers are ONNX's up to float4. */
static inline clg_dtype ep_dtype(ONNXTensorElementDataType type)
{
    return (int)type > 0 && (int)type <= CLG_FLOAT4E2M1 ? (clg_dtype)type : CLG_DTYPE_NONE;
}

#endif
