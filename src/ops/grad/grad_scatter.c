/* SPDX-License-Identifier: Apache-2.0
 *
 * Rules of operators that write elements to places, or select them by their values.
 */
#include "ops/grad/grad_rule.h"

#include <string.h>

/* Returns whether a scatter adds to the data, else it replaces elements; refuses other reductions.
 */
static bool is_sum(grad_node *c)
{
    const char *reduction = node_string(&c->node, "reduction", "none");
    const bool adds = strcmp(reduction, "add") == 0;
    if (!adds && strcmp(reduction, "none") != 0)
        grad_refuse(c, "reduction '%s' has no rule", reduction);
    return adds;
}

/* The data's cotangent is 0 for elements that are replaced, but not for those that are added to. */
void grad_pass_scatter_elements(grad_node *c)
{
    const bool adds = is_sum(c);
    const int64_t axis = node_int(&c->node, "axis", 0);
    const value_id g = grad_cotangent(c, 0), indices = grad_in(c, 1);
    if (grad_wants(c, 0) && !adds) {
        const value_id zeros = grad_fill_like(c, grad_in(c, 2), 0);
        const value_id kept = GRAD_ADD(c, "ScatterElements", g, indices, zeros);
        grad_give(c, 0, grad_set_int(c, kept, "axis", axis));
    } else if (grad_wants(c, 0)) {
        grad_give(c, 0, g);
    }
    if (grad_wants(c, 2))
        grad_give(c, 2, grad_set_int(c, GRAD_ADD(c, "GatherElements", g, indices), "axis", axis));
}

void grad_pass_scatter_nd(grad_node *c)
{
    const bool adds = is_sum(c);
    const value_id g = grad_cotangent(c, 0), indices = grad_in(c, 1);
    if (grad_wants(c, 0))
        grad_give(c, 0,
                  adds ? g
                       : GRAD_ADD(c, "ScatterND", g, indices, grad_fill_like(c, grad_in(c, 2), 0)));
    if (grad_wants(c, 2)) grad_give(c, 2, GRAD_ADD(c, "GatherND", g, indices));
}

/* Scatters the cotangents to the places of the selected elements. */
void grad_pass_topk(grad_node *c)
{
    const value_id zeros = grad_fill_like(c, grad_in(c, 0), 0);
    const value_id made =
        GRAD_ADD(c, "ScatterElements", zeros, grad_need_output(c, 1), grad_cotangent(c, 0));
    grad_give(c, 0, grad_set_int(c, made, "axis", node_int(&c->node, "axis", -1)));
}

void grad_pass_compress(grad_node *c)
{
    const int64_t all = -1;
    const int rank = grad_rank(c, 0);
    const value_id x = grad_in(c, 0), g = grad_cotangent(c, 0);
    const value_id places =
        GRAD_ADD(c, "Reshape", GRAD_ADD(c, "NonZero", grad_in(c, 1)), grad_list(c, 1, &all));
    int64_t axis = node_int(&c->node, "axis", 0);
    if (!node_attribute(&c->node, "axis")) { /* of all elements in order */
        const value_id n =
            GRAD_ADD(c, "Reshape", GRAD_ADD(c, "Size", x), grad_list(c, 1, &(int64_t){1}));
        grad_give(c, 0, grad_reshape_like(c, grad_add_rows(c, g, 1, 0, places, n), x));
        return;
    }
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank)
        grad_refuse(c, "axis is out of range");
    else
        grad_give(c, 0, grad_add_rows(c, g, rank, (int)axis, places, grad_size_along(c, x, axis)));
}

/* Reverses the same sequences again. */
void grad_pass_reverse_sequence(grad_node *c)
{
    value_id v = GRAD_ADD(c, "ReverseSequence", grad_cotangent(c, 0), grad_in(c, 1));
    v = grad_set_int(c, v, "batch_axis", node_int(&c->node, "batch_axis", 1));
    grad_give(c, 0, grad_set_int(c, v, "time_axis", node_int(&c->node, "time_axis", 0)));
}

static value_id sum_all(grad_node *c, value_id v)
{
    return grad_set_int(c, GRAD_ADD(c, "ReduceSum", v), "keepdims", 0);
}

/* Input 2 has the values off and on: the cotangent of each is the sum of g where it is output. */
void grad_pass_onehot(grad_node *c)
{
    const int64_t axis = node_int(&c->node, "axis", -1);
    const double numbers[2] = {0, 1};
    const value_id g = grad_cotangent(c, 0), zero = grad_number(c, 0);
    const value_id off_on = grad_numbers(c, CLG_FLOAT32, 2, numbers);
    const value_id marks =
        grad_set_int(c, GRAD_ADD(c, "OneHot", grad_in(c, 0), grad_in(c, 1), off_on), "axis", axis);
    const value_id is_on = grad_set_int(c, GRAD_ADD(c, "Cast", marks), "to", CLG_BOOL);
    const value_id off = sum_all(c, GRAD_ADD(c, "Where", is_on, zero, g)),
                   on = sum_all(c, GRAD_ADD(c, "Where", is_on, g, zero));
    const value_id first = grad_list(c, 1, &(int64_t){0});
    grad_give(c, 2,
              grad_set_int(c,
                           GRAD_ADD(c, "Concat", GRAD_ADD(c, "Unsqueeze", off, first),
                                    GRAD_ADD(c, "Unsqueeze", on, first)),
                           "axis", 0));
}

/* y = start + i delta. The limit only changes the number of elements. */
void grad_pass_range(grad_node *c)
{
    const int64_t axis = 0;
    const value_id g = grad_cotangent(c, 0);
    if (grad_wants(c, 0)) grad_give(c, 0, grad_reshape_like(c, sum_all(c, g), grad_in(c, 0)));
    if (grad_wants(c, 2)) {
        const value_id ones = grad_fill_like(c, grad_out(c, 0), 1);
        value_id i = GRAD_ADD(c, "CumSum", ones, grad_list(c, 1, &axis));
        i = grad_set_int(c, i, "exclusive", 1);
        const value_id sum = sum_all(c, GRAD_ADD(c, "Mul", g, i));
        grad_give(c, 2, grad_reshape_like(c, sum, grad_in(c, 2)));
    }
}

/* ---- TensorScatter --------------------------------------------------------------------------- */

/* Each element is one of the update or of the cache. write_indices gives the first place of the
 * update for each of the batch. */
void grad_pass_tensor_scatter(grad_node *c)
{
    const size_t first = c->graph->n_nodes;
    const int rank = grad_rank(c, 0);
    const value_id past = grad_in(c, 0), update = grad_in(c, 1);
    int64_t axis = node_int(&c->node, "axis", -2), others[CLG_MAX_RANK], rows[CLG_MAX_RANK];
    size_t n = 0;
    if (axis < 0) axis += rank;
    for (int64_t i = 0; i < rank; i++) {
        if (i != axis) others[n++] = i;
        rows[i] = i + 1;
    }
    const value_id size = grad_size_along(c, past, axis), zero = grad_number_of(c, CLG_INT64, 0);
    value_id at = grad_unsqueeze(c, grad_indices(c, size), n, others);
    if (grad_in(c, 2) != VALUE_NONE)
        at = GRAD_ADD(c, "Sub", at, grad_unsqueeze(c, grad_in(c, 2), (size_t)rank - 1, rows));
    if (strcmp(node_string(&c->node, "mode", "linear"), "circular") == 0)
        at = GRAD_ADD(c, "Mod", at, size);
    const value_id length = grad_size_along(c, update, axis);
    const value_id written = GRAD_ADD(c, "And", GRAD_ADD(c, "GreaterOrEqual", at, zero),
                                      GRAD_ADD(c, "Less", at, length));
    const value_id last = GRAD_ADD(c, "Sub", length, grad_number_of(c, CLG_INT64, 1));
    const value_id index = GRAD_ADD(c, "Max", GRAD_ADD(c, "Min", at, last), zero);
    value_id v = GRAD_ADD(c, "GatherElements", update, grad_expand_like(c, index, past));
    v = grad_set_int(c, v, "axis", axis);
    const value_id y = GRAD_ADD(c, "Where", written, v, past);
    grad_through(c, first, 1, &y);
}
