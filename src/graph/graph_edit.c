/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements the edits that graph passes make: moves names, removes nodes, counts uses and inlines
 * subgraphs; graph_uses.c replaces uses. Subgraphs refer to values of the enclosing graph by id,
 * so values never need to be renamed.
 */
#include "base/strbuf.h"
#include "graph/graph_internal.h"

#include <string.h>

clg_status graph_move_name(graph *g, value_id from, value_id to)
{
    const char *name = g->values[from].name;
    if (name[0]) CLG_TRY(hash_map_set_string(&g->names, name, to));
    g->values[to].name = name;
    g->values[from].name = "";
    return CLG_OK;
}

/* Gives value v the name PREFIX_N with the first N, from *next on, for which it is new. */
static clg_status name_value(graph *g, value_id v, const char *prefix, uint32_t *next)
{
    clg_status status = CLG_OK;
    const char *name = NULL;
    while (status == CLG_OK && !name) {
        strbuf text;
        strbuf_init(&text, 0);
        strbuf_printf(&text, "%s_%u", prefix, (*next)++);
        status = text.status;
        if (status == CLG_OK && graph_find_value(g, strbuf_data(&text)) == VALUE_NONE) {
            name = graph_copy_name(g, strbuf_data(&text));
            if (!name) status = CLG_ERROR_OUT_OF_HOST_MEMORY;
        }
        strbuf_deinit(&text);
    }
    if (status == CLG_OK) status = hash_map_set_string(&g->names, name, v);
    if (status == CLG_OK) g->values[v].name = name;
    return status;
}

clg_status graph_name_values(graph *g, const char *prefix)
{
    uint32_t next = 0;
    for (value_id v = 0; v < g->n_values; v++)
        if (!g->values[v].name[0] && value_is_defined(&g->values[v]))
            CLG_TRY(name_value(g, v, prefix, &next));
    return CLG_OK;
}

void graph_remove_node(graph *g, node_id id)
{
    node *n = &g->nodes[id];
    n->removed = true;
    for (size_t i = 0; i < n->n_outputs; i++) {
        if (n->outputs[i] != VALUE_NONE) g->values[n->outputs[i]].producer = NODE_NONE;
    }
}

clg_status graph_add_result(graph *g, const char *domain, const char *op_type, int64_t opset,
                            size_t n_inputs, const value_id *inputs, value_id *out_value)
{
    value_id made;
    node_id n;
    CLG_TRY(graph_add_value(g, "", &made));
    CLG_TRY(graph_add_node(g, domain, op_type, "", n_inputs, inputs, 1, &made, &n));
    g->nodes[n].opset = opset;
    *out_value = made;
    return CLG_OK;
}

clg_status graph_add_ints(graph *g, size_t n, const int64_t *values, value_id *out_value)
{
    const shape dims = {.rank = 1, .dims = {(int64_t)n}};
    tensor *t;
    CLG_TRY(tensor_create(CLG_INT64, &dims, &t));
    if (n > 0) memcpy(t->data, values, n * sizeof *values);
    const clg_status status = graph_add_constant(g, "", t, out_value);
    tensor_free(t);
    return status;
}

clg_status graph_add_named(graph *g, const char *name, value_id *out_value)
{
    clg_status status = CLG_OK;
    *out_value = VALUE_NONE;
    for (int i = 1; status == CLG_OK && *out_value == VALUE_NONE; i++) {
        strbuf text;
        strbuf_init(&text, SIZE_MAX);
        strbuf_append(&text, name);
        if (i > 1) strbuf_printf(&text, "_%d", i);
        status = text.status;
        if (status == CLG_OK && graph_find_value(g, strbuf_data(&text)) == VALUE_NONE)
            status = graph_add_value(g, strbuf_data(&text), out_value);
        strbuf_deinit(&text);
    }
    return status;
}

/* Adds the scalar t, whose reference it takes. */
static clg_status add_scalar(graph *g, tensor *t, value_id *out_value)
{
    const clg_status status = graph_add_constant(g, "", t, out_value);
    tensor_free(t);
    return status;
}

clg_status graph_add_number(graph *g, clg_dtype dtype, double number, value_id *out_value)
{
    const shape scalar = shape_scalar();
    tensor *t;
    *out_value = VALUE_NONE;
    CLG_TRY(tensor_create(dtype, &scalar, &t));
    tensor_set_float(t, 0, number);
    return add_scalar(g, t, out_value);
}

clg_status graph_add_int(graph *g, clg_dtype dtype, int64_t number, value_id *out_value)
{
    const shape scalar = shape_scalar();
    tensor *t;
    *out_value = VALUE_NONE;
    CLG_TRY(tensor_create(dtype, &scalar, &t));
    tensor_set_int(t, 0, number);
    return add_scalar(g, t, out_value);
}

clg_status graph_cut(graph *g, value_id v)
{
    const node_id producer = g->values[v].producer;
    value_id other = VALUE_NONE;
    if (g->values[v].is_input) return CLG_OK;
    if (producer != NODE_NONE) CLG_TRY(graph_add_value(g, "", &other));
    value *cut = &g->values[v];
    tensor_free(cut->constant);
    cut->constant = NULL;
    cut->missing_file = NULL;
    cut->producer = NODE_NONE;
    for (size_t i = 0; producer != NODE_NONE && i < g->nodes[producer].n_outputs; i++)
        if (g->nodes[producer].outputs[i] == v) g->nodes[producer].outputs[i] = other;
    if (other != VALUE_NONE) g->values[other].producer = producer;
    return graph_add_input(g, v);
}

void graph_clear_outputs(graph *g)
{
    for (size_t i = 0; i < g->n_outputs; i++) g->values[g->outputs[i]].is_output = false;
    g->n_outputs = 0;
}

clg_status node_add_output(graph *g, node_id id, value_id v)
{
    node *n = &g->nodes[id];
    value_id *outputs = arena_alloc(&g->memory, n->n_outputs + 1, sizeof *outputs);
    if (!outputs) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; i < n->n_outputs; i++) outputs[i] = n->outputs[i];
    outputs[n->n_outputs++] = v;
    n->outputs = outputs;
    g->values[v].producer = id;
    return CLG_OK;
}

void node_visit_uses(const node *n, void (*visit)(void *user, value_id v), void *user)
{
    for (size_t k = 0; k < n->n_inputs; k++)
        if (n->inputs[k] != VALUE_NONE) visit(user, n->inputs[k]);
    for (size_t k = 0; k < n->n_attributes; k++) {
        if (n->attributes[k].type != ATTRIBUTE_GRAPH) continue;
        const graph *sub = n->attributes[k].as.graph;
        for (size_t v = 0; v < sub->n_values; v++)
            if (sub->values[v].is_outer) visit(user, sub->values[v].outer);
    }
}

/* Marks of values, and whether one of those visited is marked. */
typedef struct marked_use {
    const bool *marks;
    bool found;
} marked_use;

static void look_at(void *user, value_id v)
{
    marked_use *m = user;
    m->found = m->found || m->marks[v];
}

bool node_uses_marked(const node *n, const bool *marks)
{
    marked_use m = {.marks = marks};
    node_visit_uses(n, look_at, &m);
    return m.found;
}

static void count_use(void *counts, value_id v) { ((uint32_t *)counts)[v]++; }

clg_status graph_count_uses(const graph *g, uint32_t **out_counts)
{
    uint32_t *counts = memory_zalloc(g->n_values, sizeof *counts);
    *out_counts = counts;
    if (!counts) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; i < g->n_nodes; i++)
        if (!g->nodes[i].removed) node_visit_uses(&g->nodes[i], count_use, counts);
    for (size_t i = 0; i < g->n_outputs; i++) counts[g->outputs[i]]++;
    return CLG_OK;
}

/* Sets ids[v], for each value v of body, to the value of g that replaces it: for a capture, the
 * captured value; for an input, inputs[i]; for all others, a new value added to g. */
static clg_status inline_values(graph *g, const graph *body, const value_id *inputs, value_id *ids)
{
    for (value_id v = 0; v < body->n_values; v++) {
        const value *from = &body->values[v];
        if (from->is_outer)
            ids[v] = from->outer;
        else if (from->constant)
            CLG_TRY(graph_add_constant(g, "", from->constant, &ids[v]));
        else if (!from->is_input)
            CLG_TRY(graph_add_value(g, "", &ids[v]));
    }
    for (size_t i = 0; i < body->n_inputs; i++) ids[body->inputs[i]] = inputs[i];
    return CLG_OK;
}

static void map_ids(const value_id *ids, const value_id *from, size_t n, value_id *to)
{
    for (size_t i = 0; i < n; i++) to[i] = from[i] == VALUE_NONE ? VALUE_NONE : ids[from[i]];
}

clg_status graph_copy_node(graph *g, const node *from, const value_id *ids)
{
    node_id n;
    value_id *mapped =
        arena_alloc(&g->memory, from->n_inputs + from->n_outputs + 1, sizeof *mapped);
    if (!mapped) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    map_ids(ids, from->inputs, from->n_inputs, mapped);
    map_ids(ids, from->outputs, from->n_outputs, mapped + from->n_inputs);
    CLG_TRY(graph_add_node(g, from->domain, from->op_type, from->name, from->n_inputs, mapped,
                           from->n_outputs, mapped + from->n_inputs, &n));
    g->nodes[n].opset = from->opset;
    for (size_t k = 0; k < from->n_attributes; k++) {
        CLG_TRY(node_copy_attribute(g, n, &from->attributes[k]));
        if (from->attributes[k].type != ATTRIBUTE_GRAPH) continue;
        graph *inner = g->nodes[n].attributes[k].as.graph;
        for (size_t v = 0; v < inner->n_values; v++)
            if (inner->values[v].is_outer) inner->values[v].outer = ids[inner->values[v].outer];
        graph_drop_uses(g);
    }
    return CLG_OK;
}

clg_status graph_inline(graph *g, const graph *body, const value_id *inputs, value_id *out_outputs)
{
    value_id *ids = memory_zalloc(body->n_values + 1, sizeof *ids);
    if (!ids) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    clg_status status = inline_values(g, body, inputs, ids);
    for (size_t i = 0; i < body->n_nodes && status == CLG_OK; i++)
        if (!body->nodes[i].removed) status = graph_copy_node(g, &body->nodes[i], ids);
    if (status == CLG_OK) map_ids(ids, body->outputs, body->n_outputs, out_outputs);
    memory_free(ids);
    return status;
}
