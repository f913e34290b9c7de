/* SPDX-License-Identifier: Apache-2.0
 *
 * Creates and copies graphs, and adds values and nodes. The arrays of nodes and values are on the
 * heap; names and lists of ids are in the graph's arena. A call that fails may leave unused memory
 * in the arena and an unused value.
 */
#include "base/cancel.h"
#include "graph/graph_internal.h"

#include <string.h>

static char no_name[] = "";

const char *domain_canonical(const char *domain)
{
    return domain && strcmp(domain, "ai.onnx") != 0 ? domain : "";
}

char *graph_copy_name(graph *g, const char *name)
{
    return name && name[0] ? arena_strdup(&g->memory, name) : no_name;
}

clg_status graph_create(const char *name, graph **out_graph)
{
    *out_graph = NULL;
    graph *g = memory_zalloc(1, sizeof *g);
    if (!g) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    g->name = graph_copy_name(g, name);
    g->producer = no_name;
    if (!g->name) {
        graph_free(g);
        return CLG_ERROR_OUT_OF_HOST_MEMORY;
    }
    *out_graph = g;
    return CLG_OK;
}

void graph_free(graph *g)
{
    if (!g) return;
    graph_drop_uses(g);
    for (size_t i = 0; i < g->n_nodes; i++) node_release(&g->nodes[i]);
    for (size_t i = 0; i < g->n_values; i++) tensor_free(g->values[i].constant);
    memory_free(g->nodes);
    memory_free(g->values);
    hash_map_deinit(&g->names);
    arena_deinit(&g->memory);
    memory_free(g);
}

/* ---- opsets ---------------------------------------------------------------------------------- */

clg_status graph_set_opset(graph *g, const char *domain, int64_t version)
{
    char shown[NAME_TEXT_BYTES];
    domain = domain_canonical(domain);
    if (version < 1) {
        return error_set(CLG_ERROR_INVALID_MODEL,
                         "the model requires version %lld of the operator set '%s'",
                         (long long)version, name_text(domain, shown));
    }
    for (size_t i = 0; i < g->n_opsets; i++) {
        if (strcmp(g->opsets[i].domain, domain) != 0) continue;
        g->opsets[i].version = version;
        return CLG_OK;
    }
    if (g->n_opsets == GRAPH_MAX_OPSETS) {
        return error_set(CLG_ERROR_INVALID_MODEL, "the model imports more than %d operator sets",
                         GRAPH_MAX_OPSETS);
    }
    if (!g->opsets) {
        g->opsets = arena_alloc(&g->memory, GRAPH_MAX_OPSETS, sizeof *g->opsets);
        if (!g->opsets) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    }
    const char *copy = graph_copy_name(g, domain);
    if (!copy) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    g->opsets[g->n_opsets++] = (opset_import){copy, version};
    return CLG_OK;
}

int64_t graph_opset(const graph *g, const char *domain)
{
    domain = domain_canonical(domain);
    if (strcmp(domain, DOMAIN_INTERNAL) == 0) return 1;
    for (size_t i = 0; i < g->n_opsets; i++) {
        if (strcmp(g->opsets[i].domain, domain) == 0) return g->opsets[i].version;
    }
    return 0;
}

/* ---- values ---------------------------------------------------------------------------------- */

clg_status graph_add_value(graph *g, const char *name, value_id *out_value)
{
    char shown[NAME_TEXT_BYTES];
    *out_value = VALUE_NONE;
    bool is_named = name && name[0];
    if (is_named && graph_find_value(g, name) != VALUE_NONE) {
        return error_set(CLG_ERROR_INVALID_MODEL, "two values have the name '%s'",
                         name_text(name, shown));
    }
    if (g->n_values >= VALUE_NONE) {
        return error_set(CLG_ERROR_INVALID_MODEL, "the graph has more than %u values", VALUE_NONE);
    }
    CLG_TRY(MEMORY_RESERVE(g->values, g->values_capacity, g->n_values + 1));
    value_id id = (value_id)g->n_values;
    value v = {.name = graph_copy_name(g, name),
               .kind = CLG_VALUE_TENSOR,
               .dims = shape_unknown(),
               .producer = NODE_NONE,
               .outer = VALUE_NONE};
    if (!v.name) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    if (is_named) CLG_TRY(hash_map_set_string(&g->names, name, id));
    g->values[g->n_values++] = v;
    *out_value = id;
    return CLG_OK;
}

value_id graph_find_value(const graph *g, const char *name)
{
    if (!name || !name[0]) return VALUE_NONE;
    size_t found = hash_map_get_string(&g->names, name);
    return found == HASH_MAP_NONE ? VALUE_NONE : (value_id)found;
}

bool value_is_defined(const value *v)
{
    return v->producer != NODE_NONE || v->is_input || v->constant || v->is_outer || v->missing_file;
}

clg_status graph_add_constant(graph *g, const char *name, tensor *t, value_id *out_value)
{
    *out_value = graph_find_value(g, name);
    bool is_open = *out_value != VALUE_NONE && !value_is_defined(&g->values[*out_value]);
    if (!is_open) CLG_TRY(graph_add_value(g, name, out_value));
    value *v = &g->values[*out_value];
    v->dtype = t->dtype;
    v->dims = t->dims;
    v->constant = tensor_retain(t);
    return CLG_OK;
}

clg_status graph_add_outer(graph *g, const char *name, value_id outer, value_id *out_value)
{
    CLG_TRY(graph_add_value(g, name, out_value));
    g->values[*out_value].is_outer = true;
    g->values[*out_value].outer = outer;
    return CLG_OK;
}

/* Appends to a list of ids in the arena whose capacity is its length rounded up to a power of
 * two. */
static clg_status append_id(graph *g, value_id **ids, size_t *n, value_id id)
{
    if ((*n & (*n - 1)) == 0) {
        value_id *grown = arena_alloc(&g->memory, *n ? 2 * *n : 1, sizeof *grown);
        if (!grown) return CLG_ERROR_OUT_OF_HOST_MEMORY;
        if (*n > 0) memcpy(grown, *ids, *n * sizeof *grown);
        *ids = grown;
    }
    (*ids)[(*n)++] = id;
    return CLG_OK;
}

clg_status graph_add_input(graph *g, value_id v)
{
    char shown[NAME_TEXT_BYTES];
    if (value_is_defined(&g->values[v])) {
        return error_set(CLG_ERROR_INVALID_MODEL, "the input '%s' has the name of another value",
                         name_text(g->values[v].name, shown));
    }
    CLG_TRY(append_id(g, &g->inputs, &g->n_inputs, v));
    g->values[v].is_input = true;
    return CLG_OK;
}

clg_status graph_add_output(graph *g, value_id v)
{
    CLG_TRY(append_id(g, &g->outputs, &g->n_outputs, v));
    g->values[v].is_output = true;
    return CLG_OK;
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static clg_status copy_ids(graph *g, size_t n, const value_id *ids, value_id **out_ids,
                           size_t *out_n)
{
    while (n > 0 && ids[n - 1] == VALUE_NONE) n--;
    *out_n = n;
    *out_ids = arena_alloc(&g->memory, n, sizeof **out_ids);
    if (!*out_ids) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    if (n > 0) memcpy(*out_ids, ids, n * sizeof **out_ids);
    return CLG_OK;
}

/* Sets the node as the producer of all its outputs. Fails, without any change, if one of them is
 * already defined. */
static clg_status claim_outputs(graph *g, const node *n, node_id id)
{
    for (size_t i = 0; i < n->n_outputs; i++) {
        value_id out = n->outputs[i];
        if (out == VALUE_NONE) continue;
        value *v = &g->values[out];
        if (!value_is_defined(v)) {
            v->producer = id;
            continue;
        }
        for (size_t k = 0; k < i; k++) {
            if (n->outputs[k] != VALUE_NONE) g->values[n->outputs[k]].producer = NODE_NONE;
        }
        char shown[NAME_TEXT_BYTES], text[NODE_TEXT_BYTES];
        return error_set(CLG_ERROR_INVALID_MODEL,
                         "%s writes '%s', which something else gives already", node_text(n, text),
                         name_text(v->name, shown));
    }
    return CLG_OK;
}

/* Returns the node's label for messages: its name, else that of its first output, else "". It lives
 * as long as the graph. */
static const char *label_of(const graph *g, const node *n)
{
    if (n->name[0]) return n->name;
    for (size_t i = 0; i < n->n_outputs; i++) {
        if (n->outputs[i] != VALUE_NONE) return g->values[n->outputs[i]].name;
    }
    return "";
}

clg_status graph_add_node(graph *g, const char *domain, const char *op_type, const char *name,
                          size_t n_inputs, const value_id *inputs, size_t n_outputs,
                          const value_id *outputs, node_id *out_node)
{
    *out_node = NODE_NONE;
    if (g->n_nodes >= NODE_NONE) {
        return error_set(CLG_ERROR_INVALID_MODEL, "the graph has more than %u nodes", NODE_NONE);
    }
    CLG_TRY(MEMORY_RESERVE(g->nodes, g->nodes_capacity, g->n_nodes + 1));
    domain = domain_canonical(domain);
    node n = {.name = graph_copy_name(g, name),
              .domain = graph_copy_name(g, domain),
              .op_type = graph_copy_name(g, op_type),
              .opset = graph_opset(g, domain)};
    if (!n.name || !n.domain || !n.op_type) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    CLG_TRY(copy_ids(g, n_inputs, inputs, &n.inputs, &n.n_inputs));
    CLG_TRY(copy_ids(g, n_outputs, outputs, &n.outputs, &n.n_outputs));
    n.label = label_of(g, &n);
    node_id id = (node_id)g->n_nodes;
    CLG_TRY(claim_outputs(g, &n, id));
    g->nodes[g->n_nodes++] = n;
    graph_note_node(g, id);
    *out_node = id;
    return CLG_OK;
}

/* ---- copying --------------------------------------------------------------------------------- */

clg_status graph_copy_value(graph *to, const value *v, const char *name, value_id *out_value)
{
    CLG_TRY(graph_add_value(to, name, out_value));
    value *copy = &to->values[*out_value];
    name = copy->name;
    *copy = *v;
    copy->name = name;
    copy->missing_file = NULL;
    copy->type_message = NULL;
    copy->constant = tensor_retain(v->constant);
    memset(copy->dim_names, 0, sizeof copy->dim_names);
    for (size_t d = 0; d < CLG_MAX_RANK; d++) {
        if (!v->dim_names[d]) continue;
        copy->dim_names[d] = arena_strdup(&to->memory, v->dim_names[d]);
        if (!copy->dim_names[d]) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    }
    if (v->type_message) {
        copy->type_message = arena_strndup(&to->memory, v->type_message, v->type_bytes);
        if (!copy->type_message) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    }
    if (v->missing_file) {
        copy->missing_file = arena_strdup(&to->memory, v->missing_file);
        if (!copy->missing_file) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    }
    return CLG_OK;
}

static clg_status copy_values(const graph *from, graph *to)
{
    CLG_TRY(MEMORY_RESERVE(to->values, to->values_capacity, from->n_values));
    for (size_t i = 0; i < from->n_values; i++) {
        value_id id;
        CLG_TRY(cancel_check("copying the graph"));
        CLG_TRY(graph_copy_value(to, &from->values[i], from->values[i].name, &id));
    }
    return CLG_OK;
}

static clg_status copy_node(const node *n, graph *to)
{
    node copy = *n;
    copy.attributes = NULL;
    copy.n_attributes = 0;
    copy.name = graph_copy_name(to, n->name);
    copy.domain = graph_copy_name(to, n->domain);
    copy.op_type = graph_copy_name(to, n->op_type);
    copy.inputs = arena_alloc(&to->memory, n->n_inputs, sizeof *copy.inputs);
    copy.outputs = arena_alloc(&to->memory, n->n_outputs, sizeof *copy.outputs);
    if (!copy.name || !copy.domain || !copy.op_type || !copy.inputs || !copy.outputs) {
        return CLG_ERROR_OUT_OF_HOST_MEMORY;
    }
    if (n->n_inputs > 0) memcpy(copy.inputs, n->inputs, n->n_inputs * sizeof *copy.inputs);
    if (n->n_outputs > 0) memcpy(copy.outputs, n->outputs, n->n_outputs * sizeof *copy.outputs);
    copy.label = label_of(to, &copy);
    CLG_TRY(MEMORY_RESERVE(to->nodes, to->nodes_capacity, to->n_nodes + 1));
    node_id id = (node_id)to->n_nodes;
    to->nodes[to->n_nodes++] = copy;
    for (size_t i = 0; i < n->n_attributes; i++)
        CLG_TRY(node_copy_attribute(to, id, &n->attributes[i]));
    return CLG_OK;
}

static clg_status copy_contents(const graph *from, graph *to)
{
    to->ir_version = from->ir_version;
    to->producer = graph_copy_name(to, from->producer);
    if (!to->producer) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; i < from->n_opsets; i++) {
        CLG_TRY(graph_set_opset(to, from->opsets[i].domain, from->opsets[i].version));
    }
    CLG_TRY(copy_values(from, to));
    for (size_t i = 0; i < from->n_inputs; i++)
        CLG_TRY(append_id(to, &to->inputs, &to->n_inputs, from->inputs[i]));
    for (size_t i = 0; i < from->n_outputs; i++) {
        CLG_TRY(append_id(to, &to->outputs, &to->n_outputs, from->outputs[i]));
    }
    CLG_TRY(MEMORY_RESERVE(to->nodes, to->nodes_capacity, from->n_nodes));
    for (size_t i = 0; i < from->n_nodes; i++) {
        CLG_TRY(cancel_check("copying the graph"));
        CLG_TRY(copy_node(&from->nodes[i], to));
    }
    return CLG_OK;
}

clg_status graph_clone(const graph *g, graph **out_copy)
{
    *out_copy = NULL;
    graph *copy;
    CLG_TRY(graph_create(g->name, &copy));
    clg_status status = copy_contents(g, copy);
    if (status != CLG_OK) {
        graph_free(copy);
        return status;
    }
    *out_copy = copy;
    return CLG_OK;
}
