/* SPDX-License-Identifier: Apache-2.0
 *
 * Groups the supported nodes of a graph and claims the groups that are worth it.
 *
 * ONNX Runtime asks for the subgraphs of If, Loop and Scan before the graph that has the node. What
 * was claimed in a subgraph would keep the node itself from being claimed. So nothing is claimed in
 * a subgraph all of which is supported: the node will be, with it.
 */
#include "ep_capability.h"

#include "base/hash_map.h"
#include "ep_groups.h"
#include "ep_support.h"

#include <string.h>

/* A group with no heavy node is claimed from this number of nodes on: below, two transfers and a
 * launch each cost more than the work. */
#define MIN_LIGHT_NODES 16

typedef struct claim {
    ep_provider *provider;
    const ep_host *host;
    ep_graph graph;
    arena memory;
    ep_support support;
    hash_map producers; /* name of a value -> index of the node */
    ep_edges edges;
    bool *carries_other; /* edges over which something other than a tensor passes */
    size_t *group;
    size_t n_groups;
} claim;

/* Returns whether ONNX Runtime cannot hand such a value to or from a provider in a library:
 * anything but a tensor, and strings in memory of a device. */
static bool cannot_cross(const claim *c, enum ONNXType kind, clg_dtype dtype)
{
    return kind != ONNX_TYPE_TENSOR || (c->provider->on_device && dtype == CLG_STRING);
}

#define CANNOT_CROSS(c)                                                                            \
    ((c)->provider->on_device ? "a sequence, optional, map or tensor of strings"                   \
                              : "a sequence, optional or map")

/* Says why a node is refused. */
static clg_status refuse_for(claim *c, size_t node, const char *what)
{
    c->support.supported[node] = false;
    c->support.reasons[node] = arena_printf(&c->memory, "%s %s", CANNOT_CROSS(c), what);
    return c->support.reasons[node] != NULL ? CLG_OK : CLG_ERROR_OUT_OF_HOST_MEMORY;
}

/* ---- edges --------------------------------------------------------------------------------- */

static clg_status map_producers(claim *c)
{
    for (size_t i = 0; i < c->graph.n_nodes; i++)
        for (size_t o = 0; o < c->graph.nodes[i].outputs.count; o++) {
            const char *name = NULL;
            CLG_TRY(ep_value_name(c->host, c->graph.nodes[i].outputs.items[o], &name));
            if (name[0] != '\0') CLG_TRY(hash_map_set_string(&c->producers, name, i));
        }
    return CLG_OK;
}

typedef struct edge {
    size_t from, to;
    bool other; /* a sequence, optional or map */
} edge;

static clg_status list_edges(claim *c, const ep_values *values, size_t to, edge **edges, size_t *n,
                             size_t *capacity)
{
    for (size_t i = 0; i < values->count; i++) {
        const char *name = NULL;
        CLG_TRY(ep_value_name(c->host, values->items[i], &name));
        size_t from = hash_map_get_string(&c->producers, name);
        enum ONNXType kind = ONNX_TYPE_TENSOR;
        clg_dtype dtype = CLG_DTYPE_NONE;
        if (values->items[i] != NULL)
            CLG_TRY(ep_value_type(c->host, values->items[i], &kind, &dtype));
        bool other = cannot_cross(c, kind, dtype);
        if (from == HASH_MAP_NONE) {
            if (!other) continue;
            CLG_TRY(refuse_for(c, to, "is an input of the graph"));
            continue;
        }
        if (from >= to)
            return error_set(CLG_ERROR_INTERNAL, "ONNX Runtime's nodes are not in order");
        CLG_TRY(memory_reserve((void **)edges, capacity, *n + 1, sizeof **edges));
        (*edges)[(*n)++] = (edge){from, to, other};
    }
    return CLG_OK;
}

/* Sorts the edges by the node that they leave. */
static clg_status sort_edges(claim *c, const edge *edges, size_t n)
{
    size_t n_nodes = c->graph.n_nodes;
    size_t *first = arena_alloc(&c->memory, n_nodes + 2, sizeof *first);
    size_t *to = arena_alloc(&c->memory, n + 1, sizeof *to);
    c->carries_other = arena_alloc(&c->memory, n + 1, sizeof *c->carries_other);
    if (first == NULL || to == NULL || c->carries_other == NULL)
        return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t e = 0; e < n; e++) first[edges[e].from + 2]++;
    for (size_t i = 2; i < n_nodes + 2; i++) first[i] += first[i - 1];
    for (size_t e = 0; e < n; e++) {
        size_t at = first[edges[e].from + 1]++;
        to[at] = edges[e].to;
        c->carries_other[at] = edges[e].other;
    }
    c->edges = (ep_edges){n_nodes, first, to};
    return CLG_OK;
}

static clg_status find_edges(claim *c)
{
    edge *edges = NULL;
    size_t n = 0, capacity = 0;
    clg_status status = map_producers(c);
    for (size_t i = 0; i < c->graph.n_nodes && status == CLG_OK; i++) {
        status = list_edges(c, &c->graph.nodes[i].inputs, i, &edges, &n, &capacity);
        if (status == CLG_OK)
            status = list_edges(c, &c->graph.nodes[i].implicit, i, &edges, &n, &capacity);
    }
    if (status == CLG_OK) status = sort_edges(c, edges, n);
    memory_free(edges);
    return status;
}

/* ---- groups -------------------------------------------------------------------------------- */

/* Refuses nodes whose outputs are outputs of the graph and no tensors: ONNX Runtime takes only
 * tensors from providers in libraries. */
static clg_status refuse_other_outputs(claim *c)
{
    for (size_t i = 0; i < c->graph.outputs.count; i++) {
        enum ONNXType kind = ONNX_TYPE_TENSOR;
        clg_dtype dtype = CLG_DTYPE_NONE;
        const char *name = NULL;
        CLG_TRY(ep_value_type(c->host, c->graph.outputs.items[i], &kind, &dtype));
        CLG_TRY(ep_value_name(c->host, c->graph.outputs.items[i], &name));
        size_t from = hash_map_get_string(&c->producers, name);
        if (!cannot_cross(c, kind, dtype) || from == HASH_MAP_NONE) continue;
        CLG_TRY(refuse_for(c, from, "is an output of the graph"));
    }
    return CLG_OK;
}

/* Refuses the nodes on both sides of a group's border that something other than a tensor crosses.
 * Sets *out_found if there was one. */
static clg_status refuse_crossing(claim *c, bool *out_found)
{
    for (size_t i = 0; i < c->edges.n_nodes; i++)
        for (size_t e = c->edges.first[i]; e < c->edges.first[i + 1]; e++) {
            size_t ends[2] = {i, c->edges.to[e]};
            if (!c->carries_other[e] || c->group[ends[0]] == c->group[ends[1]]) continue;
            for (size_t k = 0; k < 2; k++) {
                if (!c->support.supported[ends[k]]) continue;
                *out_found = true;
                CLG_TRY(refuse_for(c, ends[k], "comes from or goes to a node that is not claimed"));
            }
        }
    return CLG_OK;
}

/* ---- what older ONNX Runtimes cannot do ---------------------------------------------------- */

/* Inserts, or finds, the name of a value together with the number of a group. */
static clg_status group_key(claim *c, const OrtValueInfo *value, size_t group, char **out_key)
{
    const char *name = NULL;
    CLG_TRY(ep_value_name(c->host, value, &name));
    *out_key = arena_printf(&c->memory, "%zu %s", group, name);
    return *out_key != NULL ? CLG_OK : CLG_ERROR_OUT_OF_HOST_MEMORY;
}

/* Sets *out_lost to whether only subgraphs of the group's nodes read this value from outside. */
static clg_status is_lost(claim *c, const hash_map *explicit, const OrtValueInfo *value,
                          size_t group, bool *out_lost)
{
    bool constant = false;
    const char *name = NULL;
    char *key = NULL;
    *out_lost = false;
    CLG_TRY(ep_value_name(c->host, value, &name));
    size_t from = hash_map_get_string(&c->producers, name);
    if (from != HASH_MAP_NONE && c->group[from] == group) return CLG_OK;
    EP_TRY_ORT(c->host, c->host->api->ValueInfo_IsConstantInitializer(value, &constant));
    if (constant) return CLG_OK;
    CLG_TRY(group_key(c, value, group, &key));
    *out_lost = hash_map_get_string(explicit, key) == HASH_MAP_NONE;
    return CLG_OK;
}

/* Refuses nodes of which ONNX Runtime would lose inputs; sets *out_found if there was one. */
static clg_status refuse_lost_inputs(claim *c, bool *out_found)
{
    hash_map explicit = {0};
    clg_status status = CLG_OK;
    size_t n = c->host->minor < EP_KNOWS_IMPLICIT_INPUTS ? c->graph.n_nodes : 0;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < c->graph.nodes[i].inputs.count; k++) {
            char *key = NULL;
            if (c->group[i] == EP_NO_GROUP) break;
            CLG_TRY_GOTO(group_key(c, c->graph.nodes[i].inputs.items[k], c->group[i], &key), end);
            CLG_TRY_GOTO(hash_map_set_string(&explicit, key, i), end);
        }
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < c->graph.nodes[i].implicit.count; k++) {
            bool lost = false;
            if (c->group[i] == EP_NO_GROUP || !c->support.supported[i]) break;
            CLG_TRY_GOTO(
                is_lost(c, &explicit, c->graph.nodes[i].implicit.items[k], c->group[i], &lost),
                end);
            if (!lost) continue;
            *out_found = true;
            c->support.supported[i] = false;
            c->support.reasons[i] = "this ONNX Runtime loses inputs of nodes with subgraphs; 1.27 "
                                    "and newer do not";
        }
end:
    hash_map_deinit(&explicit);
    return status;
}

/* Sets *out_outer to whether a node reads a value of an outer graph. */
static clg_status reads_outer(claim *c, bool *out_outer)
{
    *out_outer = false;
    for (size_t i = 0; i < c->graph.n_nodes && !*out_outer; i++) {
        const ep_values *lists[] = {&c->graph.nodes[i].inputs, &c->graph.nodes[i].implicit};
        for (size_t l = 0; l < 2; l++)
            for (size_t k = 0; k < lists[l]->count && !*out_outer; k++)
                if (lists[l]->items[k] != NULL)
                    EP_TRY_ORT(c->host, c->host->api->ValueInfo_IsFromOuterScope(lists[l]->items[k],
                                                                                 out_outer));
    }
    return CLG_OK;
}

/* Sets *out_allowed to whether nodes of this graph may be claimed although an ONNX Runtime before
 * EP_KNOWS_PARENTS does not say whether it is a subgraph: fused nodes of one graph only. */
static clg_status is_only_graph(claim *c, bool *out_allowed)
{
    bool outer = false;
    const char *name = NULL;
    *out_allowed = true;
    if (c->host->minor >= EP_KNOWS_PARENTS) return CLG_OK;
    CLG_TRY(reads_outer(c, &outer));
    EP_TRY_ORT(c->host, c->host->api->Graph_GetName(c->graph.graph, &name));
    char **claimed = &c->provider->claimed_graph;
    *out_allowed = !outer && (*claimed == NULL || strcmp(*claimed, name) == 0);
    if (!*out_allowed)
        ep_log(
            c->host, ORT_LOGGING_LEVEL_INFO,
            "claims no node of subgraph '%s': this ONNX Runtime allows one graph; 1.24 and newer "
            "allow all",
            name);
    if (*out_allowed && *claimed == NULL) {
        *claimed = memory_strdup(name);
        if (*claimed == NULL) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    }
    return CLG_OK;
}

/* ---- groups of nodes ----------------------------------------------------------------------- */

static clg_status find_groups(claim *c)
{
    size_t n = c->graph.n_nodes;
    c->group = arena_alloc(&c->memory, n + 1, sizeof *c->group);
    if (c->group == NULL) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    CLG_TRY(refuse_other_outputs(c));
    /* Each round refuses a node or is the last one. */
    for (size_t round = 0; round < 64; round++) {
        CLG_TRY(ep_groups_find(&c->edges, c->support.supported, c->group, &c->n_groups));
        bool refused = false;
        CLG_TRY(refuse_crossing(c, &refused));
        CLG_TRY(refuse_lost_inputs(c, &refused));
        if (!refused) return CLG_OK;
    }
    for (size_t i = 0; i < n; i++)
        for (size_t e = c->edges.first[i]; e < c->edges.first[i + 1]; e++)
            if (c->carries_other[e])
                c->support.supported[i] = c->support.supported[c->edges.to[e]] = false;
    return ep_groups_find(&c->edges, c->support.supported, c->group, &c->n_groups);
}

/* Drops the groups that are not worth a transfer, unless all nodes are supported. */
static clg_status drop_small(claim *c)
{
    size_t n = c->graph.n_nodes, n_supported = 0;
    size_t *sizes = arena_alloc(&c->memory, c->n_groups + 1, sizeof *sizes);
    bool *heavy = arena_alloc(&c->memory, c->n_groups + 1, sizeof *heavy);
    if (sizes == NULL || heavy == NULL) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; i < n; i++) {
        if (!c->support.supported[i]) continue;
        n_supported++;
        sizes[c->group[i]]++;
        if (c->support.heavy[i]) heavy[c->group[i]] = true;
    }
    for (size_t i = 0; i < n && n_supported < n; i++) {
        size_t g = c->group[i];
        if (!c->support.supported[i] || heavy[g] || sizes[g] >= MIN_LIGHT_NODES) continue;
        c->support.supported[i] = false;
        c->support.reasons[i] = "a small group of cheap nodes is not worth a transfer";
        c->group[i] = EP_NO_GROUP;
    }
    return CLG_OK;
}

static clg_status add_groups(claim *c, OrtEpGraphSupportInfo *support)
{
    size_t n = c->graph.n_nodes;
    size_t *first = arena_alloc(&c->memory, c->n_groups + 2, sizeof *first);
    const OrtNode **nodes = arena_alloc(&c->memory, n + 1, sizeof *nodes);
    if (first == NULL || nodes == NULL) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; i < n; i++)
        if (c->group[i] != EP_NO_GROUP) first[c->group[i] + 2]++;
    for (size_t g = 2; g < c->n_groups + 2; g++) first[g] += first[g - 1];
    for (size_t i = 0; i < n; i++)
        if (c->group[i] != EP_NO_GROUP) nodes[first[c->group[i] + 1]++] = c->graph.nodes[i].node;
    OrtNodeFusionOptions options = {.ort_version_supported = EP_API_VERSION,
                                    .drop_constant_initializers = true};
    /* first[g + 1] is now the end of group g. */
    for (size_t g = 0; g < c->n_groups; g++) {
        size_t at = g > 0 ? first[g] : 0;
        if (at < first[g + 1])
            EP_TRY_ORT(c->host, c->host->ep_api->EpGraphSupportInfo_AddNodesToFuse(
                                    support, nodes + at, first[g + 1] - at, &options));
    }
    return CLG_OK;
}

/* ---- the log ------------------------------------------------------------------------------- */

static void log_result(claim *c, bool nested)
{
    size_t n = c->graph.n_nodes, n_left = 0, n_groups = 0, next = 0;
    for (size_t i = 0; i < n; i++) {
        if (c->group[i] == EP_NO_GROUP) {
            n_left++;
        } else if (c->group[i] >= next) { /* groups are numbered by their first nodes */
            next = c->group[i] + 1;
            n_groups++;
        }
    }
    OrtLoggingLevel level =
        n_left > 0 && !nested ? ORT_LOGGING_LEVEL_WARNING : ORT_LOGGING_LEVEL_INFO;
    ep_log(c->host, level, "%zu of %zu nodes of the %s in %zu group(s) on %s%s", n - n_left, n,
           nested ? "subgraph" : "graph", n_groups, clg_context_device(c->provider->context)->name,
           n_left > 0 ? "; INFO messages have the others" : "");
    for (size_t i = 0; i < n; i++)
        if (c->group[i] == EP_NO_GROUP)
            ep_log(c->host, ORT_LOGGING_LEVEL_INFO, "not claimed: node '%s' (%s): %s",
                   c->graph.nodes[i].name, c->graph.nodes[i].op_type,
                   c->support.reasons[i] != NULL ? c->support.reasons[i] : "");
}

/* ---- all of it ----------------------------------------------------------------------------- */

static bool all_supported(const claim *c)
{
    for (size_t i = 0; i < c->graph.n_nodes; i++)
        if (!c->support.supported[i]) return false;
    return true;
}

static clg_status claim_graph(claim *c, const OrtGraph *graph, OrtEpGraphSupportInfo *support)
{
    const OrtNode *parent = NULL;
    CLG_TRY(ep_graph_read(c->host, graph, &c->memory, &c->graph));
    if (c->graph.n_nodes == 0) return CLG_OK;
    EP_TRY_ORT(c->host, c->host->api->Graph_GetParentNode(graph, &parent));
    clg_status status = ep_support_find(c->provider, &c->graph, &c->memory, &c->support);
    if (status == CLG_ERROR_OUT_OF_HOST_MEMORY) return status;
    if (status != CLG_OK) {
        ep_log(c->host, ORT_LOGGING_LEVEL_WARNING, "claims no node: %s (%s)", error_text(),
               clg_status_name(status));
        return CLG_OK;
    }
    bool allowed = true;
    if (parent != NULL && all_supported(c)) return CLG_OK;
    CLG_TRY(find_edges(c));
    CLG_TRY(find_groups(c));
    CLG_TRY(drop_small(c));
    CLG_TRY(is_only_graph(c, &allowed));
    if (!allowed) return CLG_OK;
    log_result(c, parent != NULL);
    return add_groups(c, support);
}

clg_status ep_capability_claim(ep_provider *provider, const OrtGraph *graph,
                               OrtEpGraphSupportInfo *support)
{
    claim c = {.provider = provider, .host = &provider->host};
    clg_status status = claim_graph(&c, graph, support);
    hash_map_deinit(&c.producers);
    arena_deinit(&c.memory);
    return status;
}
