/* SPDX-License-Identifier: Apache-2.0
 *
 * Adds, replaces and reads attributes of nodes. Their data is copied to the graph's arena, except
 * tensors, which are retained, and subgraphs, whose ownership is taken.
 */
#include "graph/graph_internal.h"

#include <string.h>

static void release_payload(graph_attribute *a)
{
    if (a->type == ATTRIBUTE_TENSOR) tensor_free(a->as.tensor);
    if (a->type == ATTRIBUTE_GRAPH) graph_free(a->as.graph);
}

void node_release(node *n)
{
    for (size_t i = 0; i < n->n_attributes; i++) release_payload(&n->attributes[i]);
    n->n_attributes = 0;
}

static graph_attribute *find(const node *n, const char *name)
{
    for (size_t i = 0; i < n->n_attributes; i++) {
        if (strcmp(n->attributes[i].name, name) == 0) return &n->attributes[i];
    }
    return NULL;
}

static const void *copy_bytes(graph *g, const void *bytes, size_t n, size_t item_bytes)
{
    void *copy = arena_alloc(&g->memory, n, item_bytes);
    if (copy && n > 0) memcpy(copy, bytes, n * item_bytes);
    return copy;
}

static const char *const *copy_strings(graph *g, const char *const *strings, size_t n)
{
    const char **copy = arena_alloc(&g->memory, n, sizeof *copy);
    for (size_t i = 0; copy && i < n; i++) {
        copy[i] = arena_strdup(&g->memory, strings[i]);
        if (!copy[i]) return NULL;
    }
    return copy;
}

/* Copies an attribute, with its name and data, to the graph's arena. Of tensors and subgraphs only
 * the pointer is copied; they are not retained. */
static clg_status copy_attribute(graph *g, const graph_attribute *a, graph_attribute *out_copy)
{
    *out_copy = *a;
    out_copy->name = graph_copy_name(g, a->name);
    bool is_copied = out_copy->name != NULL;
    switch (a->type) {
    case ATTRIBUTE_STRING:
        out_copy->as.s = arena_strndup(&g->memory, a->as.s, a->count);
        is_copied = is_copied && out_copy->as.s;
        break;
    case ATTRIBUTE_FLOATS:
        out_copy->as.floats = copy_bytes(g, a->as.floats, a->count, sizeof(float));
        is_copied = is_copied && out_copy->as.floats;
        break;
    case ATTRIBUTE_INTS:
        out_copy->as.ints = copy_bytes(g, a->as.ints, a->count, sizeof(int64_t));
        is_copied = is_copied && out_copy->as.ints;
        break;
    case ATTRIBUTE_STRINGS:
        out_copy->as.strings = copy_strings(g, a->as.strings, a->count);
        is_copied = is_copied && out_copy->as.strings;
        break;
    case ATTRIBUTE_NONE:
        out_copy->as.message = copy_bytes(g, a->as.message, a->count, 1);
        is_copied = is_copied && out_copy->as.message;
        break;
    case ATTRIBUTE_FLOAT:
    case ATTRIBUTE_INT:
    case ATTRIBUTE_TENSOR:
    case ATTRIBUTE_GRAPH: out_copy->count = 0; break;
    }
    return is_copied ? CLG_OK : CLG_ERROR_OUT_OF_HOST_MEMORY;
}

/* Ensures capacity for one more attribute, in the arena; capacities are 4, 8, 16, ... */
static clg_status reserve_one(graph *g, node *n)
{
    bool is_full = n->n_attributes == 0 ||
                   (n->n_attributes >= 4 && (n->n_attributes & (n->n_attributes - 1)) == 0);
    if (!is_full) return CLG_OK;
    graph_attribute *grown =
        arena_alloc(&g->memory, n->n_attributes ? 2 * n->n_attributes : 4, sizeof *grown);
    if (!grown) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    if (n->n_attributes > 0) memcpy(grown, n->attributes, n->n_attributes * sizeof *grown);
    n->attributes = grown;
    return CLG_OK;
}

static clg_status put(graph *g, node_id id, const graph_attribute *a, bool replace)
{
    char node_shown[NODE_TEXT_BYTES], shown[NAME_TEXT_BYTES];
    node *n = &g->nodes[id];
    graph_attribute *present = find(n, a->name);
    if (present && !replace) {
        return error_set(CLG_ERROR_INVALID_MODEL, "%s: the attribute '%s' is given twice",
                         node_text(n, node_shown), name_text(a->name, shown));
    }
    if (!present && n->n_attributes == NODE_MAX_ATTRIBUTES) {
        return error_set(CLG_ERROR_INVALID_MODEL, "%s has more than %d attributes",
                         node_text(n, node_shown), NODE_MAX_ATTRIBUTES);
    }
    graph_attribute copy;
    CLG_TRY(copy_attribute(g, a, &copy));
    if (!present) CLG_TRY(reserve_one(g, n));
    if (copy.type == ATTRIBUTE_TENSOR) (void)tensor_retain(copy.as.tensor);
    if (copy.type == ATTRIBUTE_GRAPH || (present && present->type == ATTRIBUTE_GRAPH))
        graph_drop_uses(g);
    if (present) {
        release_payload(present);
        *present = copy;
    } else {
        n->attributes[n->n_attributes++] = copy;
    }
    return CLG_OK;
}

clg_status node_add_attribute(graph *g, node_id n, const graph_attribute *a)
{
    return put(g, n, a, false);
}

clg_status node_copy_attribute(graph *g, node_id n, const graph_attribute *a)
{
    if (a->type != ATTRIBUTE_GRAPH) return put(g, n, a, false);
    graph_attribute copy = *a;
    CLG_TRY(graph_clone(a->as.graph, &copy.as.graph));
    clg_status status = put(g, n, &copy, false);
    if (status != CLG_OK) graph_free(copy.as.graph);
    return status;
}

clg_status node_set_int(graph *g, node_id n, const char *name, int64_t number)
{
    return put(g, n, &(graph_attribute){.name = name, .type = ATTRIBUTE_INT, .as.i = number}, true);
}

clg_status node_set_float(graph *g, node_id n, const char *name, float number)
{
    return put(g, n, &(graph_attribute){.name = name, .type = ATTRIBUTE_FLOAT, .as.f = number},
               true);
}

clg_status node_set_string(graph *g, node_id n, const char *name, const char *string)
{
    graph_attribute a = {
        .name = name, .type = ATTRIBUTE_STRING, .count = strlen(string), .as.s = string};
    return put(g, n, &a, true);
}

clg_status node_set_ints(graph *g, node_id n, const char *name, size_t n_values,
                         const int64_t *values)
{
    return put(g, n,
               &(graph_attribute){
                   .name = name, .type = ATTRIBUTE_INTS, .count = n_values, .as.ints = values},
               true);
}

clg_status node_set_floats(graph *g, node_id n, const char *name, size_t n_values,
                           const float *values)
{
    return put(g, n,
               &(graph_attribute){
                   .name = name, .type = ATTRIBUTE_FLOATS, .count = n_values, .as.floats = values},
               true);
}

clg_status node_set_tensor(graph *g, node_id n, const char *name, tensor *t)
{
    return put(g, n, &(graph_attribute){.name = name, .type = ATTRIBUTE_TENSOR, .as.tensor = t},
               true);
}

const graph_attribute *node_attribute(const node *n, const char *name) { return find(n, name); }

static const graph_attribute *find_typed(const node *n, const char *name, attribute_type type)
{
    const graph_attribute *a = find(n, name);
    return a && a->type == type ? a : NULL;
}

int64_t node_int(const node *n, const char *name, int64_t fallback)
{
    const graph_attribute *a = find_typed(n, name, ATTRIBUTE_INT);
    return a ? a->as.i : fallback;
}

float node_float(const node *n, const char *name, float fallback)
{
    const graph_attribute *a = find_typed(n, name, ATTRIBUTE_FLOAT);
    return a ? a->as.f : fallback;
}

const char *node_string(const node *n, const char *name, const char *fallback)
{
    const graph_attribute *a = find_typed(n, name, ATTRIBUTE_STRING);
    return a ? a->as.s : fallback;
}

const int64_t *node_ints(const node *n, const char *name, size_t *out_n)
{
    const graph_attribute *a = find_typed(n, name, ATTRIBUTE_INTS);
    *out_n = a ? a->count : 0;
    return a ? a->as.ints : NULL;
}

const float *node_floats(const node *n, const char *name, size_t *out_n)
{
    const graph_attribute *a = find_typed(n, name, ATTRIBUTE_FLOATS);
    *out_n = a ? a->count : 0;
    return a ? a->as.floats : NULL;
}
