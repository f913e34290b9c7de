/* SPDX-License-Identifier: Apache-2.0
 *
 * Rules of reductions: the cotangent of a result is spread over the elements that were reduced to
 * it.
 */
#include "ops/grad/grad_rule.h"

/* Returns a cotangent of the reduction's output with the reduced axes, of size 1. */
static value_id with_reduced_axes(grad_node *c, value_id g)
{
    int64_t axes[OP_MAX_INTS];
    size_t n;
    if (node_int(&c->node, "keepdims", 1) != 0) return g;
    if (grad_ints(c, 1, "axes", axes, &n))
        return n == 0 ? g : GRAD_ADD(c, "Unsqueeze", g, grad_list(c, n, axes));
    /* without axes all are reduced, and a scalar is spread as it is */
    return grad_in(c, 1) == VALUE_NONE ? g : GRAD_ADD(c, "Unsqueeze", g, grad_in(c, 1));
}

/* Returns whether no axis is reduced: axes is empty, and noop_with_empty_axes is set. */
static bool reduces_nothing(const grad_node *c)
{
    int64_t axes[OP_MAX_INTS];
    size_t n;
    const bool known = grad_ints(c, 1, "axes", axes, &n);
    return node_int(&c->node, "noop_with_empty_axes", 0) != 0 &&
           (known ? n == 0 : grad_in(c, 1) == VALUE_NONE);
}

static value_id spread(grad_node *c, value_id g)
{
    if (reduces_nothing(c)) return g;
    return grad_expand_like(c, with_reduced_axes(c, g), grad_in(c, 0));
}

/* Returns the number of elements that are reduced to one, as a scalar of the dtype of output 0. */
static value_id count_reduced(grad_node *c)
{
    const shape *in = &grad_fact(c, grad_in(c, 0))->dims,
                *out = &grad_fact(c, grad_out(c, 0))->dims;
    int64_t n_in, n_out;
    if (shape_is_known(in) && shape_is_known(out) && shape_n_elements(in, &n_in) == CLG_OK &&
        shape_n_elements(out, &n_out) == CLG_OK) {
        const int64_t count = n_out > 0 ? n_in / n_out : 1;
        return grad_number(c, (double)count);
    }
    const value_id n_elements = GRAD_ADD(c, "Size", grad_in(c, 0)),
                   n_results = GRAD_ADD(c, "Size", grad_out(c, 0)),
                   ratio = GRAD_ADD(c, "Div", n_elements, n_results);
    return grad_set_int(c, GRAD_ADD(c, "Cast", ratio), "to", grad_fact(c, grad_out(c, 0))->dtype);
}

void grad_pass_reduce_sum(grad_node *c) { grad_give(c, 0, spread(c, grad_cotangent(c, 0))); }

void grad_pass_reduce_mean(grad_node *c)
{
    if (reduces_nothing(c)) {
        grad_give(c, 0, grad_cotangent(c, 0));
        return;
    }
    const value_id g = GRAD_ADD(c, "Div", grad_cotangent(c, 0), count_reduced(c));
    grad_give(c, 0, spread(c, g));
}

/* The cotangent of an element is the product of the others: of those before it and those after it,
 * which holds where elements are 0, too. Of several axes, one is reduced after the other. */
void grad_pass_reduce_prod(grad_node *c)
{
    int64_t axes[OP_MAX_INTS];
    value_id stages[CLG_MAX_RANK];
    size_t n;
    const int64_t all = -1, first = 0;
    const value_id x = grad_in(c, 0), g = grad_cotangent(c, 0);
    const bool known = grad_ints(c, 1, "axes", axes, &n), whole = !known || n == 0;
    if (reduces_nothing(c)) {
        grad_give(c, 0, g);
        return;
    }
    if ((!known && grad_in(c, 1) != VALUE_NONE) || (known && n > CLG_MAX_RANK)) {
        grad_refuse(c, "its axes are not known");
        return;
    }
    if (whole) { /* all elements are one row */
        axes[0] = first;
        n = 1;
    }
    stages[0] = whole ? GRAD_ADD(c, "Reshape", x, grad_list(c, 1, &all)) : x;
    for (size_t i = 1; i < n; i++)
        stages[i] = grad_reduce(c, "ReduceProd", stages[i - 1], 1, &axes[i - 1]);
    value_id v = whole ? GRAD_ADD(c, "Reshape", g, grad_list(c, 1, &all)) : with_reduced_axes(c, g);
    for (size_t i = n; i-- > 0;) {
        const value_id axis = grad_list(c, 1, &axes[i]);
        const value_id before = grad_products_before(c, stages[i], axis, false),
                       after = grad_products_before(c, stages[i], axis, true);
        v = GRAD_ADD(c, "Mul", v, GRAD_ADD(c, "Mul", before, after));
    }
    grad_give(c, 0, whole ? grad_reshape_like(c, v, x) : v);
}

/* Divides the cotangent equally among the elements that are the largest, or smallest. */
static void give_to_results(grad_node *c, value_id g, value_id y)
{
    const clg_dtype dtype = grad_fact(c, grad_out(c, 0))->dtype;
    const value_id same = GRAD_ADD(c, "Equal", grad_in(c, 0), y);
    const value_id mask = grad_set_int(c, GRAD_ADD(c, "Cast", same), "to", dtype);
    const value_id share = GRAD_ADD(c, "Div", g, grad_sum_to(c, mask, y));
    grad_give(c, 0, GRAD_ADD(c, "Mul", mask, share));
}

void grad_pass_reduce_extreme(grad_node *c)
{
    if (reduces_nothing(c))
        grad_give(c, 0, grad_cotangent(c, 0));
    else
        give_to_results(c, with_reduced_axes(c, grad_cotangent(c, 0)),
                        with_reduced_axes(c, grad_out(c, 0)));
}

void grad_pass_reduce_formula(grad_node *c)
{
    const bool none = reduces_nothing(c);
    const value_id g = grad_cotangent(c, 0), y = grad_out(c, 0);
    const value_id made =
        grad_formula_of(c, c->row->grad->formulas[0], none ? g : with_reduced_axes(c, g),
                        none ? y : with_reduced_axes(c, y));
    grad_give(c, 0, grad_expand_like(c, made, grad_in(c, 0)));
}

void grad_pass_global_max(grad_node *c)
{
    give_to_results(c, grad_cotangent(c, 0), grad_out(c, 0));
}

void grad_pass_global_average(grad_node *c)
{
    const value_id g = GRAD_ADD(c, "Div", grad_cotangent(c, 0), count_reduced(c));
    grad_give(c, 0, grad_expand_like(c, g, grad_in(c, 0)));
}

/* clgraph.SumTo, in second derivatives. */
void grad_pass_sum_to(grad_node *c)
{
    grad_give(c, 0, grad_expand_like(c, grad_cotangent(c, 0), grad_in(c, 0)));
}

/* ---- softmax --------------------------------------------------------------------------------- */

/* Returns the sum of v over the axes of the node's softmax: from opset 13 on one axis, before it
 * all from that axis on. */
static value_id sum_over_axes(grad_node *c, value_id v)
{
    int64_t axes[CLG_MAX_RANK];
    size_t n = 0;
    const bool one = c->row->since >= 13;
    const int rank = grad_rank(c, 0);
    int64_t axis = node_int(&c->node, "axis", one ? -1 : 1);
    if (axis < 0) axis += rank;
    for (int64_t a = axis; a < (one ? axis + 1 : rank) && n < CLG_MAX_RANK; a++) axes[n++] = a;
    if (n == 0) return v; /* each sum is over one element */
    return GRAD_ADD(c, "ReduceSum", v, grad_list(c, n, axes));
}

void grad_pass_softmax(grad_node *c)
{
    const value_id y = grad_out(c, 0), part = GRAD_ADD(c, "Mul", grad_cotangent(c, 0), y);
    const value_id whole = GRAD_ADD(c, "Mul", y, sum_over_axes(c, part));
    grad_give(c, 0, GRAD_ADD(c, "Sub", part, whole));
}

void grad_pass_log_softmax(grad_node *c)
{
    const value_id g = grad_cotangent(c, 0), p = GRAD_ADD(c, "Exp", grad_out(c, 0));
    grad_give(c, 0, GRAD_ADD(c, "Sub", g, GRAD_ADD(c, "Mul", p, sum_over_axes(c, g))));
}
