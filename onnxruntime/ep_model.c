/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes graphs with their subgraphs, and loads what was written.
 */
#include "ep_model.h"

#include "base/hash_map.h"
#include "ep_attributes.h"
#include "onnx/onnx_fields.h"
#include "tensor/formats/tensor_fields.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Smaller tensors are part of the model's bytes, as ONNX Runtime keeps them. */
#define INLINE_BYTES 127
#define MAX_NESTING 32
#define IR_VERSION 10

typedef struct model_writer {
    const ep_host *host;
    arena *memory;
    wire_writer w;
    ep_onnx *onnx;
    hash_map declared; /* names of values of the model's graph */
} model_writer;

static clg_status write_name(model_writer *m, uint32_t field, const OrtValueInfo *value)
{
    const char *name = NULL;
    CLG_TRY(ep_value_name(m->host, value, &name));
    wire_put_string(&m->w, field, name);
    return CLG_OK;
}

/* Appends a ValueInfoProto. The declared shapes of outputs may be wrong, and are not written. */
static clg_status write_port(model_writer *m, uint32_t field, const OrtValueInfo *value)
{
    const OrtTypeInfo *type = NULL;
    EP_TRY_ORT(m->host, m->host->api->GetValueInfoTypeInfo(value, &type));
    wire_begin(&m->w, field);
    CLG_TRY(write_name(m, VALUE_INFO_NAME, value));
    wire_begin(&m->w, VALUE_INFO_TYPE);
    CLG_TRY(ep_write_type(m->host, type, field != GRAPH_OUTPUT, &m->w));
    wire_end(&m->w);
    wire_end(&m->w);
    return CLG_OK;
}

/* Appends a StringStringEntryProto of TensorProto.external_data. */
static void write_entry(wire_writer *w, const char *key, size_t value)
{
    char text[32];
    (void)snprintf(text, sizeof text, "%zu", value);
    wire_begin(w, EXTERNAL_DATA);
    wire_put_string(w, ENTRY_KEY, key);
    wire_put_string(w, ENTRY_VALUE, text);
    wire_end(w);
}

static clg_status write_weight(model_writer *m, const OrtValueInfo *value)
{
    const OrtValue *tensor = NULL;
    EP_TRY_ORT(m->host, m->host->api->ValueInfo_GetInitializerValue(value, &tensor));
    if (tensor == NULL) {
        const char *name = NULL;
        CLG_TRY(ep_value_name(m->host, value, &name));
        return error_set(CLG_ERROR_INVALID_MODEL, "ONNX Runtime has no data of initializer '%s'",
                         name);
    }
    ep_weight weight = {0};
    wire_begin(&m->w, GRAPH_INITIALIZER);
    CLG_TRY(ep_write_tensor(m->host, tensor, m->memory, INLINE_BYTES, &weight.data,
                            &weight.size_bytes, &m->w));
    CLG_TRY(write_name(m, NAME, value));
    if (weight.data != NULL) {
        ep_onnx *onnx = m->onnx;
        CLG_TRY(MEMORY_RESERVE(onnx->weights, onnx->weights_capacity, onnx->n_weights + 1));
        write_entry(&m->w, "location", onnx->n_weights);
        write_entry(&m->w, "length", weight.size_bytes);
        wire_put_int(&m->w, DATA_LOCATION, LOCATION_EXTERNAL);
        onnx->weights[onnx->n_weights++] = weight;
    }
    wire_end(&m->w);
    return CLG_OK;
}

static clg_status is_constant(const ep_host *host, const OrtValueInfo *value, bool *out_constant)
{
    *out_constant = false;
    return ep_from_ort(host, host->api->ValueInfo_IsConstantInitializer(value, out_constant));
}

/* ---- nodes --------------------------------------------------------------------------------- */

static clg_status write_graph(model_writer *m, const OrtGraph *graph, size_t depth);

static clg_status write_node(model_writer *m, const ep_node *node, size_t depth)
{
    wire_writer *w = &m->w;
    wire_begin(w, GRAPH_NODE);
    for (size_t i = 0; i < node->inputs.count; i++)
        CLG_TRY(write_name(m, NODE_INPUT, node->inputs.items[i]));
    for (size_t i = 0; i < node->outputs.count; i++)
        CLG_TRY(write_name(m, NODE_OUTPUT, node->outputs.items[i]));
    wire_put_string(w, NODE_NAME, node->name);
    wire_put_string(w, NODE_OP_TYPE, node->op_type);
    wire_put_string(w, NODE_DOMAIN, node->domain);
    clg_status status = ep_write_attributes(m->host, node->node, m->memory, w);
    if (status != CLG_OK) return error_prefix(status, "node '%s' (%s)", node->name, node->op_type);
    const OrtGraph **graphs = NULL;
    const char **names = NULL;
    CLG_TRY(ep_node_subgraphs(m->host, node, m->memory, &graphs, &names));
    for (size_t i = 0; i < node->n_subgraphs; i++) {
        wire_begin(w, NODE_ATTRIBUTE);
        wire_put_string(w, ATTR_NAME, names[i]);
        wire_begin(w, ATTR_G);
        CLG_TRY(write_graph(m, graphs[i], depth + 1));
        wire_end(w);
        wire_put_int(w, ATTR_TYPE, TYPED_GRAPH);
        wire_end(w);
    }
    wire_end(w);
    return CLG_OK;
}

/* Appends the fields of a subgraph's GraphProto. */
static clg_status write_graph(model_writer *m, const OrtGraph *graph, size_t depth)
{
    if (depth > MAX_NESTING)
        return error_set(CLG_ERROR_INVALID_MODEL, "subgraphs are nested more than %d deep",
                         MAX_NESTING);
    ep_graph g;
    const char *name = NULL;
    CLG_TRY(ep_graph_read(m->host, graph, m->memory, &g));
    EP_TRY_ORT(m->host, m->host->api->Graph_GetName(graph, &name));
    wire_put_string(&m->w, GRAPH_NAME, name[0] != '\0' ? name : "body");
    for (size_t i = 0; i < g.initializers.count; i++)
        CLG_TRY(write_weight(m, g.initializers.items[i]));
    for (size_t i = 0; i < g.inputs.count; i++)
        CLG_TRY(write_port(m, GRAPH_INPUT, g.inputs.items[i]));
    for (size_t i = 0; i < g.outputs.count; i++)
        CLG_TRY(write_port(m, GRAPH_OUTPUT, g.outputs.items[i]));
    for (size_t i = 0; i < g.n_nodes; i++) CLG_TRY(write_node(m, &g.nodes[i], depth));
    return CLG_OK;
}

/* ---- the model's graph --------------------------------------------------------------------- */

/* Declares a value as an input or weight of the model unless it is declared. */
static clg_status declare_read(model_writer *m, const OrtValueInfo *value)
{
    const char *name = NULL;
    bool constant = false;
    CLG_TRY(ep_value_name(m->host, value, &name));
    if (name[0] == '\0' || hash_map_get_string(&m->declared, name) != HASH_MAP_NONE) return CLG_OK;
    CLG_TRY(hash_map_set_string(&m->declared, name, 1));
    CLG_TRY(is_constant(m->host, value, &constant));
    return constant ? write_weight(m, value) : write_port(m, GRAPH_INPUT, value);
}

static clg_status declare_node(model_writer *m, const ep_node *node)
{
    for (size_t i = 0; i < node->inputs.count; i++) CLG_TRY(declare_read(m, node->inputs.items[i]));
    for (size_t i = 0; i < node->implicit.count; i++)
        CLG_TRY(declare_read(m, node->implicit.items[i]));
    for (size_t i = 0; i < node->outputs.count; i++) {
        const char *name = NULL;
        CLG_TRY(ep_value_name(m->host, node->outputs.items[i], &name));
        if (name[0] != '\0') CLG_TRY(hash_map_set_string(&m->declared, name, 2));
    }
    return CLG_OK;
}

static clg_status write_outputs(model_writer *m, const ep_graph *graph, const ep_node *last)
{
    size_t n = 0;
    for (size_t i = 0; i < graph->outputs.count; i++) {
        const char *name = NULL;
        CLG_TRY(ep_value_name(m->host, graph->outputs.items[i], &name));
        if (hash_map_get_string(&m->declared, name) == HASH_MAP_NONE) continue;
        CLG_TRY(write_port(m, GRAPH_OUTPUT, graph->outputs.items[i]));
        n++;
    }
    for (size_t i = 0; n == 0 && last != NULL && i < last->outputs.count; i++)
        if (last->outputs.items[i] != NULL)
            CLG_TRY(write_port(m, GRAPH_OUTPUT, last->outputs.items[i]));
    return CLG_OK;
}

static clg_status write_opsets(model_writer *m, const OrtGraph *graph)
{
    size_t n = 0;
    EP_TRY_ORT(m->host, m->host->api->Graph_GetNumOperatorSets(graph, &n));
    const char **domains = arena_alloc(m->memory, n + 1, sizeof *domains);
    int64_t *versions = arena_alloc(m->memory, n + 1, sizeof *versions);
    if (domains == NULL || versions == NULL) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    EP_TRY_ORT(m->host, m->host->api->Graph_GetOperatorSets(graph, domains, versions, n));
    for (size_t i = 0; i < n; i++) {
        wire_begin(&m->w, MODEL_OPSET_IMPORT);
        wire_put_string(&m->w, OPSET_DOMAIN, domains[i]);
        wire_put_int(&m->w, OPSET_VERSION, versions[i]);
        wire_end(&m->w);
    }
    return CLG_OK;
}

static clg_status write_model(model_writer *m, const ep_graph *graph, const bool *skipped)
{
    const ep_node *last = NULL;
    wire_put_int(&m->w, MODEL_IR_VERSION, IR_VERSION);
    wire_put_string(&m->w, MODEL_PRODUCER_NAME, "clgraph");
    CLG_TRY(write_opsets(m, graph->graph));
    wire_begin(&m->w, MODEL_GRAPH);
    wire_put_string(&m->w, GRAPH_NAME, "group");
    for (size_t i = 0; i < graph->n_nodes; i++) {
        if (skipped != NULL && skipped[i]) continue;
        last = &graph->nodes[i];
        CLG_TRY(declare_node(m, last));
        CLG_TRY(write_node(m, last, 0));
    }
    CLG_TRY(write_outputs(m, graph, last));
    wire_end(&m->w);
    return wire_writer_take(&m->w, &m->onnx->bytes, &m->onnx->size_bytes);
}

clg_status ep_onnx_write(const ep_host *host, const ep_graph *graph, const bool *skipped,
                         arena *memory, ep_onnx *out_onnx)
{
    *out_onnx = (ep_onnx){0};
    model_writer m = {.host = host, .memory = memory, .onnx = out_onnx};
    wire_writer_init(&m.w);
    clg_status status = write_model(&m, graph, skipped);
    wire_writer_deinit(&m.w);
    hash_map_deinit(&m.declared);
    if (status != CLG_OK) ep_onnx_deinit(out_onnx);
    return status;
}

clg_status ep_onnx_check_node(const ep_host *host, const ep_node *node, arena *memory)
{
    ep_onnx onnx = {0};
    model_writer m = {.host = host, .memory = memory, .onnx = &onnx};
    wire_writer_init(&m.w);
    clg_status status = write_node(&m, node, 0);
    wire_writer_deinit(&m.w);
    ep_onnx_deinit(&onnx);
    return status;
}

void ep_onnx_deinit(ep_onnx *onnx)
{
    memory_free(onnx->bytes);
    memory_free(onnx->weights);
    *onnx = (ep_onnx){0};
}

/* ---- loading ------------------------------------------------------------------------------- */

typedef struct weight_list {
    const ep_weight *items;
    size_t n_items;
    clg_release_callback release;
    void *user;
} weight_list;

/* A clg_external_data_callback. The location is the index of a weight. */
static clg_status give_weight(void *user, const char *location, uint64_t offset_bytes,
                              uint64_t length_bytes, const void **out_data)
{
    const weight_list *list = user;
    uint64_t index = 0;
    for (const char *c = location; *c >= '0' && *c <= '9' && index < list->n_items; c++)
        index = index * 10 + (uint64_t)(*c - '0');
    if (index >= list->n_items || offset_bytes != 0 ||
        length_bytes != list->items[index].size_bytes)
        return CLG_ERROR_INTERNAL; /* the model was written beside the list */
    *out_data = list->items[index].data;
    return CLG_OK;
}

static void release_list(void *user)
{
    weight_list *list = user;
    if (list->release != NULL) list->release(list->user);
    memory_free(list);
}

clg_status ep_onnx_load(const ep_onnx *onnx, const ep_weight *weights, clg_release_callback release,
                        void *user, clg_model **out_model)
{
    weight_list *list = memory_zalloc(1, sizeof *list);
    if (list == NULL) {
        if (release != NULL) release(user);
        return CLG_ERROR_OUT_OF_HOST_MEMORY;
    }
    *list = (weight_list){weights, onnx->n_weights, release, user};
    clg_model_options options = CLG_MODEL_OPTIONS_INIT;
    options.allow_unsupported = true;
    options.external_data = give_weight;
    options.external_release = release_list;
    options.external_user = list;
    return ep_from_clg(clg_model_load_memory(onnx->bytes, onnx->size_bytes, &options, out_model));
}
