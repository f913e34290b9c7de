/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements graph_writer.h.
 */
#include "graph/graph_writer.h"

#include <stdio.h>

static value_id add_named(graph_writer *w, const char *name)
{
    value_id v = VALUE_NONE;
    if (w->status == CLG_OK) w->status = graph_add_named(w->graph, name, &v);
    return v;
}

/* Adds a node whose result is called `name`, or so. */
static value_id add_called(graph_writer *w, const char *name, const char *op_type, size_t n_inputs,
                           const value_id *inputs)
{
    node_id n;
    const value_id made = add_named(w, name);
    if (w->status == CLG_OK)
        w->status = graph_add_node(w->graph, "", op_type, w->graph->values[made].name, n_inputs,
                                   inputs, 1, &made, &n);
    if (w->status != CLG_OK) return VALUE_NONE;
    w->graph->nodes[n].opset = GRAPH_ADDED_OPSET;
    return made;
}

value_id writer_add(graph_writer *w, const char *op_type, size_t n_inputs, const value_id *inputs)
{
    char name[64];
    value_id made = VALUE_NONE;
    if (w->status != CLG_OK) return VALUE_NONE;
    if (w->prefix) {
        (void)snprintf(name, sizeof name, "%s/%s", w->prefix, op_type);
        return add_called(w, name, op_type, n_inputs, inputs);
    }
    w->status = graph_add_result(w->graph, "", op_type, GRAPH_ADDED_OPSET, n_inputs, inputs, &made);
    return w->status == CLG_OK ? made : VALUE_NONE;
}

value_id writer_set_int(graph_writer *w, value_id v, const char *name, int64_t number)
{
    if (w->status == CLG_OK)
        w->status = node_set_int(w->graph, w->graph->values[v].producer, name, number);
    return v;
}

value_id writer_reduce_all(graph_writer *w, const char *op_type, value_id v)
{
    return writer_set_int(w, writer_add(w, op_type, 1, &v), "keepdims", 0);
}

value_id writer_number(graph_writer *w, double number)
{
    value_id made = VALUE_NONE;
    if (w->status == CLG_OK) w->status = graph_add_number(w->graph, w->dtype, number, &made);
    return made;
}

value_id writer_int(graph_writer *w, int64_t number)
{
    value_id made = VALUE_NONE;
    if (w->status == CLG_OK) w->status = graph_add_int(w->graph, CLG_INT64, number, &made);
    return made;
}

value_id writer_ints(graph_writer *w, size_t n, const int64_t *numbers)
{
    value_id made = VALUE_NONE;
    if (w->status == CLG_OK) w->status = graph_add_ints(w->graph, n, numbers, &made);
    return made;
}

value_id writer_input(graph_writer *w, const char *name, clg_dtype dtype, int64_t n)
{
    value_id v = VALUE_NONE;
    if (w->status == CLG_OK) w->status = graph_add_value(w->graph, name, &v);
    if (w->status == CLG_OK) w->status = graph_add_input(w->graph, v);
    if (w->status != CLG_OK) return VALUE_NONE;
    w->graph->values[v].dtype = dtype;
    w->graph->values[v].dims = (shape){.rank = 1, .dims = {n}};
    return v;
}

value_id writer_output(graph_writer *w, value_id v, const char *name)
{
    const value_id out = name ? add_called(w, name, "Identity", 1, &v) : v;
    if (w->status == CLG_OK) w->status = graph_add_output(w->graph, out);
    return out;
}

static value_id formula_node(void *user, const char *op_type, size_t n, const value_id *inputs)
{
    return writer_add(user, op_type, n, inputs);
}

static value_id formula_number(void *user, double number) { return writer_number(user, number); }

value_id writer_formula(graph_writer *w, const char *formula,
                        value_id (*find)(void *writer, const char *name))
{
    const formula_nodes nodes = {w, formula_node, formula_number, find, &w->status};
    return w->status == CLG_OK ? formula_add(&nodes, formula) : VALUE_NONE;
}
