/* SPDX-License-Identifier: Apache-2.0
 *
 * Replaces control flow by the nodes of its bodies, so that gradients pass through it: If with a
 * known condition by its branch, Loop and Scan with a known number of iterations by the nodes of
 * all iterations. The values that the node computed keep their ids.
 */
#include "ops/grad/grad_control.h"

#include <string.h>

enum { MAX_ITERATIONS = 1024, MAX_ADDED_NODES = 1 << 16 };

typedef struct control {
    graph *graph;
    node_id id;
    node node; /* a copy: adding nodes moves the graph's */
    const value_fact *facts;
    const graph *body;
    size_t n_states, n_scanned, n_collected; /* scanned: inputs of Scan; collected: outputs */
    int64_t n_iterations;
    value_id *inputs, *outputs; /* of the body, in one iteration */
    value_id *collected;        /* by output to be collected, by iteration */
} control;

/* ---- nodes ----------------------------------------------------------------------------------- */

static clg_status add(const control *w, const char *op_type, size_t n, const value_id *inputs,
                      value_id *out)
{
    int64_t opset = graph_opset(w->graph, "");
    if (opset < GRAPH_ADDED_OPSET) opset = GRAPH_ADDED_OPSET;
    CLG_TRY(graph_add_result(w->graph, "", op_type, opset, n, inputs, out));
    w->graph->nodes[w->graph->values[*out].producer].label = w->node.label;
    return CLG_OK;
}

/* Makes v the value that output k of the node, which is removed, was. */
static clg_status give(const control *w, size_t k, value_id v)
{
    node_id made;
    if (k >= w->node.n_outputs || w->node.outputs[k] == VALUE_NONE) return CLG_OK;
    CLG_TRY(graph_add_node(w->graph, "", "Identity", "", 1, &v, 1, &w->node.outputs[k], &made));
    w->graph->nodes[made].label = w->node.label;
    return CLG_OK;
}

/* Reads the one element of an input; returns false where it is not known. */
static bool known_number(const control *w, size_t input, int64_t *out)
{
    const tensor *known =
        node_has_input(&w->node, input) ? w->facts[w->node.inputs[input]].known : NULL;
    if (!known || known->n_elements != 1) return false;
    *out = tensor_get_int(known, 0);
    return true;
}

/* Returns whether the nodes of so many copies of the body are few enough. */
static bool is_small(const control *w)
{
    return w->n_iterations >= 1 && w->n_iterations <= MAX_ITERATIONS &&
           w->body->n_nodes * (size_t)w->n_iterations <= MAX_ADDED_NODES;
}

/* ---- If -------------------------------------------------------------------------------------- */

static clg_status inline_if(control *w, bool *done)
{
    int64_t condition;
    if (!known_number(w, 0, &condition)) return CLG_OK;
    const graph_attribute *a = node_attribute(&w->node, condition ? "then_branch" : "else_branch");
    w->body = a->as.graph;
    w->outputs = memory_zalloc(w->body->n_outputs + 1, sizeof *w->outputs);
    if (!w->outputs) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    graph_remove_node(w->graph, w->id);
    clg_status status = graph_inline(w->graph, w->body, NULL, w->outputs);
    for (size_t k = 0; k < w->body->n_outputs && status == CLG_OK; k++)
        status = give(w, k, w->outputs[k]);
    *done = status == CLG_OK;
    return status;
}

/* ---- iterations ------------------------------------------------------------------------------ */

/* Returns the axis of entry i of a list attribute, 0 where it is absent. */
static int64_t axis_of(const control *w, const char *name, size_t i)
{
    size_t n;
    const int64_t *axes = node_ints(&w->node, name, &n);
    return i < n ? axes[i] : 0;
}

/* Returns the slice of scanned input i that iteration t reads. */
static clg_status read_slice(const control *w, size_t i, int64_t t, value_id *out)
{
    const int64_t axis = axis_of(w, "scan_input_axes", i);
    const bool backward = axis_of(w, "scan_input_directions", i) != 0;
    const int64_t from = backward ? w->n_iterations - 1 - t : t, to = from + 1;
    value_id inputs[4] = {w->node.inputs[w->n_states + i]};
    CLG_TRY(graph_add_ints(w->graph, 1, &from, &inputs[1]));
    CLG_TRY(graph_add_ints(w->graph, 1, &to, &inputs[2]));
    CLG_TRY(graph_add_ints(w->graph, 1, &axis, &inputs[3]));
    CLG_TRY(add(w, "Slice", 4, inputs, out));
    return add(w, "Squeeze", 2, (value_id[]){*out, inputs[3]}, out);
}

/* Joins what the iterations gave to collected output i. */
static clg_status join_collected(const control *w, size_t i)
{
    const size_t n = (size_t)w->n_iterations;
    const int64_t axis = axis_of(w, "scan_output_axes", i);
    const bool backward = axis_of(w, "scan_output_directions", i) != 0;
    value_id *parts = w->collected + i * n, axes, joined;
    if (w->n_states + i >= w->node.n_outputs || w->node.outputs[w->n_states + i] == VALUE_NONE)
        return CLG_OK;
    CLG_TRY(graph_add_ints(w->graph, 1, &axis, &axes));
    for (size_t t = 0; t < n; t++)
        CLG_TRY(add(w, "Unsqueeze", 2, (value_id[]){parts[t], axes}, &parts[t]));
    for (size_t t = 0; backward && t < n / 2; t++) {
        const value_id v = parts[t];
        parts[t] = parts[n - 1 - t];
        parts[n - 1 - t] = v;
    }
    CLG_TRY(add(w, "Concat", n, parts, &joined));
    CLG_TRY(node_set_int(w->graph, w->graph->values[joined].producer, "axis", axis));
    return give(w, w->n_states + i, joined);
}

/* Adds the nodes of all iterations. first_in, first_out: where states are in the body's lists. */
static clg_status iterate(control *w, size_t first_in, size_t first_out)
{
    const size_t n_in = w->body->n_inputs, n_out = w->body->n_outputs;
    for (int64_t t = 0; t < w->n_iterations; t++) {
        value_id number;
        CLG_TRY(graph_add_int(w->graph, CLG_INT64, t, &number));
        if (first_in > 0) w->inputs[0] = number;
        for (size_t i = 0; i < w->n_scanned; i++)
            CLG_TRY(read_slice(w, i, t, &w->inputs[n_in - w->n_scanned + i]));
        CLG_TRY(graph_inline(w->graph, w->body, w->inputs, w->outputs));
        for (size_t i = 0; i < w->n_states; i++)
            w->inputs[first_in + i] = w->outputs[first_out + i];
        for (size_t i = 0; i < w->n_collected; i++)
            w->collected[i * (size_t)w->n_iterations + (size_t)t] =
                w->outputs[n_out - w->n_collected + i];
    }
    for (size_t i = 0; i < w->n_states; i++) CLG_TRY(give(w, i, w->inputs[first_in + i]));
    for (size_t i = 0; i < w->n_collected; i++) CLG_TRY(join_collected(w, i));
    return CLG_OK;
}

/* Removes the node, allocates the lists, and sets the states before the first iteration, which are
 * the node's inputs from `from` on. */
static clg_status start(control *w, size_t first_in, size_t from)
{
    const size_t collected = w->n_collected * (size_t)w->n_iterations;
    graph_remove_node(w->graph, w->id);
    w->inputs = memory_zalloc(w->body->n_inputs + 1, sizeof *w->inputs);
    w->outputs = memory_zalloc(w->body->n_outputs + 1, sizeof *w->outputs);
    w->collected = memory_zalloc(collected + 1, sizeof *w->collected);
    if (!w->inputs || !w->outputs || !w->collected) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; i < w->n_states; i++) w->inputs[first_in + i] = w->node.inputs[from + i];
    return CLG_OK;
}

/* ---- Loop and Scan --------------------------------------------------------------------------- */

/* Returns whether a loop's body goes on in each iteration: its condition is true, or that it was
 * given. */
static bool always_continues(const graph *body)
{
    const value *v = &body->values[body->outputs[0]];
    if (v->constant) return v->constant->n_elements == 1 && tensor_get_int(v->constant, 0) != 0;
    if (body->outputs[0] == body->inputs[1]) return true;
    if (v->producer == NODE_NONE) return false;
    const node *n = &body->nodes[v->producer];
    return strcmp(n->op_type, "Identity") == 0 && n->inputs[0] == body->inputs[1];
}

static clg_status inline_loop(control *w, bool *done)
{
    int64_t condition = 1;
    w->body = node_attribute(&w->node, "body")->as.graph;
    if (!known_number(w, 0, &w->n_iterations) || !is_small(w)) return CLG_OK;
    if (node_has_input(&w->node, 1) && !known_number(w, 1, &condition)) return CLG_OK;
    if (w->body->n_inputs < 2 || w->body->n_outputs < w->body->n_inputs - 1 ||
        w->node.n_inputs < w->body->n_inputs)
        return CLG_OK;
    if (!condition || !always_continues(w->body)) return CLG_OK;
    w->n_states = w->body->n_inputs - 2;
    w->n_collected = w->body->n_outputs - 1 - w->n_states;
    CLG_TRY(start(w, 2, 2));
    CLG_TRY(graph_add_int(w->graph, CLG_BOOL, 1, &w->inputs[1]));
    CLG_TRY(iterate(w, 2, 1));
    *done = true;
    return CLG_OK;
}

static clg_status inline_scan(control *w, bool *done)
{
    w->body = node_attribute(&w->node, "body")->as.graph;
    w->n_scanned = (size_t)node_int(&w->node, "num_scan_inputs", 0);
    if (w->n_scanned < 1 || w->n_scanned > w->body->n_inputs ||
        w->node.n_inputs != w->body->n_inputs)
        return CLG_OK;
    w->n_states = w->body->n_inputs - w->n_scanned;
    if (w->body->n_outputs < w->n_states) return CLG_OK;
    w->n_collected = w->body->n_outputs - w->n_states;
    const shape *dims = &w->facts[w->node.inputs[w->n_states]].dims;
    int64_t axis = axis_of(w, "scan_input_axes", 0);
    if (axis < 0) axis += dims->rank;
    w->n_iterations = axis >= 0 && axis < dims->rank ? dims->dims[axis] : DIM_UNKNOWN;
    if (!is_small(w)) return CLG_OK;
    CLG_TRY(start(w, 0, 0));
    CLG_TRY(iterate(w, 0, 0));
    *done = true;
    return CLG_OK;
}

bool grad_is_control(const node *n)
{
    const op_row *row = n->op;
    return row && (row->flags & OP_CONTROL) != 0;
}

clg_status grad_inline_control(graph *g, node_id id, const value_fact *facts, bool *out_done)
{
    control w = {.graph = g, .id = id, .node = g->nodes[id], .facts = facts};
    const op_row *row = w.node.op;
    const op_control_kind kind = ((const op_control *)row->param)->kind;
    clg_status status = CLG_OK;
    *out_done = false;
    if (kind != CONTROL_IF && kind != CONTROL_LOOP && kind != CONTROL_SCAN) return CLG_OK;
    status = kind == CONTROL_IF     ? inline_if(&w, out_done)
             : kind == CONTROL_LOOP ? inline_loop(&w, out_done)
                                    : inline_scan(&w, out_done);
    memory_free(w.inputs);
    memory_free(w.outputs);
    memory_free(w.collected);
    return status;
}
