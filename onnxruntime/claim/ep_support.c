/* SPDX-License-Identifier: Apache-2.0
 *
 * Asks the library: the graph is written as a model and loaded despite what is not supported, and
 * the list of its nodes says which are. Nodes that cannot be written, belong to another provider or
 * have types that ONNX Runtime or the device lacks are left out of it.
 */
#include "ep_support.h"

#include "base/hash_map.h"
#include "ep_model.h"

#include <clgraph/inspect.h>

#include <string.h>

typedef struct finder {
    ep_provider *provider;
    const ep_host *host;
    const ep_graph *graph;
    arena *memory;
    ep_support *support;
    /* Names of outputs of nodes, those in subgraphs included -> index into `owners`. Subgraphs of
     * different nodes may use a name twice, so owners of one name are a list. */
    hash_map outputs;
    struct owner {
        size_t node, next; /* HASH_MAP_NONE ends the list */
    } * owners;
    size_t n_owners, owners_capacity;
} finder;

/* ---- nodes that cost enough to be worth a transfer ----------------------------------------- */

static bool is_heavy(const char *op_type)
{
    static const char *const parts[] = {"Conv", "Gemm", "MatMul", "Attention", "LSTM",
                                        "GRU",  "RNN",  "Einsum", "MoE"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strstr(op_type, parts[i]) != NULL) return true;
    return false;
}

/* ---- reasons that ONNX Runtime or the device gives ----------------------------------------- */

static void refuse(finder *f, size_t node, const char *reason)
{
    f->support->supported[node] = false;
    if (f->support->reasons[node] == NULL) f->support->reasons[node] = reason;
}

static clg_status check_dtypes(finder *f, size_t node, const ep_values *values)
{
    for (size_t i = 0; i < values->count; i++) {
        enum ONNXType kind = ONNX_TYPE_UNKNOWN;
        clg_dtype dtype = CLG_DTYPE_NONE;
        if (values->items[i] == NULL) continue;
        CLG_TRY(ep_value_type(f->host, values->items[i], &kind, &dtype));
        if (kind == ONNX_TYPE_TENSOR && dtype == CLG_DTYPE_NONE)
            refuse(f, node, "a tensor's element type has no number that both sides know");
        if (dtype == CLG_FLOAT64 && !clg_context_device(f->provider->context)->fp64)
            refuse(f, node, "the device has no float64");
        if (dtype == CLG_COMPLEX64 || dtype == CLG_COMPLEX128) refuse(f, node, "complex numbers");
    }
    return CLG_OK;
}

/* Maps the names of a node's outputs, and of those in its subgraphs, to the node. */
static clg_status own_outputs(finder *f, size_t owner, const ep_node *node, size_t depth)
{
    for (size_t i = 0; i < node->outputs.count; i++) {
        const char *name = NULL;
        CLG_TRY(ep_value_name(f->host, node->outputs.items[i], &name));
        if (name[0] == '\0') continue;
        CLG_TRY(MEMORY_RESERVE(f->owners, f->owners_capacity, f->n_owners + 1));
        size_t next = hash_map_get_string(&f->outputs, name);
        f->owners[f->n_owners] = (struct owner){owner, next};
        CLG_TRY(hash_map_set_string(&f->outputs, name, f->n_owners));
        f->n_owners++;
    }
    if (is_heavy(node->op_type)) f->support->heavy[owner] = true;
    const OrtGraph **graphs = NULL;
    const char **names = NULL;
    if (node->n_subgraphs == 0 || depth > 64) return CLG_OK;
    CLG_TRY(ep_node_subgraphs(f->host, node, f->memory, &graphs, &names));
    for (size_t s = 0; graphs != NULL && s < node->n_subgraphs; s++) {
        ep_graph body;
        CLG_TRY(ep_graph_read(f->host, graphs[s], f->memory, &body));
        for (size_t i = 0; i < body.n_nodes; i++)
            CLG_TRY(own_outputs(f, owner, &body.nodes[i], depth + 1));
    }
    return CLG_OK;
}

static clg_status check_node(finder *f, size_t i)
{
    const ep_node *node = &f->graph->nodes[i];
    const char *assigned = NULL;
    EP_TRY_ORT(f->host, f->host->api->Node_GetEpName(node->node, &assigned));
    if (assigned != NULL && assigned[0] != '\0') refuse(f, i, "another provider has it");
    CLG_TRY(check_dtypes(f, i, &node->inputs));
    CLG_TRY(check_dtypes(f, i, &node->implicit));
    CLG_TRY(check_dtypes(f, i, &node->outputs));
    if (f->support->supported[i]) {
        clg_status status = ep_onnx_check_node(f->host, node, f->memory);
        if (status == CLG_ERROR_OUT_OF_HOST_MEMORY) return status;
        if (status != CLG_OK) {
            const char *reason = arena_strdup(f->memory, error_text());
            if (reason == NULL) return CLG_ERROR_OUT_OF_HOST_MEMORY;
            refuse(f, i, reason);
        }
    }
    return own_outputs(f, i, node, 0);
}

/* ---- reasons that the library gives -------------------------------------------------------- */

static clg_status refuse_unsupported(finder *f, const clg_node_info *info)
{
    for (size_t o = 0; o < info->n_outputs; o++) {
        size_t at = hash_map_get_string(&f->outputs, info->outputs[o]);
        for (; f->owners != NULL && at != HASH_MAP_NONE; at = f->owners[at].next) {
            const char *reason = arena_printf(f->memory, "%s: %s", info->op_type, info->reason);
            if (reason == NULL) return CLG_ERROR_OUT_OF_HOST_MEMORY;
            refuse(f, f->owners[at].node, reason);
        }
    }
    return CLG_OK;
}

static clg_status ask_library(finder *f, const bool *skipped)
{
    ep_onnx onnx = {0};
    clg_model *model = NULL;
    clg_node_info *nodes = NULL;
    size_t n_nodes = 0;
    clg_status status = ep_onnx_write(f->host, f->graph, skipped, f->memory, &onnx);
    if (status == CLG_OK) status = ep_onnx_load(&onnx, onnx.weights, NULL, NULL, &model);
    if (status == CLG_OK) status = ep_from_clg(clg_model_nodes(model, &nodes, &n_nodes));
    for (size_t i = 0; i < n_nodes && status == CLG_OK; i++)
        if (!nodes[i].supported) status = refuse_unsupported(f, &nodes[i]);
    clg_node_list_free(nodes, n_nodes);
    clg_model_free(model);
    ep_onnx_deinit(&onnx);
    return status;
}

clg_status ep_support_find(ep_provider *provider, const ep_graph *graph, arena *memory,
                           ep_support *out_support)
{
    finder f = {.provider = provider,
                .host = &provider->host,
                .graph = graph,
                .memory = memory,
                .support = out_support};
    size_t n = graph->n_nodes;
    clg_status status = CLG_ERROR_OUT_OF_HOST_MEMORY;
    bool *skipped = arena_alloc(memory, n + 1, sizeof *skipped);
    out_support->supported = arena_alloc(memory, n + 1, sizeof *out_support->supported);
    out_support->heavy = arena_alloc(memory, n + 1, sizeof *out_support->heavy);
    out_support->reasons = arena_alloc(memory, n + 1, sizeof *out_support->reasons);
    if (skipped == NULL || out_support->supported == NULL || out_support->heavy == NULL ||
        out_support->reasons == NULL)
        goto end;
    for (size_t i = 0; i < n; i++) out_support->supported[i] = true;
    for (size_t i = 0; i < n; i++) CLG_TRY_GOTO(check_node(&f, i), end);
    for (size_t i = 0; i < n; i++) skipped[i] = !out_support->supported[i];
    status = ask_library(&f, skipped);
end:
    memory_free(f.owners);
    hash_map_deinit(&f.outputs);
    return status;
}
