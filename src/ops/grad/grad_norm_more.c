/* SPDX-License-Identifier: Apache-2.0
 *
 * Rules of normalisations without scale and bias: by a norm, by mean and deviation, and by the
 * squares of neighbouring channels.
 */
#include "ops/grad/grad_rule.h"

/* Returns v, or 1 where it is 0, as a divisor of numbers that are 0 there. */
static value_id not_0(grad_node *c, value_id v)
{
    return GRAD_ADD(c, "Where", GRAD_ADD(c, "Equal", v, grad_number(c, 0)), grad_number(c, 1), v);
}

/* y = x / n, n the sum of |x| or the root of that of x^2 along the axis: the cotangent of x is
 * (g - direction sum(g y)) / n, where n changes with x in this direction: sign(x), or y. Zeros
 * stay zeros, with a gradient of zero. */
void grad_pass_lp_normalization(grad_node *c)
{
    const int64_t axis = node_int(&c->node, "axis", -1);
    const bool square = node_int(&c->node, "p", 2) == 2;
    const value_id g = grad_cotangent(c, 0), x = grad_in(c, 0), y = grad_out(c, 0);
    const value_id norm = grad_reduce(c, square ? "ReduceL2" : "ReduceL1", x, 1, &axis);
    const value_id along = grad_reduce(c, "ReduceSum", GRAD_ADD(c, "Mul", g, y), 1, &axis);
    const value_id part = GRAD_ADD(c, "Mul", square ? y : GRAD_ADD(c, "Sign", x), along);
    const value_id made = GRAD_ADD(c, "Div", GRAD_ADD(c, "Sub", g, part), not_0(c, norm));
    const value_id is_0 = GRAD_ADD(c, "Equal", norm, grad_number(c, 0));
    grad_give(c, 0, GRAD_ADD(c, "Where", is_0, grad_number(c, 0), made));
}

/* y = d / (s + epsilon), d = x - mean(x), s the root of mean(d^2): the cotangent of x is
 * (g - mean(g)) / (s + epsilon) - d mean(g d) / (s (s + epsilon)^2). */
void grad_pass_mean_variance(grad_node *c)
{
    static const int64_t image_axes[3] = {0, 2, 3};
    size_t n;
    const value_id g = grad_cotangent(c, 0), x = grad_in(c, 0);
    const int64_t *axes = node_ints(&c->node, "axes", &n);
    if (!node_attribute(&c->node, "axes")) {
        axes = image_axes;
        n = 3;
    } else if (n == 0) { /* each element is its own mean */
        grad_give(c, 0, grad_fill_like(c, x, 0));
        return;
    }
    const value_id d = GRAD_ADD(c, "Sub", x, grad_mean(c, x, n, axes));
    const value_id variance = grad_mean(c, GRAD_ADD(c, "Mul", d, d), n, axes);
    /* the root of 0 has no derivative, and d is 0 there */
    const value_id s = GRAD_ADD(c, "Sqrt", not_0(c, variance));
    const value_id is_0 = GRAD_ADD(c, "Equal", variance, grad_number(c, 0));
    const value_id deviation = GRAD_ADD(c, "Where", is_0, grad_number(c, 0), s);
    const value_id divisor = GRAD_ADD(c, "Add", deviation, grad_number(c, 1e-9));
    const value_id along = grad_mean(c, GRAD_ADD(c, "Mul", g, d), n, axes);
    const value_id by = GRAD_ADD(c, "Mul", s, divisor);
    const value_id part = GRAD_ADD(c, "Mul", d, GRAD_ADD(c, "Div", along, by));
    const value_id rest = GRAD_ADD(c, "Sub", g, grad_mean(c, g, n, axes));
    grad_give(c, 0, GRAD_ADD(c, "Div", GRAD_ADD(c, "Sub", rest, part), divisor));
}

/* ---- LRN ------------------------------------------------------------------------------------- */

/* Returns the sum of v over the `size` channels around each one divided by `size`, as an average
 * over axis 2 of [N, 1, C, ...]; or the transpose of that. */
static value_id average_channels(grad_node *c, value_id v, int rank, int64_t size, bool transposed)
{
    const int64_t before = (size - 1) / 2, after = size - 1 - before, one = 1;
    const size_t n = (size_t)rank - 1;
    int64_t kernel[3] = {size, 1, 1}, pads[6] = {0};
    pads[0] = transposed ? after : before;
    pads[n] = transposed ? before : after;
    value_id made = GRAD_ADD(c, "Unsqueeze", v, grad_list(c, 1, &one));
    made = GRAD_ADD(c, "AveragePool", made);
    made = grad_set_ints(c, made, "kernel_shape", n, kernel);
    made = grad_set_ints(c, made, "pads", 2 * n, pads);
    made = grad_set_int(c, made, "count_include_pad", 1);
    return GRAD_ADD(c, "Squeeze", made, grad_list(c, 1, &one));
}

/* y = x s^-beta, s = bias + alpha average(x^2): the cotangent of x is
 * g s^-beta - 2 alpha beta x transpose of average(g x s^(-beta-1)). */
void grad_pass_lrn(grad_node *c)
{
    const int rank = grad_rank(c, 0);
    const int64_t size = node_int(&c->node, "size", 1);
    const double alpha = (double)node_float(&c->node, "alpha", 1e-4f),
                 beta = (double)node_float(&c->node, "beta", 0.75f),
                 bias = (double)node_float(&c->node, "bias", 1.0f);
    const value_id g = grad_cotangent(c, 0), x = grad_in(c, 0);
    if (rank < 2 || rank > 4) {
        grad_refuse(c, "its input has %d axes, and 2 to 4 are supported", rank);
        return;
    }
    const value_id squares = average_channels(c, GRAD_ADD(c, "Mul", x, x), rank, size, false);
    const value_id scaled = GRAD_ADD(c, "Mul", squares, grad_number(c, alpha)),
                   s = GRAD_ADD(c, "Add", scaled, grad_number(c, bias));
    const value_id direct = GRAD_ADD(c, "Mul", g, GRAD_ADD(c, "Pow", s, grad_number(c, -beta)));
    const value_id weighed = GRAD_ADD(c, "Div", GRAD_ADD(c, "Mul", direct, x), s);
    const value_id around = average_channels(c, weighed, rank, size, true);
    const value_id part = GRAD_ADD(c, "Mul", x, around);
    grad_give(
        c, 0,
        GRAD_ADD(c, "Sub", direct, GRAD_ADD(c, "Mul", part, grad_number(c, 2 * alpha * beta))));
}
