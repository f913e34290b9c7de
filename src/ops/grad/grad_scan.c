/* SPDX-License-Identifier: Apache-2.0
 *
 * Rules of scans with products. y[k] is the product of x[0] to x[k]; the cotangent of x[j] is the
 * product of what is before it times g[j] + x[j+1] (g[j+1] + x[j+2] (...)), a linear recurrence
 * from the end. Nothing is divided by x, so that elements may be 0. The internal
 * clgraph.LinearScan, y[k] = a[k] y[k-1] + b[k], computes such recurrences, and so does its rule.
 */
#include "ops/grad/grad_rule.h"

value_id grad_products_before(grad_node *c, value_id v, value_id axis, bool reverse)
{
    value_id made = grad_of_opset(c, GRAD_ADD(c, "CumProd", v, axis), 26);
    made = grad_set_int(c, made, "exclusive", 1);
    return reverse ? grad_set_int(c, made, "reverse", 1) : made;
}

/* Returns v moved along the axis, so that each element is the one after it, or with `back` the one
 * before it, and 0 where there is none. */
static value_id next_of(grad_node *c, value_id v, value_id axis, bool back)
{
    const int64_t pads[2] = {back ? 1 : -1, back ? -1 : 1}, one = 1;
    const value_id axes = GRAD_ADD(c, "Reshape", axis, grad_list(c, 1, &one));
    const value_id inputs[4] = {v, grad_list(c, 2, pads), grad_number(c, 0), axes};
    return grad_of_opset(c, grad_add(c, "Pad", 4, inputs), 18);
}

static value_id linear_scan(grad_node *c, value_id a, value_id b, value_id axis, bool reverse)
{
    const value_id inputs[3] = {a, b, axis};
    const value_id v = grad_add_of(c, DOMAIN_INTERNAL, "LinearScan", 3, inputs);
    return grad_set_int(c, v, "reverse", reverse);
}

void grad_pass_cumprod(grad_node *c)
{
    const bool reverse = node_int(&c->node, "reverse", 0) != 0;
    const value_id x = grad_in(c, 0), axis = grad_in(c, 1);
    value_id g = grad_cotangent(c, 0);
    /* an element is not in its own product */
    if (node_int(&c->node, "exclusive", 0) != 0) g = next_of(c, g, axis, reverse);
    const value_id after = linear_scan(c, next_of(c, x, axis, reverse), g, axis, !reverse);
    grad_give(c, 0, GRAD_ADD(c, "Mul", grad_products_before(c, x, axis, reverse), after));
}

/* The cotangent of b is the recurrence the other way, h[k] = g[k] + a[k+1] h[k+1], that of a[k] is
 * h[k] y[k-1]. */
void grad_pass_linear_scan(grad_node *c)
{
    const bool reverse = node_int(&c->node, "reverse", 0) != 0;
    const value_id axis = grad_in(c, 2), g = grad_cotangent(c, 0);
    const value_id h = linear_scan(c, next_of(c, grad_in(c, 0), axis, reverse), g, axis, !reverse);
    grad_give(c, 1, h);
    if (grad_wants(c, 0))
        grad_give(c, 0, GRAD_ADD(c, "Mul", h, next_of(c, grad_out(c, 0), axis, !reverse)));
}
