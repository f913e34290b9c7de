/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements the functions that rules share (grad_rule.h).
 */
#include "ops/grad/grad_rule.h"

#include "base/cancel.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- the node -------------------------------------------------------------------------------- */

void grad_refuse(grad_node *c, const char *format, ...)
{
    char why[256], text[NODE_TEXT_BYTES];
    va_list args;
    if (c->status != CLG_OK) return;
    va_start(args, format);
    (void)vsnprintf(why, sizeof why, format, args);
    va_end(args);
    c->status = error_set(CLG_ERROR_UNSUPPORTED_OPERATOR, "%s has no gradient: %s",
                          node_text(&c->node, text), why);
}

bool grad_has_room(grad_node *c, size_t n_more)
{
    if (c->status == CLG_OK) c->status = cancel_check("differentiating the graph");
    if (c->graph->n_nodes > GRAD_MAX_NODES || n_more > GRAD_MAX_NODES - c->graph->n_nodes)
        grad_refuse(c, "its gradient would make a graph of more than %d nodes", GRAD_MAX_NODES);
    return c->status == CLG_OK;
}

value_id grad_in(const grad_node *c, size_t i)
{
    return i < c->node.n_inputs ? c->node.inputs[i] : VALUE_NONE;
}

value_id grad_out(const grad_node *c, size_t k)
{
    return k < c->node.n_outputs ? c->node.outputs[k] : VALUE_NONE;
}

value_id grad_need_output(grad_node *c, size_t k)
{
    value_id made = VALUE_NONE;
    node *n = &c->graph->nodes[c->id];
    if (k < n->n_outputs && n->outputs[k] != VALUE_NONE) return n->outputs[k];
    if (c->status == CLG_OK) c->status = graph_add_value(c->graph, "", &made);
    if (c->status != CLG_OK) return VALUE_NONE;
    if (k >= n->n_outputs) {
        c->status = node_add_output(c->graph, c->id, made);
    } else {
        n->outputs[k] = made;
        c->graph->values[made].producer = c->id;
    }
    return made;
}

value_id grad_cotangent(const grad_node *c, size_t k)
{
    return k < c->node.n_outputs ? c->cotangents[k] : VALUE_NONE;
}

const value_fact *grad_fact(const grad_node *c, value_id v)
{
    return grad_values_fact(c->values, v);
}

const value_fact *grad_values_fact(const void *user, value_id v)
{
    static const value_fact unknown = {.dims = {.rank = RANK_UNKNOWN}};
    const grad_values *values = user;
    while (v < values->base) values = values->around;
    return v - values->base < values->n ? &values->facts[v - values->base] : &unknown;
}

bool grad_depends(const grad_values *values, value_id v)
{
    if (v >= values->base) return v - values->base < values->n && values->depends[v - values->base];
    for (size_t i = 0; i < values->n_xs; i++)
        if (values->xs[i] == v) return true;
    return false;
}

bool grad_wants(const grad_node *c, size_t i)
{
    const value_id v = grad_in(c, i);
    return v != VALUE_NONE && grad_depends(c->values, v);
}

int grad_rank(grad_node *c, size_t i)
{
    const int rank = grad_fact(c, grad_in(c, i))->dims.rank;
    if (rank != RANK_UNKNOWN) return rank;
    grad_refuse(c, "the rank of input %zu is not known", i);
    return 0;
}

bool grad_ints(const grad_node *c, size_t i, const char *attribute, int64_t out[OP_MAX_INTS],
               size_t *out_n)
{
    const value_id v = grad_in(c, i);
    const int64_t *values = NULL;
    *out_n = 0;
    if (v == VALUE_NONE) {
        values = attribute ? node_ints(&c->node, attribute, out_n) : NULL;
        if (!values || *out_n > OP_MAX_INTS) return false;
        if (*out_n > 0) memcpy(out, values, *out_n * sizeof *out);
        return true;
    }
    const tensor *known = grad_fact(c, v)->known;
    if (!known || known->n_elements > OP_MAX_INTS || !dtype_is_integer(known->dtype)) return false;
    *out_n = (size_t)known->n_elements;
    for (int64_t k = 0; k < known->n_elements; k++) out[k] = tensor_get_int(known, k);
    return true;
}

/* ---- new nodes ------------------------------------------------------------------------------- */

value_id grad_add_of(grad_node *c, const char *domain, const char *op_type, size_t n_inputs,
                     const value_id *inputs)
{
    value_id made;
    int64_t opset = graph_opset(c->graph, domain);
    if (c->status == CLG_OK && opset == 0) c->status = graph_set_opset(c->graph, domain, opset = 1);
    if (domain[0] == '\0' && opset < GRAPH_ADDED_OPSET) opset = GRAPH_ADDED_OPSET;
    if (c->status == CLG_OK)
        c->status = graph_add_result(c->graph, domain, op_type, opset, n_inputs, inputs, &made);
    if (c->status != CLG_OK) return VALUE_NONE;
    c->graph->nodes[c->graph->values[made].producer].label = c->node.label;
    return made;
}

value_id grad_add(grad_node *c, const char *op_type, size_t n_inputs, const value_id *inputs)
{
    return grad_add_of(c, "", op_type, n_inputs, inputs);
}

value_id grad_of_opset(grad_node *c, value_id v, int64_t opset)
{
    if (c->status != CLG_OK) return v;
    node *n = &c->graph->nodes[c->graph->values[v].producer];
    if (n->opset < opset) n->opset = opset;
    return v;
}

value_id grad_set_int(grad_node *c, value_id v, const char *name, int64_t number)
{
    if (c->status == CLG_OK)
        c->status = node_set_int(c->graph, c->graph->values[v].producer, name, number);
    return v;
}

value_id grad_set_float(grad_node *c, value_id v, const char *name, float number)
{
    if (c->status == CLG_OK)
        c->status = node_set_float(c->graph, c->graph->values[v].producer, name, number);
    return v;
}

value_id grad_set_ints(grad_node *c, value_id v, const char *name, size_t n, const int64_t *numbers)
{
    if (c->status == CLG_OK)
        c->status = node_set_ints(c->graph, c->graph->values[v].producer, name, n, numbers);
    return v;
}

/* Copies the attributes whose names are in the list, or those whose names are not. */
static value_id copy_attributes(grad_node *c, value_id v, size_t n, const char *const *names,
                                bool listed)
{
    for (size_t i = 0; i < c->node.n_attributes && c->status == CLG_OK; i++) {
        const graph_attribute *a = &c->node.attributes[i];
        bool is_listed = false;
        for (size_t k = 0; k < n; k++) is_listed = is_listed || strcmp(a->name, names[k]) == 0;
        if (is_listed == listed)
            c->status = node_add_attribute(c->graph, c->graph->values[v].producer, a);
    }
    return v;
}

value_id grad_copy_attributes(grad_node *c, value_id v, size_t n, const char *const *names)
{
    return copy_attributes(c, v, n, names, true);
}

value_id grad_copy_other_attributes(grad_node *c, value_id v, size_t n, const char *const *names)
{
    return copy_attributes(c, v, n, names, false);
}

/* Returns a constant of this shape, which has as many elements as there are numbers. */
static value_id add_constant(grad_node *c, clg_dtype dtype, const shape *dims,
                             const double *numbers)
{
    value_id made = VALUE_NONE;
    tensor *t = NULL;
    if (c->status == CLG_OK) c->status = tensor_create(dtype, dims, &t);
    for (int64_t i = 0; c->status == CLG_OK && i < t->n_elements; i++)
        tensor_set_float(t, i, numbers[i]);
    if (c->status == CLG_OK) c->status = graph_add_constant(c->graph, "", t, &made);
    tensor_free(t);
    return made;
}

value_id grad_number(grad_node *c, double number)
{
    value_id made = VALUE_NONE;
    if (c->status == CLG_OK)
        c->status = graph_add_number(c->graph, grad_fact(c, grad_out(c, 0))->dtype, number, &made);
    return made;
}

value_id grad_numbers(grad_node *c, clg_dtype dtype, size_t n, const double *numbers)
{
    const shape dims = {.rank = 1, .dims = {(int64_t)n}};
    return add_constant(c, dtype, &dims, numbers);
}

value_id grad_list(grad_node *c, size_t n, const int64_t *numbers)
{
    value_id made = VALUE_NONE;
    if (c->status == CLG_OK) c->status = graph_add_ints(c->graph, n, numbers, &made);
    return made;
}

/* ---- shapes ---------------------------------------------------------------------------------- */

value_id grad_dims(grad_node *c, value_id v)
{
    const shape *dims = &grad_fact(c, v)->dims;
    if (shape_is_known(dims)) return grad_list(c, (size_t)dims->rank, dims->dims);
    return GRAD_ADD(c, "Shape", v);
}

value_id grad_sum_to(grad_node *c, value_id v, value_id like)
{
    return grad_add_of(c, DOMAIN_INTERNAL, "SumTo", 2, (value_id[]){v, grad_dims(c, like)});
}

value_id grad_reshape_like(grad_node *c, value_id v, value_id like)
{
    const value_id made = GRAD_ADD(c, "Reshape", v, grad_dims(c, like));
    return grad_set_int(c, grad_of_opset(c, made, 14), "allowzero", 1);
}

value_id grad_expand_like(grad_node *c, value_id v, value_id like)
{
    return GRAD_ADD(c, "Expand", v, grad_dims(c, like));
}

value_id grad_size_along(grad_node *c, value_id v, int64_t axis)
{
    const shape *dims = &grad_fact(c, v)->dims;
    const int64_t at = axis < 0 ? axis + dims->rank : axis;
    if (dims->rank != RANK_UNKNOWN && at >= 0 && at < dims->rank && dims->dims[at] != DIM_UNKNOWN)
        return grad_list(c, 1, &dims->dims[at]);
    return GRAD_ADD(c, "Gather", GRAD_ADD(c, "Shape", v), grad_list(c, 1, &axis));
}

value_id grad_size_of_axes(grad_node *c, value_id v, int64_t from, int64_t to)
{
    value_id product = grad_list(c, 1, &(int64_t){1});
    for (int64_t axis = from; axis < to; axis++)
        product = axis == from ? grad_size_along(c, v, axis)
                               : GRAD_ADD(c, "Mul", product, grad_size_along(c, v, axis));
    return product;
}

value_id grad_fill_like(grad_node *c, value_id like, double number)
{
    return grad_fill(c, grad_dims(c, like), grad_fact(c, like)->dtype, number);
}

value_id grad_fill(grad_node *c, value_id dims, clg_dtype dtype, double number)
{
    const shape one = {.rank = 1, .dims = {1}};
    tensor *t = NULL;
    const value_id made = GRAD_ADD(c, "ConstantOfShape", dims);
    if (c->status == CLG_OK) c->status = tensor_create(dtype, &one, &t);
    if (c->status == CLG_OK) {
        tensor_set_float(t, 0, number);
        c->status = node_set_tensor(c->graph, c->graph->values[made].producer, "value", t);
    }
    tensor_free(t);
    return made;
}

value_id grad_reduce(grad_node *c, const char *op_type, value_id v, size_t n, const int64_t *axes)
{
    const bool is_sum =
        strcmp(op_type, "ReduceSum") == 0; /* its axes are an input since opset 13 */
    if (is_sum || graph_opset(c->graph, "") >= 18)
        return GRAD_ADD(c, op_type, v, grad_list(c, n, axes));
    return grad_set_ints(c, GRAD_ADD(c, op_type, v), "axes", n, axes);
}

value_id grad_mean(grad_node *c, value_id v, size_t n, const int64_t *axes)
{
    return grad_reduce(c, "ReduceMean", v, n, axes);
}

/* ---- places ---------------------------------------------------------------------------------- */

value_id grad_move_axis(grad_node *c, value_id v, int rank, int from, int to)
{
    int64_t perm[CLG_MAX_RANK];
    int n = 0;
    if (from == to) return v;
    for (int i = 0; i < rank; i++) {
        if (n == to) perm[n++] = from;
        if (i != from) perm[n++] = i;
    }
    if (n == to) perm[n++] = from;
    return grad_set_ints(c, GRAD_ADD(c, "Transpose", v), "perm", (size_t)rank, perm);
}

value_id grad_add_at(grad_node *c, const char *op_type, value_id zeros, value_id indices,
                     value_id updates)
{
    value_id v = grad_of_opset(c, GRAD_ADD(c, op_type, zeros, indices, updates), 18);
    if (c->status == CLG_OK)
        c->status = node_set_string(c->graph, c->graph->values[v].producer, "reduction", "add");
    return v;
}

value_id grad_add_rows(grad_node *c, value_id v, int rank, int axis, value_id places, value_id n)
{
    const int64_t first = 1, end = CLG_MAX_RANK, last = -1;
    value_id dims = n;
    v = grad_move_axis(c, v, rank, axis, 0);
    if (rank > 1) {
        const value_id rest = GRAD_ADD(c, "Slice", GRAD_ADD(c, "Shape", v), grad_list(c, 1, &first),
                                       grad_list(c, 1, &end));
        dims = grad_set_int(c, GRAD_ADD(c, "Concat", n, rest), "axis", 0);
    }
    const value_id zeros = grad_fill(c, dims, grad_fact(c, grad_out(c, 0))->dtype, 0);
    const value_id at = GRAD_ADD(c, "Unsqueeze", places, grad_list(c, 1, &last));
    return grad_move_axis(c, grad_add_at(c, "ScatterND", zeros, at, v), rank, 0, axis);
}

void grad_give(grad_node *c, size_t i, value_id cotangent)
{
    if (c->status == CLG_OK && grad_wants(c, i)) c->given[i] = cotangent;
}

/* ---- shorthand for rules by other operators -------------------------------------------------- */

value_id grad_cast(grad_node *c, value_id v, clg_dtype dtype)
{
    return grad_set_int(c, GRAD_ADD(c, "Cast", v), "to", dtype);
}

value_id grad_number_of(grad_node *c, clg_dtype dtype, double number)
{
    value_id made = VALUE_NONE;
    if (c->status == CLG_OK) c->status = graph_add_number(c->graph, dtype, number, &made);
    return made;
}

value_id grad_unsqueeze(grad_node *c, value_id v, size_t n, const int64_t *axes)
{
    return GRAD_ADD(c, "Unsqueeze", v, grad_list(c, n, axes));
}

value_id grad_permute(grad_node *c, value_id v, size_t n, const int64_t *perm)
{
    return grad_set_ints(c, GRAD_ADD(c, "Transpose", v), "perm", n, perm);
}

value_id grad_reshape(grad_node *c, value_id v, size_t n, const int64_t *dims)
{
    return GRAD_ADD(c, "Reshape", v, grad_list(c, n, dims));
}

value_id grad_reshape_to(grad_node *c, value_id v, size_t n, const value_id *lists)
{
    const value_id made = GRAD_ADD(c, "Reshape", v, grad_concat(c, 0, n, lists));
    return grad_set_int(c, grad_of_opset(c, made, 14), "allowzero", 1);
}

value_id grad_concat(grad_node *c, int64_t axis, size_t n, const value_id *parts)
{
    return grad_set_int(c, grad_add(c, "Concat", n, parts), "axis", axis);
}

value_id grad_slice(grad_node *c, value_id v, int64_t axis, int64_t from, int64_t to, int64_t step)
{
    const value_id first = grad_list(c, 1, &from), end = grad_list(c, 1, &to),
                   along = grad_list(c, 1, &axis), by = grad_list(c, 1, &step);
    return GRAD_ADD(c, "Slice", v, first, end, along, by);
}

value_id grad_slice_at(grad_node *c, value_id v, int64_t axis, value_id from, value_id to)
{
    return GRAD_ADD(c, "Slice", v, from, to, grad_list(c, 1, &axis));
}

value_id grad_pick(grad_node *c, value_id v, int64_t axis, int64_t at)
{
    return GRAD_ADD(c, "Squeeze", grad_slice(c, v, axis, at, at + 1, 1), grad_list(c, 1, &axis));
}

void grad_split(grad_node *c, value_id v, int64_t axis, value_id sizes, size_t n, value_id *out)
{
    const value_id inputs[2] = {v, sizes};
    node_id made = NODE_NONE;
    for (size_t i = 0; i < n; i++) out[i] = VALUE_NONE;
    for (size_t i = 0; i < n && c->status == CLG_OK; i++)
        c->status = graph_add_value(c->graph, "", &out[i]);
    if (c->status == CLG_OK)
        c->status = graph_add_node(c->graph, "", "Split", "", 2, inputs, n, out, &made);
    if (c->status != CLG_OK) return;
    node *split = &c->graph->nodes[made];
    if (split->opset < GRAPH_ADDED_OPSET) split->opset = GRAPH_ADDED_OPSET;
    split->label = c->node.label;
    c->status = node_set_int(c->graph, made, "axis", axis);
}

value_id grad_indices(grad_node *c, value_id size)
{
    const value_id end = GRAD_ADD(c, "Squeeze", size);
    return GRAD_ADD(c, "Range", grad_number_of(c, CLG_INT64, 0), end,
                    grad_number_of(c, CLG_INT64, 1));
}
