/* SPDX-License-Identifier: Apache-2.0
 *
 * Rules of operators that compute element by element, with broadcasting: the cotangent of an input
 * is computed in the shape of the output, and summed to the shape of the input.
 */
#include "ops/grad/grad_rule.h"

#include <string.h>

/* Returns whether broadcasting `like` with `other`, of which sizes may be unknown, is known to give
 * the shape of `like`. */
static bool cannot_extend(const shape *like, const shape *other)
{
    if (like->rank == RANK_UNKNOWN || other->rank == RANK_UNKNOWN || other->rank > like->rank)
        return false;
    for (int i = 1; i <= other->rank; i++) {
        const int64_t theirs = other->dims[other->rank - i], ours = like->dims[like->rank - i];
        if (theirs != 1 && (theirs == DIM_UNKNOWN || theirs != ours)) return false;
    }
    return true;
}

/* Sets the cotangent of input i, given in the shape of output 0. */
static void give_broadcast(grad_node *c, size_t i, value_id v)
{
    const value_id in = grad_in(c, i);
    bool is_whole = true;
    for (size_t k = 0; k < c->node.n_inputs; k++)
        if (k != i && grad_in(c, k) != VALUE_NONE && grad_in(c, k) != in)
            is_whole = is_whole &&
                       cannot_extend(&grad_fact(c, in)->dims, &grad_fact(c, grad_in(c, k))->dims);
    grad_give(c, i, is_whole ? v : grad_sum_to(c, v, in));
}

void grad_pass_formula(grad_node *c)
{
    for (size_t i = 0; i < GRAD_MAX_FORMULAS; i++)
        if (c->row->grad->formulas[i] && grad_wants(c, i))
            give_broadcast(c, i, grad_formula(c, c->row->grad->formulas[i]));
}

void grad_pass_sum(grad_node *c)
{
    for (size_t i = 0; i < c->node.n_inputs; i++)
        if (grad_wants(c, i)) give_broadcast(c, i, grad_cotangent(c, 0));
}

void grad_pass_mean(grad_node *c)
{
    const value_id share =
        GRAD_ADD(c, "Div", grad_cotangent(c, 0), grad_number(c, (double)c->node.n_inputs));
    for (size_t i = 0; i < c->node.n_inputs; i++)
        if (grad_wants(c, i)) give_broadcast(c, i, share);
}

/* Returns 1 where input i is the result, else 0. */
static value_id is_result(grad_node *c, size_t i)
{
    const value_id same = GRAD_ADD(c, "Equal", grad_in(c, i), grad_out(c, 0));
    return grad_set_int(c, GRAD_ADD(c, "Cast", same), "to", grad_fact(c, grad_out(c, 0))->dtype);
}

/* Divides the cotangent equally among the inputs that are the result. */
void grad_pass_extreme(grad_node *c)
{
    value_id count = is_result(c, 0);
    for (size_t i = 1; i < c->node.n_inputs; i++)
        count = GRAD_ADD(c, "Add", count, is_result(c, i));
    const value_id share = GRAD_ADD(c, "Div", grad_cotangent(c, 0), count);
    for (size_t i = 0; i < c->node.n_inputs; i++)
        if (grad_wants(c, i)) give_broadcast(c, i, GRAD_ADD(c, "Mul", share, is_result(c, i)));
}

/* Passes the cotangent on to x at the bounds too, and to a bound where it replaces x. The upper
 * bound takes precedence. */
void grad_pass_clip(grad_node *c)
{
    const value_id g = grad_cotangent(c, 0), zero = grad_number(c, 0), x = grad_in(c, 0);
    const value_id low = grad_in(c, 1), high = grad_in(c, 2);
    value_id inside = g;
    if (low != VALUE_NONE) {
        const value_id below = GRAD_ADD(c, "Less", x, low);
        value_id of_low = GRAD_ADD(c, "Where", below, g, zero);
        if (high != VALUE_NONE)
            of_low = GRAD_ADD(c, "Where", GRAD_ADD(c, "Greater", low, high), zero, of_low);
        if (grad_wants(c, 1)) grad_give(c, 1, grad_sum_to(c, of_low, low));
        inside = GRAD_ADD(c, "Where", below, zero, inside);
    }
    if (high != VALUE_NONE) {
        value_id above = GRAD_ADD(c, "Greater", x, high);
        inside = GRAD_ADD(c, "Where", above, zero, inside);
        if (grad_wants(c, 2)) {
            if (low != VALUE_NONE)
                above = GRAD_ADD(c, "Or", above, GRAD_ADD(c, "Greater", low, high));
            const value_id of_high = GRAD_ADD(c, "Where", above, g, zero);
            grad_give(c, 2, grad_sum_to(c, of_high, high));
        }
    }
    grad_give(c, 0, inside);
}

void grad_pass_cast(grad_node *c)
{
    const clg_dtype dtype = grad_fact(c, grad_in(c, 0))->dtype;
    grad_give(c, 0, grad_set_int(c, GRAD_ADD(c, "Cast", grad_cotangent(c, 0)), "to", dtype));
}

void grad_pass_gelu(grad_node *c)
{
    const bool by_tanh = strcmp(node_string(&c->node, "approximate", "none"), "tanh") == 0;
    grad_give(c, 0, grad_formula(c, by_tanh ? GRAD_GELU_TANH("x") : GRAD_GELU("x")));
}

void grad_pass_fast_gelu(grad_node *c)
{
    if (grad_in(c, 1) == VALUE_NONE) {
        grad_give(c, 0, grad_formula(c, GRAD_GELU_TANH("x")));
        return;
    }
    const value_id both = grad_formula(c, "u = x + x1; " GRAD_GELU_TANH("u"));
    give_broadcast(c, 0, both);
    if (grad_wants(c, 1)) give_broadcast(c, 1, both);
}
