/* SPDX-License-Identifier: Apache-2.0
 *
 * Adds the nodes that count right predictions. See metrics.h.
 */
#include "train/metrics.h"

typedef struct adding {
    graph *graph;
    clg_status status;
} adding;

static value_id add(adding *a, const char *op_type, size_t n_inputs, const value_id *inputs)
{
    value_id made = VALUE_NONE;
    if (a->status == CLG_OK)
        a->status =
            graph_add_result(a->graph, "", op_type, GRAPH_ADDED_OPSET, n_inputs, inputs, &made);
    return made;
}

static void set_int(adding *a, value_id v, const char *name, int64_t number)
{
    if (a->status == CLG_OK)
        a->status = node_set_int(a->graph, a->graph->values[v].producer, name, number);
}

/* Returns the number of elements of a bool tensor that are true. */
static value_id count(adding *a, value_id v)
{
    const value_id numbers = add(a, "Cast", 1, &v);
    set_int(a, numbers, "to", CLG_INT64);
    const value_id sum = add(a, "ReduceSum", 1, &numbers);
    set_int(a, sum, "keepdims", 0);
    return sum;
}

/* Returns for each target whether it is not ignore_index. */
static value_id find_counted(adding *a, value_id target, int64_t ignore_index)
{
    value_id ignored = VALUE_NONE;
    if (a->status == CLG_OK) a->status = graph_add_int(a->graph, CLG_INT64, ignore_index, &ignored);
    const value_id is = add(a, "Equal", 2, (value_id[]){target, ignored});
    return add(a, "Not", 1, &is);
}

static void add_output(adding *a, const char *name, value_id v)
{
    value_id out = VALUE_NONE;
    node_id n;
    if (a->status == CLG_OK) a->status = graph_add_named(a->graph, name, &out);
    if (a->status == CLG_OK)
        a->status = graph_add_node(a->graph, "", "Identity", "", 1, &v, 1, &out, &n);
    if (a->status == CLG_OK) a->status = graph_add_output(a->graph, out);
}

clg_status metrics_add(graph *g, const clg_loss_options *options, const loss_values *values)
{
    adding a = {.graph = g};
    const value_id best = add(&a, "ArgMax", 1, &values->y);
    set_int(&a, best, "axis", 1);
    set_int(&a, best, "keepdims", 0);
    value_id right = add(&a, "Equal", 2, (value_id[]){best, values->target}), n_counted;
    if (options->has_ignore_index) {
        const value_id counted = find_counted(&a, values->target, options->ignore_index);
        right = add(&a, "And", 2, (value_id[]){right, counted});
        n_counted = count(&a, counted);
    } else {
        n_counted = add(&a, "Size", 1, &values->target);
    }
    add_output(&a, "right", count(&a, right));
    add_output(&a, "counted", n_counted);
    return a.status;
}
