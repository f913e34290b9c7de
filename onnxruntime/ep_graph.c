/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads graphs and nodes through ONNX Runtime's functions, each of which gives a count first and
 * then fills an array.
 */
#include "ep_graph.h"

typedef OrtStatus *(ORT_API_CALL *graph_count)(const OrtGraph *graph, size_t *n);
typedef OrtStatus *(ORT_API_CALL *graph_fill)(const OrtGraph *graph, const OrtValueInfo **items,
                                              size_t n);
typedef OrtStatus *(ORT_API_CALL *node_count)(const OrtNode *node, size_t *n);
typedef OrtStatus *(ORT_API_CALL *node_fill)(const OrtNode *node, const OrtValueInfo **items,
                                             size_t n);

static clg_status allocate(arena *memory, ep_values *values)
{
    values->items = arena_alloc(memory, values->count + 1, sizeof *values->items);
    return values->items != NULL ? CLG_OK : CLG_ERROR_OUT_OF_HOST_MEMORY;
}

static clg_status read_graph_values(const ep_host *host, const OrtGraph *graph, graph_count count,
                                    graph_fill fill, arena *memory, ep_values *out)
{
    EP_TRY_ORT(host, count(graph, &out->count));
    CLG_TRY(allocate(memory, out));
    return ep_from_ort(host, fill(graph, out->items, out->count));
}

static clg_status read_node_values(const ep_host *host, const OrtNode *node, node_count count,
                                   node_fill fill, arena *memory, ep_values *out)
{
    EP_TRY_ORT(host, count(node, &out->count));
    CLG_TRY(allocate(memory, out));
    return ep_from_ort(host, fill(node, out->items, out->count));
}

static clg_status read_node(const ep_host *host, const OrtNode *node, arena *memory, ep_node *out)
{
    const OrtApi *api = host->api;
    out->node = node;
    EP_TRY_ORT(host, api->Node_GetName(node, &out->name));
    EP_TRY_ORT(host, api->Node_GetOperatorType(node, &out->op_type));
    EP_TRY_ORT(host, api->Node_GetDomain(node, &out->domain));
    EP_TRY_ORT(host, api->Node_GetNumSubgraphs(node, &out->n_subgraphs));
    CLG_TRY(read_node_values(host, node, api->Node_GetNumInputs, api->Node_GetInputs, memory,
                             &out->inputs));
    CLG_TRY(read_node_values(host, node, api->Node_GetNumOutputs, api->Node_GetOutputs, memory,
                             &out->outputs));
    return read_node_values(host, node, api->Node_GetNumImplicitInputs, api->Node_GetImplicitInputs,
                            memory, &out->implicit);
}

clg_status ep_graph_read(const ep_host *host, const OrtGraph *graph, arena *memory,
                         ep_graph *out_graph)
{
    const OrtApi *api = host->api;
    *out_graph = (ep_graph){.graph = graph};
    CLG_TRY(read_graph_values(host, graph, api->Graph_GetNumInputs, api->Graph_GetInputs, memory,
                              &out_graph->inputs));
    CLG_TRY(read_graph_values(host, graph, api->Graph_GetNumOutputs, api->Graph_GetOutputs, memory,
                              &out_graph->outputs));
    CLG_TRY(read_graph_values(host, graph, api->Graph_GetNumInitializers,
                              api->Graph_GetInitializers, memory, &out_graph->initializers));
    EP_TRY_ORT(host, api->Graph_GetNumNodes(graph, &out_graph->n_nodes));
    const OrtNode **nodes = arena_alloc(memory, out_graph->n_nodes + 1, sizeof *nodes);
    out_graph->nodes = arena_alloc(memory, out_graph->n_nodes + 1, sizeof *out_graph->nodes);
    if (nodes == NULL || out_graph->nodes == NULL) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    EP_TRY_ORT(host, api->Graph_GetNodes(graph, nodes, out_graph->n_nodes));
    for (size_t i = 0; i < out_graph->n_nodes; i++)
        CLG_TRY(read_node(host, nodes[i], memory, &out_graph->nodes[i]));
    return CLG_OK;
}

clg_status ep_node_subgraphs(const ep_host *host, const ep_node *node, arena *memory,
                             const OrtGraph ***out_graphs, const char ***out_names)
{
    *out_graphs = arena_alloc(memory, node->n_subgraphs + 1, sizeof **out_graphs);
    *out_names = arena_alloc(memory, node->n_subgraphs + 1, sizeof **out_names);
    if (*out_graphs == NULL || *out_names == NULL) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    if (node->n_subgraphs == 0) return CLG_OK;
    return ep_from_ort(
        host, host->api->Node_GetSubgraphs(node->node, *out_graphs, node->n_subgraphs, *out_names));
}

clg_status ep_value_name(const ep_host *host, const OrtValueInfo *value, const char **out_name)
{
    *out_name = "";
    if (value == NULL) return CLG_OK;
    return ep_from_ort(host, host->api->GetValueInfoName(value, out_name));
}

clg_status ep_value_type(const ep_host *host, const OrtValueInfo *value, enum ONNXType *out_kind,
                         clg_dtype *out_dtype)
{
    const OrtTypeInfo *type = NULL;
    const OrtTensorTypeAndShapeInfo *tensor = NULL;
    ONNXTensorElementDataType element = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
    *out_kind = ONNX_TYPE_UNKNOWN;
    *out_dtype = CLG_DTYPE_NONE;
    EP_TRY_ORT(host, host->api->GetValueInfoTypeInfo(value, &type));
    if (type == NULL) return CLG_OK;
    EP_TRY_ORT(host, host->api->GetOnnxTypeFromTypeInfo(type, out_kind));
    if (*out_kind != ONNX_TYPE_TENSOR) return CLG_OK;
    EP_TRY_ORT(host, host->api->CastTypeInfoToTensorInfo(type, &tensor));
    EP_TRY_ORT(host, host->api->GetTensorElementType(tensor, &element));
    *out_dtype = ep_dtype(element);
    return CLG_OK;
}
