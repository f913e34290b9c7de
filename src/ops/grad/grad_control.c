/* SPDX-License-Identifier: Apache-2.0
 *
 * Replaces control flow by the nodes of its bodies, so that gradients pass through it: If with a
 * known condition by its branch, Loop and Scan with a known number of iterations by the nodes of
 * all iterations. The values that the node computed keep their ids.
 */
#include "ops/grad/grad_control.h"

#include "base/cancel.h"
#include "base/checked.h"

#include <string.h>

enum {
    MAX_ITERATIONS = 1024,
    MAX_ADDED = 1 << 17, /* nodes and values of one node of control flow */
    /* of one iteration: nodes, values and constants that read a scanned input, or that join a
     * collected output */
    ADDED_BY_SLICE = 7,
    ADDED_BY_JOIN = 2
};

/* Why a node cannot be replaced. */
#define WHY_CONDITION "its condition is not known"
#define WHY_COUNT "its number of iterations is not known"
#define WHY_NONE "it has no iterations"
#define WHY_MANY "it has more than 1024 iterations"
#define WHY_LARGE "its body adds more than 131072 nodes and values"
#define WHY_EARLY "it may stop before its number of iterations"
#define WHY_MISSING "a state or scanned input is missing"
#define WHY_BODY "its inputs and outputs are not those of its body"
_Static_assert(MAX_ITERATIONS == 1024 && MAX_ADDED == 131072, "the numbers in these texts");

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

/* Adds the node that gives v the id of output k of the node, which is removed. */
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

/* Adds the numbers of nodes and values of a body and of its nested bodies to *count; returns false
 * on overflow. */
static bool count_body(const graph *body, size_t *count)
{
    bool fits = checked_add_size(*count, body->n_nodes, count) &&
                checked_add_size(*count, body->n_values, count);
    for (size_t i = 0; i < body->n_nodes && fits; i++)
        for (size_t k = 0; k < body->nodes[i].n_attributes && fits; k++) {
            const graph_attribute *a = &body->nodes[i].attributes[k];
            if (a->type == ATTRIBUTE_GRAPH) fits = count_body(a->as.graph, count);
        }
    return fits;
}

/* Returns why so many copies of the body cannot be added; NULL if they can. */
static const char *check_size(const control *w)
{
    size_t count = ADDED_BY_SLICE * w->n_scanned + ADDED_BY_JOIN * w->n_collected;
    if (w->n_iterations < 1) return w->n_iterations == 0 ? WHY_NONE : WHY_COUNT;
    if (w->n_iterations > MAX_ITERATIONS) return WHY_MANY;
    if (!count_body(w->body, &count) || !checked_mul_size(count, (size_t)w->n_iterations, &count) ||
        count > MAX_ADDED)
        return WHY_LARGE;
    return NULL;
}

/* Returns whether the n inputs of the node from `from` on are all present. */
static bool has_inputs(const control *w, size_t from, size_t n)
{
    bool has = true;
    for (size_t i = 0; i < n; i++) has = has && node_has_input(&w->node, from + i);
    return has;
}

/* ---- If -------------------------------------------------------------------------------------- */

static const char *read_if(control *w)
{
    int64_t condition;
    if (!known_number(w, 0, &condition)) return WHY_CONDITION;
    w->body = node_attribute(&w->node, condition ? "then_branch" : "else_branch")->as.graph;
    w->n_iterations = 1;
    return check_size(w);
}

static clg_status inline_if(control *w)
{
    w->outputs = memory_zalloc(w->body->n_outputs + 1, sizeof *w->outputs);
    if (!w->outputs) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    graph_remove_node(w->graph, w->id);
    CLG_TRY(graph_inline(w->graph, w->body, NULL, w->outputs));
    for (size_t k = 0; k < w->body->n_outputs; k++) CLG_TRY(give(w, k, w->outputs[k]));
    return CLG_OK;
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

/* Concatenates the values that the iterations gave for collected output i. */
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
        CLG_TRY(cancel_check("differentiating the graph"));
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

/* Returns whether a loop's body never stops it: its condition is true, or the one that it is
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

static const char *read_loop(control *w)
{
    int64_t condition = 1;
    w->body = node_attribute(&w->node, "body")->as.graph;
    if (w->body->n_inputs < 2 || w->body->n_outputs < w->body->n_inputs - 1 ||
        w->node.n_inputs < w->body->n_inputs)
        return WHY_BODY;
    w->n_states = w->body->n_inputs - 2;
    w->n_collected = w->body->n_outputs - 1 - w->n_states;
    if (!has_inputs(w, 2, w->n_states)) return WHY_MISSING;
    if (!known_number(w, 0, &w->n_iterations)) return WHY_COUNT;
    if (node_has_input(&w->node, 1) && !known_number(w, 1, &condition)) return WHY_CONDITION;
    if (!condition) return WHY_NONE;
    return always_continues(w->body) ? check_size(w) : WHY_EARLY;
}

static clg_status inline_loop(control *w)
{
    CLG_TRY(start(w, 2, 2));
    CLG_TRY(graph_add_int(w->graph, CLG_BOOL, 1, &w->inputs[1]));
    return iterate(w, 2, 1);
}

static const char *read_scan(control *w)
{
    w->body = node_attribute(&w->node, "body")->as.graph;
    w->n_scanned = (size_t)node_int(&w->node, "num_scan_inputs", 0);
    if (w->n_scanned < 1 || w->n_scanned > w->body->n_inputs ||
        w->node.n_inputs != w->body->n_inputs)
        return WHY_BODY;
    w->n_states = w->body->n_inputs - w->n_scanned;
    if (w->body->n_outputs < w->n_states) return WHY_BODY;
    w->n_collected = w->body->n_outputs - w->n_states;
    if (!has_inputs(w, 0, w->node.n_inputs)) return WHY_MISSING;
    const shape *dims = &w->facts[w->node.inputs[w->n_states]].dims;
    int64_t axis = axis_of(w, "scan_input_axes", 0);
    if (axis < 0) axis += dims->rank;
    w->n_iterations = axis >= 0 && axis < dims->rank ? dims->dims[axis] : DIM_UNKNOWN;
    return check_size(w);
}

static clg_status inline_scan(control *w)
{
    CLG_TRY(start(w, 0, 0));
    return iterate(w, 0, 0);
}

/* ---- the kinds of control flow that are replaced --------------------------------------------- */

typedef struct control_way {
    op_control_kind kind;
    /* Sets the body and the counts; returns why the node cannot be replaced, or NULL. */
    const char *(*read)(control *w);
    clg_status (*replace)(control *w);
} control_way;

bool grad_is_control(const node *n)
{
    const op_row *row = n->op;
    return row && (row->flags & OP_CONTROL) != 0;
}

static const control_way *find_way(const node *n)
{
    static const control_way ways[] = {{CONTROL_IF, read_if, inline_if},
                                       {CONTROL_LOOP, read_loop, inline_loop},
                                       {CONTROL_SCAN, read_scan, inline_scan}};
    const op_row *row = n->op;
    for (size_t i = 0; grad_is_control(n) && i < sizeof ways / sizeof *ways; i++)
        if (ways[i].kind == ((const op_control *)row->param)->kind) return &ways[i];
    return NULL;
}

bool grad_can_inline(const node *n) { return find_way(n) != NULL; }

const char *grad_control_obstacle(graph *g, node_id id, const value_fact *facts)
{
    control w = {.graph = g, .id = id, .node = g->nodes[id], .facts = facts};
    const control_way *way = find_way(&w.node);
    return way ? way->read(&w) : NULL;
}

clg_status grad_inline_control(graph *g, node_id id, const value_fact *facts, bool *out_done)
{
    control w = {.graph = g, .id = id, .node = g->nodes[id], .facts = facts};
    const control_way *way = find_way(&w.node);
    *out_done = false;
    if (!way || way->read(&w)) return CLG_OK;
    const clg_status status = way->replace(&w);
    *out_done = status == CLG_OK;
    memory_free(w.inputs);
    memory_free(w.outputs);
    memory_free(w.collected);
    return status;
}
